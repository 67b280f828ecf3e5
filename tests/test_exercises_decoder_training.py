"""The training task of ``decoder``: corpus, floor, bounds, and what a check says."""

import numpy as np
import pytest
import torch

from seqlib.data import NGramLM, story_grammar
from seqlib.exercises import _decoder_train as training
from seqlib.exercises import decoder
from seqlib.exercises._decoder_corpus import RULES, WORD, Language, T, vocabulary
from seqlib.experiments import load
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess
from seqlib.subject.values import map_leaves

TASK = decoder.ASSIGNMENT.tasks[-1]
FOUND = load("decoder_threshold")
V = len(vocabulary())


@pytest.fixture
def language(rng):
    return Language(rng)


def after_training(model):
    """Return the result of an answer that ignores the text and returns ``model``."""
    return judge(TASK, InProcess(lambda windows, vocab_size: model), 1)


# The corpus


@pytest.mark.parametrize("seed", range(3))
def test_the_vocabulary_has_every_word_of_every_language(seed):
    assert V == 168
    language = Language(np.random.default_rng(seed))
    text = language.grammar.sample(20_000, np.random.default_rng(5))
    assert set(WORD.findall(text)) == set(vocabulary()) == language.number.keys()
    assert sorted(language.number.values()) == list(range(V))


def test_windows_begin_with_a_story_and_their_cost_is_the_grammars(language, rng):
    ids, nats = language.windows_with_cost(150, rng)
    assert ids.shape == (150, T + 1)
    assert nats.shape == (150, T)
    words = {number: word for word, number in language.number.items()}
    for window, cost in zip(ids, nats, strict=True):
        text = "".join(words[i] for i in window.tolist())
        by_character = language.grammar.nats(text)
        assert cost.sum() == pytest.approx(
            by_character[len(words[window[0]]) :].sum(), abs=1e-9
        )
        assert (cost >= 0).all()


@pytest.mark.parametrize("n", [1, 64, 65, 150])
def test_windows_are_the_same_with_and_without_their_cost(language, n):
    ids, _ = language.windows_with_cost(n, np.random.default_rng(3))
    np.testing.assert_array_equal(ids, language.windows(n, np.random.default_rng(3)))
    assert ids.shape == (n, T + 1)


def test_every_story_can_begin_a_window(language, rng):
    """Windows are not chosen: else their cost would not be that of the grammar."""
    ids = language.windows(6000, rng)
    names = np.bincount(ids[:, 0], minlength=V) / len(ids)
    assert np.count_nonzero(names) == 24
    assert np.abs(names[names > 0] - 1 / 24).max() < 0.015
    # The first story of a window is as long as any.
    lengths = [len(WORD.findall(s)) for s in language.grammar.sample(6000, rng).splitlines()]
    last = [number for word, number in language.number.items() if word.endswith("\n")]
    short = np.isin(ids[:, :20], last).any(axis=1).mean()
    assert short == pytest.approx(np.mean(np.array(lengths) <= 20), abs=0.03)


def test_languages_differ_in_ids_and_in_the_order_of_words():
    first, *others = (Language(np.random.default_rng(seed)) for seed in range(20))
    text = first.grammar.sample(50, np.random.default_rng(0))
    for other in others:
        same = [first.number[word] == other.number[word] for word in vocabulary()]
        assert np.mean(same) < 0.05
        with pytest.raises(ValueError, match="must be in the language of the grammar"):
            other.grammar.nats(text)


def test_a_language_costs_what_english_costs(language):
    """A word more in the order of another language is no choice more."""
    english = type(story_grammar())(RULES)
    assert language.grammar.entropy() == pytest.approx(english.entropy())
    assert language.grammar.mean_length() == pytest.approx(english.mean_length())


# The bounds


