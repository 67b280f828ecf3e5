"""Elementwise functions, the linear map and softmax, each with its hand-written gradient.

No function here warns or overflows for finite inputs, however large.
"""

import numpy as np

from seqlib._check import check_not_empty, check_shape
from seqlib.np._rectifiers import gelu, gelu_backward, relu, relu_backward

__all__ = [
    "gelu",
    "gelu_backward",
    "linear",
    "linear_backward",
    "log_softmax",
    "log_softmax_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softmax",
    "softmax_backward",
]


def linear(x, weight, bias=None):
    r"""Linear map of the last axis, with the weight stored as PyTorch stores it.

    .. math:: y = x W^\top + b

    The lecture notes write ``Q = X W`` with ``W`` of shape ``(D, F)``: pass ``W.T``.

    Parameters
    ----------
    x : ndarray of shape (..., D)
        Inputs.
    weight : ndarray of shape (F, D)
        One row of weights per output feature.
    bias : ndarray of shape (F,), optional
        Added to every output.

    Returns
    -------
    ndarray of shape (..., F)
        Outputs.

    Raises
    ------
    ValueError
        If ``weight`` or ``bias`` does not fit.
    """
    check_shape("x", x, ("...", "D"))
    check_shape("weight", weight, ("F", x.shape[-1]), fix="weight is (outputs, inputs)")
    y = x @ weight.T
    if bias is None:
        return y
    check_shape("bias", bias, weight.shape[:1])
    return y + bias


def linear_backward(dy, x, weight, bias=None):
    """Vector-Jacobian product of :func:`linear`.

    Parameters
    ----------
    dy : ndarray of shape (..., F)
        Gradient of the loss with respect to the output.
    x, weight, bias
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., D)
        Gradient with respect to ``x``.
    dweight : ndarray of shape (F, D)
        Gradient with respect to ``weight``.
    dbias : ndarray of shape (F,)
        Gradient with respect to ``bias``; None if there is none.
    """
    rows_x = x.reshape(-1, x.shape[-1])  # (rows, D)
    rows_dy = dy.reshape(-1, dy.shape[-1])  # (rows, F)
    # Every row used the same weight and bias, so their gradients are sums over rows.
    dbias = None if bias is None else rows_dy.sum(axis=0)
    return dy @ weight, rows_dy.T @ rows_x, dbias


def sigmoid(x):
    r"""Logistic function, applied to each entry.

    .. math:: \sigma(x) = \frac{1}{1 + e^{-x}}

    For negative ``x`` both sides of the fraction are multiplied by ``exp(x)``, so that no
    exponential exceeds 1: ``sigmoid(-1000)`` is 0 without an overflow.

    Parameters
    ----------
    x : ndarray of shape (...)
        Inputs.

    Returns
    -------
    ndarray of shape (...)
        Values between 0 and 1.
    """
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def sigmoid_backward(dy, x):
    """Vector-Jacobian product of :func:`sigmoid`.

    Parameters
    ----------
    dy : ndarray of shape (...)
        Gradient of the loss with respect to the output.
    x
        The argument of the forward call.

    Returns
    -------
    ndarray of shape (...)
        Gradient with respect to ``x``.
    """
    y = sigmoid(x)
    return dy * y * (1 - y)


def silu(x):
    r"""Sigmoid-weighted linear unit, applied to each entry.

    .. math:: \mathrm{silu}(x) = x \, \sigma(x)

    Parameters
    ----------
    x : ndarray of shape (...)
        Inputs.

    Returns
    -------
    ndarray of shape (...)
        Outputs.

    References
    ----------
    Elfwing, Uchibe and Doya (2018), "Sigmoid-weighted linear units for neural network
    function approximation in reinforcement learning", arXiv:1702.03118.
    """
    return x * sigmoid(x)


