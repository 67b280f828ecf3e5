"""The report on a class: one HTML page that needs nothing else, and CSV tables."""

import math
import statistics
from collections import Counter, defaultdict
from pathlib import Path

from seqlib.exercises import get_assignment
from seqlib.grading.gradebook.stale import all_stale_marks
from seqlib.grading.late.report import late_sentences
from seqlib.grading.records import all_submissions, failures, write_atomically
from seqlib.grading.summary import STATES
from seqlib.grading.tables import write_csv
from seqlib.judge.result import number

TEMPLATES = Path(__file__).parent / "templates"
# Fewer students than this say nothing about a task.
FEW = 5


def write_report(course, name, *, book=None):
    """Write the report on an assignment.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        With records of graded submissions.
    name : str
        The assignment.
    book : str, optional
        Address of the book, for links from a mistake to its section; the book that was built
        in this course if None.

    Returns
    -------
    list of Path
        ``index.html``, ``scores.csv``, ``tasks.csv`` and ``mistakes.csv``.

    Raises
    ------
    ValueError
        If no submission has been graded.
    """
    assignment = get_assignment(name)
    submissions = all_submissions(course.records, name)
    failed = failures(course.records, name)
    if not submissions and not failed:
        raise ValueError(f"{name} must have graded submissions; run `seqlib grade {name}`")
    folder = course.report(name)
    book = "../../../_build/html/book" if book is None else book.rstrip("/")
    stale = all_stale_marks(course, name, submissions)
    late = late_sentences(course, name, submissions)
    data = class_data(assignment, submissions, failed, stale, late)
    for mistake in data["mistakes"]:
        mistake["link"] = link(book, mistake["page"])
    for student in data["students"]:
        for diagnosis in student["diagnoses"]:
            diagnosis["links"] = [link(book, page) for page in diagnosis["pages"]]
    paths = [folder / "index.html"]
    write_atomically(paths[0], render(assignment, data))
    for table in ("students", "tasks", "mistakes"):
        path = folder / f"{'scores' if table == 'students' else table}.csv"
        _write_table(path, _TABLES[table](assignment, data[table]))
        paths.append(path)
    return paths


def class_data(assignment, submissions, failed, stale=None, late=None):
    """Return what the report shows, as plain values.

    Parameters
    ----------
    assignment : seqlib.exercises.record.Assignment
        What was graded.
    submissions : dict
        ``{student: record of the submission}``.
    failed : dict
        ``{student: message}`` of those that could not be graded.
    stale : dict, optional
        ``{student: cells}`` whose marks were given to an older submission.
    late : dict, optional
        ``{student: sentence}`` of late submissions.
    """
    stale, late = stale or {}, late or {}
    students = [
        _student(assignment, s, r, failed.get(s), stale.get(s, ()), late.get(s))
        for s, r in submissions.items()
    ]
    students += [
        _student(assignment, student, None, message)
        for student, message in failed.items()
        if student not in submissions
    ]
    graded = list(submissions.values())
    states = Counter(student["state"] for student in students)
    scores = [record["score"] for record in graded]
    return {
        "students": sorted(students, key=lambda student: student["student"]),
        "states": {state: states[state] for state in STATES if states[state]},
        "points": sum(task.points for task in assignment.tasks),
        "mean": statistics.fmean(scores) if scores else None,
        "median": statistics.median(scores) if scores else None,
        "tasks": [_task(task, graded) for task in assignment.tasks],
        "mistakes": _mistakes(assignment, submissions),
    }


def _student(assignment, student, record, failure, stale=(), late=None):
    tasks = {} if record is None else record["tasks"]
    return {
        "student": student,
        "state": STATES[-1] if failure else record["state"],
        "score": None if record is None else record["score"],
        "scores": {
            t.id: tasks[t.id]["score"] if t.id in tasks else None for t in assignment.tasks
        },
        "remarks": [
            *([f"Could not be graded: {failure}"] if failure else []),
            *([] if record is None else [record["unreadable"]] if record["unreadable"] else []),
            *([] if record is None else _remarks(record)),
            *([f"Marks given to an older submission: {', '.join(stale)}."] if stale else []),
            *([late] if late else []),
        ],
        "diagnoses": [
            {"task": task, **tasks[task]["diagnosis"]}
            for task in (t.id for t in assignment.tasks)
            if task in tasks and tasks[task]["diagnosis"]
        ],
        "seconds": None if record is None else record["seconds"],
        "graded_at": None if record is None else record["graded_at"],
    }


