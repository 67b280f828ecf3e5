"""Task: the backward pass of one LSTM step, from what the forward pass has kept."""

import numpy as np

from seqlib.exercises._gates_cells import COLUMNS, MEAN, joined, normal, summed, taken_apart
from seqlib.exercises._gates_lstm_mistakes import MISCONCEPTIONS
from seqlib.exercises._gates_lstm_step import LSTM_EQUATIONS, arguments
from seqlib.exercises.record import Case, Criterion, Task
from seqlib.np.activation import sigmoid


def reference(dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o):
    """Return the gradients of the inputs, and of each matrix and bias in the notes' order.

    The library's backward pass computes the gates again; here they are given.
    """
    dC = dC + dh * o * (1 - np.tanh(C) ** 2)
    da_f, da_i = dC * C_prev * f * (1 - f), dC * C_tilde * i * (1 - i)
    da_C, da_o = dC * i * (1 - C_tilde**2), dh * np.tanh(C) * o * (1 - o)
    z = np.concatenate([h_prev, x], axis=1)
    dz = da_f @ W_f + da_i @ W_i + da_C @ W_C + da_o @ W_o
    H = h_prev.shape[1]
    parameters = [part for da in (da_f, da_i, da_C, da_o) for part in (da.T @ z, da.sum(0))]
    return dz[:, H:], dz[:, :H], dC * f, *parameters


def backward_variant(
    dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o, *, wrong=frozenset()
):
    """Return the gradients, with the mistakes named in ``wrong``."""
    total = cell_gradient(dh, dC, C_prev, o, C, wrong)
    da = sums_gradients(dh, total, C_prev, f, i, C_tilde, o, C, wrong)
    z = joined(h_prev, x, wrong)
    behind = list(zip(da, (W_f, W_i, W_C, W_o), strict=True))
    if "output_gate_not_followed" in wrong:
        behind = behind[:3]
    dh_prev, dx = taken_apart(sum(a @ W for a, W in behind), h_prev, x, wrong)
    dC_prev = (dC if "dC_prev_from_later_alone" in wrong else total) * f
    if "dC_prev_without_f" in wrong:
        dC_prev = total
    dW = [summed(a, z, wrong) for a in da]
    db = bias_gradients(da, wrong)
    parameters = [part for pair in zip(dW, db, strict=True) for part in pair]
    first = (dh_prev, dx) if "dh_prev_first" in wrong else (dx, dh_prev)
    return *first, dC_prev, *parameters


def cell_gradient(dh, dC, C_prev, o, C, wrong):
    """Return the whole gradient of C_t: what comes from later steps and through h_t."""
    if "through_h_missing" in wrong:
        return dC
    point = C_prev if "tanh_derivative_of_old_cell" in wrong else C
    slope = 1 - np.tanh(point) ** 2
    if "tanh_derivative_of_tanh" in wrong:
        slope = 1 - np.tanh(np.tanh(point)) ** 2
    if "tanh_derivative_of_value" in wrong:
        slope = 1 - point**2
    if "tanh_derivative_missing" in wrong:
        slope = 1
    through_h = dh * slope * (1 if "through_h_without_o" in wrong else o)
    return through_h if "later_dC_missing" in wrong else dC + through_h


def sums_gradients(dh, dC, C_prev, f, i, C_tilde, o, C, wrong):
    """Return the gradients of the four sums, before the nonlinearities."""
    old, new = (C if "forget_gate_new_cell" in wrong else C_prev), C_tilde
    if "forget_input_exchanged" in wrong:
        old, new = new, old
    da_f, da_i = dC * old, dC * new
    da_C = dC * (1 if "candidate_without_i" in wrong else i)
    da_o = dh * (C if "output_gate_without_tanh" in wrong else np.tanh(C))
    if "sigmoid_derivative_missing" not in wrong:
        da_i, da_o = da_i * i * (1 - i), da_o * o * (1 - o)
        if "sigmoid_derivative_missing_f" not in wrong:
            da_f = da_f * f * (1 - f)
    if "candidate_like_a_gate" in wrong:
        da_C = da_C * C_tilde * (1 - C_tilde)
    elif "candidate_derivative_missing" not in wrong:
        da_C = da_C * (1 - C_tilde**2)
    return [da_f, da_i, da_C, da_o]


def bias_gradients(da, wrong):
    """Return the gradients of the four biases."""
    if "one_bias" in wrong:
        da = [da[0], da[0], da[2], da[0]]
    if "biases_not_summed" in wrong:
        return list(da)
    return [a.mean(0) if "mean_over_batch" in wrong else a.sum(0) for a in da]


def cases(rng):
    """Draw inputs for one run."""
    one_path = {"tag": "one_path"}
    return [
        Case(_args(rng, 5, 3, 2), label="B=5 rows, D=3 inputs, H=2 units"),
        Case(_args(rng, 2, 7, 5), label="B=2 rows, D=7 inputs, H=5 units"),
        Case(_args(rng, 3, 2, 5, without="dC"), label="dC = 0: the last step", **one_path),
        Case(_args(rng, 3, 2, 5, without="dh"), label="dh = 0: no loss at h_t", **one_path),
        Case(_args(rng, 1, 1, 1), label="one row, D=H=1", tag="edge"),
        Case(
            _args(rng, 3, 2, 7, size=1000.0),
            label="gates of exactly 0 and 1, candidate of exactly -1 and 1",
            tag="saturated",
        ),
    ]


def _args(rng, B, D, H, *, without=None, size=None):
    x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o = arguments(rng, B, D, H)
    if size is not None:  # half of the units saturate, the others stay as they are
        for b in (b_f, b_i, b_C, b_o):
            b[:] = np.where(rng.permutation(H) < H // 2, size * np.sign(b), b)
    z = joined(h_prev, x)
    f, i, o = (sigmoid(z @ W.T + b) for W, b in ((W_f, b_f), (W_i, b_i), (W_o, b_o)))
    C_tilde = np.tanh(z @ W_C.T + b_C)
    C = f * C_prev + i * C_tilde
    dh, dC = normal(rng, B, H), normal(rng, B, H)
    dh, dC = (0 * dh if without == "dh" else dh), (0 * dC if without == "dC" else dC)
    return dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o


PARTS = (
    *("dx", "dh_prev", "dC_prev", "dW_f", "db_f", "dW_i", "db_i"),
    *("dW_C", "db_C", "dW_o", "db_o"),
)
POINTS = (2, 2, 3, 2, 1, 2, 1, 2, 1, 2, 1)

TASK = Task(
    id="gates.lstm_step_backward",
    title="Backward pass of an LSTM step",
    signature="(dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o)",
    equations=LSTM_EQUATIONS,
    page="lstm#backward",
    reference=reference,
    variant=backward_variant,
    cases=cases,
    kind="backward",
    options={"parts": PARTS},
    criteria=(
        Criterion("values", 2, "all gradients together"),
        *(
            Criterion(part.lower(), points, part, part=place, needs=())
            for place, (part, points) in enumerate(zip(PARTS, POINTS, strict=True))
        ),
        Criterion("one_path", 1, "only dh, or only dC", tag="one_path"),
        Criterion("edge", 1, "one row, one unit", tag="edge"),
        Criterion("saturated", 2, "saturated gates", tag="saturated"),
    ),
    misconceptions=(*MISCONCEPTIONS, COLUMNS, MEAN),
    shortcuts=(
        "seqlib.np.lstm.lstm_cell_backward",
        "seqlib.np.lstm.lstm_backward",
        "seqlib.np.lstm_vjp.lstm_with_vjp",
    ),
)
