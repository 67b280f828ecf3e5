r"""Cutting a text into pieces before pairs are counted: words, numbers, punctuation, spaces.

Merges stay inside a piece, so that no token joins the end of one word with the next. A
pattern is a regular expression that says what a piece is; it may use ``\p{L}`` (a letter),
``\p{N}`` (a number) and other general categories of Unicode, and ``\s`` means the property
White_Space, as in the engines that the published tokenizers use. Python's ``re`` knows
neither, so both are written out as ranges.

Which characters are letters is what the Unicode version of your Python says
(``unicodedata.unidata_version``; 14.0 in Python 3.11). A character that a later version adds
counts as neither letter nor number until then.
"""

import re
import warnings
from functools import cache

from seqlib.text.categories import character_class

__all__ = ["GPT2_PATTERN", "GPT4_PATTERN", "pretokenize"]

_SPACE_BEFORE_WORD = r"\s+(?!\S)"  # all of a run of spaces but the last, which joins the word

GPT2_PATTERN = "|".join(
    (
        r"'(?:s|t|re|ve|m|ll|d)",  # the ends of it's, don't, we're
        r" ?\p{L}+",
        r" ?\p{N}+",
        r" ?[^\s\p{L}\p{N}]+",
        _SPACE_BEFORE_WORD,
        r"\s+",
    )
)

GPT4_PATTERN = "|".join(
    (
        r"'(?i:s|t|re|ve|m|ll|d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",  # a word takes one sign before it along, not only a space
        r"\p{N}{1,3}",  # long numbers in groups of three digits
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s+(?![\s\S])",  # spaces and line breaks that nothing follows
        r"\s*[\r\n]+",  # a line break ends a piece, with the spaces before it
        _SPACE_BEFORE_WORD,
        r"\s+",
    )
)

_BASIC_PLANE, _ALL = 0x10000, 0x110000
_BEYOND_BASIC_PLANE = re.compile(r"[\U00010000-\U0010ffff]")
_PARTS = re.compile(
    r"\\(?P<p>[pP])\{(?P<name>\w+)\}|\\(?P<escaped>.)|(?P<opening>\[\^?\]?)|.", re.DOTALL
)


def pretokenize(text, pattern=GPT4_PATTERN):
    r"""Cut a text into pieces: ``"It's 1234"`` gives ``It``, ``'s``, a space, ``123``, ``4``.

    Parameters
    ----------
    text : str
        Any text.
    pattern : str, default=GPT4_PATTERN
        Regular expression of one piece. A character at which no piece starts is a piece of
        its own.

    Returns
    -------
    list of str
        The pieces in order; joined they are the text.

    Raises
    ------
    ValueError
        If ``pattern`` is no regular expression, has a group that captures, or uses a class
        whose meaning differs between engines (``\w``, ``\d``, ``\b``).

    References
    ----------
    The patterns are those of GPT-2 (Radford et al., 2019, "Language Models are Unsupervised
    Multitask Learners", with its published code) and of the encoding cl100k_base in tiktoken
    0.14, which GPT-4 uses.
    """
    # Ranges beyond the basic plane make ``re`` slow for all characters, by a factor of nine,
    # and few texts need them.
    beyond = not text.isascii() and _BEYOND_BASIC_PLANE.search(text)
    return compile_pattern(pattern, _ALL if beyond else _BASIC_PLANE).findall(text)


@cache
def compile_pattern(pattern, limit=_BASIC_PLANE):
    """Compile a pattern for texts whose code points are below ``limit``."""
    if not isinstance(pattern, str):
        raise ValueError(f"pattern must be a str, got {pattern!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = re.compile(_for_re(pattern, limit) + r"|[\s\S]")
    except (re.error, Warning) as error:
        raise ValueError(
            f"pattern must be a regular expression, got {pattern!r}: {error}"
        ) from error
    if compiled.groups:
        raise ValueError(
            f"pattern must have no group that captures, got {pattern!r}; write (?:...)"
        )
    return compiled


def _for_re(pattern, limit):
    """Write a pattern so that Python's ``re`` reads it as other engines do."""
    written, inside = [], False
    for part in _PARTS.finditer(pattern):
        text, escaped = part[0], part["escaped"]
        if part["name"] or escaped in ("s", "S"):
            negate = escaped == "S" or part["p"] == "P"
            text = character_class(part["name"] or "space", limit, negate=negate)
            text = text if inside else f"[{text}]"
        elif escaped and escaped.isalnum() and escaped not in "nrtfv":
            raise ValueError(
                f"pattern must use no \\{escaped}, which differs between engines, "
                f"got {pattern!r}; write \\p{{L}}, \\p{{N}} or \\s"
            )
        elif part["opening"] and inside:
            raise ValueError(
                f"pattern must have no [ inside a class, got {pattern!r}; write \\["
            )
        elif part["opening"]:
            inside = True
        elif text == "]":
            inside = False
        elif text == "$" and not inside:
            text = r"\Z"  # in ``re``, $ also matches before a line break at the end
        written.append(text)
    return "".join(written)
