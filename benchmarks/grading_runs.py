"""Run a grader as a command and measure it."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from seqlib.grading.course import Course
from seqlib.grading.gradebook.writer import open_gradebook
from seqlib.grading.sandbox.box import Sandbox
from seqlib.grading.sandbox.isolation import require_isolation
from seqlib.grading.sandbox.student_build import write_student_build

LOOK = 0.1  # seconds between two looks at a running command
MIB = 2**20
HELD = 100  # MiB that a notebook holds while its process is measured


@dataclass(frozen=True)
class Cost:
    """What a command used.

    Attributes
    ----------
    cpu : float
        CPU seconds of all its processes.
    clock : float
        Seconds.
    grown : float
        MiB by which the first process grew while the last half was graded.
    grown_since_first : float
        The same since something was graded.
    """

    cpu: float
    clock: float
    grown: float = 0.0
    grown_since_first: float = 0.0


def grade(root, name, environment, *, workers=1, dask=None):
    """Grade with the course's command, on a Dask cluster if there is an address of one."""
    how = ["--workers", str(workers)] if dask is None else ["--dask", dask]
    options = ["grade", name, *how]
    return _measured([sys.executable, "-m", "seqlib.cli", *options], root, environment)


def autograde(root, name, environment):
    """Grade with nbgrader; that it learns of the assignment first is not counted."""
    nbgrader = [sys.executable, "-m", "nbgrader"]
    _measured([*nbgrader, "generate_assignment", name, "--force"], root, environment)
    return _measured([*nbgrader, "autograde", name], root, environment)


def scores(root, name):
    """Return ``{student: {test cell: points}}`` of the gradebook of a course."""
    with open_gradebook(Course(root)) as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.auto_score
                for notebook in submission.notebooks
                for grade in notebook.grades
                if grade.cell.cell_type != "markdown"
            }
            for submission in gradebook.assignment_submissions(name)
        }


def private_memory(*, torch=False):
    """Return the MiB that are private to the largest process of a submission.

    The notebook holds ``HELD`` MiB, which are taken off.
    """
    library, each = ("torch", 2**18) if torch else ("numpy", 2**17)
    use = f"import {library}\nheld = {library}.ones({HELD} * {each})"
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox(level=require_isolation(), torch=torch, plots=False) as sandbox,
        sandbox.open(write_student_build((), Path(folder) / "build")) as submission,
    ):
        for source in (use, "def f(x):\n    return x + 1", "print(f(1), 1 / 3)"):
            result = submission.run_cell(source)
            assert result.ok, result.outputs
        # Before a task is forked, since what is shared with it is private to nobody.
        sizes = [_private(pid) - HELD for pid in submission.process_numbers()]
        with submission.subject("f") as subject:
            assert subject.perform({"do": "call", "args": [1]}).value == 2
            sizes += [_private(pid) for pid in submission.process_numbers()]
    return max(sizes)


def free_cores(seconds=1.0):
    """Return how many cores other processes leave."""
    first = _idle()
    time.sleep(seconds)
    return (_idle() - first) / seconds


def _measured(command, root, environment):
    log = root / "log.txt"
    with log.open("w") as file:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=root,
            env=os.environ | _PATH | environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        looks = []
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            with contextlib.suppress(OSError, ValueError, IndexError):
                looks.append(_look(process.pid, root / "grading" / "autograded"))
            time.sleep(LOOK)
        clock = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command}: {log.read_text()[-2000:]}"
    cpu = usage.ru_utime + usage.ru_stime
    graded = [look for look in looks if look[0]] or looks[-1:]
    half = [look for look in graded if look[0] >= graded[-1][0] / 2]
    most = max(look[1] for look in graded) - graded[0][1]
    return Cost(
        cpu,
        clock,
        (half[-1][1] - half[0][1]) / MIB,
        most / MIB,
    )


_PATH = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
_TICK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def _look(pid, graded):
    """Return how many submissions are graded, and a process's memory."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    done = sum(1 for _ in graded.iterdir()) if graded.is_dir() else 0
    return done, int(stat[21]) * _PAGE


def _private(pid):
    """Return the MiB of a process that it shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kept = [line for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))]
    return sum(int(line.split()[1]) for line in kept) / 1024


def _idle():
    return int(Path("/proc/stat").read_text().split()[4]) / _TICK
