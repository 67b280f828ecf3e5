r"""One fixed vector between encoder and decoder, or attention: copying at growing lengths.

A GRU reads ``length`` random symbols, a second GRU writes them again
(:func:`seqlib.data.copy` without its blanks). Three models are compared:

``fixed``
    32 units; the decoder starts from the encoder's last state and sees it at every step,
``wide``
    the same with 64 units,
``attention``
    32 units; at every step the last state is replaced by an average of all encoder states,
    weighted by additive attention with the decoder's state as the query.

All are trained with teacher forcing, the same batches, rate and number of updates, and stop
early when the loss of ten batches in a row is below 0.02.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib.data import copy
from seqlib.experiments.training import make_update, seeded
from seqlib.pt import additive_attention

INPUTS = {
    "symbols": 8,
    "embedding": 16,
    "batch": 64,
    "steps": 600,
    "rate": 0.01,
    "lengths": [4, 8, 16],
    "early": 10,
    "parts": ["early", "full"],
}
# Hundreds of updates make the rounding of another processor grow into other answers.
REDUCED = {**INPUTS, "parts": ["early"]}
SEEDS = (0, 1, 2, 3, 4)
# Ten updates on another processor differ in the last digits of the loss.
TOLERANCE = {"rtol": 1e-3, "atol": 0.0}
PACKAGES = ("numpy", "torch")

KINDS = {"fixed": 32, "wide": 64, "attention": 32}
NAMES = {
    "fixed": "one vector of 32",
    "wide": "one vector of 64",
    "attention": "attention, 32 units",
}
FRESH = 1000  # sequences on which the models are measured
MAPPED = 8  # the longest sequence whose weights are kept


class Copier(nn.Module):
    """Encoder and decoder, joined by the last state or by additive attention."""

    def __init__(self, symbols, embedding, hidden, *, attention):
        super().__init__()
        self.attention = attention
        self.read = nn.Embedding(symbols, embedding)
        self.written = nn.Embedding(symbols + 1, embedding)  # one more: where a text begins
        self.encoder = nn.GRU(embedding, hidden, batch_first=True)
        self.decoder = nn.GRU(embedding, hidden, batch_first=True)
        self.head = nn.Linear(2 * hidden, symbols)
        if attention:
            shapes = ((hidden, hidden), (hidden, hidden), (hidden,))
            self.score = nn.ParameterList(torch.randn(s) / hidden**0.5 for s in shapes)

    def encode(self, source):
        """Return all states of the encoder, and the last one."""
        return self.encoder(self.read(source))

    def decode(self, written, state, keys):
        """Return logits, the decoder's last state and the weights, None without attention."""
        queries, state = self.decoder(self.written(written), state)
        if self.attention:
            identity = torch.eye(keys.shape[1]).expand(len(keys), -1, -1)
            weights = additive_attention(queries, keys, identity, *self.score)
            context = weights @ keys
        else:
            weights, context = None, keys[:, -1:].expand_as(queries)
        return self.head(torch.cat([queries, context], dim=-1)), state, weights


def draw(n, rng, inputs, length):
    """Return sources, what the decoder reads, and targets, each ``(n, length)``."""
    V = inputs["symbols"]
    ids, targets = copy(n, rng, length=length, lag=length, V=V)
    source, targets = ids[:, :length], targets[:, length:]
    begin = np.full((n, 1), V)
    shifted = np.concatenate([begin, targets[:, :-1]], axis=1)
    return [torch.from_numpy(np.ascontiguousarray(a)) for a in (source, shifted, targets)]


def train(kind, length, inputs, seed):
    """Return a trained model."""
    with seeded(seed):
        model = Copier(
            inputs["symbols"],
            inputs["embedding"],
            KINDS[kind],
            attention=kind == "attention",
        )
    rng = np.random.default_rng([seed, length])
    optimizer = torch.optim.Adam(model.parameters(), lr=inputs["rate"], fused=True)
    easy = 0
    for _ in range(inputs["steps"]):
        source, shifted, targets = draw(inputs["batch"], rng, inputs, length)
        keys, state = model.encode(source)
        logits, _, _ = model.decode(shifted, state, keys)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        easy = easy + 1 if make_update(model, optimizer, loss) < 0.02 else 0
        if easy == 10:
            break
    return model