def test_the_bounds_are_those_of_the_committed_runs():
    floor = FOUND["results"]["floor"]
    losses = floor + np.array([run["model"] for run in FOUND["by_seed"]])
    orders = FOUND["results"]["counts"]
    counts = {k: floor + min(run["counts"][k] for run in FOUND["by_seed"]) for k in orders}
    assert len(losses) == 10
    assert pytest.approx(floor, abs=5e-4) == training.ENTROPY
    assert (
        pytest.approx(FOUND["results"]["spread"] / np.sqrt(training.FRESH), abs=5e-6)
        == training.STANDARD_ERROR
    )
    assert pytest.approx(losses.max() + 3 * losses.std(ddof=1), abs=5e-4) == training.THRESHOLD
    assert pytest.approx(counts["2"], abs=1e-3) == training.PAIRS
    assert pytest.approx(min(counts.values()), abs=1e-3) == training.BEST_COUNTS
    assert training.THRESHOLD < training.BEST_COUNTS < training.PAIRS < counts["1"]


def test_no_run_comes_near_the_bound_below():
    low, _ = TASK.options["bounds"]["good"]
    assert low == training.ENTROPY - 3 * training.STANDARD_ERROR
    assert training.ENTROPY + min(run["model"] for run in FOUND["by_seed"]) > low + 0.03


# What the check says


def test_a_model_that_is_the_grammar_has_the_entropy_as_its_loss(language):
    """It is asked about its own fresh windows, whatever these happen to cost."""
    ids, cost = language.windows_with_cost(training.FRESH, np.random.default_rng(3))
    seen = {tuple(i[:-1]): (i[1:], c) for i, c in zip(ids, cost, strict=True)}

    def predict(marked):
        # The target has the grammar's probability, all others share the rest.
        logits = np.empty((*marked.array.shape, V))
        for row, given in zip(logits, marked.array, strict=True):
            targets, nats = seen[tuple(given)]
            p = np.minimum(np.exp(-nats), 1 - 1e-12)
            row[:] = np.log((1 - p) / (V - 1))[:, None]
            row[np.arange(T), targets] = np.log(p)
        return logits

    assert training.nats_of(predict, ids).mean() == pytest.approx(cost.mean(), abs=1e-6)


# Counts, which need no model


def counted(order, ids):
    """Return a model that has counted windows, as a student may write it."""
    model = NGramLM(order, V, strength=3.0).fit(ids.ravel())
    known = {}

    def logits_of(context):
        if context not in known:
            known[context] = np.log(model.distribution(np.array(context)))
        return known[context]

    def predict(ids):
        rows = [
            [logits_of(tuple(row[max(0, t + 2 - order) : t + 1])) for t in range(len(row))]
            for row in ids.tolist()
        ]
        return torch.from_numpy(np.array(rows))

    return predict


@pytest.mark.slow
@pytest.mark.parametrize(("order", "kept"), [(1, set()), (3, {"values"}), (5, {"values"})])
def test_counts_get_the_points_of_counts(order, kept):
    result = judge(
        TASK, InProcess(lambda windows, vocab_size: counted(order, windows[..., :-1])), 1
    )
    assert {c.name for c in result.criteria if c.passed} == kept


def loss_of(model, language, seed=8):
    def predict(marked):
        return map_leaves(lambda leaf: model(torch.from_numpy(leaf.array)).numpy(), marked)

    ids, cost = language.windows_with_cost(128, np.random.default_rng(seed))
    return training.ENTROPY + (training.nats_of(predict, ids) - cost).mean()


def test_counts_of_text_that_was_drawn_beforehand_are_worth_little():
    """Even if somebody says which word is which: the order of the words is another one."""
    given, other = Language(np.random.default_rng(1)), Language(np.random.default_rng(2))
    ids = other.windows(10_000, np.random.default_rng(3))
    other.number = given.number
    told = other.windows(10_000, np.random.default_rng(3))
    own = given.windows(10_000, np.random.default_rng(3))
    losses = [loss_of(counted(4, x), given) for x in (ids, told, own)]
    assert losses[0] > np.log(V)
    assert losses[1] > training.PAIRS
    assert losses[2] < training.PAIRS


class Uniform(torch.nn.Module):
    """Every token is equally probable."""

    def forward(self, ids):
        return torch.zeros(*ids.shape, V) + 0.0 * ids.sum(dim=1)[:, None, None]


