"""Grading beside plain ``nbgrader autograde``: ``python -m benchmarks.grading [--n 100]``.

The same submissions are graded by ``seqlib grade`` with one worker at the highest isolation
level of the machine, and by nbgrader without any plug-in, whose kernels run the same ``check``.
Start-up and gradebook count on both sides, and the points of every test cell must agree.

nbgrader grades a sample, in two runs of different size, before and after ours; what the further
submissions cost is extrapolated from the difference, which ``--sample`` as large as ``--n``
avoids. CPU time is that of all processes of a command, children included. The time on the clock
depends on what else the machine does.

``seqlib grade --workers 2`` runs three processes: two that grade, and the first one, which
writes the gradebook. On a machine with two cores they take turns, and one worker beside the
first process uses more than one core already. How graders scale by themselves is a row of its
own (:mod:`benchmarks.grading_alone`).
"""

import argparse
import contextlib
import io
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks import grading_courses as courses
from benchmarks.grading_alone import speed_up
from benchmarks.grading_runs import (
    Cost,
    autograde,
    free_cores,
    grade,
    private_memory,
    scores,
)
from seqlib.exercises import ASSIGNMENTS, get_assignment
from seqlib.judge.check import check
from seqlib.judge.degenerate import degenerate_answers

CORES = 1.6  # that must be free where two workers are to be compared with one


def rows(n=100, sample=16):
    """Return ``(name, value, target, sense)`` for each figure that has a target."""
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for make, target in ((courses.attention, 6), (courses.with_torch, 10)):
            found += grading_rows(Path(folder) / make.__name__, make, n, sample, target)
    found += student_rows()
    for torch in (False, True):
        kind = "a PyTorch" if torch else "a NumPy"
        name = f"MiB private to the largest process of {kind} submission, beyond its data"
        found.append((name, private_memory(torch=torch), 20, "at most"))
    return found


def student_rows(rounds=3):
    """Time what students and instructors wait for: the slowest check, and the help."""
    slowest = {}
    tasks = [
        task
        for name in ASSIGNMENTS
        if not get_assignment(name).torch
        for task in get_assignment(name).tasks
    ]
    for task in tasks:
        answers = {"right": task.reference, "zeros": degenerate_answers(task)["zeros"]}
        for kind, function in answers.items():
            slowest[f"{kind} answer to {task.id}"] = min(
                _seconds(lambda f=function, t=task: check_quietly(t, f), time.process_time)
                for _ in range(rounds)
            )
    which = max(slowest, key=slowest.get)
    help_ = [sys.executable, "-m", "seqlib.cli", "--help"]
    run = partial(subprocess.run, help_, check=True, stdout=subprocess.DEVNULL)
    return [
        (
            f"CPU s for the slowest check of {len(tasks)} NumPy tasks: {which}",
            slowest[which],
            1,
            "at most",
        ),
        ("s for seqlib --help", min(_seconds(run) for _ in range(rounds)), 0.4, "at most"),
    ]


def check_quietly(task, function):
    """Check a function as a student does."""
    with contextlib.redirect_stdout(io.StringIO()):
        check(task.id, function)


def _seconds(run, clock=time.perf_counter):
    start = clock()
    run()
    return clock() - start


def grading_rows(folder, make, n, sample, target):
    """Compare one assignment with nbgrader, and two workers with one."""
    root = folder / "ours"
    name, environment = make(root, n)
    sizes = min(n, max(sample // 4, 1)), min(n, sample)
    few = theirs(folder, name, environment, sizes[0])
    ours = grade(root, name, environment)
    many = theirs(folder, name, environment, sizes[1], scores(root, name))
    whole = extrapolated(few, many, sizes, n)
    how = "all" if n == sizes[1] else f"{sizes[1]}, extrapolated"
    kind = f"{n} submissions of {name}, nbgrader autograde ({how}) / seqlib grade"
    shutil.rmtree(root)
    make(root, n)
    free = free_cores()
    two = grade(root, name, environment, workers=2)
    wanted = "at least" if free >= CORES else f"({free:.1f} cores free: not compared with)"
    return [
        (f"CPU time of {kind}", whole.cpu / ours.cpu, target, "at least"),
        (f"clock of {kind}", whole.clock / ours.clock, target, "at least"),
        (f"clock of {name}, 1 worker / 2 workers", ours.clock / two.clock, 1.7, wanted),
        (
            f"clock of {name}, 1 grader / 2 graders, nothing else beside them",
            speed_up(root, name, environment),
            1.7,
            wanted,
        ),
        (f"MiB that the parent grows in the last half of {name}", ours.grown, 3, "at most"),
    ]


def theirs(folder, name, environment, size, expected=None):
    """Grade some submissions with nbgrader, and hold the points to be those expected."""
    root = folder / f"theirs-{size}"
    courses.plain(folder / "ours", root, name, size)
    cost = autograde(root, name, environment)
    got = scores(root, name)
    assert len(got) == size, f"nbgrader graded {len(got)} of {size}"
    for student, points in got.items() if expected else ():
        assert points == expected[student], (student, points, expected[student])
    return cost


def extrapolated(few, many, sizes, n):
    """Return what n submissions cost if each further one costs the same."""
    times = 0 if n == sizes[1] else (n - sizes[1]) / (sizes[1] - sizes[0])
    return Cost(
        many.cpu + times * (many.cpu - few.cpu), many.clock + times * (many.clock - few.clock)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare seqlib grade with nbgrader.")
    parser.add_argument("--n", type=int, default=100, help="submissions of an assignment")
    parser.add_argument("--sample", type=int, default=16, help="of them for nbgrader")
    options = parser.parse_args()
    for name, value, target, sense in rows(options.n, options.sample):
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
