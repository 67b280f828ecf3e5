"""The doctor: each protection of the sandbox, tried with a real attempt from inside it.

A protection holds if the attempt was stopped. Nothing is concluded from settings or versions.
"""

import inspect
import tempfile
from pathlib import Path
from typing import NamedTuple

from . import attempts
from .box import Sandbox
from .inside import processes
from .inside.limits import MIB, Limits
from .outside import Outside
from .student_build import write_student_build

# (protection, function in attempts.py, where it runs)
_TRIED = (
    ("course files", "course_files", "task"),
    ("course files by import", "finders", "task"),
    ("references in memory", "references", "task"),
    ("other files", "other_files", "task"),
    ("names and sizes of other files", "file_names", "task"),
    ("writing outside", "writing", "task"),
    ("other processes", "processes", "task"),
    ("signals", "signalling", "task"),
    ("tracing", "tracing", "task"),
    ("network", "connecting", "task"),
    ("other programs", "executing", "task"),
    ("privileges", "privileges", "task"),
    ("open descriptors", "descriptors", "task"),
    ("environment", "environment", "task"),
    ("number of threads", "many_threads", "task"),
    ("number of processes", "many_processes", "cell"),
    ("memory of one process", "much_memory", "task"),
    ("memory of all processes", "much_memory_in_parts", "cell"),
    ("size of a file", "one_large_file", "task"),
    ("size of all files", "many_files", "task"),
    ("time of a loop", "endless", "task"),
    ("time of a stopped process", "stopping", "task"),
    ("output", "flooding", "cell"),
    ("forged answers", "forging", "task"),
    ("processes left behind", "staying", "cell"),
)
# Without these no submission of a stranger is run.
ESSENTIAL = frozenset(
    {
        *("course files", "course files by import", "references in memory", "other files"),
        *("writing outside", "network", "signals", "tracing", "other programs"),
        *("number of processes", "memory of one process", "memory of all processes"),
        *("time of a loop", "processes left behind"),
    }
)
_LIMITS = Limits(
    call=1.0,
    cell=3.0,
    patience=2.0,
    memory=256 * MIB,
    address_space=1024 * MIB,
    file_size=MIB,
    folder=4 * MIB,
    output=20_000,
    skipped=100,
    restarts=100,
)


class Finding(NamedTuple):
    """One protection and whether it holds.

    Attributes
    ----------
    protection : str
        What is protected: ``"network"``.
    holds : bool
        Whether the attempt was stopped.
    tried : str
        The attempt, in words.
    detail : str
        How it was stopped, or what it achieved.
    """

    protection: str
    holds: bool
    tried: str
    detail: str


def run_doctor(level=None):
    """Try every protection at a level.

    Parameters
    ----------
    level : str, set of str, or None
        As for :class:`seqlib.grading.sandbox.box.Sandbox`; None for the best level.

    Returns
    -------
    list of Finding

    Raises
    ------
    SandboxError
        If the sandbox does not start at this level.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox(level=level, limits=_LIMITS) as sandbox,
        Outside(Path(folder)) as outside,
    ):
        build = write_student_build((), Path(folder) / "build")
        limits = sandbox.limits
        facts = outside.facts | {
            "processes": limits.processes,
            "files": limits.files,
            "memory": limits.memory,
            "file_size": limits.file_size,
            "folder": limits.folder,
        }
        findings = [_try(sandbox, build, facts, *tried) for tried in _TRIED]
        changes = outside.changes()
    detail = ", ".join(changes) or "files, folder and servers are as they were"
    return [*findings, Finding("everything outside", not changes, "Look at it later", detail)]


def essential_holes(findings):
    """Return the findings without which no submission of a stranger is run, if any fail."""
    return [f for f in findings if f.protection in ESSENTIAL and not f.holds]


def _try(sandbox, build, facts, protection, name, where):
    """Make one attempt in a submission of its own."""
    tried = inspect.getdoc(getattr(attempts, name)).rstrip(".")
    with sandbox.open(build) as submission:
        submission.run_cell(inspect.getsource(attempts))
        if where == "cell":
            cell = submission.run_cell(f"achieved = {name}({facts!r})")
            stopped = cell.outputs[-1].get("evalue") if cell.fault else None
            if name == "flooding":
                kept = sum(len(str(output)) for output in cell.outputs)
                holds = kept < 2 * sandbox.limits.output
                return Finding(protection, holds, tried, f"{kept} characters were kept")
            call = submission.subject("lambda facts: achieved")
        else:
            stopped, call = None, submission.subject(name)
        reply = None if stopped else call.perform({"do": "call", "args": [facts]})
        there = submission.process_numbers()
    left = processes.still_there(there, seconds=2.0)
    if name == "staying":
        detail = f"{len(left)} of {len(there)} processes were left"
        return Finding(protection, not left, tried, detail)
    holds, detail = (True, stopped) if stopped else _judge(reply)
    return Finding(protection, holds, tried, detail)


def _judge(reply):
    """Return whether an attempt was stopped, and how or what it achieved."""
    if reply.fault == "crash" and "exit code 0" in reply.error:
        return False, "another program ran in the place of this one"
    if reply.error is not None:
        return True, reply.error
    if reply.value is not None:
        return False, str(reply.value)
    return True, "every way was refused"
