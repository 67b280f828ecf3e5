"""Positions: added to the tokens (16), rotated into queries and keys, or added to scores."""

import math

import torch
from torch import nn

from seqlib._check import check_positive, check_shape

__all__ = ["LearnedPositions", "alibi_bias", "rotary", "sinusoidal_positions"]


def sinusoidal_positions(T, D, *, base=10000.0, offset=0):
    r"""Return fixed position vectors; twin of :func:`seqlib.np.sinusoidal_positions`.

    .. math:: p_{t, 2k} = \sin(t \cdot b^{-2k/D}), \qquad p_{t, 2k+1} = \cos(t \cdot b^{-2k/D})

    Columns 2k and 2k + 1 share a frequency; positions start at 0. An odd ``D`` ends with a
    sine.

    Parameters
    ----------
    T : int
        Number of positions.
    D : int
        Features of a position vector.
    base : float, default=10000.0
        The number b: wavelengths grow from 2 pi towards 2 pi times ``base``.
    offset : int, default=0
        Position of the first row, for example the number of tokens already in a cache.

    Returns
    -------
    Tensor of shape (T, D)
        Position vectors in float64. Cast them to the dtype of the tokens before adding.

    Raises
    ------
    ValueError
        If ``T``, ``D`` or ``base`` is not positive.

    References
    ----------
    Lecture notes, the vectors p of equation (16). Vaswani et al. (2017), "Attention Is All
    You Need", Section 3.5, arXiv:1706.03762.
    """
    check_positive("T", T)
    check_positive("D", D)
    _check_base(base)
    position = offset + torch.arange(T, dtype=torch.float64)[:, None]  # (T, 1)
    column = torch.arange(D)
    angle = position * base ** (-2 * (column // 2).double() / D)  # (T, D)
    return torch.where(column % 2 == 0, torch.sin(angle), torch.cos(angle))


def rotary(x, *, offset=0, base=10000.0):
    r"""Rotate queries or keys by their position (an extra); twin of :func:`seqlib.np.rotary`.

    .. math:: y_k = x_k \cos t\theta_k - x_{k + K/2} \sin t\theta_k, \qquad
        y_{k + K/2} = x_{k + K/2} \cos t\theta_k + x_k \sin t\theta_k, \qquad
        \theta_k = b^{-2k/K}

    Parameters
    ----------
    x : Tensor of shape (..., T, K)
        Queries or keys of one head, K even.
    offset : int or Tensor of int of shape (B,), default=0
        Position of the first row: one for all sequences, or one for each entry of the first
        axis of ``x`` (minus the number of padded tokens, for a batch padded on the left).
    base : float, default=10000.0
        The number b.

    Returns
    -------
    Tensor of shape (..., T, K)
        Rotated features, each pair with the length it had.

    Raises
    ------
    ValueError
        If K is odd, ``offset`` does not fit the first axis, or ``base`` is not positive.

    References
    ----------
    Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    Section 3.2, arXiv:2104.09864.
    """
    cos, sin = rotation(x, offset, base)
    return rotate(x, cos, sin)


def rotate(x, cos, sin):
    """Turn each pair of x by an angle given as cosine and sine."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def rotation(x, offset, base):
    """Return cosine and sine of the angles, of a shape that broadcasts over the pairs of x."""
    check_shape("x", x, ("...", "T", "K"))
    T, K = x.shape[-2:]
    if K % 2 != 0:
        raise ValueError(f"x must have an even number of features to form pairs, got {K}")
    _check_base(base)
    offset = torch.as_tensor(offset, device=x.device)
    if offset.ndim > 0:
        check_shape("offset", offset, x.shape[:1], fix="give one position per sequence")
        offset = offset.reshape(-1, *[1] * (x.ndim - 2))  # (B, 1, ..., 1)
    position = offset + torch.arange(T, device=x.device)  # (T,) or (B, 1, ..., T)
    frequency = base ** (-2 * torch.arange(K // 2, device=x.device).double() / K)
    angle = position[..., None] * frequency  # (..., T, K / 2)
    return torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)


def alibi_bias(N, T, S):
    r"""Return linear attention biases (an extra); twin of :func:`seqlib.np.alibi_bias`.

    .. math:: M_{nij} = -m_n \, |i + S - T - j|, \qquad m_n = 2^{-8 n / N}, \quad n = 1 \dots N

    Parameters
    ----------
    N : int
        Number of heads.
    T : int
        Number of queries.
    S : int
        Number of keys.

    Returns
    -------
    Tensor of shape (N, T, S)
        Additive biases in float64, 0 where query and key are the same token.

    Raises
    ------
    ValueError
        If a size is not positive.

    References
    ----------
    Press, Smith and Lewis (2021), "Train Short, Test Long: Attention with Linear Biases
    Enables Input Length Extrapolation", Section 3, arXiv:2108.12409.
    """
    for name, size in (("N", N), ("T", T), ("S", S)):
        check_positive(name, size)
    power = 2 ** int(math.log2(N))
    slopes = torch.cat([_slopes(power), _slopes(2 * power)[::2]])[:N]
    query = torch.arange(T)[:, None] + S - T
    return -slopes[:, None, None] * torch.abs(query - torch.arange(S))


def _slopes(power):
    return 2.0 ** (-8 * torch.arange(1, power + 1).double() / power)


def _check_base(base):
    if not base > 0:
        raise ValueError(f"base must be positive, got {base}")


class LearnedPositions(nn.Module):
    """A table of learned position vectors, added to the tokens as in equation (16).

    The parameter ``weight`` of shape (context, D) is named as in :class:`torch.nn.Embedding`.
    It is drawn from a normal distribution of standard deviation 0.02.
    """

    def __init__(self, context, dim):
        super().__init__()
        check_positive("context", context)
        self.weight = nn.Parameter(torch.empty(context, dim))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x, *, offset=0):
        """Add positions ``offset``, ``offset + 1``, ... to ``x`` of shape ``(..., T, D)``."""
        context, D = self.weight.shape
        check_shape("x", x, ("...", "T", D))
        T = x.shape[-2]
        if offset < 0 or offset + T > context:
            raise ValueError(
                f"x must fit in the {context} learned positions, got positions {offset} to "
                f"{offset + T - 1}; cut the sequence or build a longer table"
            )
        return x + self.weight[offset : offset + T]
