"""Each protection matters: without it a bounded attack succeeds, and it alone stops the attack.

The layers of the sandbox (namespaces, Landlock, seccomp, limits) are tried one by one in
``tests/test_isolation.py``; here are the protections of the judge and of what is read.
Each attack is made twice with the same inputs: with the one protection, and without it.
"""

import contextlib
import copy
import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest
import tiny_course
from tiny_course import as_bytes, cell_of, extra, released, solved, submit

from seqlib.exercises.record import Case, Criterion, Task
from seqlib.grading.grader import Grader
from seqlib.grading.notebook import intake, present
from seqlib.grading.notebook.execution import is_test, run_notebook
from seqlib.grading.notebook.reading import read_cells
from seqlib.grading.notebook.repair import repair
from seqlib.grading.notebook.trusted import TrustedSubmission
from seqlib.grading.sandbox import outputs
from seqlib.judge import judge as judge_module
from seqlib.judge import run as run_module
from seqlib.judge.judge import judge
from seqlib.subject import driver, shortcuts
from seqlib.subject.inprocess import InProcess

RELEASE = released()
ZERO = {"double": "def double(x):\n    return 0 * x", "add": "def add(x, y):\n    return 0 * x"}


def task(reference=lambda x: 2 * x, **options):
    return Task(
        id="red.f",
        title="Red",
        signature="(x)",
        equations=(),
        page="",
        reference=reference,
        cases=lambda rng: [Case((rng.standard_normal(3),)) for _ in range(4)],
        criteria=(Criterion("values", 1.0, "the values"),),
        **options,
    )


def score(function, seed=1, task=task()):  # noqa: B008
    return judge(task, InProcess(function), seed).score


# Comparison outside of the student's process, with inputs that nobody knows beforehand. A naive
# grader runs the cells as they are, and the tests as assertions among the student's names.

TESTS = {
    "test-double": "expected = np.array([2.0])\nassert np.allclose(double(expected / 2), 2.0)",
    "test-add": "expected = np.array([5.0])\nassert np.allclose(add(expected, 0), expected)",
}


def naive(notebook):
    """Return the share of tests that pass, in the way of plain nbgrader."""
    names, passed = {}, 0
    for cell in notebook["cells"]:
        test = TESTS.get(cell["id"])
        if cell["cell_type"] != "code":
            continue
        if test and "skip-execution" in cell["metadata"].get("tags", ()):
            passed += 1  # no output, no failure
            continue
        with contextlib.suppress(Exception):
            exec(test or cell["source"].replace("from seqlib import check", ""), names)
            passed += test is not None
    return passed / len(TESTS)


LYING = """
class Lying(np.ndarray):
    def __array_function__(self, *args, **kwargs): return True
double = lambda x: np.zeros(1).view(Lying)
add = lambda x, y: np.zeros(1).view(Lying)
"""
FRAMES = """
import sys
double = lambda x: sys._getframe(1).f_globals["expected"]
add = lambda x, y: sys._getframe(1).f_globals["expected"]
"""
TABLE = "double = lambda x: np.array([2.0])\nadd = lambda x, y: np.array([5.0])"
PATCH = "import numpy as np\nnp.allclose = lambda *a, **k: True"
TRICKS = {
    "lying arrays": LYING,
    "expected values in frames": FRAMES,
    "answers to known inputs": TABLE,
    "comparisons patched": PATCH,
    "tests tagged to be skipped": None,
}


def tricked(source):
    notebook = solved(**ZERO)
    if source is None:
        for test in TESTS:
            cell_of(notebook, test)["metadata"]["tags"] = ["skip-execution"]
    else:
        before_test = [c["id"] for c in notebook["cells"]].index("test-double")
        notebook["cells"].insert(before_test, extra(source, id="own"))
        if "add" in source:
            cell_of(notebook, "add")["source"] = "pass"
    return notebook


def test_the_naive_grader_is_fair_to_honest_work():
    assert naive(solved()) == 1.0
    assert naive(solved(**ZERO)) == 0.0


