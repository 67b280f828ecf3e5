"""Jacobians through time, and clipping by norm and by value in both backends."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from recurrent import as_tensors, make_args

import seqlib.np as snp
import seqlib.pt as spt

BACKENDS = pytest.mark.parametrize("backend", [snp, spt])


# --- The Jacobian of equation (4)


@pytest.mark.parametrize("sizes", [(2, 3, 5, 7), (3, 7, 2, 5), (1, 1, 1, 1), (2, 0, 3, 4)])
def test_jacobian_equals_autograd(sizes, rng):
    B, T, _, H = sizes
    args = make_args("rnn", rng, *sizes, scale=0.8)
    jacobian = snp.rnn_jacobian(*args)
    assert jacobian.shape == (T, B, H, H)
    x, h0, *parameters = as_tensors(args)
    for t in range(T):
        _, h_t = spt.rnn(x[:, :t], h0, *parameters)
        for b in range(B):
            expected = torch.autograd.functional.jacobian(
                lambda h, b=b, t=t: spt.rnn(x[b : b + 1, t:], h[None], *parameters)[1][0],
                h_t[b],
            )
            assert_allclose(jacobian[t, b], expected, rtol=1e-9, atol=1e-12)


def test_jacobian_carries_gradients_as_its_transpose(rng):
    """The notes' product (4) is the transpose: it maps dL/dh_T to dL/dh_0."""
    args = make_args("rnn", rng, 2, 5, 3, 7)
    y, h_n = snp.rnn(*args)
    dh_n = rng.standard_normal(h_n.shape)
    _, dh0, *_ = snp.rnn_backward((np.zeros_like(y), dh_n), *args)
    jacobian = snp.rnn_jacobian(*args)[0]
    assert_allclose(np.einsum("bij,bi->bj", jacobian, dh_n), dh0, rtol=1e-9)

    weight_hh = args[3]
    product = np.broadcast_to(np.eye(7), (2, 7, 7))
    for t in range(5):  # tau increases from left to right, as (4) is written
        product = product @ (weight_hh.T * (1 - y[:, t, None, :] ** 2))
    assert_allclose(product, jacobian.swapaxes(1, 2), rtol=1e-9, atol=1e-12)


def test_norm_by_lag_is_the_spectral_norm(rng):
    args = make_args("rnn", rng, 2, 5, 3, 7)
    jacobian, norms = snp.rnn_jacobian(*args), snp.jacobian_norm_by_lag(*args)
    assert norms.shape == (6, 2)
    assert_array_equal(norms[0], [1, 1])
    for lag in range(1, 6):
        for b in range(2):
            largest = np.linalg.svd(jacobian[5 - lag, b], compute_uv=False)[0]
            assert_allclose(norms[lag, b], largest, rtol=1e-12)


def linear_rnn(weight_hh, T):
    """Return arguments with all states 0, so that the Jacobian is a power of the matrix."""
    H = len(weight_hh)
    return np.zeros((1, T, 1)), np.zeros((1, H)), np.zeros((H, 1)), weight_hh, None, None


def test_a_large_singular_value_alone_explodes_nothing():
    """[[0, 10], [0, 0]] has the largest singular value 10, and its square is 0."""
    norms = snp.jacobian_norm_by_lag(*linear_rnn(np.array([[0.0, 10.0], [0.0, 0.0]]), 3))
    assert_allclose(norms[:, 0], [1, 10, 0, 0], atol=1e-12)


def test_a_spectral_radius_of_0_does_not_prevent_growth():
    """W = 3 [[1, 1], [-1, -1]] has W^2 = 0; with sums held at (0, 2) the norm grows.

    One unit is linear, the other saturated, and the product of diag(1, 0.07) W no longer
    cancels: its eigenvalue is 3 (1 - 0.07) = 2.79 a step.
    """
    weight_hh = 3 * np.array([[1.0, 1.0], [-1.0, -1.0]])
    assert_allclose(weight_hh @ weight_hh, 0)
    assert_allclose(snp.jacobian_norm_by_lag(*linear_rnn(weight_hh, 2))[2], 0, atol=1e-12)

    held = np.array([0.0, 2.0])
    state = np.tanh(held)
    x = np.broadcast_to(held - weight_hh @ state, (1, 20, 2))
    norms = snp.jacobian_norm_by_lag(x, state[None], np.eye(2), weight_hh, None, None)[:, 0]
    assert_allclose(norms[[1, 5]], [4.3, 257], rtol=0.02)
    assert_allclose(norms[[10, 20]], [4.3e4, 1.2e9], rtol=0.03)
    assert_allclose(norms[2:] / norms[1:-1], 3 - 3 * (1 - np.tanh(2) ** 2), rtol=1e-6)


# --- Clipping


def arrays(backend, values, dtype="float64"):
    make = np.array if backend is snp else torch.tensor
    return [make(v, dtype=getattr(np if backend is snp else torch, dtype)) for v in values]


