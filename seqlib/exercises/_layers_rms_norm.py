"""Task: normalisation by the root mean square, equation (21)."""

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
from seqlib.np.norm import rms_norm


def reference(X, gamma, eps):
    """Return Y and X_hat of equation (21)."""
    wide = X.astype(np.float32) if X.dtype == np.float16 else X
    return rms_norm(X, gamma, eps=eps), rms_norm(
        wide, np.ones(X.shape[-1], wide.dtype), eps=eps
    )


def variant(X, gamma, eps, *, wrong=frozenset()):
    """Return Y and X_hat, with the mistakes named in ``wrong``."""
    dtype = X.dtype
    if dtype == np.float16 and "half_statistics" not in wrong:
        X = X.astype(np.float32)
    if "gamma_before_statistics" in wrong:
        X = gamma * X
    if "eps_ignored" in wrong:
        eps = 1e-6
    if "machine_eps" in wrong:
        eps = np.finfo(X.dtype).eps
    centred = X - mean_over(X, wrong)
    square = mean_over((centred if "variance" in wrong else X) ** 2, wrong)
    if "layer_norm" in wrong:
        X, square = centred, mean_over(centred**2, wrong)
    if "sum" in wrong:
        square = square * (X.size // square.size)
    root = _root(square, eps, wrong)
    X_hat = X * root if "multiplied" in wrong else X / root
    if wrong & {"gamma_ignored", "gamma_before_statistics"}:
        Y = X_hat
    else:
        Y = (1 + gamma if "one_plus_gamma" in wrong else gamma) * X_hat
    return returned(Y if "half_result" in wrong else Y.astype(dtype), X_hat, wrong)


def _root(square, eps, wrong):
    if "no_eps" in wrong:
        return np.sqrt(square)
    if "eps_outside" in wrong:
        return np.sqrt(square) + eps
    if "no_root" in wrong:
        return square + eps
    return np.sqrt(square + eps)


def cases(rng):
    """Draw inputs for one run."""
    zero = rng.standard_normal((5, 4))
    zero[rng.integers(5)] = 0
    return [
        Case(_args(rng, tokens(rng, 5, 4)), label="n=5 tokens near 1000, d=4, eps=1e-5"),
        Case(_args(rng, tokens(rng, 3, 7)), label="n=3 tokens near 1000, d=7, eps=1e-5"),
        Case(_args(rng, tokens(rng, 1, 5)), label="one token near 1000, d=5, eps=1e-5"),
        Case(
            _args(rng, 1e-4 * rng.standard_normal((5, 4))),
            label="entries near 1e-4, n=5, d=4, eps=1e-5",
            tag="eps",
        ),
        Case(_args(rng, zero), label="a row of zeros, n=5, d=4, eps=1e-5", tag="eps"),
        Case(
            _args(rng, rng.standard_normal((3, 7)), eps=0.1),
            label="entries near 1, n=3, d=7, eps=0.1",
            tag="eps",
        ),
        Case(_half(rng, 3, 4), label="float16: rows near 300, 0.01 and mixed", tag="half"),
        Case(_args(rng, tokens(rng, 2, 5, 3)), label="shape (2, 5, 3)", tag="batch"),
        Case(_args(rng, tokens(rng, 3, 2, 5, 7)), label="shape (3, 2, 5, 7)", tag="batch"),
    ]


def _args(rng, X, eps=1e-5):
    return X, gain(rng, X.shape[-1]), eps


def _half(rng, n, d):
    """Rows of float16: squares beyond its largest number, small squares, and both."""
    X = rng.choice([-1, 1], (n, d)) * rng.uniform(300, 1000, (n, d))
    X[1] *= 2e-5
    X[2, ::2] *= 1e-3
    return X.astype(np.float16), gain(rng, d).astype(np.float16), 1e-6


TASK = Task(
    id="layers.rms_norm",
    title="Root mean square normalisation",
    signature="(X, gamma, eps)",
    equations=("eq-21",),
    page="norm#rmsnorm",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 3, "outputs Y", part=0),
        Criterion("normalised", 1, "normalised tokens X_hat", part=1, needs=()),
        Criterion("eps", 2, "where eps matters", tag="eps"),
        Criterion("half", 1, "outputs Y in float16", tag="half", part=0, dtype=True),
        Criterion("batch", 1, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "layer_norm",
            "The mean is subtracted, as in layer normalisation.",
            "norm#rmsnorm",
            "mit-han-lab/omniserve#32",
        ),
        Misconception(
            "variance",
            "The tokens are divided by the root of their variance, not of their mean square.",
            "norm#rmsnorm",
            "huggingface/pytorch-image-models#2380",
        ),
        Misconception(
            "sum",
            "The squares are summed: the factor 1/d is missing.",
            "norm#rmsnorm",
            "our own: the length of the vector taken for its root mean square",
        ),
        Misconception(
            "no_root",
            "The tokens are divided by the mean square, not by its root.",
            "norm#rmsnorm",
            "our own: the square taken for the root",
        ),
        Misconception(
            "multiplied",
            "The tokens are multiplied by the root mean square, not divided by it.",
            "norm#rmsnorm",
            "kyegomez/zeta#180",
        ),
        Misconception(
            "no_eps",
            "There is no eps under the root: a row of zeros becomes 0/0.",
            "norm#epsilon",
            "Zhang and Sennrich (2019), equation (4), has none",
        ),
        Misconception(
            "eps_outside",
            "eps is added to the root, not under it.",
            "norm#epsilon",
            "allenai/OLMo#281",
        ),
        Misconception(
            "eps_ignored",
            "The argument eps is not used: the code has a fixed 1e-6 in its place.",
            "norm#epsilon",
            "OpenNMT/OpenNMT-py#2446",
        ),
        Misconception(
            "machine_eps",
            "The argument eps is not used: the code takes the machine epsilon of the dtype.",
            "norm#epsilon",
            "pytorch/pytorch#155527",
        ),
        *AXES,
        Misconception(
            "gamma_before_statistics",
            "gamma multiplies the tokens before the mean square is taken, not after.",
            "norm#gain-shift",
            "our own: the order of (21) reversed",
        ),
        Misconception(
            "gamma_ignored",
            "gamma is not used.",
            "norm#gain-shift",
            "our own: unseen by tests in which gamma is 1",
        ),
        Misconception(
            "one_plus_gamma",
            "The normalised tokens are multiplied by 1 + gamma.",
            "norm#gain-shift",
            "utensils/mold#1078",
        ),
        Misconception(
            "half_statistics",
            "The squares are computed in float16, where 300 squared is infinite.",
            "norm#half-precision",
            "jingyaogong/minimind#301",
        ),
        Misconception(
            "half_result",
            "The result for a float16 input is float32: it is not converted back.",
            "norm#half-precision",
            "skyzh/tiny-llm#18",
        ),
        *RETURNS,
    ),
    options={"axes": ("token", "feature"), "parts": ("Y", "X_hat")},
    shortcuts=("seqlib.np.norm.layer_norm", "seqlib.np.norm.rms_norm"),
)
