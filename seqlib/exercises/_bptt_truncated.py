"""Task: truncated backpropagation through time, with blocks of k1 steps and depth k2."""

import numpy as np

from seqlib.exercises import _bptt_step
from seqlib.exercises._bptt_full import SHORTCUTS, network, parameter_gradients
from seqlib.exercises._bptt_step import (
    NO_SLOPE,
    SLOPE_OF_PREVIOUS,
    W_HH_TRANSPOSED,
    back_weights,
    tanh_slope,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dH, H, h0, X, W_hh, W_xh, k1, k2):
    """Return dW_hh, dW_xh, db_h and dh0; each block goes back k2 steps from its end."""
    before = np.concatenate([h0[None], H[:-1]])
    dA, dh0 = np.zeros_like(H), np.zeros_like(h0)
    for start in range(0, len(X), k1):
        stop = min(start + k1, len(X))
        dh = np.zeros_like(h0)
        for t in reversed(range(max(0, stop - k2), stop)):
            if t >= start:
                dh = dh + dH[t]
            da = dh * (1 - H[t] ** 2)
            dA[t] += da
            dh = da @ W_hh
        if stop <= k2:
            dh0 = dh0 + dh
    return *parameter_gradients(dA, before, X, frozenset()), dh0


def variant(dH, H, h0, X, W_hh, W_xh, k1, k2, *, wrong=frozenset()):
    """Return the gradients, with the mistakes named in ``wrong``."""
    T = len(X)
    k1, k2 = _sizes(T, k1, k2, wrong)
    blocks = _blocks(T, k1, k2, wrong)
    before = np.concatenate([h0[None], H[:-1]])
    slope = tanh_slope(H, before, wrong)
    if "state_zeroed" in wrong:
        before[[start for start, _ in blocks if start > 0]] = 0
    dA, dh0 = np.zeros_like(H), np.zeros_like(h0)
    for start, stop in blocks:
        first = _first_step(start, stop, k2, wrong)
        dh = np.zeros_like(h0)
        for t in reversed(range(first, stop)):
            if _injected(t, start, stop, wrong):
                dh = dh + dH[t]
            da = dh * slope[t]
            dA[t] += da
            dh = da @ back_weights(W_hh, wrong)
        if _reaches_start(start, first, wrong):
            dh0 = dh if "dh0_overwritten" in wrong else dh0 + dh
    if "block_mean" in wrong:
        dA = dA / len(blocks)
    return *parameter_gradients(dA, before, X, wrong), dh0


def _sizes(T, k1, k2, wrong):
    """Return the block size and depth that the mistakes make of ``k1`` and ``k2``."""
    if "exchanged" in wrong:
        k1, k2 = k2, k1
    if "every_step" in wrong:
        k1 = 1
    if "not_truncated" in wrong:
        k2 = T
    return k1, k2 + ("one_too_far" in wrong) - ("one_too_short" in wrong)


def _blocks(T, k1, k2, wrong):
    """Return ``(start, stop)`` of every block that goes back."""
    if "last_k2_steps" in wrong:
        return [(max(0, T - k2), T)]
    starts = list(range(0, T, k1))
    if "from_the_end" in wrong:
        starts = sorted({0, *range(T % k1, T, k1)})
    blocks = list(zip(starts, [*starts[1:], T], strict=True))
    if "last_block_only" in wrong:
        return blocks[-1:]
    if "remainder_dropped" in wrong:
        return [(start, stop) for start, stop in blocks if stop - start == k1]
    return blocks


def _first_step(start, stop, k2, wrong):
    """Return the earliest step that the backward pass from ``stop`` reaches."""
    if "k2_ignored" in wrong:
        return start
    return max(0, (start if "k2_from_start" in wrong else stop) - k2)


def _reaches_start(start, first, wrong):
    """Whether what is left at the end of a pass is taken for a gradient of h0."""
    if "dh0_zero" in wrong:
        return False
    if "dh0_first_block" in wrong:
        return start == 0
    return first == 0 or "dh0_of_every_block" in wrong


def _injected(t, start, stop, wrong):
    """Whether the direct gradient of step t is added on the way back from ``stop``."""
    if "end_loss_only" in wrong:
        return t == stop - 1
    return t >= start or "losses_repeated" in wrong


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 6, 2, 3, 5, 2, 2), label="T=6, k1=2, k2=2; B=2, m=3, d=5"),
        Case(_args(rng, 6, 3, 5, 2, 3, 3), label="T=6, k1=3, k2=3; B=3, m=5, d=2"),
        Case(_args(rng, 8, 3, 2, 5, 2, 3), label="T=8, k1=2, k2=3", tag="overlap"),
        Case(_args(rng, 6, 2, 5, 3, 1, 4), label="T=6, k1=1, k2=4", tag="overlap"),
        Case(_args(rng, 6, 2, 3, 7, 2, 5), label="T=6, k1=2, k2=5", tag="overlap"),
        Case(_args(rng, 7, 2, 3, 5, 3, 3), label="T=7, k1=3, k2=3", tag="remainder"),
        Case(_args(rng, 7, 3, 2, 5, 3, 4), label="T=7, k1=3, k2=4", tag="remainder"),
        Case(_args(rng, 5, 3, 2, 7, 2, 5), label="T=5, k1=2, k2=5", tag="whole"),
        Case(_args(rng, 5, 2, 3, 7, 4, 9), label="T=5, k1=4, k2=9", tag="whole"),
    ]


