"""Heads and multi-head attention: both backends against torch, calculus and properties."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional
from twins import assert_equals_reference, error_text, gradients, run, tensors

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward

# B, T, S, N and K; S is None where the tokens attend to each other.
SIZES = [
    (2, 5, None, 3, 7),
    (2, 5, 7, 3, 2),
    (3, 7, 5, 1, 5),
    (2, 1, 3, 5, 1),
    (1, 1, None, 1, 1),
    (0, 5, 7, 3, 2),
]
MASKS = ["none", "causal", "padding", "combined", "boolean per head", "bias"]


def make_args(sizes, rng, *, bias=True):
    """Make random parameters: biases of 0, as torch begins with, would hide a missing one."""
    B, T, S, N, K = sizes
    D = N * K
    x = rng.standard_normal((B, T, D))
    context = None if S is None else rng.standard_normal((B, S, D))
    weight_in, weight_out = rng.standard_normal((3 * D, D)) / 2, rng.standard_normal((D, D)) / 2
    bias_in, bias_out = rng.standard_normal(3 * D), rng.standard_normal(D)
    if not bias:
        bias_in = bias_out = None
    return [x, weight_in, bias_in, weight_out, bias_out, context]


def make_mask(kind, sizes, rng):
    """Make a mask of the scores (B, N, T, S) that leaves every query a key."""
    B, T, S, N, _ = sizes
    S = T if S is None else S
    # The first query of a causal mask sees S - T + 1 keys, and with T > S none.
    causal = snp.causal_mask(T, max(T, S))[:, :S]
    is_padding = rng.random((B, S)) < 0.4
    is_padding[:, 0] = False
    keep = rng.random((B, N, T, S)) < 0.6
    keep[..., 0] = True
    return {
        "none": None,
        "causal": causal,
        "padding": snp.padding_mask(is_padding),
        "combined": causal + snp.padding_mask(is_padding),
        "boolean per head": keep,
        "bias": causal - rng.random((N, T, S)),
    }[kind]


def torch_mask(mask, sizes):
    """Write our mask as torch's module wants it: additive, (B * N, T, S)."""
    B, T, S, N, _ = sizes
    if mask is None or B == 0:  # torch's module cannot take a mask for an empty batch
        return None
    mask = snp.to_additive(mask) if mask.dtype == bool else mask
    full = np.broadcast_to(mask, (B, N, T, T if S is None else S))
    return torch.tensor(full.reshape(B * N, *full.shape[2:]))


