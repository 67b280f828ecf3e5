"""What the ledgers promise and the repository lacks; every gap fails the build."""

import ast
import importlib

from course_book import data
from course_book.data import GapError, Nothing

PLACES = ("numpy", "pytorch", "test", "task")


def names_defined(path):
    """Return the names of the top-level functions and classes of a Python file."""
    if not path.is_file():
        return set()
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, kinds)}


def tasks(assignment):
    """Return the tasks of an assignment by id; none where there is no such assignment."""
    name = f"seqlib.exercises.{assignment}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return {}
    return {task.id: task for task in module.ASSIGNMENT.tasks}


def equation_gaps(equations, root=data.ROOT):
    """Return what the rows name and the repository lacks, one sentence each."""
    found = []
    for row in equations:
        if not (root / "book" / f"{row.page}.md").is_file():
            found.append(f"{row.label}: there is no page book/{row.page}.md")
        for package, value in (("np", row.numpy), ("pt", row.pytorch)):
            for name in _named(value):
                module, _, function = name.rpartition(".")
                if function not in names_defined(root / f"seqlib/{package}/{module}.py"):
                    found.append(f"{row.label}: seqlib.{package}.{name} is not defined")
        for name in _named(row.test):
            file, _, function = name.partition("::")
            if not function.startswith("test_") or (
                function not in names_defined(root / "tests" / file)
            ):
                found.append(f"{row.label}: there is no test tests/{name}")
        for name in _named(row.task):
            task = tasks(name.partition(".")[0]).get(name)
            if task is None:
                found.append(f"{row.label}: there is no task {name}")
            elif row.label not in task.equations:
                found.append(f"{row.label}: task {name} does not name this equation")
        for place in PLACES:
            value = getattr(row, place)
            if not value or (isinstance(value, Nothing) and not value.reason):
                found.append(f"{row.label}: {place} is empty and gives no reason")
    return found


def task_gaps(equations, assignments):
    """Return the equations that a task names and that the ledger does not list for it."""
    listed = {(row.label, name) for row in equations for name in _named(row.task)}
    return [
        f"{label}: task {task.id} names this equation, its row does not list the task"
        for assignment in assignments
        for task in tasks(assignment).values()
        for label in task.equations
        if (label, task.id) not in listed
    ]


def page_gaps(equations, shown):
    """Return the equations that no page shows or that a page shows and the ledger lacks.

    ``shown`` maps each equation label to the page (``book/attention``) that defines it.
    """
    found = []
    for row in equations:
        want, got = f"book/{row.page}", shown.get(row.label)
        if got is None:
            found.append(f"{row.label}: no page shows this equation, {want} should")
        elif got != want:
            found.append(f"{row.label}: shown on {got}, the ledger says {want}")
    rows = {row.label for row in equations}
    return found + [
        f"{label}: on {page}, but not in book/data/equations.toml"
        for label, page in shown.items()
        if label.startswith("eq-") and label not in rows
    ]


def topic_gaps(topics, root=data.ROOT):
    """Return the files that the topic table names and that are not there."""
    return [
        f"topic {topic.slug}: there is no {topic.path(part)}"
        for topic in topics
        for part in topic.parts
        if not (root / topic.path(part)).is_file()
    ]


def raise_gaps(found):
    """Fail the build with all gaps at once."""
    if found:
        raise GapError(
            f"{len(found)} gap(s) in the ledgers of the book:\n  " + "\n  ".join(found)
        )


def _named(value):
    return () if isinstance(value, Nothing) else value
