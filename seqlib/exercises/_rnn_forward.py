"""Task: a whole batch of sequences of different lengths, equations (1) and (2)."""

import numpy as np

from seqlib.exercises._rnn_step import NO_BIAS, NO_TANH, RECURRENT_TRANSPOSED
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.rnn import rnn


def reference(x, h_0, W_hh, W_xh, b_h, lengths=None):
    """Return all states and the last one of each sequence."""
    return rnn(x, h_0, W_xh, W_hh, b_h, None, lengths=lengths)


def variant(x, h_0, W_hh, W_xh, b_h, lengths=None, *, wrong=frozenset()):
    """Return all states and the last ones, with the mistakes named in ``wrong``."""
    B, T, _ = x.shape
    if lengths is None or "lengths_ignored" in wrong:
        lengths = np.full(B, T)
    if "empty_as_one" in wrong:
        lengths = np.maximum(lengths, 1)
    before, after = _states(x, h_0, W_hh, W_xh, b_h, wrong)
    at_end = after[:, 0 if "time_reversed" in wrong else T - 1]
    last = at_end if "time_reversed" in wrong else after[np.arange(B), lengths - 1]
    empty = (lengths == 0)[:, None]
    if "empty_wraps" not in wrong:
        last = np.where(empty, 0 if "empty_zero" in wrong else h_0, last)
    valid = (np.arange(T) < lengths[:, None])[..., None]
    H = np.where(valid, before if "states_before" in wrong else after, 0)
    if "outputs_run_on" in wrong:
        H = after
    if "outputs_repeat" in wrong:
        H = np.where(valid, H, last[:, None])
    if "state_runs_on" in wrong:
        last = at_end
    if "last_column" in wrong:
        last = H[:, -1]
    return _returned(H, last, wrong)


def _states(x, h_0, W_hh, W_xh, b_h, wrong):
    """Return the states before and after each step, padded steps like any other."""
    h = np.zeros_like(h_0) if "zero_initial" in wrong else h_0
    before = np.empty((*x.shape[:2], len(b_h)), np.result_type(x, h_0, W_hh))
    after = np.empty_like(before)
    steps = range(x.shape[1])
    for t in reversed(steps) if "time_reversed" in wrong else steps:
        before[:, t] = h_0 if "not_carried" in wrong else h
        a = before[:, t] @ (W_hh if "recurrent_transposed" in wrong else W_hh.T)
        a = a + x[:, t] @ W_xh.T + (0 if "no_bias" in wrong else b_h)
        h = after[:, t] = a if "no_tanh" in wrong else np.tanh(a)
    return before, after


def _returned(H, last, wrong):
    if "time_first" in wrong:
        H = np.swapaxes(H, 0, 1)
    if "output_alone" in wrong:
        return H
    return (last, H) if "parts_exchanged" in wrong else (H, last)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_drawn(rng, 3, 5, 2, 7), label="B=3, T=5, d=2, m=7"),
        Case(_drawn(rng, 2, 7, 5, 3), label="B=2, T=7, d=5, m=3"),
        Case(
            _drawn(rng, 3, 5, 2, 7, (5, 2, 3)),
            label="lengths 5, 2, 3 in some order, T=5",
            tag="lengths",
        ),
        Case(
            _drawn(rng, 2, 7, 3, 5, (6, 4)),
            label="lengths 6 and 4 in some order, T=7",
            tag="lengths",
        ),
        Case(
            _drawn(rng, 3, 5, 2, 7, (0, 3, 5)),
            label="lengths 0, 3, 5 in some order, T=5",
            tag="empty",
        ),
        Case(
            _drawn(rng, 3, 4, 2, 5, (4, 1, 2), padding=np.nan),
            label="lengths 4, 1, 2 in some order, T=4, NaN in the padding",
            tag="empty",
        ),
        Case(_drawn(rng, 1, 1, 3, 2), label="B=1, T=1, d=3, m=2", tag="edge"),
        Case(_drawn(rng, 2, 3, 1, 1), label="B=2, T=3, d=m=1", tag="edge"),
    ]


