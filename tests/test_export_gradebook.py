"""Marks out of a real gradebook: what is open, the commands, and nbgrader's exporters."""

import csv
import dataclasses
import subprocess
import sys

import platform_files
import postgres_tools
import pytest
import tiny_course
from desk_tools import copy_course, give, grade, lay_out, run
from nbgrader.api import MissingEntry
from nbgrader.plugins import CsvExportPlugin
from sqlalchemy import event
from tiny_course import as_bytes, solved, submit

from seqlib.grading.export import plugins
from seqlib.grading.export.marks import collect_marks
from seqlib.grading.gradebook.writer import open_gradebook, register
from seqlib.grading.records import Store
from seqlib.grading.release import load_config

pytestmark = [
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("course"))


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    course = copy_course(template, tmp_path, monkeypatch)
    monkeypatch.chdir(course.root)
    return course


def marks(course, **options):
    with open_gradebook(course) as gradebook:
        return {m.student: m for m in collect_marks(gradebook, course, **options)}


def cut(notebook):
    """Return a file that breaks off behind the first function."""
    data = as_bytes(notebook)
    return data[: data.index(b'"Add them."')]


# What is open


def test_a_mark_is_final_when_a_person_has_marked_what_persons_mark(course):
    grade(course, s001=solved())
    (found,) = marks(course).values()
    assert (found.score, found.open) == (80.0, ("a person has yet to mark an answer",))
    assert found.note == "Not final: a person has yet to mark an answer."
    give(course, "s001")
    (found,) = marks(course).values()
    assert (found.score, found.max_score, found.open, found.note) == (95.0, 100.0, (), "")
    assert found.state == "graded"


def test_each_state_that_is_not_final_is_named(course):
    files = {
        "s001": solved(),
        "s002": cut(solved()),
        "s003": b"<html>",
        "s004": solved(),
        "s005": solved(),
        "s006": solved(),
    }
    grade(course, **files)
    give(course, *files)
    Store(course.records, "tiny", "s004").save_failure("the sandbox failed")
    submit(course, "s005", solved(add="def add(x, y):\n    return y + x"))
    grade(course, s006=solved(why="Another answer."))
    submit(course, "s007", solved())
    with open_gradebook(course) as gradebook:
        gradebook.add_student("s007")
        gradebook.add_student("s008")
    found = marks(course)
    assert {student: mark.open for student, mark in found.items()} == {
        "s001": (),
        "s002": ("part of the work could not be graded",),
        "s003": ("the file could not be read",),
        "s004": ("the last run could not grade the newest submission",),
        "s005": ("another file has been submitted since",),
        "s006": (
            "a person has yet to mark an answer",
            "marks were given to an older submission (why)",
        ),
        "s007": ("what was submitted has not been graded yet",),
        "s008": (),
    }
    assert found["s004"].state == "infrastructure_error"
    assert (found["s007"].score, found["s008"].score) == (None, None)
    output = run(course, "export", "--to", "canvas", "--out", "c.csv")
    grades, _ = platform_files.canvas((course.root / "c.csv").read_bytes())
    assert {s: g["tiny"] for s, g in grades.items()} == {
        s: "95" if s == "s001" else "" for s in found
    }
    assert "1 mark written." in output
    assert "6 marks left out" in output
    rows = list(csv.DictReader((course.root / "c-notes.csv").open()))
    assert [(row["student_id"], row["exported"]) for row in rows] == [
        (f"s00{i}", "no") for i in range(2, 8)
    ]
    run(course, "export", "--to", "canvas", "--out", "c.csv", "--provisional")
    grades, _ = platform_files.canvas((course.root / "c.csv").read_bytes())
    assert {s: g["tiny"] for s, g in grades.items()} == {
        "s001": "95",
        "s002": "55",
        "s003": "15",
        "s004": "95",
        "s005": "95",
        "s006": "95",
        "s007": "",
        "s008": "",
    }
    # None of them without its note.
    rows = list(csv.DictReader((course.root / "c-notes.csv").open()))
    assert [row["student_id"] for row in rows if row["exported"] == "yes"] == [
        f"s00{i}" for i in range(2, 7)
    ]
    assert all(row["note"].startswith("Not final: ") for row in rows)


def test_the_sums_are_those_of_nbgrader(course):
    grade(course, s001=solved(), s002=solved(add="add = 1"), s003=tiny_course.released())
    give(course, "s001")
    with open_gradebook(course) as gradebook:
        found = gradebook.find_grade("test-add", "tiny", "tiny", "s002")
        found.manual_score, found.extra_credit = 10.0, 2.5
        notebook = gradebook.find_submission_notebook("tiny", "tiny", "s001")
        notebook.late_submission_penalty = 9.5
        gradebook.add_student("s004")
        gradebook.add_assignment("other")
        gradebook.add_submission("other", "s001")
        gradebook.db.commit()
        for mark in collect_marks(gradebook):
            try:
                theirs = gradebook.find_submission(mark.assignment, mark.student)
            except MissingEntry:
                assert mark.score is None
                continue
            assert mark.raw_score == theirs.score
            assert mark.penalty == theirs.late_submission_penalty
            assert mark.needs_manual_grade == theirs.needs_manual_grade
            assert mark.max_score == theirs.assignment.max_score
    found = marks(course, assignments=["tiny"])
    assert [m.score for m in found.values()] == [85.5, 52.5, 0.0, None]


