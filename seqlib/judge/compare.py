"""Compare an answer with the reference, and say what differs without giving it away.

The first difference that is found is the one that is named, in this order: type, number of
parts, shape, dtype (only where the task asks for one), non-finite entries, values.
Both sides are plain values, so nothing of a student's code runs here.
"""

import functools

import numpy as np

# Rounding of the largest entry of an array may show up in its smallest one.
_ROUNDINGS = 10
_MAX_KEY = 40  # characters of a key that a phrase shows
_NUMBERS = frozenset({bool, int, float})
_HALF = (4e-3, 1e-3)  # relative and absolute tolerance where the reference itself is float16


def difference(
    expected,
    got,
    tolerance,
    *,
    dtype=False,
    single=False,
    axes=(),
    names=None,
    what="the answer",
):
    """Return the first difference as a phrase, or None if the answer is right.

    Parameters
    ----------
    expected : object
        The reference's plain value.
    got : object
        The student's plain value. Numbers, arrays without axes and nested lists of numbers
        count as arrays, integers as floats, and lists as tuples.
    tolerance : seqlib.exercises.record.Tolerance
        The coarser dtype of the two values decides which pair of it holds.
    dtype : bool
        Whether the dtypes must agree.
    single : bool
        Whether single precision is enough whatever the dtypes. A right answer computed in
        float32 and then divided by ``np.sqrt(d)`` is float64 by NumPy's rules, and has the
        errors of float32 all the same.
    axes : tuple of str, or dict
        Names of the last axes of the answer, ``("batch row", "time step")``; by the name of
        the part where the parts have axes of their own. Of several wrong
        entries the first in time is named if one axis is called ``"time step"``.
    names : sequence or dict, optional
        Names of the parts of the answer, ``("Y", "A")``.
    what : str
        Subject of the phrase.
    """
    return _Comparison(tolerance, dtype, single, axes, names).any(expected, got, what)


def equal(expected, got, tolerance):
    """Whether there is no :func:`difference`, without a search for the words that name it."""
    return _Silent(tolerance, False, False, (), None).any(expected, got, "") is None


def name_of(part, names=None, what="the answer"):
    """Return what a phrase calls one part of ``what``."""
    try:
        return str(names[part])
    except (TypeError, KeyError, IndexError):
        return f"part {part!r} of {what}"


