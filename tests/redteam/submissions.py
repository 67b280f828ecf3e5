"""What an attack is, and how submissions of the assignment ``attention`` are put together."""

import copy
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from seqlib.exercises import get_assignment
from seqlib.grading.course import Course
from seqlib.grading.samples import answers
from seqlib.grading.samples.damage import cell_of, to_bytes
from seqlib.grading.samples.sample_class import SampleClass

ROOT = Path(__file__).resolve().parents[2]
NAME = "attention"
FILE = f"{NAME}.ipynb"
TASKS = {task.function: task for task in get_assignment(NAME).tasks}
FULL = {name: task.points for name, task in TASKS.items()}
NOTHING = dict.fromkeys(TASKS, 0.0)


def all_but(*names):
    """Return the scores of work that is right except for some functions."""
    return FULL | dict.fromkeys(names, 0.0)


def only(*names):
    """Return the scores of work of which some functions alone are right."""
    return NOTHING | {name: FULL[name] for name in names}


@dataclass(frozen=True)
class Attack:
    """One submission with what it deserves.

    Attributes
    ----------
    name : str
        What it does.
    threats : tuple of int
        Rows of the threat catalogue that it belongs to.
    make : callable
        ``make(kit) -> {file name: bytes}``.
    scores : dict
        Points by function; with ``at_most`` they are bounds.
    states : tuple of str
        States in which it may end.
    everywhere : bool
        Whether it is tried at each isolation level: the level matters.
    shows, hides : tuple of str
        What the graded notebook must, and must not contain.
    """

    name: str
    threats: tuple
    make: Callable = field(repr=False)
    scores: dict = field(default_factory=lambda: FULL)
    states: tuple = ("graded",)
    everywhere: bool = False
    at_most: bool = False
    shows: tuple = ()
    hides: tuple = ()


class Kit:
    """Parts of submissions.

    Parameters
    ----------
    facts : dict
        What an attacker may know of the machine: see
        ``seqlib.grading.sandbox.outside.Outside``; ``root`` is the course's folder.
    """

    def __init__(self, facts):
        self.facts = facts
        self._class = SampleClass(Course(ROOT), NAME)
        self.solutions = self._class.solutions

    def right(self, cells=None, *, first=(), last=(), after=None):
        """Return a solved notebook.

        Parameters
        ----------
        cells : dict, optional
            ``{function: source}`` of the answers that differ.
        first, last : sequence of str
            Sources of own cells behind the set-up, and at the end.
        after : dict, optional
            ``{id: source}`` of own cells behind some cell.
        """
        return self._notebook(self._class.notebook(cells), first, last, after or {})

    def wrong(self, cells=None, *, first=(), last=(), after=None):
        """Return a notebook whose answers are all zeros, without the trials of the release."""
        zeros = {name: answers.zeros(task) for name, task in TASKS.items()}
        notebook = self._class.notebook(zeros | (cells or {}))
        notebook["cells"] = [c for c in notebook["cells"] if not c["id"].startswith("try_")]
        return self._notebook(notebook, first, last, after or {})

    def tricked(self, source, *, right=False):
        """Return a notebook in which ``trick(function, name)`` replaces every answer.

        Parameters
        ----------
        source : str
            The first cell, which defines ``trick``.
        right : bool, default=False
            Whether ``function`` is a right answer.
        """
        notebook = (self.right if right else self.wrong)(first=[source])
        notebook["cells"] = [c for c in notebook["cells"] if not c["id"].startswith("try_")]
        for name in TASKS:
            cell_of(notebook, name)["source"] += f"\n\n\n{name} = trick({name}, {name!r})"
        return notebook

    def blank(self):
        """Return the release."""
        return self._class.notebook(solved=False)

    def _notebook(self, notebook, first, last, after):
        def insert(key, sources):
            place = 1 + next(i for i, c in enumerate(notebook["cells"]) if c["id"] == key)
            notebook["cells"][place:place] = [
                code(s, f"{key}-{i}") for i, s in enumerate(sources)
            ]

        insert("setup", first)
        for key, source in after.items():
            insert(key, [source])
        notebook["cells"] += [code(s, f"last-{i}") for i, s in enumerate(last)]
        return notebook


def code(source, key):
    """Return a student's own code cell."""
    return {
        "cell_type": "code",
        "id": key,
        "metadata": {},
        "source": textwrap.dedent(source).strip("\n"),
        "outputs": [],
        "execution_count": None,
    }


def text(source, key="words", kind="markdown", **fields):
    """Return a student's own cell of another type."""
    return {"cell_type": kind, "id": key, "metadata": {}, "source": source} | fields


def one(notebook):
    """Return the only file of a submission."""
    return {FILE: notebook if isinstance(notebook, bytes) else to_bytes(notebook)}


def changed(notebook, key, **fields):
    """Return a notebook of which one cell differs."""
    notebook = copy.deepcopy(notebook)
    cell_of(notebook, key).update(fields)
    return notebook


def regraded(notebook, key, **data):
    """Return a notebook of which the grading data of one cell differ."""
    notebook = copy.deepcopy(notebook)
    cell_of(notebook, key)["metadata"]["nbgrader"].update(data)
    return notebook


def tests(notebook):
    """Return the ids of the test cells."""
    return [c["id"] for c in notebook["cells"] if c["id"].startswith("test_")]


def function(name, *lines):
    """Return a cell in which a function of the assignment has these lines as its body."""
    body = textwrap.indent("\n".join(textwrap.dedent(line) for line in lines), "    ")
    return f"def {name}(*args, **kwargs):\n{body}"
