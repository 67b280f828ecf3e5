"""The tasks of one submission: judged in their places, confirmed at the end, recorded.

Whether a function gives the same answers in another process is a question of its own. A process
for each function would cost a third of the time of a submission, so all of them are asked once
more where the notebook's cells were run, when it has come to its end. Only if an answer is not
confirmed there, because a later cell has changed something for instance, does the notebook run
once more, and each function in doubt gets another process in its own place.
"""

import contextlib
import time

from seqlib.grading.records import Key
from seqlib.grading.secret import seed
from seqlib.grading.summary import libraries, now, task_entry, unread
from seqlib.judge.judge import JUDGE_VERSION, judge
from seqlib.judge.result import TaskResult


def judge_call(task, session, number, later=None):
    """Judge a task in the present state of a notebook and return its ``TaskResult``.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        Which.
    session
        A ``Submission`` of the sandbox or a ``TrustedSubmission``.
    number : int
        The seed.
    later : list, optional
        As :func:`seqlib.judge.judge.judge` takes it.
    """
    subject = session.subject(task.function)
    try:
        return judge(task, subject, number, later=later)
    finally:
        subject.close()


class Judging:
    """Judges the tasks of one submission.

    Parameters
    ----------
    grader : seqlib.grading.grader.Grader
        Gives the tasks, the secret and the level.
    student : str
        Whose submission.
    taken : seqlib.grading.notebook.intake.Intake
        The submission.
    store : seqlib.grading.records.Store
        Of the student.
    force : bool
        Whether to judge what has a record already.

    Attributes
    ----------
    entries : dict
        What the record of the submission has of each task.
    """

    def __init__(self, grader, student, taken, store, force):
        self._grader, self._student, self._taken = grader, student, taken
        self._store, self._force = store, force
        self._new = {}  # task id -> record
        self._later = {}  # task id -> what is to be confirmed
        self._doubted = set()
        self.entries = {}

    def judge_task(self, call, session):
        """Return the lines and the score of a test cell; None if its call is of no task."""
        task = self._grader.tasks.get(call.task)
        if task is None or task.function != call.function:
            return None
        if self._taken.unreadable:
            self.entries[task.id] = unread(task)
            return [f"{task.id}: 0 points", self._taken.unreadable], 0.0
        record = self._record(task, session)
        result = TaskResult.from_dict(record["result"])
        self.entries[task.id] = task_entry(result, record["seconds"], self._key(task))
        return result.lines(), min(max(result.score, 0.0), task.points)

    def confirm(self, session):
        """Put some questions again at the end of the notebook.

        Returns
        -------
        bool
            Whether all is confirmed. If not, the notebook is to be run once more.
        """
        sure = True
        for name, rechecks in self._later.items():
            if sure:
                function = self._grader.tasks[name].function
                with contextlib.closing(session.end_state(function)) as subject:
                    sure = all(recheck.confirmed(subject) for recheck in rechecks)
            if not sure:
                self._doubted.add(name)
                del self._new[name]
        self._later.clear()
        return sure

    def records(self):
        """Return ``{key: record}`` of the tasks that were judged here."""
        tasks = self._grader.tasks
        return {self._key(tasks[name]): record for name, record in self._new.items()}

    def _record(self, task, session):
        """Return the record of a task, made now if there is none."""
        if task.id in self._new:
            return self._new[task.id]
        if not self._force:
            record = self._store.task(self._taken.digest, self._key(task))
            if record is not None:
                return record
        later = None if task.id in self._doubted else []
        number = seed(self._grader.secret, self._student, task.id, task.version)
        start = time.perf_counter()
        result = judge_call(task, session, number, later)
        if later:
            self._later[task.id] = later
        self._new[task.id] = record = {
            "student": self._student,
            "assignment": self._grader.assignment.name,
            "seed": number,
            "result": result.to_dict(),
            "seconds": round(time.perf_counter() - start, 3),
            "libraries": libraries(),
            "graded_at": now(),
        }
        return record

    def _key(self, task):
        return Key(task.id, task.version, JUDGE_VERSION, self._grader.level)