@BACKENDS
def test_clip_by_the_joint_norm(backend):
    """Case A25: each array by itself would become [0.6, 0.8] and [1.0]."""
    grads = arrays(backend, [[3, 4], [12]])
    clipped, norm = backend.clip_grad_norm(grads, max_norm=1)
    assert norm == 13.0
    expected = [[0.23076923076923078, 0.3076923076923077], [0.9230769230769231]]
    for ours, wanted in zip(clipped, expected, strict=True):
        assert_allclose(ours, wanted, rtol=1e-6)
    clipped, norm = backend.clip_grad_norm(grads, max_norm=20)
    assert norm == 13.0
    assert_array_equal(clipped[0], [3, 4])
    assert_array_equal(clipped[1], [12])


@BACKENDS
@pytest.mark.parametrize("max_norm", [1e-3, 0.5, 5.0, 5.001, 1e9])
def test_clip_equals_torch(backend, max_norm):
    parameters = [torch.zeros(2, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)]
    for parameter, grad in zip(parameters, ([3.0, 0.0], [4.0]), strict=True):
        parameter.grad = torch.tensor(grad, dtype=torch.float64)
    expected_norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    clipped, norm = backend.clip_grad_norm(arrays(backend, [[3, 0], [4]]), max_norm=max_norm)
    assert_allclose(norm, expected_norm, rtol=1e-12)
    for ours, parameter in zip(clipped, parameters, strict=True):
        assert_allclose(ours, parameter.grad, rtol=1e-12)


@BACKENDS
@pytest.mark.parametrize(
    ("norm", "factor"), [(5.0, 5 / 5.000001), (0.005, 0.005 / 0.005001), (0.0, 0.0)]
)
def test_the_small_constant_acts_at_the_threshold(backend, norm, factor):
    """0.9999998 at norm 5, 0.9998 at norm 0.005, and no 0 / 0 at norm 0."""
    (clipped,), found = backend.clip_grad_norm(arrays(backend, [[norm]]), max_norm=norm or 1.0)
    assert found == norm
    assert_allclose(clipped, [norm * factor], rtol=1e-12)


@BACKENDS
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_norm_that_is_not_finite_is_refused(backend, bad):
    """Case A25: a scale would spread NaN to every parameter, or silently zero them all."""
    grads = arrays(backend, [[3, bad], [12]])
    shown = "nan" if np.isnan(bad) else "inf"
    with pytest.raises(ValueError, match=f"^grads must have a finite norm, got {shown}; skip"):
        backend.clip_grad_norm(grads, max_norm=1)


@BACKENDS
def test_squares_do_not_overflow_in_float32(backend):
    grads = arrays(backend, [[3e20, 4e20]], "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (clipped,), norm = backend.clip_grad_norm(grads, max_norm=1.0)
    assert_allclose(norm, 5e20, rtol=1e-6)
    assert_allclose(clipped, [0.6, 0.8], rtol=1e-6)
    assert "float32" in str(clipped.dtype)


@BACKENDS
def test_squares_that_overflow_float64_are_an_error_and_no_warning(backend):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"^grads must have a finite norm, got inf"):
            backend.clip_grad_norm(arrays(backend, [[1e200]]), max_norm=1.0)


@BACKENDS
def test_clip_by_value(backend):
    """The docstring's example; and an infinity is limited like any other number."""
    clipped = backend.clip_grad_value(arrays(backend, [[3, 4], [12]]), clip_value=3.5)
    assert_array_equal(clipped[0], [3, 3.5])
    assert_array_equal(clipped[1], [3.5])
    (clipped,) = backend.clip_grad_value(
        arrays(backend, [[-np.inf, -0.1, np.nan]]), clip_value=0.2
    )
    assert_array_equal(clipped, [-0.2, -0.1, np.nan])


@BACKENDS
def test_containers_and_none_are_kept_and_inputs_are_not_modified(backend):
    for clip in (
        lambda g: backend.clip_grad_norm(g, max_norm=0.1)[0],
        lambda g: backend.clip_grad_value(g, clip_value=0.1),
    ):
        weight, bias = arrays(backend, [[[3, 4]], [12]])
        for grads in (
            [weight, None, bias],
            (weight, None, bias),
            {"w": weight, "x": None, "b": bias},
        ):
            clipped = clip(grads)
            assert type(clipped) is type(grads)
            values = list(clipped.values()) if isinstance(grads, dict) else list(clipped)
            if isinstance(grads, dict):
                assert list(clipped) == ["w", "x", "b"]
            assert values[1] is None
            assert values[0].shape == weight.shape
            assert_array_equal(weight, [[3, 4]])
            assert_array_equal(bias, [12])
            assert float(abs(values[2]).max()) < 0.11


@BACKENDS
def test_wrong_arguments_are_refused(backend):
    (grad,) = arrays(backend, [[3, 4]])
    for value in (0, -1.0, np.nan):
        with pytest.raises(ValueError, match=rf"^max_norm must be positive, got {value}$"):
            backend.clip_grad_norm([grad], max_norm=value)
        with pytest.raises(ValueError, match=rf"^clip_value must be positive, got {value}$"):
            backend.clip_grad_value([grad], clip_value=value)
    message = r"^grads must be a list, a tuple or a dict, got a \w+; put a single"
    with pytest.raises(ValueError, match=message):
        backend.clip_grad_norm(grad, max_norm=1)
    with pytest.raises(ValueError, match=message):
        backend.clip_grad_value(grad, clip_value=1)
