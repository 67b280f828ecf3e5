"""A course of one small assignment, for tests of grading that need no real one.

Two functions of 40 points each, ``double`` and ``add``, and a question of 20 points.
"""

import contextlib
import copy
import json
import re
import shutil
import sys
import types
from pathlib import Path

import pytest

import seqlib.exercises
from seqlib.exercises.record import Assignment, Case, Criterion, Misconception, Task, Written

RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "add": "def add(x, y):\n    return x + y",
}
ANSWER = "Doubling adds a number to itself."


def _variant(x, wrong=frozenset()):
    return 2 * x + 1 if "one_more" in wrong else 2 * x


def _cases_of(width):
    def cases(rng):
        shapes = ((3,), (2, 5), (1,))
        return [
            Case(tuple(rng.standard_normal(s) for _ in range(width)), label=f"shape {s}")
            for s in shapes
        ]

    return cases


ASSIGNMENT = Assignment(
    name="tiny",
    title="Tiny",
    tasks=(
        Task(
            id="tiny.double",
            title="Doubling",
            signature="(x)",
            equations=(),
            page="tiny#double",
            reference=lambda x: 2 * x,
            cases=_cases_of(1),
            criteria=(Criterion("values", 40.0, "the values"),),
            misconceptions=(
                Misconception("one_more", "One was added.", "tiny#double", "made for a test"),
            ),
            variant=_variant,
        ),
        Task(
            id="tiny.add",
            title="Adding",
            signature="(x, y)",
            equations=(),
            page="tiny#add",
            reference=lambda x, y: x + y,
            cases=_cases_of(2),
            criteria=(Criterion("values", 40.0, "the values"),),
        ),
    ),
    written=(Written("why", 20.0, ("names the sum: 20",)),),
)


def _grading(key, *, grade=False, solution=False, locked=False, points=None):
    data = {
        "schema_version": 3,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
        "grade_id": key,
    }
    return data if points is None else data | {"points": points}


def _cell(kind, key, source, grading=None):
    cell = {"cell_type": kind, "id": key, "metadata": {}, "source": source}
    if grading is not None:
        cell["metadata"]["nbgrader"] = grading
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
    return cell


def _solved(name):
    head, body = RIGHT[name].split("\n")
    region = f"    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
    return _cell("code", name, f"{head}\n{region}", _grading(name, solution=True))


def _test(name):
    grading = _grading(f"test-{name}", grade=True, locked=True, points=40)
    return _cell("code", f"test-{name}", f'check("tiny.{name}", {name})', grading)


def source():
    """Return the instructor's notebook."""
    cells = [
        _cell("markdown", "intro", "# Tiny"),
        _cell(
            "code",
            "setup",
            "import numpy as np\nfrom seqlib import check",
            _grading("setup", locked=True),
        ),
        _cell("markdown", "text-double", "Double it.", _grading("text-double", locked=True)),
        _solved("double"),
        _test("double"),
        _cell("markdown", "text-add", "Add them.", _grading("text-add", locked=True)),
        _solved("add"),
        _test("add"),
        _cell("markdown", "question", "Why?", _grading("question", locked=True)),
        _cell("markdown", "why", ANSWER, _grading("why", grade=True, solution=True, points=20)),
    ]
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


STUB = "# YOUR CODE HERE, in place of the next line\nraise NotImplementedError()"


def released():
    """Return the students' notebook, made without nbgrader; it has no checksums."""
    notebook = source()
    for cell in notebook["cells"]:
        stub = STUB.replace("\n", "\n    ")
        cell["source"] = re.sub(
            r"### BEGIN SOLUTION.*### END SOLUTION", stub, cell["source"], flags=re.DOTALL
        )
        if cell["id"] == "why":
            cell["source"] = "YOUR ANSWER HERE"
    return notebook


def solved(**answers):
    """Return a student's notebook: the right answers, or those that are given."""
    notebook = released()
    for cell in notebook["cells"]:
        right = RIGHT | {"why": ANSWER}
        if cell["id"] in right:
            cell["source"] = answers.get(cell["id"], right[cell["id"]])
    return notebook


def cell_of(notebook, key):
    """Return the cell with an id."""
    return next(cell for cell in notebook["cells"] if cell["id"] == key)


def extra(source, kind="code", **fields):
    """Return a student's own cell."""
    return copy.deepcopy(_cell(kind, fields.pop("id", "mine"), source) | fields)


def as_bytes(notebook):
    """Return the file of a notebook."""
    return json.dumps(notebook, indent=1, sort_keys=True).encode()


def register(monkeypatch):
    """Make the assignment known to ``seqlib.exercises``."""
    module = types.ModuleType("seqlib.exercises.tiny")
    module.ASSIGNMENT = ASSIGNMENT
    monkeypatch.setitem(sys.modules, "seqlib.exercises.tiny", module)
    monkeypatch.setattr(seqlib.exercises, "ASSIGNMENTS", ("tiny",))


@contextlib.contextmanager
def tiny_grader(root, **options):
    """Give a worker process a grader of this course, which its own ``seqlib`` does not know."""
    from seqlib.grading.course import Course
    from seqlib.grading.grader import Grader

    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        with Grader(Course(root, **options), "tiny", trust_students=True) as grader:
            yield grader


def make_course(root, *, release=True):
    """Lay out the course in a folder, and return it."""
    from seqlib.grading.course import Course

    config = Path(__file__).resolve().parents[1] / "nbgrader_config.py"
    shutil.copy(config, root / config.name)
    course = Course(root)
    write(course.source("tiny"), source())
    if release:
        write(course.release_file("tiny"), released())
    return course


def submit(course, student, notebook, name="tiny.ipynb"):
    """Put a notebook, or the bytes of a file, among the submissions."""
    write(course.submission(student, "tiny") / name, notebook)


def write(path, notebook):
    """Write a notebook, or bytes, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else as_bytes(notebook))
