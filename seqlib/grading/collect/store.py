"""Where collected submissions lie, and what is known about each.

``grading/submitted/STUDENT/ASSIGNMENT`` has the newest submission, as nbgrader expects it: its
notebooks, and ``timestamp.txt`` if it is known when it was made.
``grading/collected/ASSIGNMENT/index.json`` says for each student where that came from, and
``grading/collected/ASSIGNMENT/STUDENT/DIGEST`` keeps every other submission that was seen or
replaced. Nothing is ever deleted there, and ``grading/records`` is left alone.
"""

import functools
import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seqlib.grading.collect.archives import junk
from seqlib.grading.records import write_atomically

try:
    import fcntl
except ModuleNotFoundError:  # Windows has no such locks
    fcntl = None

FORMAT = 1
INDEX = "index.json"
TIMESTAMP = "timestamp.txt"
MOST_WAITING = 50_000_000  # bytes that are written together, and held until then
_FORM = "%Y-%m-%d %H:%M:%S UTC"
_WIDEST = timedelta(hours=14)  # between UTC and any zone


@dataclass(frozen=True)
class Work:
    """A submission, read and ready to be put in its place.

    Attributes
    ----------
    key : str
        ``platform:user``, what the platform calls the student.
    files : dict
        ``{name: content}``.
    time : datetime or None
        When it was made, in UTC.
    said : str
        The same as the platform writes it.
    assumed : bool
        Whether that names no zone, and UTC was taken.
    order : int
        Grows with the time on the same platform; 0 if unknown.
    late : bool
        Whether the platform marks it as late.
    where : str
        Its first file, with the name of the export.
    """

    key: str
    files: dict = field(repr=False)
    time: datetime | None
    said: str
    assumed: bool
    order: int
    late: bool
    where: str

    @functools.cached_property
    def digest(self):
        """SHA-256 of names and contents in hexadecimal."""
        return _digest(self.files)

    def about(self):
        """Return what the index keeps of it."""
        return {
            "key": self.key,
            "digest": self.digest,
            "time": self.time.strftime(_FORM) if self.time else None,
            "said": self.said,
            "assumed": self.assumed,
            "order": self.order,
            "late": self.late,
            "where": self.where,
            "files": sorted(self.files),
        }


