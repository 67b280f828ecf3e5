"""Kind ``values``: the mean of the last few steps of a series."""

import numpy as np

from seqlib.exercises.properties import causal_in, inputs_unmodified
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(x, *, width):
    """Return y of shape (B, T, D): the mean of steps t-width+1 ... t, fewer at the start."""
    return variant(x, width=width)


def variant(x, *, width, wrong=frozenset()):
    steps = x.shape[1]
    y = np.zeros_like(x)
    for t in range(steps):
        start, stop = max(t - width + 1, 0), t + 1
        if "looks_ahead" in wrong:
            start, stop = t, min(t + width, steps)
        piece = x[:, start:stop]
        y[:, t] = piece.sum(axis=1)
        if "sum" not in wrong:
            y[:, t] /= width if "full_width" in wrong else piece.shape[1]
    return y.astype(np.float64) if "double" in wrong else y


def in_place(x, *, width):
    y = variant(x, width=width)
    x[:] = y
    return y


def _inputs(rng):
    return [rng.standard_normal((2, 7, 3))]


def _with_width(holds):
    return lambda call, rng: holds(Bound(call), rng)


class Bound:
    """The function with its keyword filled in."""

    def __init__(self, call):
        self.call = call

    def __call__(self, *args):
        return self.call(*args, width=3)

    @property
    def last(self):
        return self.call.last


def cases(rng):
    def case(shape, width, tag="base", dtype=float):
        x = rng.standard_normal(shape).astype(dtype)
        return Case((x,), {"width": width}, f"x of shape {shape}, width {width}", tag)

    return [
        case((2, 7, 3), 1),
        case((5, 11, 2), 3),
        case((1, 5, 1), 7),
        case((2, 3, 5), 2, "single", np.float32),
    ]


TASK = Task(
    id="fixtures.smooth",
    title="Mean of the last steps",
    signature="(x, *, width)",
    equations=(),
    page="smoothing",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 4, "means"),
        Criterion("dtype", 1, "float32 stays float32", tag="single", dtype=True),
        Criterion("causal", 2, "no look ahead", holds=_with_width(causal_in(_inputs))),
        Criterion(
            "inputs_unmodified",
            1,
            "x is not modified",
            holds=_with_width(inputs_unmodified(_inputs)),
        ),
    ),
    misconceptions=(
        Misconception("sum", "The steps are added, not averaged.", "smoothing#mean", "ours"),
        Misconception(
            "full_width", "At the start the divisor is the width.", "smoothing#start", "ours"
        ),
        Misconception(
            "looks_ahead",
            "The window starts at t, it does not end there.",
            "smoothing#end",
            "ours",
        ),
        Misconception("double", "The result is always float64.", "smoothing#dtype", "ours"),
        Misconception(
            "in_place", "The result is written into x.", "smoothing#place", "ours", in_place
        ),
    ),
    options={"axes": ("batch row", "time step", "feature")},
)
