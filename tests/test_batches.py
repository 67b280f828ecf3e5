"""Batching of one long text: contiguous rows and random windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp
from seqlib.data import contiguous_batches, random_windows


def test_contiguous_batches_by_hand():
    """The docstring's example."""
    first, second = contiguous_batches(np.arange(9), 2, 3)
    assert_array_equal(first, [[[0, 1, 2], [4, 5, 6]], [[1, 2, 3], [5, 6, 7]]])
    assert_array_equal(second, [[[3], [7]], [[4], [8]]])


@given(n=st.integers(2, 60), B=st.integers(1, 7), T=st.integers(1, 9))
def test_contiguous_rows_read_the_text_once_in_order(n, B, T):
    if n < B + 1:
        with pytest.raises(
            ValueError, match=f"^ids must hold at least {B + 1} tokens, got {n};"
        ):
            contiguous_batches(np.arange(n), B, T)
        return
    batches = list(contiguous_batches(np.arange(n), B, T))
    inputs = np.concatenate([x for x, _ in batches], axis=1)
    targets = np.concatenate([y for _, y in batches], axis=1)
    assert_array_equal(targets, inputs + 1)
    assert_array_equal(inputs.reshape(-1), np.arange(inputs.size))  # each once, row after row
    assert n - 1 - inputs.size < B
    assert all(x.shape == (B, T) for x, _ in batches[:-1])
    assert 1 <= batches[-1][0].shape[1] <= T


def test_the_state_carries_over_the_batches(rng):
    """Row by row the batches are one long sequence, so a network may keep its state."""
    ids = rng.integers(11, size=50)
    weights = [rng.standard_normal(s) for s in ((5, 11), (5, 5), (5,), (5,))]
    h, parts = np.zeros((3, 5)), []
    for x, _ in contiguous_batches(ids, 3, 7):
        y, h = snp.rnn(snp.one_hot(x, 11), h, *weights)
        parts.append(y)
    whole = ids[:48].reshape(3, 16)
    y, _ = snp.rnn(snp.one_hot(whole, 11), np.zeros((3, 5)), *weights)
    assert_allclose(np.concatenate(parts, axis=1), y, rtol=1e-12)


def test_one_shift_and_no_other():
    """Case A51: inputs 0, 2 have the targets 2, 1."""
    (batch,) = contiguous_batches(np.array([0, 2, 1]), 1, 2)
    assert_array_equal(batch, [[[0, 2]], [[2, 1]]])
    inputs, targets = random_windows(np.array([0, 2, 1]), 1, 2, rng=np.random.default_rng(0))
    assert_array_equal(inputs, [[0, 2]])
    assert_array_equal(targets, [[2, 1]])


def test_random_windows_are_pieces_of_the_text(rng):
    ids = rng.permutation(100)
    inputs, targets = random_windows(ids, 13, 7, rng=rng)
    assert inputs.shape == targets.shape == (13, 7)
    place = {int(token): i for i, token in enumerate(ids)}
    for window, following in zip(inputs, targets, strict=True):
        start = place[int(window[0])]
        assert_array_equal(window, ids[start : start + 7])
        assert_array_equal(following, ids[start + 1 : start + 8])


def test_every_place_is_drawn_and_none_beyond_the_end():
    """The docstring's example: 9 tokens and T = 3 give the 6 places 0 to 5."""
    inputs, _ = random_windows(np.arange(9), 600, 3, rng=np.random.default_rng(0))
    places, counts = np.unique(inputs[:, 0], return_counts=True)
    assert_array_equal(places, np.arange(6))
    assert counts.min() > 70  # 100 expected, standard deviation 9


def test_the_generator_decides(rng):
    ids = np.arange(1000)
    draws = [random_windows(ids, 3, 5, rng=np.random.default_rng(4)) for _ in range(2)]
    assert_array_equal(draws[0], draws[1])
    first = random_windows(ids, 3, 5, rng=rng)
    assert (first[0] != random_windows(ids, 3, 5, rng=rng)[0]).any()


@pytest.mark.parametrize(
    ("ids", "B", "T", "text"),
    [
        (np.arange(9).reshape(3, 3), 2, 3, r"ids must have shape \(n,\), got \(3, 3\); a text"),
        (np.arange(9.0), 2, 3, "ids must have an integer dtype, got float64"),
        (np.arange(9), 0, 3, "B must be a positive integer, got 0"),
        (np.arange(9), 2, 0, "T must be a positive integer, got 0"),
        (np.zeros(0, int), 1, 3, r"ids must hold at least \d tokens, got 0; "),
    ],
)
def test_wrong_arguments_are_refused_at_once(ids, B, T, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        contiguous_batches(ids, B, T)  # before anything is read from it
    with pytest.raises(ValueError, match=f"^{text}"):
        random_windows(ids, B, T, rng=np.random.default_rng(0))


def test_a_text_that_just_fits():
    (batch,) = contiguous_batches(np.arange(4), 3, 5)
    assert_array_equal(batch, [[[0], [1], [2]], [[1], [2], [3]]])
    with pytest.raises(ValueError, match=r"^ids must hold at least 4 tokens, got 3; a window"):
        random_windows(np.arange(3), 1, 3, rng=np.random.default_rng(0))
    inputs, targets = random_windows(np.arange(4), 2, 3, rng=np.random.default_rng(0))
    assert_array_equal(inputs, [[0, 1, 2]] * 2)
    assert_array_equal(targets, [[1, 2, 3]] * 2)
