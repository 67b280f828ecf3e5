"""Statistics of a norm over the wrong axes, and mistakes that several norms share."""

import numpy as np

from seqlib.exercises.record import Misconception

# The right axis is the last one: each token by itself.
_AXES = {
    "over_tokens": (-2,),
    "over_axis_0": (0,),
    "over_axis_1": (1,),
    "over_sequence": (-2, -1),
    "over_array": None,
}


def mean_over(x, wrong):
    """Return the mean over the features of each token, or over the axes that ``wrong`` says."""
    axis = next((_AXES[name] for name in _AXES if name in wrong), (-1,))
    return x.mean(axis=axis, keepdims=True)


def returned(Y, X_hat, wrong):
    """Return Y and X_hat as a tuple, with the mistakes named in ``wrong``."""
    if "output_alone" in wrong:
        return Y
    return (X_hat, Y) if "parts_exchanged" in wrong else (Y, X_hat)


def parameter_gradient(summand, wrong):
    """Return the gradient of a parameter that all tokens share, from one summand a token."""
    if "parameters_not_summed" in wrong:
        return summand
    if "parameters_over_features" in wrong:
        return summand.sum(axis=-1)
    if "parameters_over_axis_0" in wrong:
        return summand.sum(axis=0)
    rows = tuple(range(summand.ndim - 1))
    if "parameters_averaged" in wrong:
        return summand.mean(axis=rows)
    return summand.sum(axis=rows)


def tokens(rng, *shape):
    """Draw tokens near 1000, each with a mean of its own: beside their variance eps is nothing.

    A mistake with eps is then seen where eps is asked for, and costs nothing here.
    """
    return 1000 * (rng.standard_normal(shape) + rng.standard_normal((*shape[:-1], 1)))


def gain(rng, d):
    """Draw a gain whose entries differ: neither 1 nor the same for all features."""
    return rng.uniform(0.5, 2.0, d) * rng.permuted(np.where(np.arange(d) % 2, -1.0, 1.0))


AXES = (
    Misconception(
        "over_tokens",
        "The statistics run over the tokens of a sequence, not over the features of a token.",
        "norm#axis",
        "jadore801120/attention-is-all-you-need-pytorch#17",
    ),
    Misconception(
        "over_axis_0",
        "The statistics run over axis 0, as in batch normalisation: over the tokens of one "
        "sequence, or over the sequences of a batch.",
        "norm#axis",
        "our own: the axis of batch normalisation",
    ),
    Misconception(
        "over_axis_1",
        "The statistics run over axis 1, which holds the features of one sequence, but not "
        "those of several.",
        "norm#axis",
        "skyzh/tiny-llm#287",
    ),
    Misconception(
        "over_sequence",
        "One set of statistics serves all tokens of a sequence together.",
        "norm#axis",
        "Qualcomm-AI-research/geometric-algebra-transformer#8",
    ),
    Misconception(
        "over_array",
        "One set of statistics serves the whole array, all tokens of all sequences together.",
        "norm#axis",
        "our own: a mean without an axis",
    ),
)
RETURNS = (
    Misconception(
        "output_alone",
        "Y is returned alone; the text asks for Y and X_hat.",
        "norm#gain-shift",
        "our own: the function of the book returns Y alone",
    ),
    Misconception(
        "parts_exchanged",
        "Y and X_hat are returned in the other order.",
        "norm#gain-shift",
        "our own: X_hat is found first",
    ),
)
PARAMETERS = (
    Misconception(
        "parameters_not_summed",
        "The gradients of the parameters are not summed: one row for each token is returned.",
        "norm#parameter-gradients",
        "linkedin/Liger-Kernel#117",
    ),
    Misconception(
        "parameters_averaged",
        "The gradients of the parameters are means over the tokens, not sums.",
        "norm#parameter-gradients",
        "cthorey/CS231#9",
    ),
    Misconception(
        "parameters_over_axis_0",
        "The gradients of the parameters are summed over axis 0 alone, which leaves one for "
        "each position where there are several sequences.",
        "norm#parameter-gradients",
        "our own: the sum over the batch of a fully connected network",
    ),
    Misconception(
        "parameters_over_features",
        "The gradients of the parameters are summed over the features, not over the tokens.",
        "norm#parameter-gradients",
        "our own: the axis of the statistics used once more",
    ),
)