def test_names_that_the_gradebook_does_not_have_are_named(course):
    grade(course, s001=solved())
    with pytest.raises(ValueError, match=r"assignment must be in the gradebook, .* got x"):
        marks(course, assignments=["tiny", "x"])
    with pytest.raises(ValueError, match=r"student must be in the gradebook, .* got x"):
        marks(course, students=["x"])


def test_an_empty_gradebook_is_named(course):
    with open_gradebook(course) as gradebook:
        gradebook.remove_assignment("tiny")
    assert "gradebook must have an assignment" in run(course, "export", code=1)
    assert not (course.root / "grades.csv").exists()


# The commands


def test_the_general_table_has_states_and_notes_and_no_0_for_nobody(course):
    grade(course, s001=solved(), s002=cut(solved()))
    give(course, "s001")
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_student("s003", last_name="=1+1", first_name='"A", B')
    assert run(course, "export").splitlines() == ["grades.csv"]
    first, second, third = csv.DictReader((course.root / "grades.csv").open(newline=""))
    assert (first["score"], first["state"], first["note"]) == ("95.0", "graded", "")
    assert (second["score"], second["state"]) == ("40.0", "partly_graded")
    assert second["note"].startswith("Not final: part of the work could not be graded; ")
    assert (third["score"], third["raw_score"], third["needs_manual_grade"]) == ("", "", "")
    assert (third["last_name"], third["first_name"]) == ("'=1+1", '"A", B')


