"""A gradebook in PostgreSQL: several people grade while a batch writes, and no mark is lost."""

import functools
import http.cookiejar
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import postgres_tools
import pytest
import tiny_course
from sqlalchemy import text
from test_formgrader import server as formgrader
from tiny_course import solved, submit, tiny_grader

from seqlib.grading import console
from seqlib.grading.batch import grade_class
from seqlib.grading.course import Course
from seqlib.grading.gradebook import database
from seqlib.grading.gradebook.writer import Writer, open_gradebook, register

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.skipif(bool(postgres_tools.why_not()), reason=postgres_tools.why_not()),
]


@pytest.fixture(scope="module")
def postgres():
    with postgres_tools.server() as running:
        yield running


@pytest.fixture
def course(postgres, tmp_path, monkeypatch, request):
    """Return a course whose gradebook is a new database."""
    tiny_course.register(monkeypatch)
    (tmp_path / "course").mkdir()
    course = tiny_course.make_course(tmp_path / "course")
    use(course, postgres.new_database(f"grade book {time.monotonic_ns()}"))
    return course


def use(course, address):
    """Say in the configuration of a course where its gradebook is."""
    path = course.root / "nbgrader_config.py"
    path.write_text(f"{path.read_text()}\nc.CourseDirectory.db_url = {address!r}\n")


def name_of(course):
    with open_gradebook(course) as gradebook:
        return gradebook.engine.url.database


def fill(course, number):
    for i in range(number):
        submit(course, f"s{i:03}", solved(**({} if i % 2 else {"add": "add = 1"})))
    return {f"s{i:03}": 80.0 if i % 2 else 40.0 for i in range(number)}


def run(course, **options):
    options.setdefault("make_grader", functools.partial(tiny_grader, course.root))
    return grade_class(course, "tiny", trust_students=True, workers=1, **options)


def in_gradebook(course):
    with open_gradebook(course) as gradebook:
        return {s.student.id: s.score for s in gradebook.assignment_submissions("tiny")}


def parts(course, cell, kind="grades"):
    """Return the scores or comments of one cell, by student."""
    with open_gradebook(course) as gradebook:
        return {
            submission.student.id: part.to_dict()
            for submission in gradebook.assignment_submissions("tiny")
            for notebook in submission.notebooks
            for part in getattr(notebook, kind)
            if part.name == cell
        }


def test_a_class_is_graded_into_postgresql(course):
    deserved = fill(course, 4)
    outcome = run(course)
    assert outcome.failures == {}
    assert in_gradebook(course) == deserved
    assert not (course.grading / "gradebook.db").exists()
    again = run(course)
    assert all(record["reused"] for record in again.records.values())
    with Writer(course, "tiny") as writer:
        assert not any(writer.apply(record) for record in again.records.values())


class Grader:
    """A person in a formgrader of their own."""

    def __init__(self, address):
        self._address, self._jar = address, http.cookiejar.CookieJar()
        self._open = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._jar)
        ).open
        self.page("/formgrader/manage_assignments")

    def page(self, path):
        with self._open(f"{self._address}{path}", timeout=60) as answer:
            return answer.read().decode()

    def put(self, kind, number, **values):
        headers = {"Content-Type": "application/json"}
        for cookie in self._jar:
            if cookie.name == "_xsrf":
                headers["X-XSRFToken"] = cookie.value
        request = urllib.request.Request(
            f"{self._address}/formgrader/api/{kind}/{number}",
            json.dumps(values).encode(),
            headers,
            method="PUT",
        )
        with self._open(request, timeout=60) as answer:
            return json.loads(answer.read())


