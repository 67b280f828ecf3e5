"""The practice notebook ``setup``: one small task that shows how a check reads."""

from seqlib.exercises.record import Assignment, Case, Criterion, Misconception, Task


def reference(X):
    """Return the mean of every row, over the last axis."""
    return X.mean(axis=-1)


def variant(X, *, wrong=frozenset()):
    """Return the means, with the mistakes named in ``wrong``."""
    return X.mean(axis=0 if "first_axis" in wrong else 1 if "second_axis" in wrong else -1)


def cases(rng):
    """Draw inputs for one run."""
    return [
        *(Case((rng.standard_normal(s),), label=f"X of shape {s}") for s in ((3, 3), (5, 2))),
        Case((rng.standard_normal((3, 5, 7)),), label="X of shape (3, 5, 7)", tag="batch"),
    ]


TASK = Task(
    id="setup.row_means",
    title="Means of the rows",
    signature="(X)",
    equations=(),
    page="conventions#axes",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 6, "one matrix"),
        Criterion("batch", 4, "an axis in front", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "first_axis",
            "The means are taken over the first axis.",
            "conventions#axes",
            "made to show a diagnosis",
        ),
        Misconception(
            "second_axis",
            "The means are taken over axis 1, counted from the front.",
            "conventions#axes",
            "made to show a diagnosis",
        ),
    ),
)

ASSIGNMENT = Assignment(
    name="setup", title="Check your machine", tasks=(TASK,), hours=0.25, graded=False
)