def test_a_template_is_filled_by_the_command(course):
    grade(course, ada=solved(), ben=solved(add="add = 1"))
    give(course, "ada")
    give(course, "ben", points=5.0)
    text = (
        "Student,ID,SIS Login ID,Section,Homework 1 (31)\n    Points Possible,,,,100\n"
        '"Lovelace, Ada",1,ada,S,\n"Hopper, Grace",2,grace,S,\n'
    )
    path = course.root / "from-canvas.csv"
    path.write_text(text)
    command = ("export", "--to", "canvas", "--template", str(path))
    message = run(course, *command, code=1)
    assert (
        "must have a column for tiny, got Student, ID, SIS Login ID, Section, Home" in message
    )
    column = ("--column", "tiny=Homework 1")
    output = run(course, *command, *column)
    assert (course.root / "canvas.csv").read_text() == text.replace("ada,S,", "ada,S,95")
    assert output.splitlines() == [
        "canvas.csv",
        "Matched by SIS Login ID: 1 of 2 students.",
        "1 mark written.",
        "No row in the template for ben.",
    ]
    assert "out must be another file" in run(course, *command, "--out", str(path), code=1)
    assert path.read_text() == text
    # The table of notes goes beside the file, and must not be the template either.
    path = path.rename(path.with_name("marks-notes.csv"))
    command = (*command[:-1], str(path))
    wrong = run(course, *command, *column, "--out", "marks.csv", code=1)
    assert "whose notes would replace the template marks-notes.csv" in wrong
    assert path.read_text() == text
    wrong = run(course, *command, "--column", "tiny", code=1)
    assert "column must be NAME=COLUMN, got 'tiny'" in wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "grades.csv"], "platform must be one of canvas, moodle, blackboard, generic"),
        (["--provisional"], "provisional must go with canvas, moodle, blackboard"),
        (["--column", "tiny=x"], "columns must go with canvas"),
        (["--out", "none/x.csv"], "out must be a file in a folder that exists, got none/x.csv"),
        (["--to", "canvas", "--column", "tiny=A", "--column", "tiny=B"], "got 'tiny' again"),
        (["--out", "grading"], "out must be a file in a folder that exists, got grading"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(course, arguments, message):
    grade(course, s001=solved())
    assert message in run(course, "export", *arguments, code=1)
    assert list(course.root.glob("*.csv")) == []


def test_notes_of_an_earlier_run_do_not_stay(course):
    grade(course, s001=solved())
    run(course, "export", "--to", "blackboard")
    assert (course.root / "blackboard-notes.csv").exists()
    give(course, "s001")
    run(course, "export", "--to", "blackboard")
    assert not (course.root / "blackboard-notes.csv").exists()


# nbgrader export


def nbgrader(*arguments):
    """Run nbgrader's command in the present folder."""
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("platform", ["canvas", "moodle", "blackboard"])
def test_nbgrader_export_writes_the_same_file(course, platform):
    grade(course, s001=solved(), s002=solved(add="add = 1"))
    give(course, "s001")
    with open_gradebook(course) as gradebook:
        for student, number in (("s001", "501"), ("s002", "502")):
            gradebook.update_or_create_student(student, lms_user_id=number)
    options = {"to": str(course.root / "theirs.csv"), "provisional": True}
    plugin = getattr(plugins, f"{platform.title()}Plugin")(**options)
    with open_gradebook(course) as gradebook:
        plugin.export(gradebook)
    out = course.root / "ours.csv"
    run(course, "export", "--to", platform, "--out", str(out), "--provisional")
    data = out.read_bytes()
    assert (course.root / "theirs.csv").read_bytes() == data
    assert (course.root / "theirs-notes.csv").read_bytes() == (
        course.root / "ours-notes.csv"
    ).read_bytes()
    assert getattr(platform_files, platform)(data)


@pytest.mark.slow
def test_nbgrader_export_takes_a_template_and_its_own_options(course):
    grade(course, s001=solved(), s002=solved())
    give(course, "s001")
    give(course, "s002", points=5.0)
    text = (
        "Identifier,Full name,Grade,Last modified (grade)\n"
        "Participant 7,s001,,-\nParticipant 8,s002,,-\n"
    )
    (course.root / "t.csv").write_text(text)
    with open_gradebook(course) as gradebook:
        for student, number in (("s001", "7"), ("s002", "8")):
            gradebook.update_or_create_student(student, lms_user_id=number)
    said = nbgrader(
        "export",
        "--exporter=seqlib.grading.export.plugins.MoodlePlugin",
        "--student=['s002']",
        "--MoodlePlugin.template=t.csv",
        "--MoodlePlugin.match=Identifier",  # the number of a roster may be any number
    )
    assert "1 mark written." in said
    assert (course.root / "moodle.csv").read_text() == text.replace("s002,", "s002,85")


def test_the_default_of_nbgrader_export_is_the_general_table(course):
    grade(course, s001=solved())
    with open_gradebook(course) as gradebook:
        plugins.CsvPlugin(to="theirs.csv").export(gradebook)
    configured = load_config(course).ExportApp.plugin_class
    assert configured == "seqlib.grading.export.plugins.CsvPlugin"
    run(course, "export")
    theirs = (course.root / "theirs.csv").read_bytes()
    assert theirs == (course.root / "grades.csv").read_bytes()
    assert b"needs_manual_grade,state,note" in theirs


def test_nbgraders_own_exporter_would_write_a_formula_and_a_0(course):
    """What is compared with: a reason for a table of our own."""
    grade(course, s001=solved())
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_student("s002", last_name="=1+1")
        CsvExportPlugin(to=str(course.root / "stock.csv")).export(gradebook)
    assert ",s002,=1+1,None" in (course.root / "stock.csv").read_text().replace(",,", ",None,")


def test_a_large_class_takes_no_query_for_each_student(course):
    grade(course, s001=solved())
    taken = []
    for size in (5, 20):
        with open_gradebook(course) as gradebook:
            for i in range(size):
                gradebook.update_or_create_submission(
                    "tiny", gradebook.update_or_create_student(f"t{size}-{i}").id
                )
        with open_gradebook(course) as gradebook:
            queries = []
            event.listen(
                gradebook.engine, "before_cursor_execute", lambda *a, q=queries: q.append(a)
            )
            assert len(collect_marks(gradebook, course)) > size
            taken.append(len(queries))
    assert taken[0] == taken[1] < 12


def test_a_mark_is_data(course):
    grade(course, s001=solved())
    (found,) = marks(course).values()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.score = 100.0


@pytest.mark.slow
@pytest.mark.skipif(bool(postgres_tools.why_not()), reason=postgres_tools.why_not())
def test_a_gradebook_in_postgresql_is_exported_alike(course):
    with postgres_tools.server() as server:
        path = course.root / "nbgrader_config.py"
        address = server.new_database("marks")
        more = f"c.CourseDirectory.db_url = {address!r}\nc.LatePolicy.percent_per_day = 10\n"
        path.write_text(f"{path.read_text()}\n{more}")
        register(course, "tiny")
        with open_gradebook(course) as gradebook:
            gradebook.update_or_create_assignment("tiny", duedate="2026-03-02 12:00:00 UTC")
        for student in ("s001", "s002"):
            submit(course, student, solved())
            time = course.submission(student, "tiny") / "timestamp.txt"
            time.write_text("2026-03-03 18:00:00 UTC")
        grade(course, s001=solved(), s002=solved())
        give(course, "s001")
        found = marks(course)
        assert [(m.raw_score, m.penalty) for m in found.values()] == [
            (95.0, 16.0),
            (80.0, 16.0),
        ]
        output = run(course, "export", "--to", "canvas", "--out", "c.csv")
        assert "Penalties for late submissions brought up to date: 1." in output
        grades, _ = platform_files.canvas((course.root / "c.csv").read_bytes())
        # Of 95 points two days cost 19.
        assert grades == {"s001": {"tiny": "76"}, "s002": {"tiny": ""}}
