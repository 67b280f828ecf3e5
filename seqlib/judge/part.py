"""Parts of answers: entries of tuples, lists and dicts."""

import numpy as np

MISSING = object()


def part_of(value, part):
    """Return one part of a plain value, or ``MISSING``; None stands for all of it."""
    if part is None:
        return value
    if isinstance(value, str | bytes):  # a letter is no part
        return MISSING
    try:
        # An array is not made a list for this: one of shape (2**31, 0) takes no memory itself.
        return np.asarray(value[part]) if isinstance(value, np.ndarray) else value[part]
    except (KeyError, IndexError, TypeError):
        return MISSING


def parts_of(value):
    """List the parts of a plain value: indices, keys, or ``[None]`` if it is a whole."""
    if isinstance(value, dict) and value:
        return list(value)
    if isinstance(value, tuple) and value:
        return list(range(len(value)))
    return [None]