def test_two_graders_and_a_batch_write_at_the_same_time(course, postgres, tmp_path):
    """Every mark and comment that formgrader took is there when all of them are done."""
    deserved = fill(course, 12)
    run(course)
    written = {s: part["id"] for s, part in parts(course, "why").items()}
    added = {s: part["id"] for s, part in parts(course, "test-add").items()}
    comments = {s: part["id"] for s, part in parts(course, "why", "comments").items()}
    marks, problems = {}, []
    batch = threading.Event()

    def grade(person, first, number):
        try:
            while batch.is_set() or number < 3:
                for student in sorted(written)[first::2]:
                    mark = 1.0 + (number + int(student[1:])) % 19
                    said = f"{number} of {first}"
                    person.put("grade", written[student], manual_score=mark, extra_credit=None)
                    person.put("comment", comments[student], manual_comment=said)
                    person.put("grade", added[student], manual_score=mark / 2, extra_credit=1.0)
                    marks[student] = (mark, said)
                number += 1
        except BaseException as error:
            problems.append(error)

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        formgrader(course, tmp_path / "one") as first,
        formgrader(course, tmp_path / "two") as second,
    ):
        people = [
            threading.Thread(target=grade, args=(Grader(address), number, 0))
            for number, address in enumerate((first, second))
        ]
        batch.set()
        for person in people:
            person.start()
        for _ in range(3):
            outcome = run(course, force=True)
            assert outcome.failures == {}
        batch.clear()
        for person in people:
            person.join(120)
        assert problems == []
        shown = Grader(first).page("/formgrader/api/submissions/tiny")
    assert {s: record["score"] for s, record in outcome.records.items()} == deserved
    of_answers, of_tests = parts(course, "why"), parts(course, "test-add")
    said = parts(course, "why", "comments")
    assert set(marks) == set(written)
    for student, (mark, comment) in marks.items():
        assert of_answers[student]["manual_score"] == mark
        assert of_tests[student]["manual_score"] == mark / 2
        assert of_tests[student]["extra_credit"] == 1.0
        assert of_tests[student]["auto_score"] == (40.0 if int(student[1:]) % 2 else 0.0)
        assert said[student]["manual_comment"] == comment
    totals = {row["student"]: row["score"] for row in json.loads(shown)}
    assert totals == {s: 40 + mark + mark / 2 + 1 for s, (mark, _) in marks.items()}
    assert count(postgres, course, "deadlocks") == 0


def count(postgres, course, what):
    """Return a number that the server keeps of a database."""
    with postgres.connect() as connection:
        query = f"SELECT {what} FROM pg_stat_database WHERE datname = %s"
        return connection.execute(query, [name_of(course)]).fetchone()[0]


def test_what_another_writer_undoes_is_done_again(course, postgres, monkeypatch):
    """Under the strictest isolation, where PostgreSQL undoes one of two that meet."""
    fill(course, 4)
    run(course)
    with postgres.connect() as connection:
        connection.execute(
            f'ALTER DATABASE "{name_of(course)}" '
            "SET default_transaction_isolation TO 'serializable'"
        )
    numbers = {s: part["id"] for s, part in parts(course, "test-double").items()}
    connect = functools.partial(postgres.connect, name_of(course))
    with connect() as connection:  # so that the batch has something to write there
        connection.execute("UPDATE grade SET auto_score = 1 WHERE auto_score = 40")
    met, repeats, save = [], [], Writer._save

    def meet(writer, student, *args):
        """Let another one give a mark between the two halves of the writer's transaction."""
        preprocess = writer._save_scores.preprocess

        def with_another(*about):
            if student not in met:
                met.append(student)
                mark = "UPDATE grade SET manual_score = 7, needs_manual_grade = FALSE"
                with connect() as other:
                    other.execute(f"{mark} WHERE id = %s", [numbers[student]])
            return preprocess(*about)

        writer._save_scores.preprocess = with_another
        try:
            return save(writer, student, *args)
        finally:
            writer._save_scores.preprocess = preprocess

    monkeypatch.setattr(Writer, "_save", meet)
    monkeypatch.setattr(database.time, "sleep", repeats.append)
    outcome = run(course, force=True)
    assert outcome.failures == {}
    assert sorted(met) == sorted(numbers)
    assert len(repeats) == len(numbers)
    for part in parts(course, "test-double").values():
        assert (part["manual_score"], part["auto_score"]) == (7.0, 40.0)
        assert part["needs_manual_grade"]  # since it was graded anew after the mark


