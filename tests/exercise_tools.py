"""Helpers of the tests of the assignments: judge an answer, and run cells of a notebook."""

import contextlib
import dataclasses
import inspect
import io
import json
import re
from pathlib import Path

import numpy as np
import torch

from seqlib.exercises import get_assignment
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted, observe
from seqlib.subject.inprocess import InProcess

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 50  # a busy machine is slow, which is no mistake of the answer
VALUE = re.compile(r"-inf|-?\d+(?:\.\d+)?|True|False")


class Exercises:
    """The tasks of one assignment, by function, and its two notebooks.

    Parameters
    ----------
    name : str
        Name of the assignment.
    """

    def __init__(self, name):
        self.name = name
        self.record = get_assignment(name)
        self.tasks = {task.function: task for task in self.record.tasks}
        self._patient = {
            function: dataclasses.replace(task, seconds=PATIENCE * task.seconds)
            for function, task in self.tasks.items()
        }

    def result_of(self, function, answer, seed=1, *, refusing=True):
        """Return the result of an answer to the task of that function.

        With ``refusing=False`` it may call the library functions that are the answer.
        """
        task = self._patient[function]
        if not refusing:
            task = dataclasses.replace(task, shortcuts=())
        return judge(task, InProcess(answer), seed)

    def by_id(self, folder, prefix=""):
        """Return the sources of the cells whose ids begin with the prefix, without it."""
        path = ROOT / folder / self.name / f"{self.name}.ipynb"
        return {
            cell["id"].removeprefix(prefix): "".join(cell["source"])
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
            if cell["id"].startswith(prefix)
        }

    def defined(self, folder, *names):
        """Run the set-up and some cells as a notebook would, and return the namespace."""
        cells, space = self.by_id(folder), {"__name__": "__main__"}
        for name in ("setup", *names):
            exec(cells[name], space)
        return space

    def printed(self, function, space):
        """Run the worked example of a task, and return what it prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(self.by_id("solutions")[f"try_{function}"], space)
        return out.getvalue()

    def expected(self, function):
        """Return what the comments of the worked example expect, as text."""
        cell = self.by_id("solutions")[f"try_{function}"]
        return " ".join(re.findall("# expected: (.*)", cell))


def draw(task, seed=1):
    """Return the cases of a task."""
    return task.cases(np.random.default_rng(seed))


def replies(task, function, seed):
    """Return what a function replies to each case of a task."""
    return [observe(task, Trusted(function), case) for case in draw(task, seed)]


def right_value(task, args):
    """Return the answer of the reference, also to handles."""
    request = {"do": "call", "args": list(args), "kwargs": {}}
    return Trusted(task.reference).perform(request).value


def passed(result):
    """Return the names of the criteria that are met."""
    return {c.name for c in result.criteria if c.passed}


def values(text):
    """Return the numbers and truth values of a text, as floats."""
    return [float({"True": 1, "False": 0}.get(v, v)) for v in VALUE.findall(text)]


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    module = inspect.getmodule(function)
    space = dict(vars(module))
    exec(compile(inspect.getsource(module), "<pasted>", "exec"), space)
    return space[function.__name__]


def map_arrays(f, value):
    """Apply a function to every part of an answer."""
    if isinstance(value, list | tuple):
        return type(value)(map_arrays(f, v) for v in value)
    return f(value)


def in_single_precision(function):
    """Return the same style working in float32, from its arguments to its result."""

    def single(value):
        if isinstance(value, list | tuple):
            return type(value)(map(single, value))
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype == torch.float64 else value
        is_double = getattr(value, "dtype", None) == np.float64
        return value.astype(np.float32) if is_double else value

    return lambda *args: single(function(*map(single, args)))
