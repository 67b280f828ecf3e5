"""Task: scaled dot-product attention with an optional mask, equations (9) and (12)."""

import math

import numpy as np

from seqlib.exercises._attention_masks import empty_row_mask, partial_mask
from seqlib.exercises._attention_weights import (
    RETURNS,
    REVERSED,
    SOFTMAX_AXIS_ONE,
    WIDTH_AXIS_ONE,
    returned,
    transposed,
    weights,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance
from seqlib.np.attention import attention_weights, scaled_dot_product_attention


def reference(Q, K, V, M=None):
    """Return Y and A of equation (12)."""
    return scaled_dot_product_attention(Q, K, V, mask=M), attention_weights(Q, K, mask=M)


def variant(Q, K, V, M=None, *, wrong=frozenset()):
    """Return Y and A, with the mistakes named in ``wrong``."""
    n_k, d_k = K.shape[-2:]
    divisors = {
        "no_scale": 1,
        "scale_n_k": math.sqrt(n_k),
        "scale_n_q": math.sqrt(Q.shape[-2]),
        "scale_d_v": math.sqrt(V.shape[-1]),
        "scale_without_root": d_k,
        "scale_multiplied": 1 / math.sqrt(d_k),
        "scale_after_softmax": 1,
        "width_axis_one": math.sqrt(Q.shape[1]),
    }
    divisor = next((divisors[name] for name in divisors if name in wrong), math.sqrt(d_k))
    A = weights(Q @ transposed(K, wrong) / divisor, M, wrong=wrong)
    if "scale_after_softmax" in wrong:
        A = A / math.sqrt(d_k)
    return returned(A @ (K if "values_are_keys" in wrong else V), A, wrong)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_qkv(rng, 3, 5, 7, 2), label="n_q=3 queries, n_k=5 keys, d_k=7, d_v=2"),
        Case(_qkv(rng, 5, 2, 3, 11), label="n_q=5 queries, n_k=2 keys, d_k=3, d_v=11"),
        Case(_qkv(rng, 1, 1, 1, 1), label="one query, one key, d_k=d_v=1"),
        Case(
            (*_qkv(rng, 3, 5, 7, 2), partial_mask(rng, 3, 5)),
            label="mask of shape (3, 5)",
            tag="mask",
        ),
        Case(
            (*_qkv(rng, 7, 5, 3, 2), partial_mask(rng, 1, 5)),
            label="mask of shape (1, 5) for 7 queries",
            tag="mask",
        ),
        Case(
            (*_qkv(rng, 5, 3, 2, 7), empty_row_mask(rng, 5, 3)),
            label="mask with a row of -inf alone",
            tag="empty_rows",
        ),
        Case(_large(rng, 3, 5, 7, 2), label="scores near 1000 and -1000", tag="large"),
        Case(
            _qkv(rng, 5, 7, 11, 2, lead=(2, 3)),
            label="leading axes (2, 3), no mask",
            tag="batch",
        ),
        Case(
            (*_qkv(rng, 5, 7, 11, 2, lead=(2, 3)), partial_mask(rng, 1, 7, lead=(2, 1))),
            label="leading axes (2, 3), mask of shape (2, 1, 1, 7)",
            tag="batch",
        ),
    ]


def _qkv(rng, n_q, n_k, d_k, d_v, lead=()):
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return tuple(rng.standard_normal((*lead, *shape)) for shape in shapes)


def _large(rng, n_q, n_k, d_k, d_v):
    """Scaled scores near 1000 in some rows and -1000 in others, which differ by about 1."""
    Q, K, V = _qkv(rng, n_q, n_k, d_k, d_v)
    direction = rng.standard_normal(d_k)
    direction /= np.linalg.norm(direction)
    far = math.sqrt(1000 * math.sqrt(d_k))
    sign = np.where(np.arange(n_q) % 2, -1, 1)[:, None]
    return 0.05 * Q + far * sign * direction, 0.05 * K + far * direction, V


