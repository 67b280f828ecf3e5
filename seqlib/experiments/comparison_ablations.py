r"""What a small Transformer loses with each of its parts, in nats above the floor.

One model of the stories, word by word (:mod:`seqlib.experiments.comparison_words`), and the
same with one thing changed. All have the same steps, the same warm-up, the same learning rates
of which the better one counts, and read the same stories.

``whole``
    two pre-norm layers of four heads with learned positions,
``no_positions``, ``one_head``, ``no_feed_forward``, ``no_norm``
    one thing less,
``post_norm``
    the norms behind the sums, with the warm-up that they need,
``no_mask``
    every word sees the whole window, the words that it is to predict among them.

Besides the loss as it is usually computed, on whole windows at once, the loss of the last word
of windows that end there is measured: what a model can know when it writes. And it writes: from
the first word of a story it draws word by word, until a window is full, and the words before
the first one that the grammar cannot follow are counted.
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib.data.stories import story_grammar
from seqlib.experiments.comparison_words import T, vocabulary, windows
from seqlib.experiments.training import Recipe, learning_rate, make_update, seeded
from seqlib.pt.decoder import DecoderConfig, DecoderLM
from seqlib.pt.transformer import TransformerLayer

VARIANTS = {
    "whole": "the whole model",
    "one_head": "one head",
    "post_norm": "post-norm, with warm-up",
    "no_norm": "no norm",
    "no_feed_forward": "no feed-forward",
    "no_positions": "no positions",
    "no_mask": "no mask",
}
INPUTS = {
    "variants": list(VARIANTS),
    "width": 48,
    "layers": 2,
    "heads": 4,
    "batch": 16,
    "steps": 400,
    "warmup": 40,
    "rates": [0.003, 0.01],
    "fresh": 256,
    "written": 40,
    "clock": True,
}
# Each run starts from its seed alone, so fewer of them leave the numbers of the others as is.
REDUCED = {
    **INPUTS,
    "variants": ["no_feed_forward"],
    "rates": [0.01],
    "written": 0,
    "clock": False,
}
SEEDS = (0, 1, 2, 3, 4)
# Four hundred steps of AdamW enlarge the last bit of another processor's matrix product.
TOLERANCE = {"rtol": 0.0, "atol": 0.05}
PACKAGES = ("numpy", "torch")
ENDS = (6, 12, 18, 24)  # words of the windows whose last word is predicted


class Attention(TransformerLayer):
    """A layer without a feed-forward network."""

    def __init__(self, dim, n_head):
        super().__init__(dim, n_head, 1)
        self.linear1 = self.linear2 = self.norm2 = None

    def forward(self, x, *, causal):
        """Map ``x`` of shape ``(B, T, D)`` to the same shape."""
        return x + self._self_attention(self.norm1(x), None, causal)


class Unmasked(TransformerLayer):
    """A layer without a mask."""

    def forward(self, x, *, causal):
        """Map ``x`` of shape ``(B, T, D)`` to the same shape; every token sees all others."""
        return super().forward(x)


def build(variant, inputs):
    """Return a fresh model of one variant, drawn from PyTorch's global generator."""
    D, N = inputs["width"], 1 if variant == "one_head" else inputs["heads"]
    model = DecoderLM(
        DecoderConfig(
            len(vocabulary()),
            T,
            D,
            inputs["layers"],
            N,
            norm="post" if variant == "post_norm" else "pre",
            positions="none" if variant == "no_positions" else "learned",
        )
    )
    if variant == "no_feed_forward":
        model.layers = nn.ModuleList(Attention(D, N) for _ in model.layers)
    if variant == "no_mask":
        model.layers = nn.ModuleList(Unmasked(D, N, 4 * D) for _ in model.layers)
    if variant == "no_norm":
        model.norm = nn.Identity()
        for layer in model.layers:
            layer.norm1 = layer.norm2 = nn.Identity()
    model.reset_parameters()
    return model