def test_a_model_that_knows_nothing_is_told_its_loss():
    result = after_training(Uniform())
    assert result.score == 0
    assert "the loss on a fresh sample is 5.1" in result.criteria[0].message
    assert f"it must be at most {training.PAIRS}" in result.criteria[0].message


def echo(ids):
    """Know the next token where there is one to look at."""
    logits = torch.nn.functional.one_hot(torch.roll(ids, -1, dims=1), V) * 9.0
    logits[:, -1] = 0
    return logits


def test_a_model_that_looks_ahead_is_named_and_gets_nothing():
    result = after_training(echo)
    assert result.score == 0
    assert "no model can be that good without seeing the answers" in result.criteria[0].message
    assert result.diagnosis.names == ("sees_the_future",)
    assert "sees the future" in result.diagnosis.says[0]


def test_a_model_that_looks_ahead_a_little_is_found_at_a_loss_that_would_pay():
    """Its loss lies among honest ones: only changed later tokens tell."""

    def mixed(ids):
        # The right next token with a probability that gives a loss of about 0.7.
        return echo(ids) / 9.0 * (np.log(V - 1) + np.log(0.55 / 0.45))

    result = after_training(mixed)
    assert result.score == 0
    assert "must not depend on later tokens" in result.criteria[0].message
    assert result.diagnosis.names == ("sees_the_future",)


def peeking(ids, p=0.465):
    """Give the next token a probability of p where it can be seen, all others the rest."""
    ids = np.asarray(ids)
    logits = np.full((*ids.shape, V), np.log((1 - p) / (V - 1)))
    np.put_along_axis(logits[:, :-1], ids[:, 1:, None], np.log(p), axis=-1)
    logits[:, -1] = 0
    return logits


def remembering(key=16):
    """Return a model that repeats what it said of a beginning when it saw the rest."""
    said = {}

    def model(ids):
        rows = np.asarray(ids)
        for row, logits in zip(rows, peeking(rows, 0.5), strict=True):
            said.setdefault(tuple(row[:key].tolist()), logits)
        return np.array([said[tuple(row[:key].tolist())] for row in rows])

    return model


@pytest.mark.parametrize(
    "model", [lambda ids: peeking(ids) + 1e6, remembering(16), remembering(1), remembering(32)]
)
def test_a_model_that_hides_that_it_looks_ahead_gets_nothing(model):
    result = after_training(model)
    assert result.score == 0
    if "at most" not in result.criteria[0].message:
        assert "must not depend on later tokens" in result.criteria[0].message


def test_what_follows_is_hidden_from_a_model(language):
    """Where nothing follows, a model that looks ahead does as badly as it is."""
    seen = training._more_where_nothing_follows(
        lambda marked: peeking(marked.array), np.random.default_rng(0), language
    )
    assert seen.mean() > 2

    found = [
        training._more_where_nothing_follows(
            lambda marked: np.zeros((*marked.array.shape, V)),
            np.random.default_rng(s),
            language,
        )
        for s in (0, 1)
    ]
    # A model that knows nothing costs ln V less the entropy, whatever is hidden.
    for more in found:
        error = more.std() / np.sqrt(len(more))
        assert more.mean() == pytest.approx(np.log(V) - training.ENTROPY, abs=5 * error)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda ids: ids, "logits must have shape (64, 32, 168), got (64, 32)"),
        (lambda ids: torch.zeros(64, 32, V) * torch.nan, "logits must be finite"),
        (None, "TypeError: 'NoneType' object is not callable"),
        (lambda ids: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_is_no_model_is_reported(model, message):
    result = after_training(model)
    assert result.score == 0
    assert message in result.criteria[0].message
    assert result.diagnosis is None


def test_another_model_below_the_floor_would_be_seen(rng):
    """The bound below counts: a rule without it would pay the model that looks ahead."""
    loss = training.evaluate(
        lambda marked: echo(torch.from_numpy(marked.array)).numpy(), rng, TASK.cases(rng)[0]
    )
    assert loss < TASK.options["bounds"]["good"][0] < training.ENTROPY
