"""Task: several masks in one, and the queries that are left without a key."""

import functools

import numpy as np

from seqlib.exercises._attention_masks import partial_mask
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(masks):
    """Return M, the sum of all masks, and which of its rows allow no key."""
    return variant(masks)


def variant(masks, *, wrong=frozenset()):
    """Return M and its empty rows, with the mistakes named in ``wrong``."""
    added = [_additive(mask, wrong) for mask in masks]
    M = _combined(added, wrong)
    if "bias_lost" in wrong:
        M = np.where(np.isneginf(M), M, 0.0)
    axis = -2 if "empty_over_queries" in wrong else -1
    some = np.any if "empty_any" in wrong else np.all
    empty = some(M != 0 if "empty_without_zero" in wrong else np.isneginf(M), axis=axis)
    if "empty_each" in wrong:
        rows = [np.isneginf(mask).all(axis=-1) for mask in added]
        empty = functools.reduce(np.logical_or, rows)
    if "empty_negated" in wrong:
        empty = ~empty
    if "row_opened" in wrong:
        M = np.where(np.isneginf(M).all(axis=-1, keepdims=True), 0.0, M)
    if "large_number" in wrong:
        M = np.where(np.isneginf(M), -1e9, M)
    return M if "mask_alone" in wrong else (M, empty)


def _additive(mask, wrong):
    mask = np.asarray(mask)
    if mask.dtype != bool:
        return mask
    if "booleans_added" in wrong:
        return mask.astype(float)
    return np.where(mask != ("booleans_reversed" in wrong), 0.0, -np.inf)


def _combined(masks, wrong):
    if "first_alone" in wrong:
        return masks[0]
    with np.errstate(invalid="ignore"):  # 0 times -inf
        if "product" in wrong:
            return functools.reduce(np.multiply, masks)
        if "either" in wrong:
            return functools.reduce(np.maximum, masks)
        if "smallest" in wrong:
            return functools.reduce(np.minimum, masks)
        return functools.reduce(np.add, masks)


def cases(rng):
    """Draw inputs for one run."""
    triangle, biased = _causal(5), _causal(3)
    return [
        Case(([_causal(7), _padding(rng, 7, 3)],), label="causal (7, 7), padding (3, 1, 7)"),
        Case(
            ([_padding(rng, 5, 2), _first_open(rng, 3, 5)],),
            label="masks of shape (2, 1, 5) and (3, 5)",
        ),
        Case(([_causal(1)],), label="one mask of shape (1, 1)"),
        Case(
            ([_causal(5), _padding(rng, 5, 3, left=True)],),
            label="causal (5, 5), padding on the left (3, 1, 5)",
            tag="empty",
        ),
        Case(
            ([_padding(rng, 5, 2), _tail(7, 5), _first_open(rng, 7, 5)],),
            label="three masks, (2, 1, 5), (7, 5) and (7, 5)",
            tag="empty",
        ),
        Case(
            ([triangle == 0, _padding(rng, 5, 3)],),
            label="booleans (5, 5), additive (3, 1, 5)",
            tag="booleans",
        ),
        Case(
            ([_padding(rng, 7, 2), _first_open(rng, 3, 7) == 0, _first_open(rng, 3, 7) == 0],),
            label="additive (2, 1, 7), booleans (3, 7), booleans (3, 7)",
            tag="booleans",
        ),
        Case(
            ([biased, rng.standard_normal((2, 3, 3)), _padding(rng, 3, 2, least=1)],),
            label="causal (3, 3), a bias (2, 3, 3), padding (2, 1, 3)",
            tag="bias",
        ),
        Case(
            ([np.where(triangle == 0, rng.standard_normal((5, 5)), -np.inf)],),
            label="one mask, causal with a bias (5, 5)",
            tag="bias",
        ),
        Case(
            ([_far_bias(rng, 5), _padding(rng, 5, 2)],),
            label="biases near -30, -2000 and -1e9 (3, 5), padding (2, 1, 5)",
            tag="bias",
        ),
    ]


def _causal(n):
    return np.where(np.tri(n) == 1, 0.0, -np.inf)


def _padding(rng, n, B, *, left=False, least=2):
    """Return (B, 1, n) with a padding in every sequence; on the left, rows become empty."""
    count = rng.integers(1, n - least + 1, size=(B, 1, 1))
    j = np.arange(n)[::-1] if not left else np.arange(n)
    return np.where(j < count, -np.inf, 0.0)


