"""Tasks: split the features into heads, and merge the heads again."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.multihead import merge_heads, split_heads

RESHAPE_MIXES = "hyunwoongko/transformer#15"


def split_reference(X, H):
    """Return the heads of X, with the axis of heads first."""
    return np.moveaxis(split_heads(X, n_head=H), -3, 0)


def split_variant(X, H, *, wrong=frozenset()):
    """Return the heads of X, with the mistakes named in ``wrong``."""
    B, n, width = X.shape
    d_h = width // H
    if "plain_reshape" in wrong:
        return X.reshape(H, B, n, d_h)
    if "reshape_moves_tokens" in wrong:
        return np.moveaxis(X.reshape(B, H, n, d_h), 1, 0)
    if "interleaved" in wrong:
        heads = np.moveaxis(X.reshape(B, n, d_h, H), -1, 0)
    else:
        heads = np.moveaxis(X.reshape(B, n, H, d_h), 2, 0)
    if "heads_after_batch" in wrong:
        return np.swapaxes(heads, 0, 1)
    if "heads_not_moved" in wrong:
        return np.moveaxis(heads, 0, 2)
    if "features_before_tokens" in wrong:
        return np.swapaxes(heads, -1, -2)
    return heads


def split_cases(rng):
    """Draw inputs for one run."""
    return [
        Case((rng.standard_normal((2, 5, 21)), 3), label="2 sequences, n=5, H=3 heads of 7"),
        Case((rng.standard_normal((3, 7, 10)), 2), label="3 sequences, n=7, H=2 heads of 5"),
        Case((rng.standard_normal((1, 3, 10)), 5), label="1 sequence, n=3, H=5 heads of 2"),
        Case((rng.standard_normal((2, 3, 5)), 1), label="H=1 head", tag="edge"),
        Case((rng.standard_normal((2, 3, 7)), 7), label="H=7 heads of width 1", tag="edge"),
        Case((rng.standard_normal((2, 1, 6)), 3), label="n=1 token", tag="edge"),
    ]


SPLIT = Task(
    id="attention.split_heads",
    title="Split into heads",
    signature="(X, H)",
    equations=("eq-10",),
    page="multihead#split",
    reference=split_reference,
    variant=split_variant,
    cases=split_cases,
    criteria=(
        Criterion("values", 4, "heads"),
        Criterion("edge", 1, "one head, heads of width 1, one token", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "reshape_moves_tokens",
            "The reshape puts the axis of heads before the tokens at once, so a head holds "
            "parts of different tokens.",
            "multihead#split",
            RESHAPE_MIXES,
        ),
        Misconception(
            "plain_reshape",
            "One reshape makes the whole result: no axis is moved, and a head holds parts of "
            "different tokens and sequences.",
            "multihead#split",
            "reczoo/FuxiCTR#30",
        ),
        Misconception(
            "interleaved",
            "Every H-th feature goes to the same head, not d_h neighbours.",
            "multihead#split",
            "tenstorrent/tt-metal#6243",
        ),
        Misconception(
            "heads_after_batch",
            "The numbers are right, but the heads stand behind the batch: the axes are batch, "
            "head, token, feature.",
            "multihead#split",
            "OpenNLPLab/cosFormer#11",
        ),
        Misconception(
            "heads_not_moved",
            "The features are cut, but the axis of heads stays behind the tokens.",
            "multihead#split",
            "lucidrains/vit-pytorch#90",
        ),
        Misconception(
            "features_before_tokens",
            "The axes of tokens and features are exchanged in each head.",
            "multihead#split",
            "leaderj1001/Attention-Augmented-Conv2d#25",
        ),
    ),
    options={"axes": ("head", "sequence", "token", "feature")},
    shortcuts=("seqlib.np.multihead.split_heads",),
)


def merge_reference(heads):
    """Return the features of all heads side by side."""
    return merge_heads(np.moveaxis(heads, 0, -3))


def merge_variant(heads, *, wrong=frozenset()):
    """Return the merged heads, with the mistakes named in ``wrong``."""
    H, B, n, d_h = heads.shape
    if "plain_reshape" in wrong:
        return heads.reshape(B, n, H * d_h)
    if "heads_before_tokens" in wrong:
        return np.swapaxes(heads, 0, 1).reshape(B, n, H * d_h)
    if "concatenated_tokens" in wrong:
        return np.concatenate(list(heads), axis=1)
    if "summed" in wrong:
        return heads.sum(axis=0)
    if "averaged" in wrong:
        return heads.mean(axis=0)
    if "reversed" in wrong:
        heads = heads[::-1]
    axes = (1, 2, 3, 0) if "interleaved" in wrong else (1, 2, 0, 3)
    return heads.transpose(axes).reshape(B, n, H * d_h)


def merge_cases(rng):
    """Draw inputs for one run."""
    return [
        Case((rng.standard_normal((3, 2, 5, 7)),), label="H=3 heads of 7, 2 sequences, n=5"),
        Case((rng.standard_normal((2, 3, 7, 5)),), label="H=2 heads of 5, 3 sequences, n=7"),
        Case((rng.standard_normal((5, 1, 3, 2)),), label="H=5 heads of 2, 1 sequence, n=3"),
        Case((rng.standard_normal((1, 2, 3, 5)),), label="H=1 head", tag="edge"),
        Case((rng.standard_normal((7, 2, 3, 1)),), label="H=7 heads of width 1", tag="edge"),
        Case((rng.standard_normal((3, 2, 1, 2)),), label="n=1 token", tag="edge"),
    ]


MERGE = Task(
    id="attention.merge_heads",
    title="Merge the heads",
    signature="(heads)",
    equations=("eq-11",),
    page="multihead#merge",
    reference=merge_reference,
    variant=merge_variant,
    cases=merge_cases,
    criteria=(
        Criterion("values", 4, "merged heads"),
        Criterion("edge", 1, "one head, heads of width 1, one token", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "plain_reshape",
            "One reshape makes the whole result: no axis is moved, and a row holds parts of "
            "different tokens and sequences.",
            "multihead#merge",
            "hackiey/QAnet-pytorch#2",
        ),
        Misconception(
            "heads_before_tokens",
            "The heads are moved behind the batch but not behind the tokens, so the reshape "
            "puts neighbouring tokens into one row.",
            "multihead#merge",
            "jsbaan/transformer-from-scratch#6",
        ),
        Misconception(
            "interleaved",
            "The features of the heads alternate: the first of every head, then the second.",
            "multihead#merge",
            "our own: the axis of heads moved behind the features",
        ),
        Misconception(
            "reversed",
            "The heads stand side by side in reverse order.",
            "multihead#merge",
            "our own: each head concatenated before the earlier ones",
        ),
        Misconception(
            "concatenated_tokens",
            "The heads are concatenated along the tokens, not along the features.",
            "multihead#merge",
            "our own: the default axis of a concatenation",
        ),
        Misconception(
            "summed",
            "The heads are added up, not laid side by side.",
            "multihead#merge",
            "awf/functional-transformer#8",
        ),
        Misconception(
            "averaged",
            "The heads are averaged, not laid side by side.",
            "multihead#merge",
            "pbloem/former#23",
        ),
    ),
    options={"axes": ("sequence", "token", "feature")},
    shortcuts=("seqlib.np.multihead.merge_heads",),
)
