"""Normalisation: both backends against torch.nn.functional, calculus and cases by hand."""

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

SHAPES = [(5,), (3, 5), (2, 3, 5), (2, 3, 7, 5), (0, 5), (3, 1)]


def norm_args(shape, rng, name="layer_norm"):
    """Return x and parameters: a gain of 1 or a shift of 0 would hide a wrong use."""
    count = 2 if name == "layer_norm" else 1
    return [rng.standard_normal(s) for s in (shape, *[shape[-1:]] * count)]


def torch_norm(name, x, *params, eps):
    if name == "layer_norm":
        return F.layer_norm(x, x.shape[-1:], *params, eps=eps)
    return F.rms_norm(x, x.shape[-1:], *params, eps=eps)


NAMES = ["layer_norm", "rms_norm"]


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_equals_torch(name, shape, eps, rng):
    args = norm_args(shape, rng, name)
    tensors = [torch.tensor(a, requires_grad=True) for a in args]
    expected = torch_norm(name, *tensors, eps=eps)
    assert_allclose(
        getattr(snp, name)(*args, eps=eps), expected.detach(), rtol=1e-10, atol=1e-12
    )
    y = getattr(spt, name)(*tensors, eps=eps)
    assert_allclose(y.detach(), expected.detach(), rtol=1e-10, atol=1e-12)

    dy = rng.standard_normal(shape)
    expected = torch.autograd.grad(expected, tensors, torch.tensor(dy))
    ours = torch.autograd.grad(y, tensors, torch.tensor(dy))
    by_hand = getattr(snp, f"{name}_backward")(dy, *args, eps=eps)
    by_hand = by_hand if isinstance(by_hand, tuple) else (by_hand,)
    for grad, twin, reference in zip(by_hand, ours, expected, strict=True):
        assert_allclose(grad, reference, rtol=1e-9, atol=1e-9)
        assert_allclose(twin, reference, rtol=1e-9, atol=1e-9)


def test_default_eps_is_torchs_for_layer_norm(rng):
    args = [a * 1e-3 for a in norm_args((3, 5), rng)]  # so small that eps matters
    expected = F.layer_norm(*[torch.tensor(args[0]), (5,)], *map(torch.tensor, args[1:]))
    assert_allclose(snp.layer_norm(*args), expected, rtol=1e-10)
    assert_allclose(spt.layer_norm(*map(torch.tensor, args)), expected, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s])
@pytest.mark.parametrize("name", NAMES)
def test_backward_equals_differences(name, shape, scale, rng):
    x, *params = norm_args(shape, rng, name)
    check_backward(
        getattr(snp, name),
        getattr(snp, f"{name}_backward"),
        (x * scale, *params),
        rng,
        kwargs={"eps": 0.01},
        atol=1e-7,
    )


@given(shift=st.floats(-100, 100), scale=st.floats(0.5, 100))
def test_layer_norm_ignores_shift_and_scale(shift, scale):
    x, weight, bias = norm_args((3, 5), np.random.default_rng(0))
    y = snp.layer_norm(x, weight, bias, eps=0.0)
    assert_allclose(snp.layer_norm(scale * x + shift, weight, bias, eps=0.0), y, atol=1e-9)


@given(scale=st.floats(0.5, 100))
def test_rms_norm_ignores_scale_but_not_shift(scale):
    x, weight = norm_args((3, 5), np.random.default_rng(0), "rms_norm")
    y = snp.rms_norm(x, weight, eps=0.0)
    assert_allclose(snp.rms_norm(scale * x, weight, eps=0.0), y, atol=1e-9)
    assert np.abs(snp.rms_norm(x + 1, weight, eps=0.0) - y).max() > 0.1


@pytest.mark.parametrize("backend", [snp, spt])
def test_layer_norm_divides_by_the_biased_deviation(backend):
    """Row [3, 1, 1, 1]: variance 0.75 and not 1 (codertimo/BERT-pytorch#30)."""
    array = np.asarray if backend is snp else torch.tensor
    y = backend.layer_norm(
        array([3.0, 1.0, 1.0, 1.0]), array([1.0] * 4), array([0.0] * 4), eps=1e-5
    )
    assert_allclose(y, [1.7320392606789625, *[-0.5773464202263208] * 3], atol=1e-6)


def test_layer_norm_of_a_constant_row():
    """The output is the shift and the gradient is finite (pytorch/pytorch#108072)."""
    x, weight, bias = np.full((1, 4), 7.0), np.full(4, 2.0), np.full(4, 0.5)
    assert_array_equal(snp.layer_norm(x, weight, bias), np.full((1, 4), 0.5))
    tensors = [torch.tensor(a, requires_grad=True) for a in (x, weight, bias)]
    y = spt.layer_norm(*tensors)
    assert_array_equal(y.detach(), np.full((1, 4), 0.5))
    dy = np.array([[1.0, 0.0, 0.0, 0.0]])
    expected = [[474.34164902525686, *[-158.11388300841895] * 3]]
    dx, _, _ = snp.layer_norm_backward(dy, x, weight, bias)
    assert_allclose(dx, expected, rtol=1e-9)
    assert_allclose(torch.autograd.grad(y, tensors, torch.tensor(dy))[0], expected, rtol=1e-9)


