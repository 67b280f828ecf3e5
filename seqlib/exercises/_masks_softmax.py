"""Task: the softmax of masked scores, with rows that have nothing to distribute."""

import numpy as np

from seqlib.exercises._attention_masks import empty_row_mask, partial_mask
from seqlib.exercises._attention_scaled import MASK_MISCONCEPTIONS
from seqlib.exercises._attention_weights import SOFTMAX_AXIS_ONE, weights
from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance


def masked_softmax(S, M):
    """Return softmax(S + M) over the keys; a row without an allowed key holds zeros."""
    return softmax_variant(S, M)


def softmax_variant(S, M, *, wrong=frozenset()):
    """Return the weights, with the mistakes named in ``wrong``."""
    if "nan_to_zero" in wrong:
        made = {"blocked_added", "empty_row_nan"} | wrong - {"nan_to_zero"}
        return np.nan_to_num(softmax_variant(S, M, wrong=made))
    if "softmax_axis_zero" in wrong:
        wrong = wrong | {"softmax_over_heads"}  # where there are heads, they are axis 0
    blocked, wide = np.isneginf(M), np.result_type(S, np.float32)
    if "mask_times_scores" in wrong:
        with np.errstate(invalid="ignore"):  # -inf times 0
            return weights(S * M, wrong=wrong)
    without_bias = wrong & {"bias_ignored", "mask_ignored"}
    scores = S.astype(wide) + (0 if without_bias else np.where(blocked, 0, M).astype(wide))
    if "blocked_added" in wrong:
        with np.errstate(invalid="ignore"):  # inf - inf
            scores = scores + np.where(blocked, M, 0)
        # A NaN is no -inf, and takes part in its row whatever the mask says.
        blocked = blocked & ~np.isnan(scores)
    if wrong & {"shift_of_blocked", "no_shift_guarded"}:
        shift = scores.max(axis=-1, keepdims=True) if "shift_of_blocked" in wrong else 0
        return _guarded_softmax(scores, blocked, shift, guarded="empty_row_nan" not in wrong)
    return weights(scores, np.where(blocked, -np.inf, 0.0), wrong=wrong).astype(S.dtype)


def _guarded_softmax(scores, blocked, shift, *, guarded):
    """Return zeros where the exponentials sum to 0, whatever the reason, or NaN there."""
    with np.errstate(all="ignore"):
        E = np.where(blocked, 0, np.exp(scores - shift))
        total = E.sum(axis=-1, keepdims=True)
        return E / np.where((total == 0) & guarded, 1, total)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case((_scores(rng, 3, 5), partial_mask(rng, 3, 5)), label="S and M of shape (3, 5)"),
        Case((_scores(rng, 7, 2), partial_mask(rng, 7, 2)), label="S and M of shape (7, 2)"),
        Case((_scores(rng, 1, 1), np.zeros((1, 1))), label="one query, one key"),
        Case((_scores(rng, 5, 7), _bias(rng, 5, 7)), label="M with finite numbers", tag="bias"),
        Case(
            (_scores(rng, 5, 3), empty_row_mask(rng, 5, 3)),
            label="one row of M is -inf alone, n_q=5, n_k=3",
            tag="empty_rows",
        ),
        Case(
            (_scores(rng, 1, 5), np.full((1, 5), -np.inf)),
            label="one query, all 5 keys blocked",
            tag="empty_rows",
        ),
        Case(_large(rng, 5, 7), label="scores near 1000 and -1000", tag="large"),
        Case(
            (_scores(rng, 3, 5), partial_mask(rng, 3, 5) - 2000),
            label="M of -2000 and -inf",
            tag="large",
        ),
        Case(_rubbish(rng, 3, 7), label="blocked scores NaN, inf and 1e30", tag="rubbish"),
        Case(
            (_scores(rng, 5, 7, lead=(2,)), partial_mask(rng, 1, 7, lead=(2,))),
            label="S of shape (2, 5, 7), M of shape (2, 1, 7)",
            tag="batch",
        ),
        Case(
            (_scores(rng, 5, 3, lead=(2, 7)), partial_mask(rng, 5, 3)),
            label="S of shape (2, 7, 5, 3), M of shape (5, 3)",
            tag="batch",
        ),
    ]


def _scores(rng, n_q, n_k, lead=()):
    return rng.standard_normal((*lead, n_q, n_k))


def _bias(rng, n_q, n_k):
    return partial_mask(rng, n_q, n_k) + rng.standard_normal((n_q, n_k))


def _large(rng, n_q, n_k):
    """Return allowed scores near 1000 in some rows, -1000 in others.

    Blocked ones are opposite, but in the last two rows: a maximum of the whole matrix and one
    of the whole row go wrong in different rows.
    """
    M, i = partial_mask(rng, n_q, n_k), np.arange(n_q)[:, None]
    sign = np.where(i % 2, -1, 1)
    opposite = np.isneginf(M) & (i < n_q - 2)
    return _scores(rng, n_q, n_k) + 1000 * np.where(opposite, -sign, sign), M


