"""Attention: both backends against torch's kernel, calculus, properties and cases by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional
from twins import assert_equals_reference, error_text, run, tensors

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward

# Leading axes, then T, S, K and the width of the values.
SIZES = [
    ((2, 3), 5, 7, 11, 13),
    ((2,), 7, 5, 3, 2),
    ((), 5, 5, 3, 7),
    ((2, 3), 1, 7, 5, 3),
    ((2, 3), 7, 1, 5, 3),
    ((1, 1), 1, 1, 1, 1),
    ((0, 3), 5, 7, 11, 13),
]
MASKS = [
    "none",
    "causal",
    "padding",
    "combined",
    "boolean",
    "bias",
    "empty rows",
    "all blocked",
]


def make_qkv(sizes, rng):
    leading, T, S, K, D = sizes
    return [rng.standard_normal((*leading, *ends)) for ends in ((T, K), (S, K), (S, D))]


def make_mask(kind, sizes, rng):
    """Make a mask; padding depends on the batch where there is a batch."""
    leading, T, S, _, _ = sizes
    # (B, 1, 1, S), or as few axes as the scores have; the first key is real.
    padding = rng.random((*leading[:1], *[1] * max(len(leading) - 1, 0), 1, S)) < 0.4
    padding[..., 0] = False
    keep = rng.random((*leading, T, S)) < 0.6
    keep[..., 0] = True
    return {
        "none": None,
        "causal": snp.causal_mask(T, S),
        "padding": snp.to_additive(~padding),
        "combined": snp.causal_mask(T, S) + snp.to_additive(~padding),
        "boolean": keep,
        "bias": -rng.random((T, S)) + snp.causal_mask(T, S),
        # A padded first key leaves the first queries of a causal mask nothing to attend to.
        "empty rows": snp.causal_mask(T, S) + snp.to_additive(np.arange(S) >= (S + 1) // 2),
        "all blocked": np.zeros((T, S), dtype=bool),
    }[kind]


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_equals_torch(sizes, kind, rng):
    """Torch's kernel gives zeros, not NaN, for a row without a key; so do we."""
    mask = make_mask(kind, sizes, rng)
    (attn_mask,) = tensors([mask])
    assert_equals_reference(
        "scaled_dot_product_attention",
        make_qkv(sizes, rng),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask),
        rng,
        mask=mask,
    )


@pytest.mark.parametrize("kind", ["none", "combined", "empty rows"])
def test_equals_torch_in_float32(kind, rng):
    mask = make_mask(kind, SIZES[0], rng)
    args = [a.astype(np.float32) for a in make_qkv(SIZES[0], rng)]
    attn_mask = None if mask is None else torch.tensor(mask, dtype=torch.float32)
    assert snp.scaled_dot_product_attention(*args, mask=mask).dtype == np.float32
    assert_equals_reference(
        "scaled_dot_product_attention",
        args,
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask),
        rng,
        rtol=1e-5,
        grad_rtol=1e-5,
        mask=mask,
    )


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_backward(sizes, kind, rng):
    q, k, v = make_qkv(sizes, rng)
    options = {"mask": make_mask(kind, sizes, rng)}
    check_backward(
        snp.scaled_dot_product_attention,
        snp.scaled_dot_product_attention_backward,
        (q, k, v),
        rng,
        kwargs=options,
    )
    check_backward(
        snp.attention_weights,
        snp.attention_weights_backward,
        (q, k),
        rng,
        kwargs=options,
    )


def test_weights_are_those_of_torch(rng):
    """With the identity as values the output of the kernel is the weights."""
    q, k, _ = make_qkv(SIZES[0], rng)
    eye = torch.eye(7, dtype=torch.float64).expand(2, 3, 7, 7)
    assert_equals_reference(
        "attention_weights",
        (q, k),
        lambda q, k: functional.scaled_dot_product_attention(q, k, eye),
        rng,
    )