def silu_backward(dy, x):
    """Vector-Jacobian product of :func:`silu`.

    Parameters
    ----------
    dy : ndarray of shape (...)
        Gradient of the loss with respect to the output.
    x
        The argument of the forward call.

    Returns
    -------
    ndarray of shape (...)
        Gradient with respect to ``x``.
    """
    s = sigmoid(x)
    return dy * (s + x * s * (1 - s))


def softmax(x, *, axis=-1):
    r"""Softmax along one axis: non-negative numbers that sum to 1.

    .. math:: y_i = \frac{\exp(x_i)}{\sum_j \exp(x_j)}
        = \frac{\exp(x_i - m)}{\sum_j \exp(x_j - m)}, \qquad m = \max_j x_j

    The softmax of ``[0, ln 2, ln 3]`` is ``[1, 2, 3] / 6``. The second form is the one
    computed: no exponential in it exceeds 1.

    An entry of -inf gives exactly 0. A slice of nothing but -inf gives zeros, not 0/0 (in
    attention: a query with no key to attend to), and a gradient of zeros.

    Parameters
    ----------
    x : ndarray of shape (..., S)
        Scores, below +inf.
    axis : int, default=-1
        Axis along which the result sums to 1.

    Returns
    -------
    ndarray of shape (..., S)
        Weights.

    Raises
    ------
    ValueError
        If ``x`` has no entry along ``axis``.

    References
    ----------
    Lecture notes, equations (6) and (7).
    """
    e = _shift(x, axis)
    # In place: fresh memory of this size takes longer than the arithmetic.
    e = np.exp(e, out=e if e.dtype.kind == "f" else None)
    e /= _total(e, axis)
    return e


def softmax_backward(dy, x, *, axis=-1):
    r"""Vector-Jacobian product of :func:`softmax`.

    .. math:: dx_i = y_i \Bigl(dy_i - \sum_j dy_j \, y_j\Bigr)

    Parameters
    ----------
    dy : ndarray of shape (..., S)
        Gradient of the loss with respect to the output.
    x, axis
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (..., S)
        Gradient with respect to ``x``.
    """
    y = softmax(x, axis=axis)
    return y * (dy - (dy * y).sum(axis=axis, keepdims=True))


def log_softmax(x, *, axis=-1):
    r"""Logarithm of :func:`softmax`, computed without taking the logarithm of a tiny number.

    .. math:: y_i = x_i - m - \log \sum_j \exp(x_j - m), \qquad m = \max_j x_j

    An entry of -inf gives -inf.

    Parameters
    ----------
    x : ndarray of shape (..., V)
        Scores, below +inf.
    axis : int, default=-1
        Axis along which the exponentials of the result sum to 1.

    Returns
    -------
    ndarray of shape (..., V)
        Logarithms of the weights.

    Raises
    ------
    ValueError
        If ``x`` has no entry along ``axis``.
    """
    shifted = _shift(x, axis)
    return shifted - np.log(_total(np.exp(shifted), axis))


def log_softmax_backward(dy, x, *, axis=-1):
    r"""Vector-Jacobian product of :func:`log_softmax`.

    .. math:: dx_i = dy_i - \mathrm{softmax}(x)_i \sum_j dy_j

    Parameters
    ----------
    dy : ndarray of shape (..., V)
        Gradient of the loss with respect to the output.
    x, axis
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (..., V)
        Gradient with respect to ``x``.
    """
    return dy - softmax(x, axis=axis) * dy.sum(axis=axis, keepdims=True)


def _shift(x, axis):
    """Subtract the largest entry of each slice; a slice of -inf stays as it is."""
    check_not_empty("x", x, axis)
    peak = x.max(axis=axis, keepdims=True)
    peak = np.where(peak == -np.inf, 0, peak)  # -inf - -inf would be NaN
    with np.errstate(over="ignore"):  # a gap beyond the largest float becomes -inf: exp gives 0
        return x - peak


def _total(e, axis):
    """Sum each slice; at least 1, except for a slice of zeros, where 1 stands in for 0."""
    total = e.sum(axis=axis, keepdims=True)
    return np.where(total == 0, 1, total)
