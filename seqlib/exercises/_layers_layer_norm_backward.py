"""Task: the backward pass of layer normalisation."""

import numpy as np

from seqlib.exercises._layers_statistics import (
    PARAMETERS,
    gain,
    mean_over,
    parameter_gradient,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dY, X_hat, s, gamma):
    """Return dX, dgamma and dbeta from what the forward pass has kept.

    The library's backward pass takes x and eps and computes the statistics again.
    """
    dX_hat = gamma * dY
    via_mean = dX_hat.mean(axis=-1, keepdims=True)
    via_var = X_hat * (dX_hat * X_hat).mean(axis=-1, keepdims=True)
    rows = tuple(range(dY.ndim - 1))
    return (dX_hat - via_mean - via_var) / s, (dY * X_hat).sum(axis=rows), dY.sum(axis=rows)


def variant(dY, X_hat, s, gamma, *, wrong=frozenset()):
    """Return dX, dgamma and dbeta, with the mistakes named in ``wrong``."""
    if "cotangent_ones" in wrong:
        dY = np.ones_like(dY)
    dX = _through(dY if wrong & {"no_gamma", "gamma_last"} else gamma * dY, X_hat, gamma, wrong)
    if "gamma_last" in wrong:
        dX = gamma * dX
    if "s_multiplied" in wrong:
        dX = dX * s
    elif "s_squared" in wrong:
        dX = dX / s**2
    elif "no_s" not in wrong:
        dX = dX / s
    for_gamma = dY if "dgamma_without_x_hat" in wrong else dY * X_hat
    if "dgamma_with_gamma" in wrong:
        for_gamma = gamma * for_gamma
    dgamma, dbeta = parameter_gradient(for_gamma, wrong), parameter_gradient(dY, wrong)
    if "dx_last" in wrong:
        return dgamma, dbeta, dX
    if "dgamma_dbeta_exchanged" in wrong:
        return dX, dbeta, dgamma
    return dX, dgamma, dbeta


def _through(dX_hat, X_hat, gamma, wrong):
    if "statistics_constant" in wrong:
        return dX_hat
    count = X_hat.shape[-1]
    via_mean = mean_over(dX_hat, wrong)
    along = mean_over(dX_hat * X_hat, wrong)
    if "sums" in wrong:
        via_mean, along = count * via_mean, count * along
    if "unbiased" in wrong:
        along = along * count / (count - 1)
    via_var = along if "x_hat_missing" in wrong else X_hat * along
    if "gamma_twice" in wrong:
        via_var = gamma * via_var
    if "mean_constant" in wrong:
        via_mean = 0
    if "mean_twice" in wrong:
        via_mean = 2 * via_mean
    if "variance_constant" in wrong:
        via_var = 0
    if "signs" in wrong:
        return dX_hat + via_mean + via_var
    return dX_hat - via_mean - via_var


def cases(rng):
    """Draw inputs for one run."""
    small = 1e-4 * rng.standard_normal((5, 4))
    small[rng.integers(5)] = 0
    return [
        Case(_args(rng, rng.standard_normal((5, 4))), label="n=5 tokens, d=4"),
        Case(_args(rng, rng.standard_normal((3, 7))), label="n=3 tokens, d=7"),
        Case(_args(rng, rng.standard_normal((1, 5))), label="one token, d=5"),
        Case(
            _args(rng, small, eps=1e-5),
            label="X near 1e-4 with a constant row, eps=1e-5, n=5, d=4",
            tag="small",
        ),
        Case(_args(rng, rng.standard_normal((2, 5, 3))), label="shape (2, 5, 3)", tag="batch"),
        Case(
            _args(rng, rng.standard_normal((3, 2, 5, 7))),
            label="shape (3, 2, 5, 7)",
            tag="batch",
        ),
    ]


def _args(rng, X, eps=1e-2):
    centred = X - X.mean(axis=-1, keepdims=True)
    s = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps)
    return rng.standard_normal(X.shape), centred / s, s, gain(rng, X.shape[-1])


