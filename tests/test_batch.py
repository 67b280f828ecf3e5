"""Grading of a class: the same scores however it is run, and nothing lost when it stops."""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_course
from tiny_course import as_bytes, cell_of, solved, submit, tiny_grader

from seqlib.grading import batch
from seqlib.grading.batch import changes, grade_class
from seqlib.grading.course import Course
from seqlib.grading.gradebook.writer import Writer, open_gradebook, register
from seqlib.grading.records import Store, all_submissions
from seqlib.grading.sandbox.isolation import IsolationError

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        tiny_course.register(monkeypatch)
        course = tiny_course.make_course(tmp_path_factory.mktemp("course"))
        register(course, "tiny")
    return course.root


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    shutil.copytree(template, tmp_path / "course")
    return Course(tmp_path / "course")


def fill(course):
    """Submit a small class, and return the scores that it deserves."""
    data = as_bytes(solved())
    deserved = {
        "s001": 80.0,
        "s002": 40.0,
        "s003": 0.0,
        "s004": 40.0,
        "s005": 0.0,
        "s006": 80.0,
    }
    submit(course, "s001", solved())
    submit(course, "s002", solved(double="def double(x):\n    return 2 * x + 1"))
    submit(course, "s003", tiny_course.released())
    submit(course, "s004", data[: data.index(b'"Add them."')])
    submit(course, "s005", b"<html>")
    damaged = solved()
    damaged["cells"].remove(cell_of(damaged, "test-double"))
    submit(course, "s006", damaged, name="copy.ipynb")
    return deserved


def run(course, *, workers=1, **options):
    options.setdefault("make_grader", functools.partial(tiny_grader, course.root))
    return grade_class(course, "tiny", trust_students=True, workers=workers, **options)


def scores(outcome):
    return {student: record["score"] for student, record in outcome.records.items()}


def in_gradebook(course):
    with open_gradebook(course) as gradebook:
        return {s.student.id: s.score for s in gradebook.assignment_submissions("tiny")}


@pytest.mark.parametrize("workers", [1, 2])
def test_every_submission_gets_what_it_deserves(course, workers):
    deserved = fill(course)
    seen = []
    outcome = run(course, workers=workers, on_result=lambda student, _: seen.append(student))
    assert scores(outcome) == deserved == in_gradebook(course)
    assert sorted(seen) == sorted(deserved)
    assert outcome.failures == {}
    assert [record["state"] for record in outcome.records.values()] == [
        *("graded", "graded", "graded", "partly_graded", "unreadable", "graded_with_repairs")
    ]


def test_the_second_run_grades_nothing_again(course):
    fill(course)
    run(course)
    outcome = run(course)
    assert all(record["reused"] for record in outcome.records.values())
    outcome = run(course, force=True)
    assert not any(record["reused"] for record in outcome.records.values())


def test_only_chosen_students_are_graded(course):
    fill(course)
    assert list(run(course, students=["s003", "s001"]).records) == ["s001", "s003"]
    with pytest.raises(ValueError, match="student must have submitted, got s009, s010"):
        run(course, students=["s010", "s001", "s009"])


@contextlib.contextmanager
def failing_grader(root, student, how):
    """A grader to which something happens whenever it grades one student."""
    with tiny_grader(root) as grader:
        grade = grader.grade

        def fail(who, **options):
            if who == student and how == "raise":
                raise RuntimeError("the sandbox failed")
            if who == student and how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            return grade(who, **options)

        grader.grade = fail
        yield grader


@pytest.mark.parametrize("how", ["raise", "die"])
def test_what_is_not_the_students_fault_is_no_grade(course, how):
    deserved = fill(course)
    run(course, students=["s002"])
    outcome = run(
        course, make_grader=functools.partial(failing_grader, course.root, "s002", how)
    )
    assert list(outcome.failures) == ["s002"]
    assert scores(outcome) == {s: score for s, score in deserved.items() if s != "s002"}
    assert in_gradebook(course) == deserved
    store = Store(course.records, "tiny", "s002")
    assert store.failure() == outcome.failures["s002"]
    run(course)
    assert store.failure() is None


def test_a_grade_that_the_gradebook_refuses_stops_no_other(course, monkeypatch):
    deserved = fill(course)
    apply, tried = Writer.apply, []

    def refuse(writer, record, **options):
        if record["student"] == "s002":
            tried.append(record)
            raise RuntimeError("database is locked")
        return apply(writer, record, **options)

    monkeypatch.setattr(Writer, "apply", refuse)
    monkeypatch.setattr(batch.time, "sleep", lambda seconds: None)
    outcome = run(course)
    assert outcome.failures == {"s002": "gradebook: RuntimeError: database is locked"}
    assert len(tried) == batch.WRITING_ATTEMPTS
    assert len(outcome.records) == len(deserved) - 1
    monkeypatch.undo()
    tiny_course.register(monkeypatch)
    assert scores(run(course)) == deserved == in_gradebook(course)


def test_an_interrupted_run_goes_on(course):
    deserved = fill(course)

    def stop(student, _):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(course, on_result=stop)
    assert in_gradebook(course) == {"s001": 80.0}
    outcome = run(course)
    assert scores(outcome) == deserved == in_gradebook(course)
    assert outcome.records["s001"]["reused"]


def test_too_little_isolation_is_refused_unless_students_are_trusted(course, monkeypatch):
    def refuse(level):
        raise IsolationError("nothing holds here")

    monkeypatch.setattr(batch, "require_isolation", refuse)
    fill(course)
    with pytest.raises(IsolationError, match="nothing holds here"):
        grade_class(course, "tiny")
    assert not course.records.exists()


def test_the_level_none_is_refused():
    from seqlib.grading.sandbox.isolation import require_isolation

    with pytest.raises(IsolationError, match="level 'none' is not enough"):
        require_isolation("none")


def test_changes_name_student_task_and_reason(course):
    fill(course)
    before = run(course).records
    after = json.loads(json.dumps(before))
    assert changes(before, after) == []
    after["s001"]["tasks"]["tiny.add"]["score"] = 0.0
    assert changes(before, after) == [
        {
            "student": "s001",
            "task": "tiny.add",
            "before": 40.0,
            "after": 0.0,
            "reason": "graded anew under the same conditions",
        }
    ]
    basis = after["s001"]["basis"]
    basis["exercises"]["tiny.add"] = 2
    basis["judge"] = 9
    after["s001"]["submission"] = "f" * 64
    assert changes(before, after)[0]["reason"] == (
        "another submission, exercise version 1 -> 2, judge version 1 -> 9"
    )


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_killed_run_loses_no_graded_submission(tmp_path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    for folder in ("solutions", "assignments"):
        shutil.copytree(ROOT / folder / "attention", tmp_path / folder / "attention")
    course = Course(tmp_path)
    students = [f"s{i:03}" for i in range(1, 13)]
    for student in students:
        folder = course.submission(student, "attention")
        folder.mkdir(parents=True)
        shutil.copy(course.source("attention"), folder)
    command = [sys.executable, "-m", "seqlib.cli", "grade", "attention", "--workers", "2"]
    killed = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(all_submissions(course.records, "attention")) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    graded = all_submissions(course.records, "attention")
    done = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {s: r["score"] for s, r in records.items()} == dict.fromkeys(students, 90.0)
    assert all(records[student]["reused"] for student in graded)
    with open_gradebook(course) as gradebook:
        found = gradebook.assignment_submissions("attention")
        assert {s.student.id: s.score for s in found} == dict.fromkeys(students, 90.0)
