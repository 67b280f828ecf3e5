"""One Transformer layer: attention and feed-forward, each with a residual and a norm."""

import torch.nn.functional as F
from torch import nn

from seqlib._check import check_choice, check_mask, check_positive, check_shape
from seqlib.pt.feedforward import ACTIVATIONS
from seqlib.pt.multihead import MultiHeadAttention, merge_heads
from seqlib.pt.norm import LayerNorm, RMSNorm
from seqlib.pt.positions import rotary

__all__ = ["TransformerLayer"]


class TransformerLayer(nn.Module):
    r"""Transformer layer: every part f adds its output to its input.

    .. math:: \text{post-norm: } x' = \mathrm{Norm}(f(x) + x) \qquad
        \text{pre-norm: } x' = f(\mathrm{Norm}(x)) + x

    The parts are self-attention, attention to a context if ``cross`` is set, and the
    feed-forward network, each with a norm of its own: equations (17) and (18).
    Names and shapes of the parameters follow ``torch.nn.TransformerEncoderLayer`` (and
    ``TransformerDecoderLayer`` with ``cross``), so their ``state_dict`` loads here.

    Parameters
    ----------
    dim : int
        Width D of the tokens.
    n_head : int
        Number of heads N; divides ``dim``.
    dim_feedforward : int
        Width F of the feed-forward network.
    norm : {"pre", "post"}, default="pre"
        Where the norms stand.
    norm_type : {"layer", "rms"}, default="layer"
        LayerNorm or RMSNorm.
    feed_forward : {"gelu", "gelu_tanh", "relu", "swiglu"}, default="gelu"
        Nonlinearity of the feed-forward network, or its gated form.
    cross : bool, default=False
        Whether the layer also attends to a context.
    bias : bool, default=True
        Whether the projections have biases (SwiGLU has none).
    dropout : float, default=0.0
        Probability of a zero in the output of each part, in training mode.
    eps : float, default=1e-5
        The norms' epsilon.
    rotary_base : float, optional
        If given, queries and keys of the self-attention are rotated with this base.

    Raises
    ------
    ValueError
        If a value is outside its range, or ``n_head`` does not divide ``dim``.
    """

    def __init__(
        self,
        dim,
        n_head,
        dim_feedforward,
        *,
        norm="pre",
        norm_type="layer",
        feed_forward="gelu",
        cross=False,
        bias=True,
        dropout=0.0,
        eps=1e-5,
        rotary_base=None,
    ):
        super().__init__()
        check_positive("dim_feedforward", dim_feedforward)
        check_choice("norm", norm, ("pre", "post"))
        check_choice("norm_type", norm_type, ("layer", "rms"))
        check_choice("feed_forward", feed_forward, (*ACTIVATIONS, "swiglu"))
        self.norm, self.rotary_base = norm, rotary_base
        self.self_attn = MultiHeadAttention(dim, n_head, bias=bias)
        if cross:
            self.multihead_attn = MultiHeadAttention(dim, n_head, bias=bias)
        if feed_forward == "swiglu":
            self.gate_proj = nn.Linear(dim, dim_feedforward, bias=False)
            self.up_proj = nn.Linear(dim, dim_feedforward, bias=False)
            self.down_proj = nn.Linear(dim_feedforward, dim, bias=False)
        else:
            self.linear1 = nn.Linear(dim, dim_feedforward, bias=bias)
            self.linear2 = nn.Linear(dim_feedforward, dim, bias=bias)
        self.activation = ACTIVATIONS.get(feed_forward)
        make_norm = LayerNorm if norm_type == "layer" else RMSNorm
        self.norm1, self.norm2 = make_norm(dim, eps=eps), make_norm(dim, eps=eps)
        self.norm3 = make_norm(dim, eps=eps) if cross else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, context=None, *, mask=None, causal=False, context_mask=None):
        """Map ``x`` of shape ``(..., T, D)`` to the same shape.

        ``context`` has shape ``(..., S, D)``; the masks broadcast to ``(..., N, T, T)`` and
        ``(..., N, T, S)``. ``causal=True`` is the faster form of ``mask=causal_mask(T)`` and
        excludes another mask.
        """
        if causal and mask is not None:
            raise ValueError(
                "mask must be None with causal=True, got both; "
                "use mask=causal_mask(T) + mask instead of causal=True"
            )
        check_shape("x", x, ("...", "T", self.self_attn.out_proj.in_features))
        if (context is None) != (self.norm3 is None):
            expected = "be given" if self.norm3 is not None else "be None"
            raise ValueError(
                f"context must {expected} for a layer with cross={self.norm3 is not None}, got "
                f"{'None' if context is None else 'a tensor'}"
            )
        x = self._add(x, self.norm1, self._self_attention, mask, causal)
        if context is None:
            return self._add(x, self.norm2, self._mlp)
        x = self._add(x, self.norm2, self._cross_attention, context, context_mask)
        return self._add(x, self.norm3, self._mlp)

    def _add(self, x, norm, f, *args):
        """Add the output of one part to its input; see (17) and (18)."""
        if self.norm == "pre":
            return self.dropout(f(norm(x), *args)) + x
        return norm(self.dropout(f(x, *args)) + x)

    def _self_attention(self, x, mask, causal):
        attention = self.self_attn
        packed = F.linear(x, attention.in_proj_weight, attention.in_proj_bias)  # (..., T, 3D)
        q, k, v = _heads(packed, 3, attention.n_head)
        if self.rotary_base is not None:
            q = rotary(q, base=self.rotary_base)
            k = rotary(k, base=self.rotary_base)
        return attention.out_proj(_attend(q, k, v, mask, causal))

    def _cross_attention(self, x, context, mask):
        attention, D = self.multihead_attn, x.shape[-1]
        check_shape("context", context, (*x.shape[:-2], "S", D))
        weight, bias = attention.in_proj_weight, attention.in_proj_bias
        bias_q, bias_kv = (None, None) if bias is None else (bias[:D], bias[D:])
        (q,) = _heads(F.linear(x, weight[:D], bias_q), 1, attention.n_head)
        k, v = _heads(F.linear(context, weight[D:], bias_kv), 2, attention.n_head)
        return attention.out_proj(_attend(q, k, v, mask))

    def _mlp(self, x):
        if self.activation is None:
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return self.linear2(self.activation(self.linear1(x)))


def _heads(packed, count, n_head):
    """Cut ``count`` packed projections apart, each into heads of shape (..., N, T, K)."""
    parts = packed.unflatten(-1, (count, n_head, -1)).unbind(-3)
    return [part.transpose(-3, -2) for part in parts]


def _attend(q, k, v, mask, causal=False):
    """Attend with PyTorch's fused kernel, which equals ``scaled_dot_product_attention``."""
    if mask is not None:
        check_mask(mask, (*q.shape[:-1], k.shape[-2]))
        if mask.is_floating_point():
            mask = mask.to(q.dtype)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    return merge_heads(y)
