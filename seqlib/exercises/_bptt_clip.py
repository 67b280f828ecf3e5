"""Task: clipping by the joint norm of all gradients."""

import math

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance


def reference(grads, c):
    """Return the scaled gradients, None if their norm is not finite, and the norm."""
    norm = math.sqrt(sum(float((g.astype(float) ** 2).sum()) for g in grads))
    if not math.isfinite(norm):
        return None, norm
    scale = min(1.0, c / (norm + 1e-6))
    return [g * scale for g in grads], norm


def variant(grads, c, *, wrong=frozenset()):
    """Return gradients and norm, with the mistakes named in ``wrong``."""
    norm = _joint_norm(grads, wrong)
    if "none_alone" in wrong and not math.isfinite(norm):
        return None
    if not (math.isfinite(norm) or _goes_on(norm, wrong)):
        nothing = [np.zeros_like(g) for g in grads] if "nonfinite_zeros" in wrong else None
        return nothing, norm
    if "by_value" in wrong:
        clipped = [np.clip(g, -c, c) for g in grads]
    elif "each_array" in wrong:
        clipped = [g * _scale(float(np.linalg.norm(g)), c, wrong) for g in grads]
    else:
        clipped = [g * _scale(norm, c, wrong) for g in grads]
    if "norm_after" in wrong:
        norm = _joint_norm(clipped, wrong)
    return (norm, clipped) if "norm_first" in wrong else (clipped, norm)


def _goes_on(norm, wrong):
    """Whether gradients are scaled although their norm is not finite."""
    if "infinite_scaled" in wrong:
        return math.isinf(norm)
    return bool(wrong & {"nonfinite_scaled", "nan_kept"})


def _joint_norm(grads, wrong):
    squares = [float((g.astype(float) ** 2).sum()) for g in grads]
    if "norms_added" in wrong:
        return sum(math.sqrt(s) for s in squares)
    if "largest_norm" in wrong:
        return math.sqrt(max(squares))
    if "largest_entry" in wrong:
        return max(float(np.abs(g).max()) for g in grads)
    if "no_root" in wrong:
        return sum(squares)
    if "root_mean" in wrong:
        return math.sqrt(sum(squares) / sum(g.size for g in grads))
    return math.sqrt(sum(squares))


def _scale(norm, c, wrong):
    if "no_constant" in wrong:
        scale = c / norm if norm else 1.0
    elif "constant_in_root" in wrong:
        scale = c / math.sqrt(norm**2 + 1e-6)
    else:
        scale = c / (norm + 1e-6)
    if "c_missing" in wrong and scale < 1:
        return scale / c
    if "always" in wrong:
        return scale
    # The first of two stays where the second is NaN: the comparison is False.
    if "nan_kept" in wrong:
        return min(1.0, scale)
    return max(1.0, scale) if "upside_down" in wrong else min(scale, 1.0)


def cases(rng):
    """Draw inputs for one run."""

    def grads(*shapes, norm):
        drawn = [rng.standard_normal(shape) for shape in shapes]
        factor = norm / math.sqrt(sum(float((g**2).sum()) for g in drawn))
        return [g * factor for g in drawn]

    nan, inf = grads((2, 3), (5,), norm=3.0), grads((2, 3), (5,), norm=3.0)
    nan[1][3], inf[0][1, 2] = np.nan, -np.inf
    zeros = [np.zeros((2, 3)), np.zeros(5)]
    return [
        Case((grads((3, 3), (3, 2), (3,), norm=7.0), 2.0), label="norm 7, c = 2"),
        Case((grads((5, 2), (7,), norm=50.0), 5.0), label="norm 50, c = 5"),
        Case((grads((3,), norm=4.0), 0.5), label="one array, norm 4, c = 0.5"),
        Case((grads((3, 2), (5,), norm=3.0), 20.0), label="norm 3, c = 20", tag="below"),
        Case((grads((3, 2), (5,), norm=0.2), 0.7), label="norm 0.2, c = 0.7", tag="below"),
        Case((zeros, 1.5), label="all gradients 0, c = 1.5", tag="below"),
        Case((nan, 1.5), label="one entry is NaN", tag="nonfinite"),
        Case((inf, 1.5), label="one entry is -inf", tag="nonfinite"),
        Case((grads((2, 3), (5,), norm=1e-5), 4e-6), label="norm 1e-5, c = 4e-6", tag="small"),
    ]


