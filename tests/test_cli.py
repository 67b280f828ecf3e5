"""The command ``seqlib``: what it prints, and its exit codes."""

import csv
import dataclasses
import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_course
from click.testing import CliRunner
from desk_tools import copy_course, grade, lay_out
from desk_tools import invoke as run
from tiny_course import as_bytes, released, solved, submit, tiny_grader

import seqlib.cli as cli
from seqlib.grading import batch, console
from seqlib.grading.sandbox import isolation

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "solutions" / "attention" / "attention.ipynb"
pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("course"))


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    course = copy_course(template, tmp_path, monkeypatch)
    make = functools.partial(tiny_grader, course.root)
    monkeypatch.setattr(
        console, "grade_class", functools.partial(batch.grade_class, make_grader=make)
    )
    return course


def python(source, **options):
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=120, **options
    )


# Imports


def test_help_imports_nothing_that_takes_long():
    done = python(
        "import sys\n"
        "from seqlib.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "slow = {'numpy', 'torch', 'nbgrader', 'nbformat', 'rich', 'IPython'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)"
    )
    assert done.returncode == 0, done.stderr
    assert "Exit codes:" in done.stdout


@pytest.mark.parametrize("name", sorted(cli.main.commands))
def test_every_command_explains_itself(name):
    result = CliRunner().invoke(cli.main, [name, "--help"])
    assert result.exit_code == 0
    said = " ".join(cli.main.commands[name].help.split())
    assert said in " ".join(result.output.split())


def test_without_click_the_command_says_what_to_install():
    done = python("import sys; sys.modules['click'] = None; import seqlib.cli")
    assert done.returncode == 1
    assert 'pip install "seqlib-course[grade]"' in done.stderr


def test_a_missing_extra_is_named(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "seqlib.grading.gradebook.writer", None)
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    for name in [n for n in sys.modules if n.startswith("seqlib.grading.export")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("nbgrader.")]:
        monkeypatch.setitem(sys.modules, name, None)
    result = run(course, "export", code=1)
    assert "which is not installed" in result.output
    assert 'pip install "seqlib-course[grade]"' in result.output


# grade


def test_grade_shows_states_and_where_the_results_are(course):
    submit(course, "s001", solved())
    submit(course, "s002", b"<html>")
    result = run(course, "grade", "tiny", "--trust-students", "--workers", "1")
    assert "2 submissions" in result.output
    assert "unreadable" in result.output
    assert "grading/autograded" in result.output
    assert (course.autograded("s001", "tiny") / "tiny.ipynb").is_file()
    result = run(course, "grade", "tiny", "--trust-students", "--json", "--only", "s001")
    found = json.loads(result.stdout)
    assert list(found["records"]) == ["s001"]
    assert found["records"]["s001"]["score"] == 80.0
    assert found["records"]["s001"]["reused"]
    assert found["failures"] == {}


def refuse(level):
    raise isolation.IsolationError("nothing holds here")


def test_too_little_isolation_has_its_own_exit_code(course, monkeypatch):
    monkeypatch.setattr(batch, "require_isolation", refuse)
    submit(course, "s001", solved())
    result = run(course, "grade", "tiny", code=cli.INSUFFICIENT)
    assert "nothing holds here" in result.output


def test_submissions_that_could_not_be_graded_have_their_own_exit_code(course, monkeypatch):
    outcome = batch.Outcome(failures={"s001": "the sandbox failed"})
    monkeypatch.setattr(console, "grade_class", lambda *a, **k: outcome)
    submit(course, "s001", solved())
    result = run(course, "grade", "tiny", "--trust-students", code=cli.NOT_GRADED)
    assert "s001 could not be graded: the sandbox failed" in result.output


def test_an_interrupted_run_has_its_own_exit_code(course, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "grade_class", interrupt)
    submit(course, "s001", solved())
    result = run(course, "grade", "tiny", "--trust-students", code=cli.INTERRUPTED)
    assert "the same command goes on" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grade", "tiny", "--trust-students"], "got none"),
        (["grade", "other", "--trust-students"], "assignment must be one of tiny, setup"),
        (["release", "other"], "assignment must be one of tiny, setup, got 'other'"),
        (["explain", "s001", "tiny.add"], "student must have a graded submission of tiny"),
        (["explain", "s001", "tiny"], "task must be <assignment>.<function>, got 'tiny'"),
        (["report", "tiny"], "run `seqlib grade tiny`"),
    ],
)
def test_what_is_wrong_is_said(course, arguments, message):
    assert message in run(course, *arguments, code=1).output


def test_a_folder_that_is_no_course_is_named(tmp_path):
    result = CliRunner().invoke(cli.main, ["--course", str(tmp_path), "report", "tiny"])
    assert result.exit_code == 1
    assert "course must be a folder with nbgrader_config.py" in result.output


# release, regrade, explain, replay, report, export


def test_release_writes_the_notebook(course):
    assert run(course, "release", "tiny").output == "assignments/tiny/tiny.ipynb\n"