def _args(rng, T, B, m, d, k1, k2):
    return (rng.standard_normal((T, B, m)), *network(rng, T, B, m, d), k1, k2)


def _mistake(name, says, source, also=()):
    return Misconception(name, says, "bptt#truncation", source, also=also)


TASK = Task(
    id="bptt.rnn_truncated_backward",
    title="Truncated backpropagation through time",
    signature="(dH, H, h0, X, W_hh, W_xh, k1, k2)",
    equations=("eq-2",),
    page="bptt#truncation",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    options={
        "parts": ("dW_hh", "dW_xh", "db_h", "dh0"),
        "forward": {"rnn_step_backward": _bptt_step.reference},
    },
    criteria=(
        Criterion("values", 4, "dW_hh with k1 = k2", part=0),
        Criterion("dW_xh", 1, "dW_xh with k1 = k2", part=1, needs=()),
        Criterion("db_h", 1, "db_h with k1 = k2", part=2, needs=()),
        Criterion("overlap", 4, "dW_hh with k2 > k1", tag="overlap", part=0),
        Criterion("dh0", 2, "dh0", tag="overlap", part=3, needs=()),
        Criterion("remainder", 2, "a last block of fewer than k1 steps", tag="remainder"),
        Criterion("whole", 1, "k2 >= T: the full gradient", tag="whole"),
    ),
    misconceptions=(
        _mistake(
            "not_truncated",
            "Nothing is cut: this is the full gradient, whatever k2 is.",
            "lucidrains/recurrent-memory-transformer-pytorch#4",
        ),
        _mistake(
            "k2_ignored",
            "The gradient stops at the start of each block, although k2 allows more steps.",
            "yunjey/pytorch-tutorial#90",
        ),
        _mistake(
            "k2_from_start",
            "The k2 steps are counted from the start of the block, not from its end.",
            "our own: k2 read as the steps before the block",
        ),
        _mistake(
            "every_step",
            "Every loss goes back k2 steps from its own step: the blocks of k1 steps are not "
            "used.",
            "woowacampers/d2l-pytorch#5",
        ),
        _mistake(
            "exchanged",
            "k1 and k2 are exchanged: blocks of k2 steps that go back k1.",
            "our own: two numbers of similar names",
        ),
        _mistake(
            "one_too_far",
            "The gradient goes back one step more than k2 allows.",
            "our own: k2 transitions counted, not k2 steps",
        ),
        _mistake(
            "one_too_short",
            "The gradient goes back one step fewer than k2 allows.",
            "our own: the last step of the block counted as none",
        ),
        _mistake(
            "losses_repeated",
            "In each backward pass the losses of earlier blocks are added again, so that some "
            "count more than once.",
            "our own: backward() of the sum of all losses so far, after each block",
        ),
        _mistake(
            "end_loss_only",
            "Of each block only the loss of its last step is used.",
            "our own: the loss of the block taken from its last output",
        ),
        _mistake(
            "last_block_only",
            "Only the last block is in the result.",
            "our own: outline of the course, = in place of +=",
            also=("each block overwrites the gradients of the one before",),
        ),
        _mistake(
            "last_k2_steps",
            "One backward pass over the last k2 steps of the sequence is made, and no other.",
            "our own: truncation read as the end of the sequence alone",
        ),
        _mistake(
            "remainder_dropped",
            "A last block of fewer than k1 steps is left out.",
            "our own: T // k1 blocks",
        ),
        _mistake(
            "from_the_end",
            "The blocks are counted from the end, so that the first one is the short one.",
            "our own: a loop that starts at T and steps back by k1",
        ),
        _mistake(
            "state_zeroed",
            "Each block after the first begins with a state of zeros: the state is carried on, "
            "only the gradient is cut.",
            "lmjohns3/theanets#132",
        ),
        _mistake(
            "dh0_of_every_block",
            "What is cut off at the start of every block is added to dh0.",
            "our own: dh0 += dh after each block",
        ),
        _mistake(
            "dh0_zero",
            "dh0 is always 0, although some blocks reach the first step.",
            "our own: h0 taken for a constant, as after detach",
        ),
        _mistake(
            "block_mean",
            "The gradients of the parameters are divided by the number of blocks.",
            "huggingface/transformers#24725",
        ),
        _mistake(
            "dh0_overwritten",
            "dh0 is what the last pass that reaches the start brings: earlier ones are "
            "overwritten, not added to.",
            "our own: dh0 = dh in the loop over blocks",
        ),
        _mistake(
            "dh0_first_block",
            "dh0 is what the first block brings; later blocks reach the start too where k2 is "
            "large enough.",
            "our own: start == 0 where the end of the pass is meant",
        ),
        NO_SLOPE,
        SLOPE_OF_PREVIOUS,
        W_HH_TRANSPOSED,
    ),
    shortcuts=SHORTCUTS,
)