@pytest.mark.parametrize("backend", [snp, spt])
@pytest.mark.parametrize(
    ("x", "eps", "expected"),
    [
        # The square of 300 is beyond the largest float16, 65504 (pytorch/pytorch#133085).
        ([300.0, -300.0, 300.0, 300.0], 1e-6, [1, -1, 1, 1]),
        ([1000.0, -1000.0], 1e-5, [1, -1]),  # skyzh/tiny-llm#18
        # In float16 the square of 2e-4 is below its smallest number and would be lost.
        ([2e-4, -2e-4], 0.0, [1, -1]),
        ([0.0, 0.0], 1e-6, [0, 0]),
    ],
)
def test_rms_norm_of_half_precision(backend, x, eps, expected):
    array = np.asarray if backend is snp else torch.tensor
    x = array(np.array(x, np.float16))
    y = backend.rms_norm(x, x * 0 + 1, eps=eps)
    assert y.dtype == x.dtype
    assert_allclose(np.asarray(y, np.float64), expected, atol=1e-3)


@pytest.mark.parametrize("backend", [snp, spt])
def test_layer_norm_of_half_precision(backend):
    array = np.asarray if backend is snp else torch.tensor
    x = array(np.array([60000.0, -60000.0, 60000.0, 60000.0], np.float16))
    y = backend.layer_norm(x, x * 0 + 1, x * 0)
    assert y.dtype == x.dtype
    third = 1 / np.sqrt(3)
    assert_allclose(np.asarray(y, np.float64), [third, -3 * third, third, third], atol=1e-3)


def test_backward_of_half_precision_sums_in_float32():
    """1000 rows of 10 sum to 10 000; a sum kept in float16 would lose digits from 4096 on."""
    x = np.tile(np.array([[300.0, -300.0]], np.float16), (1000, 1))
    dy, ones = np.full(x.shape, 10, np.float16), np.ones(2, np.float16)
    for grads in (
        snp.layer_norm_backward(dy, x, ones, ones),
        snp.rms_norm_backward(dy, x, ones),
    ):
        assert [g.dtype for g in grads] == [np.float16] * len(grads)
        assert_allclose(grads[1], [10000, -10000], rtol=1e-3)
        for dbias in grads[2:]:
            assert_allclose(dbias, [10000, 10000], rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_dtype_is_kept(name, dtype, rng):
    args = [a.astype(dtype) for a in norm_args((2, 5), rng, name)]
    assert getattr(snp, name)(*args).dtype == dtype
    assert {g.dtype for g in getattr(snp, f"{name}_backward")(args[0], *args)} == {
        np.dtype(dtype)
    }
    tensors = [torch.tensor(a) for a in args]
    assert getattr(spt, name)(*tensors).dtype == tensors[0].dtype


@pytest.mark.parametrize("name", NAMES)
def test_integers_are_not_truncated(name):
    params = [np.ones(4)] * (2 if name == "layer_norm" else 1)
    x = np.array([[3, 1, 1, 1]])
    assert_allclose(
        getattr(snp, name)(x, *params), getattr(snp, name)(x.astype(float), *params)
    )


@pytest.mark.parametrize("backend", [snp, spt])
@pytest.mark.parametrize(
    ("name", "wrong"),
    [("layer_norm", "weight"), ("layer_norm", "bias"), ("rms_norm", "weight")],
)
def test_rejects_a_parameter_of_the_wrong_shape(backend, name, wrong):
    make = np.ones if backend is snp else torch.ones
    names = ["weight", "bias"] if name == "layer_norm" else ["weight"]
    params = {n: make(3 if n == wrong else 4) for n in names}
    with pytest.raises(ValueError, match=rf"^{wrong} must have shape \(4,\), got \(3,\)$"):
        getattr(backend, name)(make((2, 4)), **params)


@pytest.mark.parametrize(
    ("module", "reference"),
    [
        (spt.LayerNorm(5), torch.nn.LayerNorm(5)),
        (spt.RMSNorm(5, eps=1e-5), torch.nn.RMSNorm(5, eps=1e-5)),
    ],
)
def test_modules_load_torchs_state_and_equal_the_functions(module, reference, rng):
    for p in reference.parameters():
        p.data = torch.tensor(rng.standard_normal(p.shape))
    module.double().load_state_dict(reference.state_dict())
    x = torch.tensor(rng.standard_normal((2, 3, 5)))
    y = module(x)
    assert_allclose(y.detach(), reference(x).detach(), rtol=1e-12)
    name = "layer_norm" if isinstance(module, spt.LayerNorm) else "rms_norm"
    twin = getattr(spt, name)(x, *module.parameters(), eps=1e-5)
    assert_allclose(y.detach(), twin.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("module", [spt.LayerNorm(5), spt.RMSNorm(5)])
def test_modules_reject_another_width(module):
    with pytest.raises(ValueError, match=r"^x must have shape \(\.\.\., 5\), got \(2, 4\)$"):
        module(torch.ones(2, 4))
