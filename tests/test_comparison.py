"""The comparison of networks: what is equal, how it is measured and read."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.complexity import rnn_cost
from seqlib.experiments import comparison, comparison_time, load
from seqlib.experiments import comparison_curves as curves
from seqlib.experiments import comparison_text as text
from seqlib.experiments.comparison_models import CELLS, Recurrent, detached, make

SMALL = {
    **comparison.INPUTS,
    "width": 8,
    "sizes": {"rnn": 12, "lstm": 8, "gru": 9, "transformer": 16},
    "heads": 2,
    "context": 8,
    "batch": 4,
}
KINDS = ("rnn", "lstm", "gru", "transformer")


# The text: the same for everyone, and no part of it in another one.
def test_the_text_is_the_documentation_of_the_pinned_numpy():
    training, choice, test = text.parts()
    assert (len(training), len(choice), len(test)) == (695_327, 30_793, 30_387)
    paragraphs = [set(part.split("\n")) - {""} for part in (training, choice, test)]
    assert sum(map(len, paragraphs)) == len(set.union(*paragraphs))
    assert not any(">>>" in part for part in (training, choice, test))


def test_another_text_is_refused(monkeypatch):
    monkeypatch.setattr(text, "documents", lambda: ["one", "two"])
    with pytest.raises(ValueError, match=r"^numpy must have the documentation of version 2"):
        text.parts()


def test_ids_are_places_in_the_alphabet():
    assert len(set(text.ALPHABET)) == len(text.ALPHABET) == 96
    assert_array_equal(text.ids("\n !ä"), [0, 1, 2, text.ALPHABET.index("~")])
    sample = text.parts()[2][:500]
    assert "".join(text.ALPHABET[i] for i in text.ids(sample)) == sample


def test_rules_of_dashes_and_line_breaks_are_no_text():
    found = text._paragraphs("A line\n  that goes on.\n\nSee Also\n--------\nb : c\n   \n")
    assert found == ["A line that goes on.", "See Also: b : c"]


# The networks.
def test_all_networks_have_as_many_parameters():
    V = len(text.ALPHABET)
    counts = [
        sum(p.numel() for p in make(kind, V, comparison.INPUTS, 64).parameters())
        for kind in KINDS
    ]
    assert max(counts) < 1.01 * min(counts)


@pytest.mark.parametrize("kind", KINDS)
def test_no_network_sees_the_future(kind):
    torch.manual_seed(0)
    model = make(kind, 11, SMALL, 8)
    ids = torch.arange(8)[None]
    other = torch.cat([ids[:, :5], ids[:, 5:] + 2], dim=1)
    before, after = model(ids)[0], model(other)[0]
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(dim=-1).all()


@pytest.mark.parametrize("kind", CELLS)
def test_a_carried_state_joins_two_windows(kind):
    torch.manual_seed(0)
    model, ids = make(kind, 11, SMALL, 8), torch.arange(8)[None]
    first, state = model(ids[:, :5])
    second, _ = model(ids[:, 5:], detached(state))
    torch.testing.assert_close(torch.cat([first, second], dim=1), model(ids)[0])


def test_gates_start_where_they_keep():
    lstm, gru, rnn = (
        Recurrent(kind, 5, 3, 4, keep=3.0).recurrent for kind in ("lstm", "gru", "rnn")
    )
    for layer in (lstm, gru):
        kept = layer.bias_ih_l0[4:8] + layer.bias_hh_l0[4:8]
        assert_array_equal(kept.detach(), [3.0] * 4)
    matrix = rnn.weight_hh_l0.detach()
    assert_allclose(matrix @ matrix.T, np.eye(4), atol=1e-6)


# The training.
def small_run(kind):
    ids = np.arange(600) % 96
    return comparison.Run(kind, 0.01, ids, {**SMALL, "measured": [2], "in_all_ways": [2]}, 0)


@pytest.mark.parametrize("kind", ["lstm", "lstm_reset", "transformer"])
def test_a_state_is_carried_by_those_that_carry_it(kind):
    one = small_run(kind)
    seen = []
    one.model.register_forward_pre_hook(lambda _, args: seen.append(args[1]))
    one.train(21, np.arange(100) % 96, np.arange(100) % 96)
    carried = [state is not None for state in seen]
    # 600 characters in 4 rows are 19 batches of 8 steps at most; then the text begins again.
    assert carried == [kind == "lstm" and step not in (0, 19) for step in range(21)]
    if kind == "lstm":
        assert not any(part.requires_grad for part in seen[2])


def test_all_read_the_same_batches_and_the_text_begins_again():
    streams = [small_run(kind).batches for kind in ("rnn", "transformer")]
    for _ in range(40):
        (x, y), (x2, _) = (next(stream) for stream in streams)
        assert torch.equal(x, x2)
        assert torch.equal(x[:, 1:], y[:, :-1])
    starts = [int(x[0, 0]) for x, _ in (next(streams[0]) for _ in range(40))]
    assert starts.count(0) >= 2


def test_what_is_measured_is_a_mean_of_the_weights():
    one = small_run("rnn")
    ids = np.arange(100) % 96
    one.train(2, ids, ids)
    weights = one.model.head.weight.detach().clone()
    mean = one.averaged.module.head.weight
    one.train(3, ids, ids)
    change = one.model.head.weight.detach() - weights
    assert (one.averaged.module.head.weight - mean).abs().max() < change.abs().max()
    assert one.loss["equal"]["2"] == pytest.approx(one.loss["choice"]["2"])
    assert set(one.loss) == {"choice", "equal", "windows", "places", "carried"}


# The measures: all score the same characters and differ in what a prediction sees.
class Sees:
    """A model whose loss is the number of characters that it sees, up to a constant."""

    def __init__(self, V):
        self.V = V

    def __call__(self, ids, state=None):
        B, T = ids.shape
        logits = torch.zeros(B, T, self.V)
        logits[..., -1] = torch.arange(1, T + 1) * 50.0  # the id V - 1 is never a target
        return logits, None


def test_what_a_prediction_sees():
    ids, T, V = np.arange(4 * 40 + 1) % 7, 8, 9
    expected = {"equal": range(5, 9), "windows": range(1, 9), "carried": range(9, 41)}
    for way, seen in expected.items():
        found = comparison.nats(Sees(V), ids, T, way)
        assert_allclose(found / 50, np.broadcast_to(list(seen), found.shape), rtol=1e-2)
        assert found.numel() == 4 * 32
    places = comparison.by_place(Sees(V), ids, T)
    assert_allclose([places["1"], places["2"], places["4"], places["8"]], [50, 100, 175, 325])


class Last:
    """A model of the last character alone: it cannot tell the measures apart."""

    def __init__(self, V):
        self.weight = torch.from_numpy(np.random.default_rng(0).standard_normal((V, V)))

    def __call__(self, ids, state=None):
        return self.weight[ids], None


def test_the_measures_score_the_same_characters(rng):
    ids = rng.integers(6, size=4 * 48 + 3)
    found = [
        comparison.measure(Last(6), ids, 8, way) for way in ("equal", "windows", "carried")
    ]
    log_p = torch.log_softmax(Last(6).weight, dim=-1).numpy()
    rows = np.stack([np.arange(8, 48) + 48 * row for row in range(4)])
    assert_allclose(found, [-log_p[ids[rows], ids[rows + 1]].mean()] * 3, rtol=1e-12)


# How the record is read.
def record(losses):
    """A record of two networks; the rate 0.1 is better for choosing and worse on the test."""
    seeds = [
        {
            "rnn": {"0.1": row(1.0, value), "0.2": row(2.0, value - 1)},
            "lstm": {"0.1": row(1.0, 2.0)},
        }
        for value in losses
    ]
    rates = {"rnn": [0.1, 0.2], "lstm": [0.1]}
    return {"inputs": {"rates": rates, "context": 64}, "by_seed": seeds}


def row(choice, value):
    return {
        "choice": {"100": choice, "400": choice},
        "equal": {"100": value + 1, "400": value},
    }


def test_interval_of_the_example():
    first = [0.1, 0.2, 0.3, 0.2, 0.2]
    assert_allclose(curves.interval(first, [0.0] * 5), [0.2, 0.1122, 0.2878], atol=1e-4)
    assert curves.ahead(first, [0.0] * 5) == 1
    assert curves.ahead([0.0] * 5, first) == -1
    assert curves.ahead([0.1, -0.1, 0.2, -0.2, 0.05], [0.0] * 5) == 0


@pytest.mark.parametrize(("first", "second"), [([1.0] * 4, [1.0] * 4), ([1.0] * 5, [1.0] * 6)])
def test_too_few_pairs_are_refused(first, second):
    with pytest.raises(ValueError, match=r"^first and second must have 5 to 10 numbers"):
        curves.interval(first, second)


@pytest.mark.parametrize("df", curves.STUDENT)
def test_points_of_student(df):
    """95 % of the density lies between the points; the sum of a fine grid."""
    t = np.linspace(0, 500, 500_001)
    density = (1 + t**2 / df) ** (-(df + 1) / 2)
    inside = density[t <= curves.STUDENT[df]].sum() / density.sum()
    assert inside == pytest.approx(0.95, abs=2e-4)


def test_the_rate_is_chosen_with_a_text_of_its_own():
    found = record([1.5, 1.6, 1.7, 1.8, 1.9])
    assert curves.best_rate(found, "rnn", 100) == "0.1"
    assert_allclose(curves.losses(found, "rnn", 400), [1.5, 1.6, 1.7, 1.8, 1.9])
    assert_allclose(curves.losses(found, "rnn", 400, rate=0.2), [0.5, 0.6, 0.7, 0.8, 0.9])
    assert curves.steps(found, "rnn") == [100, 400]


def test_loss_at_a_time():
    """A step of 10 ms: 2 s are 200 steps, half way from 100 to 400 in the logarithm."""
    times = {"results": {"milliseconds": {"rnn": {"64": 10.0}}}}
    found = record([1.0] * 5)
    assert_allclose(curves.at_time(found, times, "rnn", 2.0), [1.5] * 5)
    for seconds in (0.9, 4.1):
        with pytest.raises(ValueError, match=r"^seconds must be a time between"):
            curves.at_time(found, times, "rnn", seconds)


# What a step costs.
@pytest.mark.parametrize("kind", CELLS)
def test_operations_of_a_recurrent_network(kind):
    H = comparison.INPUTS["sizes"][kind]
    one = sum(cost.flops for cost in rnn_cost(1, 64, H, kind=kind).values())
    assert comparison_time.flops(kind, 16) == comparison_time.flops(kind, 256) == one + 192 * H


def test_operations_of_the_transformer():
    """Two layers: four projections, SwiGLU, scores and softmax of four heads; then the head."""
    D, F, T = 64, 172, 64
    attention = 2 * T * D + 4 * T + 5 * 4 * T + 2 * T * D
    layer = 8 * D * D + 6 * D * F + 2 * F + attention
    assert comparison_time.flops("transformer", T) == 2 * layer + 2 * D * 96


def test_only_recurrence_makes_a_chain_of_the_steps():
    assert [comparison_time.chain("gru", T) for T in (16, 1024)] == [18, 1026]
    assert [comparison_time.chain("transformer", T) for T in (16, 1024)] == [13, 13]


def test_every_network_is_timed():
    inputs = {"kinds": ["lstm", "transformer"], "contexts": [8], "tokens": 16, "rounds": 1}
    found = comparison_time.run(inputs, 0)
    assert set(found["milliseconds"]) == {"lstm", "transformer"}
    assert all(row["8"] > 0 for row in found["milliseconds"].values())
    assert "milliseconds" not in comparison_time.run({**inputs, "rounds": 0}, 0)


# What the page says, seed by seed.
@pytest.mark.parametrize("seed", range(5))
def test_where_the_length_makes_the_transformer_faster(seed):
    row = load("comparison_time")["by_seed"][seed]["milliseconds"]
    assert row["transformer"]["64"] > row["gru"]["64"] > row["lstm"]["64"]
    assert row["gru"]["256"] > row["transformer"]["256"]
    assert min(row["gru"]["1024"], row["rnn"]["1024"]) > 1.3 * row["transformer"]["1024"]


def test_figure_of_the_times():
    (axis,) = curves.plot_times(load("comparison_time")).axes
    assert [line.get_label() for line in axis.lines] == list(curves.NAMES.values())
    assert [list(line.get_xdata()) for line in axis.lines] == [[16, 64, 256, 1024]] * 4