class _Comparison:
    def __init__(self, tolerance, dtype, single, axes, names):
        self.tolerance, self.dtype, self.single = tolerance, dtype, single
        self.axes = axes
        self.names = names

    def any(self, expected, got, what):
        if got is None and expected is not None:
            return f"{what} is None; is a return statement missing?"
        if expected is None:
            return None if got is None else f"{what} must be None here, not {_kind(got)}"
        if isinstance(expected, dict):
            return self.dicts(expected, got, what)
        if isinstance(expected, str | bytes):
            return self.texts(expected, got, what)
        if not isinstance(expected, tuple):  # a tuple has parts, even if all are numbers
            array = as_array(expected)
            if array is not None:
                return self.arrays(array, got, what)
        if isinstance(expected, list | tuple):
            return self.parts(expected, got, what)
        # Integers beyond 64 bits, and what is no answer to this at all.
        same = isinstance(got, int | float | complex) and expected == got
        return None if same else f"{what} is wrong"

    def dicts(self, expected, got, what):
        if not isinstance(got, dict):
            return f"{what} is {_kind(got)}, not a dict"
        unexpected = [key for key in got if key not in expected]
        missing = [key for key in expected if key not in got]
        if unexpected:
            key = repr(unexpected[0])
            key = key if len(key) <= _MAX_KEY else f"{key[: _MAX_KEY - 3]}..."
            return f"{what} has the key {key}, which does not belong there"
        if missing and all(isinstance(key, str) for key in missing):
            return f"{what} lacks the key {missing[0]!r}"
        if missing:
            return f"{what} lacks {len(missing)} of {len(expected)} keys"
        return self.first((expected[k], got[k], self.name(k, what)) for k in expected)

    def parts(self, expected, got, what):
        array = isinstance(got, np.ndarray) and got.ndim > 0
        if not array and not isinstance(got, list | tuple):
            return f"{what} is {_kind(got)}, not {len(expected)} parts"
        if len(got) != len(expected):
            parts = "1 part" if len(got) == 1 else f"{len(got)} parts"
            return f"{what} has {parts}, not {len(expected)}"
        if array:  # only now: an array of shape (2**31, 0) has as many parts and no bytes
            got = [np.asarray(part) for part in got]
        whats = [self.name(i, what) for i in range(len(expected))]
        return self.first(zip(expected, got, whats, strict=True))

    def name(self, part, what):
        return name_of(part, self.names if what == "the answer" else None, what)

    def first(self, triples):
        return next((d for triple in triples if (d := self.any(*triple)) is not None), None)

    def texts(self, expected, got, what):
        if type(got) is not type(expected):
            return f"{what} is {_kind(got)}, not {_kind(expected)}"
        if got == expected:
            return None
        common = zip(expected, got, strict=False)
        at = next((i for i, (e, g) in enumerate(common) if e != g), None)
        if at is None:
            ending = "too early" if len(got) < len(expected) else "too late"
            return f"{what} begins right and ends {ending}, with length {len(got)}"
        return f"{what} is wrong from position {at} on, where it reads {got[at : at + 12]!r}"

    def arrays(self, expected, got, what):
        array = as_array(got)
        if array is None and isinstance(got, list | tuple):
            return f"{what} is {_kind(got)} that do not form an array of numbers"
        if array is None:
            return f"{what} is {_kind(got)}, not {_kind(expected)}"
        if (expected.dtype.kind == "b") != (array.dtype.kind == "b"):
            if array.ndim == 0 == expected.ndim:
                wanted = "True or False" if expected.dtype.kind == "b" else "a number"
                return f"{what} is {_show(array[()])}, not {wanted}"
            wanted = "True and False" if expected.dtype.kind == "b" else "numbers"
            return f"{what} has dtype {array.dtype}, not {wanted}"
        if array.dtype.kind == "c" and expected.dtype.kind != "c":
            return f"{what} has complex numbers"
        if array.shape != expected.shape:
            return f"{what} has shape {array.shape}, not {expected.shape}"
        if self.dtype and array.dtype != expected.dtype:
            return f"{what} has dtype {array.dtype}, not {expected.dtype}"
        if array.dtype == np.float16 and expected.dtype != np.float16:
            return f"{what} has dtype float16: 3 digits are too few to judge it"
        wrong = ~self.close(expected, array)
        if not wrong.any():
            return None
        bad = ~np.isfinite(array) & np.isfinite(expected)
        if bad.any():
            return self.entry("not finite", array, bad, what)
        return self.entry("which is wrong", array, wrong, what)

    def close(self, expected, got):
        """Return the mask of right entries; inf equals inf, and NaN only a NaN asked for."""
        if expected.dtype.kind in "biu":
            return got == expected
        rtol, atol, rounding = self.limits(expected.dtype, got.dtype)
        with np.errstate(all="ignore"):
            size = np.abs(expected)
            largest = size.max(initial=0.0)
            if all_finite := np.isfinite(largest):  # as nearly always
                finite = True
            else:
                finite = np.isfinite(expected)
                largest = size[finite].max(initial=0.0)
            slack = rtol * size + (atol + rounding * largest)
            near = np.abs(got.astype(_wide(got), copy=False) - expected) <= slack
        if all_finite:
            return near
        same = (got == expected) | (np.isnan(expected) & _nan(got))
        return np.where(finite, near, same)

    def limits(self, *dtypes):
        """Return rtol, atol, and the roundings of the largest entry, for two dtypes."""
        return _limits(self.tolerance, self.single, *dtypes)

    def entry(self, verdict, array, mask, what):
        """Name the first entry of ``mask``, its value in the student's array, and how many."""
        if array.ndim == 0:
            return f"{what} is {_show(array[()])}, {verdict}"
        indices = np.argwhere(mask)
        axes = self.axes.get(what, ()) if isinstance(self.axes, dict) else self.axes
        names = ("",) * max(array.ndim - len(axes), 0) + tuple(axes[-array.ndim :])
        if "time step" in names:
            indices = indices[np.argsort(indices[:, names.index("time step")], kind="stable")]
        at = tuple(int(i) for i in indices[0])
        named = ", ".join(f"{n} {i}" for n, i in zip(names, at, strict=True) if n)
        place = f"{list(at)}" + (f" ({named})" if named else "")
        count = f"{len(indices)} of {array.size} entries"
        return f"entry {place} of {what} is {_show(array[at])}, {verdict} ({count})"


class _Silent(_Comparison):
    def entry(self, verdict, array, mask, what):
        return verdict


@functools.cache
def _limits(tolerance, single, *dtypes):
    floats = [_float(dtype) for dtype in dtypes] + [np.dtype(np.float32)] * single
    width = min(np.finfo(dtype).bits for dtype in floats)
    if width == 16:
        rtol, atol = _HALF
    elif width == 32:
        rtol, atol = tolerance.rtol32, tolerance.atol32
    else:
        rtol, atol = tolerance.rtol64, tolerance.atol64
    return rtol, atol, _ROUNDINGS * float(max(np.finfo(dtype).eps for dtype in floats))


def as_array(value):
    """Return a number, an array or a nested list of numbers as an array, else None."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool | int | float):
        array = np.asarray(value)
        return array if array.dtype.kind in "biuf" else None
    if isinstance(value, list | tuple):
        if value and _NUMBERS.issuperset(map(type, value)):  # quick, for long lists
            array = np.asarray(value)
            return array if array.dtype.kind in "biuf" else None
        rows = [as_array(part) for part in value]
        if any(row is None or row.shape != rows[0].shape for row in rows):
            return None
        return np.stack(rows) if rows else np.zeros(0)
    return None


def _kind(value):
    """Name the kind of a plain value, with its article."""
    names = {str: "a text", bytes: "a bytes object", dict: "a dict", type(None): "None"}
    if type(value) in (list, tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return "an array"
    return names.get(type(value), "a number")


def _show(entry):
    value = entry.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _float(dtype):
    """Return the floating dtype whose precision numbers of ``dtype`` have."""
    return dtype if dtype.kind in "fc" else np.dtype(float)


def _wide(array):
    return np.complex128 if array.dtype.kind == "c" else np.float64


def _nan(array):
    return np.isnan(array) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)