@pytest.mark.sandbox
@pytest.mark.parametrize("source", TRICKS.values(), ids=TRICKS)
def test_what_earns_everything_from_a_naive_grader_earns_nothing(source, tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    notebook = tricked(source)
    monkeypatch.setattr(np, "allclose", np.allclose)  # is put back at the end
    assert naive(notebook) == 1.0
    submit(course, "s001", notebook)
    with Grader(course, "tiny") as grader:
        assert grader.grade("s001")["score"] == 0.0


# Repair: the graded cells are the released ones


def grading(**change):
    return {"nbgrader": cell_of(RELEASE, "test-add")["metadata"]["nbgrader"] | change}


SMUGGLED = {
    "a test of another task": {"source": 'check("tiny.double", double)'},
    "more points": {"metadata": grading(points=4000)},
    "no points": {"metadata": grading(points=0)},
    "no test": {"metadata": {}},
}


def points_at_stake(notebook):
    """Return what each test cell of a notebook checks, and for how many points."""
    found = []
    tests = iter([c["metadata"]["nbgrader"] for c in notebook["cells"] if is_test(c)])

    def note(call, session):
        found.append((call.task, next(tests)["points"]))
        return [], 0.0

    with TrustedSubmission() as session:
        run_notebook(notebook, session, note)
    return found


@pytest.mark.parametrize("change", SMUGGLED.values(), ids=SMUGGLED)
def test_the_grading_data_of_a_file_count_for_nothing(change):
    notebook = solved()
    cell_of(notebook, "test-add").update(copy.deepcopy(change))
    repaired = repair(read_cells(as_bytes(notebook)).cells, RELEASE).notebook
    honest = [("tiny.double", 40), ("tiny.add", 40)]
    assert points_at_stake(repaired) == honest
    assert points_at_stake(notebook) != honest


# The judge


class OnlyOnce(run_module.Run):
    """A run without repeated calls and decoys."""

    def ask_all(self):
        for answer in self.answers:
            answer.replies.append(self.ask(answer.case))


def first_four():
    """Return a function whose first four answers are right: there are four cases."""
    calls = []

    def function(x):
        calls.append(1)
        return 2 * x if len(calls) <= 4 else 0 * x

    return function


def test_repeated_calls_catch_an_answer_that_depends_on_their_number(monkeypatch):
    assert score(first_four()) == 0
    monkeypatch.setattr(judge_module, "Run", OnlyOnce)
    assert score(first_four()) == 1


def test_fresh_inputs_make_a_table_useless():
    seen = {}

    def learn(x):
        seen[x.tobytes()] = 2 * x
        return 0 * x

    def look_up(x):
        return seen.get(x.tobytes(), 0 * x)

    score(learn, seed=1)
    assert score(look_up, seed=2) == 0
    assert score(look_up, seed=1) == 1


class Lying(np.ndarray):
    """Its difference from anything is False, which counts as 0."""

    def __array_ufunc__(self, *args, **kwargs):
        return np.False_


def test_only_base_classes_are_read(monkeypatch):
    def lie(x):
        return np.zeros(3).view(Lying)

    monkeypatch.setattr(judge_module, "Run", OnlyOnce)
    assert score(lie) == 0
    monkeypatch.setattr(driver, "reduce", lambda value, what="": value)
    assert score(lie) == 1


def test_a_function_gets_arguments_of_its_own(monkeypatch):
    """Else it could overwrite those from which the right answer is computed."""

    def overwrite(x):
        x *= 0
        return x

    class Late(run_module.Run):
        def ask_all(self):
            super().ask_all()
            for answer in self.answers:
                right = 1 * answer.case.args[0]
                answer.expected = dataclasses.replace(answer.expected, value=right)

    monkeypatch.setattr(judge_module, "Run", Late)
    same = task(lambda x: 1 * x)
    assert score(overwrite, task=same) == 0
    monkeypatch.setattr(driver, "materialise", lambda value, ask: value)
    assert score(overwrite, task=same) == 1


@pytest.mark.parametrize("granted", ["numpy.linalg.norm", "seqlib.np.activation.softmax"])
def test_shortcuts_are_refused(granted, monkeypatch):
    import seqlib.np as snp

    function = np.linalg.norm if "numpy" in granted else snp.softmax
    refused = task(lambda x: 1 * function(x), shortcuts=(granted,))
    assert score(lambda x: function(x), task=refused) == 0
    monkeypatch.setattr(shortcuts, "_find", lambda names, refusal: ([], [], {}))
    assert score(lambda x: function(x), task=refused) == 1


def test_answers_of_unfair_size_are_not_kept(monkeypatch):
    kept = []

    class Keeping(run_module.Run):
        def ask_all(self):
            super().ask_all()
            replies = [r for answer in self.answers for r in answer.replies]
            kept.append(sum(r.value.nbytes for r in replies if r.ok))

    def huge(x):
        return np.zeros(1_000_000)

    monkeypatch.setattr(judge_module, "Run", Keeping)
    score(huge)
    monkeypatch.setattr(run_module, "_of_fair_size", lambda reply, expected: reply)
    score(huge)
    assert kept[0] == 0
    assert kept[1] >= 8 * 8_000_000


# What is read and shown


def test_outputs_are_reduced_to_text_and_pictures(monkeypatch):
    data = {"text/html": "<script>", "text/plain": "x"}
    page = [{"output_type": "display_data", "data": data}]
    assert "script" not in json.dumps(outputs.clean_outputs(page, 1000))
    monkeypatch.setattr(outputs, "_data", lambda data, limit: data)
    assert "script" in json.dumps(outputs.clean_outputs(page, 1000))


def test_text_of_a_student_is_made_harmless(monkeypatch):
    notebook = solved(why="<script>alert(1)</script>")
    assert "<script" not in json.dumps(present.cells(notebook, RELEASE))
    monkeypatch.setattr(present, "_harmless", lambda cell: cell)
    assert "<script" in json.dumps(present.cells(notebook, RELEASE))


def test_an_archive_of_very_many_files_is_not_listed(monkeypatch):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for number in range(intake.MAX_ENTRIES):
            archive.writestr(str(number), b"")
        archive.writestr("a.ipynb", b"{}")
    assert intake._unzip(data.getvalue(), "x.zip") == []
    monkeypatch.setattr(intake, "MAX_ENTRIES", 10**9)
    monkeypatch.setattr(intake, "MAX_FILES", 10**9)
    assert intake._unzip(data.getvalue(), "x.zip") == [("x.zip/a.ipynb", b"{}")]