def make_additive(sizes, rng, F=5):
    """Make arguments whose five widths all differ."""
    q, k, v = make_qkv(sizes, rng)
    q = rng.standard_normal((*q.shape[:-1], q.shape[-1] + 4))
    weights = (F, q.shape[-1]), (F, k.shape[-1]), (F,)
    return [q, k, v, *(rng.standard_normal(shape) for shape in weights)]


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_additive_attention(sizes, kind, rng):
    """The reference takes one pair of query and key at a time."""
    mask = make_mask(kind, sizes, rng)
    keep = snp.to_additive(mask) if kind in ("boolean", "all blocked") else mask
    bias = torch.zeros(()) if mask is None else torch.tensor(keep)

    def reference(q, k, v, w_q, w_k, w_v):
        pairs = [
            [
                (torch.tanh(q[..., i, :] @ w_q.T + k[..., j, :] @ w_k.T) * w_v).sum(-1)
                for j in range(k.shape[-2])
            ]
            for i in range(q.shape[-2])
        ]
        scores = torch.stack([torch.stack(row, dim=-1) for row in pairs], dim=-2) + bias
        exp = torch.exp(scores)  # small scores: no need to subtract the largest
        total = exp.sum(-1, keepdim=True)
        return exp / torch.where(total == 0, 1, total) @ v

    args = make_additive(sizes, rng)
    assert_equals_reference("additive_attention", args, reference, rng, mask=mask)
    check_backward(
        snp.additive_attention,
        snp.additive_attention_backward,
        args,
        rng,
        kwargs={"mask": mask},
    )


@pytest.mark.parametrize("shape", [(5, 3), (2, 7, 3), (2, 3, 5, 7), (1, 1, 1), (0, 5, 3)])
def test_simple_self_attention(shape, rng):
    """It is the trainable form with Q = K = V = X, without the scale."""
    x = rng.standard_normal(shape)
    assert_equals_reference(
        "simple_self_attention",
        (x,),
        lambda x: functional.scaled_dot_product_attention(x, x, x, scale=1.0),
        rng,
    )
    check_backward(snp.simple_self_attention, snp.simple_self_attention_backward, (x,), rng)


def test_simple_self_attention_by_hand():
    """Tokens (a, 0) and (0, 0) with a = sqrt(ln 3): row 0 has the scores ln 3 and 0.

    Its weights are 3/4 and 1/4, those of row 1 are 1/2 and 1/2.
    """
    a = math.sqrt(math.log(3))
    x = np.array([[a, 0.0], [0.0, 0.0]])
    assert_allclose(run("simple_self_attention", x), [[0.75 * a, 0], [0.5 * a, 0]], rtol=1e-14)


def test_attention_by_hand():
    """With K = 4 the scale is 1/2: products 2 ln 3 and 0 give the weights 3/4 and 1/4."""
    q = np.array([[2 * math.log(3), 0.0, 0.0, 0.0]])
    k = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    v = np.array([[4.0], [8.0]])
    assert_allclose(run("attention_weights", q, k), [[0.75, 0.25]], rtol=1e-14)
    assert_allclose(run("scaled_dot_product_attention", q, k, v), [[5.0]], rtol=1e-14)


def scores_to_qk(scores):
    """Return q and k whose scaled products are the given scores."""
    scores = np.asarray(scores, dtype=float)
    return scores * math.sqrt(scores.shape[1]), np.eye(scores.shape[1])


def test_a_row_without_any_key():
    """Case A01: zeros for that row, the usual for the other, finite gradients for both."""
    q, k = scores_to_qk([[1.0, 2.0, 3.0], [0.0, math.log(2), 5.0]])
    v = np.array([[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    keep = np.array([[False, False, False], [True, True, False]])
    for mask in (keep, snp.to_additive(keep)):
        weights = run("attention_weights", q, k, mask=mask)
        assert_allclose(weights, [[0, 0, 0], [1 / 3, 2 / 3, 0]], rtol=1e-9, atol=0)
        y = run("scaled_dot_product_attention", q, k, v, mask=mask)
        assert_allclose(y, [[0, 0], [1 / 3, 4 / 3]], rtol=1e-9, atol=0)

        # Keys are the identity, so dq times sqrt(3) is the gradient of the scores.
        dq, dk, dv = snp.scaled_dot_product_attention_backward(
            np.ones((2, 2)), q, k, v, mask=mask
        )
        dscores = [[0, 0, 0], [-2 / 9, 2 / 9, 0]]
        assert_allclose(dq * math.sqrt(3), dscores, rtol=1e-9, atol=1e-15)
        assert_array_equal(dq[0], 0)
        twins = tensors([q, k, v], grad=True)
        (bias,) = tensors([mask])
        spt.scaled_dot_product_attention(*twins, mask=bias).sum().backward()
        for twin, grad in zip(twins, (dq, dk, dv), strict=True):
            assert_allclose(twin.grad, grad, rtol=1e-12, atol=1e-15)


def test_softmax_runs_over_the_keys():
    """Case A10: rows sum to 1, and what comes later does not reach an earlier row."""
    q, k = scores_to_qk([[0.0, 5.0], [1.0, 0.0]])
    mask = snp.causal_mask(2)
    weights = [[1.0, 0.0], [0.7310585786300049, 0.2689414213699951]]
    assert_allclose(run("attention_weights", q, k, mask=mask), weights, rtol=1e-9)
    for last, expected in ((3.0, 1.5378828427399902), (-7.0, -1.1515313709599608)):
        v = np.array([[1.0], [last]])
        y = run("scaled_dot_product_attention", q, k, v, mask=mask)
        assert_allclose(y, [[1.0], [expected]], rtol=1e-9)


def test_a_chunk_of_queries_after_cached_keys():
    """Case A38: the chunk gives rows 1 to 3 of the whole pass."""
    q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]])
    k = np.array([[0.5, 1.0], [1.0, -1.0], [0.0, 2.0], [1.0, 1.0]])
    v = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    first = [1.0, 1.3911406349860862, 3.306184852843386, 4.193412827760242]
    expected = np.stack([first, np.add(first, 1)], axis=1)
    whole = run("scaled_dot_product_attention", q, k, v, mask=snp.causal_mask(4))
    assert_allclose(whole, expected, rtol=1e-9)
    chunk = run("scaled_dot_product_attention", q[1:], k, v, mask=snp.causal_mask(3, 4))
    assert_allclose(chunk, expected[1:], rtol=1e-9)


