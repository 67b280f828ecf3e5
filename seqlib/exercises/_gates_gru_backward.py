"""Task: the backward pass of one GRU step, from what the forward pass has kept."""

import numpy as np

from seqlib.exercises._gates_cells import COLUMNS, MEAN, joined, normal, summed, taken_apart
from seqlib.exercises._gates_gru_step import LARGE, arguments
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.activation import sigmoid


def reference(dh, x, h_prev, r, z, h_tilde, W_r, W_z, W):
    """Return the gradients of the inputs and of the three matrices.

    The library's backward pass computes the gates again; here they are given.
    """
    H = h_prev.shape[1]
    da = dh * z * (1 - h_tilde**2)
    da_z = dh * (h_tilde - h_prev) * z * (1 - z)
    d_reset = da @ W[:, :H]  # gradient of r * h_prev
    da_r = d_reset * h_prev * r * (1 - r)
    gates = da_r @ W_r + da_z @ W_z
    dx = gates[:, H:] + da @ W[:, H:]
    dh_prev = gates[:, :H] + d_reset * r + dh * (1 - z)
    seen = np.concatenate([h_prev, x], axis=1)
    reset = np.concatenate([r * h_prev, x], axis=1)
    return dx, dh_prev, da_r.T @ seen, da_z.T @ seen, da.T @ reset


def gru_backward_variant(dh, x, h_prev, r, z, h_tilde, W_r, W_z, W, *, wrong=frozenset()):
    """Return the gradients, with the mistakes named in ``wrong``."""
    opened = 1 - z if "update_exchanged" in wrong else z
    da = dh * opened
    if "candidate_like_a_gate" in wrong:
        da = da * h_tilde * (1 - h_tilde)
    elif "candidate_derivative_missing" not in wrong:
        da = da * (1 - h_tilde**2)
    da_z = update_gradient(dh, h_prev, z, h_tilde, wrong)
    d_reset, dx = taken_apart(da @ W, h_prev, x, wrong)
    if "reset_after" in wrong:
        d_reset, _ = taken_apart((r * da) @ W, h_prev, x, wrong)
        da_r = da * (joined(h_prev, 0 * x, wrong) @ W.T)
    else:
        da_r = d_reset * (1 if "reset_gate_without_h" in wrong else h_prev)
    if "sigmoid_derivative_missing" not in wrong:
        da_r = da_r * r * (1 - r)
    into_gates = da_z @ W_z if "reset_gate_not_followed" in wrong else da_r @ W_r + da_z @ W_z
    dh_gates, dx_gates = taken_apart(into_gates, h_prev, x, wrong)
    dh_prev = d_reset * (1 if wrong & {"reset_factor_missing", "reset_after"} else r)
    if "gates_not_followed" in wrong:
        dh_gates, dx_gates = 0, 0
    if "direct_path_missing" not in wrong:
        dh_prev = dh_prev + dh * (z if "direct_path_with_z" in wrong else 1 - opened)
    dh_prev, dx = dh_prev + dh_gates, dx + dx_gates
    seen = joined(h_prev, x, wrong)
    dW = matrix_gradient(da, x, h_prev, r, wrong)
    parameters = summed(da_r, seen, wrong), summed(da_z, seen, wrong), dW
    first = (dh_prev, dx) if "dh_prev_first" in wrong else (dx, dh_prev)
    return *first, *parameters


def update_gradient(dh, h_prev, z, h_tilde, wrong):
    """Return the gradient of the sum of the update gate."""
    change = h_tilde - h_prev
    if "update_gate_without_state" in wrong:
        change = h_tilde
    if wrong & {"update_gate_sign", "update_exchanged"}:
        change = -change
    return dh * change * (1 if "sigmoid_derivative_missing" in wrong else z * (1 - z))


def matrix_gradient(da, x, h_prev, r, wrong):
    """Return the gradient of the candidate's matrix."""
    if "reset_after" in wrong:
        of_h = summed(r * da, joined(h_prev, 0 * x, wrong), wrong)
        return of_h + summed(da, joined(0 * h_prev, x, wrong), wrong)
    h = h_prev if "matrix_of_h" in wrong else r * h_prev
    return summed(da, joined(h, x, wrong), wrong)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 5, 3, 2), label="B=5 rows, D=3 inputs, H=2 units"),
        Case(_args(rng, 2, 7, 5), label="B=2 rows, D=7 inputs, H=5 units"),
        Case(_args(rng, 1, 1, 1), label="one row, D=H=1", tag="edge"),
        Case(
            _args(rng, 3, 2, 7, saturated=True),
            label="gates of exactly 0 and 1",
            tag="saturated",
        ),
    ]


