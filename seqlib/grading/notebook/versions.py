"""Which versions of its tasks a notebook was released with, and how they differ from here.

A release carries them in its metadata, ``"seqlib": {"version": ..., "tasks": {id: version}}``,
so that a notebook that lies about for a while can say that the exercises have changed since.
"""

import re

import seqlib

KEY = "seqlib"
MAX_TASKS = 50
MAX_VERSION = 9999
SHOWN = 5  # tasks that one sentence names
_TASK = re.compile(r"[a-z][a-z0-9_]{0,40}\.[A-Za-z_][A-Za-z0-9_]{0,80}")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,30}")


def installed(assignment):
    """Return the versions that a release of an assignment carries.

    Parameters
    ----------
    assignment : seqlib.exercises.record.Assignment
        Whose tasks.

    Returns
    -------
    dict
        ``version``, the release of seqlib, and ``tasks``, ``{task id: exercise version}``.
    """
    tasks = {task.id: task.version for task in assignment.tasks}
    return {"version": seqlib.__version__, "tasks": tasks}


def carried(metadata):
    """Return the versions in a notebook's metadata; None if there are no sound ones.

    Parameters
    ----------
    metadata : object
        Of a file that anybody may have written.

    Returns
    -------
    dict or None
        As :func:`installed`.
    """
    found = metadata.get(KEY) if isinstance(metadata, dict) else None
    if not isinstance(found, dict):
        return None
    version, tasks = found.get("version"), found.get("tasks")
    if not (isinstance(version, str) and _RELEASE.fullmatch(version)):
        return None
    if not isinstance(tasks, dict) or len(tasks) > MAX_TASKS:
        return None
    for task, number in tasks.items():
        if not _TASK.fullmatch(task) or type(number) is not int:
            return None
        if not 1 <= number <= MAX_VERSION:
            return None
    return {"version": version, "tasks": dict(tasks)}


def difference(versions, assignment):
    """Say how the tasks of a notebook differ from the installed ones.

    Parameters
    ----------
    versions : dict or None
        What the notebook carries, from :func:`carried`.
    assignment : seqlib.exercises.record.Assignment
        The installed tasks. Those of other assignments are left out.

    Returns
    -------
    older, newer : str
        What the notebook has in an older and in a newer version,
        ``"rnn.rnn_step (version 1, here 2)"``; empty if there is nothing of the kind.
    """
    if versions is None:
        return "", ""
    here = {task.id: task.version for task in assignment.tasks}
    there = {
        task: number
        for task, number in versions["tasks"].items()
        if task.startswith(f"{assignment.name}.")
    }
    older = [_pair(t, there.get(t), n) for t, n in here.items() if there.get(t, 0) < n]
    newer = [_pair(t, n, here.get(t)) for t, n in there.items() if here.get(t, 0) < n]
    return _list(older), _list(newer)


def local_note(versions, assignment):
    """Return the line with which ``seqlib check`` begins; empty if there is no difference."""
    older, newer = difference(versions, assignment)
    parts = []
    if versions is not None and versions["version"] != seqlib.__version__:
        parts.append(
            f"released with seqlib {versions['version']}, here is {seqlib.__version__}"
        )
        if not (older or newer):
            parts.append("the tasks are the same")
    if older:
        parts.append(f"the notebook has older versions of {older}: get the notebook anew")
    if newer:
        parts.append(f"the notebook has newer versions of {newer}: install the newer seqlib")
    return f"Note: {'; '.join(parts)}." if parts else ""


def grading_note(versions, assignment):
    """Return the sentence about a submission; empty if its tasks have the versions here."""
    parts = zip(("older", "newer"), difference(versions, assignment), strict=True)
    what = " and ".join(f"{age} versions of {tasks}" for age, tasks in parts if tasks)
    return f"The notebook was released with {what}; it was judged by those here." * bool(what)


def _pair(task, there, here):
    there = "none" if there is None else f"version {there}"
    return f"{task} ({there}, here {'none' if here is None else here})"


def _list(pairs):
    more = len(pairs) - SHOWN
    return ", ".join(pairs[:SHOWN]) + (f" and {more} more" if more > 0 else "")