def test_one_token_alone():
    """Case A63: a single key gets all the weight, and no axis is lost."""
    q, k, v = np.array([[[0.3, -0.7]]]), np.array([[[2.0, 1.0]]]), np.array([[[5.0, 6.0]]])
    y = run("scaled_dot_product_attention", q, k, v)
    assert y.shape == (1, 1, 2)
    assert_array_equal(y, v)


def test_a_mask_of_real_and_padded_keys():
    """Case B10: scores 2, 1, 4, 1 with the third key blocked."""
    q, k = scores_to_qk([[2.0, 1.0, 4.0, 1.0]])
    keep = np.array([True, True, False, True])
    expected = [[0.5761168847658291, 0.21194155761708544, 0.0, 0.21194155761708544]]
    assert_allclose(run("attention_weights", q, k, mask=keep), expected, atol=1e-7)
    assert_allclose(
        run("attention_weights", q, k, mask=snp.to_additive(keep)), expected, atol=1e-7
    )


def test_scores_of_huge_size():
    """Products near the largest float: one key takes all the weight, and nothing warns."""
    q = np.array([[1e150, 0.0]])
    k = np.array([[1e150, 0.0], [-1e150, 0.0], [0.0, 1.0]])
    assert_array_equal(run("attention_weights", q, k), [[1, 0, 0]])
    dq, dk = snp.attention_weights_backward(np.array([[1.0, 2.0, 3.0]]), q, k)
    assert np.isfinite(dq).all()
    assert np.isfinite(dk).all()


# Properties, over random sizes and data.
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.integers(1, 6)


@given(seed=SEEDS, T=LENGTHS, S=LENGTHS, density=st.floats(0, 1))
def test_rows_sum_to_one_or_are_zero(seed, T, S, density):
    rng = np.random.default_rng(seed)
    q, k, _ = make_qkv(((2, 3), T, S, 5, 1), rng)
    keep = rng.random((2, 3, T, S)) < density
    weights = run("attention_weights", q, k, mask=keep)
    assert (weights >= 0).all()
    assert_array_equal(weights[~keep], 0)
    assert (weights[keep] > 0).all()
    assert_allclose(weights.sum(axis=-1), keep.any(axis=-1), rtol=1e-12)


@given(seed=SEEDS, T=LENGTHS, extra=st.integers(0, 3), t=st.integers(0, 5))
def test_a_causal_mask_hides_the_future(seed, T, extra, t):
    """Keys after query t, replaced by anything, leave the outputs up to t as they are."""
    rng = np.random.default_rng(seed)
    S, t = T + extra, min(t, T - 1)
    q, k, v = make_qkv(((2,), T, S, 5, 3), rng)
    mask = snp.causal_mask(T, S)
    y = run("scaled_dot_product_attention", q, k, v, mask=mask)
    later = t + S - T + 1
    k[:, later:] = 100 * rng.standard_normal(k[:, later:].shape)
    v[:, later:] = 100 * rng.standard_normal(v[:, later:].shape)
    changed = run("scaled_dot_product_attention", q, k, v, mask=mask)
    assert_allclose(changed[:, : t + 1], y[:, : t + 1], rtol=1e-12)