@torch.no_grad()
def measure(model, length, inputs, seed):
    """Return what a model does on fresh sequences, and its mean weights."""
    rng = np.random.default_rng([seed, length, 1])
    source, shifted, targets = draw(FRESH, rng, inputs, length)
    keys, state = model.encode(source)
    logits, _, weights = model.decode(shifted, state, keys)
    forced = logits.argmax(dim=-1) == targets
    token, free = shifted[:, :1], []
    for _ in range(length):
        logits, state, _ = model.decode(token, state, keys)
        token = logits.argmax(dim=-1)
        free.append(token)
    free = torch.cat(free, dim=1) == targets
    found = {
        "forced": float(forced.double().mean()),
        "free": float(free.double().mean()),
        "exact": float(free.all(dim=1).double().mean()),
        "first": float(free[:, 0].double().mean()),
        "last": float(free[:, -1].double().mean()),
    }
    return found, None if weights is None else weights.double().mean(dim=0).numpy()


def early_loss(kind, length, inputs, seed):
    """Return the loss on fresh sequences after the first ``inputs["early"]`` updates."""
    model = train(kind, length, {**inputs, "steps": inputs["early"]}, seed)
    rng = np.random.default_rng([seed, length, 1])
    source, shifted, targets = draw(FRESH, rng, inputs, length)
    with torch.no_grad():
        keys, state = model.encode(source)
        logits, _, _ = model.decode(shifted, state, keys)
    return float(F.cross_entropy(logits.flatten(0, 1), targets.flatten()))


def run(inputs, seed):
    """Return for each model and length how much of fresh sequences it copies.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the repetition: of the initial weights and of the sequences.

    Returns
    -------
    dict
        ``[kind][measure][length]`` with the measures ``forced``, the share of symbols that
        are right when the decoder reads the right symbols so far; ``free``, the same when it
        reads its own; ``exact``, the share of sequences without a mistake; ``first`` and
        ``last``, as ``free`` for one place. With attention also ``near``, the weight on the
        right symbol and the next one, and ``map``, the mean weights as ``[length][i][j]``.
        ``early[kind][length]`` is the loss after ten updates, see :func:`early_loss`.
    """
    found = {}
    if "early" in inputs["parts"]:
        found["early"] = {
            kind: {str(n): early_loss(kind, n, inputs, seed) for n in inputs["lengths"]}
            for kind in KINDS
        }
    if "full" not in inputs["parts"]:
        return found
    for kind in KINDS:
        row = found.setdefault(kind, {})
        for length in inputs["lengths"]:
            model = train(kind, length, inputs, seed)
            measures, weights = measure(model, length, inputs, seed)
            if weights is not None:
                both = np.diag(weights).sum() + np.diag(weights, 1).sum()
                measures["near"] = float(both / length)
                if length <= MAPPED:
                    table = {
                        str(i): {str(j): float(a) for j, a in enumerate(line)}
                        for i, line in enumerate(weights)
                    }
                    row.setdefault("map", {})[str(length)] = table
            for name, value in measures.items():
                row.setdefault(name, {})[str(length)] = value
    return found


def plot(record):
    """Draw the accuracy against the length, and the mean weights; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.8), layout="constrained")
    lengths = [int(length) for length in record["inputs"]["lengths"]]
    for kind, color, mark in zip(KINDS, style.COLORS, ("o-", "s--", "^-."), strict=False):
        values = [list(seed[kind]["free"].values()) for seed in record["by_seed"]]
        left.plot(lengths, np.mean(values, axis=0), mark, color=color, label=NAMES[kind])
        left.vlines(lengths, np.min(values, axis=0), np.max(values, axis=0), color=color)
    chance = 1 / record["inputs"]["symbols"]
    left.axhline(chance, color=style.TEXT, linestyle=":", label="guessing")
    left.set(xscale="log", xticks=lengths, xticklabels=lengths, ylim=(0, 1.05))
    left.minorticks_off()
    left.set(xlabel="symbols to copy", ylabel="share of symbols copied rightly")
    table = record["results"]["attention"]["map"][str(MAPPED)]
    weights = np.array([list(line.values()) for line in table.values()])
    places = range(1, MAPPED + 1)
    style.heat_map(right, weights, places, places, show="{:.1f}".format)
    right.set(xlabel="symbol that is read, $j$", ylabel="symbol that is written, $i$")
    right.set_title("mean weights, five seeds")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
