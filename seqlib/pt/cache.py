"""A decoder that keeps the keys and values of the tokens it has read."""

import math

import torch
import torch.nn.functional as F

from seqlib.pt.feedforward import ACTIVATIONS
from seqlib.pt.masks import causal_mask, padding_mask
from seqlib.pt.positions import rotate, rotation, sinusoidal_positions

__all__ = ["CachedDecoder"]


class CachedDecoder:
    """A decoder that reads sequences piece by piece, for generation only.

    Keys and values of a token depend on the tokens up to it alone, so they never change when
    more tokens follow: each layer keeps them, and a new token costs one row of work instead of
    T. The logits equal the last row of the model on everything read so far.

    For a single token the arithmetic is a few microseconds an operation, so that what remains
    is the number of operations: this class calls PyTorch's functions on the model's parameters
    and none of its modules.

    Parameters
    ----------
    model : DecoderLM
        The model; its parameters are read, not copied. There is no dropout here.
    batch_size : int
        Number of sequences B that are read together.
    """

    def __init__(self, model, batch_size):
        self.config = config = model.config
        params = {name: p.detach() for name, p in model.named_parameters()}
        self.embedding, self.head = params["embedding.weight"], model.head_weight.detach()
        self.norm = params.get("norm.weight"), params.get("norm.bias")
        self.layers = [
            {k.removeprefix(prefix): p for k, p in params.items() if k.startswith(prefix)}
            for prefix in (f"layers.{i}." for i in range(config.n_layer))
        ]
        N, K = config.n_head, config.dim // config.n_head
        shape = (config.n_layer, 2, batch_size, N, config.context, K)
        self.keys_and_values = self.embedding.new_empty(shape)
        if config.positions == "learned":
            self.table = params["positions.weight"]
        elif config.positions == "sinusoidal":
            self.table = sinusoidal_positions(config.context, config.dim).to(self.embedding)
        elif config.positions == "rotary":
            every_position = self.embedding.new_empty(config.context, K)
            self.table = torch.stack(rotation(every_position, 0, config.rotary_base))
        self.restart()

    def restart(self, left=None):
        """Forget everything read; ``left`` counts the padded tokens to come, one per row."""
        self.length, self.left = 0, left

    @torch.inference_mode()
    def read(self, ids):
        """Read more tokens.

        Parameters
        ----------
        ids : Tensor of int of shape (B, T)
            The next T tokens of each sequence.

        Returns
        -------
        Tensor of shape (B, V)
            Logits of the token that follows.
        """
        T, config = ids.shape[1], self.config
        start, self.length = self.length, self.length + T
        if self.left is None:
            position = slice(start, self.length)
        else:
            t = torch.arange(start, self.length, device=ids.device)
            position = torch.clamp(t - self.left[:, None], min=0)  # (B, T)
        x = F.embedding(ids, self.embedding)  # (B, T, D)
        if config.positions == "sinusoidal":
            x = x * math.sqrt(config.dim)
        if config.positions in ("learned", "sinusoidal"):
            x = x + self.table[position]
        turn = None
        if config.positions == "rotary":  # where it starts does not matter to the scores
            turn = self.table[:, start : self.length]
        attention = start, self._mask(T), turn
        for w, kept in zip(self.layers, self.keys_and_values, strict=True):
            if config.norm == "pre":
                x = x + self._attend(self._norm(x, w, 1), w, kept, *attention)
                x = x + self._mlp(self._norm(x, w, 2), w)
            else:
                x = self._norm(x + self._attend(x, w, kept, *attention), w, 1)
                x = self._norm(x + self._mlp(x, w), w, 2)
        last = x[:, -1]
        if config.norm == "pre":
            last = _normalise(last, *self.norm, config.eps)
        return F.linear(last, self.head)

    def _attend(self, x, w, kept, start, mask, turn):
        B, T, D = x.shape
        N, end = self.config.n_head, self.length
        qkv = F.linear(x, w["self_attn.in_proj_weight"], w.get("self_attn.in_proj_bias"))
        q, k, v = qkv.view(B, T, 3, N, D // N).permute(2, 0, 3, 1, 4)  # (3, B, N, T, K)
        if turn is not None:
            q, k = rotate(q, *turn), rotate(k, *turn)
        kept[0, :, :, start:end] = k
        kept[1, :, :, start:end] = v
        keys, values = kept[:, :, :, :end]
        heads = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        heads = heads.transpose(1, 2).reshape(B, T, D)
        return F.linear(heads, w["self_attn.out_proj.weight"], w.get("self_attn.out_proj.bias"))

    def _mlp(self, x, w):
        activation = self.config.feed_forward
        if activation == "swiglu":
            gate, up = F.linear(x, w["gate_proj.weight"]), F.linear(x, w["up_proj.weight"])
            return F.linear(F.silu(gate) * up, w["down_proj.weight"])
        hidden = ACTIVATIONS[activation](
            F.linear(x, w["linear1.weight"], w.get("linear1.bias"))
        )
        return F.linear(hidden, w["linear2.weight"], w.get("linear2.bias"))

    def _norm(self, x, w, i):
        return _normalise(x, w[f"norm{i}.weight"], w.get(f"norm{i}.bias"), self.config.eps)

    def _mask(self, T):
        """Return the mask of the last T tokens, or None if they may attend to everything."""
        S, like = self.length, self.embedding
        mask = None if T == 1 else causal_mask(T, S).to(like)
        if self.left is not None:
            is_padding = torch.arange(S, device=like.device) < self.left[:, None]
            padding = padding_mask(is_padding).to(like)
            mask = padding if mask is None else mask + padding
        return mask


def _normalise(x, weight, bias, eps):
    if bias is None:
        return F.rms_norm(x, weight.shape, weight, eps)
    return F.layer_norm(x, weight.shape, weight, bias, eps)