# The mistakes that the backward pass of RMSNorm shares.
SHARED = (
    Misconception(
        "gamma_twice",
        "In the term that comes from the root, gamma is multiplied in twice.",
        "norm#backward",
        "NVIDIA/Megatron-LM#6859",
    ),
    Misconception(
        "no_gamma",
        "dX is computed from dY without gamma.",
        "norm#backward",
        "karpathy/llm.c#763",
    ),
    Misconception(
        "gamma_last",
        "gamma multiplies dX at the end: it belongs to dY before the means are taken.",
        "norm#backward",
        "our own: unseen where gamma is the same for all features",
    ),
    Misconception(
        "x_hat_missing",
        "In the term that comes from the root, the mean of dX_hat times X_hat is subtracted "
        "as it is, the same for all features.",
        "norm#backward",
        "our own: the last factor of the chain rule left out",
    ),
    Misconception(
        "sums",
        "The correction has a sum over the features where there must be a mean.",
        "norm#backward",
        "our own: the factor 1/d of the statistics left out",
    ),
    Misconception(
        "signs",
        "The correction is added, not subtracted.",
        "norm#backward",
        "our own: the minus sign of the derivative of 1/s lost",
    ),
    Misconception(
        "over_tokens",
        "The means in dX run over the tokens, not over the features of a token.",
        "norm#axis",
        "our own: the backward pass of batch normalisation",
    ),
    Misconception(
        "no_s",
        "dX is not divided by the divisor of the forward pass.",
        "norm#backward",
        "our own: the chain rule stopped at X_hat",
    ),
    Misconception(
        "s_multiplied",
        "dX is multiplied by the divisor of the forward pass, not divided by it.",
        "norm#backward",
        "hkproj/pytorch-llama#2 (a root and its reciprocal confused)",
    ),
    Misconception(
        "s_squared",
        "dX is divided by the square of the divisor.",
        "norm#backward",
        "our own: the derivative of 1/s taken for 1/s",
    ),
    *PARAMETERS,
    Misconception(
        "dgamma_without_x_hat",
        "dgamma is the sum of dY: the factor X_hat is missing.",
        "norm#parameter-gradients",
        "our own: dbeta computed twice",
    ),
    Misconception(
        "dgamma_with_gamma",
        "dgamma contains the factor gamma, which belongs to dX alone.",
        "norm#parameter-gradients",
        "our own: gamma times dY used for both gradients",
    ),
    Misconception(
        "cotangent_ones",
        "dY is not used: the gradients are those of the sum of all outputs.",
        "norm#backward",
        "HomericIntelligence/Odyssey#3247",
    ),
)

TASK = Task(
    id="layers.layer_norm_backward",
    title="Backward pass of layer normalisation",
    signature="(dY, X_hat, s, gamma)",
    equations=("eq-19", "eq-20"),
    page="norm#backward",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    options={
        "parts": ("dX", "dgamma", "dbeta"),
        "axes": {"dX": ("token", "feature"), "dgamma": ("feature",), "dbeta": ("feature",)},
    },
    criteria=(
        Criterion("values", 3, "dX, dgamma and dbeta together"),
        Criterion("dx", 5, "dX", part=0, needs=()),
        Criterion("dgamma", 3, "dgamma", part=1, needs=()),
        Criterion("dbeta", 2, "dbeta", part=2, needs=()),
        Criterion("small", 2, "small rows and a constant one", tag="small"),
        Criterion("batch", 3, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "statistics_constant",
            "Mean and variance are treated as constants: dX has the direct path alone.",
            "norm#backward",
            "ooples/AiDotNet#695",
        ),
        Misconception(
            "mean_constant",
            "The mean is treated as a constant: dX lacks the term that comes from it.",
            "norm#backward",
            "BVLC/caffe#1891",
        ),
        Misconception(
            "variance_constant",
            "The variance is treated as a constant: dX lacks the term that comes from it.",
            "norm#backward",
            "our own: the divisor taken for a number",
        ),
        Misconception(
            "mean_twice",
            "The term that comes from the mean is subtracted twice.",
            "norm#backward",
            "tenstorrent/tt-metal#53204",
        ),
        Misconception(
            "unbiased",
            "The term that comes from the variance is divided by d - 1, not by d.",
            "norm#variance",
            "LBANN/lbann#2024",
        ),
        *SHARED,
        Misconception(
            "dgamma_dbeta_exchanged",
            "dgamma and dbeta are returned in the other order.",
            "norm#parameter-gradients",
            "Oneflow-Inc/oneflow#6149",
        ),
        Misconception(
            "dx_last",
            "The gradients are returned in the order dgamma, dbeta, dX.",
            "norm#backward",
            "our own: the order in which they are easiest to find",
        ),
    ),
    shortcuts=("seqlib.np.norm.layer_norm_backward", "seqlib.np.norm.rms_norm_backward"),
)
