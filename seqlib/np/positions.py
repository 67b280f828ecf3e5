"""Positions: added to the tokens (16), rotated into queries and keys, or added to scores."""

import math

import numpy as np

from seqlib._check import check_positive, check_shape

__all__ = ["alibi_bias", "rotary", "rotary_backward", "sinusoidal_positions"]


def sinusoidal_positions(T, D, *, base=10000.0, offset=0):
    r"""Return the fixed position vectors of the original Transformer.

    .. math:: p_{t, 2k} = \sin(t \cdot b^{-2k/D}), \qquad p_{t, 2k+1} = \cos(t \cdot b^{-2k/D})

    Columns 2k and 2k + 1 share a frequency; positions start at 0.
    With D = 4, position 1 is ``[sin 1, cos 1, sin 0.01, cos 0.01]`` =
    ``[0.841, 0.540, 0.010, 1.000]``. An odd ``D`` ends with a sine.

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
    ndarray of shape (T, D)
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
    position = offset + np.arange(T)[:, None]  # (T, 1)
    column = np.arange(D)
    angle = position * base ** (-2 * (column // 2) / D)  # (T, D)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def rotary(x, *, offset=0, base=10000.0):
    r"""Rotate queries or keys by an angle that grows with their position (an extra).

    The features form pairs (k, k + K/2), one from each half. At position t pair k turns by the
    angle :math:`t \theta_k` with :math:`\theta_k = b^{-2k/K}`:

    .. math:: y_k = x_k \cos t\theta_k - x_{k + K/2} \sin t\theta_k, \qquad
        y_{k + K/2} = x_{k + K/2} \cos t\theta_k + x_k \sin t\theta_k

    The dot product of a query at position t with a key at position s then depends on t - s
    only. ``[1, 2, 3, 4]`` at position 1 becomes ``[-1.984, 1.960, 2.462, 4.020]``: the pair
    (1, 3) turns by 1 radian, the pair (2, 4) by 0.01.
    The library transformers pairs halves like this for LLaMA; the paper pairs neighbours
    (0, 1), (2, 3), ..., which is the same map after a permutation of the features.

    Parameters
    ----------
    x : ndarray of shape (..., T, K)
        Queries or keys of one head, K even.
    offset : int or ndarray of int of shape (B,), default=0
        Position of the first row: one for all sequences, or one for each entry of the first
        axis of ``x`` (minus the number of padded tokens, for a batch padded on the left).
    base : float, default=10000.0
        The number b.

    Returns
    -------
    ndarray of shape (..., T, K)
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


def rotary_backward(dy, x, *, offset=0, base=10000.0):
    """Vector-Jacobian product of :func:`rotary`: the rotation by the opposite angle.

    Parameters
    ----------
    dy : ndarray of shape (..., T, K)
        Gradient of the loss with respect to the output.
    x, offset, base
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (..., T, K)
        Gradient with respect to ``x``.
    """
    cos, sin = rotation(x, offset, base)
    return rotate(dy, cos, -sin)


def rotate(x, cos, sin):
    """Turn each pair of x by an angle given as cosine and sine."""
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def rotation(x, offset, base):
    """Return cosine and sine of the angles, of a shape that broadcasts over the pairs of x."""
    check_shape("x", x, ("...", "T", "K"))
    T, K = x.shape[-2:]
    if K % 2 != 0:
        raise ValueError(f"x must have an even number of features to form pairs, got {K}")
    _check_base(base)
    offset = np.asarray(offset)
    if offset.ndim > 0:
        check_shape("offset", offset, x.shape[:1], fix="give one position per sequence")
        offset = offset.reshape(-1, *[1] * (x.ndim - 2))  # (B, 1, ..., 1)
    position = offset + np.arange(T)  # (T,) or (B, 1, ..., T)
    frequency = base ** (-2 * np.arange(K // 2) / K)
    angle = position[..., None] * frequency  # (..., T, K / 2)
    return np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)


def alibi_bias(N, T, S):
    r"""Return attention biases that fall linearly with distance (an extra).

    .. math:: M_{nij} = -m_n \, |i + S - T - j|, \qquad m_n = 2^{-8 n / N}, \quad n = 1 \dots N

    As in ``causal_mask``, the last query stands at the last key. Add the bias to the causal
    mask: ``causal_mask(T, S) + alibi_bias(N, T, S)``.
    With two heads the slopes are 1/16 and 1/256. If N is not a power of two, the slopes of the
    next smaller power come first, then every second slope of the next larger one.

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
    ndarray of shape (N, T, S)
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
    slopes = np.concatenate([_slopes(power), _slopes(2 * power)[::2]])[:N]
    query = np.arange(T)[:, None] + S - T
    return -slopes[:, None, None] * np.abs(query - np.arange(S))


def _slopes(power):
    return 2.0 ** (-8 * np.arange(1, power + 1) / power)


def _check_base(base):
    if not base > 0:
        raise ValueError(f"base must be positive, got {base}")
