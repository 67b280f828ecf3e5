"""Lines of a cell that IPython knows and Python does not, taken out before the cell is run.

An attempt to install a package or to call the shell ends in an error in the sandbox, and the
rest of its cell, often the answer itself, would not be run.
"""

import re

_NOT_RUN = "pip|conda|mamba|uv|matplotlib|load_ext|reload_ext|autoreload|config|cd|system|sx"
_LINE = re.compile(rf"^([ \t]*)(!|%(?:{_NOT_RUN})\b)(.*)$", re.MULTILINE)
# Cell magics whose cell is Python, and those that say what the cell is instead.
_PYTHON = re.compile(r"^\s*%%(?:time|timeit|capture|prun)\b.*")
_FOREIGN = re.compile(r"^\s*%%\w+")
_TIMED = re.compile(r"^([ \t]*)%(?:time|timeit)[ \t]+(?=[^-\s])", re.MULTILINE)
_ANY_MAGIC = re.compile(r"^([ \t]*)(%)(?=[A-Za-z])(.*)$", re.MULTILINE)


def runnable(source, *, plain=False):
    """Take out what is not run while grading.

    Parameters
    ----------
    source : str
        A code cell.
    plain : bool, default=False
        Whether all magics are taken out, for an interpreter without IPython.

    Returns
    -------
    source : str
        With the same number of lines.
    left_out : list of str
        The lines that were taken out.
    """
    first = source.strip().partition("\n")[0]
    if _PYTHON.match(first):
        source = source.replace(first, f"# {first}", 1)
    elif _FOREIGN.match(first):
        return "", [first]
    left_out = []

    def take_out(match):
        left_out.append(match.group(0).strip())
        return f"{match.group(1)}pass  # not run while grading"

    source = _LINE.sub(take_out, source)
    if plain:
        source = _ANY_MAGIC.sub(take_out, _TIMED.sub(r"\1", source))
    return source, left_out