def _drawn(rng, B, T, d, m, lengths=None, padding=None):
    """Draw arguments; the padding is given, or far from what stands elsewhere."""
    x = rng.standard_normal((B, T, d))
    arguments = (
        rng.uniform(-1, 1, (B, m)),
        rng.standard_normal((m, m)) / np.sqrt(m),
        rng.standard_normal((m, d)) / np.sqrt(d),
        0.5 * rng.standard_normal(m),
    )
    if lengths is None:
        return (x, *arguments)
    lengths = rng.permutation(lengths)
    padded = (np.arange(T) >= lengths[:, None])[..., None]
    return (np.where(padded, 3 * x + 2 if padding is None else padding, x), *arguments, lengths)


TASK = Task(
    id="rnn.rnn_forward",
    title="A batch of sequences",
    signature="(x, h_0, W_hh, W_xh, b_h, lengths=None)",
    equations=("eq-1", "eq-2"),
    page="rnn#sequence",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 9, "states H", part=0),
        Criterion("last", 3, "last states h_n", part=1, needs=()),
        Criterion("lengths", 5, "H with lengths", tag="lengths", part=0),
        Criterion("last_valid", 4, "h_n with lengths", tag="lengths", part=1, needs=("last",)),
        Criterion("empty", 2, "a sequence of length 0, NaN in the padding", tag="empty"),
        Criterion("edge", 2, "one step, one sequence, one feature", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "not_carried",
            "Every step starts from h_0: the state is not carried to the next step.",
            "rnn#sequence",
            "karpathy/makemore#3",
        ),
        Misconception(
            "zero_initial",
            "The first step starts from zeros, not from h_0.",
            "rnn#sequence",
            "community.deeplearning.ai/t/week1-assignment-1-rnn-forward/555049",
            also=("the state before step t read from column t - 1 of an array of zeros",),
        ),
        Misconception(
            "states_before",
            "H holds the states before the steps, h_0 first, not those after them.",
            "rnn#sequence",
            "our own: the state stored before it is updated",
        ),
        Misconception(
            "time_reversed",
            "The steps are run from the last to the first.",
            "rnn#sequence",
            "our own: a loop that counts down",
        ),
        Misconception(
            "time_first",
            "The numbers are right, but the axes of H are time step, sequence, component.",
            "rnn#sequence",
            "yunjey/pytorch-tutorial#151",
        ),
        NO_TANH,
        NO_BIAS,
        RECURRENT_TRANSPOSED,
        Misconception(
            "lengths_ignored",
            "The lengths change nothing: padding is read like input.",
            "rnn#lengths",
            "tensorflow/tensorflow#140",
        ),
        Misconception(
            "outputs_run_on",
            "h_n is right, but H holds states at padded steps, made from what stands there.",
            "rnn#lengths",
            "apache/mxnet#2861",
        ),
        Misconception(
            "outputs_repeat",
            "H repeats the last valid state at padded steps.",
            "rnn#lengths",
            "keras-team/keras#1569",
        ),
        Misconception(
            "state_runs_on",
            "H is right, but h_n is the state after step T, for which the padding was read.",
            "rnn#lengths",
            "keitakurita/practical-torchtext#5",
        ),
        Misconception(
            "last_column",
            "h_n is the last column of H, which is 0 for a sequence shorter than T.",
            "rnn#lengths",
            "allenai/allennlp#1713",
            also=("the state set to 0 at padded steps, not kept",),
        ),
        Misconception(
            "empty_zero",
            "h_n of a sequence of length 0 is 0.",
            "rnn#lengths",
            "our own: zeros in the place of h_0",
        ),
        Misconception(
            "empty_wraps",
            "h_n of a sequence of length 0 is taken from the last column, by the index -1.",
            "rnn#lengths",
            "our own: lengths - 1 as an index is -1 for length 0",
        ),
        Misconception(
            "empty_as_one",
            "A sequence of length 0 is run for one step, over padding.",
            "rnn#lengths",
            "pytorch/pytorch#4582",
        ),
        Misconception(
            "output_alone",
            "H is returned alone; the text asks for H and h_n.",
            "rnn#sequence",
            "our own: two results asked for, one returned",
        ),
        Misconception(
            "parts_exchanged",
            "H and h_n are returned in the other order.",
            "rnn#sequence",
            "our own: two results in the other order",
        ),
    ),
    options={
        "axes": {
            "H": ("sequence", "time step", "component"),
            "h_n": ("sequence", "component"),
        },
        "parts": ("H", "h_n"),
    },
    shortcuts=("seqlib.np.rnn", "seqlib.np.rnn_with_vjp", "torch.nn.RNN"),
    version=2,
)