def run(inputs, seed):
    """Return what each variant reaches with each learning rate.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the texts and of the first weights.

    Returns
    -------
    dict
        ``[variant][rate]`` with ``above`` and ``writing``, nats per word above the floor on
        whole windows and of last words, and ``legal``, the mean number of words written before
        the first wrong one; with ``clock`` the ``seconds`` of processor time of the training.
    """
    rng = np.random.default_rng(seed)
    text, _ = windows(inputs["steps"] * inputs["batch"], rng)
    batches = torch.from_numpy(text).unflatten(0, (inputs["steps"], inputs["batch"]))
    fresh, nats = windows(inputs["fresh"], rng)
    found = {}
    for variant in inputs["variants"]:
        for rate in inputs["rates"]:
            start = time.process_time()
            model = train(variant, rate, batches, inputs, seed)
            seconds = {"seconds": time.process_time() - start} if inputs["clock"] else {}
            found.setdefault(variant, {})[f"{rate:g}"] = {
                **seconds,
                "above": loss(model, torch.from_numpy(fresh)) - float(nats.mean()),
                "writing": writing(model, torch.from_numpy(fresh), nats),
            }
            if inputs["written"]:
                words = legal(model, inputs["written"], seed)
                found[variant][f"{rate:g}"]["legal"] = float(np.mean(words))
    return found


def train(variant, rate, batches, inputs, seed):
    """Return one trained model."""
    with seeded(seed):
        model = build(variant, inputs)
    recipe = Recipe(steps=len(batches), lr=rate, warmup=inputs["warmup"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    for step, batch in enumerate(batches):
        make_update(model, optimizer, _loss(model, batch), rate=learning_rate(step, recipe))
    return model


def _loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def loss(model, ids):
    """Return the mean loss over windows, in nats per word."""
    return _loss(model, ids).item()


@torch.no_grad()
def writing(model, ids, nats):
    """Return the mean loss of last words, above their floor: nothing behind them is there."""
    found = [
        F.cross_entropy(model(ids[:, :end])[:, -1], ids[:, end]).item()
        - nats[:, end - 1].mean()
        for end in ENDS
    ]
    return float(np.mean(found))


@torch.no_grad()
def write(model, n, seed):
    """Return ``n`` texts of T words that the model drew, each a list."""
    words, rng = vocabulary(), np.random.default_rng([seed, 3])
    heroes = [words.index(f"{name} ") for name in ("Anna", "Ben", "Clara", "Felix")]
    ids = torch.from_numpy(rng.choice(heroes, size=(n, 1)))
    for _ in range(T - 1):
        p = F.softmax(model(ids)[:, -1].double(), dim=-1).numpy()
        drawn = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        ids = torch.cat([ids, torch.from_numpy(drawn.clip(max=len(words) - 1))[:, None]], dim=1)
    return [[words[i] for i in row] for row in ids]


def legal(model, n, seed):
    """Return for ``n`` texts how many words the grammar can follow."""
    return [follow(words) for words in write(model, n, seed)]


def follow(words):
    """Return how many words from the first on are a text of the grammar, or begin one."""
    low, high = 0, len(words)
    grammar = story_grammar()
    while low < high:
        middle = (low + high + 1) // 2
        try:
            grammar.nats("".join(words[:middle]))
            low = middle
        except ValueError:
            high = middle - 1
    return low


def best(record):
    """Return for each variant the rows of the seeds, at the rate with the lower mean loss."""
    found = {}
    for variant in record["inputs"]["variants"]:
        rows = [seed[variant] for seed in record["by_seed"]]
        rate = min(rows[0], key=lambda rate: np.mean([row[rate]["above"] for row in rows]))
        found[variant] = [row[rate] for row in rows]
    return found


def plot(record):
    """Draw the variants, one line each, the seeds as points; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    found = best(record)
    figure, axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for height, rows in enumerate(found.values()):
        for measure, marker, color in (
            ("above", "o", style.BLUE),
            ("writing", "D", style.ORANGE),
        ):
            values = [row[measure] for row in rows]
            label = {"above": "on whole windows", "writing": "of the last word"}[measure]
            axis.plot(
                values,
                [height] * len(values),
                marker,
                color=color,
                alpha=0.7,
                label=label if height == 0 else None,
            )
    axis.axvline(0, color=style.TEXT, linewidth=0.8)
    axis.set_yticks(range(len(found)), [VARIANTS[variant] for variant in found])
    axis.invert_yaxis()
    axis.set(xlabel="nats per word above the floor")
    figure.legend(loc="outside lower center", ncols=2)
    return figure