def _args(rng, B, D, H, *, saturated=False):
    x, h_prev, W_r, W_z, W = arguments(rng, B, D, H)
    if saturated:  # an input of 1 whose weights saturate some units
        x[:, 0] = 1
        for weights in (W_r, W_z):
            chosen = rng.permutation(H) < H // 2
            weights[chosen, H] = LARGE * np.sign(weights[chosen, H])
    z, r = (sigmoid(joined(h_prev, x) @ weights.T) for weights in (W_z, W_r))
    h_tilde = np.tanh(joined(r * h_prev, x) @ W.T)
    return normal(rng, B, H), x, h_prev, r, z, h_tilde, W_r, W_z, W


PARTS = ("dx", "dh_prev", "dW_r", "dW_z", "dW")

TASK = Task(
    id="gates.gru_step_backward",
    title="Backward pass of a GRU step",
    signature="(dh, x, h_prev, r, z, h_tilde, W_r, W_z, W)",
    equations=("eq-gru-reset", "eq-gru-update", "eq-gru-candidate", "eq-gru-hidden"),
    page="gru#backward",
    reference=reference,
    variant=gru_backward_variant,
    cases=cases,
    kind="backward",
    options={"parts": PARTS},
    criteria=(
        Criterion("values", 2, "all gradients together"),
        *(
            Criterion(part.lower(), 3 if part == "dh_prev" else 2, part, part=i, needs=())
            for i, part in enumerate(PARTS)
        ),
        Criterion("edge", 1, "one row, one unit", tag="edge"),
        Criterion("saturated", 1, "saturated gates", tag="saturated"),
    ),
    misconceptions=(
        Misconception(
            "direct_path_missing",
            "dh_prev lacks the part of the old state that is kept, which goes straight from "
            "h_t to h_{t-1}.",
            "gru#backward",
            "our own: only the paths through the matrices are followed",
        ),
        Misconception(
            "direct_path_with_z",
            "On the way straight from h_t to h_{t-1} the gradient is multiplied by z_t.",
            "gru#backward",
            "ooples/AiDotNet#722",
        ),
        Misconception(
            "update_exchanged",
            "The gradients are those of h_t = z_t * h_{t-1} + (1 - z_t) * h~_t.",
            "gru#update",
            "pytorch/pytorch#20129",
        ),
        Misconception(
            "update_gate_without_state",
            "The gradient of the update gate is computed with the candidate alone: z_t stands "
            "in both terms of h_t.",
            "gru#backward",
            "our own: one of the two terms",
        ),
        Misconception(
            "update_gate_sign",
            "The gradient of the update gate has the other sign.",
            "gru#backward",
            "our own: the sign of 1 - z_t",
        ),
        Misconception(
            "reset_factor_missing",
            "What comes back through the candidate reaches h_{t-1} without the reset gate.",
            "gru#backward",
            "our own: the derivative of a product keeps the other factor",
        ),
        Misconception(
            "reset_gate_without_h",
            "The gradient of the reset gate lacks the state that it has multiplied.",
            "gru#backward",
            "our own: the derivative of a product keeps the other factor",
        ),
        Misconception(
            "reset_gate_not_followed",
            "dx and dh_prev lack what comes through the reset gate.",
            "gru#backward",
            "our own: the longest path is forgotten",
        ),
        Misconception(
            "gates_not_followed",
            "dx and dh_prev lack what comes through the two gates, which read h_{t-1} and x_t.",
            "gru#backward",
            "our own: the gates treated as constants",
        ),
        Misconception(
            "matrix_of_h",
            "dW is computed with h_{t-1}, but W has multiplied r_t * h_{t-1}.",
            "gru#backward",
            "our own: the same [h, x] for all three matrices",
        ),
        Misconception(
            "reset_after",
            "The gradients are those of a candidate whose reset gate stands behind the product "
            "of matrix and state.",
            "gru#reset",
            "keras-team/keras#3701",
        ),
        Misconception(
            "sigmoid_derivative_missing",
            "The derivative of the sigmoid is left out in both gates.",
            "lstm#gate-derivatives",
            "CaptainE/RNN-LSTM-in-numpy#1",
        ),
        Misconception(
            "candidate_derivative_missing",
            "The derivative of the candidate's tanh is left out.",
            "lstm#gate-derivatives",
            "llSourcell/LSTM_Networks#4",
        ),
        Misconception(
            "candidate_like_a_gate",
            "The candidate gets the derivative of a sigmoid.",
            "lstm#gate-derivatives",
            "our own: the candidate treated as a third gate",
        ),
        Misconception(
            "dh_prev_first",
            "The gradients are returned in another order: dh_prev stands where dx belongs.",
            "gru#backward",
            "our own: the order of [h, x]",
        ),
        COLUMNS,
        MEAN,
    ),
    shortcuts=(
        "seqlib.np.gru.gru_cell_backward",
        "seqlib.np.gru.gru_backward",
        "seqlib.np.gru_vjp.gru_with_vjp",
    ),
)
