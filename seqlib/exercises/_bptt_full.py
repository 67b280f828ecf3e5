"""Task: backpropagation through time over a whole sequence."""

import numpy as np

from seqlib.exercises import _bptt_step
from seqlib.exercises._bptt_step import (
    NO_SLOPE,
    OWN_STATE,
    SLOPE_OF_PREVIOUS,
    W_HH_TRANSPOSED,
    back_weights,
    tanh_slope,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dH, dh_T, H, h0, X, W_hh, W_xh):
    """Return the gradients of a sequence from the states that the forward pass has kept."""
    before = np.concatenate([h0[None], H[:-1]])
    dX = np.zeros_like(X)
    dW_hh, dW_xh, db_h = np.zeros_like(W_hh), np.zeros_like(W_xh), np.zeros_like(W_hh[0])
    carry = dh_T
    for t in reversed(range(len(X))):
        step = _bptt_step.reference(dH[t] + carry, H[t], before[t], X[t], W_hh, W_xh)
        carry, dX[t] = step[:2]
        dW_hh, dW_xh, db_h = dW_hh + step[2], dW_xh + step[3], db_h + step[4]
    return carry, dX, dW_hh, dW_xh, db_h


def variant(dH, dh_T, H, h0, X, W_hh, W_xh, *, wrong=frozenset()):
    """Return the gradients, with the mistakes named in ``wrong``."""
    T = len(X)
    before = states_before(H, h0, wrong)
    slope = tanh_slope(H, np.concatenate([h0[None], H[:-1]]), wrong)
    dA = np.zeros_like(H)
    carry = np.zeros_like(dh_T) if "last_state_ignored" in wrong else dh_T
    dh = carry
    steps = range(1 if "ends_early" in wrong else 0, T)
    for t in steps if "forward_in_time" in wrong else reversed(steps):
        dh = carry
        if "no_carry" in wrong and t < T - 1:
            dh = np.zeros_like(carry)
        if "last_state_every_step" in wrong and t < T - 1:
            dh = dh + dh_T
        if not ("upstream_last_only" in wrong and t < T - 1):
            dh = dh + dH[t]
        dA[t] = dh * slope[t]
        back = (dh if "carry_without_slope" in wrong else dA[t]) @ back_weights(W_hh, wrong)
        if "carry_without_weights" in wrong:
            back = dA[t]
        carry = carry + back if "carry_accumulates" in wrong else back
    dh0 = dh if "dh0_is_dh1" in wrong else carry
    dX = dA @ W_xh
    if "dX_reversed" in wrong:
        dX = dX[::-1]
    return dh0, dX, *parameter_gradients(dA, H if "own_state" in wrong else before, X, wrong)


def states_before(H, h0, wrong):
    """Return the state before each step, or what is taken for it at the first."""
    if "h0_is_zero" in wrong:
        h0 = np.zeros_like(h0)
    if "h0_is_last" in wrong:
        h0 = H[-1]
    return np.concatenate([h0[None], H[:-1]])


def parameter_gradients(dA, before, X, wrong):
    """Return dW_hh, dW_xh and db_h: sums over all steps of all sequences."""
    rows = dA[:1] if "overwritten" in wrong else dA
    dW_hh = np.einsum("tbi,tbj->ij", rows, before[: len(rows)])
    dW_xh = np.einsum("tbi,tbj->ij", rows, X[: len(rows)])
    parameters = dW_hh, dW_xh, rows.sum(axis=(0, 1))
    if "time_mean" in wrong:
        return tuple(g / len(X) for g in parameters)
    if "batch_mean" in wrong:
        return tuple(g / X.shape[1] for g in parameters)
    return parameters


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 5, 2, 3, 7), label="T=5 steps, B=2, m=3, d=7, dh_T = 0"),
        Case(_args(rng, 7, 3, 5, 2), label="T=7 steps, B=3, m=5, d=2, dh_T = 0"),
        Case(_args(rng, 3, 1, 2, 1), label="T=3 steps, B=1, m=2, d=1, dh_T = 0"),
        Case(
            _args(rng, 5, 3, 2, 7, last=True),
            label="T=5 steps, B=3, m=2, d=7, a gradient dh_T",
            tag="last",
        ),
        Case(
            _args(rng, 5, 2, 3, 7, steps=False, last=True),
            label="T=5 steps, dH = 0, a gradient dh_T alone",
            tag="last",
        ),
        Case(
            _args(rng, 1, 3, 5, 2, last=True),
            label="T=1 step, B=3, m=5, d=2",
            tag="one_step",
        ),
    ]


def _args(rng, T, B, m, d, *, steps=True, last=False):
    dH, dh_T = rng.standard_normal((T, B, m)), rng.standard_normal((B, m))
    return (steps * dH, last * dh_T, *network(rng, T, B, m, d))


