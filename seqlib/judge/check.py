"""The student's command: ``check("attention.split_heads", split_heads)``."""

import math
import sys

from seqlib.exercises import get_assignment, get_task
from seqlib.judge.judge import judge
from seqlib.judge.result import number
from seqlib.judge.seeds import local_seed
from seqlib.subject.inprocess import InProcess

_EARNED = {}  # task id -> points of its last check since this process began


def check(task_id, function):
    """Check a function, print what is right and what is not, and return the points.

    Parameters
    ----------
    task_id : str
        ``"<assignment>.<function>"``.
    function : callable
        Your function, or class.

    Returns
    -------
    float
        Points earned. A cell that ends in this line is a test cell of nbgrader with partial
        credit.

    Raises
    ------
    ValueError
        If there is no task ``task_id``. Nothing that is wrong with ``function`` raises.
    """
    task = get_task(task_id)
    if not callable(function):
        _write(
            f"{task.id}: 0 of {number(task.points)} points",
            f"check needs the function itself, {task.function}, "
            f"got {'None' if function is None else f'a value of type {_name(function)}'}",
            _progress(task, 0.0),
        )
        return 0.0
    result = judge(task, InProcess(function), local_seed(task))
    _write(*result.lines(), _progress(task, result.score))
    return result.score


def _progress(task, score):
    """Return the line that sums up the assignment, each task with its last check."""
    _EARNED[task.id] = score
    return progress(get_assignment(task.id.partition(".")[0]), _EARNED)


def progress(assignment, earned):
    """Return the line that sums up an assignment.

    Parameters
    ----------
    assignment : seqlib.exercises.record.Assignment
        Which.
    earned : dict
        ``{task id: points}`` of its last check; tasks that are missing count nothing.
    """
    points = math.fsum(earned.get(task.id, 0.0) for task in assignment.tasks)
    line = f"{assignment.name} so far: {number(points)} of {number(assignment.points)} points"
    if not assignment.graded:
        return f"{line}, which count nowhere"
    written = math.fsum(question.points for question in assignment.written)
    if not written:
        return line
    return f"{line}; {number(written)} are for what you write in words, which a person grades"


def _name(value):
    return type(value).__name__


def _write(*lines):
    """Print in the characters that the terminal has."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for line in lines:
        print(line.encode(encoding, "replace").decode(encoding))
