"""Task: an LSTM over a batch of sequences, with both states of every step."""

import numpy as np

from seqlib.exercises._gates_cells import normal
from seqlib.exercises._gates_lstm_step import LSTM_EQUATIONS, arguments, step_variant
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.lstm import lstm_cell
from seqlib.np.lstm_weights import lstm_from_notes

B06 = "community.deeplearning.ai/t/week1-assignment-1-rnn-forward/555049"


def reference(X, h_0, C_0, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    """Return the hidden and the cell states of all steps."""
    weights = lstm_from_notes(W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o)
    h, C = h_0, C_0
    hidden, cells = [], []
    for t in range(X.shape[1]):
        h, C = lstm_cell(X[:, t], h, C, *weights)
        hidden.append(h)
        cells.append(C)
    return np.stack(hidden, axis=1), np.stack(cells, axis=1)


def sequence_variant(X, h_0, C_0, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o, *, wrong=frozenset()):
    """Return the states of all steps, with the mistakes named in ``wrong``."""
    if "initial_states_exchanged" in wrong:
        h_0, C_0 = C_0, h_0
    if "zero_initial_states" in wrong:
        h_0, C_0 = np.zeros_like(h_0), np.zeros_like(C_0)
    if "zero_initial_cell" in wrong:
        C_0 = np.zeros_like(C_0)
    steps = list(range(X.shape[1]))
    if "from_the_end" in wrong:
        steps.reverse()
    h, C = h_0, C_0
    states = {}
    for t in steps:
        before = h, C
        if wrong & {"states_not_carried", "hidden_not_carried"}:
            h = h_0
        if wrong & {"states_not_carried", "cell_not_carried"}:
            C = C_0
        h, C = step_variant(X[:, t], h, C, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o)
        states[t] = before if "states_before" in wrong else (h, C)
    if "last_step_everywhere" in wrong:
        states = dict.fromkeys(states, (h, C))
    return collected(states, wrong)


def collected(states, wrong):
    """Return the states of all steps as two arrays, or as the mistakes leave them."""
    ordered = [states[t] for t in sorted(states)]
    if "last_step_alone" in wrong:
        h, C = ordered[-1]
    else:
        axis = 0 if "time_first" in wrong else 1
        h, C = (np.stack(part, axis=axis) for part in zip(*ordered, strict=True))
    if "hidden_alone" in wrong:
        return h
    return (C, h) if "parts_exchanged" in wrong else (h, C)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 2, 5, 3, 7), label="B=2 sequences, T=5 steps, D=3, H=7"),
        Case(_args(rng, 3, 7, 5, 2), label="B=3 sequences, T=7 steps, D=5, H=2"),
        Case(_args(rng, 3, 1, 5, 2), label="T=1 step, B=3", tag="edge"),
        Case(_args(rng, 1, 3, 2, 5), label="B=1 sequence, T=3", tag="edge"),
        Case(_args(rng, 2, 3, 1, 1), label="D=H=1, B=2, T=3", tag="edge"),
    ]


def _args(rng, B, T, D, H):
    _, h_0, C_0, *weights = arguments(rng, B, D, H)
    return normal(rng, B, T, D), h_0, C_0, *weights


TASK = Task(
    id="gates.lstm_sequence",
    title="An LSTM over a sequence",
    signature="(X, h_0, C_0, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o)",
    equations=LSTM_EQUATIONS,
    page="lstm#sequence",
    reference=reference,
    variant=sequence_variant,
    cases=cases,
    options={"parts": ("h", "C"), "axes": ("sequence", "time step", "unit")},
    criteria=(
        Criterion("values", 5, "hidden states", part=0),
        Criterion("cell", 3, "cell states", part=1, needs=()),
        Criterion("edge", 2, "one step, one sequence, one unit", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "zero_initial_states",
            "The first step starts from zeros: h_0 and C_0 are not used.",
            "lstm#sequence",
            B06,
            also=("the state of step t - 1 read from the output array at t = 0, too",),
        ),
        Misconception(
            "zero_initial_cell",
            "The first step starts from a cell state of zeros: C_0 is not used.",
            "lstm#sequence",
            "onnx/onnx-tensorflow#410",
        ),
        Misconception(
            "initial_states_exchanged",
            "h_0 is used as the first cell state and C_0 as the first hidden state.",
            "lstm#sequence",
            "our own: two states of the same shape",
        ),
        Misconception(
            "states_not_carried",
            "Every step starts from h_0 and C_0, not from the states of the step before.",
            "lstm#sequence",
            "karpathy/makemore#3",
        ),
        Misconception(
            "hidden_not_carried",
            "Every step starts from h_0; only the cell state is carried on.",
            "lstm#sequence",
            "our own: one of the two states is forgotten in the loop",
        ),
        Misconception(
            "cell_not_carried",
            "Every step starts from C_0; only the hidden state is carried on.",
            "lstm#sequence",
            "our own: one of the two states is forgotten in the loop",
        ),
        Misconception(
            "states_before",
            "Each place holds the states before its step, not those after it.",
            "lstm#sequence",
            "our own: the result is stored before the state is updated",
        ),
        Misconception(
            "last_step_everywhere",
            "Every place holds the states of the last step: the same array is stored for all "
            "steps and overwritten.",
            "lstm#sequence",
            "pytorch/pytorch#142303",
        ),
        Misconception(
            "from_the_end",
            "The steps are run from the last to the first.",
            "lstm#sequence",
            "HKUST-KnowComp/R-Net#13",
        ),
        Misconception(
            "time_first",
            "The axes of the result are time, sequence, unit.",
            "lstm#sequence",
            "our own: the list of steps stacked along its first axis",
        ),
        Misconception(
            "last_step_alone",
            "Only the states of the last step are returned.",
            "lstm#sequence",
            "our own: the states of all steps are asked for",
        ),
        Misconception(
            "hidden_alone",
            "The hidden states are returned alone; the text asks for the cell states too.",
            "lstm#sequence",
            "our own: what the next layer reads is h alone",
        ),
        Misconception(
            "parts_exchanged",
            "The cell states are returned first, the hidden states second.",
            "lstm#sequence",
            "our own: the order in which the notes compute them",
        ),
    ),
    shortcuts=("seqlib.np.lstm.lstm", "seqlib.np.lstm_vjp.lstm_with_vjp", "torch.nn.LSTM"),
)
