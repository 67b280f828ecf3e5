"""What is graded: one declarative record per task, one module per assignment."""

from importlib import import_module

__all__ = ["ASSIGNMENTS", "PRACTICE", "get_assignment", "get_task"]

# In the course's order. A name is added with its module.
ASSIGNMENTS = ("rnn", "bptt", "gates", "attention", "masks", "tokens", "layers", "decoder")
# For practice: released and checked as the others, but without points, so never graded.
PRACTICE = ("setup",)


def get_assignment(name):
    """Return the record of an assignment.

    Parameters
    ----------
    name : str
        ``"attention"``.

    Returns
    -------
    seqlib.exercises.record.Assignment
        Its tasks, written questions and grants.

    Raises
    ------
    ValueError
        If there is no such assignment.
    """
    known = (*ASSIGNMENTS, *PRACTICE)
    if name not in known:
        raise ValueError(f"assignment must be one of {', '.join(known)}, got {name!r}")
    return import_module(f"seqlib.exercises.{name}").ASSIGNMENT


def get_task(task_id):
    """Return the record of a task, ``"attention.split_heads"``."""
    assignment, _, _ = task_id.partition(".")
    for task in get_assignment(assignment).tasks:
        if task.id == task_id:
            return task
    known = ", ".join(task.id for task in get_assignment(assignment).tasks)
    raise ValueError(f"task must be one of {known}, got {task_id!r}")
