"""Task: one step of a GRU in the notes' form, with their matrices on [h, x]."""

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
from seqlib.np.gru import gru_cell
from seqlib.np.gru_weights import gru_from_notes

LARGE = 1000.0


def reference(x, h_prev, W_r, W_z, W):
    """Return h_t: the library's cell with the notes' matrices packed for it."""
    return gru_cell(x, h_prev, *gru_from_notes(W_r, W_z, W))


def gru_variant(x, h_prev, W_r, W_z, W, *, wrong=frozenset()):
    """Return h_t, with the mistakes named in ``wrong``."""
    if "gates_exchanged" in wrong:
        W_r, W_z = W_z, W_r
    r = sigmoid(joined(h_prev, x, wrong) @ W_r.T, wrong)
    seen = r * h_prev if "update_gate_reset" in wrong else h_prev
    z = sigmoid(joined(seen, x, wrong) @ W_z.T, wrong)
    h_tilde = candidate(x, h_prev, r, W, wrong)
    if "update_exchanged" in wrong:
        z = 1 - z
    kept = h_prev if "old_state_in_full" in wrong else (1 - z) * h_prev
    if "old_state_reset" in wrong:
        kept = r * kept
    if "old_state_left_out" in wrong:
        kept = 0
    if "candidate_alone" in wrong:
        return h_tilde
    return kept + (h_tilde if "candidate_in_full" in wrong else z * h_tilde)


def candidate(x, h_prev, r, W, wrong):
    """Return the candidate, with the mistakes named in ``wrong``."""
    act = sigmoid if "candidate_sigmoid" in wrong else tanh
    if "reset_ignored" in wrong:
        return act(joined(h_prev, x, wrong) @ W.T, wrong)
    if "reset_of_the_sum" in wrong:
        return act(r * (joined(h_prev, x, wrong) @ W.T), wrong)
    if "reset_after" in wrong:
        of_h = joined(h_prev, 0 * x, wrong) @ W.T
        return act(r * of_h + joined(0 * h_prev, x, wrong) @ W.T, wrong)
    return act(joined(r * h_prev, x, wrong) @ W.T, wrong)


def arguments(rng, B, D, H):
    """Draw the arguments of one step."""
    return normal(rng, B, D), normal(rng, B, H), *matrices(rng, 3, H, D)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(arguments(rng, 5, 3, 2), label="B=5 rows, D=3 inputs, H=2 units"),
        Case(arguments(rng, 2, 7, 5), label="B=2 rows, D=7 inputs, H=5 units"),
        Case(arguments(rng, 1, 2, 3), label="one row, D=2, H=3", tag="edge"),
        Case(arguments(rng, 3, 1, 1), label="D=H=1, 3 rows", tag="edge"),
        Case(
            _saturated(rng, 2, 3),
            label="sums near 1000 and -1000: 12 units, one for each combination",
            tag="saturated",
        ),
    ]


def _saturated(rng, B, D):
    """One input is 1, and its weights are 1000 and -1000 in all combinations.

    The candidate has a third choice, a sum of order 1, so that not all of it is -1 or 1.
    """
    x, h_prev, *weights = arguments(rng, B, D, 12)
    x[:, 0] = 1
    sums = LARGE * signs(rng, (-1, 1), (-1, 1), (-1, 0, 1))
    for W, a in zip(weights, sums, strict=True):
        W[:, 12] = np.where(a == 0, W[:, 12], a)
    return x, h_prev, *weights


TASK = Task(
    id="gates.gru_step",
    title="One step of a GRU",
    signature="(x, h_prev, W_r, W_z, W)",
    equations=("eq-gru-reset", "eq-gru-update", "eq-gru-candidate", "eq-gru-hidden"),
    page="gru#gates",
    reference=reference,
    variant=gru_variant,
    cases=cases,
    options={"axes": ("row", "unit")},
    criteria=(
        Criterion("values", 10, "state h_t"),
        Criterion("edge", 2, "one row, one unit", tag="edge"),
        Criterion("saturated", 3, "sums near 1000 and -1000", tag="saturated"),
    ),
    misconceptions=(
        Misconception(
            "update_exchanged",
            "z_t and 1 - z_t have exchanged their places: the old state is kept where z_t is "
            "near 1.",
            "gru#update",
            "pytorch/pytorch#20129",
        ),
        Misconception(
            "reset_after",
            "The reset gate multiplies the product of the matrix and h_{t-1}, not h_{t-1} "
            "itself.",
            "gru#reset",
            "keras-team/keras#3701",
        ),
        Misconception(
            "reset_ignored",
            "The candidate reads h_{t-1} as it is: the reset gate is not used.",
            "gru#reset",
            "zhiyongc/GRU-D#2",
        ),
        Misconception(
            "reset_of_the_sum",
            "The reset gate multiplies the whole sum of the candidate, that of x_t too.",
            "gru#reset",
            "our own: a bracket too large",
        ),
        Misconception(
            "gates_exchanged",
            "The reset gate and the update gate have exchanged their places.",
            "gru#gates",
            "distillpub/post--memorization-in-rnns#24",
        ),
        Misconception(
            "update_gate_reset",
            "The update gate reads r_t * h_{t-1}; it should read h_{t-1} itself.",
            "gru#gates",
            "our own: [h, x] overwritten by that of the candidate",
        ),
        Misconception(
            "old_state_reset",
            "The state that is kept is multiplied by the reset gate too.",
            "gru#update",
            "our own: h_{t-1} overwritten by r_t * h_{t-1}",
        ),
        Misconception(
            "old_state_in_full",
            "The old state is kept in full, and the gated candidate added to it.",
            "gru#update",
            "our own: an addition as in the cell state of an LSTM",
        ),
        Misconception(
            "old_state_left_out",
            "The old state is left out: h_t is the gated candidate alone.",
            "gru#update",
            "our own: one of the two terms",
        ),
        Misconception(
            "candidate_in_full",
            "The candidate enters in full: the update gate does not multiply it.",
            "gru#update",
            "our own: one of the two factors",
        ),
        Misconception(
            "candidate_alone",
            "The candidate is returned as the new state.",
            "gru#update",
            "our own: the last equation forgotten",
        ),
        Misconception(
            "candidate_sigmoid",
            "The candidate is computed with a sigmoid, so it is never negative.",
            "gru#candidate",
            "our own: the candidate treated as a third gate",
        ),
        COLUMNS,
        NAIVE_SIGMOID,
        NAIVE_TANH,
        NAIVE_TANH_OF_SQUARE,
    ),
    shortcuts=(
        "seqlib.np.gru.gru_cell",
        "seqlib.np.gru.gru",
        "seqlib.np.gru_vjp.gru_with_vjp",
    ),
)
