"""Multi-head attention: several attentions side by side, each in its own projection."""

import numpy as np

from seqlib._check import check_divisible, check_multi_head, check_shape
from seqlib.np.activation import linear, linear_backward
from seqlib.np.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)

__all__ = [
    "merge_heads",
    "merge_heads_backward",
    "multi_head_attention",
    "multi_head_attention_backward",
    "split_heads",
    "split_heads_backward",
]


def split_heads(x, *, n_head):
    """Cut the features of each token into N heads and put the heads before the tokens.

    The token ``[0, 1, 2, 3]`` gives ``[0, 1]`` to head 0 and ``[2, 3]`` to head 1. The reshape
    alone would have the right size but mix tokens: the axes must also be swapped.

    Parameters
    ----------
    x : ndarray of shape (..., T, D)
        Tokens.
    n_head : int
        Number of heads N; divides D.

    Returns
    -------
    ndarray of shape (..., N, T, K)
        The features of each head, with K = D / N.

    Raises
    ------
    ValueError
        If ``n_head`` does not divide D.
    """
    check_shape("x", x, ("...", "T", "D"))
    check_divisible("the width of x", x.shape[-1], "n_head", n_head)
    *leading, T, D = x.shape
    return x.reshape(*leading, T, n_head, D // n_head).swapaxes(-3, -2)


def split_heads_backward(dy, x, *, n_head):
    """Vector-Jacobian product of :func:`split_heads`: the numbers move back.

    Parameters
    ----------
    dy : ndarray of shape (..., N, T, K)
        Gradient of the loss with respect to the output.
    x, n_head
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (..., T, D)
        Gradient with respect to ``x``.
    """
    return merge_heads(dy)


def merge_heads(x):
    """Lay the features of all heads side by side again; undoes :func:`split_heads`.

    Parameters
    ----------
    x : ndarray of shape (..., N, T, K)
        The features of each head.

    Returns
    -------
    ndarray of shape (..., T, D)
        Tokens, with D = N K.

    Raises
    ------
    ValueError
        If ``x`` has fewer than three axes.
    """
    check_shape("x", x, ("...", "N", "T", "K"))
    *leading, N, T, K = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, T, N * K)


def merge_heads_backward(dy, x):
    """Vector-Jacobian product of :func:`merge_heads`: the numbers move back.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    x
        The argument of the forward call.

    Returns
    -------
    ndarray of shape (..., N, T, K)
        Gradient with respect to ``x``.
    """
    return split_heads(dy, n_head=x.shape[-3])


def multi_head_attention(
    x,
    in_proj_weight,
    in_proj_bias,
    out_proj_weight,
    out_proj_bias,
    context=None,
    *,
    n_head,
    mask=None,
):
    r"""Multi-head attention of tokens to each other, or to a context.

    .. math::

        H_h = \mathrm{attention}(Q_h, K_h, V_h), \qquad
        Y = [H_1, \dots, H_N] \, W^{(o)}

    The three projections to queries, keys and values are the thirds of ``in_proj_weight``, and
    head h works on its own K of their D columns.

    Parameters
    ----------
    x : ndarray of shape (..., T, D)
        Tokens; they give the queries.
    in_proj_weight : ndarray of shape (3D, D)
        Rows 0 to D for the queries, D to 2D for the keys, 2D to 3D for the values.
    in_proj_bias : ndarray of shape (3D,), or None
        Biases of the three projections.
    out_proj_weight : ndarray of shape (D, D)
        The transpose of :math:`W^{(o)}`.
    out_proj_bias : ndarray of shape (D,), or None
        Bias of the output.
    context : ndarray of shape (..., S, D), optional
        Tokens that give keys and values (cross-attention); ``x`` if not given.
    n_head : int
        Number of heads N; divides D.
    mask : ndarray that broadcasts to (..., N, T, S), optional
        As in :func:`scaled_dot_product_attention`; the heads have an axis of their own.

    Returns
    -------
    ndarray of shape (..., T, D)
        Outputs.

    Raises
    ------
    ValueError
        If ``n_head`` does not divide D, if an argument does not fit, or if ``mask`` does not
        fit or could mean two things.

    References
    ----------
    Lecture notes, equations (8), (10) and (11). Vaswani et al. (2017), "Attention Is All You
    Need", Section 3.2.2, arXiv:1706.03762.
    """
    check_multi_head(x, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, context)
    source = x if context is None else context
    (w_q, w_k, w_v), (b_q, b_k, b_v) = _thirds(in_proj_weight, in_proj_bias)
    q = split_heads(linear(x, w_q, b_q), n_head=n_head)  # (..., N, T, K)
    k = split_heads(linear(source, w_k, b_k), n_head=n_head)  # (..., N, S, K)
    v = split_heads(linear(source, w_v, b_v), n_head=n_head)  # (..., N, S, K)
    heads = scaled_dot_product_attention(q, k, v, mask=mask)  # (..., N, T, K)
    return linear(merge_heads(heads), out_proj_weight, out_proj_bias)


def multi_head_attention_backward(
    dy,
    x,
    in_proj_weight,
    in_proj_bias,
    out_proj_weight,
    out_proj_bias,
    context=None,
    *,
    n_head,
    mask=None,
):
    """Vector-Jacobian product of :func:`multi_head_attention`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    x, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, context, n_head, mask
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., T, D)
        Gradient with respect to ``x``.
    din_proj_weight : ndarray of shape (3D, D)
        Gradient with respect to ``in_proj_weight``.
    din_proj_bias : ndarray of shape (3D,)
        Gradient with respect to ``in_proj_bias``; None if there is none.
    dout_proj_weight : ndarray of shape (D, D)
        Gradient with respect to ``out_proj_weight``.
    dout_proj_bias : ndarray of shape (D,)
        Gradient with respect to ``out_proj_bias``; None if there is none.
    dcontext : ndarray of shape (..., S, D)
        Gradient with respect to ``context``; None if there is none.
    """
    source = x if context is None else context
    (w_q, w_k, w_v), (b_q, b_k, b_v) = _thirds(in_proj_weight, in_proj_bias)
    q = split_heads(linear(x, w_q, b_q), n_head=n_head)  # (..., N, T, K)
    k = split_heads(linear(source, w_k, b_k), n_head=n_head)  # (..., N, S, K)
    v = split_heads(linear(source, w_v, b_v), n_head=n_head)  # (..., N, S, K)
    heads = scaled_dot_product_attention(q, k, v, mask=mask)  # (..., N, T, K)

    dmerged, dw_o, db_o = linear_backward(
        dy, merge_heads(heads), out_proj_weight, out_proj_bias
    )
    dheads = split_heads(dmerged, n_head=n_head)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, q, k, v, mask=mask)
    dx, dw_q, db_q = linear_backward(merge_heads(dq), x, w_q, b_q)
    dsource_k, dw_k, db_k = linear_backward(merge_heads(dk), source, w_k, b_k)
    dsource_v, dw_v, db_v = linear_backward(merge_heads(dv), source, w_v, b_v)

    dw_in = np.concatenate([dw_q, dw_k, dw_v])
    db_in = None if in_proj_bias is None else np.concatenate([db_q, db_k, db_v])
    dsource = dsource_k + dsource_v
    if context is None:  # x is the source too
        return dx + dsource, dw_in, db_in, dw_o, db_o, None
    return dx, dw_in, db_in, dw_o, db_o, dsource


def _thirds(weight, bias):
    """Cut the packed projection into those of queries, keys and values."""
    biases = (None, None, None) if bias is None else np.split(bias, 3)
    return np.split(weight, 3), biases
