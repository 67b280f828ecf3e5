"""Task: the backward pass of RMSNorm."""

import numpy as np

from seqlib.exercises._layers_layer_norm_backward import SHARED
from seqlib.exercises._layers_statistics import gain, mean_over, parameter_gradient
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dY, X_hat, r, gamma):
    """Return dX and dgamma from what the forward pass has kept.

    The library's backward pass takes x and eps and computes the root again.
    """
    dX_hat = gamma * dY
    via_root = X_hat * (dX_hat * X_hat).mean(axis=-1, keepdims=True)
    return (dX_hat - via_root) / r, (dY * X_hat).sum(axis=tuple(range(dY.ndim - 1)))


def variant(dY, X_hat, r, gamma, *, wrong=frozenset()):
    """Return dX and dgamma, with the mistakes named in ``wrong``."""
    if "cotangent_ones" in wrong:
        dY = np.ones_like(dY)
    dX = _through(dY if wrong & {"no_gamma", "gamma_last"} else gamma * dY, X_hat, gamma, wrong)
    if "gamma_last" in wrong:
        dX = gamma * dX
    if "s_multiplied" in wrong:
        dX = dX * r
    elif "s_squared" in wrong:
        dX = dX / r**2
    elif "no_s" not in wrong:
        dX = dX / r
    for_gamma = dY if "dgamma_without_x_hat" in wrong else dY * X_hat
    if "dgamma_with_gamma" in wrong:
        for_gamma = gamma * for_gamma
    dgamma = parameter_gradient(for_gamma, wrong)
    if "dx_alone" in wrong:
        return dX
    return (dgamma, dX) if "dgamma_first" in wrong else (dX, dgamma)


def _through(dX_hat, X_hat, gamma, wrong):
    if "root_constant" in wrong:
        return dX_hat
    along = mean_over(dX_hat * X_hat, wrong)
    if "sums" in wrong:
        along = X_hat.shape[-1] * along
    via_root = along if "x_hat_missing" in wrong else X_hat * along
    if "gamma_twice" in wrong:
        via_root = gamma * via_root
    via_mean = mean_over(dX_hat, wrong) if "layer_norm" in wrong else 0
    if "signs" in wrong:
        return dX_hat + via_mean + via_root
    return dX_hat - via_mean - via_root


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
            label="X near 1e-4 with a row of zeros, eps=1e-5, n=5, d=4",
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
    r = np.sqrt(np.mean(X**2, axis=-1, keepdims=True) + eps)
    return rng.standard_normal(X.shape), X / r, r, gain(rng, X.shape[-1])


TASK = Task(
    id="layers.rms_norm_backward",
    title="Backward pass of RMSNorm",
    signature="(dY, X_hat, r, gamma)",
    equations=("eq-21",),
    page="norm#rmsnorm-backward",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    options={
        "parts": ("dX", "dgamma"),
        "axes": {"dX": ("token", "feature"), "dgamma": ("feature",)},
    },
    criteria=(
        Criterion("values", 2, "dX and dgamma together"),
        Criterion("dx", 4, "dX", part=0, needs=()),
        Criterion("dgamma", 2, "dgamma", part=1, needs=()),
        Criterion("small", 2, "small rows and a row of zeros", tag="small"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "root_constant",
            "The root mean square is treated as a constant: dX has the direct path alone.",
            "norm#rmsnorm-backward",
            "ooples/AiDotNet#695",
        ),
        Misconception(
            "layer_norm",
            "dX has the term that comes from a mean, as in layer normalisation; here no mean "
            "is subtracted.",
            "norm#rmsnorm-backward",
            "our own: the backward pass of LayerNorm copied",
        ),
        *SHARED,
        Misconception(
            "dgamma_first",
            "dgamma and dX are returned in the other order.",
            "norm#rmsnorm-backward",
            "our own: the order in which they are easiest to find",
        ),
        Misconception(
            "dx_alone",
            "dX is returned alone.",
            "norm#parameter-gradients",
            "our own: gamma taken for a constant",
        ),
    ),
    shortcuts=("seqlib.np.norm.layer_norm_backward", "seqlib.np.norm.rms_norm_backward"),
)
