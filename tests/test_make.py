"""The steps of make course and make test, with programs that only write down their calls."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from course_book.data import ROOT


@pytest.fixture
def workshop(tmp_path):
    """A folder with the Makefile and programs that write down how they are called."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / ".venv" / "ready").touch()
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    for name in ("python", "seqlib", "jupyter-book", "pytest"):
        write_program(programs / name, "exit 0")
    for name in ("attention", "rnn"):
        (tmp_path / "solutions" / name).mkdir(parents=True)
    return tmp_path


def write_program(path, body):
    text = f'#!/bin/sh\necho "{path.name} $*" >> "$(dirname "$0")/../calls"\n{body}\n'
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def make(workshop, *arguments):
    """Run make; return its exit status, what it printed, and the calls that it made."""
    done = subprocess.run(["make", *arguments], cwd=workshop, capture_output=True, text=True)
    calls = (workshop / ".venv" / "calls").read_text(encoding="utf-8").splitlines()
    return done.returncode, done.stdout, calls


def test_make_course_goes_through_all_steps(workshop):
    status, printed, calls = make(workshop, "course")
    assert status == 0
    assert calls == [
        "jupyter-book build . -W -n --keep-going",
        "seqlib release attention rnn",
        "seqlib doctor --json",
        "python -m seqlib.grading.samples attention",
        "seqlib grade attention",
        "seqlib report attention",
    ]
    assert "_build/html/index.html" in printed
    assert "harmless" not in printed


def test_make_course_grades_harmless_samples_where_the_sandbox_is_weak(workshop):
    findings = [
        {"protection": "network", "holds": False},
        {"protection": "signals", "holds": True},
        {"protection": "other files", "holds": False},
    ]
    programs = workshop / ".venv" / "bin"
    (workshop / "findings").write_text(json.dumps(findings), encoding="utf-8")
    write_program(programs / "seqlib", 'if [ "$1" = doctor ]; then cat findings; exit 3; fi')
    write_program(programs / "python", f'if [ "$1" = -c ]; then {sys.executable} "$@"; fi')
    status, printed, calls = make(workshop, "course")
    assert status == 0
    line = next(line for line in printed.splitlines() if "harmless" in line)
    assert line.endswith("missing: network, other files")
    assert "python -m seqlib.grading.samples attention --harmless" in calls
    assert "seqlib grade attention --trust-students" in calls
    assert "seqlib grade attention" not in calls


def test_make_course_without_any_sandbox_says_why(workshop):
    body = 'if [ "$1" = doctor ]; then echo "Error: no Linux" >&2; exit 3; fi'
    write_program(workshop / ".venv" / "bin" / "seqlib", body)
    write_program(workshop / ".venv" / "bin" / "python", '[ "$1" != -c ]')
    status, printed, _ = make(workshop, "course")
    assert status == 0
    assert "missing: Error: no Linux" in printed


@pytest.mark.parametrize("student", ["ada", "s123"])
def test_make_course_leaves_an_own_class_alone(workshop, student):
    """An own student may be called as a sample is: samples carry a mark."""
    sample = workshop / "grading" / "submitted" / "s001" / "attention"
    sample.mkdir(parents=True)
    (sample / ".sample").write_text("perfect\n")
    (workshop / "grading" / "submitted" / student / "attention").mkdir(parents=True)
    status, printed, calls = make(workshop, "course")
    assert status == 0
    assert "a class of your own" in printed
    assert not any("samples" in call or "seqlib grade" in call for call in calls)


@pytest.mark.parametrize("step", ["release", "grade", "report"])
def test_make_course_stops_where_a_step_fails(workshop, step):
    write_program(workshop / ".venv" / "bin" / "seqlib", f'[ "$1" != {step} ]')
    status, _, calls = make(workshop, "course")
    assert status != 0
    assert calls[-1].startswith(f"seqlib {step} attention")


def test_make_test_builds_the_book_and_runs_the_tests(workshop):
    status, _, calls = make(workshop, "test")
    assert status == 0
    assert [call.partition(" ")[0] for call in calls] == ["jupyter-book", "pytest"]


@pytest.mark.parametrize("wheels", ["", "some where"])
def test_make_site_prepares_builds_prints_and_packs(workshop, wheels):
    status, _, calls = make(workshop, "site", *([f"WHEELS={wheels}"] if wheels else []))
    assert status == 0
    assert calls == [
        "python -m course_site prepare" + (f" --wheels {wheels}" if wheels else ""),
        "jupyter-book build . -W -n --keep-going",
        "python -m course_site pdf",
        "python -m course_site pack",
    ]


def test_a_missing_python_is_named(workshop):
    (workshop / ".venv" / "ready").unlink()
    done = subprocess.run(
        ["make", "PYTHON=", "book"], cwd=workshop, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "the course needs Python 3.11 or newer" in done.stderr
