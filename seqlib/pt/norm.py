"""Normalisation of each token over its features."""

import torch
import torch.nn.functional as F
from torch import nn

from seqlib._check import check_shape

__all__ = ["LayerNorm", "RMSNorm", "layer_norm", "rms_norm"]


def layer_norm(x, weight, bias, *, eps=1e-5):
    r"""Layer normalisation over the last axis; twin of :func:`seqlib.np.layer_norm`.

    .. math:: y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    For half precision (float16, bfloat16) the statistics are taken in float32.

    Parameters
    ----------
    x : Tensor of shape (..., D)
        Inputs. The mean and the biased variance (division by ``D``) are taken over ``D``.
    weight : Tensor of shape (D,)
        The gain, gamma.
    bias : Tensor of shape (D,)
        The shift, beta.
    eps : float, default=1e-5
        Added to the variance, inside the square root: a constant row gives ``bias``.

    Returns
    -------
    Tensor of shape (..., D)
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
    wide = _widen(x)
    centred = wide - wide.mean(dim=-1, keepdim=True)  # (..., D)
    var = torch.mean(centred**2, dim=-1, keepdim=True)  # (..., 1)
    y = centred * torch.rsqrt(var + eps) * weight + bias
    return y.to(torch.promote_types(x.dtype, weight.dtype))


def rms_norm(x, weight, *, eps=1e-6):
    r"""Normalisation by the root mean square; twin of :func:`seqlib.np.rms_norm`.

    .. math:: y = \gamma \odot \frac{x}{\sqrt{\frac{1}{D} \sum_i x_i^2 + \epsilon}}

    For half precision (float16, bfloat16) the statistics are taken in float32.

    Parameters
    ----------
    x : Tensor of shape (..., D)
        Inputs. The mean of the squares is taken over ``D``.
    weight : Tensor of shape (D,)
        The gain, gamma.
    eps : float, default=1e-6
        Added to the mean square, inside the square root: a row of zeros gives zeros.

    Returns
    -------
    Tensor of shape (..., D)
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
    wide = _widen(x)
    rrms = torch.rsqrt(torch.mean(wide**2, dim=-1, keepdim=True) + eps)  # (..., 1)
    return (wide * rrms * weight).to(torch.promote_types(x.dtype, weight.dtype))


def _widen(x):
    """Return half precision as float32, anything else unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


class LayerNorm(nn.Module):
    """Layer normalisation with learned gain and shift.

    Parameter names follow :class:`torch.nn.LayerNorm`, so its ``state_dict`` loads here.
    The forward pass is PyTorch's fused kernel for :func:`layer_norm`.
    """

    def __init__(self, dim, *, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        """Map ``x`` of shape ``(..., D)`` to the same shape."""
        check_shape("x", x, ("...", *self.weight.shape))
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Normalisation by the root mean square, with learned gain.

    The parameter's name follows :class:`torch.nn.RMSNorm`, so its ``state_dict`` loads here;
    ``eps`` is always a number (PyTorch's default depends on the dtype).
    The forward pass is PyTorch's fused kernel for :func:`rms_norm`.
    """

    def __init__(self, dim, *, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        """Map ``x`` of shape ``(..., D)`` to the same shape."""
        check_shape("x", x, ("...", *self.weight.shape))
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
