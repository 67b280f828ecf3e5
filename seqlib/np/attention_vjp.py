"""Scaled dot-product attention that keeps its weights for the backward pass."""

import math

from seqlib.np.attention import attention_weights, scaled_dot_product_attention

__all__ = ["scaled_dot_product_attention_with_vjp"]


def scaled_dot_product_attention_with_vjp(q, k, v, *, mask=None):
    """Scaled dot-product attention together with its backward pass.

    The pair :func:`scaled_dot_product_attention` and its backward pass computes the weights
    twice; here they are computed once and kept.

    Parameters
    ----------
    q : ndarray of shape (..., T, K)
        Queries.
    k : ndarray of shape (..., S, K)
        Keys.
    v : ndarray of shape (..., S, D)
        Values.
    mask : ndarray that broadcasts to (..., T, S), optional
        As in :func:`scaled_dot_product_attention`.

    Returns
    -------
    y : ndarray of shape (..., T, D)
        The output.
    vjp : callable
        ``vjp(dy)`` returns the gradients with respect to ``q``, ``k`` and ``v``.

    Raises
    ------
    ValueError
        As :func:`scaled_dot_product_attention`.
    """
    scaled_dot_product_attention(q[..., :0, :], k, v)  # checks v beside q and k
    a = attention_weights(q, k, mask=mask)  # (..., T, S)

    def vjp(dy):
        dv = a.swapaxes(-1, -2) @ dy
        dscores = dy @ v.swapaxes(-1, -2)
        dscores -= (dscores * a).sum(axis=-1, keepdims=True)
        dscores *= a
        dscores /= math.sqrt(q.shape[-1])
        return dscores @ k, dscores.swapaxes(-1, -2) @ q, dv

    return a @ v, vjp
