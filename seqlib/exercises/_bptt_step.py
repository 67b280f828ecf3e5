"""Task: one step of equation (2) backward; and the pieces that all steps share."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dh, h, h_prev, x, W_hh, W_xh):
    """Return the gradients of one step from the states that the forward pass has kept."""
    da = dh * (1 - h**2)  # with respect to the argument of tanh
    return da @ W_hh, da @ W_xh, da.T @ h_prev, da.T @ x, da.sum(axis=0)


def variant(dh, h, h_prev, x, W_hh, W_xh, *, wrong=frozenset()):
    """Return the gradients of one step, with the mistakes named in ``wrong``."""
    if "cotangent_ones" in wrong:
        dh = np.ones_like(dh)
    da = dh * tanh_slope(h, h_prev, wrong)
    rows = dh if "parameters_without_slope" in wrong else da
    back = dh if "inputs_without_slope" in wrong else da
    dh_prev, dx = back @ back_weights(W_hh, wrong), back @ W_xh
    dW_hh = rows.T @ (h if "own_state" in wrong else h_prev)
    dW_xh = rows.T @ x
    db_h = rows.sum(axis=0)
    if "batch_mean" in wrong:
        dW_hh, dW_xh, db_h = (g / len(dh) for g in (dW_hh, dW_xh, db_h))
    if "bias_mean" in wrong:
        db_h = rows.mean(axis=0)
    if "bias_not_summed" in wrong:
        db_h = rows
    if "weights_transposed" in wrong:
        dW_hh, dW_xh = dW_hh.T, dW_xh.T
    if "inputs_exchanged" in wrong:
        dh_prev, dx = dx, dh_prev
    if "weights_exchanged" in wrong:
        dW_hh, dW_xh = dW_xh, dW_hh
    return dh_prev, dx, dW_hh, dW_xh, db_h


def tanh_slope(h, h_prev, wrong):
    """Return the derivative of tanh at each state, or what is taken for it."""
    if "no_slope" in wrong:
        return np.ones_like(h)
    if "slope_of_previous" in wrong:
        return 1 - h_prev**2
    if "slope_twice" in wrong:
        return 1 - np.tanh(h) ** 2
    if "slope_not_squared" in wrong:
        return 1 - h
    if "slope_plus" in wrong:
        return 1 + h**2
    return 1 - h**2


def back_weights(W_hh, wrong):
    """Return the matrix that takes a row da_t to dh_(t-1)."""
    return W_hh.T if "W_hh_transposed" in wrong else W_hh


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 2, 5, 3), label="B=2 sequences, m=5 states, d=3 features"),
        Case(_args(rng, 7, 3, 2), label="B=7 sequences, m=3 states, d=2 features"),
        Case(_args(rng, 3, 2, 7), label="B=3 sequences, m=2 states, d=7 features"),
        Case(_args(rng, 1, 1, 1), label="B=m=d=1"),
    ]


def _args(rng, B, m, d):
    W_hh, W_xh = rng.standard_normal((m, m)), rng.standard_normal((m, d))
    x, h_prev = rng.standard_normal((B, d)), rng.uniform(-0.9, 0.9, (B, m))
    h = np.tanh(0.5 * (h_prev @ W_hh.T + x @ W_xh.T) + rng.standard_normal(m))
    return rng.standard_normal((B, m)), h, h_prev, x, W_hh, W_xh


# Mistakes that later tasks share.
NO_SLOPE = Misconception(
    "no_slope",
    "The derivative of tanh is missing.",
    "bptt#tanh-slope",
    "CaptainE/RNN-LSTM-in-numpy#2",
)
SLOPE_OF_PREVIOUS = Misconception(
    "slope_of_previous",
    "The derivative of tanh is taken from the state before the step.",
    "bptt#tanh-slope",
    "our own: outline of the course, 1 - tanh^2 of h_(t-1)",
)
W_HH_TRANSPOSED = Misconception(
    "W_hh_transposed",
    "On the way back to the state before, W_hh is used the other way round: rows da_t are "
    "multiplied by its transpose.",
    "bptt#one-step",
    "d2l-ai/d2l-en#1412",
)
OWN_STATE = Misconception(
    "own_state",
    "The gradient of W_hh uses the state after the step, not the one that W_hh multiplied.",
    "bptt#one-step",
    "VikParuchuri/zero_to_gpt#9",
)

TASK = Task(
    id="bptt.rnn_step_backward",
    title="One step backward",
    signature="(dh, h, h_prev, x, W_hh, W_xh)",
    equations=("eq-2",),
    page="bptt#one-step",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    options={"parts": ("dh_prev", "dx", "dW_hh", "dW_xh", "db_h")},
    criteria=(
        Criterion("values", 3, "all five gradients together"),
        Criterion("dh_prev", 3, "dh_prev", part=0, needs=()),
        Criterion("dx", 2, "dx", part=1, needs=()),
        Criterion("dW_hh", 3, "dW_hh", part=2, needs=()),
        Criterion("dW_xh", 2, "dW_xh", part=3, needs=()),
        Criterion("db_h", 2, "db_h", part=4, needs=()),
    ),
    misconceptions=(
        NO_SLOPE,
        SLOPE_OF_PREVIOUS,
        Misconception(
            "slope_twice",
            "tanh is applied to the state once more before its derivative is taken: the state "
            "is the output of tanh, not its argument.",
            "bptt#tanh-slope",
            "davidrmiller/neural2d#40",
        ),
        Misconception(
            "slope_not_squared",
            "The derivative of tanh is taken as 1 - h, without the square.",
            "bptt#tanh-slope",
            "our own: the square is lost, as in the logistic function's h (1 - h)",
        ),
        Misconception(
            "slope_plus",
            "The derivative of tanh is taken as 1 + h^2, which belongs to tan.",
            "bptt#tanh-slope",
            "nicodjimenez/lstm#41",
        ),
        Misconception(
            "parameters_without_slope",
            "dW_hh, dW_xh and db_h are made from dh: they lack the derivative of tanh, which "
            "dh_prev and dx have.",
            "bptt#tanh-slope",
            "our own: dh and da exchanged in half of the lines",
        ),
        Misconception(
            "inputs_without_slope",
            "dh_prev and dx are made from dh: they lack the derivative of tanh, which the "
            "gradients of the parameters have.",
            "bptt#tanh-slope",
            "our own: dh and da exchanged in half of the lines",
        ),
        W_HH_TRANSPOSED,
        OWN_STATE,
        Misconception(
            "weights_transposed",
            "dW_hh and dW_xh are the transposes: a gradient has the shape of its matrix.",
            "bptt#one-step",
            "pytorch/pytorch#9642",
        ),
        Misconception(
            "batch_mean",
            "dW_hh, dW_xh and db_h are divided by the number of sequences.",
            "bptt#shared-weights",
            "kvfrans/notes#5",
        ),
        Misconception(
            "bias_mean",
            "db_h is the mean over the sequences; the gradients of the matrices are sums.",
            "bptt#shared-weights",
            "kvfrans/notes#5",
        ),
        Misconception(
            "bias_not_summed",
            "db_h still has one row per sequence.",
            "bptt#shared-weights",
            "jimfleming/differentiation#1",
        ),
        Misconception(
            "inputs_exchanged",
            "dx stands where dh_prev belongs, and the reverse.",
            "bptt#one-step",
            "our own: the order in which other libraries return them",
        ),
        Misconception(
            "weights_exchanged",
            "dW_xh stands where dW_hh belongs, and the reverse.",
            "bptt#one-step",
            "our own: the order in which other libraries return them",
        ),
        Misconception(
            "cotangent_ones",
            "dh is not used: the gradients are those of the sum of all states.",
            "bptt#one-step",
            "yizt/numpy_neural_network#6",
        ),
    ),
    shortcuts=(
        "seqlib.np.rnn.rnn_cell_backward",
        "seqlib.np.rnn.rnn_backward",
        "seqlib.np.rnn_vjp.rnn_with_vjp",
        "seqlib.np.bptt.rnn_truncated_backward",
    ),
)
