"""A class with records over two assignments of two tasks, for tests of the analytics."""

import dataclasses
import sys
import types

import tiny_course

import seqlib.exercises
from seqlib.grading import records
from seqlib.grading.records import Key, Store

NAMES = ("tiny", "second")
DIGEST = "0" * 64


def register(monkeypatch):
    """Make the two assignments known: ``tiny``, and ``second``, its copy."""
    tiny_course.register(monkeypatch)
    tasks = tuple(
        dataclasses.replace(task, id=task.id.replace("tiny", "second"))
        for task in tiny_course.ASSIGNMENT.tasks
    )
    module = types.ModuleType("seqlib.exercises.second")
    module.ASSIGNMENT = dataclasses.replace(
        tiny_course.ASSIGNMENT, name="second", title="Second", tasks=tasks
    )
    monkeypatch.setitem(sys.modules, "seqlib.exercises.second", module)
    monkeypatch.setattr(seqlib.exercises, "ASSIGNMENTS", NAMES)
    # Thousands of small files need not be safe on the disk.
    monkeypatch.setattr(records, "_sync", lambda paths: None)


def diagnosis(*names, kind="mistake", page="tiny#double"):
    """Return the diagnosis of named mistakes."""
    return {
        "kind": kind,
        "names": list(names),
        "says": [f"{name} was done." for name in names],
        "pages": [page for _ in names],
    }


def save(
    course,
    student,
    double=40.0,
    add=40.0,
    *,
    name="tiny",
    found=None,
    message="",
    time=None,
    version=1,
    where="autograded",
    **fields,
):
    """Write what grading leaves of a submission.

    ``found`` is the diagnosis of ``double`` and ``message`` what the judge says of it;
    ``fields`` replace those of the record of the submission.
    """
    tasks, judged = {}, {}
    for function, score in (("double", double), ("add", add)):
        task = f"{name}.{function}"
        key = Key(task, version, 1, "namespaces")
        lost = score < 40
        about = found if function == "double" else None
        tasks[task] = {
            "score": score,
            "points": 40.0,
            "seconds": 0.1,
            "failed": ["values"] if lost else [],
            "diagnosis": about,
            "key": vars(key),
        }
        criterion = {
            "name": "values",
            "says": "the values",
            "points": 40.0,
            "passed": not lost,
            "message": message if lost else "",
        }
        judged[key] = {"result": {"criteria": [criterion], "diagnosis": about}}
    record = {
        "student": student,
        "assignment": name,
        "state": "graded",
        "unreadable": "",
        "mends": [],
        "notes": [],
        "left_out": [],
        "tasks": tasks,
        "score": double + add,
        "points": 80.0,
        "graded_at": "2031-01-01T00:00:00+00:00",
    } | fields
    store = Store(course.records, name, student)
    store.save_submission(DIGEST, "{}", record, judged)
    if time is not None:
        write_time(course, student, time, name=name, where=where)


def write_time(course, student, time, *, name="tiny", where="autograded"):
    """Write the time of a submission, as collecting and grading do."""
    folder = course.grading / where / student / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "timestamp.txt").write_text(f"{time}\n")


def fail(course, student, name="tiny"):
    """Note that a submission could not be graded."""
    Store(course.records, name, student).save_failure("the sandbox failed")
