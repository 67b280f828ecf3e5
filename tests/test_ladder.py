"""The ladder: what each rung is, how it is measured, and what its record shows."""

import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from seqlib.data import stories
from seqlib.experiments import ladder, load
from seqlib.text import CharTokenizer

SMALL = {**ladder.INPUTS, "width": 8, "heads": 2, "characters": 12, "steps": 20}
NETWORKS = [rung for rung in ladder.INPUTS["rungs"] if rung != "counts"]


@pytest.fixture(scope="module")
def text():
    return stories(8, np.random.default_rng(0))


def test_every_story_is_a_row_behind_the_end_of_a_line(text):
    characters = CharTokenizer.train(text)
    inputs, targets = ladder.pairs(text, characters, 40)
    lines = text.splitlines(keepends=True)
    assert inputs.shape == targets.shape == (len(lines), 40)
    for line, x, y in zip(lines, inputs, targets, strict=True):
        n = min(len(line), 40)
        assert characters.decode(y[:n].numpy()) == line[:n]
        assert characters.decode(x[:n].numpy()) == "\n" + line[: n - 1]
        assert (y[n:] == ladder.IGNORED).all()


def test_floor_and_losses_count_the_same_characters(text):
    characters = CharTokenizer.train(text)
    kept = ladder.first(text, 40)
    _, targets = ladder.pairs(text, characters, 40)
    assert kept.sum() == (targets != ladder.IGNORED).sum()
    assert "".join(np.array(list(text))[kept]) == "".join(
        line[:40] for line in text.splitlines(keepends=True)
    )


def test_a_loss_is_the_mean_over_real_characters(text):
    characters = CharTokenizer.train(text)
    data, V = ladder.pairs(text, characters, 300), len(characters.characters)
    torch.manual_seed(0)
    model = ladder.Model("gru", V, SMALL)
    logits = model(data[0]).detach().numpy()
    z = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    real = data[1].numpy() != ladder.IGNORED
    chosen = np.take_along_axis(z, np.where(real, data[1], 0)[..., None], axis=-1)[..., 0]
    assert ladder.loss_of(model, data) == pytest.approx(-chosen[real].mean(), rel=1e-5)


@pytest.mark.parametrize("rung", NETWORKS)
def test_no_rung_sees_the_future(rung):
    torch.manual_seed(0)
    model = ladder.Model(rung, 7, SMALL)
    ids = torch.arange(12)[None] % 7
    other = ids.clone()
    other[:, 6:] = (other[:, 6:] + 3) % 7
    before, after = model(ids), model(other)
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert (before[:, 6:] != after[:, 6:]).any()


def test_each_rung_has_one_piece_more():
    models = {rung: ladder.Model(rung, 7, SMALL) for rung in NETWORKS}
    names = {rung: set(dict(model.named_parameters())) for rung, model in models.items()}
    path = ["attention", "positions", "feed_forward", "norm", "depth"]
    for lower, upper in itertools.pairwise(path):
        assert names[lower] < names[upper]
    assert names["positions"] - names["attention"] == {"positions"}
    assert len(models["depth"].layers) == 3
    kinds = [type(models[rung].recurrent).__name__ for rung in ("rnn", "lstm", "gru")]
    assert kinds == ["RNN", "LSTM", "GRU"]


def test_only_positions_tell_attention_the_order_of_what_it_reads():
    """One causal layer without positions gives the last token the same for any order before."""
    torch.manual_seed(0)
    ids = torch.tensor([[1, 2, 3, 4], [3, 1, 2, 4]])
    for rung, same in (("attention", True), ("positions", False)):
        last = ladder.Model(rung, 7, SMALL)(ids)[:, -1]
        assert bool(torch.allclose(last[0], last[1], atol=1e-6)) == same


def test_training_lowers_the_loss(text):
    characters = CharTokenizer.train(text)
    data = ladder.pairs(text, characters, 12)
    torch.manual_seed(0)
    model = ladder.Model("gru", len(characters.characters), SMALL)
    before = ladder.loss_of(model, data)
    ladder.train(model, data, 0.01, SMALL, 0)
    assert ladder.loss_of(model, data) < before - 0.3


def test_the_better_rate_counts():
    record = {
        "inputs": {"rungs": ["counts", "rnn"]},
        "by_seed": [
            {"above": {"counts": 0.5, "rnn": {"0.003": 0.4, "0.01": 0.2}}},
            {"above": {"counts": 0.6, "rnn": {"0.003": 0.3, "0.01": 0.6}}},
        ],
    }
    assert ladder.best(record) == {"counts": [0.5, 0.6], "rnn": [0.4, 0.3]}


def test_plot_has_a_line_for_each_rung():
    (axis,) = ladder.plot(load("ladder"), ["counts", "gru"]).axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [
        "10 characters counted",
        "GRU",
    ]
    assert axis.get_xlabel() == "nats per character above the floor"


def test_plot_marks_what_is_new_on_the_axis_of_all_rungs():
    (all_rungs,) = ladder.plot(load("ladder")).axes
    (axis,) = ladder.plot(load("ladder"), ["rnn", "gru"], new=["gru"]).axes
    assert [label.get_fontweight() for label in axis.get_yticklabels()] == ["normal", "bold"]
    assert [line.get_marker() for line in axis.lines[::2]] == ["o", "D"]
    assert axis.get_xlim() == all_rungs.get_xlim()


def test_attention_gains_most_from_positions():
    found = ladder.best(load("ladder"))
    assert_array_equal(list(found), ladder.INPUTS["rungs"])
    for i in range(5):
        assert found["positions"][i] < 0.55 * found["attention"][i]
        assert found["depth"][i] < found["norm"][i] < found["positions"][i]
