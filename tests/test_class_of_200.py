"""A class of 200, more than a tenth of it damaged or hostile: the declared scores, however run.

The declared scores are those of ``tests/samples/attention.json``, once for each kind of sample.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seqlib.grading.course import Course
from seqlib.grading.gradebook.writer import open_gradebook
from seqlib.grading.records import all_submissions
from seqlib.grading.samples.sample_class import SampleClass

ROOT = Path(__file__).resolve().parents[1]
NAME, SIZE = "attention", 200
TIMES = ("seconds", "graded_at")  # what two runs may differ in
GRADE = (sys.executable, "-m", "seqlib.cli", "grade", NAME, "--json")
# The order in which the class is graded, otherwise that of the ids.
SHUFFLED = """
import random, sys
from seqlib.grading import batch
chosen = batch._chosen
batch._chosen = lambda *a: random.Random(5).sample(chosen(*a), len(chosen(*a)))
from seqlib.cli import main
sys.argv[0] = "seqlib"
main()
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.sandbox,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]


def is_trouble(sample, entry):
    """Whether a sample is damaged or hostile."""
    return not sample.harmless or entry["state"] != "graded"


@pytest.fixture(scope="module")
def class_of_200():
    """Return the files and the declared outcome of each student."""
    declared = json.loads((ROOT / "tests" / "samples" / f"{NAME}.json").read_text())
    found = list(zip(SampleClass(Course(ROOT), NAME).samples(), declared.values(), strict=True))
    trouble = [pair for pair in found if is_trouble(*pair)]
    others = [pair for pair in found if not is_trouble(*pair)]
    assert len(trouble) >= SIZE / 10
    # Trouble is spread over the class.
    rest, class_ = itertools.cycle(others), []
    every = SIZE // len(trouble)
    for number in range(SIZE):
        which, left = divmod(number, every)
        class_.append(trouble[which] if left == 4 and which < len(trouble) else next(rest))
    assert sum(is_trouble(*pair) for pair in class_) == len(trouble)
    return {f"s{i:03}": pair for i, pair in enumerate(class_, start=1)}


def lay_out(root, class_, students=None):
    root.mkdir()
    shutil.copy(ROOT / "nbgrader_config.py", root)  # its folder is that of the gradebook
    for name in ("solutions", "assignments", "tests"):
        (root / name).symlink_to(ROOT / name)
    course = Course(root)
    course.grading.mkdir()
    (course.grading / "secret").write_text("22" * 32 + "\n", encoding="ascii")
    for student in students or class_:
        folder = course.submission(student, NAME)
        folder.mkdir(parents=True)
        for name, data in class_[student][0].files.items():
            (folder / name).write_bytes(data)
    return course


def outcome(course):
    """Return what is kept of a class, but for times."""
    records = all_submissions(course.records, NAME)
    return {s: _without_times(record) for s, record in records.items()}


def _without_times(value):
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k not in TIMES}
    return value


def points(course):
    """Return the points of each test cell in the gradebook."""
    with open_gradebook(course) as gradebook:
        return {
            s.student.id: {g.name: g.auto_score for n in s.notebooks for g in n.grades}
            for s in gradebook.assignment_submissions(NAME)
        }


@pytest.fixture(scope="module")
def graded(class_of_200, tmp_path_factory):
    """Grade the class in one command, with one worker."""
    course = lay_out(tmp_path_factory.mktemp("one") / "course", class_of_200)
    done = subprocess.run(
        [*GRADE, "--workers", "1"], cwd=course.root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failures"] == {}
    return course


def test_every_submission_gets_the_declared_score(class_of_200, graded):
    records = all_submissions(graded.records, NAME)
    assert list(records) == sorted(class_of_200)
    wrong = []
    for student, (sample, entry) in class_of_200.items():
        record = records[student]
        got = {t.rpartition(".")[2]: v["score"] for t, v in record["tasks"].items()}
        if (record["state"], got) != (entry["state"], entry["scores"]):
            wrong.append((student, sample.name, record["state"], got))
    assert wrong == []
    in_gradebook = {s: sum(filter(None, p.values())) for s, p in points(graded).items()}
    assert in_gradebook == {s: record["score"] for s, record in records.items()}


def test_two_workers_another_order_and_a_kill_half_way_change_nothing(
    class_of_200, graded, tmp_path
):
    course = lay_out(tmp_path / "course", class_of_200)
    command = [sys.executable, "-c", SHUFFLED, *GRADE[3:], "--workers", "2"]
    killed = subprocess.Popen(
        command, cwd=course.root, stdout=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 1200
    while len(all_submissions(course.records, NAME)) < SIZE / 2:
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    before = set(all_submissions(course.records, NAME))
    assert SIZE / 2 <= len(before) < SIZE
    assert before != set(sorted(class_of_200)[: len(before)])
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {student for student, record in records.items() if record["reused"]} == before
    assert outcome(course) == outcome(graded)
    assert points(course) == points(graded)


def test_plain_autograde_with_our_plugins_gives_the_same_points(class_of_200, graded, tmp_path):
    """All that is damaged or hostile, and every tenth of the others."""
    students = [
        student
        for i, (student, pair) in enumerate(class_of_200.items())
        if is_trouble(*pair) or i % 10 == 0
    ]
    assert len(students) > 35
    course = lay_out(tmp_path / "course", class_of_200, students)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", NAME],
        cwd=course.root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    expected = points(graded)
    assert points(course) == {student: expected[student] for student in students}
