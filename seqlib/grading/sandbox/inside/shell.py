"""The interpreter of a notebook's cells: IPython without a kernel, its output kept and cut.

Outputs are dicts in nbformat's form. Only text and PNG pictures are kept: HTML, JavaScript and
SVG of a student would run in the browser of whoever reads the graded notebook.
"""

import ast
import base64
import io
import sys
import time
import warnings

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

KINDS = ("text/plain", "image/png")
MAX_DATA = 150_000  # characters of one output
MAX_TRACEBACK = 20_000


class Output:
    """Outputs of the current cell, within a budget for the whole notebook.

    Parameters
    ----------
    budget : int
        Characters that may still be kept; a note stands where the rest was cut.
    """

    def __init__(self, budget):
        self.budget = budget
        self._outputs = []
        self._full = False

    def write(self, name, text):
        """Add text to the stream ``name``."""
        kept = text[: max(self.budget, 0)]
        self.budget -= len(kept)
        if kept:
            last = self._outputs[-1] if self._outputs else {}
            if last.get("name") != name:
                self._outputs.append({"output_type": "stream", "name": name, "text": []})
            self._outputs[-1]["text"].append(kept)
        if len(kept) < len(text):
            self._note()

    def add(self, output, size):
        """Add another output of ``size`` characters, if it fits."""
        if size > self.budget:
            self._note()
        else:
            self.budget -= size
            self._outputs.append(output)

    def take(self):
        """Return the outputs and start anew with what is left of the budget."""
        taken, self._outputs = self._outputs, []
        for output in taken:
            if output["output_type"] == "stream":
                output["text"] = "".join(output["text"])
        return taken

    def _note(self):
        if not self._full:
            self._full = True
            text = ["\n[the output is longer than allowed; the rest was left out]\n"]
            self._outputs.append({"output_type": "stream", "name": "stderr", "text": text})


class Stream(io.TextIOBase):
    """``sys.stdout`` or ``sys.stderr`` of a cell."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, output, name):
        self._output, self._name = output, name

    @property
    def name(self):
        """Say which stream it is, as the real ones do."""
        return f"<{self._name}>"

    def writable(self):
        """Say yes."""
        return True

    def write(self, text):
        """Keep ``text`` within the budget."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._output.write(self._name, str(text))
        return len(text)


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, **_):
        kept = _kept(data)
        self.shell.output.add(
            {"output_type": "display_data", "data": kept, "metadata": {}}, _size(kept)
        )

    def clear_output(self, wait=False):
        pass


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        kept = _kept(format_dict)
        output = {"output_type": "execute_result", "data": kept, "metadata": {}}
        output["execution_count"] = self.prompt_count
        self.shell.output.add(output, _size(kept))

    def finish_displayhook(self):
        pass


class _PythonFirst(TransformerManager):
    """Looks for magics only in what is not Python: that takes longer than to run the cell."""

    def __init__(self):
        super().__init__()
        self._lists = ("cleanup_transforms", "line_transforms", "token_transformers")
        self._ours = [list(getattr(self, name)) for name in self._lists]

    def transform_cell(self, cell):
        """Return the cell as Python."""
        if self.may_change(cell) or not _is_python(cell):
            return super().transform_cell(cell)
        return _whole_lines(cell)

    def may_change(self, cell):
        """Whether IPython could read something else in a cell that is Python."""
        if self._ours != [getattr(self, name) for name in self._lists]:
            return True
        # What starts like a prompt of IPython is Python too.
        return cell[:1].isspace() or cell.startswith("In [")


def _whole_lines(cell):
    return cell if cell.endswith("\n") else cell + "\n"


def _is_python(source):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<cell>", "exec", ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


