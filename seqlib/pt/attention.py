"""Attention: every output row is a weighted average of value rows; twins of NumPy's."""

import math

import torch

from seqlib._check import (
    check_additive,
    check_mask,
    check_not_empty,
    check_queries_and_keys,
    check_shape,
    check_values,
)
from seqlib.pt.activation import softmax
from seqlib.pt.masks import to_additive

__all__ = [
    "additive_attention",
    "attention_weights",
    "scaled_dot_product_attention",
    "simple_self_attention",
]


def simple_self_attention(x):
    r"""Self-attention without parameters; twin of ``seqlib.np.simple_self_attention``.

    .. math:: A = \mathrm{softmax}(X X^\top), \qquad Y = A X

    Parameters
    ----------
    x : Tensor of shape (..., T, D)
        Tokens, one per row.

    Returns
    -------
    Tensor of shape (..., T, D)
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
    a = softmax(x @ x.transpose(-1, -2))  # (..., T, T)
    return a @ x


def attention_weights(q, k, *, mask=None):
    r"""Weights of scaled dot-product attention; twin of ``seqlib.np.attention_weights``.

    .. math:: A = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right)

    With K = 4, products of 2 ln 3 and 0 give scores of ln 3 and 0 and the weights 3/4 and 1/4.

    Parameters
    ----------
    q : Tensor of shape (..., T, K)
        Queries.
    k : Tensor of shape (..., S, K)
        Keys.
    mask : Tensor that broadcasts to (..., T, S), optional
        As in :func:`scaled_dot_product_attention`.

    Returns
    -------
    Tensor of shape (..., T, S)
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
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (..., T, S)
    return softmax(_add_mask(scores, mask))


def scaled_dot_product_attention(q, k, v, *, mask=None):
    r"""Scaled dot-product attention; twin of ``seqlib.np.scaled_dot_product_attention``.

    .. math:: Y = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V

    Parameters
    ----------
    q : Tensor of shape (..., T, K)
        Queries.
    k : Tensor of shape (..., S, K)
        Keys.
    v : Tensor of shape (..., S, D)
        Values; their width need not be K.
    mask : Tensor that broadcasts to (..., T, S), optional
        Float: M, added to the scores, 0 where a query may attend and -inf where it may not;
        other finite values are biases. Boolean: True where a query may attend.

    Returns
    -------
    Tensor of shape (..., T, D)
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


def additive_attention(q, k, v, w_q, w_k, w_v, *, mask=None):
    r"""Additive attention; twin of ``seqlib.np.additive_attention``.

    .. math:: e_{ij} = w_v^\top \tanh(W_q q_i + W_k k_j), \qquad
        Y = \mathrm{softmax}(E + M) \, V

    Queries and keys may differ in width, as do a decoder's state and an encoder's.

    Parameters
    ----------
    q : Tensor of shape (..., T, H)
        Queries.
    k : Tensor of shape (..., S, K)
        Keys.
    v : Tensor of shape (..., S, D)
        Values.
    w_q : Tensor of shape (F, H)
        Maps a query to the inner layer.
    w_k : Tensor of shape (F, K)
        Maps a key to the inner layer.
    w_v : Tensor of shape (F,)
        Maps the inner layer to a score.
    mask : Tensor that broadcasts to (..., T, S), optional
        As in :func:`scaled_dot_product_attention`.

    Returns
    -------
    Tensor of shape (..., T, D)
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
    from_q = (q @ w_q.T)[..., :, None, :]  # (..., T, 1, F)
    from_k = (k @ w_k.T)[..., None, :, :]  # (..., 1, S, F)
    scores = torch.tanh(from_q + from_k) @ w_v  # (..., T, S)
    return softmax(_add_mask(scores, mask)) @ v


def _add_mask(scores, mask):
    """Return the scores plus M, in the dtype of the scores."""
    if mask is None:
        return scores
    check_mask(mask, scores.shape)
    if mask.dtype == torch.bool:
        mask = to_additive(mask)
    return scores + mask.to(scores)
