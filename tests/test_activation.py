"""Activations, the linear map and softmax: both backends against torch and calculus."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional
from twins import assert_equals_reference, error_text, run, tensors

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.np._rectifiers import _erf
from seqlib.testing import check_backward

# name -> (options of ours, torch's function)
ELEMENTWISE = {
    "sigmoid": ("sigmoid", {}, torch.sigmoid),
    "relu": ("relu", {}, torch.relu),
    "silu": ("silu", {}, functional.silu),
    "gelu": ("gelu", {}, functional.gelu),
    "gelu_tanh": (
        "gelu",
        {"approximate": "tanh"},
        lambda x: functional.gelu(x, approximate="tanh"),
    ),
}
ALONG_AXIS = {"softmax": torch.softmax, "log_softmax": torch.log_softmax}
SHAPES = [(), (5,), (2, 3, 5), (0, 5), (2, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", ELEMENTWISE)
def test_elementwise_equals_torch(case, shape, rng):
    name, kwargs, reference = ELEMENTWISE[case]
    x = np.asarray(3 * rng.standard_normal(shape))
    assert_equals_reference(name, (x,), reference, rng, **kwargs)


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_elementwise_backward(case, rng):
    name, kwargs, _ = ELEMENTWISE[case]
    forward, backward = getattr(snp, name), getattr(snp, f"{name}_backward")
    check_backward(forward, backward, (3 * rng.standard_normal((7, 5)),), rng, kwargs=kwargs)


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_elementwise_float32(case, rng):
    name, kwargs, reference = ELEMENTWISE[case]
    x = (4 * rng.standard_normal((7, 5))).astype(np.float32)
    assert getattr(snp, name)(x, **kwargs).dtype == np.float32
    assert_equals_reference(name, (x,), reference, rng, rtol=2e-6, grad_rtol=2e-6, **kwargs)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("case", ELEMENTWISE)
def test_elementwise_huge_inputs(case, dtype):
    """No warning (warnings are errors here), and the limits: 0 or -0 left, x or 1 right."""
    name, kwargs, _ = ELEMENTWISE[case]
    large = np.finfo(dtype).max / 4  # torch's own gelu overflows at max in float32
    x = np.array([-large, -large / 2, -800, 800, large / 2, large], dtype)
    right = 1 if name == "sigmoid" else x[3:]
    y = run(name, x, **kwargs)
    assert y.dtype == dtype
    assert_array_equal(y[:3], 0)
    assert_array_equal(y[3:], right)
    slope = getattr(snp, f"{name}_backward")(np.ones_like(x), x, **kwargs)
    assert slope.dtype == dtype
    assert_array_equal(slope, [0] * 6 if name == "sigmoid" else [0] * 3 + [1] * 3)


def test_relu_has_slope_zero_at_zero():
    x = np.zeros(3)
    assert_array_equal(snp.relu_backward(np.ones(3), x), [0, 0, 0])
    (t,) = tensors([x], grad=True)
    spt.relu(t).sum().backward()
    assert_array_equal(t.grad, [0, 0, 0])


def test_erf_to_twelve_digits():
    z = np.concatenate([np.linspace(-8, 8, 3201), [1e-300, 1e-8, 5.9, 6.1, 1e300, np.inf]])
    expected = np.array([math.erf(v) for v in z])
    assert_allclose(_erf(z), expected, rtol=1e-14, atol=0)
    # The number of terms depends on the largest entry: few terms must suffice for small ones.
    one_by_one = np.array([_erf(v[None])[0] for v in z[::100]])
    assert_allclose(one_by_one, expected[::100], rtol=1e-14, atol=0)


def test_erf_never_exceeds_one():
    """Else gelu would be positive for a negative number, if only by 1e-15."""
    z = np.linspace(-6, 6, 100001)
    assert np.abs(_erf(z)).max() == 1
    assert (snp.gelu(z * math.sqrt(2)) * z >= 0).all()


def test_erf_of_nan_and_of_nothing():
    assert_array_equal(_erf(np.array([np.nan, 0.0])), [np.nan, 0.0])
    assert _erf(np.zeros((0, 3))).shape == (0, 3)


def test_gelu_approximation_error_is_below_the_documented_one():
    x = np.linspace(-10, 10, 20001)
    gap = np.abs(snp.gelu(x) - snp.gelu(x, approximate="tanh")).max()
    assert 4e-4 < gap < 5e-4


def test_gelu_refuses_an_unknown_approximation():
    text = error_text("gelu", np.zeros(3), approximate="erf")
    assert text == "approximate must be 'none' or 'tanh', got 'erf'"


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (0, 3, 5), (2, 1)])
def test_linear_equals_torch(shape, with_bias, rng):
    x, weight = rng.standard_normal(shape), rng.standard_normal((7, shape[-1]))
    bias = rng.standard_normal(7) if with_bias else None
    assert_equals_reference("linear", (x, weight, bias), functional.linear, rng)
    check_backward(snp.linear, snp.linear_backward, (x, weight, bias), rng)


def test_linear_in_the_row_convention_of_the_notes():
    """Case B19: y = x W + b; with a W that is not square a missing .T cannot pass."""
    x = np.array([[1.0, 2.0]])
    W = np.array([[1.0, 0.0, -1.0], [2.0, 1.0, 3.0]])
    b = np.array([0.5, 0.0, -0.5])
    assert_allclose(run("linear", x, W.T, b), [[5.5, 2.0, 4.5]], atol=1e-12)
    assert error_text("linear", x, W, b) == (
        "weight must have shape (F, 2), got (2, 3); weight is (outputs, inputs)"
    )


def test_linear_refuses_a_bias_of_another_size():
    text = error_text("linear", np.zeros((3, 5)), np.zeros((7, 5)), np.zeros(5))
    assert text == "bias must have shape (7,), got (5,)"


def test_linear_refuses_a_list():
    with pytest.raises(ValueError, match=r"^x must be an array or a tensor, got a list$"):
        snp.linear([1.0, 2.0], np.zeros((7, 2)))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 5), -1), ((3, 5), 0), ((2, 3, 5), 1), ((2, 0, 5), -1), ((0, 5), 1), ((1, 1), 0)],
)
@pytest.mark.parametrize("name", ALONG_AXIS)
def test_softmax_equals_torch(name, shape, axis, rng):
    x = 3 * rng.standard_normal(shape)
    assert_equals_reference(name, (x,), lambda t: ALONG_AXIS[name](t, axis), rng, axis=axis)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("name", ALONG_AXIS)
def test_softmax_backward(name, axis, rng):
    forward, backward = getattr(snp, name), getattr(snp, f"{name}_backward")
    x = rng.standard_normal((3, 5))
    check_backward(forward, backward, (x,), rng, kwargs={"axis": axis})


@pytest.mark.parametrize("name", ALONG_AXIS)
def test_softmax_float32(name, rng):
    x = (3 * rng.standard_normal((3, 5))).astype(np.float32)
    assert getattr(snp, name)(x).dtype == np.float32
    reference = lambda t: ALONG_AXIS[name](t, -1)  # noqa: E731
    assert_equals_reference(name, (x,), reference, rng, rtol=2e-6, grad_rtol=2e-6)


def test_softmax_by_hand():
    """exp(0) : exp(ln 2) : exp(ln 3) = 1 : 2 : 3, whose sum is 6."""
    x = np.log([1.0, 2.0, 3.0])
    assert_allclose(run("softmax", x), [1 / 6, 2 / 6, 3 / 6], rtol=1e-14)
    assert_allclose(run("log_softmax", x), np.log([1 / 6, 2 / 6, 3 / 6]), rtol=1e-14)
    # With dy = (6, 0, 0), sum(dy y) = 1: dx = (1/6 (6 - 1), 2/6 (-1), 3/6 (-1)).
    dy = np.array([6.0, 0.0, 0.0])
    assert_allclose(snp.softmax_backward(dy, x), [5 / 6, -2 / 6, -3 / 6], rtol=1e-14)


def test_softmax_and_sigmoid_of_huge_numbers():
    """Case A56: exact values and no warning."""
    x = np.array([[1000.0, 1001.0, 999.0], [-1e30, -1e30, -1e30]])
    expected = [[0.24472847105479764, 0.6652409557748218, 0.09003057317038046], [1 / 3] * 3]
    assert_allclose(run("softmax", x), expected, rtol=1e-9)
    assert_allclose(run("log_softmax", x), np.log(expected), rtol=1e-9)
    assert_array_equal(run("sigmoid", np.array([-1000.0, 0.0, 1000.0])), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_over_the_whole_range_of_a_dtype(dtype):
    low, high = np.finfo(dtype).min, np.finfo(dtype).max
    x = np.array([low, high, high], dtype)
    y = run("softmax", x)
    assert y.dtype == dtype
    assert_array_equal(y, [0, 0.5, 0.5])


def test_softmax_of_minus_infinity():
    """An entry of -inf has weight 0; a row of them has weights 0, and gradients stay finite."""
    x = np.array([[0.0, -np.inf, np.log(3.0)], [-np.inf, -np.inf, -np.inf]])
    expected = [[0.25, 0, 0.75], [0, 0, 0]]
    assert_allclose(run("softmax", x), expected, rtol=1e-14, atol=0)
    logs = [[math.log(0.25), -np.inf, math.log(0.75)], [-np.inf] * 3]
    assert_allclose(run("log_softmax", x), logs, rtol=1e-14)

    dy = np.array([[1.0, 5.0, 2.0], [1.0, 2.0, 3.0]])
    by_hand = snp.softmax_backward(dy, x)
    # sum(dy y) = 1.75 in the first row.
    assert_allclose(by_hand, [[0.25 * -0.75, 0, 0.75 * 0.25], [0, 0, 0]], rtol=1e-14, atol=0)
    (t,) = tensors([x], grad=True)
    spt.softmax(t).backward(torch.tensor(dy))
    assert_allclose(t.grad, by_hand, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ALONG_AXIS)
def test_softmax_refuses_an_empty_axis(name):
    text = error_text(name, np.zeros((3, 0)))
    assert text == "x must have an entry along axis -1, got shape (3, 0)"


ROWS = hnp.arrays(np.float64, (3, 5), elements=st.floats(-50, 50))


@given(x=ROWS, shift=st.floats(-1000, 1000))
def test_softmax_sums_to_one_and_ignores_a_shift(x, shift):
    y = run("softmax", x)
    assert_allclose(y.sum(axis=-1), 1, rtol=1e-12)
    assert (y > 0).all()
    assert_allclose(run("softmax", x + shift), y, rtol=1e-9)
    assert_allclose(np.exp(run("log_softmax", x)), y, rtol=1e-12)


@given(x=ROWS, order=st.permutations(range(5)))
def test_softmax_is_equivariant(x, order):
    assert_allclose(run("softmax", x[:, order]), run("softmax", x)[:, order], rtol=1e-12)


@given(x=ROWS)
def test_sigmoid_is_symmetric(x):
    assert_allclose(run("sigmoid", -x), 1 - run("sigmoid", x), rtol=0, atol=1e-15)
