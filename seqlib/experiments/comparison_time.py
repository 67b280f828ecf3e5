"""What a training step of each network costs: operations counted, processor time measured.

The networks are those of :mod:`seqlib.experiments.comparison`. Every step reads the same number
of characters, as few long windows or as many short ones: forward, backward, clipping and the
update. All take turns in every round, on one thread, so that other work on the machine meets
all alike; the median of the rounds counts. A time belongs to the machine and to the programs
that it was measured with: PyTorch has one function for all steps of an LSTM, and composes those
of a GRU. Without rounds ``run`` only counts, which is what a test computes again.
"""

import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F

from seqlib.complexity import layer_cost, rnn_cost
from seqlib.experiments.comparison import INPUTS as NETWORKS
from seqlib.experiments.comparison_models import CELLS, make
from seqlib.experiments.comparison_text import ALPHABET
from seqlib.experiments.training import seeded

INPUTS = {
    "kinds": ["rnn", "lstm", "gru", "transformer"],
    "contexts": [16, 64, 256, 1024],
    "tokens": 1024,
    "rounds": 9,
}
REDUCED = {**INPUTS, "rounds": 0}
SEEDS = (0, 1, 2, 3, 4)
TOLERANCE = {"rtol": 0.0, "atol": 0.0}
PACKAGES = ("numpy", "torch")


def run(inputs, seed):
    """Return what a training step costs.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the weights and of the characters.

    Returns
    -------
    dict
        ``flops[kind][context]``, operations of a forward pass for each character;
        ``chain[kind][context]``, matrix products of the layers that must wait for each other
        in a forward pass; with rounds ``milliseconds[kind][context]``, time of a step.
    """
    kinds, contexts = inputs["kinds"], inputs["contexts"]
    found = {
        "flops": {k: {str(T): flops(k, T) for T in contexts} for k in kinds},
        "chain": {k: {str(T): chain(k, T) for T in contexts} for k in kinds},
    }
    if inputs["rounds"]:
        found["milliseconds"] = {kind: {} for kind in kinds}
        for T in contexts:
            for kind, value in zip(kinds, milliseconds(T, inputs, seed), strict=True):
                found["milliseconds"][kind][str(T)] = value
    return found


def flops(kind, T):
    """Return the operations of a forward pass for each character, counted."""
    V, D, size = len(ALPHABET), NETWORKS["width"], NETWORKS["sizes"][kind]
    if kind in CELLS:
        total = sum(cost.flops for cost in rnn_cost(T, D, size, kind=kind).values())
        return total / T + 2 * size * V
    options = {"n_head": NETWORKS["heads"], "F": size, "activation": "swiglu"}
    total = sum(cost.flops for cost in layer_cost(T, D, **options).values())
    return NETWORKS["layers"] * total / T + 2 * D * V


def chain(kind, T):
    """Return how many matrix products of a forward pass must wait for each other.

    A recurrent layer multiplies its state once a step. A Transformer layer has six products one
    behind the other, whatever T is: projections, scores, values, output and two of the
    feed-forward network.
    """
    return T + 2 if kind in CELLS else 6 * NETWORKS["layers"] + 1


def milliseconds(T, inputs, seed):
    """Return the median time of a training step of each kind, the kinds taking turns."""
    with seeded(seed):
        models = [make(kind, len(ALPHABET), NETWORKS, T) for kind in inputs["kinds"]]
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-3, fused=True) for m in models]
    rng = np.random.default_rng(seed)
    x, y = rng.integers(len(ALPHABET), size=(2, inputs["tokens"] // T, T))
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    times = [[] for _ in models]
    for _ in range(inputs["rounds"] + 1):
        for model, optimizer, row in zip(models, optimizers, times, strict=True):
            start = time.thread_time()
            _step(model, optimizer, x, y)
            row.append(1e3 * (time.thread_time() - start))
    return [statistics.median(row[1:]) for row in times]  # the first call sets things up


def _step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x)[0].flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
