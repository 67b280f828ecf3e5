"""Marks of the gradebook as they leave it, and the table of all of them.

A mark leaves the gradebook for a learning platform only when nothing about it is open. What is
open is said beside it: an answer that no person has marked yet, work that was lost, a run that
failed. nbgrader's own exporter knows none of this, gives 0 to who submitted nothing, and does
not quote, so that a comma in a name breaks its row.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import datetime

from nbgrader.api import Assignment, Grade, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import case, func

from seqlib.grading.collect.store import INDEX
from seqlib.grading.gradebook.marks import marked_students, stale_marks
from seqlib.grading.records import Store, all_submissions, failures

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
    "state",
    "note",
)
# States whose score stands for part of the work or for none of it.
OPEN_STATES = {
    "partly_graded": "part of the work could not be graded",
    "unreadable": "the file could not be read",
}


@dataclass(frozen=True)
class Mark:
    """What one student has for one assignment.

    Attributes
    ----------
    assignment, student : str
        Name and id, as in the gradebook.
    last_name, first_name, email, platform_id : str
        Of the student, empty where the gradebook has none; the last is ``lms_user_id``.
    source : str
        ``platform:user`` from which the submission was collected; empty if it was not.
    max_score : float
        Points of the assignment.
    duedate, timestamp : datetime or None
        In UTC, without a zone, as nbgrader keeps them.
    raw_score, penalty, score : float or None
        Points before and after what a late submission costs; None without a submission.
    needs_manual_grade : bool
        Whether a person has to mark something.
    state : str
        How ``seqlib grade`` ended, one of ``seqlib.grading.summary.STATES``; empty for what
        it has not graded.
    open : tuple of str
        Why the score is not final, one sentence each; empty if it is.
    """

    assignment: str
    student: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    platform_id: str = ""
    source: str = ""
    max_score: float = 0.0
    duedate: datetime | None = None
    timestamp: datetime | None = None
    raw_score: float | None = None
    penalty: float | None = None
    score: float | None = None
    needs_manual_grade: bool = False
    state: str = ""
    open: tuple[str, ...] = ()

    @property
    def note(self):
        """What is open, in one line."""
        return f"Not final: {'; '.join(self.open)}." if self.open else ""

    def known_as(self, platform):
        """Return what a platform calls the student; empty if that is not known.

        A number that another platform gave is no answer: it is somebody else's here.
        """
        name, _, user = self.source.partition(":")
        if name == platform:
            return user
        return "" if user and user == self.platform_id else self.platform_id


def collect_marks(gradebook, course=None, assignments=(), students=()):
    """Return the marks of all students in all assignments of a gradebook.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        Read, not changed.
    course : seqlib.grading.course.Course, optional
        Whose records say how grading ended; without it only the gradebook speaks.
    assignments, students : collection of str, optional
        Only these; all if empty.

    Returns
    -------
    list of Mark
        By assignment in the order of the gradebook, then by student id.

    Raises
    ------
    ValueError
        If the gradebook has no such assignment or student, or none at all.
    """
    known = {assignment.name: assignment for assignment in gradebook.assignments}
    everybody = sorted(gradebook.students, key=lambda student: student.id)
    if not known:
        raise ValueError("gradebook must have an assignment; run `seqlib grade NAME` first")
    _require("assignment", assignments, known)
    _require("student", students, [student.id for student in everybody])
    chosen = [s for s in everybody if not students or s.id in set(students)]
    marks = []
    for name, assignment in known.items():
        if not assignments or name in set(assignments):
            marks += _marks_of(gradebook, course, assignment, chosen)
    return marks


def _require(what, wanted, known):
    missing = sorted(set(wanted) - set(known))
    if missing:
        listed = ", ".join(sorted(known)[:20]) or "none"
        raise ValueError(
            f"{what} must be in the gradebook, which has {listed}; got {', '.join(missing)}"
        )


def _marks_of(gradebook, course, assignment, students):
    name, scores = assignment.name, _scores(gradebook, assignment)
    records, failed, stale, collected = {}, {}, {}, {}
    if course is not None:
        collected = collected_from(course, name)
        records = all_submissions(course.records, name)
        failed = failures(course.records, name)
        stale = _stale(gradebook, course, name, scores)
    for student in students:
        found = scores.get(student.id, {})
        record = records.get(student.id) if found else None
        why = []
        if student.id in failed:
            why.append("the last run could not grade the newest submission")
        elif not found and course is not None and course.submission(student.id, name).is_dir():
            why.append("what was submitted has not been graded yet")
        if record and record["state"] in OPEN_STATES:
            why.append(OPEN_STATES[record["state"]])
        if record and student.id not in failed and _has_changed(course, record):
            why.append("another file has been submitted since")
        if found.get("needs_manual_grade"):
            why.append("a person has yet to mark an answer")
        if student.id in stale:
            cells = ", ".join(stale[student.id])
            why.append(f"marks were given to an older submission ({cells})")
        state = "infrastructure_error" if student.id in failed else (record or {}).get("state")
        yield Mark(
            assignment=name,
            student=student.id,
            last_name=student.last_name or "",
            first_name=student.first_name or "",
            email=student.email or "",
            platform_id=student.lms_user_id or "",
            source=collected.get(student.id, {}).get("key", ""),
            max_score=float(assignment.max_score),
            duedate=assignment.duedate,
            state=state or "",
            open=tuple(why),
            **found,
        )


def _scores(gradebook, assignment):
    """Return ``{student: scores}`` of an assignment, by two queries for the whole class.

    nbgrader's own properties ask the tables once more for each student, which takes a class
    of thousands hours.
    """
    given = func.coalesce(func.sum(Grade.score), 0.0)
    waiting = func.max(case((Grade.needs_manual_grade, 1), else_=0))
    graded = (
        gradebook.db.query(SubmittedNotebook.assignment_id, given, waiting)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .group_by(SubmittedNotebook.assignment_id)
    )
    late = func.coalesce(func.sum(SubmittedNotebook.late_submission_penalty), 0.0)
    submitted = (
        gradebook.db.query(
            SubmittedAssignment.id,
            SubmittedAssignment.student_id,
            SubmittedAssignment.timestamp,
            late,
        )
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .outerjoin(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .filter(Assignment.id == assignment.id)
        .group_by(
            SubmittedAssignment.id,
            SubmittedAssignment.student_id,
            SubmittedAssignment.timestamp,
        )
    )
    ids = gradebook.db.query(SubmittedAssignment.id).filter(
        SubmittedAssignment.assignment_id == assignment.id
    )
    graded = graded.filter(SubmittedNotebook.assignment_id.in_(ids.scalar_subquery()))
    sums = {key: (float(score), bool(waits)) for key, score, waits in graded}
    found = {}
    for key, student, timestamp, penalty in submitted:
        raw, waits = sums.get(key, (0.0, False))
        found[student] = {
            "timestamp": timestamp,
            "raw_score": raw,
            "penalty": float(penalty),
            "score": max(0.0, raw - float(penalty)),
            "needs_manual_grade": waits,
        }
    return found


def _stale(gradebook, course, name, students):
    marked = sorted(marked_students(gradebook, name).intersection(students))
    stores = {student: Store(course.records, name, student) for student in marked}
    found = {s: stale_marks(gradebook, store, name, s) for s, store in stores.items()}
    return {student: cells for student, cells in found.items() if cells}


def _has_changed(course, record):
    """Say whether the file that was graded is another one by now."""
    if not record["file"]:
        return False
    folder = course.submission(record["student"], record["assignment"])
    path = folder / record["file"]
    try:
        # A file of an archive is not there by its name; nor is one that was put away.
        data = path.read_bytes() if path.is_file() else None
    except OSError:
        return False
    return data is not None and hashlib.sha256(data).hexdigest() != record["submission"]


def collected_from(course, name):
    """Return ``{student: what is known of the origin}`` of the collected submissions.

    The entries are those of ``seqlib.grading.collect.store.Work.about``: ``key``, ``where``,
    ``order`` and more.

    Raises
    ------
    ValueError
        If the list of them is damaged.
    """
    path = course.grading / "collected" / name / INDEX
    try:
        students = json.loads(path.read_text(encoding="utf-8"))["students"]
        return {student: entry["current"] for student, entry in students.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"list of collected submissions must be sound, got a damaged file {path}"
        ) from error


def points_text(points):
    """Return points as platforms read them: at most five decimals, a point, no exponent.

    Five is what Moodle keeps.

    >>> points_text(85.0), points_text(1 / 3), points_text(-0.0)
    ('85', '0.33333', '0')
    """
    if not math.isfinite(points) or points < 0:
        raise ValueError(f"points must be finite and not negative, got {points}")
    return f"{points + 0.0:.5f}".rstrip("0").rstrip(".")


def rows(marks):
    """Return the rows of the general table, one dict for each mark."""
    for mark in marks:
        yield {
            "assignment": mark.assignment,
            "duedate": mark.duedate,
            "timestamp": mark.timestamp,
            "student_id": mark.student,
            "last_name": mark.last_name,
            "first_name": mark.first_name,
            "email": mark.email,
            "raw_score": mark.raw_score,
            "late_submission_penalty": mark.penalty,
            "score": mark.score,
            "max_score": mark.max_score,
            "needs_manual_grade": _yes(mark),
            "state": mark.state,
            "note": mark.note,
        }


def _yes(mark):
    if mark.score is None:
        return None
    return "yes" if mark.needs_manual_grade else "no"
