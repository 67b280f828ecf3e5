"""The models that a leak test is tried on: right ones, and one leak of each sort.

Every model that leaks has the shape, the dtype and the padding of a right one, so that these
tell nothing.
"""

import numpy as np

from seqlib.exercises._masks_models import PADDING, VOCABULARY, Model
from seqlib.exercises.record import Case
from seqlib.subject.values import Seed


def cases(rng):
    """Draw models for one run, right ones and such that leak in one way each."""
    return [*_right(rng), *_one_position(rng), *_last_step(rng), *_rows(rng), *_quiet(rng)]


def _case(rng, B, T, label, tag="base", extra=None, *, padding=None, **options):
    # At each step the sequences have different tokens, or one could stand for another.
    tokens = rng.permuted(np.tile(np.arange(1, VOCABULARY), (T, 1)), axis=1)
    ids = tokens[:, :B].T
    if padding is not None:
        count = rng.integers(1, T - 2, size=(B, 1))
        j = np.arange(T) if padding == "left" else np.arange(T)[::-1]
        ids = np.where(j < count, PADDING, ids)
    model = Model(rng, ids, extra, padded=padding is not None, **options)
    label = f"{label}, B={B}, T={T}"
    seed = Seed(int(rng.integers(2**31)))
    return Case((model.handle(), ids, seed), label=label, tag=tag)


def _right(rng):
    return [
        _case(rng, 2, 5, "a right model in float64", single=False),
        _case(rng, 3, 7, "a right model in float32"),
        _case(rng, 2, 6, "a right model in float32"),
        _case(rng, 3, 6, "a right model, padding on the right", padding="right"),
        _case(rng, 2, 7, "a right model, padding on the left", padding="left"),
        # In float64 where there are few logits: no tolerance can be right for them by chance.
        _case(rng, 3, 1, "a right model, one step", single=False),
        _case(rng, 1, 5, "a right model, one sequence", single=False),
        _case(rng, 1, 1, "a right model, one sequence of one step", single=False),
        _case(rng, 2, 5, "a model without a mask", extra=_everything, single=False),
    ]


def _one_position(rng):
    p = int(rng.choice([1, 3, 4]))  # a cut in the middle, behind 3 of 7 steps, misses it

    def one(b, i, c, j, T):
        return (c == b) & (i == p) & (j == p + 1)

    def middle(b, i, c, j, T):
        return (c == b) & (i == 1) & (j == 2)

    def last_row(b, i, c, j, T):
        return (c == b) & (b == 2) & (i == 1) & (j == 2)

    def first(b, i, c, j, T):
        return (c == b) & (i == 0) & (j == 1)

    tag = "one_position"
    return [
        _case(rng, 2, 6, "every step sees the next one", tag, _next),
        _case(rng, 3, 7, "one step sees the next one", tag, one),
        _case(rng, 1, 5, "the second step sees the third one", tag, middle, single=False),
        _case(rng, 3, 7, "one step of one sequence sees the next one", tag, last_row),
        _case(rng, 1, 5, "the first step sees the second one", tag, first, single=False),
    ]


def _last_step(rng):
    def to_all(b, i, c, j, T):
        return (c == b) & (j == T - 1)

    def to_the_one_before(b, i, c, j, T):
        return (c == b) & (i == T - 2) & (j == T - 1)

    def to_the_first(b, i, c, j, T):
        return (c == b) & (i == 0) & (j == T - 1)

    tag = "last_step"
    return [
        _case(rng, 3, 7, "all steps see the last one", tag, to_all),
        _case(rng, 2, 6, "the last step is seen one step early", tag, to_the_one_before),
        _case(rng, 1, 5, "the first step sees the last one", tag, to_the_first, single=False),
    ]


def _rows(rng):
    def same_step(b, i, c, j, T):
        return j == i

    def earlier(b, i, c, j, T):
        return j <= i

    def neighbour(b, i, c, j, T):
        return (c == b - 1) & (j <= i)

    tag = "rows"
    return [
        _case(rng, 2, 6, "a step sees the same step of the other sequence", tag, same_step),
        _case(
            rng, 3, 1, "one step, and it sees the other sequences", tag, same_step, single=False
        ),
        _case(rng, 3, 7, "a step sees earlier ones of all sequences", tag, earlier),
        _case(rng, 2, 6, "the second sequence sees the first one", tag, neighbour),
    ]


def _quiet(rng):
    def copied(logits, ids):
        return logits + 8 * np.eye(VOCABULARY)[ids]

    def centred(logits, ids):
        return logits - logits.mean(axis=-1, keepdims=True)

    def divided(logits, ids):
        return logits / np.sqrt(ids.shape[1])

    return [
        _case(rng, 2, 6, "a leak of about 0.0007", "quiet", _everything, size=7e-4),
        _case(
            rng, 3, 7, "a leak that changes no prediction", "quiet", _everything, head=copied
        ),
        _case(rng, 3, 7, "logits that sum to 0", "quiet", _everything, head=centred),
        _case(rng, 2, 6, "a softmax over the queries", "quiet", _nothing, over_queries=True),
        _case(rng, 2, 7, "padding and no mask", "quiet", _everything, padding="left"),
        _case(rng, 2, 6, "steps counted from the end", "length", position=_from_the_end),
        _case(
            rng, 1, 5, "logits divided by the root of T", "length", head=divided, single=False
        ),
    ]


def _everything(b, i, c, j, T):
    return c == b


def _next(b, i, c, j, T):
    return (c == b) & (j == i + 1)


def _nothing(b, i, c, j, T):
    return (c == b) & (j < 0)


def _from_the_end(t, T):
    return T - 1 - t
