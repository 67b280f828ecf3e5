"""Grading of one submission: intake, execution, judgement and record."""

import hashlib
import re
import tempfile
import time
from contextlib import contextmanager

from seqlib.exercises import get_assignment
from seqlib.grading.judging import Judging, judge_call
from seqlib.grading.notebook import execution, present
from seqlib.grading.notebook.intake import take_in
from seqlib.grading.notebook.reading import to_json, to_lines
from seqlib.grading.records import Store, recorded
from seqlib.grading.sandbox.isolation import require_isolation
from seqlib.grading.secret import course_secret
from seqlib.grading.summary import now, submission_record
from seqlib.judge.judge import JUDGE_VERSION
from seqlib.judge.result import TaskResult

TRUSTED = "trusted"
_LOADED = {
    "plots": re.compile(r"^[ \t]*(?:(?:import|from)[ \t]+|%[ \t]*)matplotlib\b", re.MULTILINE),
    "torch": re.compile(r"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE),
}
STATES = (
    "graded",
    "graded_with_repairs",
    "partly_graded",
    "unreadable",
    "infrastructure_error",
)


class Grader:
    """Grades submissions of one assignment, one after the other.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where everything lies.
    name : str
        The assignment, released.
    trust_students : bool, default=False
        Whether to run students' code in this process, without any protection.
    level : str, optional
        Isolation level of the sandbox; the best of the machine if None.
    """

    def __init__(self, course, name, *, trust_students=False, level=None):
        self.course = course
        self.assignment = get_assignment(name)
        self.release = course.release(name)
        self._release_digest = hashlib.sha256(to_json(self.release).encode()).hexdigest()
        self.tasks = {task.id: task for task in self.assignment.tasks}
        self.secret = course_secret(course.grading)
        self._sandboxes, self._build = {}, None
        self._wanted = TRUSTED if trust_students else level
        if self._wanted is None:
            self._wanted = require_isolation()

    @property
    def level(self):
        """Name of the isolation level, as records have it."""
        level = self._wanted
        return level if isinstance(level, str) else "+".join(sorted(level)) or "no_layer"

    def grade(self, student, *, force=False):
        """Grade a student's submission and record it.

        Parameters
        ----------
        student : str
            Whose submission.
        force : bool, default=False
            Whether to grade anew what has been graded under the same conditions.

        Returns
        -------
        dict
            The record of the submission; ``reused`` says whether it was there already.
        """
        name = self.assignment.name
        store = Store(self.course.records, name, student, sync=not self.course.fleeting)
        folder = self.course.submission(student, name)
        taken = take_in(folder, name, self.release, self.assignment)
        basis = self.basis()
        old = store.submission()
        same = old and old["submission"] == taken.digest and old["basis"] == basis
        if same and not force and store.notebook(taken.digest) is not None:
            return old | {"reused": True}
        start = time.perf_counter()
        done, judging = self._run(student, taken, store, force)
        record = submission_record(self.assignment, student, taken, done, judging.entries) | {
            "basis": basis,
            "seconds": round(time.perf_counter() - start, 3),
            "graded_at": now(),
        }
        shown = to_lines(self._shown(taken, done))
        store.save_submission(taken.digest, shown, record, judging.records())
        return record | {"submission": taken.digest, "reused": False}

    def replay(self, student, task_id):
        """Judge one task of a graded submission again, with the seed of its record.

        Returns
        -------
        recorded, again : TaskResult
            Equal, unless the submission or the course has changed or the student's code
            gives another answer each time.

        Raises
        ------
        ValueError
            If there is no record, or the submission is another one by now.
        """
        name = self.assignment.name
        _, record = recorded(self.course, name, student, task_id)
        taken = take_in(self.course.submission(student, name), name, self.release)
        if taken.digest != record["submission"]:
            raise ValueError(
                "submission must be the graded one, got a newer one; grade it first"
            )
        again = []

        def judge_task(call, session):
            if call.task != task_id:
                return [], 0.0
            again.append(judge_call(self.tasks[task_id], session, record["seed"]))
            return [], 0.0

        with self._session(taken.notebook) as session:
            execution.run_notebook(taken.notebook, session, judge_task)
        if not again:
            raise ValueError(f"task must have a test cell in the notebook, got {task_id!r}")
        return TaskResult.from_dict(record["result"]), again[0]

    def basis(self):
        """Return what a grade depends on besides the submission."""
        return {
            "release": self._release_digest,
            "level": self.level,
            "judge": JUDGE_VERSION,
            "exercises": {task.id: task.version for task in self.assignment.tasks},
        }

    def close(self):
        """End the sandboxes."""
        while self._sandboxes:
            self._sandboxes.popitem()[1].close()
        if self._build is not None:
            self._build.cleanup()
            self._build = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _run(self, student, taken, store, force):
        """Return the execution of a notebook and the judging of its tasks."""
        judging = Judging(self, student, taken, store, force)
        run, judge_task = execution.run_notebook, judging.judge_task
        if taken.unreadable:
            return run(taken.notebook, _Idle(), judge_task), judging
        with self._session(taken.notebook) as session:
            done = run(taken.notebook, session, judge_task)
            sure = judging.confirm(session)
        if not sure:
            with self._session(taken.notebook) as session:
                done = run(taken.notebook, session, judge_task)
        return done, judging

    def _shown(self, taken, done):
        """Return the notebook as people see it: graded, harmless, with a note on top."""
        cells = present.cells({"cells": done.cells}, self.release)
        lines = [
            *([taken.unreadable] if taken.unreadable else []),
            *taken.mends,
            *taken.notes,
            *done.left_out,
        ]
        key = "grading-note"
        while any(cell["id"] == key for cell in cells):
            key += "-"
        note = [present.note(lines, key)] if lines else []
        return {**taken.notebook, "cells": note + cells}

    @contextmanager
    def _session(self, notebook):
        if self._wanted == TRUSTED:
            from seqlib.grading.notebook.trusted import TrustedSubmission

            with TrustedSubmission() as session:
                yield session
            return
        if self._build is None:
            from seqlib.grading.sandbox.student_build import write_student_build

            self._build = tempfile.TemporaryDirectory()
            self._package = write_student_build(self.assignment.grants, self._build.name)
        with self._sandbox(notebook).open(self._package) as session:
            yield session

    def _sandbox(self, notebook):
        """Return the sandbox that has loaded what a notebook imports, and no more.

        One with matplotlib takes twice as long to fork, and PyTorch a second to import.
        """
        code = [c["source"] for c in notebook["cells"] if c["cell_type"] == "code"]
        loaded = {name: any(map(says.search, code)) for name, says in _LOADED.items()}
        loaded["torch"] |= self.assignment.torch
        key = tuple(name for name, wanted in loaded.items() if wanted)
        if key not in self._sandboxes:
            from seqlib.grading.sandbox import box

            # To import PyTorch does not give more memory.
            limits = None if self.assignment.torch else box.Limits()
            refuse = {name for task in self.assignment.tasks for name in task.shortcuts}
            self._sandboxes[key] = box.Sandbox(
                level=self._wanted, limits=limits, refuse=refuse, **loaded
            )
        return self._sandboxes[key]


class _Idle:
    """Stands for the sandbox where there is nothing to run."""

    given_up = None

    def run_cell(self, source):
        from seqlib.grading.notebook.trusted import CellResult

        return CellResult([], True, 0.0)
