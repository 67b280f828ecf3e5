"""What the analytics know of a class: one small object for each student and assignment.

Records are read one at a time and not kept, so that a class of thousands fits into memory.
A submission counts towards the numbers only if its state says that all of it was judged; one
that could be read in part still tells which mistakes were made.
"""

import json
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

import seqlib.exercises
from seqlib.exercises import get_assignment
from seqlib.grading.analytics.groups import Patterns
from seqlib.grading.collect.store import INDEX, TIMESTAMP
from seqlib.grading.records import Key, Store
from seqlib.grading.summary import STATES

WHOLE = ("graded", "graded_with_repairs")
PART = "partly_graded"
FAILED = STATES[-1]
# Whose numbers mean the same person in all assignments. Moodle's is one of the assignment
# alone, and the key of a plain folder is the id already.
_LASTING = ("canvas", "blackboard", "gradescope")


@dataclass(frozen=True, slots=True)
class Work:
    """A student's newest submission of one assignment.

    Attributes
    ----------
    state : str
        One of ``seqlib.grading.summary.STATES``.
    share : float or None
        Score through points of what is judged; None unless all of it was judged, and where
        the assignment has no points.
    scores : tuple of (float or None)
        Share of the points of each task of the assignment, in its order; None for a task
        that the record does not have. Empty unless all was judged.
    points : tuple of float
        What was earned for each of them.
    mistakes : tuple of (int, str)
        Number of the task and name of each named misconception.
    week : str or None
        ISO week of the submission in UTC, ``"2026-W09"``; None if its time is not known.
    """

    state: str
    share: float | None = None
    scores: tuple = ()
    points: tuple = ()
    mistakes: tuple = ()
    week: str | None = None

    @property
    def readable(self):
        """Whether it says which mistakes were made."""
        return self.state in (*WHOLE, PART)


@dataclass
class Graded:
    """The submissions of one assignment.

    Attributes
    ----------
    assignment : seqlib.exercises.record.Assignment
        Its record.
    works : dict
        ``{student: Work}``, by the ids that students have now.
    waiting : set of str
        Who has handed in, without a record.
    about : dict
        ``{(number of the task, name): (says, page)}`` of the misconceptions.
    patterns : seqlib.grading.analytics.groups.Patterns
        Which wrong answers the judge described in the same words.
    versions : dict
        ``{task: Counter of the versions of its exercise}``.
    notes : list of str
        What somebody should know about the numbers.
    """

    assignment: object
    works: dict = field(default_factory=dict)
    waiting: set = field(default_factory=set)
    about: dict = field(default_factory=dict)
    patterns: Patterns = field(default_factory=Patterns)
    versions: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)

    @property
    def name(self):
        """Name of the assignment."""
        return self.assignment.name

    @property
    def whole(self):
        """``{student: Work}`` of what was judged as a whole."""
        return {s: work for s, work in self.works.items() if work.state in WHOLE}

    @property
    def readable(self):
        """``{student: Work}`` of what says which mistakes were made."""
        return {s: work for s, work in self.works.items() if work.readable}

    @property
    def handed_in(self):
        """Everybody who has handed in, judged or not."""
        return self.works.keys() | self.waiting


def read_class(course, names=()):
    """Read the records of a class.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        With records of graded submissions.
    names : sequence of str, optional
        Assignments; all that have records if empty.

    Returns
    -------
    list of Graded
        In the order of the course.

    Raises
    ------
    ValueError
        If there is no such assignment, or one that was asked for, or all, have no graded
        submission.
    """
    wanted = {get_assignment(name).name for name in names}
    with_records = [
        name for name in seqlib.exercises.ASSIGNMENTS if _folders(course.records / name)
    ]
    lacking = sorted(wanted - set(with_records))
    if lacking:
        raise ValueError(
            f"assignment must have graded submissions, got {', '.join(lacking)}; "
            f"run `seqlib grade {lacking[0]}`"
        )
    renames = _Renames(course)
    found = [
        _read_assignment(course, get_assignment(name), renames)
        for name in with_records
        if not wanted or name in wanted
    ]
    found = [graded for graded in found if graded.works]
    if not found:
        raise ValueError(
            "course must have graded submissions, got none in grading/records; "
            "run `seqlib grade NAME`"
        )
    return found


def shown(student):
    r"""Return an id as text that can be written; a folder's name can have any bytes.

    >>> shown("s001"), shown("s\udcff")
    ('s001', 's\\xff')
    """
    return os.fsencode(student).decode("utf-8", "backslashreplace")


def week_of(time):
    """Return the ISO week of a time: Monday to Sunday, of the year that has its Thursday.

    >>> week_of(datetime(2027, 1, 3)), week_of(datetime(2027, 1, 4))
    ('2026-W53', '2027-W01')
    """
    year, week, _ = time.isocalendar()
    return f"{year:04d}-W{week:02d}"


