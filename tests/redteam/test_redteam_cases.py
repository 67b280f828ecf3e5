"""Faults that instructors met with other graders (group C of the collected cases).

Those that cannot occur here are in ``tests/cases_left_out.md``.
"""

import ast
import inspect
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
import tiny_course
from nbgrader import utils
from tiny_course import cell_of, extra, released, solved, submit, write

from seqlib.exercises import get_assignment
from seqlib.exercises.record import Criterion
from seqlib.grading import judging
from seqlib.grading.grader import Grader
from seqlib.grading.notebook.execution import run_notebook
from seqlib.grading.notebook.trusted import TrustedSubmission
from seqlib.grading.records import Store
from seqlib.judge.compare import difference
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess
from seqlib.subject.reduction import reduce

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    return tiny_course.make_course(tmp_path)


def graded(course, notebook, student="s001"):
    """Return the record and the graded notebook of a submission."""
    submit(course, student, notebook)
    with Grader(course, "tiny", trust_students=True) as grader:
        record = grader.grade(student)
    text = Store(course.records, "tiny", student).notebook(record["submission"])
    return record, json.loads(text)


def printed(notebook, key):
    return cell_of(notebook, key)["outputs"][0]["text"]


# C01: partial credit 0 was paid as full credit


@pytest.mark.parametrize(
    ("result", "points"), [(0, 0), (0.0, 0), (2.5, 2.5), (5, 5), (7, 5)], ids=str
)
def test_c01_a_score_is_read_back_as_it_was_given(course, monkeypatch, result, points):
    tasks = tuple(
        replace(task, criteria=(Criterion("values", 5.0, "the values"),))
        for task in tiny_course.ASSIGNMENT.tasks
    )
    module = sys.modules["seqlib.exercises.tiny"]
    monkeypatch.setattr(module, "ASSIGNMENT", replace(tiny_course.ASSIGNMENT, tasks=tasks))
    notebook = released()
    for cell in notebook["cells"]:
        data = cell["metadata"].get("nbgrader", {})
        if data.get("points") == 40:
            data["points"] = 5
    write(course.release_file("tiny"), notebook)

    def judged(*args, **options):
        return replace(judge(*args, **options), score=result)

    monkeypatch.setattr(judging, "judge", judged)
    record, found = graded(course, solved())
    cell = nbformat.from_dict(cell_of(found, "test-double"))
    assert utils.determine_grade(cell) == (points, 5)
    assert record["tasks"]["tiny.double"]["score"] == points


@pytest.mark.parametrize("source", ["pass", "assert False", 'check("tiny.double", double); 1'])
def test_c01_a_cell_without_a_verdict_pays_nothing(source):
    """Plain nbgrader pays everything for a cell without output."""
    notebook = solved()
    cell_of(notebook, "test-double")["source"] = source
    with TrustedSubmission() as session:
        done = run_notebook(notebook, session, lambda call, session: ([], 40.0))
    cell = nbformat.from_dict(cell_of({"cells": done.cells}, "test-double"))
    assert utils.determine_grade(cell) == (0, 40)


def test_c01_an_all_wrong_submission_gets_nothing(course):
    wrong = {"double": "def double(x):\n    return 0", "add": "def add(x, y):\n    return 0"}
    assert graded(course, solved(**wrong))[0]["score"] == 0


# C02 copied cells, C05 renamed files, C06 endless loops, C09 deleted cells, C17 dead processes:
# each is a submission in `innocent` or `breakers`; here is what the student reads of it.


def test_c02_a_copied_cell_is_told(course):
    notebook = solved()
    notebook["cells"].insert(4, {**cell_of(notebook, "double"), "id": "copy"})
    record, _ = graded(course, notebook)
    assert record["score"] == 80
    assert any("was there more than once" in mend for mend in record["mends"])


def test_c05_the_expected_name_is_told(course):
    submit(course, "s001", solved(), name="my q3 final.ipynb")
    with Grader(course, "tiny", trust_students=True) as grader:
        record = grader.grade("s001")
    assert record["score"] == 80
    assert record["mends"][0] == (
        'There was no usable "tiny.ipynb"; "my q3 final.ipynb" was graded.'
    )


def test_c09_a_deleted_and_a_converted_cell_are_told(course):
    notebook = solved()
    notebook["cells"].remove(cell_of(notebook, "test-add"))
    cell_of(notebook, "test-double")["cell_type"] = "markdown"
    record, _ = graded(course, notebook)
    assert record["score"] == 80
    assert record["mends"] == [
        'The cell "test-double" had been turned into markdown; it is code again.',
        'The cell "test-add" was missing and was put back.',
    ]