def _mistake(name, says, source):
    return Misconception(name, says, "gradients#clipping", source)


TASK = Task(
    id="bptt.clip_grad_norm",
    title="Clipping by the joint norm",
    signature="(grads, c)",
    equations=(),
    page="gradients#clipping",
    reference=reference,
    variant=variant,
    cases=cases,
    options={"parts": ("clipped", "norm")},
    # One input has gradients near 1e-6, where the usual absolute tolerance sees nothing.
    tolerance=Tolerance(atol64=1e-15, atol32=1e-12),
    criteria=(
        Criterion("values", 4, "gradients of a large norm", part=0),
        Criterion("norm", 2, "the norm before clipping", part=1, needs=()),
        Criterion("below", 2, "gradients of a small norm stay", tag="below", part=0),
        Criterion("nonfinite", 1, "NaN and inf: no update", tag="nonfinite"),
        Criterion("small", 1, "the constant 1e-6", tag="small", part=0),
    ),
    misconceptions=(
        _mistake(
            "each_array",
            "Each array is clipped by its own norm, which changes the direction of the step.",
            "huggingface/transformers#614",
        ),
        _mistake(
            "by_value",
            "Every entry is limited by itself, which changes the direction of the step.",
            "Happy-Algorithms-League/hal-cgp#210",
        ),
        _mistake(
            "always",
            "The gradients are scaled to the norm c even where their norm is smaller.",
            "our own: outline of the course, the quotient without min(1, .)",
        ),
        _mistake(
            "upside_down",
            "Small gradients are scaled up and large ones stay: max stands where min belongs.",
            "our own: min and max exchanged",
        ),
        _mistake(
            "norms_added",
            "The norms of the arrays are added: the joint norm is the root of the sum of their "
            "squares.",
            "our own: the sum over arrays taken after the root",
        ),
        _mistake(
            "largest_norm",
            "The largest of the norms of the arrays stands for the joint norm.",
            "our own: max over the arrays",
        ),
        _mistake(
            "largest_entry",
            "The largest entry stands for the norm.",
            "our own: the maximum norm",
        ),
        _mistake(
            "no_root",
            "The sum of the squares stands for the norm, without its root.",
            "paiml/entrenar#311",
        ),
        _mistake(
            "root_mean",
            "The squares are averaged over all entries, not added up.",
            "our own: the root of the mean square, as in RMSNorm",
        ),
        _mistake(
            "c_missing",
            "Large gradients are scaled to the norm 1, not to the norm c.",
            "our own: right in every test with c = 1",
        ),
        _mistake(
            "norm_after",
            "The norm that is returned is the one after clipping.",
            "our own: the clipped gradients overwrite the others before the norm is taken",
        ),
        _mistake(
            "norm_first",
            "The norm stands before the gradients.",
            "our own: the order in which they are found",
        ),
        _mistake(
            "nonfinite_scaled",
            "Gradients with NaN or inf are scaled like others: the NaN spreads to all arrays.",
            "pytorch/pytorch#46849",
        ),
        _mistake(
            "nonfinite_zeros",
            "For a norm that is not finite the gradients become 0, which hides the fault.",
            "our own: a guard that turns an alarm into a step of 0",
        ),
        _mistake(
            "no_constant",
            "The constant 1e-6 beside the norm is missing.",
            "our own: the quotient of the paper, which PyTorch changes by its constant",
        ),
        _mistake(
            "constant_in_root",
            "The constant 1e-6 is added to the sum of squares, inside the root.",
            "our own: eps inside the root, as in LayerNorm",
        ),
        _mistake(
            "nan_kept",
            "Gradients with NaN or inf are clipped like others, and where the norm is NaN "
            "they even stay as they are: `min(1, NaN)` is 1.",
            "our own: the formula alone, in plain Python",
        ),
        _mistake(
            "infinite_scaled",
            "Only NaN stops the update: an infinite norm gives the factor 0, and 0 times inf "
            "is NaN.",
            "our own: isnan in place of isfinite",
        ),
        _mistake(
            "none_alone",
            "For a norm that is not finite None is returned alone; the text asks for None and "
            "the norm.",
            "our own: return None in place of return None, norm",
        ),
    ),
    shortcuts=("seqlib.np.gradients.clip_grad_norm", "torch.nn.utils.clip_grad_norm_"),
)