def torch_module(args, n_head, dtype=torch.float64):
    """Return torch's module with these parameters."""
    x, weight_in, bias_in, weight_out, bias_out, _ = args
    module = torch.nn.MultiheadAttention(
        x.shape[-1], n_head, bias=bias_in is not None, batch_first=True, dtype=dtype
    )
    state = {"in_proj_weight": weight_in, "out_proj.weight": weight_out}
    if bias_in is not None:
        state |= {"in_proj_bias": bias_in, "out_proj.bias": bias_out}
    module.load_state_dict(tensors(state))
    return module


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_equals_torch(sizes, kind, bias, rng):
    args = make_args(sizes, rng, bias=bias)
    mask = make_mask(kind, sizes, rng)
    attn_mask = torch_mask(mask, sizes)
    module = torch_module(args, sizes[3])

    def reference(x, weight_in, bias_in, weight_out, bias_out, context):
        """Call torch's module with the given tensors in place of its parameters."""
        source = x if context is None else context
        parameters = {
            "in_proj_weight": weight_in,
            "in_proj_bias": bias_in,
            "out_proj.weight": weight_out,
            "out_proj.bias": bias_out,
        }
        parameters = {name: p for name, p in parameters.items() if p is not None}
        options = {"attn_mask": attn_mask, "need_weights": False}
        return torch.func.functional_call(module, parameters, (x, source, source), options)[0]

    assert_equals_reference(
        "multi_head_attention", args, reference, rng, n_head=sizes[3], mask=mask
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("sizes", SIZES)
def test_backward(sizes, kind, bias, rng):
    check_backward(
        snp.multi_head_attention,
        snp.multi_head_attention_backward,
        make_args(sizes, rng, bias=bias),
        rng,
        kwargs={"n_head": sizes[3], "mask": make_mask(kind, sizes, rng)},
    )


@pytest.mark.parametrize("missing", [2, 4])
def test_backward_with_one_bias_alone(missing, rng):
    args = make_args(SIZES[1], rng)
    args[missing] = None
    forward, backward = snp.multi_head_attention, snp.multi_head_attention_backward
    check_backward(forward, backward, args, rng, kwargs={"n_head": 3})
    run("multi_head_attention", *args, n_head=3)


def test_a_row_without_any_key_gives_the_output_bias(rng):
    """Torch's module gives NaN here, so the heads are taken from torch's kernel.

    Left padding: the first two queries of sample 0 see padding alone, and sample 1 is empty.
    """
    sizes = (2, 5, None, 3, 2)
    args = make_args(sizes, rng)
    is_padding = snp.padding_from_lengths(np.array([3, 0]), 5, side="left")
    mask = snp.causal_mask(5) + snp.padding_mask(is_padding)
    attn_mask = torch.tensor(mask)

    def reference(x, weight_in, bias_in, weight_out, bias_out, context):
        q, k, v = (
            part.unflatten(-1, (3, 2)).transpose(1, 2)
            for part in functional.linear(x, weight_in, bias_in).chunk(3, dim=-1)
        )
        heads = functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return functional.linear(heads.transpose(1, 2).flatten(-2), weight_out, bias_out)

    assert_equals_reference("multi_head_attention", args, reference, rng, n_head=3, mask=mask)
    y = run("multi_head_attention", *args, n_head=3, mask=mask)
    assert_array_equal(y[0, :2], np.broadcast_to(args[4], (2, 6)))
    assert_array_equal(y[1], np.broadcast_to(args[4], (5, 6)))
    kwargs = {"n_head": 3, "mask": mask}
    check_backward(
        snp.multi_head_attention, snp.multi_head_attention_backward, args, rng, kwargs=kwargs
    )


def test_float32(rng):
    sizes = SIZES[1]
    args = [a.astype(np.float32) for a in make_args(sizes, rng)]
    mask = make_mask("combined", sizes, rng)
    module = torch_module(args, 3, torch.float32)
    attn_mask = torch_mask(mask, sizes).float()
    x, context = tensors([args[0], args[5]])
    expected = module(x, context, context, attn_mask=attn_mask, need_weights=False)[0]
    y = run("multi_head_attention", *args, n_head=3, mask=mask, rtol=1e-4, atol=1e-5)
    assert y.dtype == np.float32
    assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
    dy = rng.standard_normal(y.shape).astype(np.float32)
    for grad in snp.multi_head_attention_backward(dy, *args, n_head=3, mask=mask):
        assert grad.dtype == np.float32


def test_without_a_batch_axis(rng):
    x, *weights, _ = make_args(SIZES[0], rng)
    y = run("multi_head_attention", x, *weights, n_head=3, mask=snp.causal_mask(5))
    one = run("multi_head_attention", x[1], *weights, n_head=3, mask=snp.causal_mask(5))
    assert_allclose(one, y[1], rtol=1e-12)


def test_split_and_merge_heads_by_hand():
    """Case A09: the tokens (0, 1, 2, 3) and (4, 5, 6, 7) in two heads."""
    x = np.arange(8.0).reshape(1, 2, 4)
    heads = [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]]
    assert_array_equal(run("split_heads", x, n_head=2), heads)
    assert_array_equal(run("merge_heads", np.array(heads)), x)


