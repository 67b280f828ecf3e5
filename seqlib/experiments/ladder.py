r"""The ladder: how far each piece of a language model brings it down to the grammar's floor.

Small models of characters read stories of :func:`seqlib.data.stories` one by one, the first
characters of each, and are measured on fresh stories by one number: nats per character above
the floor, the mean of :math:`-\ln p` of these characters under the grammar.

``counts``
    ten characters counted together, :class:`seqlib.data.NGramLM`,
``rnn``, ``lstm``, ``gru``
    one recurrent layer as PyTorch starts it,
``attention``
    one layer of causal attention with a residual connection, and nothing else,
``positions``, ``feed_forward``, ``norm``, ``depth``
    the same with one more piece each: learned positions, a feed-forward network, pre-norm with
    a final norm, and three such layers in place of one.

All networks have the same width and see the same number of stories. Each is trained with every
learning rate, and :func:`best` takes for each rung the rate with the lower mean over the seeds.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib.data import NGramLM, stories, story_grammar
from seqlib.experiments.training import make_update, seeded
from seqlib.pt.multihead import MultiHeadAttention
from seqlib.text import CharTokenizer

INPUTS = {
    "stories": 1000,
    "fresh": 200,
    "width": 64,
    "heads": 4,
    "characters": 128,
    "batch": 16,
    "steps": 500,
    "rates": [0.003, 0.01],
    "rungs": [
        "counts",
        "rnn",
        "lstm",
        "gru",
        "attention",
        "positions",
        "feed_forward",
        "norm",
        "depth",
    ],
}
REDUCED = {**INPUTS, "rungs": ["counts"]}
SEEDS = (0, 1, 2, 3, 4)
TOLERANCE = {"rtol": 1e-6, "atol": 0.0}
PACKAGES = ("numpy", "torch")

NAMES = {
    "counts": "10 characters counted",
    "rnn": "RNN",
    "lstm": "LSTM",
    "gru": "GRU",
    "attention": "attention alone",
    "positions": "+ positions",
    "feed_forward": "+ feed-forward",
    "norm": "+ norms",
    "depth": "+ depth: 3 layers",
}
ORDER = 10  # characters of the counts
IGNORED = -100


def run(inputs, seed):
    """Return nats above the floor of each rung, by learning rate for the networks.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the stories, of the parameters and of the batches.

    Returns
    -------
    dict
        ``floor``, and ``above["counts"]`` or ``above[rung][rate]``.
    """
    draw = np.random.default_rng([seed, inputs["stories"]])
    training, fresh = stories(inputs["stories"], draw), stories(inputs["fresh"], draw)
    characters = CharTokenizer.train(stories(2000, np.random.default_rng(100)))
    V = len(characters.characters)
    kept = first(fresh, inputs["characters"])
    floor = float(story_grammar().nats(fresh)[kept].mean())
    above = {}
    for rung in inputs["rungs"]:
        if rung == "counts":
            counts = NGramLM(ORDER, V, strength=0.3).fit(np.array(characters.encode(training)))
            loss = counts.nats(np.array(characters.encode(fresh)))[kept].mean()
            above[rung] = float(loss) - floor
            continue
        above[rung] = {}
        for rate in inputs["rates"]:
            with seeded(seed):
                model = Model(rung, V, inputs)
            train(model, pairs(training, characters, inputs["characters"]), rate, inputs, seed)
            loss = loss_of(model, pairs(fresh, characters, inputs["characters"]))
            above[rung][str(rate)] = loss - floor
    return {"floor": floor, "above": above}


def first(text, T):
    """Return which characters of a text are among the first T of their story."""
    lengths = map(len, text.splitlines(keepends=True))
    return np.concatenate([np.arange(length) < T for length in lengths])


def pairs(text, characters, T):
    """Return inputs and targets of shape (stories, T), one row a story.

    The first input is the end of a line, which stands before every story; what is behind the
    end of a story is no target.
    """
    lines = text.splitlines(keepends=True)
    (end,) = characters.encode("\n")
    targets = np.full((len(lines), T), IGNORED)
    for row, line in zip(targets, lines, strict=True):
        row[: len(line)] = characters.encode(line[:T])
    inputs = np.concatenate([np.full((len(lines), 1), end), targets[:, :-1]], axis=1)
    return torch.from_numpy(np.where(inputs == IGNORED, end, inputs)), torch.from_numpy(targets)


def train(model, data, rate, inputs, seed):
    """Train on random stories with AdamW, a short warm-up and a rate that falls to 0."""
    draw = np.random.default_rng(seed)
    steps, warm = inputs["steps"], inputs["steps"] // 10
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    for step in range(steps):
        rows = draw.integers(len(data[0]), size=inputs["batch"])
        loss = _loss(model, *(part[rows] for part in data), "mean")
        factor = min((step + 1) / warm, (steps - step) / (steps - warm))
        make_update(model, optimizer, loss, rate=rate * factor)


@torch.no_grad()
def loss_of(model, data):
    """Return the mean over all characters, in nats."""
    total = sum(
        _loss(model, x, y, "sum").item()
        for x, y in zip(*(d.split(50) for d in data), strict=True)
    )
    return total / int((data[1] != IGNORED).sum())


def _loss(model, x, y, reduction):
    kept = int((y != IGNORED).any(dim=0).sum())  # steps that some row has
    logits = model(x[:, :kept])
    return F.cross_entropy(logits.flatten(0, 1), y[:, :kept].flatten(), reduction=reduction)


class Model(nn.Module):
    """A language model of one rung."""

    def __init__(self, rung, V, inputs):
        super().__init__()
        width, heads, longest = inputs["width"], inputs["heads"], inputs["characters"]
        self.embedding = nn.Embedding(V, width)
        nn.init.normal_(self.embedding.weight, std=0.5)
        cells = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
        self.recurrent = cells[rung](width, width, batch_first=True) if rung in cells else None
        level = ["attention", "positions", "feed_forward", "norm", "depth"]
        level = level.index(rung) if rung in level else -1
        self.positions = nn.Parameter(0.5 * torch.randn(longest, width)) if level >= 1 else None
        self.layers = nn.ModuleList(
            Layer(width, heads, feed_forward=level >= 2, norm=level >= 3)
            for _ in range(0 if level < 0 else 3 if level >= 4 else 1)
        )
        self.norm = nn.LayerNorm(width) if level >= 3 else nn.Identity()
        self.head = nn.Linear(width, V)

    def forward(self, ids):
        """Return logits of shape (B, T, V)."""
        x = self.embedding(ids)
        if self.recurrent is not None:
            return self.head(self.recurrent(x)[0])
        if self.positions is not None:
            x = x + self.positions[: ids.shape[1]]
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))


class Layer(nn.Module):
    """Attention with a residual connection, then a feed-forward network if there is one."""

    def __init__(self, width, heads, *, feed_forward, norm):
        super().__init__()
        self.attention = MultiHeadAttention(width, heads)
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if norm else nn.Identity() for _ in range(2)
        )
        self.feed_forward = feed_forward and nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        """Return an array of the shape of x."""
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.feed_forward(self.norms[1](x)) if self.feed_forward else x


def best(record):
    """Return for each rung the values of the seeds, at the better learning rate."""
    found = {}
    for rung in record["inputs"]["rungs"]:
        values = [seed["above"][rung] for seed in record["by_seed"]]
        if isinstance(values[0], dict):
            rates = [[value[rate] for value in values] for rate in values[0]]
            values = min(rates, key=np.mean)
        found[rung] = values
    return found


def plot(record, rungs=None, *, new=()):
    """Draw the rungs, one line each, the seeds as points; return the figure.

    The axis is that of all rungs, so that the figures of several chapters compare. Rungs in
    ``new`` are drawn as diamonds, with a bold name.
    """
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    found = best(record)
    rungs = [rung for rung in found if rungs is None or rung in rungs]
    figure, axis = plt.subplots(figsize=(6.4, 0.7 + 0.34 * len(rungs)), layout="constrained")
    for height, rung in enumerate(rungs):
        marker, color = ("D", style.GREEN) if rung in new else ("o", style.BLUE)
        axis.plot(found[rung], [height] * len(found[rung]), marker, color=color, alpha=0.6)
        axis.plot(np.mean(found[rung]), height, "|", ms=16, mew=2, color=style.ORANGE)
    axis.set_yticks(range(len(rungs)), [NAMES[rung] for rung in rungs])
    for rung, label in zip(rungs, axis.get_yticklabels(), strict=True):
        label.set_fontweight("bold" if rung in new else "normal")
    axis.set(xscale="log", xlabel="nats per character above the floor")
    values = np.concatenate(list(found.values()))
    axis.set_xlim(0.9 * values.min(), 1.2 * values.max())
    axis.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    axis.set_xticks([], minor=True)
    axis.set_ylim(len(rungs) - 0.5, -0.5)
    return figure
