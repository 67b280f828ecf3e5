"""Kind ``sampling``: throws of a loaded die, one ``rng.choice(n, p=p)`` each."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import Seed


def reference(weights, count, rng):
    """Return ``count`` faces; the probabilities are the weights, normalised."""
    return variant(weights, count, rng)


def variant(weights, count, rng, *, wrong=frozenset()):
    p = weights / weights.sum()
    if "uniform" in wrong:
        p = np.ones_like(p) / len(p)
    if "squared" in wrong:
        p = weights**2 / (weights**2).sum()
    faces = [int(rng.choice(len(p), p=p)) for _ in range(count)]
    return [face + 1 for face in faces] if "from_one" in wrong else faces


def cases(rng):
    return [
        Case(
            (rng.uniform(0.1, 1, size=faces), count, Seed(int(rng.integers(2**31)))),
            {},
            f"{faces} faces, {count} throws",
        )
        for faces, count in ((5, 23), (7, 17), (2, 31))
    ]


TASK = Task(
    id="fixtures.throws",
    title="Throws of a loaded die",
    signature="(weights, count, rng)",
    equations=(),
    page="dice",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="sampling",
    criteria=(Criterion("values", 3, "throws"),),
    misconceptions=(
        Misconception("uniform", "Every face is equally likely.", "dice", "ours"),
        Misconception("squared", "The weights are squared.", "dice", "ours"),
        Misconception("from_one", "Faces are counted from 1.", "dice", "ours"),
    ),
)