def _read_assignment(course, assignment, renames):
    graded = Graded(assignment)
    name = assignment.name
    graded.versions = {task.id: Counter() for task in assignment.tasks}
    folders = _folders(course.records / name)
    # Too few say nothing about what is rare, and their records of tasks need not be read.
    graded.patterns.tell(len(folders))
    people = {student: renames.now(name, student) for student in folders}
    chosen = {}
    for student, person in people.items():
        # Under the id that a student has now lies the newer submission.
        if person not in chosen or student == person:
            chosen[person] = student
    for person, student in sorted(chosen.items()):
        store = Store(course.records, name, student)
        work = _read_work(course, graded, store, student, shown(person))
        if work is not None:
            graded.works[shown(person)] = work
            if student != person:
                graded.notes.append(f"{shown(student)} is {shown(person)} by now.")
    graded.notes += [
        f"The record of {shown(student)} is left out: {shown(person)} has a newer one."
        for student, person in people.items()
        if chosen[person] != student
    ]
    submitted = {shown(renames.now(name, student)) for student in course.students(name)}
    graded.waiting = submitted - graded.works.keys()
    graded.notes += renames.damaged(name)
    for task, versions in graded.versions.items():
        if len(versions) > 1:
            counts = ", ".join(f"{n} of version {v}" for v, n in sorted(versions.items()))
            graded.notes.append(
                f"{task} has records of several versions of the task: {counts}."
            )
    return graded


def _read_work(course, graded, store, student, person):
    record = store.submission()
    if store.failure() is not None:
        # An earlier grade may be there, but it is not that of the newest submission.
        return Work(FAILED)
    if record is None:
        return None
    week = _week(course, student, graded.name)
    if record["state"] not in (*WHOLE, PART):
        return Work(record["state"], week=week)
    entries = [record["tasks"].get(task.id) for task in graded.assignment.tasks]
    mistakes = []
    for number, (task, entry) in enumerate(zip(graded.assignment.tasks, entries, strict=True)):
        if entry is None or entry["key"] is None:
            continue
        graded.versions[task.id][entry["key"]["exercise_version"]] += 1
        diagnosis = entry["diagnosis"]
        # One of several that cannot be told apart counts for none of them.
        if diagnosis is not None and diagnosis["kind"] in ("mistake", "partial"):
            for about in zip(*(diagnosis[k] for k in ("names", "says", "pages")), strict=True):
                mistakes.append((number, about[0]))
                graded.about[number, about[0]] = about[1:]
        if graded.patterns.wanted:
            lost = bool(entry["failed"])
            judged = store.task(record["submission"], Key(**entry["key"])) if lost else None
            graded.patterns.add(task.id, person, lost, judged)
    if record["state"] == PART:
        return Work(PART, mistakes=tuple(mistakes), week=week)
    return Work(
        record["state"],
        share=record["score"] / record["points"] if record["points"] else None,
        # A share of no points says nothing.
        scores=tuple(
            e and (e["score"] / e["points"] if e["points"] else None) for e in entries
        ),
        points=tuple(e and e["score"] for e in entries),
        mistakes=tuple(mistakes),
        week=week,
    )


def _week(course, student, name):
    """Return the week of the graded submission, from the time that nbgrader keeps with it."""
    graded = course.autograded(student, name)
    folder = graded if graded.is_dir() else course.submission(student, name)
    time = _time(folder / TIMESTAMP)
    return None if time is None else week_of(time)


def _time(path):
    try:
        status = path.lstat()
        # Nothing but a short file of its own: what lies beside it may be a student's.
        if not stat.S_ISREG(status.st_mode) or status.st_size > 1000:
            return None
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    try:
        time = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        from nbgrader.utils import parse_utc

        try:
            time = parse_utc(text or None)
        except (ValueError, OverflowError):
            return None
    if time is None or time.tzinfo is None:
        return time  # without a zone it is in UTC, as nbgrader takes it
    try:
        return time.astimezone(UTC)
    except OverflowError:
        return None


class _Renames:
    """The ids under which students were collected, and those that they have now."""

    def __init__(self, course):
        self._retired, self._keys, self._damaged = {}, {}, set()
        newest = {}
        for name in seqlib.exercises.ASSIGNMENTS:
            folder = course.grading / "collected" / name
            index = self._index(name, folder / INDEX)
            for student, key in index.items():
                self._keys[name, student] = key
                newest[key] = student  # a later assignment has the later id
            for path in folder.glob("*/retired.json"):
                entry = _json(path)
                if isinstance(entry, dict) and isinstance(entry.get("now"), str):
                    self._retired[name, path.parent.name] = entry["now"]
        self._newest = newest

    def now(self, name, student):
        """Return which id a student of an assignment has now."""
        seen = set()
        while (name, student) in self._retired and student not in seen:
            seen.add(student)
            # Whoever has been collected under the old id again is not the one who left it.
            if (name, student) in self._keys:
                break
            student = self._retired[name, student]
        return self._newest.get(self._keys.get((name, student)), student)

    def damaged(self, name):
        """Say that nothing is known about an assignment."""
        if name not in self._damaged:
            return []
        return ["What was collected is listed in a damaged file: new ids are not recognised."]

    def _index(self, name, path):
        if not path.is_file():
            return {}
        try:
            students = _json(path)["students"]
            keys = {student: entry["current"]["key"] for student, entry in students.items()}
            return {s: k for s, k in keys.items() if k.partition(":")[0] in _LASTING}
        except (TypeError, KeyError, AttributeError):
            self._damaged.add(name)
            return {}


def _json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _folders(folder):
    try:
        with os.scandir(folder) as found:
            return sorted(f.name for f in found if f.is_dir() and not f.name.startswith("."))
    except FileNotFoundError:
        return []
