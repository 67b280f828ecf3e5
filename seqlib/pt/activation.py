"""Elementwise functions, the linear map and softmax; twins of ``seqlib.np.activation``."""

import torch
from torch.nn import functional

from seqlib._check import check_choice, check_not_empty, check_shape

__all__ = ["gelu", "linear", "log_softmax", "relu", "sigmoid", "silu", "softmax"]


def linear(x, weight, bias=None):
    r"""Linear map of the last axis; twin of ``seqlib.np.linear``.

    .. math:: y = x W^\top + b

    The lecture notes write ``Q = X W`` with ``W`` of shape ``(D, F)``: pass ``W.T``.

    Parameters
    ----------
    x : Tensor of shape (..., D)
        Inputs.
    weight : Tensor of shape (F, D)
        One row of weights per output feature.
    bias : Tensor of shape (F,), optional
        Added to every output.

    Returns
    -------
    Tensor of shape (..., F)
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


def sigmoid(x):
    r"""Logistic function, applied to each entry; twin of ``seqlib.np.sigmoid``.

    .. math:: \sigma(x) = \frac{1}{1 + e^{-x}}

    Parameters
    ----------
    x : Tensor of shape (...)
        Inputs.

    Returns
    -------
    Tensor of shape (...)
        Values between 0 and 1.
    """
    return torch.sigmoid(x)


def relu(x):
    r"""Rectified linear unit, applied to each entry; twin of ``seqlib.np.relu``.

    .. math:: \mathrm{relu}(x) = \max(x, 0)

    Parameters
    ----------
    x : Tensor of shape (...)
        Inputs.

    Returns
    -------
    Tensor of shape (...)
        ``x`` where it is positive, 0 elsewhere.
    """
    return torch.relu(x)


def silu(x):
    r"""Sigmoid-weighted linear unit, applied to each entry; twin of ``seqlib.np.silu``.

    .. math:: \mathrm{silu}(x) = x \, \sigma(x)

    Parameters
    ----------
    x : Tensor of shape (...)
        Inputs.

    Returns
    -------
    Tensor of shape (...)
        Outputs.
    """
    return x * torch.sigmoid(x)


def gelu(x, *, approximate="none"):
    r"""Gaussian error linear unit, applied to each entry; twin of ``seqlib.np.gelu``.

    .. math::

        \mathrm{gelu}(x) &= x \, \Phi(x)
            = \frac{x}{2} \left(1 + \mathrm{erf}(x / \sqrt{2})\right) \\
        \mathrm{gelu_{tanh}}(x) &= \frac{x}{2}
            \left(1 + \tanh\left(\sqrt{2 / \pi} \, (x + 0.044715 \, x^3)\right)\right)

    Parameters
    ----------
    x : Tensor of shape (...)
        Inputs.
    approximate : {"none", "tanh"}, default="none"
        The first formula or the second; they differ by less than 5e-4.

    Returns
    -------
    Tensor of shape (...)
        Outputs.

    Raises
    ------
    ValueError
        If ``approximate`` is neither of the two.
    """
    check_choice("approximate", approximate, ("none", "tanh"))
    return functional.gelu(x, approximate=approximate)


def softmax(x, *, axis=-1):
    r"""Softmax along one axis; twin of ``seqlib.np.softmax``.

    .. math:: y_i = \frac{\exp(x_i)}{\sum_j \exp(x_j)}
        = \frac{\exp(x_i - m)}{\sum_j \exp(x_j - m)}, \qquad m = \max_j x_j

    The softmax of ``[0, ln 2, ln 3]`` is ``[1, 2, 3] / 6``.

    An entry of -inf gives exactly 0. A slice of nothing but -inf gives zeros and a gradient of
    zeros, where ``torch.softmax`` gives NaN.

    Parameters
    ----------
    x : Tensor of shape (..., S)
        Scores, below +inf.
    axis : int, default=-1
        Axis along which the result sums to 1.

    Returns
    -------
    Tensor of shape (..., S)
        Weights.

    Raises
    ------
    ValueError
        If ``x`` has no entry along ``axis``.
    """
    e = torch.exp(_shift(x, axis))
    return e / _total(e, axis)


def log_softmax(x, *, axis=-1):
    r"""Logarithm of :func:`softmax`; twin of ``seqlib.np.log_softmax``.

    .. math:: y_i = x_i - m - \log \sum_j \exp(x_j - m), \qquad m = \max_j x_j

    An entry of -inf gives -inf.

    Parameters
    ----------
    x : Tensor of shape (..., V)
        Scores, below +inf.
    axis : int, default=-1
        Axis along which the exponentials of the result sum to 1.

    Returns
    -------
    Tensor of shape (..., V)
        Logarithms of the weights.

    Raises
    ------
    ValueError
        If ``x`` has no entry along ``axis``.
    """
    shifted = _shift(x, axis)
    return shifted - torch.log(_total(torch.exp(shifted), axis))


def _shift(x, axis):
    """Subtract the largest entry of each slice; a slice of -inf stays as it is."""
    check_not_empty("x", x, axis)
    # The result does not depend on what is subtracted, so neither does the gradient.
    peak = x.detach().amax(dim=axis, keepdim=True)
    return x - torch.where(peak == -torch.inf, 0, peak)  # -inf - -inf would be NaN


def _total(e, axis):
    """Sum each slice; at least 1, except for a slice of zeros, where 1 stands in for 0."""
    total = e.sum(dim=axis, keepdim=True)
    return torch.where(total == 0, 1, total)
