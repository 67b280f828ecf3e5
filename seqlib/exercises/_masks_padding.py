"""Task: the additive padding mask of a batch, from its lengths, equation (14)."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.masks import padding_from_lengths


def reference(lengths, n, side="right"):
    """Return M of shape (B, 1, n): -inf at the keys that are padding."""
    is_padding = padding_from_lengths(np.asarray(lengths), n, side=side)
    return np.where(is_padding, -np.inf, 0.0)[:, None, :]


def variant(lengths, n, side="right", *, wrong=frozenset()):
    """Return the mask, with the mistakes named in ``wrong``."""
    lengths = np.asarray(lengths)
    if "width_from_batch" in wrong:
        n = int(lengths.max())
    real = _real(lengths, n, side, wrong)  # (B, n), True at real tokens
    if "polarity" in wrong:
        real = ~real
    return _shaped(filled(real, wrong), wrong)


def _real(lengths, n, side, wrong):
    count = lengths[:, None] + _miscounted(side, wrong)
    left = side == "left" and "side_ignored" not in wrong
    if "sides_exchanged" in wrong:
        left = side != "left"
    j = np.arange(n)
    if not left:
        return (j < count) & ~(("full_blocked" in wrong) & (count == n))
    real = j >= (count if "left_counts_tokens" in wrong else n - count)
    return real | (("empty_open" in wrong) & (count == 0))


def _miscounted(side, wrong):
    """Return how many tokens too many are let through on this side."""
    if "one_short" in wrong or ("left_one_short" in wrong and side == "left"):
        return -1
    return int("one_long" in wrong or ("right_one_long" in wrong and side == "right"))


def filled(allowed, wrong):
    """Turn True = allowed into a mask, with the mistakes that two tasks share."""
    if "booleans" in wrong:
        return ~allowed
    if "ones_and_zeros" in wrong:
        return np.where(allowed, 1.0, 0.0)
    if "zero_times_inf" in wrong:
        with np.errstate(invalid="ignore"):
            return np.where(allowed, 0.0, 1.0) * -np.inf
    return np.where(allowed, 0.0, -1e9 if "large_number" in wrong else -np.inf)


def booleans_allowed(lengths, n, side="right"):
    """Return True at real tokens."""
    return variant(lengths, n, side) == 0


def allowed_is_true(function):
    """Return the mistake of a mask of booleans that are True where a query may look.

    No switch: with the other triangle it would be a mask of the other booleans.
    """
    return Misconception(
        "booleans_allowed",
        "The mask holds True where a query may look; the M of the notes is added to scores, "
        "so it holds numbers.",
        "masks#additive",
        "our own: the booleans of torch's scaled_dot_product_attention",
        function,
    )


def _shaped(M, wrong):
    if "queries_masked" in wrong:
        return M[:, :, None]
    return M if "no_query_axis" in wrong else M[:, None, :]


def cases(rng):
    """Draw inputs for one run: of every length, one that no other mistake could explain."""

    def lengths(n, *fixed):
        # Lengths 3 to n - 3 but for n / 2: a shift by one, or a change of sides, is seen.
        free = [k for k in range(3, n - 2) if 2 * k != n]
        return rng.permutation([*fixed, *rng.choice(free, 2, replace=False)])

    return [
        Case((lengths(11, 11), 11), label="3 sequences, n=11, one without padding"),
        Case((lengths(13, 2, 1), 13), label="4 sequences, n=13, all with padding"),
        Case((np.array([1]), 1), label="one sequence of one token"),
        Case((lengths(11, 11), 11, "left"), label="n=11, padding on the left", tag="left"),
        Case((lengths(13, 2, 1), 13, "left"), label="n=13, padding on the left", tag="left"),
        Case(
            (lengths(11, 0), 11), label="3 sequences, one of them without a token", tag="empty"
        ),
        Case((np.array([0, 0]), 3), label="2 sequences without a token, n=3", tag="empty"),
        # All empty, so that a mistake with sides costs nothing here.
        Case(
            (np.array([0, 0]), 5, "left"),
            label="2 sequences without a token, n=5, padding on the left",
            tag="empty",
        ),
    ]


# Mistakes in how a mask is filled, which the causal mask shares.
FILLINGS = (
    Misconception(
        "booleans",
        "The mask holds True where a key is blocked; the M of the notes is added to scores, "
        "so it holds numbers.",
        "masks#additive",
        "pytorch/pytorch#27968",
    ),
    Misconception(
        "ones_and_zeros",
        "The mask holds 1 and 0, as one that weights are multiplied by.",
        "masks#before-softmax",
        "amanchadha/coursera-deep-learning-specialization#45",
    ),
    Misconception(
        "zero_times_inf",
        "Zeros and ones are multiplied by infinity, and 0 times infinity is NaN.",
        "masks#additive",
        "our own: (1 - allowed) * -inf",
    ),
    Misconception(
        "large_number",
        "Blocked entries hold a large finite number in place of -inf.",
        "masks#empty-rows",
        "NVIDIA/apex#1052",
    ),
)

TASK = Task(
    id="masks.padding_mask",
    title="Padding mask",
    signature="(lengths, n, side='right')",
    equations=("eq-13", "eq-14"),
    page="masks#padding",
    reference=reference,
    variant=variant,
    cases=cases,
    options={"axes": ("sequence", "query", "key")},
    criteria=(
        Criterion("values", 5, "padding on the right"),
        Criterion("left", 3, "padding on the left", tag="left"),
        Criterion("empty", 2, "sequences without a token", tag="empty"),
    ),
    misconceptions=(
        Misconception(
            "polarity",
            "The mask blocks the real tokens and lets the padding through.",
            "masks#polarity",
            "pytorch/pytorch#27968",
        ),
        Misconception(
            "one_short",
            "One token too few is let through: an end of each sequence is blocked too.",
            "masks#padding",
            "our own: a comparison with lengths - 1",
        ),
        Misconception(
            "one_long",
            "One position too many is let through: a padding of each sequence can be seen.",
            "masks#padding",
            "our own: j <= lengths, where positions count from 0",
        ),
        Misconception(
            "side_ignored",
            "The padding is taken to be on the right whatever `side` says.",
            "masks#padding",
            "unslothai/unsloth#3699",
        ),
        Misconception(
            "sides_exchanged",
            "Left and right are exchanged.",
            "masks#padding",
            "our own: the tokens stand on the left where the padding stands on the right",
        ),
        Misconception(
            "left_counts_tokens",
            "On the left as many positions are blocked as there are real tokens.",
            "masks#padding",
            "our own: j >= lengths, the condition of the other side",
        ),
        Misconception(
            "full_blocked",
            "A sequence without padding is blocked as a whole: the slice `[-0:]` is all of it.",
            "masks#padding",
            "our own: M[b, 0, -(n - length):] where the length is n",
        ),
        Misconception(
            "empty_open",
            "On the left, a sequence without a token is not blocked at all: the slice `[:-0]` "
            "is empty.",
            "masks#padding",
            "our own: M[b, 0, :-length] where the length is 0",
        ),
        Misconception(
            "width_from_batch",
            "The mask has as many columns as the longest sequence of this batch has tokens, "
            "not n.",
            "masks#padding",
            "our own: lengths.max() stands for the length after padding",
        ),
        Misconception(
            "queries_masked",
            "The mask has shape (B, n, 1): it blocks the rows of padded queries, not the "
            "columns of padded keys.",
            "masks#padding",
            "our own: the new axis behind the positions",
        ),
        Misconception(
            "no_query_axis",
            "The mask has shape (B, n): added to scores of shape (B, n_q, n), its rows would "
            "stand for queries.",
            "masks#padding",
            "ArrowLuo/CLIP4Clip#22",
        ),
        Misconception(
            "right_one_long",
            "With padding on the right one position too many is let through, the first "
            "padding of each sequence.",
            "masks#padding",
            "our own: j <= lengths on one side, and the other side right",
        ),
        Misconception(
            "left_one_short",
            "With padding on the left one position too many is blocked, the first token of "
            "each sequence.",
            "masks#padding",
            "our own: j > n - lengths on one side, and the other side right",
        ),
        *FILLINGS,
        allowed_is_true(booleans_allowed),
    ),
    shortcuts=("seqlib.np.masks.padding_mask", "seqlib.np.masks.padding_from_lengths"),
)
