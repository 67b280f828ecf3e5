"""Attention: every output row is a weighted average of value rows."""

import math

import numpy as np

from seqlib._check import (
    check_additive,
    check_mask,
    check_not_empty,
    check_queries_and_keys,
    check_shape,
    check_values,
)
from seqlib.np.activation import linear_backward, softmax, softmax_backward
from seqlib.np.masks import to_additive

__all__ = [
    "additive_attention",
    "additive_attention_backward",
    "attention_weights",
    "attention_weights_backward",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "simple_self_attention",
    "simple_self_attention_backward",
]


def simple_self_attention(x):
    r"""Self-attention without parameters: tokens averaged by their similarity.

    .. math:: A = \mathrm{softmax}(X X^\top), \qquad Y = A X

    Parameters
    ----------
    x : ndarray of shape (..., T, D)
        Tokens, one per row.

    Returns
    -------
    ndarray of shape (..., T, D)
        Row i is the average of all tokens with weights ``A[i]``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes, or no token.

    References
    ----------
    Lecture notes, equations (5) to (7).
    """
    check_shape("x", x, ("...", "T", "D"))
    check_not_empty("x", x, -2)
    a = softmax(x @ x.swapaxes(-1, -2))  # (..., T, T)
    return a @ x


def simple_self_attention_backward(dy, x):
    """Vector-Jacobian product of :func:`simple_self_attention`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    x
        The argument of the forward call.

    Returns
    -------
    ndarray of shape (..., T, D)
        Gradient with respect to ``x``.
    """
    scores = x @ x.swapaxes(-1, -2)  # (..., T, T)
    a = softmax(scores)
    dscores = softmax_backward(dy @ x.swapaxes(-1, -2), scores)
    # x enters three times: as values, as queries (rows of the scores) and as keys (columns).
    return a.swapaxes(-1, -2) @ dy + dscores @ x + dscores.swapaxes(-1, -2) @ x


def attention_weights(q, k, *, mask=None):
    r"""Weights of scaled dot-product attention: how much each query takes from each key.

    .. math:: A = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right)

    With K = 4, products of 2 ln 3 and 0 give scores of ln 3 and 0 and the weights 3/4 and 1/4.

    Parameters
    ----------
    q : ndarray of shape (..., T, K)
        Queries.
    k : ndarray of shape (..., S, K)
        Keys.
    mask : ndarray that broadcasts to (..., T, S), optional
        As in :func:`scaled_dot_product_attention`.

    Returns
    -------
    ndarray of shape (..., T, S)
        Weights. A row sums to 1, or holds zeros where the mask blocks every key.

    Raises
    ------
    ValueError
        If ``q`` and ``k`` do not fit, or if ``mask`` does not fit or could mean two things.

    References
    ----------
    Lecture notes, equations (9), (12) and (13).
    """
    check_queries_and_keys(q, k)
    # The queries are scaled, not the products, which are more: (..., T, K) against (..., T, S).
    scores = q / math.sqrt(q.shape[-1]) @ k.swapaxes(-1, -2)  # (..., T, S)
    return softmax(_add_mask(scores, mask))


def attention_weights_backward(dy, q, k, *, mask=None):
    """Vector-Jacobian product of :func:`attention_weights`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, S)
        Gradient of the loss with respect to the weights.
    q, k, mask
        The arguments of the forward call.

    Returns
    -------
    dq : ndarray of shape (..., T, K)
        Gradient with respect to ``q``.
    dk : ndarray of shape (..., S, K)
        Gradient with respect to ``k``.
    """
    a = attention_weights(q, k, mask=mask)  # (..., T, S)
    return _through_softmax(dy, a, q, k)


def scaled_dot_product_attention(q, k, v, *, mask=None):
    r"""Scaled dot-product attention: values averaged by the match of queries and keys.

    .. math:: Y = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V

    Parameters
    ----------
    q : ndarray of shape (..., T, K)
        Queries.
    k : ndarray of shape (..., S, K)
        Keys.
    v : ndarray of shape (..., S, D)
        Values; their width need not be K.
    mask : ndarray that broadcasts to (..., T, S), optional
        Float: M, added to the scores, 0 where a query may attend and -inf where it may not;
        other finite values are biases. Boolean: True where a query may attend.

    Returns
    -------
    ndarray of shape (..., T, D)
        One average of values per query; zeros where the mask blocks every key.

    Raises
    ------
    ValueError
        If two arguments do not fit, or if ``mask`` does not fit or could mean two things.

    References
    ----------
    Lecture notes, equations (9) and (12). Vaswani et al. (2017), "Attention Is All You Need",
    Section 3.2.1, arXiv:1706.03762.
    """
    a = attention_weights(q, k, mask=mask)  # (..., T, S)
    check_values(v, k)
    return a @ v


