"""What the commands of ``seqlib`` show in a terminal."""

import json
import sys
from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Table
from rich.text import Text

from seqlib.exercises import get_assignment
from seqlib.grading.batch import grade_class
from seqlib.grading.gradebook.stale import all_stale_marks
from seqlib.judge.result import TaskResult, number

MANY = 20


class _Rate(ProgressColumn):
    """Submissions per second."""

    def render(self, task):
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


def grade(course, name, *, quiet=False, **options):
    """Grade a class with a progress bar on the error stream; return the outcome."""
    if not get_assignment(name).graded:
        raise ValueError(
            f"assignment must be a graded one, got {name!r}, which is for practice"
        )
    total = len(options.get("students") or course.students(name))
    if not total:
        raise ValueError(
            f"submissions must lie in grading/submitted/<student>/{name}/, got none"
        )
    if options.get("dask"):
        from seqlib.grading.distributed.coordinator import caution

        if found := caution(options["dask"]):
            Console(stderr=True).print(f"Caution: {found}", highlight=False, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate())
    with Progress(*columns, TimeLeft(), console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task(f"Grading {name}", total=total)
        return grade_class(course, name, on_result=lambda *_: bar.advance(task), **options)


def show_outcome(course, name, outcome):
    """Print how a run ended: states, what could not be graded, and where the results are."""
    console = _console()
    records = list(outcome.records.values())
    table = Table(title=f"{name}: {len(records)} submissions")
    table.add_column("State")
    table.add_column("Submissions", justify="right")
    table.add_column("Mean score", justify="right")
    for state, count in sorted(Counter(r["state"] for r in records).items()):
        scores = [r["score"] for r in records if r["state"] == state]
        table.add_row(state.replace("_", " "), str(count), number(sum(scores) / count))
    if outcome.failures:
        table.add_row("infrastructure error", str(len(outcome.failures)), "")
    console.print(table)
    reused = sum(r["reused"] for r in records)
    if reused:
        console.print(f"{reused} had been graded before and were not graded again.")
    for student, message in list(outcome.failures.items())[:MANY]:
        console.print(f"{escape(student)} could not be graded: {escape(message)}")
    for student, cells in all_stale_marks(course, name, outcome.records).items():
        console.print(
            f"{escape(student)}: marks given to an older submission: {', '.join(cells)}"
        )
    console.print(f"Graded notebooks: grading/autograded; gradebook: {_gradebook(course)}")
    console.print(f"Next: seqlib report {name}, nbgrader generate_feedback {name}")


def _gradebook(course):
    """Return where the gradebook is, without a password."""
    from seqlib.grading.gradebook.database import shown
    from seqlib.grading.gradebook.writer import address

    where = address(course)
    file = where.removeprefix(f"sqlite:///{course.root}/")
    return file if file != where else escape(shown(where))


def show_changes(found, outcome):
    """Print the changed scores of a regrading."""
    console = _console()
    if not found:
        console.print("No score has changed.")
    else:
        table = Table(title=f"{len(found)} changed scores")
        for column in ("Student", "Task", "Before", "After", "Reason"):
            table.add_column(column, overflow="fold")
        for change in found:
            table.add_row(
                escape(change["student"]),
                change["task"],
                number(change["before"]),
                number(change["after"]),
                change["reason"],
            )
        console.print(table)
    for student, message in outcome.failures.items():
        console.print(f"{escape(student)} could not be graded: {escape(message)}")


def show_findings(findings):
    """Print what a doctor found."""
    console = _console()
    table = Table(title="Protections, each tried with a real attempt")
    for column in ("Protection", "Holds", "Tried", "What happened"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(
            finding.protection,
            "yes" if finding.holds else "[bold red]NO[/]",
            escape(finding.tried),
            escape(finding.detail[:200]),
        )
    console.print(table)
    held = sum(finding.holds for finding in findings)
    console.print(f"{held} of {len(findings)} protections hold.")


def show_record(submission, record):
    """Print how the score of one task came about."""
    result = TaskResult.from_dict(record["result"])
    print(f"Student     {submission['student']}")
    print(f"Submission  {submission['file']}, SHA-256 {submission['submission'][:16]}")
    print(f"State       {submission['state'].replace('_', ' ')}")
    for title, lines in (
        ("Mended", submission["mends"]),
        ("Noted", submission.get("notes", ())),
        ("Left out", submission["left_out"]),
    ):
        for line in lines:
            print(f"{title:<12}{line}")
    print(f"Seed        {result.seed}")
    print(
        f"Versions    exercise {result.version}, judge {result.judge_version}, "
        f"isolation {record['level']}"
    )
    versions = (f"{k} {v}" for k, v in sorted(record["libraries"].items()) if v)
    print(f"Libraries   {', '.join(versions)}")
    print(f"Judged      {record['graded_at']}, in {record['seconds']:g} s")
    print()
    print("\n".join(result.lines()))


def print_json(value):
    """Print a value as JSON."""
    json.dump(value, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


def _console():
    # A table in a file or a pipe is not cut to the width of a terminal.
    return Console(
        soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 120
    )
