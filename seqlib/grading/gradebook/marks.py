"""Marks and comments that a person gave, and the submission that they were given to.

nbgrader keeps a mark when a student submits anew, which is right, but does not say that it was
given to another text. Here the submission is remembered with each mark.
"""

import json

from seqlib.grading.records import write_atomically

FILE = "marks.json"


def marks_of(gradebook, name, student):
    """Return what a person wrote into the gradebook.

    Returns
    -------
    dict
        ``{cell: [manual score, extra credit, comment]}``, without cells that have none.
    """
    found = {}
    for notebook in gradebook.find_submission(name, student).notebooks:
        for grade in notebook.grades:
            if grade.manual_score is not None or grade.extra_credit is not None:
                found[grade.name] = [grade.manual_score, grade.extra_credit, None]
        for comment in notebook.comments:
            if comment.manual_comment is not None:
                found.setdefault(comment.name, [None, None, None])[2] = comment.manual_comment
    return found


def marked_students(gradebook, name):
    """Return the students to whose submissions of an assignment a person wrote something."""
    from nbgrader.api import Comment, Grade, Student, SubmittedAssignment, SubmittedNotebook
    from sqlalchemy import or_

    given = {
        Grade: (Grade.manual_score, Grade.extra_credit),
        Comment: (Comment.manual_comment,),
    }
    return {
        student
        for kind, columns in given.items()
        for (student,) in gradebook.db.query(Student.id)
        .join(SubmittedAssignment, SubmittedAssignment.student_id == Student.id)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(kind, kind.notebook_id == SubmittedNotebook.id)
        .filter(SubmittedAssignment.name == name)
        .filter(or_(*(column.is_not(None) for column in columns)))
        .distinct()
    }


def remember_marks(gradebook, store, name, student, digest):
    """Note, before a submission is applied, which one the present marks were given to.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        With the marks as they are now.
    store : seqlib.grading.records.Store
        Of the student.
    name, student : str
        Assignment and student.
    digest : str
        The submission that is applied next.
    """
    marks = _dated(gradebook, store, name, student, digest)
    content = {"applied": digest, "marks": marks}
    write_atomically(store.folder / FILE, json.dumps(content, indent=1, sort_keys=True) + "\n")


def stale_marks(gradebook, store, name, student):
    """Return the cells whose mark or comment was given to an older submission, sorted."""
    applied = _read(store).get("applied")
    marks = _dated(gradebook, store, name, student, applied)
    return sorted(cell for cell, mark in marks.items() if mark["submission"] != applied)


def _dated(gradebook, store, name, student, digest):
    """Return the marks, each with the submission to which it was given."""
    known = _read(store)
    # A mark that is new since the last time was given to what was shown then.
    shown = known.get("applied") or digest
    dated = {}
    for cell, value in marks_of(gradebook, name, student).items():
        old = known.get("marks", {}).get(cell, {})
        same = old.get("value") == value
        dated[cell] = {"value": value, "submission": old["submission"] if same else shown}
    return dated


def _read(store):
    try:
        return json.loads((store.folder / FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
