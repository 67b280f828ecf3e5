"""A decoder-only language model: embedding, causal layers, next-token scores."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from seqlib._config import DecoderConfig, check_decoder_input
from seqlib.pt.masks import causal_mask, padding_mask
from seqlib.pt.norm import LayerNorm, RMSNorm
from seqlib.pt.positions import LearnedPositions, sinusoidal_positions
from seqlib.pt.transformer import TransformerLayer

__all__ = ["DecoderConfig", "DecoderLM"]


class DecoderLM(nn.Module):
    r"""Decoder-only language model; twin of ``seqlib.np.decoder_lm``.

    .. math:: X = E[t] + P, \qquad X \leftarrow \mathrm{Layer}_\ell(X; M^{causal})
        \text{ for } \ell = 1 \dots L, \qquad \mathrm{logits} = \mathrm{Norm}(X) \, W^\top

    Parameters are drawn after GPT-2: matrices with standard deviation 0.02, the last matrix of
    each part of a layer with 0.02 / sqrt(2 n_layer), gains 1 and biases 0.
    The NumPy model runs on ``{k: v.numpy() for k, v in model.state_dict().items()}``.

    Parameters
    ----------
    config : DecoderConfig
        The model.

    References
    ----------
    Lecture notes, section 10. Radford et al. (2019), "Language Models are Unsupervised
    Multitask Learners", Section 2.3.
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.dim)
        if config.positions == "learned":
            self.positions = LearnedPositions(config.context, config.dim)
        self.layers = nn.ModuleList(
            TransformerLayer(
                config.dim,
                config.n_head,
                config.dim_feedforward,
                norm=config.norm,
                norm_type=config.norm_type,
                feed_forward=config.feed_forward,
                bias=config.bias,
                dropout=config.dropout,
                eps=config.eps,
                rotary_base=config.rotary_base if config.positions == "rotary" else None,
            )
            for _ in range(config.n_layer)
        )
        if config.norm == "pre":  # nothing in a pre-norm layer normalises its output
            make_norm = LayerNorm if config.norm_type == "layer" else RMSNorm
            self.norm = make_norm(config.dim, eps=config.eps)
        if not config.tie_weights:
            self.head = nn.Linear(config.dim, config.vocab_size, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw all parameters anew from PyTorch's global generator."""
        for name, p in self.named_parameters():
            if p.ndim == 1:
                nn.init.constant_(p, 0 if name.endswith("bias") else 1)
            else:
                std = 0.02
                if name.endswith(("out_proj.weight", "linear2.weight", "down_proj.weight")):
                    std /= math.sqrt(2 * self.config.n_layer)
                nn.init.normal_(p, std=std)

    def forward(self, ids, *, is_padding=None):
        """Score every next token of every sequence.

        Parameters
        ----------
        ids : Tensor of int of shape (B, T)
            Token ids, T at most ``config.context``.
        is_padding : Tensor of bool of shape (B, T), optional
            True at padded positions. No token attends to them, and positions count real
            tokens only, so that padding on the left changes nothing for the real ones.

        Returns
        -------
        Tensor of shape (B, T, V)
            Logits: row t depends on tokens 0 to t and belongs to token t + 1.

        Raises
        ------
        ValueError
            If an id is outside the vocabulary, or T exceeds the context.
        """
        check_decoder_input(ids, self.config, is_padding)
        options = {"causal": True}
        if is_padding is not None:
            mask = causal_mask(ids.shape[1]).to(ids.device) + padding_mask(is_padding)
            options = {"mask": mask}
        x = self.dropout(self._embed(ids, is_padding))  # (B, T, D)
        for layer in self.layers:
            x = layer(x, **options)
        if self.config.norm == "pre":
            x = self.norm(x)
        return F.linear(x, self.head_weight)

    @property
    def head_weight(self):
        """The matrix of the output layer, of shape (V, D)."""
        return self.embedding.weight if self.config.tie_weights else self.head.weight

    def _embed(self, ids, is_padding):
        x, config = self.embedding(ids), self.config
        if config.positions == "learned":
            if is_padding is None:
                return self.positions(x)
            return x + F.embedding(position_ids(ids, is_padding), self.positions.weight)
        if config.positions == "sinusoidal":
            table = sinusoidal_positions(config.context, config.dim).to(x)
            return math.sqrt(config.dim) * x + table[position_ids(ids, is_padding)]
        return x


def position_ids(ids, is_padding):
    """Return the positions of the tokens, counted from the first real token of each row."""
    t = torch.arange(ids.shape[1], device=ids.device)
    if is_padding is None:
        return t.expand(ids.shape)
    first = is_padding.int().argmin(dim=1)  # the first real token of each row
    return torch.clamp(t - first[:, None], min=0)