@pytest.mark.parametrize("shape", [(2, 5, 6), (5, 6), (0, 5, 6), (2, 7, 5, 3), (1, 1, 3)])
@pytest.mark.parametrize("n_head", [1, 3])
def test_split_and_merge_heads(shape, n_head, rng):
    if shape[-1] % n_head:
        shape = (*shape[:-1], 3 * shape[-1])
    x = rng.standard_normal(shape)
    *leading, T, D = shape
    heads = run("split_heads", x, n_head=n_head)
    assert heads.shape == (*leading, n_head, T, D // n_head)
    for n, block in enumerate(np.split(x, n_head, axis=-1)):
        assert_array_equal(heads[..., n, :, :], block)
    assert_array_equal(run("merge_heads", heads), x)
    check_backward(
        snp.split_heads, snp.split_heads_backward, (x,), rng, kwargs={"n_head": n_head}
    )
    check_backward(snp.merge_heads, snp.merge_heads_backward, (heads,), rng)


def test_the_scale_is_that_of_one_head():
    """Case A65: products 4 and 0 in a head of width 8 / 2 = 4 give scores 2 and 0."""
    q, k = np.zeros((2, 8)), np.zeros((2, 8))
    q[:, 0], k[0, 0] = 4.0, 1.0
    weights = run(
        "attention_weights", snp.split_heads(q, n_head=2), snp.split_heads(k, n_head=2)
    )
    assert_allclose(weights[0], [[0.8807970779778823, 0.11920292202211755]] * 2, rtol=1e-9)
    assert_array_equal(weights[1], np.full((2, 2), 0.5))  # the other head saw zeros

    # The same through the whole layer: values 1 and 0 in the same feature read off the weight.
    eye, zero = np.eye(8), np.zeros((8, 8))
    to_value = np.zeros((8, 8))
    to_value[1, 1] = 1.0
    in_proj_weight = np.concatenate([4 * eye, eye, to_value])
    in_proj_weight[:8, 1:] = in_proj_weight[8:16, 1:] = 0
    context = zero[:2].copy()
    context[0, :2] = 1.0
    x = zero[:1].copy()
    x[0, 0] = 1.0
    y = run("multi_head_attention", x, in_proj_weight, None, eye, None, context, n_head=2)
    assert_allclose(y[0, 1], 0.8807970779778823, rtol=1e-9)


def test_masks_go_to_the_heads_of_their_own_sample():
    """Case A07: lengths 2 and 1, two heads, equal scores."""
    mask = snp.padding_mask(snp.padding_from_lengths(np.array([2, 1]), 2))
    heads = snp.split_heads(np.zeros((2, 2, 4)), n_head=2)
    weights = run("attention_weights", heads, heads, mask=mask)
    flat = weights.reshape(4, 2, 2)  # sample 0 head 0, sample 0 head 1, sample 1 head 0, ...
    expected = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    for query in range(2):
        assert_array_equal(flat[:, query], expected)


SEEDS = st.integers(0, 2**32 - 1)


@given(seed=SEEDS, lengths=st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_a_sample_in_a_batch_gives_what_it_gives_alone(seed, lengths):
    rng = np.random.default_rng(seed)
    x, *weights, _ = make_args((3, 5, None, 2, 3), rng)
    is_padding = snp.padding_from_lengths(np.array(lengths), 5)
    x[is_padding] = 100 * rng.standard_normal(x[is_padding].shape)
    y = run("multi_head_attention", x, *weights, n_head=2, mask=snp.padding_mask(is_padding))
    for b, length in enumerate(lengths):
        alone = run("multi_head_attention", x[b : b + 1, :length], *weights, n_head=2)
        assert_allclose(y[b, :length], alone[0], rtol=1e-8, atol=1e-10)


@given(seed=SEEDS, t=st.integers(0, 4))
def test_a_causal_mask_hides_the_future(seed, t):
    rng = np.random.default_rng(seed)
    x, *weights, _ = make_args((2, 5, None, 2, 3), rng)
    y = run("multi_head_attention", x, *weights, n_head=2, mask=snp.causal_mask(5))
    x[:, t + 1 :] = rng.standard_normal(x[:, t + 1 :].shape)
    changed = run("multi_head_attention", x, *weights, n_head=2, mask=snp.causal_mask(5))
    assert_allclose(changed[:, : t + 1], y[:, : t + 1], rtol=1e-10)


@given(seed=SEEDS, order=st.permutations(range(5)))
def test_permuted_tokens_give_permuted_outputs(seed, order):
    rng = np.random.default_rng(seed)
    x, *weights, _ = make_args((2, 5, None, 2, 3), rng)
    y = run("multi_head_attention", x, *weights, n_head=2)
    permuted = run("multi_head_attention", x[:, order], *weights, n_head=2)
    assert_allclose(permuted, y[:, order], rtol=1e-9, atol=1e-12)


@given(seed=SEEDS)
def test_context_equal_to_the_tokens_is_self_attention(seed):
    """The gradients of tokens and context then add up to that of self-attention."""
    rng = np.random.default_rng(seed)
    x, *weights, _ = make_args((2, 5, None, 2, 3), rng)
    y = run("multi_head_attention", x, *weights, n_head=2)
    assert_array_equal(run("multi_head_attention", x, *weights, x, n_head=2), y)
    dy = rng.standard_normal(y.shape)
    alone = snp.multi_head_attention_backward(dy, x, *weights, n_head=2)
    cross = snp.multi_head_attention_backward(dy, x, *weights, x, n_head=2)
    assert alone[5] is None
    assert_allclose(cross[0] + cross[5], alone[0], rtol=1e-12)


# The module.
@pytest.mark.parametrize("bias", [True, False])
def test_module_loads_torchs_state_dict(bias, rng):
    args = make_args(SIZES[1], rng, bias=bias)
    reference = torch_module(args, 3)
    module = spt.MultiHeadAttention(6, 3, bias=bias).double()
    assert module.state_dict().keys() == reference.state_dict().keys()
    module.load_state_dict(reference.state_dict())
    x, context = tensors([args[0], args[5]], grad=True)
    mask = snp.causal_mask(5, 7)
    y = module(x, context, mask=torch.tensor(mask))
    expected = reference(x, context, context, attn_mask=torch.tensor(mask))[0]
    assert_allclose(y.detach(), expected.detach(), rtol=1e-10)
    dy = rng.standard_normal(y.shape)
    ours = gradients(y, [x, context, *module.parameters()], dy)
    theirs = gradients(expected, [x, context, *reference.parameters()], dy)
    for grad, wanted in zip(ours, theirs, strict=True):
        assert_allclose(grad, wanted, rtol=1e-9, atol=1e-12)


def test_module_starts_as_torchs_does():
    """Same distribution: Xavier for the input, torch's default for the output, biases 0."""
    torch.manual_seed(0)
    ours = spt.MultiHeadAttention(48, 4)
    theirs = torch.nn.MultiheadAttention(48, 4)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if name.endswith("bias"):
            assert_array_equal(p.detach(), 0)
        else:
            assert_allclose(p.detach().abs().max(), q.detach().abs().max(), rtol=0.01)
            assert_allclose(p.detach().std(), q.detach().std(), rtol=0.05)


def test_module_checks_its_sizes():
    with pytest.raises(ValueError, match=r"^n_head must divide dim = 6, got 4; use one of "):
        spt.MultiHeadAttention(6, 4)
    with pytest.raises(ValueError, match=r"^dim must be a positive integer, got 0$"):
        spt.MultiHeadAttention(0, 1)


# Errors.
@pytest.mark.parametrize(
    ("n_head", "text"),
    [
        (4, "n_head must divide the width of x = 6, got 4; use one of [1, 2, 3, 6]"),
        (0, "n_head must be a positive integer, got 0"),
        (1.5, "n_head must be a positive integer, got 1.5"),
    ],
)
def test_refuses_heads_that_do_not_divide_the_width(n_head, text, rng):
    args = make_args((2, 5, 7, 3, 2), rng)
    assert error_text("multi_head_attention", *args, n_head=n_head) == text
    assert error_text("split_heads", args[0], n_head=n_head) == text


@pytest.mark.parametrize(
    ("position", "shape", "text"),
    [
        (0, (6,), "x must have shape (..., T, D), got (6,)"),
        (
            1,
            (6, 18),
            "in_proj_weight must have shape (18, 6), got (6, 18); rows for q, k and v in turn",
        ),
        (2, (6,), "in_proj_bias must have shape (18,), got (6,)"),
        (3, (18, 6), "out_proj_weight must have shape (6, 6), got (18, 6)"),
        (4, (18,), "out_proj_bias must have shape (6,), got (18,)"),
        (5, (2, 7, 5), "context must have shape (2, S, 6), got (2, 7, 5)"),
        (5, (3, 7, 6), "context must have shape (2, S, 6), got (3, 7, 6)"),
    ],
)
def test_refuses_shapes_that_do_not_fit(position, shape, text, rng):
    args = make_args((2, 5, 7, 3, 2), rng)
    args[position] = np.zeros(shape)
    assert error_text("multi_head_attention", *args, n_head=3) == text


def test_split_and_merge_refuse_too_few_axes():
    assert error_text("split_heads", np.zeros(6), n_head=3) == (
        "x must have shape (..., T, D), got (6,)"
    )
    assert error_text("merge_heads", np.zeros((5, 2))) == (
        "x must have shape (..., N, T, K), got (5, 2)"
    )
