"""A decoder that keeps the keys and values of the tokens it has read."""

import math

import numpy as np

from seqlib._config import check_precision
from seqlib.np._fast_gelu import gelu_and_slope
from seqlib.np.activation import silu
from seqlib.np.masks import causal_mask
from seqlib.np.positions import rotate, rotation, sinusoidal_positions

__all__ = ["CachedDecoder"]


class CachedDecoder:
    """A decoder that reads sequences piece by piece.

    Keys and values of a token depend on the tokens up to it alone, so they never change when
    more tokens follow: each layer keeps them, and a new token costs one row of work instead of
    T. The logits equal the last row of ``decoder_lm`` on everything read so far.

    Parameters
    ----------
    params : dict of str to ndarray
        Parameters in float32 or float64.
    config : DecoderConfig
        The model.
    batch_size : int
        Number of sequences B that are read together.

    Raises
    ------
    ValueError
        If ``params`` are of another precision, or of several.
    """

    def __init__(self, params, config, batch_size):
        check_precision(params)
        self.config = config
        self.restart()
        # x @ weight.T with a weight that is already transposed: several times faster for
        # a few rows.
        ready = {k: np.ascontiguousarray(p.T) if p.ndim == 2 else p for k, p in params.items()}
        self.embedding = params["embedding.weight"]
        self.head = ready["embedding.weight" if config.tie_weights else "head.weight"]
        self.norm = ready.get("norm.weight"), ready.get("norm.bias")
        self.layers = [
            {k.removeprefix(prefix): p for k, p in ready.items() if k.startswith(prefix)}
            for prefix in (f"layers.{i}." for i in range(config.n_layer))
        ]
        N, K = config.n_head, config.dim // config.n_head
        shape = (config.n_layer, 2, batch_size, N, config.context, K)
        self.keys_and_values = np.empty(shape, self.embedding.dtype)
        if config.positions == "learned":
            self.table = params["positions.weight"]
        elif config.positions == "sinusoidal":
            table = sinusoidal_positions(config.context, config.dim)
            self.table = table.astype(self.embedding.dtype)
        elif config.positions == "rotary":
            every_position = np.empty((config.context, K), self.embedding.dtype)
            self.table = np.stack(rotation(every_position, 0, config.rotary_base))

    def restart(self, left=None):
        """Forget everything read; ``left`` counts the padded tokens to come, one per row."""
        self.length, self.left = 0, left

    def read(self, ids):
        """Read more tokens.

        Parameters
        ----------
        ids : ndarray of int of shape (B, T)
            The next T tokens of each sequence.

        Returns
        -------
        ndarray of shape (B, V)
            Logits of the token that follows.
        """
        (B, T), config = ids.shape, self.config
        start, self.length = self.length, self.length + T
        position = np.arange(start, self.length)
        if self.left is not None:
            position = np.maximum(position - self.left[:, None], 0)  # (B, T)
        x = self.embedding[ids]  # (B, T, D)
        if config.positions == "sinusoidal":
            x *= math.sqrt(config.dim)
        if config.positions in ("learned", "sinusoidal"):
            x += self.table[position]
        turn = None
        if config.positions == "rotary":  # where it starts does not matter to the scores
            turn = self.table[:, start : self.length]
        x, mask = x.reshape(B * T, config.dim), self._mask(T)
        for w, (keys, values) in zip(self.layers, self.keys_and_values, strict=True):
            if config.norm == "pre":
                x = x + self._attend(self._norm(x, w, 1), w, keys, values, B, start, mask, turn)
                x = x + self._mlp(self._norm(x, w, 2), w)
            else:
                x = x + self._attend(x, w, keys, values, B, start, mask, turn)
                x = self._norm(x, w, 1)
                x = self._norm(x + self._mlp(x, w), w, 2)
        last = x.reshape(B, T, config.dim)[:, -1]
        if config.norm == "pre":
            last = _normalise(last, *self.norm, config.eps)
        return last @ self.head

    def _attend(self, x, w, keys, values, B, start, mask, turn):
        qkv = _linear(x, w, "self_attn.in_proj_weight", "self_attn.in_proj_bias")
        N, D, end = self.config.n_head, self.config.dim, self.length
        q, k, v = qkv.reshape(B, end - start, 3, N, D // N).transpose(2, 0, 3, 1, 4)
        if turn is not None:
            q, k = rotate(q, *turn), rotate(k, *turn)
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        p = q @ keys[:, :, :end].swapaxes(-1, -2)  # (B, N, T, S)
        p *= 1 / math.sqrt(q.shape[-1])
        if mask is not None:
            p += mask
        p -= np.maximum.reduce(p, axis=-1, keepdims=True, initial=np.finfo(p.dtype).min)
        np.exp(p, out=p)
        p /= np.add.reduce(p, axis=-1, keepdims=True, initial=np.finfo(p.dtype).tiny)
        heads = (p @ values[:, :, :end]).swapaxes(1, 2).reshape(len(x), D)
        return _linear(heads, w, "self_attn.out_proj.weight", "self_attn.out_proj.bias")

    def _mlp(self, x, w):
        activation = self.config.feed_forward
        if activation == "swiglu":
            return (silu(x @ w["gate_proj.weight"]) * (x @ w["up_proj.weight"])) @ w[
                "down_proj.weight"
            ]
        hidden = _linear(x, w, "linear1.weight", "linear1.bias")
        if activation == "relu":
            np.maximum(hidden, 0, out=hidden)
        else:
            hidden, _ = gelu_and_slope(hidden, "tanh" if activation == "gelu_tanh" else "none")
        return _linear(hidden, w, "linear2.weight", "linear2.bias")

    def _norm(self, x, w, i):
        return _normalise(x, w[f"norm{i}.weight"], w.get(f"norm{i}.bias"), self.config.eps)

    def _mask(self, T):
        """Return the mask of the last T tokens, or None if they may attend to everything."""
        S = self.length
        mask = None if T == 1 else causal_mask(T, S).astype(self.embedding.dtype)
        if self.left is not None:
            padded = np.where(np.arange(S) < self.left[:, None], -np.inf, 0)[:, None, None]
            mask = padded.astype(self.embedding.dtype) + (0 if mask is None else mask)
        return mask


def _linear(x, w, weight, bias):
    y = x @ w[weight]
    if bias in w:
        y += w[bias]
    return y


def _normalise(x, weight, bias, eps):
    D = x.shape[-1]
    if bias is not None:
        x = x - np.add.reduce(x, axis=-1, keepdims=True) / D
    y = x / np.sqrt(np.vecdot(x, x) / D + eps)[:, None] * weight
    return y if bias is None else y + bias
