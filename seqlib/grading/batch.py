"""Grading of a class: worker processes grade, and one writer keeps the gradebook."""

import functools
import os
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from seqlib.grading.grader import Grader
from seqlib.grading.pool import Failure, run_jobs
from seqlib.grading.records import Store
from seqlib.grading.sandbox.isolation import require_isolation
from seqlib.grading.secret import course_secret

WRITING_ATTEMPTS = 3


@dataclass
class Outcome:
    """What a run came to.

    Attributes
    ----------
    records : dict
        ``{student: record of the submission}``; ``reused`` in a record says that the
        submission had been graded before.
    failures : dict
        ``{student: message}`` of the submissions that could not be graded for reasons that
        are not theirs. Their earlier grade, if any, stays.
    """

    records: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)


def grade_class(
    course,
    name,
    *,
    students=None,
    workers=None,
    force=False,
    trust_students=False,
    level=None,
    dask=None,
    make_grader=None,
    on_result=None,
):
    """Grade the submissions of a class and bring the gradebook up to date.

    A submission that has been graded under the same conditions is not graded again, so a run
    that was interrupted goes on where it was.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where everything lies.
    name : str
        The assignment, released.
    students : sequence of str, optional
        Whose submissions; all if None.
    workers : int, optional
        Worker processes; as many as there are cores if None.
    force : bool, default=False
        Whether to grade anew.
    trust_students : bool, default=False
        Whether to run students' code without protection.
    level : str, optional
        Isolation level; the best of the machine if None.
    dask : str, optional
        Address of the scheduler of a Dask cluster, whose workers grade in place of processes
        of this machine: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
    make_grader : callable, optional
        Returns the grader of a worker process; for tests. On a cluster it gets a copy of the
        course, and ``trust_students`` and ``level``.
    on_result : callable, optional
        ``on_result(student, record or Failure)`` after each submission.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        If there is no such assignment or student, or it has not been released; or if
        ``workers`` and ``dask`` are both given, or no scheduler is at the address.
    RuntimeError
        If workers cannot start, or a cluster goes away and does not come back.
    seqlib.grading.sandbox.isolation.IsolationError
        If a machine offers too little isolation and students are not trusted.
    """
    if dask is not None and workers is not None:
        raise ValueError(
            f"workers must be left out where a cluster grades, whose workers they are; "
            f"got {workers}"
        )
    students = _chosen(course.students(name), students)
    jobs = [(student, force) for student in students]
    outcome = Outcome()

    def conditions():
        wanted = level if trust_students else require_isolation(level)
        course_secret(course.grading)  # made here, before several workers want it
        if make_grader is not None:
            return {}
        return {"trust_students": trust_students, "level": wanted}

    if dask is None:
        running = run_jobs(
            functools.partial(_worker, make_grader or functools.partial(Grader, course, name)),
            jobs,
            workers=min(workers or os.cpu_count() or 1, max(len(students), 1)),
            meanwhile=conditions,
        )
    else:
        course_secret(course.grading)
        from seqlib.grading.distributed import coordinator

        running = coordinator.run_jobs(
            course,
            name,
            jobs,
            address=dask,
            trust_students=trust_students,
            level=level,
            make_grader=make_grader,
        )
    # Left early or not, the workers end with this loop.
    with closing(running), _writer(course, name) as writer:
        for (student, _), result in running:
            store = Store(course.records, name, student)
            if not isinstance(result, Failure):
                result = _applied(writer, result, force)
            if isinstance(result, Failure):
                outcome.failures[student] = result.message
                store.save_failure(result.message)
            else:
                store.clear_failure()
                outcome.records[student] = result
            if on_result is not None:
                on_result(student, result)
    outcome.records = dict(sorted(outcome.records.items()))
    outcome.failures = dict(sorted(outcome.failures.items()))
    return outcome


def _writer(course, name):
    """Return the writer of a gradebook.

    nbgrader takes a second to import: time in which the workers start too.
    """
    from seqlib.grading.gradebook.writer import Writer

    return Writer(course, name)


def _applied(writer, record, force):
    """Write a record to the gradebook; what keeps it from there stops no other submission."""
    for attempt in range(1, WRITING_ATTEMPTS + 1):
        try:
            writer.apply(record, force=force)
            return record
        except Exception as error:
            if attempt == WRITING_ATTEMPTS:
                return Failure(f"gradebook: {type(error).__name__}: {error}")
            # Somebody else may be writing, in formgrader for instance.
            time.sleep(attempt)


def changes(before, after):
    """Return the scores that differ between two sets of records, with the reason.

    Parameters
    ----------
    before, after : dict
        ``{student: record of the submission}``.

    Returns
    -------
    list of dict
        ``student``, ``task``, ``before``, ``after`` and ``reason``.
    """
    found = []
    for student, new in after.items():
        old = before.get(student)
        for task, entry in new["tasks"].items() if old else ():
            was = old["tasks"].get(task)
            if was is not None and was["score"] != entry["score"]:
                found.append(
                    {
                        "student": student,
                        "task": task,
                        "before": was["score"],
                        "after": entry["score"],
                        "reason": _reason(old, new, task),
                    }
                )
    return found


def _reason(old, new, task):
    reasons = []
    if old["submission"] != new["submission"]:
        reasons.append("another submission")
    was, now = old["basis"], new["basis"]
    versions = [b["exercises"].get(task) for b in (was, now)]
    if versions[0] != versions[1]:
        reasons.append(f"exercise version {versions[0]} -> {versions[1]}")
    for key, what in (("judge", "judge version"), ("level", "isolation level")):
        if was[key] != now[key]:
            reasons.append(f"{what} {was[key]} -> {now[key]}")
    if was["release"] != now["release"]:
        reasons.append("another release of the notebook")
    return ", ".join(reasons) or "graded anew under the same conditions"


def _chosen(present, wanted):
    if wanted is None:
        return present
    missing = sorted(set(wanted) - set(present))
    if missing:
        raise ValueError(f"student must have submitted, got {', '.join(missing)}")
    return [student for student in present if student in set(wanted)]


@contextmanager
def _worker(make_grader, conditions):
    """Give a worker process its grader, as a function of one job."""
    with make_grader(**conditions) as grader:
        yield lambda job: grader.grade(job[0], force=job[1])
