"""RNN, LSTM, GRU and Transformer on one real text, with equal numbers of everything.

All have the same number of parameters within 1 % and read the same batches of the same text in
the same order (:mod:`seqlib.experiments.comparison_text`, character by character). Each is
trained with two learning rates; at every budget the one counts that has the lower mean loss on
a text of its own over the seeds (:func:`seqlib.experiments.comparison_curves.best_rate`).

The rate stays constant behind a short warm-up, and what is measured is a running mean of the
weights. So every point of a curve is what a run gives that ends there, and the curves can be
read at equal numbers of tokens as well as at equal times.

``rnn``, ``lstm``, ``gru``
    carry their state from batch to batch, in training,
``rnn_reset``, ``lstm_reset``
    begin every batch with a state of 0; with one rate, and for fewer steps,
``transformer``
    has nothing to carry.

The loss on the test text is measured in three ways, over the same characters:

``equal``
    windows that overlap by half, of which the second half counts: every prediction sees between
    half a context and a whole one, for all networks alike,
``windows``
    windows that do not overlap: a prediction sees between one character and a whole context,
``carried``
    the text is read from its beginning (recurrent networks alone).
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from seqlib.data import contiguous_batches
from seqlib.experiments import comparison_text as text
from seqlib.experiments.comparison_models import CELLS, detached, make
from seqlib.experiments.training import make_update, parameter_groups, seeded

INPUTS = {
    "kinds": ["rnn", "lstm", "gru", "transformer", "rnn_reset", "lstm_reset"],
    "width": 64,
    "sizes": {"rnn": 244, "lstm": 119, "gru": 139, "transformer": 172},
    "layers": 2,
    "heads": 4,
    "context": 64,
    "batch": 16,
    "rates": {
        "rnn": [0.003, 0.006],
        "lstm": [0.01, 0.02],
        "gru": [0.006, 0.012],
        "transformer": [0.002, 0.004],
        "rnn_reset": [0.006],
        "lstm_reset": [0.02],
    },
    "warmup": 50,
    "average": 0.98,
    "steps": 1000,
    "reset_steps": 500,
    "measured": [100, 200, 300, 500, 700, 1000],
    "in_all_ways": [500, 1000],
    "clock": True,
}
REDUCED = {
    **INPUTS,
    "kinds": ["lstm"],
    "rates": {"lstm": [0.02]},
    "steps": 100,
    "in_all_ways": [],
    "clock": False,
}
SEEDS = (0, 1, 2, 3, 4)
# Other processors add in another order, and training makes such differences grow.
TOLERANCE = {"rtol": 0.02, "atol": 0.0}
PACKAGES = ("numpy", "torch")

PLACES = (1, 2, 4, 8, 16, 32, 64)  # visible characters at which a bin ends
ROWS = 4  # the test text is read in so many rows


def run(inputs, seed):
    """Return what each network reaches.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the first weights, and of the place at which the text begins.

    Returns
    -------
    dict
        ``[kind]["parameters"]`` and ``[kind][rate]`` with the losses in nats per character:
        ``choice[step]`` on the text that the rate is chosen with, ``equal[step]``,
        ``windows[step]`` and ``carried[step]`` on the test text, and ``places[step]``, the loss
        in windows by the number of visible characters; with ``clock`` also
        ``[kind]["seconds"]`` of processor time, of all rates and with the measurements.
    """
    training, choice, test = (text.ids(part) for part in text.parts())
    training = np.roll(training, -np.random.default_rng(seed).integers(len(training)))
    found = {}
    for kind in inputs["kinds"]:
        steps = inputs["reset_steps" if kind.endswith("_reset") else "steps"]
        start = time.process_time()
        for rate in inputs["rates"][kind]:
            one = Run(kind, rate, training, inputs, seed)
            one.train(steps, choice, test)
            count = sum(p.numel() for p in one.model.parameters())
            row = found.setdefault(kind, {"parameters": count})
            row[f"{rate:g}"] = one.loss
        if inputs["clock"]:
            row["seconds"] = time.process_time() - start
    return found


class Run:
    """One network in training; it can be continued, and counts its steps.

    Parameters
    ----------
    kind : str
        One of ``INPUTS["kinds"]``.
    rate : float
        Learning rate behind the warm-up.
    ids : ndarray of int of shape (n,)
        The text, which is read in order, as often as is needed.
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the first weights.
    """

    def __init__(self, kind, rate, ids, inputs, seed):
        self.kind, _, reset = kind.partition("_")
        self.carry, self.rate, self.inputs = not reset, rate, inputs
        with seeded(seed):
            self.model = make(self.kind, len(text.ALPHABET), inputs, inputs["context"])
        groups = parameter_groups(self.model, 0.1)
        self.optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), fused=True)
        average = get_ema_multi_avg_fn(inputs["average"])
        self.averaged = AveragedModel(self.model, multi_avg_fn=average)
        self.steps, self.state, self.batches = 0, None, self._read(ids)
        self.loss = {"choice": {}, "equal": {}, "windows": {}, "places": {}}
        if self.kind in CELLS:
            self.loss["carried"] = {}

    def _read(self, ids):
        while True:
            self.state = None  # the text begins again
            for batch in contiguous_batches(ids, self.inputs["batch"], self.inputs["context"]):
                yield [torch.from_numpy(part) for part in batch]

    def train(self, steps, choice, test):
        """Train up to so many steps in all, and measure the loss on the way."""
        T = self.inputs["context"]
        while self.steps < steps:
            self._update(*next(self.batches))
            if self.steps in self.inputs["measured"]:
                key = str(self.steps)
                self.loss["choice"][key] = measure(self.averaged, choice, T, "equal")
                self.loss["equal"][key] = measure(self.averaged, test, T, "equal")
                if self.steps in self.inputs["in_all_ways"]:
                    self.loss["windows"][key] = measure(self.averaged, test, T, "windows")
                    self.loss["places"][key] = by_place(self.averaged, test, T)
                    if self.kind in CELLS:
                        self.loss["carried"][key] = measure(self.averaged, test, T, "carried")

    def _update(self, x, y):
        logits, state = self.model(x, self.state)
        self.state = detached(state) if self.carry else None
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        rate = self.rate * min(1, (self.steps + 1) / self.inputs["warmup"])
        make_update(self.model, self.optimizer, loss, rate=rate)
        self.averaged.update_parameters(self.model)
        self.steps += 1


@torch.no_grad()
def nats(model, ids, T, way):
    """Return the loss of each character of a text behind the first T of each of four rows.

    Parameters
    ----------
    model : callable
        Maps ids and a state to logits and a state.
    ids : ndarray of int of shape (n,)
        The text; what does not fill four rows of whole windows is left out.
    T : int
        Context, even.
    way : {"equal", "windows", "carried"}
        What a prediction sees; see the head of the module.

    Returns
    -------
    Tensor of shape (windows, places)
        Losses; with ``"windows"`` a prediction in column j sees j + 1 characters.
    """
    L = (len(ids) - 1) // ROWS // T * T
    x, y = (torch.from_numpy(part[: ROWS * L].reshape(ROWS, L)) for part in (ids[:-1], ids[1:]))
    if way == "carried":
        return _cross_entropy(model(x)[0][:, T:], y[:, T:])
    first, step, kept = (T // 2, T // 2, T // 2) if way == "equal" else (T, T, T)
    x, y = (part[:, first:].unfold(1, T, step).flatten(0, 1) for part in (x, y))
    pieces = zip(x.split(64), y.split(64), strict=True)
    return torch.cat([_cross_entropy(model(a)[0][:, -kept:], b[:, -kept:]) for a, b in pieces])


def measure(model, ids, T, way):
    """Return the mean of :func:`nats`."""
    return float(nats(model, ids, T, way).double().mean())


def by_place(model, ids, T):
    """Return the mean loss by the number of visible characters, in bins that end at PLACES."""
    found = nats(model, ids, T, "windows").double().mean(dim=0)
    ends = [place for place in PLACES if place <= T]
    return {
        str(end): float(found[start:end].mean())
        for start, end in zip([0, *ends], ends, strict=False)
    }


def _cross_entropy(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
