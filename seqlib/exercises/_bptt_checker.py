"""Task: a gradient checker that the student writes, tried on right and wrong gradients."""

import numpy as np

from seqlib.exercises._bptt_losses import (
    bowl_loss,
    flat_entry_loss,
    recurrent_loss,
    smooth_loss,
)
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import Handle

MAX_CALLS = 100  # of E, in one check; the largest theta has 9 entries


def reference(E, theta, g):
    """Return whether ``g`` is the gradient of ``E`` at ``theta``."""
    return variant(E, theta, g)


def variant(E, theta, g, *, wrong=frozenset()):
    """Compare with central differences, with the mistakes named in ``wrong``."""
    if np.shape(g) != np.shape(theta) and "shape_ignored" not in wrong:
        return False
    numeric = _differences(E, theta, wrong)
    return bool(_agree(numeric, np.asarray(g, dtype=float), wrong))


def _differences(E, theta, wrong):
    """Return one difference quotient per entry."""
    point = theta if "float32_kept" in wrong else theta.astype(float)
    step = 1e-11 if "step_tiny" in wrong else 1e-5
    numeric = np.zeros(theta.shape)
    for i in np.ndindex(theta.shape[:1] if "rows_moved" in wrong else theta.shape):
        plus = point.copy()
        minus = plus if "one_array" in wrong else point.copy()
        plus[i] += step
        if "one_sided" in wrong:
            numeric[i] = (E(plus) - E(minus)) / step
            continue
        minus[i] -= step
        numeric[i] = (E(plus) - E(minus)) / (step if "no_two" in wrong else 2 * step)
    return numeric


def _agree(numeric, g, wrong):
    if "first_entry" in wrong:
        numeric, g = numeric.ravel()[:1], g.ravel()[:1]
    if "sums_compared" in wrong:
        numeric, g = numeric.sum(), g.sum()
    if "norms_compared" in wrong:
        numeric, g = np.linalg.norm(numeric), np.linalg.norm(g)
    if "sign_ignored" in wrong:
        numeric, g = np.abs(numeric), np.abs(g)
    size = np.abs(numeric) if "relative_per_entry" in wrong else np.abs(numeric).max()
    limit = (0.2 if "tolerance_wide" in wrong else 1e-3) * size
    if "absolute" in wrong:
        limit = 1e-6
    if "fixed_floor" in wrong:
        limit = limit + 1e-8
    error = np.abs(numeric - g)
    # With a NaN both comparisons are False.
    right = ~(error > limit) if "nan_passes" in wrong else error <= limit
    return np.any(right) if "any_entry" in wrong else np.all(right)


def cases(rng):
    """Draw losses for one run, each with a right gradient or a wrong one."""
    recurrent, smooth = recurrent_loss(rng), smooth_loss(rng, 5)
    tiny, huge = smooth_loss(rng, 5, size=1e-12), smooth_loss(rng, 5, size=1e9)
    flat, shifted = flat_entry_loss(rng, 5), smooth_loss(rng, 5, constant=1e4)
    bowl, single = bowl_loss(rng, 5), smooth_loss(rng, 5, constant=30, dtype=np.float32)

    def noise(loss):
        return loss.largest * rng.standard_normal(loss.theta.shape)

    def case(loss, g, label, tag="base"):
        return Case((Handle(loss.E), loss.theta, g), label=label, tag=tag)

    i, j = rng.permutation(np.arange(1, 5))[:2]
    with_nan = np.array(smooth.gradient)
    with_nan[i] = np.nan
    return [
        case(recurrent, recurrent.gradient, "a right gradient for W_hh, shape (3, 3)"),
        case(smooth, smooth.gradient, "a right gradient, shape (5,)"),
        case(smooth, noise(smooth), "a gradient of random numbers"),
        case(recurrent, noise(recurrent), "random numbers for W_hh, shape (3, 3)"),
        case(smooth, smooth.off_at((0, 0.05)), "the first entry is wrong", "one_entry"),
        case(smooth, smooth.off_at((i, 0.05)), "one later entry is wrong", "one_entry"),
        case(
            recurrent,
            recurrent.off_at((8, -0.05)),
            "the last of 9 entries is wrong",
            "one_entry",
        ),
        case(
            smooth,
            smooth.off_at((i, 0.05), (j, -0.05)),
            "two entries are wrong, one too large and one too small",
            "one_entry",
        ),
        case(smooth, 0 * smooth.gradient, "a gradient of zeros", "disguised"),
        case(smooth, 2 * smooth.gradient, "twice the right gradient", "disguised"),
        case(smooth, -smooth.gradient, "the right gradient with the other sign", "disguised"),
        case(recurrent, recurrent.gradient.T, "the gradient for W_hh, transposed", "disguised"),
        case(smooth, with_nan, "one entry is NaN", "disguised"),
        case(smooth, smooth.gradient[None], "shape (1, 5) for theta (5,)", "disguised"),
        case(tiny, tiny.gradient, "right, entries near 1e-12", "sizes"),
        case(tiny, noise(tiny), "random numbers, entries near 1e-12", "sizes"),
        case(huge, huge.gradient, "right, entries near 1e9", "sizes"),
        case(huge, huge.off_at((j, 0.05)), "one entry wrong, entries near 1e9", "sizes"),
        case(flat, flat.gradient, "right, one entry near 1e-12, the others near 1", "sizes"),
        case(shifted, shifted.gradient, "right, a loss near 10000", "rounding"),
        case(single, single.gradient, "right, theta in float32, a loss near 30", "rounding"),
        case(single, single.off_at((i, 0.05)), "one entry wrong, theta in float32", "rounding"),
        case(bowl, bowl.gradient, "right, theta 1e-4 away from a minimum", "minimum"),
        case(bowl, bowl.off_at((j, 0.05)), "one entry wrong, near a minimum", "minimum"),
    ]


