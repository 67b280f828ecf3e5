"""Feed-forward networks, dropout and the Transformer layer."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward

BACKENDS = [snp, spt]


def array(backend, values):
    return np.asarray(values) if backend is snp else torch.tensor(values)


def tensors(arrays):
    return [a if a is None else torch.tensor(a, requires_grad=True) for a in arrays]


def assert_grads_equal(actual, expected, rtol=1e-9, atol=1e-9):
    for a, e in zip(actual, expected, strict=True):
        assert_allclose(a, e, rtol=rtol, atol=atol)


# Feed-forward networks


def feed_forward_args(rng, *, shape=(2, 3, 5), inner=7, bias=True):
    D = shape[-1]
    args = [rng.standard_normal(s) for s in (shape, (inner, D), (inner,), (D, inner), (D,))]
    return args if bias else [a if i in (0, 1, 3) else None for i, a in enumerate(args)]


TORCH_ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 5), (0, 5), (3, 1)])
@pytest.mark.parametrize("activation", TORCH_ACTIVATIONS)
def test_feed_forward_equals_torch(activation, shape, bias, rng):
    args = feed_forward_args(rng, shape=shape, bias=bias)
    x, w1, b1, w2, b2 = given_args = tensors(args)
    expected = F.linear(TORCH_ACTIVATIONS[activation](F.linear(x, w1, b1)), w2, b2)
    y = spt.feed_forward(*given_args, activation=activation)
    assert_allclose(y.detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    assert_allclose(
        snp.feed_forward(*args, activation=activation),
        expected.detach(),
        rtol=1e-10,
        atol=1e-10,
    )
    dy = rng.standard_normal(shape)
    inputs = [t for t in given_args if t is not None]
    expected = torch.autograd.grad(expected, inputs, torch.tensor(dy))
    grads = snp.feed_forward_backward(dy, *args, activation=activation)
    assert [g is None for g in grads] == [a is None for a in args]
    assert_grads_equal([g for g in grads if g is not None], expected)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", TORCH_ACTIVATIONS)
def test_feed_forward_backward(activation, bias, rng):
    check_backward(
        snp.feed_forward,
        snp.feed_forward_backward,
        feed_forward_args(rng, bias=bias),
        rng,
        kwargs={"activation": activation},
    )


def test_feed_forward_by_hand():
    """relu([1 - 2, 2 * 2 + 1]) = [0, 5]; 5 * 3 - 1 = 14."""
    args = [[2.0], [[-1.0], [2.0]], [1.0, 1.0], [[10.0, 3.0]], [-1.0]]
    for backend in BACKENDS:
        y = backend.feed_forward(*[array(backend, a) for a in args], activation="relu")
        assert_array_equal(y, [14.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_default_activation_is_the_exact_gelu(backend, rng):
    args = [array(backend, a) for a in feed_forward_args(rng)]
    exact = backend.feed_forward(*args, activation="gelu")
    assert_array_equal(backend.feed_forward(*args), exact)
    tanh = backend.feed_forward(*args, activation="gelu_tanh")
    assert abs(tanh - exact).max() > 1e-6


@pytest.mark.parametrize("shape", [(5,), (2, 3, 5), (0, 5), (3, 1)])
def test_swiglu_equals_torch(shape, rng):
    D = shape[-1]
    args = [rng.standard_normal(s) for s in (shape, (7, D), (7, D), (D, 7))]
    x, gate, up, down = given_args = tensors(args)
    expected = F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
    assert_allclose(snp.swiglu(*args), expected.detach(), rtol=1e-10, atol=1e-12)
    assert_allclose(spt.swiglu(*given_args).detach(), expected.detach(), rtol=1e-10, atol=1e-12)
    dy = rng.standard_normal(shape)
    expected = torch.autograd.grad(expected, given_args, torch.tensor(dy))
    assert_grads_equal(snp.swiglu_backward(dy, *args), expected)


def test_swiglu_backward(rng):
    args = [rng.standard_normal(s) for s in ((2, 3, 5), (7, 5), (7, 5), (5, 7))]
    check_backward(snp.swiglu, snp.swiglu_backward, args, rng)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda b, a: b.feed_forward(a(2, 5), a(7, 4), a(7), a(5, 7), a(5)),
            r"w1 must have shape \(F, 5\), got \(7, 4\)",
        ),
        (
            lambda b, a: b.feed_forward(a(2, 5), a(7, 5), a(7), a(7, 5), a(5)),
            r"w2 must have shape \(5, 7\), got \(7, 5\)",
        ),
        (
            lambda b, a: b.feed_forward(a(5), a(7, 5), a(7), a(5, 7), a(5), activation="tanh"),
            "activation must be 'gelu' or 'gelu_tanh' or 'relu', got 'tanh'",
        ),
        (
            lambda b, a: b.swiglu(a(2, 5), a(7, 4), a(7, 5), a(5, 7)),
            r"w_gate must have shape \(F, 5\), got \(7, 4\)",
        ),
        (
            lambda b, a: b.swiglu(a(2, 5), a(7, 5), a(6, 5), a(5, 7)),
            r"w_up must have shape \(7, 5\), got \(6, 5\)",
        ),
        (
            lambda b, a: b.swiglu(a(2, 5), a(7, 5), a(7, 5), a(7, 5)),
            r"w_down must have shape \(5, 7\), got \(7, 5\)",
        ),
        (lambda b, a: b.dropout(a(2), p=1.0, rng=None), r"p must lie in \[0, 1\), got 1.0"),
        (lambda b, a: b.dropout(a(2), p=-0.1, rng=None), r"p must lie in \[0, 1\), got -0.1"),
    ],
)
def test_functions_reject_bad_input(backend, call, message):
    def ones(*shape):
        return array(backend, np.ones(shape))

    with pytest.raises(ValueError, match=f"^{message}$"):
        call(backend, ones)


# Dropout


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_keeps_the_expected_value(p):
    x = np.full((200, 500), 3.0, np.float32)
    y = snp.dropout(x, p=p, rng=np.random.default_rng(0))
    assert y.dtype == np.float32
    assert_allclose(np.unique(y), [0, 3 / (1 - p)], rtol=1e-6)
    # The mean of 100 000 entries has a standard deviation below 0.01.
    assert abs(y.mean() - 3) < 0.04
    assert abs((y == 0).mean() - p) < 0.01


def test_both_backends_drop_the_same_entries(rng):
    x = rng.standard_normal((3, 5))
    y = snp.dropout(x, p=0.4, rng=np.random.default_rng(7))
    twin = spt.dropout(torch.tensor(x), p=0.4, rng=np.random.default_rng(7))
    assert_allclose(y, twin, rtol=1e-12)
    assert 0 < (y == 0).sum() < y.size


def test_dropout_with_the_same_generator_is_its_own_gradient(rng):
    x, dy = (
        torch.tensor(rng.standard_normal((3, 5)), requires_grad=True),
        rng.standard_normal((3, 5)),
    )
    y = spt.dropout(x, p=0.4, rng=np.random.default_rng(7))
    (expected,) = torch.autograd.grad(y, x, torch.tensor(dy))
    assert_allclose(snp.dropout(dy, p=0.4, rng=np.random.default_rng(7)), expected, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_dropout_draws_nothing(backend, rng):
    x = array(backend, rng.standard_normal((3, 5)))
    assert_array_equal(backend.dropout(x, p=0.0, rng=None), x)


# The Transformer layer

D, N, T, S = 6, 3, 5, 7


def torch_layer(*, norm, cross, activation="gelu", bias=True):
    """Return a layer of torch.nn with parameters that are neither 0 nor 1."""
    make = torch.nn.TransformerDecoderLayer if cross else torch.nn.TransformerEncoderLayer
    torch.manual_seed(1)
    layer = make(
        D,
        N,
        11,
        dropout=0.0,
        activation=TORCH_ACTIVATIONS[activation],
        batch_first=True,
        norm_first=norm == "pre",
        bias=bias,
    ).double()
    for p in layer.parameters():
        p.data = torch.randn(p.shape, dtype=p.dtype) * 0.5
    return layer


def np_params(module):
    return {name: p.detach().numpy() for name, p in module.state_dict().items()}


def random_layer(**options):
    torch.manual_seed(2)
    layer = spt.TransformerLayer(D, N, 11, **options).double()
    for p in layer.parameters():
        p.data = torch.randn(p.shape, dtype=p.dtype) * 0.5
    return layer


def context_of(rng, cross):
    return rng.standard_normal((2, S, D)) if cross else None


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", TORCH_ACTIVATIONS)
def test_layer_equals_torch_nn(norm, cross, activation, rng):
    reference = torch_layer(norm=norm, cross=cross, activation=activation)
    ours = spt.TransformerLayer(D, N, 11, norm=norm, feed_forward=activation, cross=cross)
    ours.double().load_state_dict(reference.state_dict())
    x, context = rng.standard_normal((2, T, D)), context_of(rng, cross)
    given_x, given_context = tensors([x, context])
    mask = torch.full((T, T), -torch.inf, dtype=torch.float64).triu(1)
    if cross:
        expected = reference(given_x, given_context, tgt_mask=mask)
    else:
        expected = reference(given_x, src_mask=mask)
    y = ours(given_x, given_context, mask=mask)
    params = np_params(ours)
    options = {"n_head": N, "norm": norm, "activation": activation, "mask": mask.numpy()}
    by_hand = snp.transformer_layer(x, params, context, **options)
    assert_allclose(y.detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    assert_allclose(by_hand, expected.detach(), rtol=1e-10, atol=1e-10)

    dy = rng.standard_normal(x.shape)
    inputs = [given_x, *([given_context] if cross else []), *reference.parameters()]
    expected = torch.autograd.grad(expected, inputs, torch.tensor(dy), retain_graph=True)
    dx, dparams, dcontext = snp.transformer_layer_backward(dy, x, params, context, **options)
    assert list(dparams) == list(params)
    named = dict(zip(dict(reference.named_parameters()), expected[1 + cross :], strict=True))
    assert_grads_equal([dx, *([dcontext] if cross else [])], expected[: 1 + cross])
    assert_grads_equal(dparams.values(), [named[name] for name in dparams])
    assert (dcontext is None) == (not cross)


LAYERS = [
    {},
    {"bias": False},
    {"norm": "post", "norm_type": "rms"},
    {"norm_type": "rms", "feed_forward": "swiglu", "bias": False, "rotary_base": 100.0},
    {"feed_forward": "swiglu", "norm": "post", "cross": True},
    {"feed_forward": "relu", "rotary_base": 50.0, "cross": True, "eps": 0.1},
]


def layer_options(options, **more):
    """Translate the options of the module to those of the function."""
    options = {k: v for k, v in options.items() if k in ("norm", "eps", "rotary_base")} | more
    return {"n_head": N, **options}


@pytest.mark.parametrize("options", LAYERS)
@pytest.mark.parametrize("shape", [(2, T, D), (T, D), (0, T, D), (1, 1, D), (2, 2, T, D)])
def test_module_equals_function(options, shape, rng):
    layer = random_layer(**options)
    x = rng.standard_normal(shape)
    context = rng.standard_normal((*shape[:-2], S, D)) if options.get("cross") else None
    more = {"mask": np.asarray(snp.causal_mask(shape[-2]))}
    if options.get("feed_forward") not in (None, "swiglu"):
        more["activation"] = options["feed_forward"]
    y = snp.transformer_layer(x, np_params(layer), context, **layer_options(options, **more))
    given_args = [a if a is None else torch.tensor(a) for a in (x, context)]
    twin = layer(*given_args, mask=torch.tensor(more["mask"]))
    assert y.shape == x.shape
    assert_allclose(y, twin.detach(), rtol=1e-10, atol=1e-12)
    assert_allclose(
        layer(*given_args, causal=True).detach(), twin.detach(), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("options", LAYERS)
def test_layer_backward(options, rng):
    layer = random_layer(**options)
    more = {"mask": snp.causal_mask(T)}
    if options.get("feed_forward") not in (None, "swiglu"):
        more["activation"] = options["feed_forward"]
    if options.get("cross"):
        more["context_mask"] = snp.padding_mask(np.arange(S) >= np.array([[S], [3]]))
    check_backward(
        snp.transformer_layer,
        snp.transformer_layer_backward,
        (
            rng.standard_normal((2, T, D)),
            np_params(layer),
            context_of(rng, options.get("cross")),
        ),
        rng,
        kwargs=layer_options(options, **more),
    )


def test_masks_of_a_cross_layer_are_not_mixed_up(rng):
    """A change of a blocked token, or of a blocked context token, changes nothing else."""
    layer = random_layer(cross=True)
    x, context = rng.standard_normal((2, T, D)), rng.standard_normal((2, S, D))
    is_padding = np.zeros((2, S), bool)
    is_padding[1, 4:] = True
    options = {
        "n_head": N,
        "mask": snp.causal_mask(T),
        "context_mask": snp.padding_mask(is_padding),
    }
    y = snp.transformer_layer(x, np_params(layer), context, **options)
    x2, context2 = x.copy(), context.copy()
    x2[:, 3:] += 5
    context2[1, 4:] += 5
    y2 = snp.transformer_layer(x2, np_params(layer), context2, **options)
    assert_allclose(y2[:, :3], y[:, :3], atol=1e-12)
    assert np.abs(y2[:, 3:] - y[:, 3:]).max() > 0.1
    twin = layer(
        torch.tensor(x2),
        torch.tensor(context2),
        mask=torch.tensor(options["mask"]),
        context_mask=torch.tensor(options["context_mask"]),
    )
    assert_allclose(twin.detach(), y2, atol=1e-10)


@given(position=st.integers(0, T - 1), seed=st.integers(0, 1000))
def test_causal_layer_does_not_see_the_future(position, seed):
    rng = np.random.default_rng(seed)
    params = np_params(random_layer())
    x = rng.standard_normal((1, T, D))
    changed = x.copy()
    changed[:, position] = rng.standard_normal(D)
    options = {"n_head": N, "mask": snp.causal_mask(T)}
    y = snp.transformer_layer(x, params, **options)
    y2 = snp.transformer_layer(changed, params, **options)
    assert_array_equal(y2[:, :position], y[:, :position])
    assert (y2[:, position:] != y[:, position:]).any(axis=-1).all()


def test_layer_without_mask_is_permutation_equivariant(rng):
    params = np_params(random_layer())
    x, order = rng.standard_normal((2, T, D)), rng.permutation(T)
    y = snp.transformer_layer(x, params, n_head=N)
    assert_allclose(
        snp.transformer_layer(x[:, order], params, n_head=N), y[:, order], atol=1e-12
    )


@pytest.mark.parametrize("rotary_base", [None, 100.0])
def test_a_row_that_may_attend_to_nothing(rotary_base, rng):
    """The attention adds its bias alone, and all gradients are finite, in both backends."""
    layer = random_layer(rotary_base=rotary_base)
    mask = snp.causal_mask(T)
    mask[2] = -np.inf
    x, dy = rng.standard_normal((2, 2, T, D))
    options = {"n_head": N, "mask": mask, "rotary_base": rotary_base}
    given_x = torch.tensor(x, requires_grad=True)
    y = layer(given_x, mask=torch.tensor(mask))
    expected = torch.autograd.grad(y, [given_x, *layer.parameters()], torch.tensor(dy))
    assert_allclose(
        snp.transformer_layer(x, np_params(layer), **options), y.detach(), atol=1e-10
    )
    dx, dparams, _ = snp.transformer_layer_backward(dy, x, np_params(layer), **options)
    assert all(torch.isfinite(e).all() for e in expected)
    assert_grads_equal([dx, *dparams.values()], expected)


def test_rotary_layer_depends_on_distances_only(rng):
    """Three blocked tokens before the others shift all positions and change nothing."""
    params = np_params(random_layer(rotary_base=100.0))
    x = rng.standard_normal((2, T, D))
    options = {"n_head": N, "rotary_base": 100.0, "mask": snp.causal_mask(T)}
    y = snp.transformer_layer(x, params, **options)
    longer = np.concatenate([rng.standard_normal((2, 3, D)), x], axis=1)
    blocked = snp.padding_mask(np.arange(T + 3) < np.array([[3], [3]]))
    options["mask"] = snp.causal_mask(T + 3) + blocked
    assert_allclose(snp.transformer_layer(longer, params, **options)[:, 3:], y, atol=1e-12)
    plain = snp.transformer_layer(x, params, n_head=N, mask=snp.causal_mask(T))
    assert np.abs(plain - y).max() > 0.01


@pytest.mark.parametrize("options", LAYERS)
def test_layer_keeps_float32_and_its_arguments(options, rng):
    params = {k: v.astype(np.float32) for k, v in np_params(random_layer(**options)).items()}
    x = rng.standard_normal((2, T, D)).astype(np.float32)
    context = context_of(rng, options.get("cross"))
    context = context if context is None else context.astype(np.float32)
    kwargs = layer_options(options, mask=snp.causal_mask(T))
    y = snp.transformer_layer(x, params, context, **kwargs)
    dx, dparams, dcontext = snp.transformer_layer_backward(x, x, params, context, **kwargs)
    grads = [dx, *dparams.values(), *([] if dcontext is None else [dcontext])]
    assert {a.dtype for a in [y, *grads]} == {np.dtype(np.float32)}


def test_dropout_of_the_layer_acts_in_training_only(rng):
    layer = random_layer(dropout=0.5)
    x = torch.tensor(rng.standard_normal((2, T, D)))
    plain = random_layer()(x)
    layer.eval()
    assert_array_equal(layer(x).detach(), plain.detach())
    layer.train()
    torch.manual_seed(0)
    # Each part's output is dropped or doubled, so that the result minus x is so too.
    dropped = layer(x).detach() - x
    assert not torch.allclose(dropped, plain.detach() - x)
    assert (dropped == 0).any()


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_head": 4}, "n_head must divide dim = 6, got 4; use one of [1, 2, 3, 6]"),
        ({"dim_feedforward": 0}, "dim_feedforward must be a positive integer, got 0"),
        ({"norm": "rms"}, "norm must be 'pre' or 'post', got 'rms'"),
        ({"norm_type": "pre"}, "norm_type must be 'layer' or 'rms', got 'pre'"),
        (
            {"feed_forward": "tanh"},
            "feed_forward must be 'gelu' or 'gelu_tanh' or 'relu' or 'swiglu', got 'tanh'",
        ),
    ],
)
def test_module_rejects_bad_options(options, message):
    with pytest.raises(ValueError, match="^" + message.replace("[", r"\[").replace("]", r"\]")):
        spt.TransformerLayer(**({"dim": D, "n_head": N, "dim_feedforward": 11} | options))


def test_module_rejects_bad_input():
    x = torch.ones(2, T, D)
    with pytest.raises(ValueError, match=r"^context must be None for a layer with cross=False"):
        spt.TransformerLayer(D, N, 11)(x, x)
    with pytest.raises(ValueError, match=r"^context must be given for a layer with cross=True"):
        spt.TransformerLayer(D, N, 11, cross=True)(x)
    with pytest.raises(
        ValueError, match=r"^context must have shape \(2, S, 6\), got \(2, 7, 5\)$"
    ):
        spt.TransformerLayer(D, N, 11, cross=True)(x, torch.ones(2, S, 5))
    with pytest.raises(
        ValueError, match=r"^x must have shape \(\.\.\., T, 6\), got \(2, 5, 4\)$"
    ):
        spt.TransformerLayer(D, N, 11)(torch.ones(2, T, 4))
    with pytest.raises(ValueError, match=r"^mask must be None with causal=True, got both"):
        spt.TransformerLayer(D, N, 11)(x, causal=True, mask=torch.zeros(T, T))
    with pytest.raises(ValueError, match=r"^mask must broadcast to the shape of the scores"):
        spt.TransformerLayer(D, N, 11)(x, mask=torch.zeros(T, T + 1))


def test_function_rejects_parameters_that_do_not_fit(rng):
    x, params = rng.standard_normal((2, T, D)), np_params(random_layer())
    with pytest.raises(ValueError, match=r"^norm must be 'pre' or 'post', got 'first'$"):
        snp.transformer_layer(x, params, n_head=N, norm="first")
    with pytest.raises(ValueError, match=r"missing: \['linear1.weight'\]; unknown: \[\]$"):
        snp.transformer_layer(
            x, {k: v for k, v in params.items() if k != "linear1.weight"}, n_head=N
        )
    with pytest.raises(ValueError, match=r"missing: .*multihead_attn.in_proj_weight.*norm3"):
        snp.transformer_layer(x, params, x, n_head=N)
    wrong = params | {"linear2.weight": params["linear2.weight"].T}
    message = r"^params\['linear2.weight'\] must have shape \(6, 11\), got \(11, 6\)$"
    with pytest.raises(ValueError, match=message):
        snp.transformer_layer(x, wrong, n_head=N)