def test_regrade_lists_every_changed_score_with_the_reason(course, monkeypatch):
    grade(course, s001=solved())
    notebook = solved(double="def double(x):\n    return x")
    submit(course, "s001", notebook)
    run(course, "regrade", "tiny", "--trust-students", "--workers", "1")
    submit(course, "s001", solved())
    result = run(course, "regrade", "tiny", "--trust-students", "--workers", "1", "--json")
    assert json.loads(result.stdout) == [
        {
            "student": "s001",
            "task": "tiny.double",
            "before": 0.0,
            "after": 40.0,
            "reason": "another submission",
        }
    ]
    result = run(course, "regrade", "tiny", "--trust-students", "--workers", "1")
    assert "No score has changed." in result.output


def test_explain_says_how_a_score_came_about(course):
    grade(course, s001=solved(double="def double(x):\n    return 2 * x + 1"))
    text = run(course, "explain", "s001", "tiny.double").output
    for part in ("Seed", "exercise 1, judge", "isolation trusted", "numpy", "One was added."):
        assert part in text
    assert "[--] 0 of 40  the values" in text


def test_replay_compares(course):
    grade(course, s001=solved())
    command = ("replay", "s001", "tiny.add", "--trust-students")
    assert "The same as recorded, with seed" in run(course, *command).output
    newer = [
        dataclasses.replace(t, reference=lambda *a: a[0]) for t in tiny_course.ASSIGNMENT.tasks
    ]
    with pytest.MonkeyPatch.context() as monkeypatch:
        changed = dataclasses.replace(tiny_course.ASSIGNMENT, tasks=tuple(newer))
        monkeypatch.setattr(tiny_course, "ASSIGNMENT", changed)
        tiny_course.register(monkeypatch)
        result = run(course, *command, code=cli.DIFFERENT)
    assert "Not the same as recorded (40 points)" in result.output


def test_report_names_its_files(course):
    grade(course, s001=solved())
    assert run(course, "report", "tiny").output.splitlines()[:2] == [
        "grading/reports/tiny/index.html",
        "grading/reports/tiny/scores.csv",
    ]


def test_export_writes_one_table(course, tmp_path):
    submit(course, "s001", solved())
    run(course, "grade", "tiny", "--trust-students", "--workers", "1")
    path = tmp_path / "grades.csv"
    run(course, "export", "--out", str(path))
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert (row["student_id"], row["score"], row["max_score"]) == ("s001", "80.0", "100.0")
    assert row["needs_manual_grade"] == "yes"
    result = run(course, "export", "--out", str(path), "--assignment", "other", code=1)
    assert "assignment must be in the gradebook, which has tiny; got other" in result.output


# doctor


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, cli.INSUFFICIENT)])
def test_doctor_says_what_holds(course, monkeypatch, holds, code):
    from seqlib.grading.sandbox import doctor

    findings = [
        doctor.Finding("network", holds, "connect to <nothing>", "[refused]"),
        doctor.Finding("output", True, "print", "cut"),
    ]
    monkeypatch.setattr(doctor, "run_doctor", lambda level: findings)
    result = run(course, "doctor", code=code)
    assert f"{1 + holds} of 2 protections hold." in result.output
    assert "[refused]" in result.output
    found = json.loads(run(course, "doctor", "--json", code=code).stdout)
    assert found[0]["protection"] == "network"


def test_a_quick_doctor_names_the_level(course, monkeypatch):
    monkeypatch.setattr(isolation, "require_isolation", lambda level: "landlock")
    assert run(course, "doctor", "--quick").output == "Isolation level: landlock\n"
    monkeypatch.setattr(isolation, "require_isolation", refuse)
    result = run(course, "doctor", "--quick", code=cli.INSUFFICIENT)
    assert "nothing holds here" in result.output


# check


def test_check_gives_the_score_of_the_grader(course, tmp_path):
    for notebook, score in ((solved(), 80), (solved(add="add = 1"), 40), (released(), 0)):
        path = tmp_path / "tiny.ipynb"
        path.write_bytes(as_bytes(notebook))
        result = run(course, "check", str(path))
        assert f"{score} of 80 points" in result.output
        assert grade(course, s001=notebook)["s001"]["score"] == score


def test_check_tells_of_cells_that_fail_and_of_a_damaged_file(course, tmp_path):
    notebook = solved()
    notebook["cells"].insert(1, tiny_course.extra("1 / 0"))
    path = tmp_path / "tiny.ipynb"
    data = as_bytes(notebook)
    path.write_bytes(data[: data.index(b'"Add them."')])
    result = run(course, "check", str(path), "--seed", "3")
    assert "Cell 2: ZeroDivisionError: division by zero" in result.output
    assert "Note: The file breaks off" in result.output
    assert "40 of 40 points" in result.output


@pytest.mark.parametrize("content", [b"", b"<html>", as_bytes({"cells": []})])
def test_check_says_what_is_no_notebook(course, tmp_path, content):
    path = tmp_path / "tiny.ipynb"
    path.write_bytes(content)
    assert run(course, "check", str(path), code=1).output.startswith("Error: ")


def test_check_needs_nothing_that_windows_lacks():
    blocked = ("fcntl", "resource", "ctypes", "pwd", "grp", "termios", "nbgrader", "IPython")
    done = python(
        "import sys\n"
        f"for name in {blocked!r}:\n"
        "    sys.modules[name] = None\n"
        "import os\n"
        "del os.fork\n"
        "from seqlib.cli import main\n"
        f"main(['check', {str(NOTEBOOK)!r}])"
    )
    assert done.returncode == 0, done.stderr
    assert "90 of 90 points" in done.stdout
