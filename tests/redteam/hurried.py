"""A grader with small limits, for workers of a batch, that notes what memory it uses."""

import contextlib
import dataclasses
import functools
import json
import os
import sys
from pathlib import Path

from seqlib.grading.course import Course
from seqlib.grading.grader import Grader
from seqlib.grading.sandbox import box
from seqlib.grading.sandbox.inside.limits import MIB, Limits

# CPU seconds, so that a busy machine is no matter; honest answers take some milliseconds.
SMALL = {
    "call": 1.0,
    "cell": 2.0,
    "patience": 6.0,
    "submission": 60.0,
    "memory": 384 * MIB,
    "address_space": 1280 * MIB,
    "output": 50_000,
}


def resident():
    """Return the resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def hurried_grader(root, name, level, log, register=None):
    """Give a worker a grader.

    Parameters
    ----------
    root, name, level
        As for ``Grader``.
    log : str
        Folder in which each worker notes its memory after every submission.
    register : str, optional
        Module whose ``register()`` makes the assignment known.
    """
    if register is not None:
        __import__(register)
        sys.modules[register].register()
    box.Limits = functools.partial(Limits, **SMALL)
    with Grader(Course(root), name, level=level) as grader:
        grader.tasks = {
            task.id: dataclasses.replace(task, seconds=1.0) for task in grader.assignment.tasks
        }
        grade, notes = grader.grade, Path(log) / f"{os.getpid()}.json"
        seen = []

        def noted(student, **options):
            record = grade(student, **options)
            seen.append([student, resident()])
            notes.write_text(json.dumps(seen))
            return record

        grader.grade = noted
        yield grader
