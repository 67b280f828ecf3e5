"""Grading of one submission: intake, execution, judgement and record."""

import functools
import hashlib
import importlib.metadata
import platform
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime

from seqlib.exercises import get_assignment
from seqlib.grading import execution, present
from seqlib.grading.intake import take_in
from seqlib.grading.notebook import to_json
from seqlib.grading.records import Key, Store
from seqlib.grading.secret import course_secret, seed
from seqlib.judge.judge import JUDGE_VERSION, judge
from seqlib.judge.result import TaskResult

TRUSTED = "trusted"
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
        self.tasks = {task.id: task for task in self.assignment.tasks}
        self.secret = course_secret(course.grading)
        self._sandbox = self._build = None
        self._wanted = TRUSTED if trust_students else level
        if not trust_students and level is None:
            from seqlib.grading.probe import best_level

            self._wanted = best_level()

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
        store = Store(self.course.records, name, student)
        taken = take_in(self.course.submission(student, name), name, self.release)
        basis = self.basis()
        old = store.submission()
        same = old and old["submission"] == taken.digest and old["basis"] == basis
        if same and not force and store.notebook(taken.digest) is not None:
            return old | {"reused": True}
        start = time.perf_counter()
        done, tasks = self._run(student, taken, store, force)
        record = self._record(student, taken, done, tasks) | {
            "basis": basis,
            "seconds": round(time.perf_counter() - start, 3),
            "graded_at": _now(),
        }
        store.save_submission(taken.digest, to_json(self._shown(taken, done)), record)
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
        store = Store(self.course.records, name, student)
        record = self.recorded(student, task_id)
        taken = take_in(self.course.submission(student, name), name, self.release)
        if taken.digest != record["submission"]:
            raise ValueError(
                "submission must be the graded one, got a newer one; grade it first"
            )
        again = []

        def judge_task(call, session):
            if call.task != task_id:
                return [], 0.0
            again.append(self._judge(call, session, record["seed"]))
            return [], 0.0

        with self._session() as session:
            execution.run_notebook(taken.notebook, session, judge_task)
        if not again:
            raise ValueError(f"task must have a test cell in the notebook, got {task_id!r}")
        return TaskResult.from_dict(record["result"]), again[0]

    def recorded(self, student, task_id):
        """Return the record of a task in a student's newest graded submission.

        Raises
        ------
        ValueError
            If there is none.
        """
        store = Store(self.course.records, self.assignment.name, student)
        submission = store.submission()
        if submission is None:
            raise ValueError(f"student must have a graded submission, got {student!r}")
        entry = submission["tasks"].get(task_id)
        if entry is None:
            known = ", ".join(submission["tasks"])
            raise ValueError(f"task must be one of {known}, got {task_id!r}")
        if entry.get("key") is None:
            raise ValueError(f"submission must have been read, got: {submission['unreadable']}")
        record = store.task(submission["submission"], Key(**entry["key"]))
        if record is None:
            raise ValueError(f"record of {task_id} is missing or damaged; grade with --force")
        return record

    def basis(self):
        """Return what a grade depends on besides the submission."""
        return {
            "release": hashlib.sha256(to_json(self.release).encode()).hexdigest(),
            "level": self.level,
            "judge": JUDGE_VERSION,
            "exercises": {task.id: task.version for task in self.assignment.tasks},
        }

    def close(self):
        """End the sandbox."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._build.cleanup()
            self._sandbox = self._build = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _run(self, student, taken, store, force):
        """Return the execution of a notebook and what is kept of its tasks."""
        tasks = {}

        def judge_task(call, session):
            task = self.tasks.get(call.task)
            if task is None or task.function != call.function:
                return None
            if taken.unreadable:
                tasks[task.id] = _unread(task)
                return [f"{task.id}: 0 points", taken.unreadable], 0.0
            key = Key(task.id, task.version, JUDGE_VERSION, self.level)
            record = None if force else store.task(taken.digest, key)
            if record is None:
                record = self._task_record(student, call, session)
                store.save_task(taken.digest, key, record)
            result = TaskResult.from_dict(record["result"])
            tasks[task.id] = _summary(result, record["seconds"], key)
            return result.lines(), min(max(result.score, 0.0), task.points)

        if taken.unreadable:
            return execution.run_notebook(taken.notebook, _Idle(), judge_task), tasks
        with self._session() as session:
            return execution.run_notebook(taken.notebook, session, judge_task), tasks

    def _task_record(self, student, call, session):
        task = self.tasks[call.task]
        number = seed(self.secret, student, task.id, task.version)
        start = time.perf_counter()
        result = self._judge(call, session, number)
        return {
            "student": student,
            "assignment": self.assignment.name,
            "seed": number,
            "result": result.to_dict(),
            "seconds": round(time.perf_counter() - start, 3),
            "libraries": libraries(),
            "graded_at": _now(),
        }

    def _judge(self, call, session, number):
        subject = session.subject(call.function)
        try:
            return judge(self.tasks[call.task], subject, number)
        finally:
            subject.close()

    def _record(self, student, taken, done, tasks):
        if taken.unreadable:
            state = "unreadable"
        elif taken.partial or done.left_out:
            state = "partly_graded"
        else:
            state = "graded_with_repairs" if taken.mends else "graded"
        return {
            "student": student,
            "assignment": self.assignment.name,
            "state": state,
            "file": taken.file,
            "unreadable": taken.unreadable,
            "mends": list(taken.mends),
            "left_out": done.left_out,
            "tasks": tasks,
            "score": sum(task["score"] for task in tasks.values()),
            "points": sum(task.points for task in self.assignment.tasks),
            "written_points": sum(question.points for question in self.assignment.written),
        }

    def _shown(self, taken, done):
        """Return the notebook as people see it: graded, harmless, with a note on top."""
        cells = present.cells({"cells": done.cells}, self.release)
        lines = [
            *([taken.unreadable] if taken.unreadable else []),
            *taken.mends,
            *done.left_out,
        ]
        note = [present.note(lines)] if lines else []
        return {**taken.notebook, "cells": note + cells}

    @contextmanager
    def _session(self):
        if self._wanted == TRUSTED:
            from seqlib.grading.trusted import TrustedSubmission

            with TrustedSubmission() as session:
                yield session
            return
        if self._sandbox is None:
            from seqlib.grading.sandbox import Sandbox
            from seqlib.grading.student_build import write_student_build

            self._build = tempfile.TemporaryDirectory()
            self._package = write_student_build(self.assignment.grants, self._build.name)
            self._sandbox = Sandbox(torch=self.assignment.torch, level=self._wanted)
        with self._sandbox.open(self._package) as session:
            yield session


class _Idle:
    """Stands for the sandbox where there is nothing to run."""

    given_up = None

    def run_cell(self, source):
        from seqlib.grading.trusted import CellResult

        return CellResult([], True, 0.0)


def _unread(task):
    return {
        "score": 0.0,
        "points": task.points,
        "seconds": 0.0,
        "failed": [c.name for c in task.criteria],
        "diagnosis": None,
        "key": None,
    }


def _summary(result, seconds, key):
    """Return what the record of the submission keeps of a task."""
    plain = result.to_dict()
    return {
        "score": min(max(result.score, 0.0), result.points),
        "points": result.points,
        "seconds": seconds,
        "failed": [c.name for c in result.criteria if not c.passed],
        "diagnosis": plain["diagnosis"],
        "key": vars(key),
    }


@functools.cache
def libraries():
    """Return the versions that can have a part in a score."""
    versions = {"python": platform.python_version()}
    for name in ("seqlib-course", "numpy", "torch"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _now():
    return datetime.now(UTC).isoformat(timespec="seconds")
