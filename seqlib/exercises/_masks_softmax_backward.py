"""Task: the backward pass of the masked softmax, to the scores and to a learned bias."""

import numpy as np

from seqlib.exercises._attention_masks import empty_row_mask, partial_mask
from seqlib.exercises._masks_softmax import EMPTY_ROWS, masked_softmax
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dA, S, M):
    """Return dS of the shape of S and dM of the shape of M."""
    return variant(dA, S, M)


def variant(dA, S, M, *, wrong=frozenset()):
    """Return dS and dM, with the mistakes named in ``wrong``."""
    A = masked_softmax(S, np.zeros(np.shape(M)) if "weights_unmasked" in wrong else M)
    empty = np.broadcast_to(np.isneginf(M), S.shape).all(axis=-1, keepdims=True)
    if wrong & {"empty_row_nan", "empty_row_uniform"}:
        A = np.where(empty, np.nan if "empty_row_nan" in wrong else 1 / S.shape[-1], A)
    if "scores_for_weights" in wrong:
        A = S
    dS = _softmax_backward(dA, A, wrong)
    dM = _to_shape(dS, np.shape(M), wrong)
    if "dm_zero" in wrong:
        dM = np.zeros(np.shape(M))
    if "scores_alone" in wrong:
        return dS
    return (dM, dS) if "parts_exchanged" in wrong else (dS, dM)


def _softmax_backward(dA, A, wrong):
    if "softmax_skipped" in wrong:
        return dA
    if "softmax_diagonal" in wrong:
        return A * (1 - A) * dA
    if "softmax_no_sum" in wrong:
        return A * dA
    if "softmax_unweighted_sum" in wrong:
        return A * (dA - dA.sum(axis=-1, keepdims=True))
    axis = -2 if "softmax_sum_over_queries" in wrong else -1
    return A * (dA - (dA * A).sum(axis=axis, keepdims=True))


def _to_shape(dS, shape, wrong):
    """Sum over the axes along which an array of this shape is repeated."""
    if "dm_not_summed" in wrong:
        return dS
    front = tuple(range(dS.ndim - len(shape)))
    wide = dS.shape[len(front) :]
    repeated = [i for i, n in enumerate(shape) if n == 1 and wide[i] > 1]
    axes = (*front, *(i + len(front) for i in repeated))
    if "dm_first_taken" in wrong:
        return dS[
            tuple(slice(0, 1) if i in axes else slice(None) for i in range(dS.ndim))
        ].reshape(shape)
    total = dS.mean(axis=axes) if "dm_averaged" in wrong else dS.sum(axis=axes)
    return total if "dm_axes_dropped" in wrong else total.reshape(shape)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, partial_mask(rng, 3, 5), 3, 5), label="S and M of shape (3, 5)"),
        Case(_args(rng, partial_mask(rng, 7, 2), 7, 2), label="S and M of shape (7, 2)"),
        Case(_args(rng, np.zeros((1, 1)), 1, 1), label="one query, one key"),
        Case(_one_key(rng, 5, 7), label="one query has one key left, with dA = 1e10"),
        Case(
            _args(rng, empty_row_mask(rng, 5, 3), 5, 3),
            label="one row of M is -inf alone, n_q=5, n_k=3",
            tag="empty_rows",
        ),
        Case(
            _args(rng, np.full((1, 5), -np.inf), 1, 5),
            label="one query, all 5 keys blocked",
            tag="empty_rows",
        ),
        Case(
            _args(rng, _bias(rng, 5, 3), 5, 3, lead=(2,)),
            label="S of shape (2, 5, 3), M with finite numbers, (5, 3)",
            tag="bias",
        ),
        Case(
            _args(rng, partial_mask(rng, 1, 7, lead=(3,)), 5, 7, lead=(3,)),
            label="S of shape (3, 5, 7), M of shape (3, 1, 7)",
            tag="bias",
        ),
        Case(
            _args(rng, _bias(rng, 3, 5, lead=(2, 1)), 3, 5, lead=(2, 7)),
            label="S of shape (2, 7, 3, 5), M with finite numbers, (2, 1, 3, 5)",
            tag="bias",
        ),
        Case(
            _args(rng, rng.standard_normal((5, 1)), 5, 3, lead=(2,)),
            label="S of shape (2, 5, 3), M with one finite number for all keys, (5, 1)",
            tag="bias",
        ),
    ]


def _args(rng, M, n_q, n_k, lead=()):
    dA, S = rng.standard_normal((2, *lead, n_q, n_k))
    return dA, S, M


