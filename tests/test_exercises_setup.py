"""The practice notebook ``setup``: it tells the truth about a machine, and has no points."""

import contextlib
import copy
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from course_book import sections

from seqlib.cli import main
from seqlib.exercises import ASSIGNMENTS, PRACTICE, get_assignment, get_task
from seqlib.grading.course import Course
from seqlib.grading.release import faults, release
from seqlib.judge.judge import judge
from seqlib.judge.matrix import kill_matrix
from seqlib.subject.inprocess import InProcess

ROOT = Path(__file__).resolve().parents[1]
SETUP = get_assignment("setup")
(TASK,) = SETUP.tasks


def notebook(folder):
    path = ROOT / folder / "setup" / "setup.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))


def by_id(folder="solutions"):
    return {cell["id"]: "".join(cell["source"]) for cell in notebook(folder)["cells"]}


def printed(*names, space=None, folder="solutions"):
    """Run cells as a notebook would, and return what they print."""
    cells, space = by_id(folder), {} if space is None else space
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for name in names:
            exec(cells[name], space)
    return out.getvalue()


def result_of(name, folder="solutions"):
    space = {}
    printed("over_columns", name, space=space, folder=folder)
    return judge(TASK, InProcess(space[name]), seed=1)


# What it says about the machine


def test_a_machine_with_everything_is_told_so(monkeypatch, tmp_path):
    (tmp_path / "setup.ipynb").touch()
    (tmp_path / "rnn.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    text = printed("machine", "pytorch", "place")
    assert "[--]" not in text
    assert text.count("[ok]") == 5
    assert re.search(r"\[ok\] seqlib \d+\.\d+\.\d+\n\[ok\] PyTorch \d", text)
    assert text.endswith(
        f"[ok] folder {tmp_path}\n     notebooks here: rnn.ipynb, setup.ipynb\n"
    )


@pytest.mark.parametrize("name", ["numpy", "seqlib"])
def test_a_missing_package_is_named_with_its_remedy(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    (line,) = re.findall(r"^\[--\] .*", printed("machine"), re.MULTILINE)
    assert line.lower().startswith(f"[--] {name} none: run `%pip install")


def test_old_versions_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    monkeypatch.setattr(np, "__version__", "1.26.4")
    python, numpy = re.findall(r"^\[--\] .*", printed("machine"), re.MULTILINE)
    assert "install Python 3.11 or newer" in python
    assert "NumPy 1.26.4" in numpy


def test_pytorch_is_not_missed_before_the_decoder(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    text = printed("machine", "pytorch").splitlines()[-1]
    assert text.startswith("[ok] no PyTorch yet: before `decoder`, run `%pip install torch`")
    assert not any(get_assignment(name).torch for name in {*ASSIGNMENTS} - {"decoder"})


def test_a_notebook_under_another_name_is_noticed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = printed("machine", "place")
    assert f"[--] folder {tmp_path}: it does not hold setup.ipynb" in text
    assert "notebooks here: none" in text


def test_it_runs_in_the_browser_without_pytorch_and_without_processes():
    """All cells in a fresh Python that has what the browser's kernel has."""
    blocked = ("torch", "subprocess", "multiprocessing", "nbgrader", "IPython", "click")
    code = [c for c in notebook("solutions")["cells"] if c["cell_type"] == "code"]
    program = "\n".join(
        [
            "import os, sys",
            f"sys.modules.update(dict.fromkeys({blocked!r}))",
            "sys.platform = 'emscripten'",
            *("".join(cell["source"]) for cell in code),
        ]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no PyTorch in the browser" in done.stdout
    assert "in the storage of your browser" in done.stdout
    assert "[--] numpy" not in done.stdout.lower()
    assert "setup.row_means: 10 of 10 points" in done.stdout


# How a check reads


@pytest.mark.parametrize(
    ("name", "score", "mistake"),
    [
        ("over_columns", 0, "first_axis"),
        ("over_axis_1", 6, "second_axis"),
        ("row_means", 10, None),
    ],
)
def test_the_three_answers_get_what_the_text_says(name, score, mistake):
    result = result_of(name)
    assert result.score == score
    assert (result.diagnosis and result.diagnosis.names) == (mistake and (mistake,))
    text = "\n".join(by_id().values())
    assert score == 10 or f"{score} of 10" in text


def test_the_release_is_not_written_yet():
    result = result_of("row_means", "assignments")
    assert result.score == 0
    assert "not written yet" in result.criteria[0].message


def test_the_worked_numbers():
    X = np.array([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])
    space = {}
    assert printed("over_columns", "row_means", "try_row_means", space=space) == "[2. 6.]\n"
    assert "(2.5, 4, 5.5)" in by_id()["about_check"]
    np.testing.assert_array_equal(space["over_columns"](X), [2.5, 4, 5.5])
    assert f"{SETUP.hours * 60:g} minutes" in by_id()["about"]


@pytest.mark.parametrize("seed", range(3))
def test_each_mistake_of_the_record_is_named_as_itself(seed):
    rows = kill_matrix(SETUP, seed=seed)
    assert [row.made for row in rows] == [("first_axis",), ("second_axis",)]
    assert all(row.named_as_itself and not row.survives for row in rows)


def test_the_sections_that_it_names_exist():
    assert sections.used("setup") <= sections.known()


# It is released like the others, and never graded


def test_it_is_an_assignment_for_practice():
    assert PRACTICE == ("setup",)
    assert not set(PRACTICE) & set(ASSIGNMENTS)
    assert not SETUP.graded
    assert all(get_assignment(name).graded for name in ASSIGNMENTS)
    assert get_task("setup.row_means") is TASK


def test_what_is_committed_is_what_the_source_gives(tmp_path):
    made = release(Course(ROOT), "setup", out=tmp_path)
    committed = ROOT / "assignments" / "setup" / "setup.ipynb"
    assert made.read_bytes() == committed.read_bytes(), "run `seqlib release setup`"
    assert "SOLUTION" not in made.read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["solutions", "assignments"])
def test_the_notebook_is_sound(folder):
    assert faults(notebook(folder), SETUP) == []


@pytest.mark.parametrize(
    ("key", "change", "fault"),
    [
        (
            "check_row_means",
            {"source": 'check("setup.row_means", over_columns)'},
            "'setup.row_means' of the record must have a cell",
        ),
        (
            "over_columns",
            {"metadata": {"nbgrader": {"grade": True}}},
            "cell 'over_columns' must not be graded, since the notebook has no points",
        ),
        ("over_columns", {"execution_count": 1}, "cell 'over_columns' must have no output"),
    ],
)
def test_its_faults_are_found(key, change, fault):
    changed = copy.deepcopy(notebook("solutions"))
    (cell,) = (cell for cell in changed["cells"] if cell["id"] == key)
    cell |= change
    assert faults(changed, SETUP) == [fault]


@pytest.mark.parametrize("command", ["grade", "regrade"])
def test_it_is_not_graded(command, tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("")
    (tmp_path / "grading" / "submitted" / "ada" / "setup").mkdir(parents=True)
    result = CliRunner().invoke(main, ["--course", str(tmp_path), command, "setup"])
    assert result.exit_code == 1
    assert "must be a graded one, got 'setup', which is for practice" in result.output
