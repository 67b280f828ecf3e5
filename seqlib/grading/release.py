"""Students' notebooks from instructors' ones, by nbgrader, and what both must fulfil."""

import json
import shutil
import tempfile
from pathlib import Path

from seqlib.exercises import get_assignment
from seqlib.grading.course import CONFIG
from seqlib.grading.notebook.calls import check_call
from seqlib.grading.notebook.versions import KEY, installed

KERNEL = "python3"


def release(course, name, *, out=None):
    """Write the students' notebook of an assignment.

    The same source gives the same bytes, so the release is committed and a test makes it anew.
    Its metadata hold the versions of its tasks (see ``seqlib.grading.notebook.versions``).
    The gradebook is not touched; it learns of the assignment when it is graded.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where the source lies.
    name : str
        The assignment.
    out : path, optional
        Folder for the release; the course's ``assignments/`` if None.

    Returns
    -------
    Path
        The notebook.

    Raises
    ------
    ValueError
        If there is no such assignment, its source has faults (all are named), or nbgrader
        refuses it.
    """
    assignment = get_assignment(name)
    source = course.source(name)
    if not source.is_file():
        raise ValueError(f"assignment must have a source solutions/{name}/{name}.ipynb")
    found = faults(json.loads(source.read_text(encoding="utf-8")), assignment)
    if found:
        raise ValueError(f"source of {name} must be sound, got:\n  " + "\n  ".join(found))
    target = (Path(out) if out is not None else course.root / "assignments") / name
    with tempfile.TemporaryDirectory() as scratch:
        _generate(course, name, scratch)
        _stamp(Path(scratch) / name / f"{name}.ipynb", assignment)
        # Only a complete release takes the place of the old one.
        target.mkdir(parents=True, exist_ok=True)
        shutil.copytree(Path(scratch) / name, target, dirs_exist_ok=True)
    return target / f"{name}.ipynb"


def _generate(course, name, folder):
    import logging

    from nbgrader.converters import GenerateAssignment
    from nbgrader.converters.base import NbGraderException
    from nbgrader.coursedir import CourseDirectory
    from traitlets.log import get_logger

    config = load_config(course)
    config.SaveCells.enabled = False
    config.GenerateAssignment.no_database = True
    config.CourseDirectory.release_directory = str(folder)
    config.CourseDirectory.assignment_id = name
    get_logger().setLevel(logging.ERROR)
    directory = CourseDirectory(config=config)
    try:
        GenerateAssignment(coursedir=directory, config=config).start()
    except NbGraderException as error:
        raise ValueError(f"nbgrader must accept the source of {name}: {error}") from error


def _stamp(path, assignment):
    """Write the versions of the tasks into a notebook, in the form that nbformat gives it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["metadata"][KEY] = installed(assignment)
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def load_config(course):
    """Return nbgrader's configuration of a course."""
    from traitlets.config.loader import PyFileConfigLoader

    return PyFileConfigLoader(CONFIG, path=str(course.root)).load_config()


def faults(notebook, assignment):
    """Return what is wrong with an instructor's or a students' notebook.

    Parameters
    ----------
    notebook : dict
        As read from the file.
    assignment : seqlib.exercises.record.Assignment
        The record that it must agree with.

    Returns
    -------
    list of str
        One sentence each; empty if the notebook is sound.
    """
    about_cells = _grading_faults if assignment.graded else _practice_faults
    return [*_file_faults(notebook), *about_cells(notebook["cells"], assignment)]


def _file_faults(notebook):
    if (notebook.get("nbformat"), notebook.get("nbformat_minor")) != (4, 5):
        yield "the format must be 4.5"
    metadata = notebook.get("metadata", {})
    if metadata.get("kernelspec", {}).get("name") != KERNEL:
        yield f"metadata.kernelspec.name must be {KERNEL!r}"
    if metadata.get("language_info", {}).get("name") != "python":
        yield "metadata.language_info.name must be 'python'"
    seen = set()
    for number, cell in enumerate(notebook["cells"], start=1):
        key, data = cell.get("id"), cell["metadata"].get("nbgrader", {})
        if key is None or key in seen:
            yield f"cell {number} must have an id of its own, got {key!r}"
        seen.add(key)
        if data.get("grade_id", key) != key:
            grade_id = data["grade_id"]
            yield f"cell {number} must have its grade_id {grade_id!r} as id, got {key!r}"
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield f"cell {key!r} must have no output"


def _grading_faults(cells, assignment):
    tasks = {task.id: task for task in assignment.tasks}
    written = {question.id: question.points for question in assignment.written}
    for cell in cells:
        data = cell["metadata"].get("nbgrader", {})
        if not data.get("grade"):
            continue
        key, points = cell["id"], data.get("points")
        if data.get("solution"):
            if written.pop(key, None) != points:
                yield f"cell {key!r} must be a written question of the record, with its points"
            continue
        call = check_call("".join(cell["source"]))
        task = tasks.pop(call.task, None) if call else None
        if task is None or call.function != task.function:
            yield f"cell {key!r} must be one line, check of a task not yet checked"
        elif points != task.points:
            yield f"cell {key!r} must have {task.points:g} points as its task, got {points}"
    for missing in (*tasks, *written):
        yield f"{missing!r} of the record must have a cell"
    if assignment.points != 100:
        yield f"the points of the record must sum to 100, got {assignment.points:g}"


def _practice_faults(cells, assignment):
    """Say what would make a notebook for practice look like a graded one, or check nothing."""
    calls = [check_call("".join(cell["source"])) for cell in cells]
    for cell in cells:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            yield f"cell {cell['id']!r} must not be graded, since the notebook has no points"
    for task in assignment.tasks:
        if (task.id, task.function) not in calls:
            yield f"{task.id!r} of the record must have a cell"