class Shell(InteractiveShell):
    """IPython that keeps what cells put out instead of printing it."""

    display_pub_class = _Publisher
    displayhook_class = _Hook

    def __init__(self, **options):
        self.output = Output(0)
        super().__init__(**options)

    def enable_gui(self, gui=None):
        """Do nothing: there is no screen."""

    def ask_exit(self):
        """Do nothing: ``exit`` in a cell does not end the notebook."""

    def run_plain(self, source):
        """Run a cell of Python as ``run_cell`` does, in a third of the time.

        What is left out is for cells that wait for something, that a magic or an extension
        changes or watches, and for a history on a disk.

        Returns
        -------
        bool or None
            Whether there was no error; None if the cell is another one, which was not run.
        """
        watched = self.events.callbacks
        if (
            self.input_transformer_manager.may_change(source)
            or self.ast_transformers
            or watched["pre_run_cell"]
            or watched["post_run_cell"]
        ):
            return None
        cell, count = _whole_lines(source), self.execution_count
        try:
            name = self.compile.cache(cell, count)
            parts = self._compiled(self.compile.ast_parse(cell, filename=name).body, name)
        except Exception:  # no Python, or not as it stands
            return None
        if not parts:
            return None
        self.execution_count = count + 1
        self.events.trigger("pre_execute")
        self.history_manager.store_inputs(count, cell, source)
        result = ExecutionResult(None)
        with self.builtin_trap, self.display_trap:
            self.displayhook.exec_result = result
            ok = all(self._ran(part, result) for part in parts)
            self.displayhook.exec_result = None
        self.last_execution_succeeded, self.last_execution_result = ok, result
        self.events.trigger("post_execute")
        return ok

    def _compiled(self, body, name):
        """Return the code of a cell; the value of a last expression is shown."""
        if body and isinstance(body[-1], ast.Expr):
            first, last = body[:-1], [(ast.Interactive(body[-1:]), "single")]
        else:
            first, last = body, []
        parts = [(ast.Module(first, []), "exec")] if first else []
        return [self.compile(tree, name, mode) for tree, mode in parts + last]

    def _ran(self, code, result):
        """Run code that waits for nothing, and return whether there was no error."""
        try:
            self.run_code(code, result).send(None)
        except StopIteration as end:
            return not end.value
        raise RuntimeError("the cell waits for something")

    def _showtraceback(self, etype, evalue, stb):
        text = "\n".join(stb)[:MAX_TRACEBACK]
        name, value = str(getattr(etype, "__name__", etype))[:100], str(evalue)[:2000]
        self.output.add(
            {
                "output_type": "error",
                "ename": name,
                "evalue": value,
                "traceback": text.split("\n"),
            },
            len(text) + len(name) + len(value),
        )


def make_shell():
    """Return the shell of this process."""
    config = Config()
    config.HistoryManager.enabled = False  # it would start a thread
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Context"
    shell = Shell.instance(config=config)
    shell.display_formatter.active_types = list(KINDS)
    shell.input_transformer_manager = _PythonFirst()
    return shell


def begin(shell, budget):
    """Send what is printed to ``shell.output``, up to ``budget`` characters; empty stdin."""
    shell.output = Output(budget)
    sys.stdout, sys.stderr = Stream(shell.output, "stdout"), Stream(shell.output, "stderr")
    sys.stdin = io.StringIO()


def run_cell(shell, source):
    """Run one cell.

    Returns
    -------
    dict
        ``ok`` (no error), ``outputs``, ``seconds``, ``count`` (the cell's number).
    """
    start = time.perf_counter()
    try:
        ok = shell.run_plain(source)
        if ok is None:
            ok = bool(shell.run_cell(source, store_history=True).success)
    except BaseException as error:  # one that IPython lets through
        ok = False
        shell._showtraceback(type(error), error, [])
    return {
        "ok": ok,
        "outputs": shell.output.take(),
        "seconds": time.perf_counter() - start,
        "count": shell.execution_count - 1,
    }


def _kept(data):
    kept = {}
    for kind in KINDS:
        value = data.get(kind)
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode()
        if isinstance(value, str):
            cut = value if len(value) <= MAX_DATA else "[an output that is too long]"
            kept[kind if cut is value else "text/plain"] = cut
    return kept


def _size(data):
    return sum(len(value) for value in data.values())
