"""The n-gram model against a count with dictionaries, and by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from seqlib.data import NGramLM


def by_definition(text, n, V, strength, context, token):
    """Return p(token | context), one dictionary per order."""
    p = 1 / V
    for k in range(1, n + 1):
        if len(context) < k - 1:
            break
        last = tuple(context[len(context) - k + 1 :])
        groups = Counter(tuple(text[i : i + k]) for i in range(len(text) - k + 1))
        total = sum(count for group, count in groups.items() if group[:-1] == last)
        p = (groups[(*last, token)] + strength * p) / (total + strength)
    return p


texts = st.lists(st.integers(0, 3), min_size=1, max_size=20)


@given(text=texts, other=texts, n=st.integers(1, 4), strength=st.sampled_from([0.3, 1.0, 5.0]))
def test_equals_the_definition(text, other, n, strength):
    model = NGramLM(n, 4, strength=strength).fit(np.array(text))
    nats = model.nats(np.array(other))
    assert nats.shape == (len(other),)
    for t, token in enumerate(other):
        expected = [by_definition(text, n, 4, strength, other[:t], w) for w in range(4)]
        p = model.distribution(np.array(other[:t], int))
        assert_allclose(p, expected, rtol=1e-12)
        assert_allclose(p.sum(), 1, rtol=1e-12)
        assert_allclose(nats[t], -np.log(expected[token]), rtol=1e-12)


def test_by_hand():
    """The docstring's example: the text 0 0 1."""
    model = NGramLM(2, 2).fit(np.array([0, 0, 1]))
    assert_allclose(model.distribution(np.array([], int)), [0.625, 0.375], rtol=1e-12)
    assert_allclose(model.distribution(np.array([0])), [0.5416666666666666, 0.4583333333333333])
    assert_allclose(model.distribution(np.array([1])), [0.625, 0.375])  # never continued
    assert_allclose(model.nats(np.array([0, 1])), -np.log([0.625, 0.4583333333333333]))


def test_a_text_that_repeats_is_learnt():
    text = np.array([0, 1, 2] * 50)
    losses = [NGramLM(n, 3).fit(text).nats(text).mean() for n in (1, 2, 3)]
    assert_allclose(losses[0], np.log(3), atol=1e-3)
    assert losses[1] < 0.05
    assert_allclose(losses[2], losses[1], atol=0.02)


def test_longer_contexts_help_on_text_and_then_hurt(rng):
    """On random tokens the higher orders only fit noise: the single tokens win."""
    train, test = rng.integers(5, size=(2, 2000))
    losses = [NGramLM(n, 5).fit(train).nats(test).mean() for n in (1, 3, 5)]
    assert losses[0] < losses[1] < losses[2]


def test_a_prediction_uses_the_past_alone(rng):
    text = rng.integers(4, size=30)
    model = NGramLM(3, 4).fit(text)
    changed = text.copy()
    changed[20] = (changed[20] + 1) % 4
    before, after = model.nats(text), model.nats(changed)
    assert_allclose(before[:20], after[:20], rtol=0)
    assert before[20] != after[20]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: NGramLM(0, 5), "n must be a positive integer, got 0"),
        (lambda: NGramLM(2, 0), "V must be a positive integer, got 0"),
        (lambda: NGramLM(2, 5, strength=0), "strength must be positive and finite, got 0"),
        (
            lambda: NGramLM(2, 5, strength=np.nan),
            "strength must be positive and finite, got nan",
        ),
        (lambda: NGramLM(5, 50257), r"n must be small enough that V\*\*n stays below"),
        (lambda: NGramLM(2, 5).fit(np.zeros(0, int)), "ids must hold at least 1 token, got 0"),
        (lambda: NGramLM(2, 5).fit(np.array([5])), "ids must be less than 5 everywhere, got 5"),
        (lambda: NGramLM(2, 5).fit(np.array([0.5])), "ids must have an integer dtype"),
        (lambda: NGramLM(2, 5).fit(np.zeros((2, 2), int)), r"ids must have shape \(T,\), got"),
        (lambda: NGramLM(2, 5).nats(np.array([1])), "fit must be called before the model"),
        (
            lambda: NGramLM(2, 5).fit(np.array([1])).distribution(np.array([-1])),
            "context must be at least 0 everywhere, got -1",
        ),
    ],
)
def test_wrong_arguments_are_refused(make, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        make()
