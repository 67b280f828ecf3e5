"""Check a hand-written backward pass against numerical differences."""

import inspect

import numpy as np


def check_backward(
    forward, backward, args, rng, *, kwargs=None, step=1e-5, rtol=1e-6, atol=1e-8
):
    r"""Compare a hand-written backward pass with central differences.

    For a random cotangent :math:`dy` and a random direction :math:`v` in one argument, a
    correct backward pass satisfies

    .. math:: \langle J^\top dy, v \rangle = \langle dy, J v \rangle \approx
        \Bigl\langle dy, \frac{f(x + h v) - f(x - h v)}{2 h} \Bigr\rangle

    One number on each side checks every entry of the gradient.
    The cotangent must be random: with ``dy = 1`` the gradient of softmax is 0, so a backward
    pass that returns zeros would pass.

    Parameters
    ----------
    forward : callable
        ``forward(*args, **kwargs)`` returns an array or a tuple of arrays.
    backward : callable
        ``backward(dy, *args, **kwargs)`` returns one gradient per floating-point argument, in
        order; ``dy`` is a tuple if ``forward`` returns one.
    args : sequence
        The point at which to check. Arrays of float64 are varied; a dict of such arrays gives
        a dict of gradients; None gives None; anything else (token ids, sizes) is passed on and
        has no gradient.
    rng : numpy.random.Generator
        Source of the cotangent and the directions.
    kwargs : dict, optional
        Keyword options, passed to both functions.
    step : float, default=1e-5
        The step h of the difference. Its error is of order h**2 from the curvature plus
        1e-16 / h from rounding, and is smallest near this value.
    rtol, atol : float
        The two numbers may differ by ``atol + rtol * abs(difference quotient)``.

    Raises
    ------
    AssertionError
        If a gradient is missing, has the wrong shape or the wrong value, or if an argument was
        modified. The message names the argument and, in small arrays, the worst entry.
    ValueError
        If an argument is a floating-point array of another precision than float64.
    """
    args, kwargs = list(args), kwargs or {}
    _require_float64(args)
    args_before = _copy(args)
    outputs = forward(*args, **kwargs)
    dy = _map(lambda y: rng.standard_normal(np.shape(y)), outputs)
    dy_before = _copy(dy)
    grads = backward(dy, *args, **kwargs)
    grads = list(grads) if isinstance(grads, tuple) else [grads]
    _require(_same(args, args_before), "forward and backward must not modify the arguments")
    _require(_same(dy, dy_before), "backward must not modify dy")

    def projected(i, key, value):
        """Return <dy, f> with one array among the arguments replaced."""
        return _inner(dy, forward(*_replace(args, i, key, value), **kwargs))

    for i, key, label, grad in _pair(forward, args, grads):
        x = args[i] if key is None else args[i][key]

        def difference(v, x=x, i=i, key=key):
            plus, minus = projected(i, key, x + step * v), projected(i, key, x - step * v)
            return (plus - minus) / (2 * step)

        v = rng.standard_normal(x.shape)
        analytic, numeric = np.vdot(grad, v), difference(v)
        # Written so that a NaN on either side fails too.
        if not abs(analytic - numeric) <= atol + rtol * abs(numeric):
            raise AssertionError(
                f"the gradient of {label} is wrong: along a random direction it gives "
                f"{analytic:.9g}, central differences give {numeric:.9g}"
                f"{_worst_entry(grad, difference)}"
            )


def _pair(forward, args, grads):
    """Match each varied array with its gradient: ``(position, key, label, gradient)``."""
    expected = [i for i, a in enumerate(args) if a is None or isinstance(a, dict) or _varied(a)]
    _require(
        len(grads) == len(expected),
        f"backward must return {len(expected)} gradients, got {len(grads)}",
    )
    for i, grad in zip(expected, grads, strict=True):
        label, arg = _label(forward, i), args[i]
        if arg is None:
            _require(grad is None, f"the gradient of {label} must be None, as the argument is")
        elif isinstance(arg, dict):
            keys = list(grad) if isinstance(grad, dict) else type(grad).__name__
            _require(
                isinstance(grad, dict) and set(grad) == set(arg),
                f"the gradient of {label} must be a dict with the keys {list(arg)}, got {keys}",
            )
            for key, value in arg.items():
                if value is None:
                    _require(
                        grad[key] is None, f"the gradient of {label}[{key!r}] must be None"
                    )
                else:
                    yield i, key, f"{label}[{key!r}]", _of_shape(grad[key], value, label)
        else:
            yield i, None, label, _of_shape(grad, arg, label)


def _of_shape(grad, arg, label):
    _require(
        np.shape(grad) == arg.shape,
        f"the gradient of {label} must have shape {arg.shape}, got {np.shape(grad)}",
    )
    return np.asarray(grad)


def _worst_entry(grad, difference, limit=1000):
    """Find the entry that is furthest off, one difference per entry (small arrays only)."""
    if not 1 < grad.size <= limit:
        return ""
    numeric = np.empty(grad.shape)
    for index in np.ndindex(grad.shape):
        one = np.zeros(grad.shape)
        one[index] = 1
        numeric[index] = difference(one)
    # A NaN counts as infinitely far off.
    distance = np.nan_to_num(np.abs(grad - numeric), nan=np.inf)
    worst = tuple(int(i) for i in np.unravel_index(distance.argmax(), grad.shape))
    return f"; furthest off is entry {worst}: {grad[worst]:.9g} against {numeric[worst]:.9g}"


def _label(forward, i):
    try:
        names = list(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        names = []
    return f"argument {i}" + (f" ({names[i]})" if i < len(names) else "")


def _varied(arg):
    return isinstance(arg, np.ndarray) and np.issubdtype(arg.dtype, np.floating)


def _require_float64(args):
    for arg in args:
        for array in arg.values() if isinstance(arg, dict) else [arg]:
            if _varied(array) and array.dtype != np.float64:
                raise ValueError(
                    f"args must hold float64 arrays, got {array.dtype}; "
                    "smaller types leave too few digits for a difference"
                )


def _replace(args, i, key, value):
    new = value if key is None else {**args[i], key: value}
    return [*args[:i], new, *args[i + 1 :]]


def _inner(dy, outputs):
    if isinstance(outputs, tuple):
        return sum(np.vdot(d, y) for d, y in zip(dy, outputs, strict=True))
    return np.vdot(dy, outputs)


def _map(f, values):
    return tuple(f(v) for v in values) if isinstance(values, tuple) else f(values)


def _copy(value):
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(entry) for entry in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _same(value, copy):
    if isinstance(value, dict):
        return value.keys() == copy.keys() and all(_same(value[k], copy[k]) for k in copy)
    if isinstance(value, list | tuple):
        return all(_same(*pair) for pair in zip(value, copy, strict=True))
    return np.array_equal(value, copy) if isinstance(value, np.ndarray) else value is copy


def _require(condition, message):
    if not condition:
        raise AssertionError(message)