class Shelf:
    """The submissions of one assignment, collected so far; use it as a context.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Whose.
    name : str
        The assignment.

    Raises
    ------
    ValueError
        If another run is at work, or its list of earlier runs is damaged.
    """

    def __init__(self, course, name):
        self.course, self.name = course, name
        self.folder = course.grading / "collected" / name
        self._waiting, self._bytes, self._changed = [], 0, False

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder / ".lock", self.name)
        try:
            self.students = _read_index(self.folder / INDEX)
        except BaseException:
            os.close(self._lock)
            raise
        # What a run left that was killed; this one is alone.
        for pattern in (f"submitted/*/.{self.name}.*.tmp", f"collected/{self.name}/*/.*.tmp"):
            for left in self.course.grading.glob(pattern):
                shutil.rmtree(left, ignore_errors=True)
        self._of_key = {e["current"]["key"]: s for s, e in self.students.items()}
        return self

    def __exit__(self, *exc):
        # What was decided is put in its place even if the run ends early.
        try:
            self.flush()
        finally:
            os.close(self._lock)

    def student_of(self, key):
        """Return under which id a user of a platform was collected before, or None."""
        return self._of_key.get(key)

    def key_of(self, student):
        """Return which user of a platform was collected under an id before, or None."""
        entry = self.students.get(student)
        return entry and entry["current"]["key"]

    def place(self, student, works):
        """Bring a student's folder up to date, at the latest with the next :meth:`flush`.

        Parameters
        ----------
        student : str
            Id.
        works : sequence of Work
            The submissions that were found, one or more, in the order in which they count as
            made if neither times nor the platform's numbers tell.

        Returns
        -------
        state : str
            ``"collected"``, ``"replaced"``, ``"retimed"`` (the same work, of which a time or a
            later time has become known), ``"unchanged"``, or ``"older"``: what lies there is
            newer.
        work : Work
            The newest of those found.
        notes : list of str
            What somebody should know.
        """
        works = _sorted(works)
        work, notes = works[-1], []
        entry = self.students.get(student)
        target = self.course.submission(student, self.name)
        there = _digest(_files_of(target)) if target.is_dir() else None
        current = entry["current"] if entry else None
        by_hand = there is not None and there not in (
            work.digest,
            (current or {}).get("digest"),
        )
        if current is None:
            state = "collected" if there is None else "replaced"
            if there == work.digest:
                state = "retimed" if work.time else "unchanged"
            if by_hand:
                notes.append("something else lay in its folder and was kept aside")
        elif work.digest == current["digest"]:
            better = _has_better_time(work, current)
            state = "collected" if there is None else "retimed" if better else "unchanged"
            if by_hand:
                state = "unchanged"
                notes.append("its folder was changed by hand and is left as it is")
        else:
            relation = _compared(work, current)
            if relation == "unknown":
                # The order of runs decides once, and a submission seen before is not newer.
                seen = {old["digest"] for old in entry["history"]}
                relation = "earlier" if work.digest in seen else "later"
                if relation == "later":
                    notes.append("no time tells which is newer: the one of this run was taken")
            state = "replaced" if relation == "later" else "older"
            if state == "older" and there is None:
                notes.append(
                    "its folder is gone, and this is older than what lay there; collect the "
                    "newer export again"
                )
            if by_hand and state == "replaced":
                notes.append("its folder was changed by hand; that was kept aside")
        if state in ("collected", "replaced", "retimed") or current is None:
            history = entry["history"] if entry else []
            if current and current not in history:
                history = [*history, current]
            entry = self.students[student] = {"current": work.about(), "history": history}
            self._of_key[work.key] = student
            self._changed = True
            self._waiting.append((student, work, there, state))
            self._bytes += sum(map(len, work.files.values()))
        for old in works if state == "older" else works[:-1]:
            self._keep(student, old, entry)
        if self._bytes > MOST_WAITING:
            self.flush()
        return state, work, notes

    def retire(self, student, successor):
        """Move a student's folder to the kept ones: the student has another id by now."""
        if any(waiting[0] == student for waiting in self._waiting):
            self.flush()
        target = self.course.submission(student, self.name)
        if target.is_dir():
            self._set_aside(student, target, _digest(_files_of(target)))
        entry = self.students.pop(student) | {"now": successor}
        del self._of_key[entry["current"]["key"]]
        write_atomically(self.folder / student / "retired.json", f"{json.dumps(entry)}\n")
        self._changed = True

    def flush(self):
        """Put what waits in its place, and then write the index."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        fresh = []
        for student, work, there, state in waiting:
            target = self.course.submission(student, self.name)
            fresh.append((student, work, there, state, target, _temporary(target)))
        try:
            _write_folders((temporary, work) for _, work, *_, temporary in fresh)
            for student, work, there, state, target, temporary in fresh:
                if there == work.digest and state != "collected":
                    # The files are there; only what is known about them has changed.
                    if work.time:
                        os.replace(temporary / TIMESTAMP, target / TIMESTAMP)
                    continue
                if target.is_dir():
                    self._set_aside(student, target, there)
                os.rename(temporary, target)
        finally:
            for *_, temporary in fresh:
                shutil.rmtree(temporary, ignore_errors=True)
        if self._changed:
            write_atomically(self.folder / INDEX, _to_index(self.students))
            self._changed = False

    def _keep(self, student, work, entry):
        """Keep a submission that is not the newest, unless it has been seen."""
        about = work.about()
        known = [entry["current"], *entry["history"]]
        if any((o["digest"], o["time"]) == (about["digest"], about["time"]) for o in known):
            return
        folder = self.folder / student / work.digest[:16]
        if not folder.exists():
            temporary = _temporary(folder)
            try:
                _write_folders([(temporary, work)])
                os.rename(temporary, folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        entry["history"].append(about)
        self._changed = True

    def _set_aside(self, student, target, digest):
        folder = self.folder / student / digest[:16]
        number = 1
        while folder.exists():  # the same work at another time, or with files put by hand
            number += 1
            folder = folder.with_name(f"{digest[:16]}-{number}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.rename(target, folder)


def _read_index(path):
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not _is_index(found):
        raise ValueError(
            f"list of earlier runs must be of format {FORMAT} and sound, got a damaged file "
            f"{path}; restore it from a backup, or move it away: then what lies in "
            "grading/submitted counts as put there by hand"
        )
    return found["students"]


def _is_index(found):
    """Return whether something read is a list of earlier runs, of this format."""
    students = found.get("students") if isinstance(found, dict) else None
    return (
        isinstance(students, dict)
        and found.get("format") == FORMAT
        and all(
            isinstance(entry, dict)
            and isinstance(entry.get("history"), list)
            and all(_is_about(about) for about in [entry.get("current"), *entry["history"]])
            for entry in students.values()
        )
    )


def _is_about(about):
    fields = {"key", "digest", "time", "said", "assumed", "order", "late"}
    return isinstance(about, dict) and fields <= about.keys()


def _locked(path, name):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise ValueError(
                f"submissions of {name} must be collected by one run at a time, got another "
                "one at work"
            ) from error
    return descriptor


def _sorted(works):
    # A time from the roster is that of all works of a student; then the numbers tell.
    if all(work.time for work in works):
        return sorted(works, key=lambda work: (work.time, work.order))
    return sorted(works, key=lambda work: work.order)


def _compared(work, current):
    """Return whether a submission is ``"later"`` than the current one, or ``"earlier"``."""
    if work.time and current["time"]:
        apart = work.time - _time(current)
        # Two times of which one may be off by its zone tell nothing while they are close.
        unsure = _WIDEST if work.assumed != current["assumed"] else timedelta(0)
        if abs(apart) > unsure:
            return "later" if apart > timedelta(0) else "earlier"
    same = work.key.partition(":")[0] == current["key"].partition(":")[0]
    if same and work.order and current["order"] and work.order != current["order"]:
        return "later" if work.order > current["order"] else "earlier"
    return "unknown"


def _has_better_time(work, current):
    """Return whether the time of the same work is to replace the one that is known."""
    if work.time is None or (work.assumed and current["time"] and not current["assumed"]):
        return False
    if current["time"] is None or current["assumed"] > work.assumed:
        return True
    if work.said == current["said"]:
        return work.time != _time(current)  # the same words, by now read in the right zone
    return _compared(work, current) == "later"


def _time(about):
    return datetime.strptime(about["time"], _FORM).replace(tzinfo=UTC)


def _digest(files):
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        for part in (name.encode("utf-8", "surrogateescape"), content):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _files_of(folder):
    """Return the files of a submission's folder, without its time and what programs left."""
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if parts != (TIMESTAMP,) and not junk(parts) and path.is_file():
            found["/".join(parts)] = path.read_bytes()
    return found


def _temporary(folder):
    return Path(folder).with_name(f".{folder.name}.{os.getpid()}.tmp")


def _write_folders(folders):
    """Write folders of submissions, and wait for the disk once."""
    paths = []
    for folder, work in folders:
        folder.mkdir(parents=True)
        files = dict(work.files)
        if work.time:
            files[TIMESTAMP] = f"{work.time.strftime(_FORM)}\n".encode()
        for name, content in files.items():
            (folder / name).write_bytes(content)
            paths.append(folder / name)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(_sync, paths))


def _sync(path):
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _to_index(students):
    """Return the index, a line for each student: with an indent, json is four times slower."""
    lines = (f"{json.dumps(s)}: {json.dumps(e)}" for s, e in sorted(students.items()))
    return f'{{"format": {FORMAT}, "students": {{\n' + ",\n".join(lines) + "\n}}\n"