def _rubbish(rng, n_q, n_k):
    """Return blocked scores that are NaN, inf or 1e30, each sort in a row of its own."""
    M = partial_mask(rng, n_q, n_k)
    S = np.where(np.isneginf(M), np.array([[np.nan], [np.inf], [1e30]]), _scores(rng, n_q, n_k))
    return S, M


def _mistake(name, says, page, source, also=()):
    return Misconception(name, says, page, source, also=also)


EMPTY_ROWS = (
    _mistake(
        "empty_row_nan",
        "A row without an allowed key becomes 0/0, which is NaN.",
        "masks#empty-rows",
        "pytorch/pytorch#41508",
    ),
    _mistake(
        "empty_row_uniform",
        "A row without an allowed key gets equal weights, as after filling with one large "
        "negative number.",
        "masks#empty-rows",
        "d2l-ai/d2l-en#2423",
    ),
)

TASK = Task(
    id="masks.masked_softmax",
    title="Masked softmax",
    signature="(S, M)",
    equations=("eq-12", "eq-13"),
    page="masks#before-softmax",
    reference=masked_softmax,
    variant=softmax_variant,
    cases=cases,
    options={"axes": ("query", "key")},
    criteria=(
        Criterion("values", 6, "weights with some keys blocked"),
        Criterion("bias", 2, "finite numbers in M", tag="bias"),
        Criterion("empty_rows", 5, "rows without an allowed key", tag="empty_rows"),
        Criterion("large", 3, "scores near 1000, -2000 in M", tag="large"),
        Criterion("rubbish", 2, "blocked scores that are no numbers", tag="rubbish"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        *MASK_MISCONCEPTIONS,
        *EMPTY_ROWS,
        _mistake(
            "empty_row_unmasked",
            "A row without an allowed key gets the weights that it would have without a mask, "
            "as after adding a large finite number to each of its scores.",
            "masks#empty-rows",
            "huggingface/transformers#542",
        ),
        _mistake(
            "bias_ignored",
            "Only the blocked entries of M have an effect; its finite numbers are not added.",
            "masks#additive",
            "our own: M read as a list of what is blocked",
        ),
        _mistake(
            "blocked_added",
            "-inf is added to blocked scores: where one is inf or NaN, the sum is NaN.",
            "masks#before-softmax",
            "our own: (12) as it is written, with memory that nobody has filled",
        ),
        _mistake(
            "nan_to_zero",
            "NaN is replaced by 0 at the end: where a blocked score is inf or NaN, the weights "
            "of its whole row are lost.",
            "masks#before-softmax",
            "our own: np.nan_to_num, made for rows without an allowed key",
        ),
        _mistake(
            "shift_of_blocked",
            "The maximum that is subtracted is that of all keys, the blocked ones too: where a "
            "blocked score is much larger, all other exponentials become 0.",
            "masks#before-softmax",
            "our own: the shift before the mask",
        ),
        _mistake(
            "shift_of_all",
            "The maximum of the whole matrix is subtracted, so in a row of much smaller scores "
            "all exponentials become 0.",
            "attention#stable-softmax",
            "our own: one maximum for rows of different size",
        ),
        _mistake(
            "no_shift",
            "The exponentials of large scores overflow, and inf / inf is NaN.",
            "attention#stable-softmax",
            "ahmedfgad/NumPyCNN#13",
        ),
        _mistake(
            "no_shift_guarded",
            "No maximum is subtracted: exponentials of large scores overflow to NaN, and where "
            "all are tiny the row is taken for one without a key.",
            "attention#stable-softmax",
            "our own: a small number added to the sum, or a test for a sum of 0",
        ),
        _mistake(
            "naive_softmax",
            "The softmax is computed as it is written: large scores overflow to inf / inf, and "
            "a row without an allowed key is 0 / 0.",
            "attention#stable-softmax",
            "mila-iqia/blocks#727",
            also=("both of: no shift, and rows without an allowed key left as 0 / 0",),
        ),
        _mistake(
            "softmax_over_queries",
            "The softmax runs over the queries: the columns of A sum to 1, not the rows.",
            "attention#softmax-axis",
            "jadore801120/attention-is-all-you-need-pytorch#19",
        ),
        _mistake(
            "softmax_over_all",
            "The softmax runs over all pairs at once: all of A together sums to 1.",
            "attention#softmax-axis",
            "nntrainer/nntrainer#430",
        ),
        _mistake(
            "softmax_axis_zero",
            "The softmax runs over axis 0: of one matrix that is the queries, of a stack the "
            "matrices.",
            "attention#softmax-axis",
            "our own: axis=0, as for columns",
        ),
        SOFTMAX_AXIS_ONE,
    ),
    # As for scaled dot-product attention: scores near 1000 in float32 spread by 2e-4, and
    # adding -1e9 to a score and taking it away again leaves 7 digits.
    tolerance=Tolerance(rtol64=1e-6, atol64=1e-8, rtol32=2e-3, atol32=5e-4),
    shortcuts=("seqlib.np.activation.softmax", "seqlib.np.attention.attention_weights"),
    version=2,
)
