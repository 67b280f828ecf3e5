"""Task: self-attention without parameters, equations (6) and (7)."""

import math

import numpy as np

from seqlib.exercises._attention_weights import (
    RETURNS,
    REVERSED,
    SOFTMAX_AXIS_ONE,
    returned,
    transposed,
    weights,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance
from seqlib.np.activation import softmax
from seqlib.np.attention import simple_self_attention


def reference(X):
    """Return Y and A of equation (7)."""
    return simple_self_attention(X), softmax(X @ np.swapaxes(X, -1, -2))


def variant(X, *, wrong=frozenset()):
    """Return Y and A, with the mistakes named in ``wrong``."""
    Xt = transposed(X, wrong)
    features = "features" in wrong
    S = Xt @ X if features else X @ Xt
    if "scaled" in wrong:
        S = S / math.sqrt(X.shape[-1])
    A = weights(S, wrong=wrong)
    if features:
        return returned(X @ np.swapaxes(A, -1, -2), A, wrong)
    if "weights_transposed" in wrong:
        return returned(np.swapaxes(A, -1, -2) @ X, A, wrong)
    return returned(A @ X, A, wrong)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case((rng.standard_normal((5, 3)),), label="n=5 tokens, d=3"),
        Case((rng.standard_normal((2, 7)),), label="n=2 tokens, d=7"),
        Case((rng.standard_normal((1, 1)),), label="one token, d=1"),
        Case((_large(rng, 5, 3),), label="scores near 1000, n=5, d=3", tag="large"),
        Case((rng.standard_normal((2, 5, 3)),), label="2 sequences, n=5, d=3", tag="batch"),
        Case((rng.standard_normal((3, 2, 7, 5)),), label="shape (3, 2, 7, 5)", tag="batch"),
    ]


def _large(rng, n, d):
    """Tokens whose scores are near 1000 and differ by about 1, and one token near 0."""
    direction = rng.standard_normal(d)
    X = math.sqrt(1000) * direction / np.linalg.norm(direction)
    X = X + 0.05 * rng.standard_normal((n, d))
    X[rng.integers(n)] = 0.01 * rng.standard_normal(d)
    return X


TASK = Task(
    id="attention.simple_self_attention",
    title="Self-attention without parameters",
    signature="(X)",
    equations=("eq-6", "eq-7"),
    page="attention#weights",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 5, "outputs Y", part=0),
        Criterion("weights", 2, "weights A", part=1, needs=()),
        Criterion("large", 2, "scores near 1000", tag="large"),
        Criterion("batch", 1, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "softmax_over_queries",
            "The softmax runs over the queries: the columns of A sum to 1, not the rows.",
            "attention#softmax-axis",
            "labmlai/annotated_deep_learning_paper_implementations#146",
        ),
        Misconception(
            "softmax_over_all",
            "The softmax runs over all pairs of tokens at once: all of A together sums to 1.",
            "attention#softmax-axis",
            "nntrainer/nntrainer#430",
        ),
        Misconception(
            "no_softmax",
            "The scores themselves are used as weights: there is no softmax.",
            "attention#weights",
            "AlexHex7/Non-local_pytorch#19",
        ),
        Misconception(
            "divided_by_sum",
            "The scores are divided by their row sum, without the exponential: the rows sum to "
            "1, but weights can be negative.",
            "attention#weighted-average",
            "lecture notes, (5): the two conditions on the coefficients",
        ),
        Misconception(
            "scaled",
            "The scores are divided by the square root of d, which equation (7) does not do.",
            "attention#scaling",
            "lecture notes, (7) against (9)",
        ),
        Misconception(
            "features",
            "The products compare features with features (d x d), not tokens with tokens.",
            "attention#weights",
            "our own: X^T X is a legal product too",
        ),
        Misconception(
            "weights_transposed",
            "A is right, but Y is computed with the transpose of A.",
            "attention#values",
            "ok1zjf/VASNet#25",
        ),
        Misconception(
            "no_shift",
            "The exponentials of large scores overflow, and inf / inf is NaN.",
            "attention#stable-softmax",
            "ahmedfgad/NumPyCNN#13",
        ),
        Misconception(
            "shift_of_all",
            "The maximum of the whole matrix is subtracted, so in a row of much smaller scores "
            "all exponentials become 0.",
            "attention#stable-softmax",
            "our own: one maximum for rows of different size",
        ),
        REVERSED,
        SOFTMAX_AXIS_ONE,
        *RETURNS,
    ),
    # Measured: scores near 1000 in float32 spread by 2e-4, everything else by less than 1e-6.
    tolerance=Tolerance(rtol32=2e-3, atol32=5e-4),
    options={"axes": ("query", ""), "parts": ("Y", "A")},
    shortcuts=(
        "seqlib.np.activation.softmax",
        "seqlib.np.attention.attention_weights",
        "seqlib.np.attention.simple_self_attention",
        "seqlib.np.attention.scaled_dot_product_attention",
    ),
)
