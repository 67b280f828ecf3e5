r"""Pre-norm or post-norm: which stacks train, by depth, learning rate and warm-up.

The task is to give back the token of two steps before, among 16; guessing costs
:math:`\ln 16 = 2.77` nats.
A stack of causal Transformer layers is trained on fresh random tokens.
Both forms get the same trials: every rate, with and without a warm-up, from every seed.
Matrices are drawn from Glorot's uniform distribution and biases are 0, as in Xiong et al.
(2020), arXiv:2002.04745; a pre-norm stack ends with one more norm, without which its output
would grow with its depth.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib.experiments.training import make_update, seeded
from seqlib.pt.norm import LayerNorm
from seqlib.pt.transformer import TransformerLayer

INPUTS = {
    "depths": [2, 6, 12, 24],
    "rates": [0.001, 0.003, 0.01],
    "warmups": [0, 60],
    "steps": 200,
    "batch": 16,
}
# Each run starts from its seed alone, so fewer of them leave the numbers of the others as is.
REDUCED = {**INPUTS, "depths": [2], "rates": [0.003]}
SEEDS = (0, 1, 2, 3, 4)
# Two hundred steps of Adam enlarge the last bit of another processor's matrix product.
TOLERANCE = {"rtol": 0.0, "atol": 0.05}
PACKAGES = ("torch",)

V, LENGTH, LAG = 16, 8, 2
D, N_HEAD = 32, 2
TAIL = 20  # the reported loss is the mean of so many last steps


class Stack(nn.Module):
    """A language model of ``depth`` layers without a trick beside the norms."""

    def __init__(self, depth, norm):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.positions = nn.Parameter(torch.randn(LENGTH, D))
        self.layers = nn.ModuleList(
            TransformerLayer(D, N_HEAD, 4 * D, norm=norm, feed_forward="relu")
            for _ in range(depth)
        )
        for name, p in self.layers.named_parameters():
            if p.ndim == 2:
                nn.init.xavier_uniform_(p)
            elif name.endswith("bias"):
                nn.init.zeros_(p)
        self.norm = LayerNorm(D) if norm == "pre" else nn.Identity()
        self.head = nn.Linear(D, V)

    def forward(self, ids):
        """Map ids of shape ``(B, T)`` to logits of shape ``(B, T, V)``."""
        x = self.embedding(ids) + self.positions
        for layer in self.layers:
            x = layer(x, causal=True)
        return self.head(self.norm(x))


def run(inputs, seed):
    """Return the loss at the end of each training run.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the parameters and of the data.

    Returns
    -------
    dict
        ``[norm][warmup][rate][depth]`` in nats, mean of the last 20 steps; the keys are
        strings, as JSON has them.
    """
    return {
        norm: {
            str(warmup): {
                f"{rate:g}": {
                    str(depth): train(depth, norm, rate, warmup, seed, inputs)
                    for depth in inputs["depths"]
                }
                for rate in inputs["rates"]
            }
            for warmup in inputs["warmups"]
        }
        for norm in ("pre", "post")
    }


def train(depth, norm, rate, warmup, seed, inputs):
    """Train one stack with Adam and return the mean loss of the last steps."""
    with seeded(seed):
        model = Stack(depth, norm)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.99), fused=True)
        losses = []
        for step in range(inputs["steps"]):
            ids = torch.randint(V, (inputs["batch"], LENGTH))
            logits = model(ids)[:, LAG:]  # the first two steps have nothing to give back
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, :-LAG].flatten())
            risen = rate * min(1, (step + 1) / max(warmup, 1))
            losses.append(make_update(model, optimizer, loss, rate=risen, max_norm=math.inf))
    return sum(losses[-TAIL:]) / TAIL


def plot(record):
    """Draw the final losses against the depth, one panel a rate; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    rates = [f"{rate:g}" for rate in record["inputs"]["rates"]]
    depths = record["inputs"]["depths"]
    figure, axes = plt.subplots(
        1, len(rates), figsize=(7.2, 3.4), sharey=True, layout="constrained"
    )
    for axis, rate in zip(axes, rates, strict=True):
        for norm, color in (("pre", style.BLUE), ("post", style.ORANGE)):
            for warmup, dash in zip(record["inputs"]["warmups"], ("o-", "s--"), strict=True):
                key = str(warmup)
                runs = [list(found[norm][key][rate].values()) for found in record["by_seed"]]
                label = f"{norm}-norm, {warmup or 'no'} steps of warm-up"
                axis.plot(depths, np.median(runs, axis=0), dash, color=color, label=label)
                for values in runs:
                    axis.plot(depths, values, dash[0], color=color, alpha=0.35, markersize=3)
        axis.axhline(CHANCE, color=style.TEXT, linewidth=0.8, linestyle=":")
        axis.set(xscale="log", xticks=depths, xticklabels=depths, title=f"rate {rate}")
        axis.minorticks_off()
        axis.set_xlabel("layers")
    axes[0].set_ylabel("loss at the end (nats)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


CHANCE = math.log(V)
