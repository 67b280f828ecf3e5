"""Multi-head self-attention with rotary positions: queries and keys turn, values do not."""

import numpy as np

from seqlib.np.activation import linear, linear_backward
from seqlib.np.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from seqlib.np.multihead import merge_heads, split_heads
from seqlib.np.positions import rotary, rotary_backward

__all__ = []


def rotary_self_attention(x, w_in, b_in, w_out, b_out, *, n_head, mask, base):
    """Compute ``multi_head_attention`` with ``rotary`` applied to queries and keys."""
    q, k, v = _project(x, w_in, b_in, n_head)
    q, k = rotary(q, base=base), rotary(k, base=base)
    heads = scaled_dot_product_attention(q, k, v, mask=mask)  # (..., N, T, K)
    return linear(merge_heads(heads), w_out, b_out)


def rotary_self_attention_backward(dy, x, w_in, b_in, w_out, b_out, *, n_head, mask, base):
    """Vector-Jacobian product of :func:`rotary_self_attention`."""
    straight_q, straight_k, v = _project(x, w_in, b_in, n_head)
    q = rotary(straight_q, base=base)
    k = rotary(straight_k, base=base)
    heads = scaled_dot_product_attention(q, k, v, mask=mask)

    dmerged, dw_out, db_out = linear_backward(dy, merge_heads(heads), w_out, b_out)
    dheads = split_heads(dmerged, n_head=n_head)
    dq, dk, dv = scaled_dot_product_attention_backward(dheads, q, k, v, mask=mask)
    dq = rotary_backward(dq, straight_q, base=base)
    dk = rotary_backward(dk, straight_k, base=base)
    dpacked = np.concatenate([merge_heads(d) for d in (dq, dk, dv)], axis=-1)  # (..., T, 3D)
    dx, dw_in, db_in = linear_backward(dpacked, x, w_in, b_in)
    return dx, dw_in, db_in, dw_out, db_out


def _project(x, w_in, b_in, n_head):
    packed = linear(x, w_in, b_in)  # (..., T, 3D)
    return [split_heads(part, n_head=n_head) for part in np.split(packed, 3, axis=-1)]
