"""Streaming attention: equal to plain attention, with memory that grows linearly."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import seqlib.np as snp
from seqlib.np import streaming
from seqlib.testing import check_backward

SIZES = [(7, 7, 3), (5, 11, 2), (11, 5, 4), (1, 5, 128), (131, 131, 128), (3, 1, 2), (1, 1, 1)]


def draw(rng, T, S, lead=(2, 3), dtype=np.float64):
    shapes = [(*lead, T, 5), (*lead, S, 5), (*lead, S, 7), (*lead, T, 7)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("T", "S", "block"), SIZES)
def test_equals_plain_attention_forward_and_backward(T, S, block, causal, rng):
    q, k, v, dy = draw(rng, T, S)
    mask = snp.causal_mask(T, S) if causal else None
    y = snp.streaming_attention(q, k, v, causal=causal, block=block)
    assert_allclose(
        y, snp.scaled_dot_product_attention(q, k, v, mask=mask), rtol=1e-10, atol=1e-12
    )
    ours = snp.streaming_attention_backward(dy, q, k, v, causal=causal, block=block)
    plain = snp.scaled_dot_product_attention_backward(dy, q, k, v, mask=mask)
    for actual, expected in zip(ours, plain, strict=True):
        assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_backward_matches_central_differences(causal, rng):
    *args, _ = draw(rng, 5, 7)
    options = {"causal": causal, "block": 2}
    check_backward(
        snp.streaming_attention, snp.streaming_attention_backward, args, rng, kwargs=options
    )


def test_a_query_before_the_first_key_gives_zeros(rng):
    q, k, v, dy = draw(rng, 5, 3)
    y = snp.streaming_attention(q, k, v, causal=True, block=2)
    assert not y[..., :2, :].any()
    grads = snp.streaming_attention_backward(dy, q, k, v, causal=True, block=2)
    assert not grads[0][..., :2, :].any()
    assert all(np.isfinite(grad).all() for grad in grads)


def test_large_scores_and_single_precision(rng):
    q, k, v, dy = draw(rng, 7, 5, dtype=np.float32)
    y = snp.streaming_attention(100 * q, 100 * k, v, block=3)
    assert y.dtype == np.float32
    assert np.isfinite(y).all()
    grads = snp.streaming_attention_backward(dy, q, k, v, block=3)
    assert {grad.dtype for grad in grads} == {np.dtype(np.float32)}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("largest", [49.0, 51.0, 1000.0])
@pytest.mark.parametrize("causal", [False, True])
def test_scores_on_both_sides_of_where_they_could_overflow(causal, largest, dtype, rng):
    q, k, v, dy = draw(rng, 6, 6, lead=(), dtype=np.float64)
    longest = [np.linalg.norm(array, axis=-1).max() for array in (q, k)]
    q *= largest * 5**0.5 / longest[0] / longest[1]
    q[0], k[0] = (
        k[0] * (q[0] @ q[0]) ** 0.5 / (k[0] @ k[0]) ** 0.5,
        k[0],
    )  # one score is extreme
    q, k, v, dy = (array.astype(dtype) for array in (q, k, v, dy))
    mask = snp.causal_mask(6) if causal else None
    with np.errstate(over="raise", invalid="raise"):
        y = snp.streaming_attention(q, k, v, causal=causal)
        grads = snp.streaming_attention_backward(dy, q, k, v, causal=causal)
    wide = [array.astype(np.float64) for array in (dy, q, k, v)]
    near = {"rtol": 0, "atol": 40 * np.finfo(dtype).eps * max(1.0, largest)}
    assert_allclose(y, snp.scaled_dot_product_attention(*wide[1:], mask=mask), **near)
    plain = snp.scaled_dot_product_attention_backward(*wide, mask=mask)
    for actual, expected in zip(grads, plain, strict=True):
        scale = max(1.0, np.abs(expected).max())
        assert_allclose(actual / scale, expected / scale, **near)


def test_nan_and_infinity_spread_as_in_plain_attention(rng):
    for bad in (np.nan, np.inf):
        q, k, v, _ = draw(rng, 4, 4, lead=())
        q[1, 2] = bad
        with np.errstate(invalid="ignore"):
            y = snp.streaming_attention(q, k, v)
            plain = snp.scaled_dot_product_attention(q, k, v)
        assert_allclose(y, plain, rtol=1e-12)
        assert np.isnan(y[1]).all()
        assert np.isfinite(np.delete(y, 1, axis=0)).all()


@pytest.mark.parametrize(("S", "rows"), [(512, 512), (2048, 128), (2**19, 1)])
def test_a_default_block_has_as_many_rows_as_fit(S, rows):
    x = np.zeros((S, 1), np.float32)
    assert streaming._checked(x, x, x, False, None) == rows
    assert streaming._checked(x, x, x, True, None) == 128
    assert streaming._checked(x, x, x, False, 7) == 7


def test_empty_batch(rng):
    q, k, v, dy = draw(rng, 3, 2, lead=(0,))
    assert snp.streaming_attention(q, k, v).shape == (0, 3, 7)
    shapes = [grad.shape for grad in snp.streaming_attention_backward(dy, q, k, v)]
    assert shapes == [(0, 3, 5), (0, 2, 5), (0, 2, 7)]


def peak_bytes(T):
    """Memory that forward and backward allocate at most at one time, outputs included."""
    rng = np.random.default_rng(0)
    q, k, v, dy = (rng.standard_normal((1, 2, T, 16)).astype(np.float32) for _ in range(4))
    tracemalloc.start()
    try:
        kept = snp.streaming_attention(q, k, v), *snp.streaming_attention_backward(dy, q, k, v)
        assert len(kept) == 4
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_linearly():
    short, long = peak_bytes(512), peak_bytes(1024)
    assert long < 2.3 * short
    assert long < 2 * 1024 * 1024 * 4  # less than the weights of the two heads alone


@pytest.mark.parametrize("block", [0, -1, 2.5])
def test_block_must_be_positive(block):
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"^block must be a positive integer, got "):
        snp.streaming_attention(x, x, x, block=block)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_vjp_equals_the_pair(masked, rng):
    q, k, v, dy = draw(rng, 5, 7)
    mask = snp.causal_mask(5, 7) if masked else None
    y, vjp = snp.scaled_dot_product_attention_with_vjp(q, k, v, mask=mask)
    assert_allclose(y, snp.scaled_dot_product_attention(q, k, v, mask=mask), rtol=1e-12)
    before = dy.copy()
    for _ in range(2):  # the closure may be used again
        pair = snp.scaled_dot_product_attention_backward(dy, q, k, v, mask=mask)
        for actual, expected in zip(vjp(dy), pair, strict=True):
            assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)
    assert (dy == before).all()


def test_attention_with_vjp_refuses_what_attention_refuses(rng):
    q, k, v, _ = draw(rng, 5, 7)
    with pytest.raises(ValueError, match=r"^v must have shape "):
        snp.scaled_dot_product_attention_with_vjp(q, k, v[..., :-1, :])
