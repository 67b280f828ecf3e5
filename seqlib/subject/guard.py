"""What surrounds a call of a student's code: its output, warnings and errors are caught."""

import contextlib
import io
import os
import sys
import traceback
import warnings

import numpy as np

MAX_OUTPUT = 4000
MAX_MESSAGE = 300
MAX_FRAMES = 4
MAX_WARNINGS = 5

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
# Number of the null device; 0 where it has none, as on Windows.
_NULL = os.stat(os.devnull).st_rdev if os.path.exists(os.devnull) else 0


class Capture:
    """Context in which student code runs: nothing that it prints or warns reaches the caller.

    File descriptor 2 goes to the null device meanwhile, because a kernel shows what C code
    writes there as stderr, and nbgrader gives 0 points to a cell with stderr.

    Attributes
    ----------
    stdout : str
        What was printed, cut to ``MAX_OUTPUT`` characters. Complete after the context.
    warnings : list of str
        The first few different warnings, ``"RuntimeWarning: ..."``.
    """

    def __init__(self):
        self.stdout = ""
        self.warnings = []

    def __enter__(self):
        self._out = _Bounded(MAX_OUTPUT)
        self._before = sys, (sys.stdin, sys.stdout, sys.stderr)
        # A notebook that sets np.seterr(all="raise") is not wronged by exp(-inf).
        self._contexts = (
            _NullDescriptor2(),
            warnings.catch_warnings(),
            np.errstate(all="warn", under="ignore"),
        )
        for context in self._contexts:
            context.__enter__()
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), self._out, _Bounded(0)
        warnings.simplefilter("always")
        warnings.showwarning = self._record
        return self

    def __exit__(self, *exc):
        for context in reversed(self._contexts):
            context.__exit__(*exc)
        system, streams = self._before
        system.stdin, system.stdout, system.stderr = streams
        self.stdout = self._out.text()

    def _record(self, message, category, *_, **__):
        if len(self.warnings) < MAX_WARNINGS:
            line = one_line(f"{category.__name__}: {message}")
            if line not in self.warnings:
                self.warnings.append(line)


def describe(error):
    """Return ``"ValueError: ..."`` on one line; a broken ``__str__`` is no obstacle."""
    try:
        text = str(error)
    except BaseException:
        text = ""
    name = str(type(error).__name__)
    return one_line(f"{name}: {text}" if text else name)


def frames(error):
    """Return the innermost frames of the student's own code: ``("line 3 in attention",)``."""
    found = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        own = not file.startswith((_HERE, _LIBRARY, "<frozen")) and not any(
            part in file for part in ("site-packages", "dist-packages")
        )
        entry = f"line {line} in {frame.f_code.co_name}"
        if own and entry not in found[-1:]:
            found.append(one_line(entry))
    return found[-MAX_FRAMES:]


def one_line(text):
    """Return printable text without line breaks, cut to ``MAX_MESSAGE`` characters."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text[:4000]).split())
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 3] + "..."


class _Bounded(io.TextIOBase):
    """A text stream that keeps the first ``limit`` characters and drops the rest."""

    encoding = "utf-8"

    def __init__(self, limit):
        self._left = limit
        self._parts = []
        self._cut = False

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        kept = str(text[: self._left])
        if kept:
            self._parts.append(kept)
        self._left -= len(kept)
        self._cut = self._cut or len(kept) < len(text)
        return len(text)

    def text(self):
        return "".join(self._parts) + ("\n[output cut]" if self._cut else "")


class _NullDescriptor2:
    """Context in which file descriptor 2 is the null device, where there is one."""

    _saved = None

    def __enter__(self):
        if _is_null(2):  # as always in the sandbox
            return
        with contextlib.suppress(OSError, AttributeError):
            saved = os.dup(2)
            with open(os.devnull, "wb") as null:
                os.dup2(null.fileno(), 2)
            self._saved = saved

    def __exit__(self, *exc):
        if self._saved is not None:
            os.dup2(self._saved, 2)
            os.close(self._saved)


def _is_null(descriptor):
    try:
        return bool(_NULL) and os.fstat(descriptor).st_rdev == _NULL
    except OSError:
        return False
