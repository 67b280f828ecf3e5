"""Grades as one CSV file that a spreadsheet reads without surprises.

nbgrader's own exporter does not quote, so a comma in a name breaks its row.
"""

from nbgrader.api import MissingEntry
from nbgrader.plugins import ExportPlugin

from seqlib.grading.tables import write_csv

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


def grades(gradebook, assignments=(), students=()):
    """Return one row for each student and assignment of the gradebook.

    Who submitted nothing has 0 points, as in nbgrader's own export.
    """
    everybody = sorted(gradebook.students, key=lambda student: student.id)
    for assignment in gradebook.assignments:
        for student in everybody:
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
