"""Task: the Jacobians of equation (4) by lag, and their norms."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(H, W_hh):
    """Return the derivatives of the last state by lag, and their spectral norms."""
    J = [np.eye(len(W_hh), dtype=W_hh.dtype)]
    for h in H[::-1]:
        J.append(J[-1] @ ((1 - h**2)[:, None] * W_hh))
    return np.array(J), np.linalg.norm(J, ord=2, axis=(1, 2))


def variant(H, W_hh, *, wrong=frozenset()):
    """Return Jacobians and norms, with the mistakes named in ``wrong``."""
    slopes = 1 - H**2
    if "no_slope" in wrong:
        slopes = np.ones_like(H)
    if "slope_twice" in wrong:
        slopes = 1 - np.tanh(H) ** 2
    if "slope_of_previous" in wrong:  # the first step has no state before it here
        slopes = np.concatenate([np.ones_like(H[:1]), slopes[:-1]])
    if "slope_index" in wrong:
        slopes = np.roll(slopes, 1, axis=0)
    across = slopes[:, None, :] if "slope_on_columns" in wrong else slopes[:, :, None]
    steps = across * W_hh
    if "from_the_start" in wrong:
        steps = steps[::-1]
    J = [np.eye(len(W_hh), dtype=W_hh.dtype)]
    for step in steps[::-1]:
        if ("factors_reversed" in wrong) != ("from_the_start" in wrong):
            J.append(step @ J[-1])
        else:
            J.append(step if "one_factor" in wrong else J[-1] @ step)
    J, steps = np.array(J), steps[::-1]
    norms = _norms(J, steps, W_hh, wrong)
    if "transposed" in wrong:
        J = np.swapaxes(J, -1, -2)
    if "by_time" in wrong:
        J, norms = J[::-1], norms[::-1]
    if "no_identity" in wrong:
        J, norms = J[1:], norms[1:]
    return J, norms


def _norms(J, steps, W_hh, wrong):
    if "norm_frobenius" in wrong:
        return np.sqrt((J**2).sum(axis=(1, 2)))
    if "norm_spectral_radius" in wrong:
        return np.abs(np.linalg.eigvals(J)).max(axis=1)
    if "norm_of_factors" in wrong:
        each = np.linalg.norm(steps, ord=2, axis=(1, 2))
        return np.concatenate([np.ones(1), np.cumprod(each)])
    if "norm_of_W" in wrong:
        return np.linalg.norm(W_hh, ord=2) ** np.arange(len(J))
    if "norm_largest_entry" in wrong:
        return np.abs(J).max(axis=(1, 2))
    return np.linalg.norm(J, ord=2, axis=(1, 2))


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 5, 3), label="T=5 steps, m=3 states"),
        Case(_args(rng, 3, 5), label="T=3 steps, m=5 states"),
        Case(_args(rng, 7, 2), label="T=7 steps, m=2 states"),
        Case(_args(rng, 2, 1), label="T=2 steps, m=1 state"),
    ]


def _args(rng, T, m):
    return rng.uniform(-0.9, 0.9, (T, m)), rng.standard_normal((m, m)) * 1.2 / np.sqrt(m)


def _mistake(name, says, source, page="gradients#jacobian", also=()):
    return Misconception(name, says, page, source, also=also)


TASK = Task(
    id="bptt.state_jacobians",
    title="Jacobians across time",
    signature="(H, W_hh)",
    equations=("eq-2", "eq-4"),
    page="gradients#jacobian",
    reference=reference,
    variant=variant,
    cases=cases,
    options={"parts": ("J", "norms")},
    criteria=(
        Criterion("values", 6, "the Jacobians J", part=0),
        Criterion("norms", 4, "their norms", part=1, needs=()),
    ),
    misconceptions=(
        _mistake(
            "transposed",
            "Each J is the transpose: its rows belong to the earlier state, not to the last "
            "one.",
            "our own: (4) of the notes multiplies transposed factors in the order of time",
        ),
        _mistake(
            "factors_reversed",
            "The factors stand in the wrong order: the step that comes later in time belongs "
            "on the left.",
            "our own: the product of (4) without its transposes",
        ),
        _mistake(
            "slope_on_columns",
            "The derivatives of tanh scale the columns of W_hh: they are applied before W_hh, "
            "not after it.",
            "our own: (1 - h^2) * W_hh broadcasts over the last axis",
        ),
        _mistake(
            "no_slope",
            "The derivative of tanh is missing: these are powers of W_hh.",
            "our own: the derivation for a linear network, which textbooks prefer",
        ),
        _mistake(
            "slope_twice",
            "tanh is applied to the states once more before its derivative is taken.",
            "davidrmiller/neural2d#40",
        ),
        _mistake(
            "slope_of_previous",
            "Each step takes the derivative of tanh from the state before it.",
            "our own: the states shifted by one step",
        ),
        _mistake(
            "one_factor",
            "Each J holds one step alone: the steps are not multiplied.",
            "d2l-ai/d2l-en#2616",
        ),
        _mistake(
            "from_the_start",
            "J[l] is the derivative of the state after l steps by the one at the start, not of "
            "the last state by the one l steps before it.",
            "our own: the loop over the states runs forward",
        ),
        _mistake(
            "by_time",
            "J is sorted by time: the longest lag stands first.",
            "our own: the book's library sorts by time",
        ),
        _mistake(
            "no_identity",
            "Lag 0 is missing: the derivative of the last state by itself.",
            "our own: the book's library has no lag 0",
        ),
        _mistake(
            "norm_frobenius",
            "The norms are Frobenius norms, the root of the sum of all squares.",
            "our own: numpy.linalg.norm of a matrix, without ord=2",
            "gradients#norms",
        ),
        _mistake(
            "norm_spectral_radius",
            "The norms are the largest eigenvalues in size, which do not bound a product.",
            "Atcold/NYU-DLSP20#295",
            "gradients#norms",
        ),
        _mistake(
            "norm_of_factors",
            "The norms of the steps are multiplied: that bounds the norm of the product, but "
            "is seldom equal to it.",
            "woowacampers/d2l-pytorch#4",
            "gradients#norms",
        ),
        _mistake(
            "norm_of_W",
            "The norms are powers of the norm of W_hh: a bound that forgets tanh.",
            "our own: the sentence of the notes after (4) on the largest singular value",
            "gradients#norms",
        ),
        _mistake(
            "norm_largest_entry",
            "The norms are the largest entries in size.",
            "our own: max in place of a norm",
            "gradients#norms",
        ),
        _mistake(
            "slope_index",
            "Each step takes the derivative of tanh from the state before it, and the first "
            "step from the last state, whose index is -1.",
            "our own: H[T - l - 1] where H[T - l] is meant",
        ),
    ),
    shortcuts=(
        "seqlib.np.gradients.rnn_jacobian",
        "seqlib.np.gradients.jacobian_norm_by_lag",
    ),
)
