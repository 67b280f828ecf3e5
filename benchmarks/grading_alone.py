"""Graders without the process that starts them and keeps the gradebook.

``python -m benchmarks.grading_alone FOLDER ASSIGNMENT PROCESSES`` prints the seconds in which
that many processes grade the class of a course once, each a part of it. What they load, and
the first submissions of each, are not counted. Two of them need two cores, while ``seqlib grade
--workers 2`` needs a third one to be twice as fast.
"""

import os
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

from seqlib.grading.course import Course
from seqlib.grading.grader import Grader

ROOT = Path(__file__).resolve().parents[1]
FIRST = 14  # submissions that each process grades before the clock is started


def speed_up(root, name, environment, *, rounds=2):
    """Return how many times faster two graders are than one, each in its best round."""
    seconds = [[_run(root, name, environment, n) for n in (1, 2)] for _ in range(rounds)]
    one, two = (min(times) for times in zip(*seconds, strict=True))
    return one / two


def _run(root, name, environment, processes):
    path = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), str(ROOT)]))
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.grading_alone", str(root), name, str(processes)],
        cwd=root,
        env=os.environ | environment | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ran.stdout)


def measured(root, name, processes):
    """Grade a class with some processes at once; return the seconds from first to last."""
    context = get_context("spawn")
    barrier, times = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=_grade, args=(root, name, part, processes, barrier, times))
        for part in range(processes)
    ]
    for process in running:
        process.start()
    spans = [times.get() for _ in running]
    for process in running:
        process.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _grade(root, name, part, parts, barrier, times):
    course = Course(Path(root))
    students = course.students(name)
    with Grader(course, name) as grader:
        for student in students[:FIRST]:
            grader.grade(student, force=True)
        barrier.wait()
        start = time.monotonic()
        for student in students[part::parts]:
            grader.grade(student, force=True)
        times.put((start, time.monotonic()))


if __name__ == "__main__":
    folder, assignment, count = sys.argv[1:]
    print(measured(folder, assignment, int(count)))