# The mistakes with a mask, which multi-head attention shares.
MASK_MISCONCEPTIONS = (
    Misconception(
        "mask_ignored",
        "The mask changes nothing: the result is the same with and without it.",
        "masks#additive",
        "jadore801120/attention-is-all-you-need-pytorch#19",
    ),
    Misconception(
        "mask_polarity",
        "The mask is read the other way round: keys with 0 are blocked, those with -inf used.",
        "masks#polarity",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Misconception(
        "mask_multiplied",
        "Blocked scores are set to 0 before the softmax, but exp(0) is 1.",
        "masks#before-softmax",
        "georg-wolflein/good-features#1",
    ),
    Misconception(
        "mask_times_scores",
        "The scores are multiplied by M, not added to it: 0 times a score is 0, and -inf times "
        "a score has either sign.",
        "masks#before-softmax",
        "facebookresearch/fairseq#2963",
    ),
    Misconception(
        "mask_after_softmax",
        "Blocked weights are set to 0 after the softmax, and the rows no longer sum to 1.",
        "masks#before-softmax",
        "huggingface/pytorch-image-models#2236",
    ),
)

TASK = Task(
    id="attention.scaled_dot_product_attention",
    title="Scaled dot-product attention",
    signature="(Q, K, V, M=None)",
    equations=("eq-9", "eq-12"),
    page="attention#queries-keys-values",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 5, "outputs Y", part=0),
        Criterion("weights", 2, "weights A", part=1, needs=()),
        Criterion("mask", 3, "with a mask", tag="mask"),
        Criterion("empty_rows", 2, "rows without an allowed key", tag="empty_rows"),
        Criterion("large", 1, "scores near 1000", tag="large"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "no_scale",
            "The scores enter the softmax without being scaled.",
            "attention#scaling",
            "mlc-ai/mlc-llm#3426",
        ),
        Misconception(
            "scale_without_root",
            "The scores are divided by d_k itself, without the square root.",
            "attention#scaling",
            "delzac/cntkx#10",
        ),
        Misconception(
            "scale_multiplied",
            "The scores are multiplied by the scale factor, not divided by it.",
            "attention#scaling",
            "rasbt/LLMs-from-scratch#856",
        ),
        Misconception(
            "scale_n_k",
            "The scores are divided by the square root of the number of keys.",
            "attention#scaling",
            "our own: K.shape[0] where the width was meant, unseen by tests with a square K",
        ),
        Misconception(
            "scale_n_q",
            "The scores are divided by the square root of the number of queries.",
            "attention#scaling",
            "our own: Q.shape[0] where the width was meant",
        ),
        Misconception(
            "scale_d_v",
            "The scores are divided by the square root of the width of the values.",
            "attention#scaling",
            "juho-lee/set_transformer#18",
        ),
        Misconception(
            "scale_after_softmax",
            "The weights are scaled after the softmax, in place of the scores before it.",
            "attention#scaling",
            "FrancescoSaverioZuppichini/ViT#2",
        ),
        Misconception(
            "softmax_over_queries",
            "The softmax runs over the queries: the columns of A sum to 1, not the rows.",
            "attention#softmax-axis",
            "labmlai/annotated_deep_learning_paper_implementations#146",
            also=(
                "queries and keys exchanged in the product, and the weights transposed back",
            ),
        ),
        Misconception(
            "softmax_over_all",
            "The softmax runs over all pairs at once: all of A together sums to 1.",
            "attention#softmax-axis",
            "nntrainer/nntrainer#430",
        ),
        Misconception(
            "no_softmax",
            "The scaled scores themselves are used as weights: there is no softmax.",
            "attention#weights",
            "AlexHex7/Non-local_pytorch#19",
        ),
        Misconception(
            "values_are_keys",
            "The weights average the rows of K.",
            "attention#values",
            "fchollet/deep-learning-with-python-notebooks#261",
        ),
        *MASK_MISCONCEPTIONS,
        Misconception(
            "empty_row_nan",
            "A row without an allowed key becomes 0/0, which is NaN.",
            "masks#empty-rows",
            "pytorch/pytorch#41508",
        ),
        Misconception(
            "empty_row_uniform",
            "A row without an allowed key gets equal weights, as after filling with one large "
            "negative number.",
            "masks#empty-rows",
            "d2l-ai/d2l-en#2423",
        ),
        Misconception(
            "empty_row_unmasked",
            "A row without an allowed key gets the weights that it would have without a mask, "
            "as after adding a large finite number to each of its scores.",
            "masks#empty-rows",
            "huggingface/transformers#542",
        ),
        Misconception(
            "naive_softmax",
            "The softmax is computed as it is written: large scores overflow to inf / inf, and "
            "a row without an allowed key is 0 / 0.",
            "attention#stable-softmax",
            "mila-iqia/blocks#727",
            also=("both of: no shift, and rows without an allowed key left as 0 / 0",),
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
        WIDTH_AXIS_ONE,
        *RETURNS,
    ),
    # Measured: scores near 1000 in float32 spread by 2e-4, everything else by less than 1e-6.
    # In float64 right styles agree to 1e-12; but adding -1e9 to a score and taking it away
    # again leaves 7 digits, and that mistake must still be recognised.
    tolerance=Tolerance(rtol64=1e-6, atol64=1e-8, rtol32=2e-3, atol32=5e-4),
    options={"axes": ("query", ""), "parts": ("Y", "A")},
    shortcuts=(
        "seqlib.np.attention.attention_weights",
        "seqlib.np.attention.scaled_dot_product_attention",
    ),
)
