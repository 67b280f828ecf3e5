"""How far back can a recurrent network learn to look? Recall at growing lags.

The first token of a sequence is asked for after ``lag`` steps of other tokens, all drawn at
random from four (:func:`seqlib.data.recall`), so that who does not remember it is right in one
case of four. The networks have 32 units and differ in the cell and in where they start:

``rnn``, ``lstm``, ``gru``
    as PyTorch starts them,
``rnn_orthogonal``
    recurrent matrix orthogonal, so that the first states are neither stretched nor shrunk,
``lstm_1``, ``lstm_3``
    forget bias 1 and 3,
``gru_3``
    the bias of the update gate such that the old state is kept with sigma(3) = 0.95.

Each is trained at each lag with two learning rates, and the better one counts. Training ends
when the loss of twenty batches in a row is below 0.02, or after ``steps`` updates.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib.data import recall
from seqlib.experiments.training import make_update, seeded

INPUTS = {
    "units": 32,
    "symbols": 4,
    "batch": 32,
    "steps": 1000,
    "rates": [0.003, 0.01],
    "lags": [5, 10, 20, 40],
}
REDUCED = {**INPUTS, "lags": [5]}
SEEDS = (0, 1, 2, 3, 4)
# Of 1000 answers another processor's rounding may change a few.
TOLERANCE = {"rtol": 0.0, "atol": 0.01}
PACKAGES = ("numpy", "torch")

KINDS = {
    "rnn": "RNN as PyTorch starts it",
    "rnn_orthogonal": "RNN, orthogonal matrix",
    "lstm": "LSTM as PyTorch starts it",
    "lstm_1": "LSTM, forget bias 1",
    "lstm_3": "LSTM, forget bias 3",
    "gru": "GRU as PyTorch starts it",
    "gru_3": "GRU, bias 3 towards keeping",
}
SOLVED = 0.99
FRESH = 1000  # sequences on which the accuracy is measured


def run(inputs, seed):
    """Return for each network and lag the ``accuracy``, and whether that is ``solved``.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the repetition: of the initial weights and of the sequences.

    Returns
    -------
    dict
        ``[kind][measure][lag]`` with the measures ``accuracy``, of the better learning rate
        on fresh sequences, and ``solved``, 1 where it is at least 0.99 and else 0.
    """
    found = {}
    for kind in KINDS:
        for lag in inputs["lags"]:
            accuracy = max(train(kind, lag, rate, inputs, seed) for rate in inputs["rates"])
            row = found.setdefault(kind, {"accuracy": {}, "solved": {}})
            row["accuracy"][str(lag)] = accuracy
            row["solved"][str(lag)] = int(accuracy >= SOLVED)
    return found


def build(kind, inputs):
    """Return a layer of one kind; its initial numbers are drawn with PyTorch's generator."""
    D, H = inputs["symbols"] + 1, inputs["units"]
    layer = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[kind.partition("_")[0]]
    layer = layer(D, H, batch_first=True)
    if kind == "rnn_orthogonal":
        nn.init.orthogonal_(layer.weight_hh_l0)
    elif kind[-1].isdigit():
        # The second block of rows: the forget gate, and in PyTorch's GRU the gate that keeps.
        with torch.no_grad():
            layer.bias_ih_l0[H : 2 * H] = float(kind[-1])
            layer.bias_hh_l0[H : 2 * H] = 0
    return layer


def train(kind, lag, rate, inputs, seed):
    """Return the accuracy that one training reaches on fresh sequences."""
    with seeded(seed):
        layer = build(kind, inputs)
        head = nn.Linear(inputs["units"], inputs["symbols"])
    rng = np.random.default_rng([seed, lag])
    model = nn.ModuleList([layer, head])
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    easy = 0
    for _ in range(inputs["steps"]):
        logits, targets = _answers(layer, head, inputs["batch"], lag, inputs["symbols"], rng)
        loss = F.cross_entropy(logits, targets)
        easy = easy + 1 if make_update(model, optimizer, loss) < 0.02 else 0
        if easy == 20:
            break
    with torch.no_grad():
        logits, targets = _answers(layer, head, FRESH, lag, inputs["symbols"], rng)
    return float((logits.argmax(dim=-1) == targets).double().mean())


def _answers(layer, head, n, lag, symbols, rng):
    ids, targets = recall(n, rng, lag=lag, V=symbols)
    tokens = F.one_hot(torch.from_numpy(ids), symbols + 1).float()
    return head(layer(tokens)[0][:, -1]), torch.from_numpy(targets[:, -1])


def plot(record, kinds=tuple(KINDS)):
    """Draw the share of solved seeds against the lag for some networks; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    lags = [int(lag) for lag in record["inputs"]["lags"]]
    count = len(record["seeds"])
    figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    marks = ["o-", "s--", "^-", "d:", "v-.", "P--", "X:"]
    for place, kind in enumerate(kinds):
        share = np.array(list(record["results"][kind]["solved"].values()))
        # Equal shares would hide each other: each line is moved by a little.
        shift = 0.06 * (place - (len(kinds) - 1) / 2)
        color = style.COLORS[place % len(style.COLORS)]
        axis.plot(lags, count * share + shift, marks[place], color=color, label=KINDS[kind])
    axis.set(xscale="log", xticks=lags, xticklabels=lags, yticks=range(count + 1))
    axis.minorticks_off()
    axis.set(xlabel="lag in steps", ylabel=f"seeds of {count} that learn to recall")
    figure.legend(loc="outside lower center", ncols=2)
    return figure