def _remarks(record):
    return [*record["mends"], *record.get("notes", ()), *record["left_out"]]


def _task(task, records):
    entries = [(r["tasks"][task.id], r["score"]) for r in records if task.id in r["tasks"]]
    # A task of no points is solved by everybody who has handed in.
    shares = [entry["score"] / task.points if task.points else 1.0 for entry, _ in entries]
    rest = [total - entry["score"] for entry, total in entries]
    seconds = [entry["seconds"] for entry, _ in entries]
    failed = Counter(name for entry, _ in entries for name in entry["failed"])
    return {
        "task": task.id,
        "points": task.points,
        "difficulty": statistics.fmean(shares) if shares else None,
        "full": sum(share == 1 for share in shares),
        "nothing": sum(share == 0 for share in shares),
        "discrimination": discrimination(shares, rest),
        "median_seconds": statistics.median(seconds) if seconds else None,
        "max_seconds": max(seconds, default=None),
        "criteria": [
            {"name": c.name, "says": c.says, "failed": failed[c.name]} for c in task.criteria
        ],
    }


def discrimination(shares, rest):
    """Return how well a task tells strong from weak students, between -1 and 1.

    The correlation of the score in this task with the sum of all other scores (the corrected
    item-total correlation); None where there are few students or one of the two is constant.
    Shares (0, 0, 1, 1, 1) and rests (10, 20, 30, 40, 50) correlate with 0.866: centred shares
    (-0.6, -0.6, 0.4, 0.4, 0.4) and rests (-20, -10, 0, 10, 20) give 30 / sqrt(1.2 * 1000).
    """
    if len(shares) < FEW or min(shares) == max(shares) or min(rest) == max(rest):
        return None
    found = statistics.correlation(shares, rest)
    return found if math.isfinite(found) else None


def _mistakes(assignment, submissions):
    """Return the named mistakes, most frequent first, with who made them."""
    who = defaultdict(list)
    about = {}
    for student, record in submissions.items():
        for task, entry in record["tasks"].items():
            diagnosis = entry["diagnosis"]
            if diagnosis is None or diagnosis["kind"] == "either":
                continue
            for name, says, page in zip(
                diagnosis["names"], diagnosis["says"], diagnosis["pages"], strict=True
            ):
                who[task, name].append(student)
                about[task, name] = {"says": says, "page": page, "kind": diagnosis["kind"]}
    place = {task.id: i for i, task in enumerate(assignment.tasks)}
    order = sorted(who, key=lambda key: (-len(who[key]), place[key[0]], key[1]))
    return [
        {"task": task, "name": name, "students": who[task, name], **about[task, name]}
        for task, name in order
    ]


def link(book, page):
    """Return the address of a section of the book; empty if the page has none."""
    if not page:
        return ""
    name, _, section = page.partition("#")
    return f"{book}/{name}.html" + (f"#{section}" if section else "")


def render(assignment, data):
    """Return the report as one HTML page; everything in it is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: "" if value is None else number(value)
    environment.filters["state"] = lambda value: value.replace("_", " ")
    return environment.get_template("report.html.j2").render(assignment=assignment, **data)


def _write_table(path, table):
    columns, rows = table
    with open(path, "w", encoding="utf-8", newline="") as file:
        write_csv(rows, columns, file)


def _student_table(assignment, students):
    tasks = [task.id for task in assignment.tasks]
    columns = ["student", "state", "score", *tasks, "diagnosis", "remarks", "graded_at"]
    return columns, [
        student
        | student["scores"]
        | {
            "diagnosis": "; ".join(
                f"{d['task']}: {', '.join(d['names'])}" for d in student["diagnoses"]
            ),
            "remarks": " ".join(student["remarks"]),
        }
        for student in students
    ]


def _task_table(assignment, tasks):
    columns = ["task", "points", "difficulty", "full", "nothing", "discrimination"]
    return [*columns, "median_seconds", "max_seconds"], tasks


def _mistake_table(assignment, mistakes):
    columns = ["task", "name", "count", "says", "page", "students"]
    return columns, [
        m | {"count": len(m["students"]), "students": " ".join(m["students"])} for m in mistakes
    ]


_TABLES = {"students": _student_table, "tasks": _task_table, "mistakes": _mistake_table}
