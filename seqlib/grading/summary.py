"""What a record says about a submission and its tasks."""

import functools
import importlib.metadata
import platform
from datetime import UTC, datetime

# How a submission ends. The last is never recorded as a grade: it is tried again, and an
# earlier grade stays.
STATES = (
    "graded",
    "graded_with_repairs",
    "partly_graded",
    "unreadable",
    "infrastructure_error",
)


def submission_record(assignment, student, taken, done, tasks):
    """Return the record of a graded submission.

    Parameters
    ----------
    assignment : seqlib.exercises.record.Assignment
        What was graded.
    student : str
        Whose.
    taken : seqlib.grading.notebook.intake.Intake
        What was read, and how it was mended.
    done : seqlib.grading.notebook.execution.Execution
        What took no part.
    tasks : dict
        ``{task id: task_entry or unread}``.
    """
    if taken.unreadable:
        state = "unreadable"
    elif taken.partial or done.left_out:
        state = "partly_graded"
    else:
        state = "graded_with_repairs" if taken.mends else "graded"
    return {
        "student": student,
        "assignment": assignment.name,
        "state": state,
        "file": taken.file,
        "unreadable": taken.unreadable,
        "mends": list(taken.mends),
        "notes": list(taken.notes),
        "left_out": done.left_out,
        "tasks": tasks,
        "score": sum(task["score"] for task in tasks.values()),
        "points": sum(task.points for task in assignment.tasks),
        "written_points": sum(question.points for question in assignment.written),
    }


def task_entry(result, seconds, key):
    """Return what the record of a submission keeps of a judged task."""
    return {
        "score": min(max(result.score, 0.0), result.points),
        "points": result.points,
        "seconds": seconds,
        "failed": [c.name for c in result.criteria if not c.passed],
        "diagnosis": result.to_dict()["diagnosis"],
        "key": vars(key),
    }


def unread(task):
    """Return the same for a task of a submission that could not be read."""
    return {
        "score": 0.0,
        "points": task.points,
        "seconds": 0.0,
        "failed": [c.name for c in task.criteria],
        "diagnosis": None,
        "key": None,
    }


@functools.cache
def libraries():
    """Return the versions that can have a part in a score."""
    versions = {"python": platform.python_version()}
    for name in ("seqlib-course", "numpy", "torch"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def now():
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
