"""Argument checks that both backends share: every check reads the same for both.

A message has the form ``<argument> must <rule>, got <value>`` and ends with the likely fix.
Only ``shape`` and ``dtype`` are read here, which ndarrays and Tensors both have, so this
module imports neither NumPy nor PyTorch.
"""


def check_shape(name, array, expected, *, fix=None):
    """Raise ``ValueError`` unless ``array`` has the shape ``expected``.

    An integer in ``expected`` is an exact size, a letter stands for any size (the same letter
    for the same size), and a leading ``"..."`` for any number of leading axes:
    ``check_shape("k", k, ("...", "S", 4))`` accepts the shapes ``(7, 4)`` and ``(2, 3, 7, 4)``.
    """
    got = shape_of(name, array)
    trailing = expected[1:] if expected and expected[0] == "..." else expected
    leading = len(got) - len(trailing)
    letters = {}
    fits = leading == 0 or (leading > 0 and len(trailing) < len(expected))
    fits = fits and all(
        size == (letters.setdefault(want, size) if isinstance(want, str) else want)
        for want, size in zip(trailing, got[leading:], strict=True)
    )
    if not fits:
        raise ValueError(f"{name} must have shape {_show(expected)}, got {got}{_then(fix)}")


def check_not_empty(name, array, axis):
    """Raise ``ValueError`` if ``array`` has size 0 along ``axis``."""
    shape = shape_of(name, array)
    if shape[axis] == 0:
        raise ValueError(f"{name} must have an entry along axis {axis}, got shape {shape}")


def check_divisible(name, value, divisor_name, divisor, *, fix=None):
    """Raise ``ValueError`` unless the integer ``divisor`` divides ``value``.

    The message names the divisor, because that is what a caller can change.
    """
    check_positive(divisor_name, divisor)
    if value % divisor != 0:
        if fix is None:
            fix = f"use one of {[n for n in range(1, value + 1) if value % n == 0]}"
        raise ValueError(
            f"{divisor_name} must divide {name} = {value}, got {divisor}{_then(fix)}"
        )


def check_positive(name, value, *, fix=None):
    """Raise ``ValueError`` unless ``value`` is an integer of at least 1."""
    if not _is_integer(value) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}{_then(fix)}")


def check_choice(name, value, choices, *, fix=None):
    """Raise ``ValueError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        options = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {options}, got {value!r}{_then(fix)}")


def check_integers(name, array, *, low=None, high=None, fix=None):
    """Raise ``ValueError`` unless ``array`` holds integers with ``low <= entry < high``."""
    shape_of(name, array)
    dtype = dtype_name(array)
    if not dtype.startswith(("int", "uint")):
        raise ValueError(f"{name} must have an integer dtype, got {dtype}{_then(fix)}")
    for bound, outside, rule in (
        (low, lambda a: a < low, f"be at least {low}"),
        (high, lambda a: a >= high, f"be less than {high}"),
    ):
        if bound is not None and bool(outside(array).any()):
            value = array[outside(array)].flatten()[0].item()
            raise ValueError(f"{name} must {rule} everywhere, got {value}{_then(fix)}")


def check_ids(name, ids, V):
    """Raise ``ValueError`` unless ``ids`` holds integers in ``[0, V)``, as token ids do."""
    fix = f"the vocabulary has {V} entries, numbered from 0 to {V - 1}"
    check_integers(name, ids, low=0, high=V, fix=fix)


def shape_of(name, array):
    """Return ``array.shape`` as a tuple; a list or a number is a ``ValueError``."""
    if not hasattr(array, "shape"):
        raise ValueError(f"{name} must be an array or a tensor, got a {type(array).__name__}")
    return tuple(array.shape)


def dtype_name(array):
    """Return the name of a dtype without its library: ``"float32"``, ``"bool"``."""
    return str(array.dtype).removeprefix("torch.")


def _is_integer(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _show(expected):
    """Write a shape with letters as Python writes a tuple: ``(F, 4)``, ``(5,)``."""
    inside = ", ".join(str(size) for size in expected)
    return f"({inside},)" if len(expected) == 1 else f"({inside})"


def _then(fix):
    return f"; {fix}" if fix else ""