# C03: hidden tests and answers in feedback


def lines_of(function):
    """Return the lines of a function's body that could only come from it."""
    tree = ast.parse(inspect.getsource(function).strip())
    lines = ast.unparse(tree).splitlines()
    return {line.strip() for line in lines if len(line.strip()) > 30 and "=" in line}


def test_c03_nothing_of_the_judges_code_is_in_release_or_graded_notebook(tmp_path):
    release = (ROOT / "assignments/attention/attention.ipynb").read_text()
    text = "\n".join("".join(c["source"]) for c in json.loads(release)["cells"])
    said = []
    for task in get_assignment("attention").tasks:
        said += judge(task, InProcess(lambda *a, **k: 1 / 0), 3).lines()
        said += judge(task, InProcess(lambda *a, **k: a[0]), 3).lines()
        for line in lines_of(task.reference) | lines_of(task.variant) | lines_of(task.cases):
            assert line not in text
            assert line not in "\n".join(said)
    assert len(said) > 50
    assert not re.search(r"File \"|Traceback|assert ", "\n".join(said))


# C10: the placeholder is still there


@pytest.mark.parametrize(
    "double",
    [
        "def double(x):\n    y = 2 * x\n    raise NotImplementedError()\n    return y",
        "def double(x):\n    y = 2 * x\n    # YOUR CODE HERE\n    raise NotImplementedError",
    ],
)
def test_c10_a_leftover_placeholder_is_named(course, double):
    record, notebook = graded(course, solved(double=double))
    assert record["tasks"]["tiny.double"]["score"] == 0
    assert "the line that raises NotImplementedError is still there" in printed(
        notebook, "test-double"
    )


def test_c10_a_placeholder_behind_a_return_costs_nothing(course):
    double = "def double(x):\n    return 2 * x\n    raise NotImplementedError()"
    assert graded(course, solved(double=double))[0]["score"] == 80


# C11: NumPy 2 prints booleans and numbers differently


@pytest.mark.parametrize("answer", [np.True_, np.array(True), np.ones((), bool)])
def test_c11_values_are_compared_and_never_their_text(answer):
    tolerance = tiny_course.ASSIGNMENT.tasks[0].tolerance
    assert difference(True, reduce(answer), tolerance) is None
    assert difference(False, reduce(answer), tolerance) is not None
    assert difference(0.5, reduce(np.float64(0.5)), tolerance) is None


# C14 and C19: a message and partial credit, and no source of a test


def test_c14_c19_partial_credit_comes_with_the_reason():
    task = get_assignment("attention").tasks[0]

    def without_shift(X):
        S = X @ np.swapaxes(X, -1, -2)
        e = np.exp(S)
        A = e / e.sum(axis=-1, keepdims=True)
        return A @ X, A

    result = judge(task, InProcess(without_shift), 3)
    assert result.score == 8.0  # all but the large scores
    failed = [c for c in result.criteria if not c.passed]
    assert [c.name for c in failed] == ["large"]
    assert failed[0].message.startswith("entry [0, 0] (query 0) of Y is nan, not finite (12 of")
    assert result.diagnosis.names == ("no_shift",)


# C16: a test of no points


def test_c16_a_task_of_no_points_is_no_error(course, monkeypatch):
    task = replace(
        tiny_course.ASSIGNMENT.tasks[0], criteria=(Criterion("values", 0.0, "the values"),)
    )
    result = judge(task, InProcess(lambda x: 2 * x), 1)
    assert (result.score, result.points) == (0.0, 0.0)
    assert result.lines()[:2] == ["tiny.double: 0 of 0 points", "[ok] 0 of 0  the values"]


# C21: it passed in the student's notebook


def test_c21_stored_results_of_older_code_count_for_nothing(course):
    notebook = solved(double="def double(x):\n    return x  # changed after the test")
    cell_of(notebook, "test-double")["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "tiny.double: 40 of 40 points"},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "40.0"},
            "execution_count": 9,
            "metadata": {},
        },
    ]
    notebook["cells"].append(extra("double = lambda x: 2 * x", id="after-the-test"))
    record, found = graded(course, notebook)
    assert record["tasks"]["tiny.double"]["score"] == 0
    assert printed(found, "test-double").startswith("tiny.double: 0 of 40 points")
