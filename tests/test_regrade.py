"""Requests and corrections: own inputs for each student, replays, a regrade after a fix."""

import dataclasses
import json

import numpy as np
import pytest
import tiny_course
from desk_tools import copy_course, grade, lay_out, run
from tiny_course import solved, submit

import seqlib.cli as cli
from seqlib.grading import batch, console
from seqlib.grading import judging as judging_module
from seqlib.grading.export.marks import collect_marks
from seqlib.grading.gradebook.writer import open_gradebook
from seqlib.grading.grader import Grader
from seqlib.grading.records import Key, Store
from seqlib.judge.judge import judge

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("course"))


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    # Worker processes would not see how a test changes the exercises.
    monkeypatch.setattr(console, "grade_class", in_this_process)
    return copy_course(template, tmp_path, monkeypatch)


def in_this_process(course, name, *, force=False, **options):
    return batch.Outcome(records=grade(course, name, force=force))


def correct(monkeypatch, **changes):
    """Put another ``tiny.add`` into the course."""
    double, add = tiny_course.ASSIGNMENT.tasks
    newer = dataclasses.replace(add, **changes)
    changed = dataclasses.replace(tiny_course.ASSIGNMENT, tasks=(double, newer))
    monkeypatch.setattr(tiny_course, "ASSIGNMENT", changed)
    tiny_course.register(monkeypatch)


def marks(course):
    with open_gradebook(course) as gradebook:
        return {m.student: m.score for m in collect_marks(gradebook, course)}


SPY = """
import builtins
builtins.seen = getattr(builtins, "seen", [])

def double(x):
    builtins.seen.append(x.copy())
    return 2 * x
"""


def inputs(course, student):
    """Return the arrays that a student's function is called with."""
    import builtins

    builtins.seen = []
    submit(course, student, solved(double=SPY))
    with Grader(course, "tiny", trust_students=True) as grader:
        grader.grade(student, force=True)
    found = np.concatenate([array.ravel() for array in builtins.seen])
    del builtins.seen
    return np.sort(found)


def test_each_student_has_inputs_of_their_own_and_has_them_again(course):
    ada, ben = inputs(course, "ada"), inputs(course, "ben")
    assert len(np.intersect1d(ada, ben)) == 0
    np.testing.assert_array_equal(inputs(course, "ada"), ada)
    (course.grading / "secret").write_text("ab" * 32 + "\n")
    assert len(np.intersect1d(inputs(course, "ada"), ada)) == 0


def test_a_regrade_after_a_fix_changes_what_it_concerns_and_nothing_else(course, monkeypatch):
    """The reference subtracts; ada, who adds as she should, complains."""
    correct(monkeypatch, reference=lambda x, y: x - y)
    submit(course, "ada", solved())
    submit(course, "ben", solved(add="def add(x, y):\n    return x - y"))
    submit(course, "kay", solved(double="double = 1", add="add = 1"))
    run(course, "grade", "tiny", "--trust-students")
    assert marks(course) == {"ada": 40.0, "ben": 80.0, "kay": 0.0}
    with open_gradebook(course) as gradebook:
        written = gradebook.find_grade("why", "tiny", "tiny", "ada")
        written.manual_score, written.needs_manual_grade = 15.0, False
        gradebook.db.commit()
    # Her request is answered with the same inputs, which the mistake survives.
    said = run(course, "replay", "ada", "tiny.add", "--trust-students")
    assert "The same as recorded, with seed" in said
    correct(monkeypatch, reference=lambda x, y: x + y, version=2)
    judged = []

    def counting(task, *arguments, **options):
        judged.append(task.id)
        return judge(task, *arguments, **options)

    monkeypatch.setattr(judging_module, "judge", counting)
    changes = json.loads(run(course, "regrade", "tiny", "--trust-students", "--json"))
    assert changes == [
        {
            "student": student,
            "task": "tiny.add",
            "before": before,
            "after": 40.0 - before,
            "reason": "exercise version 1 -> 2",
        }
        for student, before in (("ada", 0.0), ("ben", 40.0))
    ]
    assert set(judged) == {"tiny.add"}
    # The mark of a person stays, and so does the record of the first judgement.
    assert marks(course) == {"ada": 95.0, "ben": 40.0, "kay": 0.0}
    store = Store(course.records, "tiny", "ada")
    record = store.submission()
    key = Key(**record["tasks"]["tiny.add"]["key"])
    old = dataclasses.replace(key, exercise_version=1)
    scores = [store.task(record["submission"], k)["result"]["score"] for k in (old, key)]
    assert scores == [0.0, 40.0]
    assert "No score has changed." in run(course, "regrade", "tiny", "--trust-students")


def test_a_fix_without_a_new_version_is_seen_by_a_replay_alone(course, monkeypatch):
    """Why the version must be raised: nothing says that the records are of another exercise."""
    correct(monkeypatch, reference=lambda x, y: x - y)
    submit(course, "ada", solved())
    run(course, "grade", "tiny", "--trust-students")
    correct(monkeypatch, reference=lambda x, y: x + y)
    assert "No score has changed." in run(course, "regrade", "tiny", "--trust-students")
    said = run(course, "replay", "ada", "tiny.add", "--trust-students", code=cli.DIFFERENT)
    assert "Not the same as recorded (0 points)" in said
    said = run(course, "regrade", "tiny", "--trust-students", "--force", "--json")
    (change,) = json.loads(said)
    assert change["reason"] == "graded anew under the same conditions"
