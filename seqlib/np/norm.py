"""Normalisation of each token over its features, with hand-written gradients."""

import numpy as np

from seqlib._check import check_shape

__all__ = ["layer_norm", "layer_norm_backward", "rms_norm", "rms_norm_backward"]


def layer_norm(x, weight, bias, *, eps=1e-5):
    r"""Layer normalisation over the last axis.

    .. math:: y = \gamma \odot \hat{x} + \beta, \qquad
        \hat{x} = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}, \qquad
        \mu = \frac{1}{D} \sum_i x_i, \qquad
        \sigma^2 = \frac{1}{D} \sum_i (x_i - \mu)^2

    The row ``[3, 1, 1, 1]`` has mean 1.5 and variance 0.75, so ``x_hat`` is 1.5 / 0.866 =
    1.732 in the first place and -0.577 in the others.
    For float16 the statistics are taken in float32.

    Parameters
    ----------
    x : ndarray of shape (..., D)
        Inputs. The mean and the biased variance (division by ``D``) are taken over ``D``.
    weight : ndarray of shape (D,)
        The gain, gamma.
    bias : ndarray of shape (D,)
        The shift, beta.
    eps : float, default=1e-5
        Added to the variance, inside the square root: a constant row gives ``bias``.

    Returns
    -------
    ndarray of shape (..., D)
        Normalised inputs, scaled and shifted.

    Raises
    ------
    ValueError
        If ``weight`` or ``bias`` is not of shape ``(D,)``.

    References
    ----------
    Lecture notes, equations (19) and (20). Ba, Kiros and Hinton (2016), "Layer
    Normalization", Section 3, arXiv:1607.06450.
    """
    check_shape("weight", weight, x.shape[-1:])
    check_shape("bias", bias, x.shape[-1:])
    x_hat, _ = _standardise(x, eps)
    return (x_hat * weight + bias).astype(np.result_type(x, weight), copy=False)


def layer_norm_backward(dy, x, weight, bias, *, eps=1e-5):
    """Vector-Jacobian product of :func:`layer_norm`.

    Parameters
    ----------
    dy : ndarray of shape (..., D)
        Gradient of the loss with respect to the output.
    x, weight, bias, eps
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., D)
        Gradient with respect to ``x``.
    dweight : ndarray of shape (D,)
        Gradient with respect to ``weight``.
    dbias : ndarray of shape (D,)
        Gradient with respect to ``bias``.
    """
    x_hat, rstd = _standardise(x, eps)
    dy = _widen(dy)
    dx_hat = dy * weight
    # The mean and the variance also depend on x: one correction for each.
    via_mean = dx_hat.mean(axis=-1, keepdims=True)
    via_var = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = rstd * (dx_hat - via_mean - via_var)
    dweight, dbias = _sum_rows(dy * x_hat), _sum_rows(dy)
    return dx.astype(x.dtype), dweight.astype(weight.dtype), dbias.astype(bias.dtype)


def rms_norm(x, weight, *, eps=1e-6):
    r"""Normalisation by the root mean square over the last axis: no centring, no shift.

    .. math:: y = \gamma \odot \hat{x}, \qquad
        \hat{x} = \frac{x}{\sqrt{\frac{1}{D} \sum_i x_i^2 + \epsilon}}

    The row ``[3, 1, 1, 1]`` has mean square 12 / 4 = 3, so ``x_hat`` is 3 / 1.732 = 1.732 in
    the first place and 0.577 in the others.
    For float16 the statistics are taken in float32: 300 squared is beyond its largest number.

    Parameters
    ----------
    x : ndarray of shape (..., D)
        Inputs. The mean of the squares is taken over ``D``.
    weight : ndarray of shape (D,)
        The gain, gamma.
    eps : float, default=1e-6
        Added to the mean square, inside the square root: a row of zeros gives zeros.

    Returns
    -------
    ndarray of shape (..., D)
        Normalised inputs, scaled.

    Raises
    ------
    ValueError
        If ``weight`` is not of shape ``(D,)``.

    References
    ----------
    Lecture notes, equation (21). Zhang and Sennrich (2019), "Root Mean Square Layer
    Normalization", Section 4, arXiv:1910.07467.
    """
    check_shape("weight", weight, x.shape[-1:])
    x_hat, _ = _scale_to_unit_rms(x, eps)
    return (x_hat * weight).astype(np.result_type(x, weight), copy=False)


def rms_norm_backward(dy, x, weight, *, eps=1e-6):
    """Vector-Jacobian product of :func:`rms_norm`.

    Parameters
    ----------
    dy : ndarray of shape (..., D)
        Gradient of the loss with respect to the output.
    x, weight, eps
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., D)
        Gradient with respect to ``x``.
    dweight : ndarray of shape (D,)
        Gradient with respect to ``weight``.
    """
    x_hat, rrms = _scale_to_unit_rms(x, eps)
    dy = _widen(dy)
    dx_hat = dy * weight
    via_rms = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = rrms * (dx_hat - via_rms)
    return dx.astype(x.dtype), _sum_rows(dy * x_hat).astype(weight.dtype)


def _standardise(x, eps):
    x = _widen(x)
    centred = x - x.mean(axis=-1, keepdims=True)  # (..., D)
    var = np.mean(centred**2, axis=-1, keepdims=True)  # (..., 1)
    rstd = 1 / np.sqrt(var + eps)
    return centred * rstd, rstd


def _scale_to_unit_rms(x, eps):
    x = _widen(x)
    rrms = 1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)  # (..., 1)
    return x * rrms, rrms


def _widen(x):
    """Return float16 as float32, anything else unchanged."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _sum_rows(x):
    """Sum over every axis but the last: a parameter shared by all rows."""
    return x.sum(axis=tuple(range(x.ndim - 1)))
