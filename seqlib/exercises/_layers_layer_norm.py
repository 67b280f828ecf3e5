"""Task: layer normalisation, equations (19) and (20)."""

import numpy as np

from seqlib.exercises._layers_statistics import (
    AXES,
    RETURNS,
    gain,
    mean_over,
    returned,
    tokens,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.norm import layer_norm


def reference(X, gamma, beta, eps):
    """Return Y and X_hat of equation (20), with eps inside the root."""
    one, zero = np.ones_like(gamma), np.zeros_like(beta)
    return layer_norm(X, gamma, beta, eps=eps), layer_norm(X, one, zero, eps=eps)


def variant(X, gamma, beta, eps, *, wrong=frozenset()):
    """Return Y and X_hat, with the mistakes named in ``wrong``."""
    if "gamma_before_statistics" in wrong:
        X = gamma * X
    if "eps_ignored" in wrong:
        eps = 1e-5
    mean = mean_over(X, wrong)
    var = mean_over((X if "uncentred_variance" in wrong else X - mean) ** 2, wrong)
    if "unbiased" in wrong:
        count = X.size // mean.size
        var = var * count / (count - 1)
    numerator = X if "not_centred" in wrong else X - mean
    X_hat = numerator / _deviation(var, eps, wrong)
    if wrong & {"gamma_ignored", "gamma_before_statistics"}:
        return returned(X_hat + beta, X_hat, wrong)
    if "one_plus_gamma" in wrong:
        gamma = 1 + gamma
    if "gamma_beta_exchanged" in wrong:
        gamma, beta = beta, gamma
    if "beta_ignored" in wrong:
        return returned(gamma * X_hat, X_hat, wrong)
    if "beta_first" in wrong:
        return returned(gamma * (X_hat + beta), X_hat, wrong)
    return returned(gamma * X_hat + beta, X_hat, wrong)


def _deviation(var, eps, wrong):
    if "no_eps" in wrong:
        return np.sqrt(var)
    if "eps_outside" in wrong:
        return np.sqrt(var) + eps
    if "no_root" in wrong:
        return var + eps
    if "root_twice" in wrong:
        return np.sqrt(np.sqrt(var) + eps)
    return np.sqrt(var + eps)


def cases(rng):
    """Draw inputs for one run."""
    constant = rng.standard_normal((5, 4))
    constant[rng.integers(5)] = rng.integers(2, 9)  # whole numbers: their mean is exact
    return [
        Case(_args(rng, tokens(rng, 5, 4)), label="n=5 tokens near 1000, d=4, eps=1e-5"),
        Case(_args(rng, tokens(rng, 3, 7)), label="n=3 tokens near 1000, d=7, eps=1e-5"),
        Case(_args(rng, tokens(rng, 1, 5)), label="one token near 1000, d=5, eps=1e-5"),
        Case(
            _args(rng, 1e-4 * rng.standard_normal((5, 4))),
            label="entries near 1e-4, n=5, d=4, eps=1e-5",
            tag="eps",
        ),
        Case(_args(rng, constant), label="a constant row, n=5, d=4, eps=1e-5", tag="eps"),
        Case(
            _args(rng, rng.standard_normal((3, 7)), eps=0.1),
            label="entries near 1, n=3, d=7, eps=0.1",
            tag="eps",
        ),
        Case(_args(rng, tokens(rng, 2, 5, 3)), label="shape (2, 5, 3)", tag="batch"),
        Case(_args(rng, tokens(rng, 3, 2, 5, 7)), label="shape (3, 2, 5, 7)", tag="batch"),
    ]


def _args(rng, X, eps=1e-5):
    d = X.shape[-1]
    return X, gain(rng, d), rng.standard_normal(d), eps


TASK = Task(
    id="layers.layer_norm",
    title="Layer normalisation",
    signature="(X, gamma, beta, eps)",
    equations=("eq-19", "eq-20"),
    page="norm#layernorm",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 5, "outputs Y", part=0),
        Criterion("normalised", 2, "normalised tokens X_hat", part=1, needs=()),
        Criterion("eps", 3, "where eps matters", tag="eps"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "unbiased",
            "The variance is divided by d - 1, not by d.",
            "norm#variance",
            "harvardnlp/annotated-transformer#119",
        ),
        Misconception(
            "no_eps",
            "There is no eps under the root: a constant row becomes 0/0.",
            "norm#epsilon",
            "lecture notes, (20), which divides by sigma alone",
        ),
        Misconception(
            "eps_outside",
            "eps is added to the standard deviation, outside of the root.",
            "norm#epsilon",
            "codertimo/BERT-pytorch#30",
        ),
        Misconception(
            "eps_ignored",
            "The argument eps is not used: the code has a fixed 1e-5 in its place.",
            "norm#epsilon",
            "huggingface/transformers#585",
        ),
        Misconception(
            "no_root",
            "The tokens are divided by the variance, not by its root.",
            "norm#layernorm",
            "our own: the variance taken for the standard deviation",
        ),
        Misconception(
            "root_twice",
            "The root is taken twice: of the variance, and of the standard deviation again.",
            "norm#layernorm",
            "hyunwoongko/transformer#7",
        ),
        Misconception(
            "not_centred",
            "The mean is not subtracted from the tokens that are divided.",
            "norm#layernorm",
            "our own: the mean used for the variance alone",
        ),
        Misconception(
            "uncentred_variance",
            "The variance is the mean of the squares of x itself, not of x - mu.",
            "norm#variance",
            "huggingface/transformers#14772",
        ),
        *AXES,
        Misconception(
            "gamma_before_statistics",
            "gamma multiplies the tokens before mean and variance are taken, not after.",
            "norm#gain-shift",
            "our own: the order of (19) and (20) reversed",
        ),
        Misconception(
            "gamma_ignored",
            "gamma is not used.",
            "norm#gain-shift",
            "our own: unseen by tests in which gamma is 1",
        ),
        Misconception(
            "beta_ignored",
            "beta is not used.",
            "norm#gain-shift",
            "our own: unseen by tests in which beta is 0",
        ),
        Misconception(
            "gamma_beta_exchanged",
            "gamma and beta are exchanged: beta multiplies and gamma is added.",
            "norm#gain-shift",
            "our own: two vectors of the same shape",
        ),
        Misconception(
            "beta_first",
            "beta is added before the multiplication by gamma.",
            "norm#gain-shift",
            "apple/ml-ane-transformers#2",
        ),
        Misconception(
            "one_plus_gamma",
            "The normalised tokens are multiplied by 1 + gamma.",
            "norm#gain-shift",
            "utensils/mold#1078",
        ),
        *RETURNS,
    ),
    options={"axes": ("token", "feature"), "parts": ("Y", "X_hat")},
    shortcuts=("seqlib.np.norm.layer_norm", "seqlib.np.norm.rms_norm"),
)
