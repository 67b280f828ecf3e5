"""Kind ``training``: fit a first-order autoregression and predict the next number."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import Seed

SLOPE = 0.9
STEPS = 2000


def series(rng, steps=STEPS):
    """Draw s[t+1] = 0.9 s[t] + noise of variance 1."""
    s = np.zeros(steps)
    noise = rng.standard_normal(steps)
    for t in range(1, steps):
        s[t] = SLOPE * s[t - 1] + noise[t]
    return s


def evaluate(predict, rng, case):
    """Return the mean squared error of predicting s[t+1] from s[0..t], all t at once."""
    s = series(rng)
    predicted = np.asarray(predict(s), dtype=float)
    if predicted.shape != s.shape:
        raise ValueError(f"predictions must have shape {s.shape}, got {predicted.shape}")
    return float(np.mean((predicted[:-1] - s[1:]) ** 2))


def reference(s, rng):
    """Return a function that maps a series to the predicted next numbers."""
    slope = (s[:-1] @ s[1:]) / (s[:-1] @ s[:-1])
    return lambda s: slope * s


def sees_next(s, rng):
    return lambda s: np.append(s[1:], 0.0)


def cases(rng):
    return [Case((series(rng), Seed(5)), {}, "a series of 2000 numbers")]


# The best loss is 1, with a standard error of sqrt(2 / 2000) = 0.032. Predicting the mean
# gives 1 / (1 - 0.81) = 5.3, repeating the last number 1.05.
TASK = Task(
    id="fixtures.fit",
    title="Fit of an autoregression",
    signature="(s, rng)",
    equations=(),
    page="autoregression",
    reference=reference,
    cases=cases,
    kind="training",
    criteria=(
        Criterion("values", 1, "better than the mean"),
        Criterion("good", 2, "as good as a fitted slope"),
    ),
    misconceptions=(
        Misconception(
            "sees_next", "The prediction uses the next number.", "leaks", "ours", sees_next
        ),
    ),
    options={
        "evaluate": evaluate,
        "bounds": {"values": (0.9, 3.0), "good": (0.9, 1.15)},
        "below": "sees_next",
    },
    seconds=20.0,
)
