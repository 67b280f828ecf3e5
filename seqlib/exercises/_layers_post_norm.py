"""Task: a post-norm layer, equation (17)."""

import numpy as np

from seqlib.exercises import _layers_parts as parts
from seqlib.exercises._layers_statistics import gain
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.norm import layer_norm


def reference(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    """Return X' and Z of equation (17)."""
    Z = layer_norm(attention(X) + X, gamma_1, beta_1, eps=eps)
    return layer_norm(mlp(Z) + Z, gamma_2, beta_2, eps=eps), Z


def variant(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps, *, wrong=frozenset()):
    """Return X' and Z, with the mistakes named in ``wrong``."""
    first, second = (gamma_1, beta_1), (gamma_2, beta_2)
    if "norms_exchanged" in wrong:
        first, second = second, first
    if "first_norm_twice" in wrong:
        second = first
    if "second_norm_twice" in wrong:
        first = second
    if "parts_swapped" in wrong:
        attention, mlp = mlp, attention
    if "eps_ignored" in wrong:
        eps = 1e-5

    def norm_1(x):
        return x if "no_first_norm" in wrong else _norm(x, *first, eps, wrong)

    def norm_2(x):
        return x if "no_second_norm" in wrong else _norm(x, *second, eps, wrong)

    if "pre_norm" in wrong:
        Z = attention(norm_1(X)) + X
        return _returned(mlp(norm_2(Z)) + Z, Z, wrong)
    past = 0 if "no_attention_residual" in wrong else X
    branch = attention(X)
    if "attention_doubled" in wrong:
        past = branch
    Z = norm_1(branch) + past if "norm_before_sum" in wrong else norm_1(branch + past)
    past = X if "residual_from_input" in wrong else Z
    if "no_mlp_residual" in wrong:
        past = 0
    branch = mlp(X if "mlp_of_input" in wrong else Z)
    Y = norm_2(branch) + past if "norm_before_sum" in wrong else norm_2(branch + past)
    return _returned(Y, Z, wrong)


def _norm(x, gamma, beta, eps, wrong):
    centred = x if "rms_norm" in wrong else x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) + beta


def _returned(Y, Z, wrong):
    if "output_alone" in wrong:
        return Y
    return (Z, Y) if "parts_exchanged" in wrong else (Y, Z)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, (5, 4)), label="n=5 tokens, d=4, eps=1e-5"),
        Case(_args(rng, (3, 7)), label="n=3 tokens, d=7, eps=1e-5"),
        Case(_args(rng, (1, 5)), label="one token, d=5, eps=1e-5"),
        Case(_args(rng, (5, 4), eps=0.1), label="n=5 tokens, d=4, eps=0.1", tag="eps"),
        Case(_args(rng, (2, 5, 3)), label="2 sequences, n=5, d=3", tag="batch"),
        Case(_args(rng, (3, 2, 7)), label="3 sequences, n=2, d=7", tag="batch"),
    ]


def _args(rng, shape, eps=1e-5):
    d = shape[-1]
    X = rng.standard_normal(shape)
    gamma_1, beta_1 = gain(rng, d), rng.standard_normal(d)
    gamma_2, beta_2 = gain(rng, d), rng.standard_normal(d)
    handles = parts.attention(rng, d), parts.mlp(rng, d)
    return X, *handles, gamma_1, beta_1, gamma_2, beta_2, eps


TASK = Task(
    id="layers.post_norm_layer",
    title="Post-norm layer",
    signature="(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps)",
    equations=("eq-17",),
    page="transformer#post-norm",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 6, "outputs X_new", part=0),
        Criterion("z", 4, "Z, after the attention part", part=1, needs=()),
        Criterion("eps", 2, "another eps", tag="eps"),
        Criterion("batch", 3, "several sequences", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "pre_norm",
            "The norms stand before attention and MLP: this is a pre-norm layer.",
            "transformer#pre-norm",
            "harvardnlp/annotated-transformer#13",
        ),
        Misconception(
            "norm_before_sum",
            "The norm is applied to the output of each part before its input is added, not to "
            "the sum.",
            "transformer#post-norm",
            "keras-team/keras-io#2144",
        ),
        Misconception(
            "first_norm_twice",
            "Both norms use gamma_1 and beta_1.",
            "transformer#two-norms",
            "ml-explore/mlx#1636",
        ),
        Misconception(
            "second_norm_twice",
            "Both norms use gamma_2 and beta_2.",
            "transformer#two-norms",
            "our own: the first norm copied, with the second one's name",
        ),
        Misconception(
            "norms_exchanged",
            "The parameters of the two norms are exchanged.",
            "transformer#two-norms",
            "our own: two pairs of the same shapes",
        ),
        Misconception(
            "no_first_norm",
            "The sum after the attention is not normalised.",
            "transformer#post-norm",
            "our own: the norm after the attention forgotten",
        ),
        Misconception(
            "no_second_norm",
            "The sum after the MLP is not normalised.",
            "transformer#post-norm",
            "our own: the norm after the MLP forgotten",
        ),
        Misconception(
            "no_attention_residual",
            "X is not added to the output of the attention.",
            "transformer#residual",
            "our own: the first residual connection forgotten",
        ),
        Misconception(
            "attention_doubled",
            "The output of the attention is added to itself: X was overwritten before the sum.",
            "transformer#residual",
            "kyegomez/BitNet#32",
        ),
        Misconception(
            "no_mlp_residual",
            "Z is not added to the output of the MLP.",
            "transformer#residual",
            "our own: the second residual connection forgotten",
        ),
        Misconception(
            "residual_from_input",
            "X is added to the output of the MLP, not Z.",
            "transformer#residual",
            "strutive07/transformer-tensorflow2.0#14",
        ),
        Misconception(
            "mlp_of_input",
            "The MLP gets X, not Z.",
            "transformer#post-norm",
            "our own: the argument of the first part used again",
        ),
        Misconception(
            "parts_swapped",
            "The MLP comes first and the attention second.",
            "transformer#post-norm",
            "our own: the order of the two parts",
        ),
        Misconception(
            "rms_norm",
            "The norms do not subtract the mean.",
            "norm#layernorm",
            "our own: RMSNorm and a shift in place of LayerNorm",
        ),
        Misconception(
            "eps_ignored",
            "The norms use eps = 1e-5 whatever eps is.",
            "norm#epsilon",
            "huggingface/transformers#585",
        ),
        Misconception(
            "output_alone",
            "X_new is returned alone; the text asks for X_new and Z.",
            "transformer#post-norm",
            "our own: the function of the book returns the output alone",
        ),
        Misconception(
            "parts_exchanged",
            "X_new and Z are returned in the other order.",
            "transformer#post-norm",
            "our own: (17) names Z first",
        ),
    ),
    options={"axes": ("token", "feature"), "parts": ("X_new", "Z")},
)
