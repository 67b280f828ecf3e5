"""Properties that an answer must have whatever its values: makers of ``Criterion.holds``.

Each returns ``holds(call, rng)`` for a :class:`~seqlib.exercises.record.Criterion`.
``inputs(rng)`` always returns a list of fresh positional arguments, and ``axis`` counts within
the arrays as Python does, so ``axis=-2`` is the axis of tokens in ``(..., T, D)``.
Messages name places, never right values.
"""

import numpy as np


def causal_in(inputs, *, moved=(0,), axis=-2, part=None, rtol=1e-9):
    """Ask that outputs before a time step stay when inputs from this step on change.

    Parameters
    ----------
    inputs : callable
        ``inputs(rng) -> list``.
    moved : tuple of int
        Positions of the arguments whose steps from t on are drawn afresh.
    axis : int
        Axis of time, in these arguments and in the output.
    part : int or str, optional
        Part of the output.
    rtol : float
        Largest change, relative to the largest output; float32 is allowed its rounding.
    """

    def holds(call, rng):
        args = inputs(rng)
        before = _part(call(*args), part)
        length = args[moved[0]].shape[axis]
        for t in rng.permutation(np.arange(1, length))[:3]:
            later = list(args)
            for i in moved:
                later[i] = _redrawn(args[i], slice(t, None), axis, rng)
            after = _part(call(*later), part)
            kept = _cut(before, slice(0, t), axis), _cut(after, slice(0, t), axis)
            if not _same(*kept, rtol):
                return (
                    f"the output before step {t} changes when the input from step {t} on does"
                )
        return None

    return holds


def batch_independent(inputs, *, batched=(0,), part=None, rtol=1e-9):
    """Ask that the output of a sequence not depend on the others in its batch (axis 0)."""

    def holds(call, rng):
        args = inputs(rng)
        together = _part(call(*args), part)
        for b in range(args[batched[0]].shape[0]):
            alone = list(args)
            for i in batched:
                alone[i] = args[i][b : b + 1]
            if not _same(together[b : b + 1], _part(call(*alone), part), rtol):
                return f"sequence {b} alone gives another output than in its batch"
        return None

    return holds


def permutation_equivariant(inputs, *, moved=(0,), axis=-2, part=None, rtol=1e-9):
    """Ask that exchanged tokens of the input exchange those of the output, and no more."""

    def holds(call, rng):
        args = inputs(rng)
        order = rng.permutation(args[moved[0]].shape[axis])
        if (order == np.arange(len(order))).all():
            order = np.roll(order, 1)
        permuted = list(args)
        for i in moved:
            permuted[i] = np.take(args[i], order, axis=axis)
        expected = np.take(_part(call(*args), part), order, axis=axis)
        if not _same(expected, _part(call(*permuted), part), rtol):
            return "the tokens in another order give other outputs, not the same in that order"
        return None

    return holds


def inputs_unmodified(inputs):
    """Ask that no argument change in place. Name the criterion ``"inputs_unmodified"``."""

    def holds(call, rng):
        call(*inputs(rng))
        if call.last.modified:
            changed = " and ".join(
                f"number {int(at) + 1}" if at.isdigit() else at for at in call.last.modified
            )
            return f"the call changes its arguments in place: {changed}"
        return None

    return holds


def gradient_matches(
    forward, inputs, *, varied, cotangent=True, step=1e-5, rtol=1e-6, atol=1e-8, names=None
):
    r"""Ask that gradients agree with central differences along random directions.

    For a random cotangent :math:`dy` and a random direction :math:`v` in one argument,
    :math:`\langle g, v \rangle` must equal the change of :math:`\langle dy, f \rangle` along
    :math:`v`.

    Parameters
    ----------
    forward : callable
        ``forward(*args)``: the reference's forward pass, an array or a tuple of arrays.
    inputs : callable
        ``inputs(rng) -> list`` of float64 arguments of ``forward``.
    varied : sequence of int
        Argument of ``forward`` that each part of the answer is the gradient of.
    cotangent : bool
        Whether the student's function takes dy first; otherwise it differentiates a scalar.
    step, rtol, atol : float
        Step of the difference and tolerance.
    names : sequence of str, optional
        What the messages call the gradients.
    """

    def holds(call, rng):
        args = inputs(rng)
        outputs = forward(*args)
        dy = _map(lambda y: rng.standard_normal(np.shape(y)) if cotangent else 1.0, outputs)
        grads = call(dy, *args) if cotangent else call(*args)
        grads = list(grads) if isinstance(grads, list | tuple) else [grads]
        if len(grads) != len(varied):
            return f"the answer has {len(grads)} gradients, not {len(varied)}"
        for number, i in enumerate(varied):
            name = names[number] if names else f"gradient {number}"
            if np.shape(grads[number]) != args[i].shape:
                return f"{name} has shape {np.shape(grads[number])}, not {args[i].shape}"
            v = rng.standard_normal(args[i].shape)
            plus, minus = (
                _inner(dy, forward(*args[:i], args[i] + h * v, *args[i + 1 :]))
                for h in (step, -step)
            )
            numeric = (plus - minus) / (2 * step)
            grad = np.asarray(grads[number])
            rounding = _precision(grad) * np.linalg.norm(grad) * np.linalg.norm(v)
            slack = atol + rtol * abs(numeric) + rounding
            # Written so that a NaN fails.
            if not abs(np.vdot(grad, v) - numeric) <= slack:
                return f"{name} disagrees with central differences along a random direction"
        return None

    return holds


def _part(value, part):
    return np.asarray(value if part is None else value[part])


def _cut(array, piece, axis):
    index = [slice(None)] * array.ndim
    index[axis] = piece
    return array[tuple(index)]


def _redrawn(array, piece, axis, rng):
    new = np.array(array)
    index = [slice(None)] * array.ndim
    index[axis] = piece
    if array.dtype.kind == "f":
        new[tuple(index)] = rng.standard_normal(new[tuple(index)].shape)
    else:  # ids: any other order of those that occur
        new[tuple(index)] = rng.permuted(rng.choice(array.ravel(), new[tuple(index)].shape))
    return new


def _same(one, other, rtol):
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    rtol = max(rtol, _precision(one), _precision(other))
    # A NaN on either side, or inf - inf, fails.
    return bool(np.abs(one - other).max(initial=0) <= rtol * np.abs(one).max(initial=1e-300))


def _precision(array):
    """Return what rounding may change in an array of this dtype: 2e-5 in float32."""
    return 200 * np.finfo(array.dtype if array.dtype.kind == "f" else float).eps


def _map(function, values):
    return tuple(map(function, values)) if isinstance(values, tuple) else function(values)


def _inner(dy, outputs):
    if isinstance(outputs, tuple):
        return sum(np.vdot(d, y) for d, y in zip(dy, outputs, strict=True))
    return np.vdot(dy, outputs)
