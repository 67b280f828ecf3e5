"""Task: the backward pass of scaled dot-product attention."""

import math

import numpy as np

from seqlib.exercises._attention_masks import empty_row_mask, partial_mask
from seqlib.exercises._attention_weights import REVERSED, WIDTH_AXIS_ONE, transposed, weights
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.attention import attention_weights


def reference(dY, Q, K, V, A):
    """Return dQ, dK and dV from the weights that the forward pass has kept.

    The library's backward pass takes the mask and computes the weights again; here they are
    given, and a blocked key has weight 0.
    """
    dV = np.swapaxes(A, -1, -2) @ dY
    dA = dY @ np.swapaxes(V, -1, -2)
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True)) / math.sqrt(Q.shape[-1])
    return dS @ K, np.swapaxes(dS, -1, -2) @ Q, dV


def variant(dY, Q, K, V, A, *, wrong=frozenset()):
    """Return dQ, dK and dV, with the mistakes named in ``wrong``."""
    if "cotangent_ones" in wrong:
        dY = np.ones_like(dY)
    if "weights_unmasked" in wrong:
        A = weights(Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
    dV = transposed(A, wrong) @ dY
    dA = dY @ transposed(V, wrong)
    scale = 1 / math.sqrt(Q.shape[1 if "width_axis_one" in wrong else -1])
    if "scale_without_root" in wrong:
        scale = scale**2
    scale_q = 1 if wrong & {"no_scale", "no_scale_dq"} else scale
    scale_k = 1 if wrong & {"no_scale", "no_scale_dk"} else scale
    dS = _softmax_backward(dA, A, wrong)
    dQ = scale_q * dS @ K
    dK = scale_k * transposed(dS, wrong) @ Q
    if "dv_first" in wrong:
        return dV, dQ, dK
    return (dK, dQ, dV) if "dq_dk_exchanged" in wrong else (dQ, dK, dV)


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


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 3, 5, 7, 2), label="n_q=3 queries, n_k=5 keys, d_k=7, d_v=2"),
        Case(_args(rng, 5, 2, 3, 11), label="n_q=5 queries, n_k=2 keys, d_k=3, d_v=11"),
        Case(_args(rng, 1, 1, 1, 1), label="one query, one key, d_k=d_v=1"),
        Case(
            _args(rng, 5, 3, 7, 2, size=1e-6),
            label="queries near 1e-6, keys near 1e6, n_q=5, n_k=3",
        ),
        Case(
            _args(rng, 2, 5, 3, 7, size=1e7),
            label="queries near 1e7, keys near 1e-7, n_q=2, n_k=5",
        ),
        Case(
            _args(rng, 3, 5, 7, 2, partial_mask(rng, 3, 5)),
            label="weights of a mask of shape (3, 5)",
            tag="mask",
        ),
        Case(
            _args(rng, 5, 3, 2, 7, empty_row_mask(rng, 5, 3)),
            label="weights with a row of zeros",
            tag="mask",
        ),
        # With these sizes A.T @ dY and dY @ V.T stop with the same message.
        Case(_args(rng, 3, 5, 7, 2, lead=(2, 3)), label="leading axes (2, 3)", tag="batch"),
    ]


def _args(rng, n_q, n_k, d_k, d_v, mask=None, *, size=1.0, lead=()):
    shapes = (n_q, d_v), (n_q, d_k), (n_k, d_k), (n_k, d_v)
    dY, Q, K, V = (rng.standard_normal((*lead, *shape)) for shape in shapes)
    Q, K = size * Q, K / size
    return dY, Q, K, V, attention_weights(Q, K, mask=mask)


TASK = Task(
    id="attention.scaled_dot_product_attention_backward",
    title="Backward pass of scaled dot-product attention",
    signature="(dY, Q, K, V, A)",
    equations=("eq-9", "eq-12"),
    page="attention#backward",
    reference=reference,
    variant=variant,
    cases=cases,
    version=2,
    kind="backward",
    options={"parts": ("dQ", "dK", "dV")},
    criteria=(
        Criterion("values", 4, "dQ, dK and dV together"),
        Criterion("dv", 5, "dV", part=2, needs=()),
        Criterion("dq", 5, "dQ", part=0, needs=()),
        Criterion("dk", 5, "dK", part=1, needs=()),
        Criterion("mask", 4, "weights that a mask has set to 0", tag="mask"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "softmax_diagonal",
            "The gradient of the softmax uses the diagonal a(1 - a) of its Jacobian alone: a "
            "score changes the other weights of its row too.",
            "attention#softmax-backward",
            "deeplearning4j/libnd4j#440",
        ),
        Misconception(
            "softmax_skipped",
            "The gradient goes through the softmax unchanged.",
            "attention#softmax-backward",
            "pocketpy/cTensor#31",
        ),
        Misconception(
            "softmax_no_sum",
            "The gradient of the softmax is A times dA, without the term that the sum in its "
            "denominator gives.",
            "attention#softmax-backward",
            "HomericIntelligence/Odyssey#2134",
        ),
        Misconception(
            "softmax_unweighted_sum",
            "In the gradient of the softmax dA is summed over the row without the weights.",
            "attention#softmax-backward",
            "our own: the sum without its weights, as in the gradient of log-softmax",
        ),
        Misconception(
            "softmax_sum_over_queries",
            "In the gradient of the softmax the sum runs over the queries, not over the keys.",
            "attention#softmax-backward",
            "our own: the axis mistake of the forward pass, made in the backward pass",
        ),
        Misconception(
            "no_scale",
            "dQ and dK lack the scale factor of the scores.",
            "attention#backward",
            "our own: the chain rule keeps the factor of (9) in both",
        ),
        Misconception(
            "no_scale_dq",
            "dQ lacks the scale factor of the scores; dK has it.",
            "attention#backward",
            "our own: the chain rule keeps the factor of (9) in both",
        ),
        Misconception(
            "no_scale_dk",
            "dK lacks the scale factor of the scores; dQ has it.",
            "attention#backward",
            "our own: the chain rule keeps the factor of (9) in both",
        ),
        Misconception(
            "scale_without_root",
            "dQ and dK are divided by d_k itself, without the square root.",
            "attention#backward",
            "delzac/cntkx#10",
            also=("the factor 1/sqrt(d_k) applied twice",),
        ),
        Misconception(
            "dq_dk_exchanged",
            "The gradients are returned in another order: dK stands where dQ belongs.",
            "attention#backward",
            "jsbaan/transformer-from-scratch#1",
        ),
        Misconception(
            "weights_unmasked",
            "The weights are computed again from Q and K, without the mask that A contains.",
            "attention#backward",
            "our own: blocked keys get a gradient although they have no weight",
        ),
        Misconception(
            "cotangent_ones",
            "dY is not used: the gradients are those of the sum of all outputs.",
            "attention#backward",
            "minitorch/minitorch (grad_check uses out.sum() alone)",
        ),
        Misconception(
            "dv_first",
            "The gradients are returned in the order dV, dQ, dK.",
            "attention#backward",
            "our own: the order in which they are found",
        ),
        REVERSED,
        WIDTH_AXIS_ONE,
    ),
    shortcuts=(
        "seqlib.np.attention.attention_weights",
        "seqlib.np.activation.softmax_backward",
        "seqlib.np.attention.attention_weights_backward",
        "seqlib.np.attention.scaled_dot_product_attention_backward",
    ),
)