def network(rng, T, B, m, d):
    """Return H, h0, X, W_hh and W_xh of a random network, H from its forward pass."""
    W_hh, W_xh = (rng.standard_normal((m, n)) * 1.2 / np.sqrt(n) for n in (m, d))
    X, h0 = rng.standard_normal((T, B, d)), rng.uniform(-0.9, 0.9, (B, m))
    b_h, h, H = 0.3 * rng.standard_normal(m), h0, []
    for x in X:
        h = np.tanh(h @ W_hh.T + x @ W_xh.T + b_h)
        H.append(h)
    return np.array(H), h0, X, W_hh, W_xh


PARTS = ("dh0", "dX", "dW_hh", "dW_xh", "db_h")
SHORTCUTS = (
    "seqlib.np.rnn.rnn_cell_backward",
    "seqlib.np.rnn.rnn_backward",
    "seqlib.np.rnn_vjp.rnn_with_vjp",
    "seqlib.np.bptt.rnn_truncated_backward",
)

TASK = Task(
    id="bptt.rnn_backward",
    title="Backpropagation through time",
    signature="(dH, dh_T, H, h0, X, W_hh, W_xh)",
    equations=("eq-2",),
    page="bptt#through-time",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    options={
        "parts": PARTS,
        "forward": {"rnn_step_backward": _bptt_step.reference},
    },
    criteria=(
        Criterion("values", 4, "all five gradients together"),
        Criterion("dh0", 4, "dh0", part=0, needs=()),
        Criterion("dX", 3, "dX", part=1, needs=()),
        Criterion("dW_hh", 4, "dW_hh", part=2, needs=()),
        Criterion("dW_xh", 3, "dW_xh", part=3, needs=()),
        Criterion("db_h", 2, "db_h", part=4, needs=()),
        Criterion("last", 4, "a gradient of the last state", tag="last"),
        Criterion("one_step", 1, "a sequence of one step", tag="one_step"),
    ),
    misconceptions=(
        Misconception(
            "no_carry",
            "Every step is taken alone: what a state does to the loss through the next state "
            "is missing.",
            "bptt#through-time",
            "qixianbiao/RNN#2",
        ),
        Misconception(
            "carry_accumulates",
            "The gradient that goes back is added to the one of the step before, which has had "
            "its turn already.",
            "bptt#through-time",
            "javaidnabi31/RNN-from-scratch#2",
        ),
        Misconception(
            "carry_without_slope",
            "The derivative of tanh is in the gradients of the parameters, but missing in what "
            "goes back to the state before.",
            "bptt#tanh-slope",
            "our own: dh and da exchanged in the line that goes back",
        ),
        Misconception(
            "carry_without_weights",
            "What goes back to the state before is not multiplied by W_hh.",
            "bptt#through-time",
            "our own: da_t handed on in place of dh_(t-1)",
        ),
        Misconception(
            "upstream_last_only",
            "The direct gradients of all steps but the last are not used.",
            "bptt#through-time",
            "our own: outline of the course, upstream gradient at t < T forgotten",
        ),
        Misconception(
            "last_state_ignored",
            "dh_T is not used.",
            "bptt#through-time",
            "our own: the carried gradient starts at zero",
        ),
        Misconception(
            "last_state_every_step",
            "dh_T is added at every step, not at the last one alone.",
            "bptt#through-time",
            "our own: dh_T inside the loop",
        ),
        Misconception(
            "forward_in_time",
            "The loop runs from the first step to the last, so nothing can go back.",
            "bptt#through-time",
            "our own: range(T) copied from the forward pass",
        ),
        NO_SLOPE,
        SLOPE_OF_PREVIOUS,
        W_HH_TRANSPOSED,
        OWN_STATE,
        Misconception(
            "h0_is_last",
            "At the first step the index t - 1 is -1: the last state stands in for h0.",
            "bptt#initial-state",
            "community.deeplearning.ai/t/week1-assignment-1-rnn-forward/555049",
        ),
        Misconception(
            "h0_is_zero",
            "The gradient of W_hh takes zeros for the state before the first step.",
            "bptt#initial-state",
            "community.deeplearning.ai/t/c5-w1-assignment-1/521805",
        ),
        Misconception(
            "dh0_is_dh1",
            "dh0 is the gradient of the first state after a step: one step more is to go back.",
            "bptt#initial-state",
            "our own: the loop ends one product early",
        ),
        Misconception(
            "overwritten",
            "The gradients of the parameters are those of one step: each step overwrites them.",
            "bptt#shared-weights",
            "our own: outline of the course, = in place of +=",
        ),
        Misconception(
            "time_mean",
            "The gradients of the parameters are divided by the number of steps.",
            "bptt#shared-weights",
            "our own: the 1/T of (3), which is part of dH already",
        ),
        Misconception(
            "batch_mean",
            "The gradients of the parameters are divided by the number of sequences.",
            "bptt#shared-weights",
            "kvfrans/notes#5",
        ),
        Misconception(
            "dX_reversed",
            "dX is in reverse order of time.",
            "bptt#through-time",
            "our own: appended in a loop that runs backwards, and not turned round",
        ),
        Misconception(
            "ends_early",
            "The loop ends before the first step, which has no part in the gradients.",
            "bptt#through-time",
            "our own: range(T - 1, 0, -1), whose end does not belong to it",
        ),
    ),
    shortcuts=SHORTCUTS,
)
