"""Task: one step of an LSTM with the notes' matrices on [h, x]."""

import numpy as np

from seqlib.exercises._gates_cells import (
    COLUMNS,
    NAIVE_SIGMOID,
    NAIVE_TANH,
    NAIVE_TANH_OF_SQUARE,
    joined,
    matrices,
    normal,
    sigmoid,
    signs,
    tanh,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.lstm import lstm_cell
from seqlib.np.lstm_weights import lstm_from_notes

LARGE = 1000.0
LSTM_EQUATIONS = (
    "eq-lstm-forget",
    "eq-lstm-input",
    "eq-lstm-candidate",
    "eq-lstm-cell",
    "eq-lstm-output",
    "eq-lstm-hidden",
)


def reference(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    """Return h_t and C_t: the library's cell with the notes' matrices packed for it."""
    weights = lstm_from_notes(W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o)
    return lstm_cell(x, h_prev, C_prev, *weights)


def step_variant(
    x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o, *, wrong=frozenset()
):
    """Return h_t and C_t, with the mistakes named in ``wrong``."""
    if "one_bias" in wrong:
        b_f = b_i = b_o
    if "no_bias" in wrong:
        b_f = b_i = b_C = b_o = 0
    z = joined(C_prev if "cell_in_gates" in wrong else h_prev, x, wrong)
    a_f, a_i, a_C, a_o = z @ W_f.T + b_f, z @ W_i.T + b_i, z @ W_C.T + b_C, z @ W_o.T + b_o
    if "forget_input_exchanged" in wrong:
        a_f, a_i = a_i, a_f
    if "candidate_output_exchanged" in wrong:
        a_C, a_o = a_o, a_C
    f, i = sigmoid(a_f, wrong), sigmoid(a_i, wrong)
    C_tilde = sigmoid(a_C, wrong) if "candidate_sigmoid" in wrong else tanh(a_C, wrong)
    o = sigmoid(tanh(a_o, wrong) if "output_gate_tanh" in wrong else a_o, wrong)
    C = updated_cell(C_prev, f, i, C_tilde, wrong)
    seen = C_prev if "old_cell_shown" in wrong else C
    h = o * (seen if "no_tanh" in wrong else tanh(seen, wrong))
    return (C, h) if "parts_exchanged" in wrong else (h, C)


def updated_cell(C_prev, f, i, C_tilde, wrong):
    """Return the new cell state, with the mistakes named in ``wrong``."""
    if "forget_gate_alone" in wrong:
        i = f
    if "coupled_gates" in wrong:
        i = 1 - f
    if "no_input_gate" in wrong:
        i = 1
    if "no_forget_gate" in wrong:
        f = 1
    C = f * C_prev + (i + C_tilde if "input_gate_added" in wrong else i * C_tilde)
    return np.tanh(C) if "cell_squashed" in wrong else C


def arguments(rng, B, D, H):
    """Draw the arguments of one step."""
    W_f, W_i, W_C, W_o = matrices(rng, 4, H, D)
    b_f, b_i, b_C, b_o = normal(rng, 4, H)
    states = normal(rng, B, D), normal(rng, B, H), normal(rng, B, H)
    return *states, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(arguments(rng, 5, 3, 2), label="B=5 rows, D=3 inputs, H=2 units"),
        Case(arguments(rng, 2, 7, 5), label="B=2 rows, D=7 inputs, H=5 units"),
        Case(arguments(rng, 1, 2, 3), label="one row, D=2, H=3", tag="edge"),
        Case(arguments(rng, 3, 1, 1), label="D=H=1, 3 rows", tag="edge"),
        Case(
            _saturated(rng, 2, 3),
            label="sums near 1000 and -1000: 16 units, one for each combination",
            tag="saturated",
        ),
    ]


def _saturated(rng, B, D):
    """Biases of 1000 and -1000 in all 16 combinations of three gates and the candidate."""
    x, h_prev, C_prev, *rest = arguments(rng, B, D, 16)
    for place, b in zip((1, 3, 5, 7), LARGE * signs(rng, *[(-1, 1)] * 4), strict=True):
        rest[place] = b
    return x, h_prev, C_prev, *rest


TASK = Task(
    id="gates.lstm_step",
    title="One step of an LSTM",
    signature="(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o)",
    equations=LSTM_EQUATIONS,
    page="lstm#gates",
    reference=reference,
    variant=step_variant,
    cases=cases,
    options={"parts": ("h_t", "C_t"), "axes": ("row", "unit")},
    criteria=(
        Criterion("values", 8, "hidden state h_t", part=0),
        Criterion("cell", 7, "cell state C_t", part=1, needs=()),
        Criterion("edge", 2, "one row, one unit", tag="edge"),
        Criterion("saturated", 3, "sums near 1000 and -1000", tag="saturated"),
    ),
    misconceptions=(
        Misconception(
            "no_tanh",
            "The hidden state is the output gate times C_t itself, without the tanh.",
            "lstm#hidden-state",
            "nicodjimenez/lstm#47",
        ),
        Misconception(
            "old_cell_shown",
            "The hidden state is computed from the cell state before the step.",
            "lstm#hidden-state",
            "borelien/entailment-neural-attention-lstm-tf#3",
        ),
        Misconception(
            "forget_input_exchanged",
            "The forget gate and the input gate have exchanged their places.",
            "lstm#gates",
            "NX-AI/xlstm#98",
        ),
        Misconception(
            "candidate_output_exchanged",
            "W_C and b_C are used for the output gate, W_o and b_o for the candidate.",
            "lstm#gates",
            "keras-team/keras#3088",
        ),
        Misconception(
            "forget_gate_alone",
            "The candidate is multiplied by the forget gate; the input gate is not used.",
            "lstm#cell-state",
            "ARM-software/CMSIS-NN#181",
        ),
        Misconception(
            "coupled_gates",
            "The candidate is multiplied by 1 - f_t; the input gate is not used.",
            "lstm#cell-state",
            "juntaoy/aracoref#12",
        ),
        Misconception(
            "no_input_gate",
            "The candidate enters the cell state in full: no gate is in front of it.",
            "lstm#cell-state",
            "our own: a gate computed and then not used",
        ),
        Misconception(
            "no_forget_gate",
            "The old cell state is kept in full: the forget gate is not used.",
            "lstm#cell-state",
            "lecture notes, section 3: the LSTM of 1997 had no forget gate",
        ),
        Misconception(
            "input_gate_added",
            "The input gate and the candidate are added, not multiplied.",
            "lstm#cell-state",
            "MartinuzziFrancesco/torchrecurrent#22",
        ),
        Misconception(
            "cell_squashed",
            "The new cell state is passed through a tanh and kept like that.",
            "lstm#cell-state",
            "nicodjimenez/lstm#43",
        ),
        Misconception(
            "candidate_sigmoid",
            "The candidate is computed with a sigmoid, so it is never negative.",
            "lstm#candidate",
            "llSourcell/How-to-Learn-from-Little-Data#4",
        ),
        Misconception(
            "output_gate_tanh",
            "The sum of the output gate passes through a tanh before its sigmoid.",
            "lstm#gates",
            "google/e3d_lstm#17",
        ),
        Misconception(
            "one_bias",
            "The forget gate and the input gate are computed with the bias b_o.",
            "lstm#gates",
            "ddbourgin/numpy-ml#42",
        ),
        Misconception(
            "no_bias",
            "The biases are not added.",
            "lstm#gates",
            "our own: the notes' GRU has no biases, their LSTM has",
        ),
        Misconception(
            "cell_in_gates",
            "The gates read the cell state C_{t-1} in the place of h_{t-1}.",
            "lstm#gates",
            "pytorch/pytorch#54952",
        ),
        COLUMNS,
        NAIVE_SIGMOID,
        NAIVE_TANH,
        Misconception(
            "parts_exchanged",
            "The states are returned in the other order: C_t stands where h_t belongs.",
            "lstm#hidden-state",
            "our own: the order in which the notes compute them",
        ),
        NAIVE_TANH_OF_SQUARE,
    ),
    shortcuts=(
        "seqlib.np.lstm.lstm_cell",
        "seqlib.np.lstm.lstm",
        "seqlib.np.lstm_vjp.lstm_with_vjp",
        "torch.nn.LSTMCell",
        "torch.nn.LSTM",
    ),
)
