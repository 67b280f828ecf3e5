"""Scaled dot-product attention that keeps its weights for the backward pass."""

from seqlib._check import check_values
from seqlib.np.attention import _through_softmax, attention_weights

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
    a = attention_weights(q, k, mask=mask)  # (..., T, S)
    check_values(v, k)

    def vjp(dy):
        dv = a.swapaxes(-1, -2) @ dy
        return *_through_softmax(dy @ v.swapaxes(-1, -2), a, q, k), dv

    return a @ v, vjp