def _one_key(rng, n_q, n_k):
    """Draw inputs of which one query has one key left, whose weight is 1 whatever its score.

    A large dA there changes no gradient, but it is most of the sum of dA A: differences of the
    sum have lost the other queries.
    """
    dA, S, M = _args(rng, partial_mask(rng, n_q, n_k), n_q, n_k)
    query, key = rng.integers(n_q), rng.integers(n_k)
    M[query] = -np.inf
    M[query, key], dA[query, key] = 0.0, 1e10
    return dA, S, M


def _bias(rng, n_q, n_k, lead=()):
    return partial_mask(rng, n_q, n_k, lead) + rng.standard_normal((*lead, n_q, n_k))


def _mistake(name, says, source, page="attention#softmax-backward"):
    return Misconception(name, says, page, source)


TASK = Task(
    id="masks.masked_softmax_backward",
    title="Backward through the masked softmax",
    signature="(dA, S, M)",
    equations=("eq-12",),
    page="masks#empty-rows",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    options={
        "parts": ("dS", "dM"),
        "axes": ("query", "key"),
        "forward": {"masked_softmax": masked_softmax},
    },
    criteria=(
        Criterion("values", 4, "dS with some keys blocked", part=0),
        Criterion("empty_rows", 3, "rows without an allowed key", tag="empty_rows"),
        Criterion(
            "bias", 3, "dM, where queries, keys or sequences share M", tag="bias", part=1
        ),
    ),
    misconceptions=(
        _mistake(
            "softmax_diagonal",
            "The gradient of the softmax uses the diagonal a(1 - a) of its Jacobian alone: a "
            "score changes the other weights of its row too.",
            "deeplearning4j/libnd4j#440",
        ),
        _mistake(
            "softmax_no_sum",
            "The gradient of the softmax is A times dA, without the term that the sum in its "
            "denominator gives.",
            "HomericIntelligence/Odyssey#2134",
        ),
        _mistake(
            "softmax_unweighted_sum",
            "In the gradient of the softmax dA is summed over the row without the weights.",
            "our own: the sum without its weights, as in the gradient of log-softmax",
        ),
        _mistake(
            "softmax_sum_over_queries",
            "In the gradient of the softmax the sum runs over the queries, not over the keys.",
            "our own: the axis mistake of the forward pass, made in the backward pass",
        ),
        _mistake(
            "softmax_skipped",
            "The gradient goes through the softmax unchanged.",
            "pocketpy/cTensor#31",
        ),
        _mistake(
            "scores_for_weights",
            "The formula is used with the scores in place of the weights.",
            "our own: S and A exchanged",
        ),
        _mistake(
            "weights_unmasked",
            "The weights are computed without the mask, so blocked keys get a gradient.",
            "our own: softmax(S) where softmax(S + M) is meant",
            page="masks#additive",
        ),
        *EMPTY_ROWS,
        _mistake(
            "dm_not_summed",
            "dM has the shape of the scores: what M gives to several queries or sequences is "
            "not added up.",
            "our own: the gradient of the sum S + M handed on as it is",
            page="masks#shared-bias",
        ),
        _mistake(
            "dm_averaged",
            "dM is the mean over the queries or sequences that share an entry of M, not the "
            "sum.",
            "our own: a mean keeps the size of the gradient",
            page="masks#shared-bias",
        ),
        _mistake(
            "dm_first_taken",
            "dM holds the gradient of the first query or sequence alone.",
            "our own: an index 0 makes the shape fit",
            page="masks#shared-bias",
        ),
        _mistake(
            "dm_axes_dropped",
            "dM has lost the axes of length 1 that M has.",
            "our own: a sum without keepdims",
            page="masks#shared-bias",
        ),
        _mistake(
            "dm_zero",
            "dM is 0: the mask is taken for a constant.",
            "our own: a mask of 0 and -inf is not learned, a bias is",
            page="masks#shared-bias",
        ),
        _mistake(
            "parts_exchanged",
            "The gradients are returned in the other order: dM comes first.",
            "our own: two gradients of one shape",
            page="masks#shared-bias",
        ),
        _mistake(
            "scores_alone",
            "dS is returned alone; the text asks for dS and dM.",
            "our own: the library's gradient of a softmax has one part",
            page="masks#shared-bias",
        ),
    ),
    shortcuts=(
        "seqlib.np.activation.softmax_backward",
        "seqlib.np.attention.attention_weights_backward",
    ),
    version=3,
)