def test_two_who_wait_for_each_other_both_get_through(course, postgres, monkeypatch):
    """A deadlock with somebody who changes two rows in the other order."""
    fill(course, 1)
    record = run(course).records["s000"]
    cells = {
        part["id"]: name
        for name in ("test-double", "test-add")
        for part in parts(course, name).values()
    }
    first, last = sorted(cells)
    holds, waits = threading.Event(), threading.Event()
    repeats, lock = [], "SELECT 1 FROM grade WHERE id = :id FOR UPDATE"
    monkeypatch.setattr(database.time, "sleep", repeats.append)

    def other():
        with postgres.connect(name_of(course)) as connection, connection.transaction():
            connection.execute("SET deadlock_timeout = '60s'")  # so that not this one is undone
            change = "UPDATE grade SET extra_credit = 2 WHERE id = %s"
            connection.execute(change, [last])
            holds.set()
            waits.wait(30)
            connection.execute(change, [first])

    thread = threading.Thread(target=other)
    with Writer(course, "tiny") as writer:
        preprocess = writer._save_scores.preprocess

        def meet(*about):
            if not holds.is_set():
                thread.start()
                assert holds.wait(30)
                db = writer._gradebook.db
                db.execute(text(lock), {"id": first})
                waits.set()
                db.execute(text(lock), {"id": last})
            return preprocess(*about)

        writer._save_scores.preprocess = meet
        assert writer.apply(record, force=True)
    thread.join(30)
    assert len(repeats) == 1
    assert count(postgres, course, "deadlocks") == 1
    for name in cells.values():
        assert parts(course, name)["s000"]["extra_credit"] == 2.0


WRITE = """
import sys, warnings
from pathlib import Path
import tiny_course
from seqlib.grading.course import Course
from seqlib.grading.gradebook.writer import Writer
from seqlib.grading.records import all_submissions
warnings.simplefilter("ignore")
course = Course(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
with Writer(course, "tiny") as writer:
    for record in all_submissions(course.records, "tiny").values():
        writer.apply(record)
"""


def test_several_batches_may_begin_at_the_same_time_with_no_gradebook(course):
    deserved = fill(course, 3)
    with tiny_grader(course.root) as grader:
        for student in deserved:
            grader.grade(student)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(course.root)],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        _, problems = writer.communicate(timeout=120)
        assert writer.returncode == 0, problems
    assert in_gradebook(course) == deserved


def test_a_server_that_is_started_anew_costs_no_submission(course, postgres):
    deserved = fill(course, 4)

    def restart(student, _):
        if student == "s001":
            postgres.stop()
            postgres.start()

    outcome = run(course, on_result=restart)
    assert outcome.failures == {}
    assert in_gradebook(course) == deserved


def test_a_course_may_have_a_name(course):
    path = course.root / "nbgrader_config.py"
    path.write_text(f"{path.read_text()}\nc.CourseDirectory.course_id = 'sequences'\n")
    assert in_gradebook(course) == {}
    deserved = fill(course, 2)
    run(course)
    assert in_gradebook(course) == deserved
    with open_gradebook(course) as gradebook:
        assert gradebook.find_assignment("tiny").course_id == "sequences"


def test_the_course_without_a_name_is_entered_as_the_reference_demands(course):
    register(course, "tiny")
    register(course, "tiny")
    with open_gradebook(course) as gradebook:
        assert gradebook.find_assignment("tiny").course_id == ""


# ---------------------------------------------------------------- addresses


def test_a_wrong_password_is_said_and_no_password_is_shown(course, postgres):
    use(course, postgres.address(name_of(course), password="not the one"))
    with pytest.raises(ValueError, match="password authentication failed") as caught:
        run(course)
    assert "CourseDirectory.db_url must be the address of a gradebook" in str(caught.value)
    assert "instructor:***@127.0.0.1" in str(caught.value)
    assert "not the one" not in str(caught.value)
    assert "not%20the" not in str(caught.value)


def test_the_summary_names_the_gradebook_without_its_password(course, postgres, capsys):
    fill(course, 1)
    console.show_outcome(course, "tiny", run(course))
    shown = "".join(capsys.readouterr().out.split())
    assert f"gradebook:postgresql+psycopg://instructor:***@127.0.0.1:{postgres.port}/" in shown
    assert postgres.password.replace(" ", "") not in shown
    sqlite = Course(course.root)
    use(sqlite, f"sqlite:///{course.grading / 'gradebook.db'}")
    console.show_outcome(sqlite, "tiny", run(sqlite))
    assert "gradebook:grading/gradebook.db" in "".join(capsys.readouterr().out.split())


def test_the_missing_driver_is_named(course, monkeypatch):
    fill(course, 1)
    for module in [m for m in sys.modules if m.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RuntimeError, match=r'pip install "seqlib-course\[desk\]"'):
        run(course)
