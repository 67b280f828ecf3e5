"""Task: reverse padded sequences in time, for a network that reads backwards."""

import numpy as np

from seqlib.exercises.properties import inputs_unmodified
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(x, lengths):
    """Return each sequence from its last valid step to its first, padding in its place."""
    t = np.arange(x.shape[1])
    lengths = lengths[:, None]
    places = np.where(t < lengths, lengths - 1 - t, t)  # (B, T)
    return np.take_along_axis(x, places[..., None], axis=1)


def variant(x, lengths, *, wrong=frozenset()):
    """Return the reversed sequences, with the mistakes named in ``wrong``."""
    if "whole_flipped" in wrong:
        lengths = np.full_like(lengths, x.shape[1])
    if "shortest_for_all" in wrong:
        lengths = np.full_like(lengths, lengths.min())
    if "first_length_for_all" in wrong:
        lengths = np.full_like(lengths, lengths[0])
    if "batch_flipped" in wrong:
        y = np.array(x[::-1])
    elif "features_flipped" in wrong:
        y = np.array(x[..., ::-1])
    elif "overwritten" in wrong:
        y = _overwritten(x, lengths)
    else:
        y = np.array(x) if "exchanged_twice" in wrong else reference(x, lengths)
    if "padding_zeroed" in wrong:
        y[np.arange(x.shape[1]) >= lengths[:, None]] = 0
    return y


def _overwritten(x, lengths):
    y = np.array(x)
    for b, length in enumerate(lengths):
        for t in range(length):
            y[b, t] = y[b, length - 1 - t]
    return y


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_drawn(rng, (5, 2, 4), 5, 3), label="B=3, T=5, d=3, lengths 5, 2, 4"),
        Case(_drawn(rng, (6, 3), 7, 2), label="B=2, T=7, d=2, lengths 6, 3"),
        Case(_drawn(rng, (0, 1, 3), 3, 2), label="B=3, T=3, lengths 0, 1, 3", tag="edge"),
        Case(_drawn(rng, (3,), 5, 1), label="B=1, T=5, d=1, length 3", tag="edge"),
    ]


def _drawn(rng, lengths, T, d):
    """Draw sequences; the first one is not the shortest."""
    order = rng.permutation(lengths)
    if order[0] == order.min():
        order = np.roll(order, 1)
    return rng.standard_normal((len(order), T, d)), order


def _inputs(rng):
    return list(_drawn(rng, (5, 3), 5, 2))


TASK = Task(
    id="rnn.reverse_sequences",
    title="Reverse padded sequences",
    signature="(x, lengths)",
    equations=(),
    page="rnn#lengths",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 3, "reversed sequences"),
        Criterion("edge", 1, "lengths 0, 1 and T, one sequence", tag="edge"),
        Criterion("inputs_unmodified", 1, "x stays as it is", holds=inputs_unmodified(_inputs)),
    ),
    misconceptions=(
        Misconception(
            "whole_flipped",
            "All T steps are reversed, so the padding comes first.",
            "rnn#lengths",
            "pytorch/pytorch#1811",
        ),
        Misconception(
            "padding_zeroed",
            "The valid steps are right, but the padding is set to 0; it should stay.",
            "rnn#lengths",
            "our own: a result of zeros, filled where steps are valid",
        ),
        Misconception(
            "batch_flipped",
            "The order of the sequences is reversed, not that of their steps.",
            "rnn#lengths",
            "google-deepmind/dm-haiku#298",
        ),
        Misconception(
            "features_flipped",
            "The order of the features is reversed, not that of the steps.",
            "rnn#lengths",
            "our own: the last axis in the place of axis 1",
        ),
        Misconception(
            "first_length_for_all",
            "All sequences are reversed over the length of the first one.",
            "rnn#lengths",
            "our own: lengths[0] for lengths[b]",
        ),
        Misconception(
            "shortest_for_all",
            "All sequences are reversed over the smallest of the lengths.",
            "rnn#lengths",
            "our own: one slice for the whole batch",
        ),
        Misconception(
            "overwritten",
            "Steps are overwritten before they are read, so the second half of a sequence "
            "mirrors the first.",
            "rnn#lengths",
            "our own: a loop that reads from the array that it writes",
        ),
        Misconception(
            "exchanged_twice",
            "Each pair of steps is exchanged twice, so that nothing changes.",
            "rnn#lengths",
            "our own: the loop of exchanges runs over the whole length, not over half of it",
        ),
    ),
    options={"axes": ("sequence", "time step", "feature")},
    version=2,
)