@given(seed=SEEDS, lengths=st.lists(st.integers(0, 6), min_size=2, max_size=2))
def test_padding_does_not_change_the_output(seed, lengths):
    """A padded sequence in a batch gives what it gives alone, cut to its length."""
    rng = np.random.default_rng(seed)
    q, k, v = make_qkv(((2,), 4, 6, 5, 3), rng)
    is_padding = snp.padding_from_lengths(np.array(lengths), 6)
    mask = snp.padding_mask(is_padding)[:, 0]  # (B, 1, S): no axis of heads here
    y = run("scaled_dot_product_attention", q, k, v, mask=mask)
    for b, length in enumerate(lengths):
        if length == 0:
            assert_array_equal(y[b], 0)
        else:
            alone = run("scaled_dot_product_attention", q[b], k[b, :length], v[b, :length])
            assert_allclose(y[b], alone, rtol=1e-9, atol=1e-12)


@given(seed=SEEDS, order=st.permutations(range(5)))
def test_the_order_of_keys_does_not_matter_and_that_of_queries_is_kept(seed, order):
    rng = np.random.default_rng(seed)
    q, k, v = make_qkv(((2,), 5, 5, 3, 7), rng)
    y = run("scaled_dot_product_attention", q, k, v)
    for permuted, expected in (
        ((q, k[:, order], v[:, order]), y),
        ((q[:, order], k, v), y[:, order]),
    ):
        assert_allclose(run("scaled_dot_product_attention", *permuted), expected, rtol=1e-9)
    x = q
    assert_allclose(
        run("simple_self_attention", x[:, order]),
        run("simple_self_attention", x)[:, order],
        rtol=1e-9,
    )


@given(seed=SEEDS)
def test_outputs_are_weighted_averages(seed):
    """Equal values come out unchanged, and no output leaves the range of the values."""
    rng = np.random.default_rng(seed)
    q, k, v = make_qkv(((2,), 4, 6, 5, 3), rng)
    y = run("scaled_dot_product_attention", q, k, v)
    assert (y <= v.max(axis=-2, keepdims=True) + 1e-12).all()
    assert (y >= v.min(axis=-2, keepdims=True) - 1e-12).all()
    same = np.broadcast_to(v[:, :1], v.shape)
    assert_allclose(run("scaled_dot_product_attention", q, k, same), same[:, :4], rtol=1e-12)


# Errors: argument, rule, value and fix, and the same text in both backends.
@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            ((2, 3, 7), (2, 5, 6), (2, 5, 1)),
            "k must have shape (2, S, 7), got (2, 5, 6); "
            "q and k have the same width and leading axes",
        ),
        (
            ((2, 3, 7), (3, 5, 7), (2, 5, 1)),
            "k must have shape (2, S, 7), got (3, 5, 7); "
            "q and k have the same width and leading axes",
        ),
        (((7,), (5, 7), (5, 1)), "q must have shape (..., T, K), got (7,)"),
        (
            ((2, 3, 7), (2, 5, 7), (2, 4, 1)),
            "v must have shape (2, 5, D), got (2, 4, 1); there is one value per key",
        ),
        (((3, 7), (0, 7), (0, 1)), "k must have an entry along axis -2, got shape (0, 7)"),
    ],
)
def test_refuses_shapes_that_do_not_fit(shapes, text):
    q, k, v = map(np.zeros, shapes)
    assert error_text("scaled_dot_product_attention", q, k, v) == text
    if not text.startswith("v "):
        assert error_text("attention_weights", q, k) == text


@pytest.mark.parametrize(
    ("position", "shape", "text"),
    [
        (0, (5,), "q must have shape (..., T, H), got (5,)"),
        (1, (3, 7, 11), "k must have shape (2, S, K), got (3, 7, 11)"),
        (1, (2, 0, 11), "k must have an entry along axis -2, got shape (2, 0, 11)"),
        (
            2,
            (2, 5, 3),
            "v must have shape (2, 7, D), got (2, 5, 3); there is one value per key",
        ),
        (3, (5, 11), "w_q must have shape (F, 13), got (5, 11)"),
        (4, (4, 11), "w_k must have shape (5, 11), got (4, 11)"),
        (5, (1, 5), "w_v must have shape (5,), got (1, 5)"),
    ],
)
def test_additive_attention_refuses_shapes_that_do_not_fit(position, shape, text):
    shapes = [(2, 3, 13), (2, 7, 11), (2, 7, 3), (5, 13), (5, 11), (5,)]
    shapes[position] = shape
    assert error_text("additive_attention", *map(np.zeros, shapes)) == text


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((5,), "x must have shape (..., T, D), got (5,)"),
        ((2, 0, 5), "x must have an entry along axis -2, got shape (2, 0, 5)"),
    ],
)
def test_simple_self_attention_refuses_shapes(shape, text):
    assert error_text("simple_self_attention", np.zeros(shape)) == text
