"""Unicode's classes of characters, written out as ranges for Python's ``re``.

``re`` knows no class of all letters, so a pattern gets them as ranges, made from the table
of characters that Python carries (`unicodedata`).
"""

import unicodedata
from functools import cache
from itertools import groupby

__all__ = ["character_class"]

# The property White_Space. Python's own \\s has the four separators U+001C to U+001F as well.
_WHITE_SPACE = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)


@cache
def character_class(name, limit, *, negate=False):
    r"""Return a class of characters as ranges: the space is ``\U00000020-\U00000020``.

    Parameters
    ----------
    name : str
        A general category (``"Lu"``, capital letters) or its first letter for all that start
        with it (``"L"``, letters), or ``"space"`` for white space.
    limit : int
        Code points from here on are left out.
    negate : bool, default=False
        Return all other characters instead.

    Returns
    -------
    str
        Ranges, to be put between ``[`` and ``]``.

    Raises
    ------
    ValueError
        If no character has this category.
    """
    if name == "space":
        ranges = list(_WHITE_SPACE)
    else:
        ranges = [run[1:] for run in _runs(limit) if run[0].startswith(name)]
    if not ranges:
        raise ValueError(
            f"pattern must name general categories of Unicode, got \\p{{{name}}}; "
            "L is a letter, Lu a capital letter, N a number, P punctuation"
        )
    if negate:
        ends = [-1, *(last for _, last in ranges)]
        starts = [*(first for first, _ in ranges), limit]
        pairs = zip(ends, starts, strict=True)
        ranges = [(end + 1, start - 1) for end, start in pairs if start > end + 1]
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)


@cache
def _runs(limit):
    """Return neighbours of equal category as ``(category, first, last)``."""
    runs, first = [], 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(limit)))):
        length = sum(1 for _ in run)
        runs.append((category, first, first + length - 1))
        first += length
    return runs
