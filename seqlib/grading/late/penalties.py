"""Penalties in the gradebook: brought up to date, and said.

nbgrader works a penalty out when it grades, from the points of that moment. When a person has
marked a written answer since, or the due date or an extension has changed, it is another one.
"""

import contextlib
import logging

import nbformat
from nbgrader.api import Assignment, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties, latesubmissions
from sqlalchemy import or_
from traitlets import TraitError

from seqlib.grading.gradebook.database import repeated
from seqlib.grading.gradebook.lean import one_transaction, shared
from seqlib.grading.late.policy import LatePolicy


def penalties(config):
    """Return nbgrader's ``AssignLatePenalties``, with its plug-in, from a configuration.

    Raises
    ------
    ValueError
        If the configuration is wrong.
    """
    try:
        preprocessor = AssignLatePenalties(config=config)
        # It warns of each late submission.
        preprocessor.log = logging.getLogger(__name__)
        preprocessor.log.setLevel(logging.ERROR)
        preprocessor.init_plugin()
    except (TraitError, ImportError) as error:
        raise ValueError(f"AssignLatePenalties: {error}") from error
    return preprocessor


def update_penalties(gradebook, config, assignments=()):
    """Work out anew what late submissions cost, by the plug-in that is configured.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        Of the course; penalties in it are changed, and nothing else.
    config : traitlets.config.Config
        nbgrader's configuration of the course.
    assignments : collection of str, optional
        Only these; all if empty.

    Returns
    -------
    list of str
        Sentences about what has changed, and about extensions of nobody.

    Raises
    ------
    ValueError
        If the configuration is wrong.
    """
    preprocessor = penalties(config)
    said = []
    if isinstance(preprocessor.plugin_inst, LatePolicy):
        said += _of_nobody(gradebook, preprocessor.plugin_inst.granted)
    before = _concerned(gradebook, assignments)
    if not before:
        return said

    def assign():
        with one_transaction(gradebook), shared(_Open(gradebook), latesubmissions):
            for assignment, student, notebook in before:
                about = {"assignment": assignment, "student": student, "notebook": notebook}
                resources = {"nbgrader": about | {"db_url": ""}}
                preprocessor.preprocess(nbformat.v4.new_notebook(), resources)

    repeated(assign)
    after = _concerned(gradebook, assignments)
    changed = [key for key, old in before.items() if (after.get(key) or 0.0) != (old or 0.0)]
    if changed:
        said.append(f"Penalties for late submissions brought up to date: {len(changed)}.")
    return said


def late_submissions(gradebook, assignments):
    """Return the late submissions, and those with a penalty, with the penalty of a notebook."""
    query = (
        gradebook.db.query(SubmittedAssignment, SubmittedNotebook.late_submission_penalty)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .filter(
            or_(
                SubmittedAssignment.timestamp > Assignment.duedate,
                SubmittedNotebook.late_submission_penalty > 0,
            )
        )
    )
    if assignments:
        query = query.filter(Assignment.name.in_(list(assignments)))
    return query.all()


def _concerned(gradebook, assignments):
    """Return ``{(assignment, student, notebook): penalty}``."""
    submissions = {submission for submission, _ in late_submissions(gradebook, assignments)}
    return {
        (found.name, found.student_id, notebook.name): notebook.late_submission_penalty
        for found in submissions
        for notebook in found.notebooks
    }


def _of_nobody(gradebook, granted):
    """Say which extensions nobody has: a misspelt id would cost a student points."""
    students = {student.id for student in gradebook.students}
    names = {assignment.name for assignment in gradebook.assignments} | {""}
    lost = sorted({student for student, _ in granted} - students)
    if lost:
        yield f"Extensions of students who are not in the gradebook: {', '.join(lost)}."
    lost = sorted({name for _, name in granted} - names)
    if lost:
        yield f"Extensions of assignments that are not in the gradebook: {', '.join(lost)}."


class _Open(contextlib.AbstractContextManager):
    """Stands for a gradebook that a ``with`` statement does not close."""

    def __init__(self, gradebook):
        self._gradebook = gradebook

    def __getattr__(self, name):
        return getattr(self._gradebook, name)

    def __exit__(self, *exc):
        pass
