"""What ``nbgrader_config.py`` plugs into nbgrader.

With it ``nbgrader autograde`` and formgrader's button read, repair, run and judge submissions
as ``seqlib grade`` does, and find what that has graded already.
"""

import atexit
import hashlib
import json
import os
import threading
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from seqlib.grading.course import Course
from seqlib.grading.gradebook.marks import remember_marks
from seqlib.grading.gradebook.writer import register
from seqlib.grading.grader import Grader
from seqlib.grading.notebook import present
from seqlib.grading.notebook.intake import take_in
from seqlib.grading.records import Store
from seqlib.grading.sandbox.isolation import require_isolation

_graders, _registered = {}, {}
_lock = threading.Lock()


def substitute(assignment, student, notebooks):
    """Give nbgrader the name that it expects instead of the files that were handed in.

    This is the ``pre_convert_hook`` of ``Autograde``. nbgrader skips a file whose name it does
    not know; what the expected name stands for is found by :class:`RepairExporter`, which
    looks at all files of the folder. The submission is not changed.
    The assignment is registered where the gradebook does not have it.
    """
    course = Course(Path.cwd())
    release = course.release_file(assignment).read_bytes()
    if _registered.get((course.root, assignment)) != release:
        register(course, assignment)
        _registered[course.root, assignment] = release
    if notebooks:
        folder = os.path.dirname(notebooks[0])
        notebooks[:] = [os.path.join(folder, f"{os.path.basename(folder)}.ipynb")]


class RepairExporter(NotebookExporter):
    """Reads a submission whatever state it is in, and repairs it."""

    def from_filename(self, filename, resources=None, **options):
        """Return the notebook that nbgrader goes on with.

        A file in a submission folder is taken in and repaired, any other is read as it is.
        """
        about = (resources or {}).get("nbgrader", {})
        course = Course(Path.cwd())
        if "student" in about:
            folder = course.submission(about["student"], about["assignment"])
            if Path(filename).parent == folder:
                release = course.release(about["assignment"])
                taken = take_in(folder, about["assignment"], release)
                for line in (taken.unreadable, *taken.mends):
                    if line:
                        self.log.warning("%s: %s", about["student"], line)
                cells = present.cells(taken.notebook, release)
                notebook = nbformat.from_dict({**taken.notebook, "cells": cells})
                return self.from_notebook_node(notebook, resources=resources, **options)
        return super().from_filename(filename, resources=resources, **options)


class JudgeExecute(NbGraderPreprocessor):
    """Runs the submission in the sandbox and judges it outside; in place of ``Execute``."""

    trust_students = Bool(
        False, help="Whether to run students' code without any protection."
    ).tag(config=True)

    def preprocess(self, nb, resources):
        """Return the graded notebook, the same that ``seqlib grade`` makes."""
        about = resources["nbgrader"]
        student, name = about["student"], about["assignment"]
        course = Course(Path.cwd())
        store = Store(course.records, name, student)
        with _lock:
            try:
                record = self._grader(course, name).grade(student)
            except Exception:
                if not (course.submission(student, name) / f"{name}.ipynb").exists():
                    _leave_ungraded(about)
                raise
            with Gradebook(about["db_url"]) as gradebook:
                remember_marks(gradebook, store, name, student, record["submission"])
        self.log.info("%s: %s, %g points", student, record["state"], record["score"])
        return nbformat.from_dict(json.loads(store.notebook(record["submission"]))), resources

    def _grader(self, course, name):
        """Return the grader of this process; nbgrader makes new preprocessors every time."""
        release = hashlib.sha256(course.release_file(name).read_bytes()).digest()
        key = (course.root, name, release, self.trust_students)
        if key not in _graders:
            close_graders()
            if not self.trust_students:
                require_isolation()
            _graders[key] = Grader(course, name, trust_students=self.trust_students)
        return _graders[key]


def _leave_ungraded(about):
    """Take back the 0 that nbgrader gives where the expected file is not there.

    It came under another name, and that it could not be graded is not the student's fault.
    """
    with Gradebook(about["db_url"]) as gradebook:
        names = (about["notebook"], about["assignment"], about["student"])
        for grade in gradebook.find_submission_notebook(*names).grades:
            grade.auto_score, grade.needs_manual_grade = None, True
        gradebook.db.commit()


@atexit.register
def close_graders():
    """End the sandboxes of this process."""
    while _graders:
        _graders.popitem()[1].close()
