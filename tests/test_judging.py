"""Functions are asked again at the end of the notebook, and in their places where need be."""

import pytest
import tiny_course
from sandbox_tools import open_sandbox
from tiny_course import extra, solved, submit

from seqlib.grading.grader import Grader
from seqlib.grading.records import recorded
from seqlib.grading.sandbox.remote import EndState, RemoteSubject

FULL = {"tiny.double": 40.0, "tiny.add": 40.0}


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    return tiny_course.make_course(tmp_path)


@pytest.fixture(scope="module", params=["best", "landlock"])
def level(request):
    with open_sandbox(request.param, plots=False) as sandbox:
        return sandbox.level


@pytest.fixture
def opened(monkeypatch):
    """Return a list of each function for which a process was taken, and of which kind."""
    found = []
    for kind in (RemoteSubject, EndState):

        def opening(self, original=kind._open, kind=kind):
            found.append((kind, self._expression))
            return original(self)

        monkeypatch.setattr(kind, "_open", opening)
    return found


def grade(course, level, *cells, **answers):
    """Return the scores of a notebook with some answers and with further cells at its end."""
    notebook = solved(**answers)
    more = [extra(source, id=f"mine-{i}") for i, source in enumerate(cells)]
    submit(course, "s001", {**notebook, "cells": notebook["cells"] + more})
    with Grader(course, "tiny", level=level) as grader:
        record = grader.grade("s001")
    return {task: entry["score"] for task, entry in record["tasks"].items()}


def test_each_function_of_a_right_notebook_gets_one_process(course, level, opened):
    assert grade(course, level) == FULL
    assert opened == [
        (RemoteSubject, "double"),
        (RemoteSubject, "add"),
        (EndState, "double"),
        (EndState, "add"),
    ]


CHANGES = {
    "the function itself": "def double(x):\n    return 0 * x",
    "what it uses": "factor = 7",
    "what its name means": "double = 1.0",
    "its process": "def double(x):\n    import os\n    os._exit(0)",
    "its time": "def double(x):\n    while True:\n        pass",
}


@pytest.mark.parametrize("source", CHANGES.values(), ids=CHANGES)
def test_what_a_later_cell_changes_costs_nothing(course, level, opened, source):
    answer = "factor = 2\ndef double(x):\n    return factor * x"
    assert grade(course, level, source, double=answer) == FULL
    # In doubt it is judged once more, with a second process of its own.
    assert opened.count((RemoteSubject, "double")) == 3
    assert opened.count((EndState, "double")) == 1


def test_a_cell_that_ends_the_process_costs_nothing(course, level, opened):
    assert grade(course, level, "import os\nos._exit(0)") == FULL
    assert len(opened) == 4


def test_only_another_process_of_a_task_decides(course, level):
    """The notebook's own has the number 1 where it has a namespace for itself."""
    answer = "import os\ndef double(x):\n    return 2 * x if os.getpid() != 1 else 0 * x"
    assert grade(course, level, double=answer) == FULL


SECOND = """
import os
first = None

def double(x):
    global first
    if first is None:
        first = not os.path.exists("called")
        open("called", "w").close()
    return 2 * x if first else 3 * x
"""


def test_answers_that_agree_in_one_process_only_are_found(course, level):
    assert grade(course, level, double=SECOND) == FULL | {"tiny.double": 0.0}
    _, record = recorded(course, "tiny", "s001", "tiny.double")
    message = record["result"]["criteria"][0]["message"]
    assert message.startswith("two calls with the same input gave different answers")


@pytest.mark.parametrize("answer", ["return x - y", "return x / 0", "return x + y"])
def test_the_result_is_that_of_a_copy_asked_at_once(course, level, answer):
    grade(course, level, add=f"def add(x, y):\n    {answer}")
    with Grader(course, "tiny", level=level) as grader:
        for task in FULL:
            was, now = grader.replay("s001", task)
            assert was.to_dict() == now.to_dict()