def scaled_dot_product_attention_backward(dy, q, k, v, *, mask=None):
    """Vector-Jacobian product of :func:`scaled_dot_product_attention`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    q, k, v, mask
        The arguments of the forward call.

    Returns
    -------
    dq : ndarray of shape (..., T, K)
        Gradient with respect to ``q``.
    dk : ndarray of shape (..., S, K)
        Gradient with respect to ``k``.
    dv : ndarray of shape (..., S, D)
        Gradient with respect to ``v``.
    """
    a = attention_weights(q, k, mask=mask)  # (..., T, S)
    dv = a.swapaxes(-1, -2) @ dy
    da = dy @ v.swapaxes(-1, -2)
    dq, dk = _through_softmax(da, a, q, k)
    return dq, dk, dv


def additive_attention(q, k, v, w_q, w_k, w_v, *, mask=None):
    r"""Additive attention: a small network scores each pair of query and key.

    .. math:: e_{ij} = w_v^\top \tanh(W_q q_i + W_k k_j), \qquad
        Y = \mathrm{softmax}(E + M) \, V

    Queries and keys may differ in width, as do a decoder's state and an encoder's.

    Parameters
    ----------
    q : ndarray of shape (..., T, H)
        Queries.
    k : ndarray of shape (..., S, K)
        Keys.
    v : ndarray of shape (..., S, D)
        Values.
    w_q : ndarray of shape (F, H)
        Maps a query to the inner layer.
    w_k : ndarray of shape (F, K)
        Maps a key to the inner layer.
    w_v : ndarray of shape (F,)
        Maps the inner layer to a score.
    mask : ndarray that broadcasts to (..., T, S), optional
        As in :func:`scaled_dot_product_attention`.

    Returns
    -------
    ndarray of shape (..., T, D)
        One average of values per query; zeros where the mask blocks every key.

    Raises
    ------
    ValueError
        If two arguments do not fit, or if ``mask`` does not fit or could mean two things.

    References
    ----------
    Bahdanau, Cho and Bengio (2015), "Neural Machine Translation by Jointly Learning to Align
    and Translate", Section 3.1 and Appendix A.1.2, arXiv:1409.0473.
    """
    check_additive(q, k, v, w_q, w_k, w_v)
    scores = _additive_hidden(q, k, w_q, w_k) @ w_v  # (..., T, S)
    return softmax(_add_mask(scores, mask)) @ v


def additive_attention_backward(dy, q, k, v, w_q, w_k, w_v, *, mask=None):
    """Vector-Jacobian product of :func:`additive_attention`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    q, k, v, w_q, w_k, w_v, mask
        The arguments of the forward call.

    Returns
    -------
    dq : ndarray of shape (..., T, H)
        Gradient with respect to ``q``.
    dk : ndarray of shape (..., S, K)
        Gradient with respect to ``k``.
    dv : ndarray of shape (..., S, D)
        Gradient with respect to ``v``.
    dw_q : ndarray of shape (F, H)
        Gradient with respect to ``w_q``.
    dw_k : ndarray of shape (F, K)
        Gradient with respect to ``w_k``.
    dw_v : ndarray of shape (F,)
        Gradient with respect to ``w_v``.
    """
    hidden = _additive_hidden(q, k, w_q, w_k)  # (..., T, S, F)
    scores = _add_mask(hidden @ w_v, mask)  # (..., T, S)
    dv = softmax(scores).swapaxes(-1, -2) @ dy
    dscores = softmax_backward(dy @ v.swapaxes(-1, -2), scores)
    dw_v = np.tensordot(dscores, hidden, axes=dscores.ndim)  # sums over all pairs
    dinner = dscores[..., None] * w_v * (1 - hidden**2)  # (..., T, S, F), through tanh
    # A query meets all keys and a key all queries: sum over the other axis.
    dq, dw_q, _ = linear_backward(dinner.sum(axis=-2), q, w_q)
    dk, dw_k, _ = linear_backward(dinner.sum(axis=-3), k, w_k)
    return dq, dk, dv, dw_q, dw_k, dw_v


def _additive_hidden(q, k, w_q, w_k):
    from_q = (q @ w_q.T)[..., :, None, :]  # (..., T, 1, F)
    from_k = (k @ w_k.T)[..., None, :, :]  # (..., 1, S, F)
    return np.tanh(from_q + from_k)


def _through_softmax(da, a, q, k):
    """Return the gradients of queries and keys from that of the weights ``a``."""
    # The gradient of softmax, a * (da - sum of da * a), which is 0 where a weight is 0. Large
    # arrays of their own for the two products would take longer than the arithmetic.
    dscores = da - np.einsum("...ts,...ts->...t", da, a)[..., None]  # (..., T, S)
    dscores *= a
    root = math.sqrt(q.shape[-1])
    return dscores @ k / root, dscores.swapaxes(-1, -2) @ q / root


def _add_mask(scores, mask):
    """Return the scores plus M, in the dtype of the scores."""
    if mask is None:
        return scores
    check_mask(mask, scores.shape)
    if mask.dtype == bool:
        mask = to_additive(mask)
    with np.errstate(over="ignore"):  # -1e9 does not fit in float16 and becomes -inf
        return scores + mask.astype(scores.dtype)
