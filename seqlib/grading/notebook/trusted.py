"""A notebook run in this process, without any protection: for code that is trusted.

``seqlib check`` runs a student's own notebook this way on the student's machine.
Only the standard library and the judge are needed, so it works on every system.
"""

import ast
import contextlib
import io
import linecache
import sys
import time
import traceback
from typing import NamedTuple

from seqlib.grading.notebook.magics import runnable
from seqlib.grading.sandbox.outputs import clean_outputs
from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply

MAX_OUTPUT = 200_000


class CellResult(NamedTuple):
    """What came of one cell; the fields of ``seqlib.grading.sandbox.submission.CellResult``."""

    outputs: list
    ok: bool
    seconds: float
    fault: str | None = None


class Missing:
    """A subject for a name that the notebook does not define."""

    def __init__(self, error):
        self._reply = Reply(error=error)

    def perform(self, request):
        """Reply with the error, whatever is asked."""
        return self._reply

    def fresh(self):
        """Return itself."""
        return self

    def close(self):
        """Do nothing."""


class TrustedSubmission:
    """The cells of a notebook, run one after the other in a namespace of this process."""

    given_up = None

    def __init__(self):
        self._names = {"__name__": "__main__"}
        self._count = 0

    def run_cell(self, source):
        """Run a cell after those run so far and return its :class:`CellResult`."""
        start = time.perf_counter()
        self._count += 1
        source, _ = runnable(source, plain=True)
        file = f"<cell {self._count}>"
        # Tracebacks and inspect.getsource find the text of a cell here.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        out, err, outputs, ok = io.StringIO(), io.StringIO(), [], True
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _no_input(),
        ):
            try:
                value = self._execute(source, file)
                if value is not None:
                    data = {"text/plain": repr(value)}
                    outputs.append({"output_type": "execute_result", "data": data})
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                ok = False
                outputs.append(_error(error))
        for name, stream in (("stderr", err), ("stdout", out)):
            if stream.getvalue():
                text = stream.getvalue()
                outputs.insert(0, {"output_type": "stream", "name": name, "text": text})
        cleaned = clean_outputs(outputs, MAX_OUTPUT)
        return CellResult(cleaned, ok, time.perf_counter() - start)

    def subject(self, name):
        """Return a function of the notebook as a subject."""
        if name not in self._names:
            return Missing(f"NameError: name {name!r} is not defined")
        return InProcess(self._names[name])

    def end_state(self, name):
        """Return the same for a notebook that has run to its end."""
        return self.subject(name)

    def close(self):
        """Forget the notebook's names."""
        self._names.clear()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _execute(self, source, file):
        """Run a cell; return the value of its last line if that is an expression."""
        tree = ast.parse(source, file)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, file, "exec"), self._names)
        return None if last is None else eval(compile(last, file, "eval"), self._names)


def _error(error):
    # The first frame is the one above.
    below = error.__traceback__.tb_next.tb_next if error.__traceback__.tb_next else None
    lines = traceback.format_exception(type(error), error, below)
    return {
        "output_type": "error",
        "ename": type(error).__name__,
        "evalue": str(error),
        "traceback": "".join(lines).rstrip().split("\n"),
    }


@contextlib.contextmanager
def _no_input():
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        yield
    finally:
        sys.stdin = stdin
