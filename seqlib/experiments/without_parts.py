r"""What a decoder learns without its feed-forward networks, residuals or attention.

Every variant of one small model is trained on the same stories, word by word, with the same
steps, the same learning rates and the same seeds; each is judged at its better rate.
The loss is nats per word above the floor: what the drawn text costs under its grammar is
subtracted, so 0 is the best that any model can do.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from seqlib.experiments.story_words import T, vocabulary, windows
from seqlib.experiments.training import make_update, seeded
from seqlib.pt.decoder import DecoderConfig, DecoderLM
from seqlib.pt.transformer import TransformerLayer

# For each variant the parts of a layer that are left, and whether their input is added.
VARIANTS = {
    "whole": ({"attention", "mlp"}, True),
    "no_mlp": ({"attention"}, True),
    "no_attention": ({"mlp"}, True),
    "no_residual": ({"attention", "mlp"}, False),
    "attention_alone": ({"attention"}, False),
}
INPUTS = {
    "depths": [2, 8],
    "variants": list(VARIANTS),
    "rates": [0.001, 0.003],
    "steps": 400,
    "batch": 16,
}
# Each run starts from its seed alone, so fewer of them leave the numbers of the others as is.
REDUCED = {**INPUTS, "depths": [2], "variants": ["attention_alone"], "rates": [0.001]}
SEEDS = (0, 1, 2, 3, 4)
# Four hundred steps of AdamW enlarge the last bit of another processor's matrix product.
TOLERANCE = {"rtol": 0.0, "atol": 0.05}
PACKAGES = ("numpy", "torch")

D, N_HEAD = 48, 4
FRESH = 512  # windows that the loss is measured on


class Layer(TransformerLayer):
    """A pre-norm layer from which parts can be missing."""

    def __init__(self, parts, residual):
        super().__init__(D, N_HEAD, 4 * D)
        self.parts, self.residual = parts, residual

    def forward(self, x, *, causal):
        """Map ``x`` of shape ``(B, T, D)`` to the same shape."""
        parts = [
            ("attention", self.norm1, lambda x: self._self_attention(x, None, causal)),
            ("mlp", self.norm2, self._mlp),
        ]
        for name, norm, part in parts:
            if name in self.parts:
                x = part(norm(x)) + (x if self.residual else 0)
        return x


def build(variant, n_layer):
    """Return a fresh model of one variant, drawn from PyTorch's global generator."""
    model = DecoderLM(DecoderConfig(len(vocabulary()), T, D, n_layer, N_HEAD))
    parts, residual = VARIANTS[variant]
    model.layers = torch.nn.ModuleList(Layer(parts, residual) for _ in range(n_layer))
    model.reset_parameters()
    if not residual:  # without a sum nothing adds up: each matrix keeps the size of its input
        for p in model.layers.parameters():
            if p.ndim == 2:
                torch.nn.init.normal_(p, std=p.shape[1] ** -0.5)
    return model


def run(inputs, seed):
    """Return the loss above the floor of each training run.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the texts and of the first weights.

    Returns
    -------
    dict
        ``[depth][variant][rate]`` in nats per word; the keys are strings, as JSON has them.
    """
    rng = np.random.default_rng(seed)
    text, _ = windows(inputs["steps"] * inputs["batch"], rng)
    batches = torch.from_numpy(text).unflatten(0, (inputs["steps"], inputs["batch"]))
    fresh, nats = windows(FRESH, rng)
    fresh, floor = torch.from_numpy(fresh), float(nats.mean())
    return {
        str(depth): {
            variant: {
                f"{rate:g}": train(variant, depth, rate, seed, batches, fresh) - floor
                for rate in inputs["rates"]
            }
            for variant in inputs["variants"]
        }
        for depth in inputs["depths"]
    }


def train(variant, n_layer, rate, seed, batches, fresh):
    """Train one model with AdamW and return its loss on fresh text, in nats per word."""
    with seeded(seed):
        model = build(variant, n_layer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    for step, batch in enumerate(batches):
        risen = rate * min(1, (step + 1) / 20)
        make_update(model, optimizer, _loss(model, batch), rate=risen, max_norm=math.inf)
    with torch.no_grad():
        return _loss(model, fresh).item()


def _loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
