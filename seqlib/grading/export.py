"""Grades as one CSV file that a spreadsheet reads without surprises.

nbgrader's own exporter does not quote, so a comma in a name breaks its row; and a spreadsheet
takes a name such as ``=HYPERLINK(...)`` for a formula. Both are dealt with here.
"""

import csv

from nbgrader.api import MissingEntry
from nbgrader.plugins import ExportPlugin

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "needs_manual_grade",
)


def safe(value):
    """Return a value as a cell of a table: numbers stay, text never starts a formula.

    >>> safe("=1+1"), safe(-1.5), safe(None)
    ("'=1+1", -1.5, '')
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return value
    text = str(value)
    return (
        f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") or text[:1] in "\t\r" else text
    )


def write_csv(rows, columns, file):
    """Write rows as CSV (RFC 4180).

    Parameters
    ----------
    rows : iterable of dict
        Values by column; others are left out.
    columns : sequence of str
        The header.
    file : text file
        Opened with ``newline=""``.
    """
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([safe(row.get(column)) for column in columns])


def grades(gradebook, assignments=(), students=()):
    """Return one row for each student and assignment of the gradebook.

    Who submitted nothing has 0 points, as in nbgrader's own export.
    """
    for assignment in gradebook.assignments:
        for student in gradebook.students:
            if assignments and assignment.name not in assignments:
                continue
            if students and student.id not in students:
                continue
            row = {
                "assignment": assignment.name,
                "duedate": assignment.duedate,
                "student_id": student.id,
                "last_name": student.last_name,
                "first_name": student.first_name,
                "email": student.email,
                "max_score": assignment.max_score,
            }
            yield row | _scores(gradebook, assignment.name, student.id)


def _scores(gradebook, assignment, student):
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return {"raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0}
    penalty = submission.late_submission_penalty
    return {
        "timestamp": submission.timestamp,
        "raw_score": submission.score,
        "late_submission_penalty": penalty,
        "score": max(0.0, submission.score - penalty),
        "needs_manual_grade": "yes" if submission.needs_manual_grade else "no",
    }


class CsvPlugin(ExportPlugin):
    """The same table for ``nbgrader export``."""

    def export(self, gradebook):
        """Write the grades to ``--to``, by default ``grades.csv``."""
        path = self.to or "grades.csv"
        chosen = ([str(a) for a in self.assignment], [str(s) for s in self.student])
        with open(path, "w", encoding="utf-8", newline="") as file:
            write_csv(grades(gradebook, *chosen), COLUMNS, file)
        self.log.info("Exported grades to %s", path)
