"""Multi-head attention, as functions and as a module; the functions are twins of NumPy's."""

import torch
from torch import nn

from seqlib._check import check_divisible, check_multi_head, check_positive, check_shape
from seqlib.pt.activation import linear
from seqlib.pt.attention import scaled_dot_product_attention

__all__ = ["MultiHeadAttention", "merge_heads", "multi_head_attention", "split_heads"]


def split_heads(x, *, n_head):
    """Cut the features of each token into N heads; twin of ``seqlib.np.split_heads``.

    The token ``[0, 1, 2, 3]`` gives ``[0, 1]`` to head 0 and ``[2, 3]`` to head 1. The reshape
    alone would have the right size but mix tokens: the axes must also be swapped.

    Parameters
    ----------
    x : Tensor of shape (..., T, D)
        Tokens.
    n_head : int
        Number of heads N; divides D.

    Returns
    -------
    Tensor of shape (..., N, T, K)
        The features of each head, with K = D / N.

    Raises
    ------
    ValueError
        If ``n_head`` does not divide D.
    """
    check_shape("x", x, ("...", "T", "D"))
    check_divisible("the width of x", x.shape[-1], "n_head", n_head)
    *leading, T, D = x.shape
    return x.reshape(*leading, T, n_head, D // n_head).transpose(-3, -2)


def merge_heads(x):
    """Lay the heads side by side again; twin of ``seqlib.np.merge_heads``.

    Parameters
    ----------
    x : Tensor of shape (..., N, T, K)
        The features of each head.

    Returns
    -------
    Tensor of shape (..., T, D)
        Tokens, with D = N K.

    Raises
    ------
    ValueError
        If ``x`` has fewer than three axes.
    """
    check_shape("x", x, ("...", "N", "T", "K"))
    *leading, N, T, K = x.shape
    return x.transpose(-3, -2).reshape(*leading, T, N * K)


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
    r"""Multi-head attention; twin of ``seqlib.np.multi_head_attention``.

    .. math::

        H_h = \mathrm{attention}(Q_h, K_h, V_h), \qquad
        Y = [H_1, \dots, H_N] \, W^{(o)}

    The three projections to queries, keys and values are the thirds of ``in_proj_weight``, and
    head h works on its own K of their D columns.

    Parameters
    ----------
    x : Tensor of shape (..., T, D)
        Tokens; they give the queries.
    in_proj_weight : Tensor of shape (3D, D)
        Rows 0 to D for the queries, D to 2D for the keys, 2D to 3D for the values.
    in_proj_bias : Tensor of shape (3D,), or None
        Biases of the three projections.
    out_proj_weight : Tensor of shape (D, D)
        The transpose of :math:`W^{(o)}`.
    out_proj_bias : Tensor of shape (D,), or None
        Bias of the output.
    context : Tensor of shape (..., S, D), optional
        Tokens that give keys and values (cross-attention); ``x`` if not given.
    n_head : int
        Number of heads N; divides D.
    mask : Tensor that broadcasts to (..., N, T, S), optional
        As in :func:`scaled_dot_product_attention`; the heads have an axis of their own.

    Returns
    -------
    Tensor of shape (..., T, D)
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


def _thirds(weight, bias):
    """Cut the packed projection into those of queries, keys and values."""
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return weight.chunk(3), biases


class MultiHeadAttention(nn.Module):
    """Multi-head attention that owns its four projections.

    Parameter names and shapes follow ``torch.nn.MultiheadAttention``, so its ``state_dict``
    loads here. Its mask arguments do not carry over: a boolean mask means the opposite there.

    Parameters
    ----------
    dim : int
        Width D of the tokens.
    n_head : int
        Number of heads N; divides D.
    bias : bool, default=True
        Whether the projections have biases.

    Raises
    ------
    ValueError
        If ``n_head`` does not divide ``dim``.
    """

    def __init__(self, dim, n_head, *, bias=True):
        super().__init__()
        check_positive("dim", dim)
        check_divisible("dim", dim, "n_head", n_head)
        self.n_head = n_head
        self.in_proj_weight = nn.Parameter(torch.empty(3 * dim, dim))
        self.register_parameter(
            "in_proj_bias", nn.Parameter(torch.zeros(3 * dim)) if bias else None
        )
        self.out_proj = nn.Linear(dim, dim, bias=bias)
        nn.init.xavier_uniform_(self.in_proj_weight)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def forward(self, x, context=None, *, mask=None):
        """Map ``x`` of shape ``(..., T, D)`` to the same shape; see `multi_head_attention`."""
        return multi_head_attention(
            x,
            self.in_proj_weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            context,
            n_head=self.n_head,
            mask=mask,
        )
