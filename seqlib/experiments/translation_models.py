"""The three translators of :mod:`seqlib.experiments.translation`, and how they write."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqlib.pt import (
    LayerNorm,
    TransformerLayer,
    additive_attention,
    attention_weights,
    padding_from_lengths,
    padding_mask,
    sinusoidal_positions,
    split_heads,
)

__all__ = ["Recurrent", "Transformer", "build", "write"]


class Recurrent(nn.Module):
    """GRUs that read in both directions and write, joined by one vector or by attention.

    The decoder starts from the encoder's last states. Its output layer reads its own state and
    a context: with one vector, the last states again; with attention, an average of all states
    of the encoder, with weights of its own for every character. The decoder's state has more
    dropout than the rest on its way out, so that a character must come from what is looked at
    and not from what was written before.
    """

    def __init__(self, source, target, inputs, *, attention):
        super().__init__()
        E, H, inner = inputs["embedding"], inputs["hidden"], inputs["inner"]
        self.read = nn.Embedding(source, E)
        self.written = nn.Embedding(target, E)
        self.encoder = nn.GRU(E, H // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(E, H, batch_first=True)
        self.dropout = nn.Dropout(inputs["dropout"])
        self.state_dropout = nn.Dropout(inputs["state_dropout"])
        self.head = nn.Linear(2 * H, target)
        self.score = None
        if attention:
            shapes = ((inner, H), (inner, H), (inner,))
            self.score = nn.ParameterList(torch.randn(s) / s[-1] ** 0.5 for s in shapes)

    def encode(self, source, lengths):
        """Return the encoder's states, which of them are padding, and the last ones."""
        read = self.dropout(self.read(source))  # (B, S, E)
        packed = pack_padded_sequence(read, lengths, batch_first=True, enforce_sorted=False)
        packed, last = self.encoder(packed)
        keys, _ = pad_packed_sequence(packed, batch_first=True, total_length=source.shape[1])
        vector = self.dropout(torch.cat(tuple(last), dim=-1))  # (B, H), both ends
        return self.dropout(keys), padding_from_lengths(lengths, source.shape[1]), vector

    def decode(self, written, memory, state=None):
        """Return logits, weights (None without attention), and the state to go on from."""
        keys, is_padding, vector = memory
        queries, state = self.decoder(
            self.written(written), vector[None] if state is None else state
        )
        if self.score is None:
            weights, context = None, vector[:, None].expand_as(queries)
        else:
            # With the identity as values the output is the weights.
            identity = torch.eye(keys.shape[1]).expand(len(keys), -1, -1)
            mask = padding_mask(is_padding)[:, 0]  # (B, 1, S)
            weights = additive_attention(queries, keys, identity, *self.score, mask=mask)
            context = weights @ keys
        joined = torch.cat([self.state_dropout(queries), context], dim=-1)
        return self.head(joined), weights, state


class Transformer(nn.Module):
    """An encoder of Transformer layers, and a decoder whose layers also attend to it."""

    def __init__(self, source, target, inputs):
        super().__init__()
        self.dim = D = inputs["dim"]
        sizes, drop = (D, inputs["heads"], 2 * D), {"dropout": inputs["dropout"]}
        self.read = nn.Embedding(source, D)
        self.written = nn.Embedding(target, D)
        self.dropout = nn.Dropout(inputs["dropout"])
        layers = range(inputs["layers"])
        self.encoder = nn.ModuleList(TransformerLayer(*sizes, **drop) for _ in layers)
        self.decoder = nn.ModuleList(
            TransformerLayer(*sizes, cross=True, **drop) for _ in layers
        )
        self.norm, self.context_norm = LayerNorm(D), LayerNorm(D)
        self.head = nn.Linear(D, target)

    def _embed(self, table, ids):
        x = table(ids)  # (B, T, D)
        return self.dropout(x + sinusoidal_positions(ids.shape[1], self.dim).to(x))

    def encode(self, source, lengths):
        """Return the encoder's outputs, and which of them are padding."""
        is_padding = padding_from_lengths(lengths, source.shape[1])
        x = self._embed(self.read, source)
        for layer in self.encoder:
            x = layer(x, mask=padding_mask(is_padding))
        return self.context_norm(x), is_padding

    def decode(self, written, memory, state=None):
        """Return logits, the weights of the last layer's heads averaged, and no state.

        There is no state to go on from: every call reads all that is written.
        """
        context, is_padding = memory
        mask, kept = padding_mask(is_padding), []
        *_, last = self.decoder
        handle = last.norm2.register_forward_hook(lambda module, args, out: kept.append(out))
        x = self._embed(self.written, written)
        for layer in self.decoder:
            x = layer(x, context, causal=True, context_mask=mask)
        handle.remove()
        weights = (
            None if self.training else _weights(last.multihead_attn, kept[0], context, mask)
        )
        return self.head(self.norm(x)), weights, None


def _weights(attention, x, context, mask):
    """Return the weights that a layer's fused cross-attention uses, averaged over heads."""
    D, n_head = x.shape[-1], attention.n_head
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    q = split_heads(F.linear(x, weight[:D], bias[:D]), n_head=n_head)
    k = split_heads(F.linear(context, weight[D : 2 * D], bias[D : 2 * D]), n_head=n_head)
    return attention_weights(q, k, mask=mask).mean(dim=1)  # (B, T, S)


def build(kind, source, target, inputs):
    """Return a fresh model of a kind, drawn with torch's generator."""
    if kind == "transformer":
        return Transformer(source, target, inputs)
    return Recurrent(source, target, inputs, attention=kind == "attention")


@torch.no_grad()
def write(model, source, lengths, begin, *, end, longest):
    """Return what a model writes on its own: the likeliest character, again and again.

    Parameters
    ----------
    model : Recurrent or Transformer
        In evaluation mode.
    source : Tensor of int of shape (B, S)
        Ids of the words.
    lengths : Tensor of int of shape (B,)
        How many of them are real.
    begin : Tensor of int of shape (B,)
        What the decoder reads first.
    end : int
        A text ends with the first of these.
    longest : int
        Most characters that are written.

    Returns
    -------
    ids : Tensor of int of shape (B, T)
        What is written. Behind the end of a text the ids mean nothing.
    weights : Tensor of shape (B, T, S), or None
        How each character looks at the words.
    """
    memory = model.encode(source, lengths)
    written, rows, state = begin[:, None], [], None
    done = torch.zeros(len(begin), dtype=torch.bool)
    while written.shape[1] <= longest and not done.all():
        read = written[:, -1:] if isinstance(model, Recurrent) else written
        logits, weights, state = model.decode(read, memory, state)
        rows.append(None if weights is None else weights[:, -1:])
        token = logits[:, -1].argmax(dim=-1)
        written = torch.cat([written, token[:, None]], dim=1)
        done |= token == end
    return written[:, 1:], None if rows[0] is None else torch.cat(rows, dim=1)