def _mistake(name, says, source, also=()):
    return Misconception(name, says, "bptt#gradient-check", source, also=also)


TASK = Task(
    id="bptt.gradient_is_right",
    title="A gradient checker",
    signature="(E, theta, g)",
    equations=(),
    page="bptt#gradient-check",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="student_test",
    options={"max_calls": MAX_CALLS},
    criteria=(
        Criterion("values", 5, "right gradients pass, random ones do not"),
        Criterion("one_entry", 3, "one or two wrong entries are found", tag="one_entry"),
        Criterion(
            "disguised",
            3,
            "zeros, a factor, a sign, a transpose, NaN, a shape",
            tag="disguised",
        ),
        Criterion("sizes", 2, "entries near 1e-12 and near 1e9", tag="sizes"),
        Criterion("rounding", 1, "large losses and float32", tag="rounding"),
        Criterion("minimum", 1, "near a minimum", tag="minimum"),
    ),
    misconceptions=(
        _mistake(
            "first_entry",
            "Only the first entry of the gradient is looked at.",
            "our own: a spot check of one entry",
        ),
        _mistake(
            "any_entry",
            "A gradient passes as soon as one of its entries is right.",
            "our own: any() where all() is meant",
        ),
        _mistake(
            "sums_compared",
            "The sums of the entries are compared, so that errors may cancel.",
            "our own: one number for the whole gradient, as with a direction of ones",
        ),
        _mistake(
            "norms_compared",
            "The norms are compared: a gradient in another direction may have the same norm.",
            "our own: the quotient of norms, without the norm of the difference in it",
        ),
        _mistake(
            "sign_ignored",
            "The sizes of the entries are compared, without their signs.",
            "our own: abs() around each side in place of the difference",
        ),
        _mistake(
            "absolute",
            "The error is compared with a fixed number, whatever the size of the gradient.",
            "our own: one threshold for every loss",
        ),
        _mistake(
            "fixed_floor",
            "A fixed error is allowed beside the relative one, as numpy.allclose does: all "
            "that is small enough passes.",
            "NVIDIA/warp#508",
        ),
        _mistake(
            "relative_per_entry",
            "Each error is divided by its own entry, and next to nothing is left to divide by "
            "where the entry itself is nearly 0.",
            "OpenMDAO/OpenMDAO-Framework#1536",
        ),
        _mistake(
            "tolerance_wide",
            "The tolerance is so wide that an error of 5 % of the largest entry passes.",
            "PaddlePaddle/Paddle#4283",
        ),
        _mistake(
            "nan_passes",
            "A NaN passes: the test asks whether the error is too large, and with NaN every "
            "such comparison is False.",
            "our own: NaN > limit is False, as is NaN <= limit",
        ),
        _mistake(
            "shape_ignored",
            "A gradient of another shape passes, because it is broadcast in the comparison.",
            "deeplearning4j/nd4j#2424",
        ),
        _mistake(
            "one_array",
            "Both points are the same array under two names, so every difference is 0.",
            "HomericIntelligence/Odyssey#2089",
            also=("E is evaluated twice at the same point",),
        ),
        _mistake(
            "no_two",
            "The difference between the two points, which is twice the step, is divided by the "
            "step alone.",
            "BVLC/caffe#6814",
        ),
        _mistake(
            "one_sided",
            "The difference is taken to one side: its error is of the order of the step, which "
            "near a minimum is as large as the gradient.",
            "apache/mxnet#3693",
        ),
        _mistake(
            "step_tiny",
            "The step is so small that rounding drowns the difference of two large losses.",
            "pasteurlabs/tesseract-core#740",
        ),
        _mistake(
            "float32_kept",
            "theta stays in float32, where a small step is mostly rounding.",
            "chainer/chainer#3046",
        ),
        _mistake(
            "rows_moved",
            "Only the first axis is gone through: theta[i] of a matrix is a row, and all its "
            "entries are moved at once.",
            "our own: range(len(theta)) in place of all entries",
        ),
    ),
    shortcuts=("seqlib.testing.check_backward",),
)
