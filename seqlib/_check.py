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


def check_boolean(name, array, meaning):
    """Raise ``ValueError`` unless ``array`` is boolean; ``meaning`` says what True means."""
    shape_of(name, array)
    if dtype_name(array) != "bool":
        raise ValueError(
            f"{name} must be boolean ({meaning}), got dtype {dtype_name(array)}; "
            f"compare first, as in {name} == 1"
        )


def check_queries_and_keys(q, k):
    """Raise ``ValueError`` unless the products of all queries and keys can be formed."""
    check_shape("q", q, ("...", "T", "K"))
    fix = "q and k have the same width and leading axes"
    check_shape("k", k, (*q.shape[:-2], "S", q.shape[-1]), fix=fix)
    check_not_empty("k", k, -2)


def check_values(v, k):
    """Raise ``ValueError`` unless there is one value for each key."""
    check_shape("v", v, (*k.shape[:-1], "D"), fix="there is one value per key")


def check_additive(q, k, v, w_q, w_k, w_v):
    """Raise ``ValueError`` unless the arguments of additive attention fit together."""
    check_shape("q", q, ("...", "T", "H"))
    check_shape("k", k, (*q.shape[:-2], "S", "K"))
    check_not_empty("k", k, -2)
    check_values(v, k)
    check_shape("w_q", w_q, ("F", q.shape[-1]))
    check_shape("w_k", w_k, (w_q.shape[0], k.shape[-1]))
    check_shape("w_v", w_v, w_q.shape[:1])


def check_multi_head(x, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, context):
    """Raise ``ValueError`` unless the arguments of multi-head attention fit together."""
    check_shape("x", x, ("...", "T", "D"))
    D = x.shape[-1]
    check_shape("in_proj_weight", in_proj_weight, (3 * D, D), fix="rows for q, k and v in turn")
    check_shape("out_proj_weight", out_proj_weight, (D, D))
    if in_proj_bias is not None:
        check_shape("in_proj_bias", in_proj_bias, (3 * D,))
    if out_proj_bias is not None:
        check_shape("out_proj_bias", out_proj_bias, (D,))
    if context is not None:
        check_shape("context", context, (*x.shape[:-2], "S", D))


def check_mask(mask, scores_shape):
    """Raise ``ValueError`` unless ``mask`` can be an attention mask for scores of this shape.

    What is refused would run without an error somewhere and mean something else.
    """
    shape, dtype = shape_of("mask", mask), dtype_name(mask)
    scores_shape = tuple(scores_shape)
    either = "use mask != 0 if 1 means may attend, mask == 0 if 1 means blocked"
    if dtype != "bool" and "float" not in dtype:
        _refuse_mask("be boolean or float", f"dtype {dtype}", either)
    # Zip from the last axis: a mask with more axes than the scores would add axes to them.
    pairs = zip(reversed(shape), reversed(scores_shape), strict=False)
    if len(shape) > len(scores_shape) or any(m not in (1, size) for m, size in pairs):
        _refuse_mask(
            f"broadcast to the shape of the scores {scores_shape}",
            f"shape {shape}",
            "its last two axes are queries and keys; padding_mask gives (B, 1, 1, S)",
        )
    if dtype == "bool":
        return
    if bool((mask != mask).any()):
        _refuse_mask("hold no NaN", "nan", "0 * -inf is nan: use to_additive, not a product")
    if bool((mask == float("inf")).any()):
        _refuse_mask("hold no +inf", "inf", "-inf blocks a key")
    one, blocked = mask == 1, mask == -float("inf")
    if bool(one.any()) and bool((one | blocked | (mask == 0)).all()):
        if bool(blocked.any()):
            either = "convert a boolean mask with to_additive before adding it to a float mask"
        names = (("-inf", blocked), ("0", mask == 0), ("1", one))
        found = ", ".join(name for name, where in names if bool(where.any()))
        _refuse_mask("not be float with ones among 0 and -inf", f"the values {found}", either)


def _refuse_mask(rule, got, fix):
    raise ValueError(
        f"mask must {rule}, got {got}; {fix} (a boolean mask is True where a query may attend; "
        "a float mask is added to the scores: 0 = may attend, -inf = blocked)"
    )


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
