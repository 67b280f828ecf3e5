"""The probes and the missing parts of the comparison: tasks, networks, measures."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.data.stories import story_grammar
from seqlib.experiments import comparison_ablations as ablations
from seqlib.experiments import comparison_probes as probes
from seqlib.experiments.comparison_words import T, vocabulary, windows
from seqlib.pt.decoder import DecoderLM

TASKS = probes.INPUTS["tasks"]
KINDS = probes.INPUTS["kinds"]


# The probes.
def test_parity_asks_whether_the_ones_so_far_are_odd():
    bits, odd = probes.draw("parity", 50, np.random.default_rng(0), probes.INPUTS)
    assert bits.shape == (50, 24)
    for row, answers in zip(bits, odd, strict=True):
        assert_array_equal(answers, [sum(row[: t + 1]) % 2 for t in range(24)])
    longer, _ = probes.draw("parity", 2, np.random.default_rng(0), probes.INPUTS, probes.LONGER)
    assert longer.shape == (2, 72)


@pytest.mark.parametrize("task", TASKS)
def test_probes_have_equal_size_and_do_not_see_the_future(task):
    counts = []
    for kind in KINDS:
        torch.manual_seed(0)
        model = probes.Probe(kind, task, probes.INPUTS)
        counts.append(sum(p.numel() for p in model.parameters()))
        x, _ = probes.draw(task, 3, np.random.default_rng(0), probes.INPUTS)
        x = torch.from_numpy(x).float() if task == "adding" else torch.from_numpy(x)
        other = x.clone()
        other[:, 9:] = 1 - other[:, 9:] if task in ("adding", "parity") else 0
        before, after = model(x), model(other)
        torch.testing.assert_close(before[:, :9], after[:, :9])
        assert (before[:, 9:] != after[:, 9:]).any()
    assert max(counts) < 1.05 * min(counts)


class Knows:
    """Answers of which every fifth is wrong."""

    def __init__(self, y, V):
        self.logits = torch.nn.functional.one_hot(torch.from_numpy(np.maximum(y, 0)), V).float()
        self.logits[::5] = self.logits[::5].roll(1, dims=-1)

    def __call__(self, x):
        return self.logits


def test_the_score_is_the_share_of_right_answers():
    x, y = probes.draw("copy_8", 10, np.random.default_rng(0), probes.INPUTS)
    assert probes.score("copy_8", Knows(y, 10), x, y) == pytest.approx(0.8)
    asked = (y != probes.IGNORED).sum(axis=1)
    assert_array_equal(asked, [5] * 10)


def test_the_score_of_adding_is_a_mean_squared_error():
    x, y = probes.draw("adding", 4000, np.random.default_rng(0), probes.INPUTS)
    ones = lambda x: torch.ones(*x.shape[:2], 1)  # noqa: E731
    assert probes.score("adding", ones, x, y) == pytest.approx(1 / 6, abs=0.01)


@pytest.mark.parametrize(
    ("task", "scores", "rates", "kept"),
    [
        ("copy_8", {0.003: 0.995, 0.01: 1.0}, [0.003], 0.995),
        ("copy_8", {0.003: 0.4, 0.01: 0.7}, [0.003, 0.01], 0.7),
        ("copy_8", {0.003: 0.7, 0.01: 0.4}, [0.003, 0.01], 0.7),
        ("adding", {0.003: 0.1, 0.01: 0.001}, [0.003, 0.01], 0.001),
        ("adding", {0.003: 0.1, 0.01: 0.2}, [0.003, 0.01], 0.1),
    ],
)
def test_the_second_rate_is_tried_where_the_first_fails(task, scores, rates, kept, monkeypatch):
    tried = []

    def train(task, kind, rate, inputs, seed):
        tried.append(rate)
        model = torch.nn.Sequential()
        model.module, model.rate = torch.nn.Linear(1, 1), rate
        return model, 10

    monkeypatch.setattr(probes, "train", train)
    monkeypatch.setattr(probes, "score", lambda task, model, x, y: scores[model.rate])
    _, row = probes.trials(task, "rnn", probes.INPUTS, 0)
    assert tried == rates
    assert row["score"] == kept
    assert row["solved"] == (kept in (0.995, 0.001))


def test_training_solves_what_is_easy():
    """The bit of a moment ago: parity of two steps."""
    inputs = {**probes.INPUTS, "steps_parity": 2, "steps": 400}
    model, steps = probes.train("parity", "rnn", 0.01, inputs, 0)
    x, y = probes.draw("parity", 100, np.random.default_rng(1), inputs)
    assert steps < 400
    assert probes.score("parity", model, x, y) == 1


# The words.
def test_windows_begin_with_a_story_and_cost_what_the_grammar_says():
    ids, nats = windows(70, np.random.default_rng(0))
    assert ids.shape == (70, T + 1)
    assert nats.shape == (70, T)
    words = vocabulary()
    for row, costs in zip(ids[::9], nats[::9], strict=True):
        text = "".join(words[i] for i in row)
        first = story_grammar().nats(words[row[0]]).sum()
        assert costs.sum() + first == pytest.approx(story_grammar().nats(text).sum())


# The missing parts.
def build(variant):
    torch.manual_seed(0)
    return ablations.build(variant, ablations.INPUTS)


def test_the_whole_is_the_decoder():
    model, ids = build("whole"), torch.arange(6).reshape(2, 3)
    plain = DecoderLM(model.config)
    plain.load_state_dict(model.state_dict())
    assert torch.equal(plain(ids), model(ids))
    assert (model.config.norm, model.config.n_head, model.config.n_layer) == ("pre", 4, 2)


@pytest.mark.parametrize("variant", ablations.VARIANTS)
def test_one_thing_is_missing(variant):
    model, ids = build(variant), torch.arange(8)[None]
    names = "".join(dict(model.named_parameters()))
    assert ("norm" in names) == (variant != "no_norm")
    assert ("linear1" in names) == (variant != "no_feed_forward")
    assert ("positions" in names) == (variant != "no_positions")
    assert model.config.norm == ("post" if variant == "post_norm" else "pre")
    assert model.layers[0].self_attn.n_head == (1 if variant == "one_head" else 4)
    other = torch.cat([ids[:, :5], ids[:, 5:] + 1], dim=1)
    seen = (model(ids)[:, :5] - model(other)[:, :5]).abs().max() > 1e-6
    assert bool(seen) == (variant == "no_mask")


def test_a_layer_without_feed_forward_adds_its_attention():
    layer = build("no_feed_forward").layers[0]
    x = torch.randn(2, 3, 48)
    torch.nn.init.zeros_(layer.self_attn.out_proj.weight)
    assert torch.equal(layer(x, causal=True), x)


def test_words_are_counted_up_to_the_first_wrong_one():
    ids, _ = windows(3, np.random.default_rng(0))
    words = [vocabulary()[i] for i in ids[0]]
    assert ablations.follow(words) == len(words)
    for place in (1, 7, 20):
        wrong = [*words[:place], "xyz ", *words[place:]]
        assert ablations.follow(wrong) == place
    assert ablations.follow(["is "]) == 0


class Floor:
    """A model that gives every word the same probability."""

    def __call__(self, ids):
        return torch.zeros(*ids.shape, len(vocabulary()))


def test_losses_and_their_floors():
    ids, nats = windows(20, np.random.default_rng(0))
    ids, ln_v = torch.from_numpy(ids), np.log(len(vocabulary()))
    assert ablations.loss(Floor(), ids) == pytest.approx(ln_v, rel=1e-6)
    last = nats[:, [end - 1 for end in ablations.ENDS]].mean()
    assert ablations.writing(Floor(), ids, nats) == pytest.approx(ln_v - last, rel=1e-6)


def test_texts_are_drawn_from_the_model():
    class Next(Floor):
        """The word after the last one, for certain."""

        def __call__(self, ids):
            logits = super().__call__(ids)
            return logits.scatter(-1, (ids[..., None] + 1) % logits.shape[-1], 100.0)

    for row in ablations.write(Next(), 3, 0):
        places = [vocabulary().index(word) for word in row]
        assert len(row) == T
        assert_allclose(np.diff(places) % len(vocabulary()), 1)


def test_the_better_rate_counts_for_all_seeds():
    rows = [{"a": {"1": {"above": x}, "2": {"above": y}}} for x, y in ((0.1, 0.3), (0.4, 0.3))]
    found = ablations.best({"inputs": {"variants": ["a"]}, "by_seed": rows})
    assert found == {"a": [{"above": 0.1}, {"above": 0.4}]}
