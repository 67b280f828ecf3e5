"""Handing in again: marks of a person stay and are listed, and nothing is learned by trying."""

import shutil

import pytest
import tiny_course
from tiny_course import solved, submit

from seqlib.grading.course import Course
from seqlib.grading.gradebook.marks import stale_marks
from seqlib.grading.gradebook.writer import Writer, open_gradebook, register
from seqlib.grading.grader import Grader
from seqlib.grading.records import Store, recorded

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


def grade(course, student="s001"):
    with Grader(course, "tiny", trust_students=True) as grader:
        record = grader.grade(student)
    Writer(course, "tiny").apply(record)
    return record


def mark(course, score):
    with open_gradebook(course) as gradebook:
        grade = gradebook.find_grade("why", "tiny", "tiny", "s001")
        grade.manual_score, grade.needs_manual_grade = score, False
        gradebook.db.commit()


def stale(course):
    store = Store(course.records, "tiny", "s001")
    with open_gradebook(course) as gradebook:
        return stale_marks(gradebook, store, "tiny", "s001")


# 46: a mark for one text is not silently a mark for another


def test_a_good_mark_is_not_carried_to_an_empty_answer_unseen(course):
    submit(course, "s001", solved())
    grade(course)
    mark(course, 20.0)
    submit(course, "s001", solved(why="I have deleted it."))
    grade(course)
    assert stale(course) == ["why"]
    with open_gradebook(course) as gradebook:
        kept = gradebook.find_grade("why", "tiny", "tiny", "s001")
        assert (kept.manual_score, kept.needs_manual_grade) == (20.0, True)


def test_going_back_to_the_marked_text_is_not_stale(course):
    submit(course, "s001", solved())
    grade(course)
    mark(course, 20.0)
    for text in ("Something else.", tiny_course.ANSWER):
        submit(course, "s001", solved(why=text))
        grade(course)
    assert stale(course) == []


def test_a_worse_submission_does_not_keep_the_better_score(course):
    submit(course, "s001", solved())
    assert grade(course)["score"] == 80.0
    submit(course, "s001", solved(double="def double(x):\n    return x"))
    assert grade(course)["score"] == 40.0
    submit(course, "s001", b"")
    assert grade(course)["score"] == 0.0
    with open_gradebook(course) as gradebook:
        notebook = gradebook.find_submission_notebook("tiny", "tiny", "s001")
        assert sum(grade.auto_score or 0.0 for grade in notebook.grades) == 0.0


# 47: what repeated attempts can teach


def messages(course):
    _, record = recorded(course, "tiny", "s001", "tiny.double")
    return record["seed"], [c["message"] for c in record["result"]["criteria"]]


def test_an_attempt_again_meets_the_same_inputs_and_another_student_others(course):
    """So a second try at chance gains nothing; a table of what was seen is a known limit."""
    answer = "def double(x):\n    return 2 * x + {}"
    seen = []
    for number in (1, 2):
        submit(course, "s001", solved(double=answer.format(number)))
        grade(course)
        seen.append(messages(course)[0])
    assert seen[0] == seen[1]
    submit(course, "s002", solved(double=answer.format(1)))
    grade(course, "s002")
    assert recorded(course, "tiny", "s002", "tiny.double")[1]["seed"] != seen[0]


def test_a_message_tells_how_far_off_nothing_is(course):
    """Two wrong answers, one nearer than the other, get the same words but for themselves."""
    said = []
    for off in ("0.5", "4.0"):
        submit(course, "s001", solved(double=f"def double(x):\n    return x * 0 + {off}"))
        grade(course)
        said.append(messages(course)[1][0].replace(f"{float(off):g}", "?"))
    assert said[0] == said[1]