def _first_open(rng, n_q, n_k):
    """Return a mask that leaves the first key open, so that a sum with padding is not empty."""
    M = partial_mask(rng, n_q, n_k)
    M[:, 0] = 0
    return M


def _far_bias(rng, n_k):
    """Return finite numbers that block nothing, however far below 0 they are."""
    return rng.standard_normal((3, n_k)) - np.array([[30.0], [2e3], [1e9]])


def _tail(n_q, n_k):
    """Return a mask that leaves the last key alone to the first two queries."""
    M = np.zeros((n_q, n_k))
    M[:2, :-1] = -np.inf
    return M


TASK = Task(
    id="masks.combine_masks",
    title="Several masks at once",
    signature="(masks)",
    equations=("eq-13", "eq-mask-sum"),
    page="masks#both",
    reference=reference,
    variant=variant,
    cases=cases,
    options={
        "parts": ("M", "empty"),
        "axes": {"M": ("sequence", "query", "key"), "empty": ("sequence", "query")},
    },
    criteria=(
        Criterion("values", 4, "M of additive masks", part=0),
        Criterion("empty", 2, "queries without a key, M and empty", tag="empty"),
        Criterion("booleans", 2, "masks of booleans", tag="booleans", part=0),
        Criterion("bias", 1, "masks with finite numbers", tag="bias", part=0),
        Criterion("bias_empty", 1, "finite numbers block nothing", tag="bias", part=1),
    ),
    misconceptions=(
        Misconception(
            "booleans_added",
            "True and False are added as 1 and 0, so a False blocks nothing.",
            "masks#polarity",
            "our own: + does not look at the dtype",
        ),
        Misconception(
            "booleans_reversed",
            "In the masks of booleans True is taken for blocked.",
            "masks#polarity",
            "pytorch/pytorch#27968",
        ),
        Misconception(
            "either",
            "A key is open as soon as one mask allows it.",
            "masks#both",
            "our own: the larger entry of two masks",
        ),
        Misconception(
            "first_alone",
            "Only the first mask has an effect.",
            "masks#both",
            "our own: the padding mask is built and not used",
        ),
        Misconception(
            "product",
            "The masks are multiplied: 0 times -inf is NaN, and -inf times -inf is +inf.",
            "masks#both",
            "our own: as masks of 0 and 1 are combined",
        ),
        Misconception(
            "bias_lost",
            "Finite entries are replaced by 0: of each mask it is only kept what is blocked.",
            "masks#both",
            "our own: every entry that is not -inf is taken for a plain permission",
        ),
        Misconception(
            "large_number",
            "Blocked entries hold a large finite number in place of -inf.",
            "masks#empty-rows",
            "NVIDIA/apex#1052",
        ),
        Misconception(
            "row_opened",
            "Rows without a key are opened in M, so that their queries see what is blocked.",
            "masks#empty-rows",
            "our own: a repair of NaN that hides the row",
        ),
        Misconception(
            "empty_any",
            "A query counts as one without a key as soon as one key is blocked.",
            "masks#empty-rows",
            "our own: any() where all() is meant",
        ),
        Misconception(
            "empty_without_zero",
            "A query counts as one without a key as soon as no entry of its row is 0; a finite "
            "number blocks nothing.",
            "masks#empty-rows",
            "our own: M != 0 where M == -inf is meant",
        ),
        Misconception(
            "empty_over_queries",
            "The axis of the queries is gone through, not that of the keys: found are keys "
            "that no query sees.",
            "masks#empty-rows",
            "our own: rows and columns of M exchanged",
        ),
        Misconception(
            "empty_each",
            "Each mask is searched for empty rows by itself; a row may become empty only when "
            "the masks are joined.",
            "masks#empty-rows",
            "pytorch/pytorch#41508",
        ),
        Misconception(
            "empty_negated",
            "The second result is True for the queries that have a key.",
            "masks#empty-rows",
            "our own: the name `empty` read as its opposite",
        ),
        Misconception(
            "mask_alone",
            "M is returned alone; the text asks for M and empty.",
            "masks#empty-rows",
            "our own: the sum is taken for the whole task",
        ),
        Misconception(
            "smallest",
            "Of the entries of all masks the smallest one is taken, not the sum, so biases do "
            "not add up.",
            "masks#both",
            "our own: blocked beats allowed, with np.minimum",
        ),
    ),
    shortcuts=("seqlib.np.masks.to_additive",),
    version=2,
)
