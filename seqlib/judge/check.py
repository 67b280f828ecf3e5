"""The student's command: ``check("attention.split_heads", split_heads)``."""

import sys

from seqlib.exercises import get_task
from seqlib.judge.judge import judge
from seqlib.judge.result import number
from seqlib.judge.seeds import local_seed
from seqlib.subject.inprocess import InProcess


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
        )
        return 0.0
    result = judge(task, InProcess(function), local_seed(task))
    _write(*result.lines())
    return result.score


def _name(value):
    return type(value).__name__


def _write(*lines):
    """Print in the characters that the terminal has."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for line in lines:
        print(line.encode(encoding, "replace").decode(encoding))
