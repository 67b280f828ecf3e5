"""Masks: their values, how they combine, and which ones attention refuses."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from twins import error_text, run

import seqlib.np as snp
import seqlib.pt as spt

INF = np.inf
EITHER = (
    " (a boolean mask is True where a query may attend; "
    "a float mask is added to the scores: 0 = may attend, -inf = blocked)"
)


def test_causal_mask_is_the_lower_triangle():
    """Case A04: with equal scores the weights are 1, then halves, then thirds."""
    expected = [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]
    assert_array_equal(run("causal_mask", 3), expected)
    scores = run(
        "attention_weights", np.zeros((3, 2)), np.ones((3, 2)), mask=snp.causal_mask(3)
    )
    thirds = [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]
    assert_array_equal(scores, thirds)
    keep = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    assert_array_equal(run("to_additive", keep), expected)


def test_causal_mask_of_a_chunk_after_cached_keys():
    """Case A38: one cached token, then three queries: the triangle shifts by one."""
    keep = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
    assert_array_equal(run("causal_mask", 3, 4), snp.to_additive(keep))
    assert_array_equal(run("causal_mask", 1, 5), np.zeros((1, 5)))


def test_causal_mask_with_more_queries_than_keys():
    """Query i stands at position i + S - T: the first two of five stand before all keys."""
    expected = [[-INF] * 3, [-INF] * 3, [0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]
    assert_array_equal(run("causal_mask", 5, 3), expected)


@given(T=st.integers(1, 7), S=st.integers(1, 7))
def test_causal_mask_entry_by_entry(T, S):
    mask = run("causal_mask", T, S)
    assert mask.shape == (T, S)
    for i in range(T):
        for j in range(S):
            assert mask[i, j] == (0 if j <= i + S - T else -INF)


@given(T=st.integers(1, 7), cut=st.integers(0, 6))
def test_causal_mask_of_the_last_queries_is_the_end_of_the_full_one(T, cut):
    """However a sequence is cut, the later part has the last rows of the whole mask."""
    cut = min(cut, T - 1)
    assert_array_equal(run("causal_mask", T - cut, T), run("causal_mask", T)[cut:])


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None])
def test_causal_mask_refuses_a_size_that_is_no_positive_integer(size):
    assert error_text("causal_mask", size) == f"T must be a positive integer, got {size!r}"
    if size is not None:
        text = error_text("causal_mask", 3, size)
        assert text == f"S must be a positive integer, got {size!r}"


def test_padding_from_lengths_with_an_empty_and_a_full_sequence():
    """Case A03: lengths 3, 0, 1 of at most 4, and one without any padding."""
    lengths = np.array([3, 0, 1, 4])
    right = [[0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0]]
    is_padding = run("padding_from_lengths", lengths, 4)
    assert is_padding.dtype == bool
    assert_array_equal(is_padding, np.array(right, dtype=bool))
    left = [[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0]]
    assert_array_equal(
        run("padding_from_lengths", lengths, 4, side="left"), np.array(left, dtype=bool)
    )


def test_padding_from_lengths_refuses_what_is_no_length():
    lengths = np.array([3, 5])
    assert error_text("padding_from_lengths", lengths, 4) == (
        "lengths must be less than 5 everywhere, got 5; they count real tokens, from 0 to S = 4"
    )
    assert error_text("padding_from_lengths", lengths - 4, 4) == (
        "lengths must be at least 0 everywhere, got -1; they count real tokens, from 0 to S = 4"
    )
    assert error_text("padding_from_lengths", lengths / 2, 4) == (
        "lengths must have an integer dtype, got float64; "
        "they count real tokens, from 0 to S = 4"
    )
    assert error_text("padding_from_lengths", lengths[None], 5) == (
        "lengths must have shape (B,), got (1, 2)"
    )
    assert error_text("padding_from_lengths", lengths, 5, side="both") == (
        "side must be 'right' or 'left', got 'both'"
    )


def test_padding_mask_hides_padded_keys():
    is_padding = np.array([[False, False, True], [True, True, True]])
    mask = run("padding_mask", is_padding)
    assert mask.shape == (2, 1, 1, 3)
    assert_array_equal(mask[:, 0, 0], [[0, 0, -INF], [-INF, -INF, -INF]])


def test_padding_mask_refuses_numbers_and_other_shapes():
    assert error_text("padding_mask", np.array([[0, 1]])) == (
        "is_padding must be boolean (True = padding), got dtype int64; "
        "compare first, as in is_padding == 1"
    )
    assert error_text("padding_mask", np.array([False, True])) == (
        "is_padding must have shape (B, S), got (2,)"
    )
    assert error_text("to_additive", np.array([0.0, 1.0])) == (
        "may_attend must be boolean (True = may attend), got dtype float64; "
        "compare first, as in may_attend == 1"
    )


def test_causal_and_padding_masks_add():
    """Case A40: with left padding the padded queries of row 0 may attend to nothing."""
    attention_mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    mask = run("causal_mask", 5) + run("padding_mask", attention_mask == 0)
    assert mask.shape == (2, 1, 5, 5)
    keep = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert_array_equal(mask[0, 0] == 0, np.array(keep, dtype=bool))
    assert_array_equal(mask[1, 0], snp.causal_mask(5))


@pytest.mark.parametrize("name", ["causal_mask", "padding_mask", "to_additive"])
def test_masks_hold_nothing_but_zero_and_minus_infinity(name):
    argument = 5 if name == "causal_mask" else np.array([[True, False, True]])
    assert set(run(name, argument).flatten()) == {0.0, -INF}


def test_torch_masks_follow_the_device_of_their_argument():
    meta = torch.zeros(2, 3, dtype=torch.bool, device="meta")
    assert spt.padding_mask(meta).device.type == "meta"
    assert spt.to_additive(meta).device.type == "meta"


# What attention refuses. Scores have the shape (2, 1, 3, 5) throughout.
SCORES = (2, 1, 3, 5)
KEEP = np.tri(3, 5, 2, dtype=bool)
ADDED = snp.causal_mask(3, 5) + np.tri(3, 5, 1, dtype=bool)  # a boolean added as numbers
CONVERT = "use mask != 0 if 1 means may attend, mask == 0 if 1 means blocked"
REFUSED = {
    "integers": (KEEP.astype(int), f"be boolean or float, got dtype int64; {CONVERT}"),
    "uint8": (KEEP.astype(np.uint8), f"be boolean or float, got dtype uint8; {CONVERT}"),
    "ones and zeros": (
        KEEP.astype(float),
        f"not be float with ones among 0 and -inf, got the values 0, 1; {CONVERT}",
    ),
    "ones": (
        np.ones((3, 5)),
        f"not be float with ones among 0 and -inf, got the values 1; {CONVERT}",
    ),
    "a causal mask plus a boolean mask": (
        ADDED,
        "not be float with ones among 0 and -inf, got the values -inf, 0, 1; "
        "convert a boolean mask with to_additive before adding it to a float mask",
    ),
    "nan": (
        np.where(KEEP, 0.0, np.nan),
        "hold no NaN, got nan; 0 * -inf is nan: use to_additive, not a product",
    ),
    "+inf": (np.where(KEEP, 0.0, INF), "hold no +inf, got inf; -inf blocks a key"),
    **{
        f"shape {shape}": (
            np.zeros(shape),
            f"broadcast to the shape of the scores {SCORES}, got shape {shape}; "
            "its last two axes are queries and keys; padding_mask gives (B, 1, 1, S)",
        )
        for shape in [(3, 4), (5, 3), (2, 5), (2, 3, 5), (2, 4, 3, 5), (1, 2, 1, 3, 5)]
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_attention_refuses_a_mask_that_could_mean_two_things(case, rng):
    mask, message = REFUSED[case]
    q, k, v = (rng.standard_normal((2, 1, n, 7)) for n in (3, 5, 5))
    expected = f"mask must {message}{EITHER}"
    assert error_text("attention_weights", q, k, mask=mask) == expected
    assert error_text("scaled_dot_product_attention", q, k, v, mask=mask) == expected
    weights = rng.standard_normal((2, 7)), rng.standard_normal((2, 7)), rng.standard_normal(2)
    assert error_text("additive_attention", q, k, v, *weights, mask=mask) == expected
    # One head, so that the scores have the same shape.
    x, context = q[:, 0], k[:, 0]
    weights = rng.standard_normal((21, 7)), None, rng.standard_normal((7, 7)), None
    text = error_text("multi_head_attention", x, *weights, context, n_head=1, mask=mask)
    assert text == expected


@pytest.mark.parametrize("shape", [(4, 1, 3, 5), (1, 2, 3, 5), (1, 1, 3, 5, 5)])
def test_attention_refuses_a_mask_that_would_enlarge_axes_of_size_one(shape, rng):
    """NumPy and torch would broadcast the scores instead, and the output would grow."""
    q, k = rng.standard_normal((1, 1, 3, 7)), rng.standard_normal((1, 1, 5, 7))
    text = error_text("attention_weights", q, k, mask=np.zeros(shape))
    assert f"the scores (1, 1, 3, 5), got shape {shape}" in text


def test_attention_refuses_a_list_as_a_mask(rng):
    q = rng.standard_normal((3, 7))
    text = error_text("attention_weights", q, q, mask=[[True] * 3] * 3)
    assert text == "mask must be an array or a tensor, got a list"


ACCEPTED = {
    "all zeros": np.zeros((3, 5)),
    "all blocked": np.full((3, 5), -INF),
    "one entry for all": np.zeros(()),
    "a bias with a one": np.array([0.0, 1.0, 2.0, -INF, -0.5]),
    "a bias of minus ones": -np.ones((3, 5)),
    "large and negative": np.where(KEEP, 0.0, -1e9),
    "slopes of distance": -0.5 * np.abs(np.arange(5) - 2 - np.arange(3)[:, None]),
    "boolean": KEEP,
    "boolean, all True": np.ones((3, 5), dtype=bool),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_attention_accepts_every_other_mask(case, rng):
    mask = ACCEPTED[case]
    q, k = rng.standard_normal((3, 7)), rng.standard_normal((5, 7))
    bias = snp.to_additive(mask) if mask.dtype == bool else mask
    scores = q @ k.T / np.sqrt(7) + bias
    expected = snp.softmax(scores)
    assert_allclose(snp.attention_weights(q, k, mask=mask), expected, rtol=1e-12)
    run("attention_weights", q, k, mask=mask)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_float64_mask_takes_the_dtype_of_the_queries(dtype, rng):
    q = rng.standard_normal((3, 7)).astype(dtype)
    for mask in (snp.causal_mask(3), np.where(np.tri(3) == 1, 0, -1e9), np.tri(3) == 1):
        weights = run("attention_weights", q, q, mask=mask, rtol=1e-2)
        assert weights.dtype == dtype
        assert_array_equal(weights[np.triu_indices(3, 1)], 0)


def test_a_float32_mask_does_not_lower_the_precision_of_float64(rng):
    q = rng.standard_normal((3, 7))
    mask = spt.causal_mask(3)
    assert mask.dtype == torch.float32
    weights = spt.attention_weights(torch.tensor(q), torch.tensor(q), mask=mask)
    assert weights.dtype == torch.float64


def test_masks_in_half_precision():
    """Case A06: one mask, then two combined, in float16; neither NaN nor a warning."""
    q = np.ones((1, 1), dtype=np.float16)
    k = np.array([[1], [2], [3]], dtype=np.float16)  # scores 1, 2, 3
    padding, causal = np.array([[True, True, False]]), np.array([[True, False, False]])
    one = run("attention_weights", q, k, mask=padding, rtol=1e-3)
    assert one.dtype == np.float16
    np.testing.assert_allclose(one, [[0.26894142, 0.73105858, 0]], atol=1e-3)
    lowest = np.finfo(np.float16).min  # finite, so a bias; -1e9 does not fit in float16
    for both in (
        padding & causal,
        snp.to_additive(padding) + snp.to_additive(causal),
        np.where(padding & causal, 0, lowest),
        np.where(padding & causal, 0, -1e9),
    ):
        assert_array_equal(run("attention_weights", q, k, mask=both), [[1, 0, 0]])
