"""Kind ``backward``: y = (x * x) @ w, whose forward pass the student's code may call."""

import numpy as np

from seqlib.exercises.properties import gradient_matches
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def squares(x, w):
    return (x * x) @ w


def reference(dy, x, w):
    """Return dx and dw."""
    return variant(dy, x, w)


def variant(dy, x, w, *, wrong=frozenset()):
    dx = (1 if "no_two" in wrong else 2) * x * (dy @ w.T)
    dw = (x if "not_squared" in wrong else x * x).T @ dy
    return (dw, dx) if "exchanged" in wrong else (dx, dw)


def _inputs(rng, shape=(5, 3, 2)):
    rows, width, out = shape
    return [rng.standard_normal((rows, width)), rng.standard_normal((width, out))]


def cases(rng):
    return [
        Case((rng.standard_normal((shape[0], shape[2])), *_inputs(rng, shape)), {}, f"{shape}")
        for shape in ((5, 3, 2), (2, 7, 3), (1, 1, 1))
    ]


TASK = Task(
    id="fixtures.squares_backward",
    title="Gradient of squares",
    signature="(dy, x, w)",
    equations=(),
    page="squares",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    criteria=(
        Criterion("values", 2, "dx", part=0),
        Criterion("dw", 2, "dw", part=1, needs=()),
        Criterion(
            "differences",
            1,
            "agreement with central differences",
            holds=gradient_matches(squares, _inputs, varied=(0, 1), names=("dx", "dw")),
        ),
    ),
    misconceptions=(
        Misconception("no_two", "The derivative of x * x is taken as x.", "squares", "ours"),
        Misconception("not_squared", "dw is made from x itself.", "squares", "ours"),
        Misconception("exchanged", "dw stands before dx.", "squares", "ours"),
    ),
    options={"forward": {"squares": squares}, "parts": ("dx", "dw")},
)

FORWARD_WRONG = """
def squares(x, w):
    return x @ w

def squares_backward(dy, x, w):
    # A style that leans on the forward pass: dw by differences, which are exact enough here.
    dw = np.zeros_like(w)
    for i in np.ndindex(*w.shape):
        one = np.zeros_like(w)
        one[i] = 1.0
        dw[i] = (dy * squares(x, one)).sum()
    return 2 * x * (dy @ w.T), dw
"""


def student():
    """Return a right backward pass beside a wrong forward pass."""
    space = {"np": np}
    exec(FORWARD_WRONG, space)
    return space["squares_backward"]
