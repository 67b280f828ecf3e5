"""Records: what is kept of each graded submission.

``records/<assignment>/<student>/submission.json`` says how the newest submission ended and is
written last, so a run that was killed before has not graded it.
Beside it, a folder per submission (named by the digest of its file) holds the graded notebook
and one record per task, exercise version, judge version and isolation level.
"""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FORMAT = 1
SUBMISSION = "submission.json"
NOTEBOOK = "notebook.ipynb"
FAILURE = "failure.json"


@dataclass(frozen=True)
class Key:
    """What a task's record depends on, besides the student and the submission."""

    task: str
    exercise_version: int
    judge_version: int
    level: str

    @property
    def file(self):
        """Name of the record's file."""
        function = self.task.rpartition(".")[2]
        name = f"{function}.v{self.exercise_version}-j{self.judge_version}-{self.level}.json"
        return re.sub(r"[^\w.-]", "_", name)


class Store:
    """The records of one student in one assignment.

    Parameters
    ----------
    records : path
        ``grading/records`` of the course.
    assignment, student : str
        Whose.
    sync : bool
        Whether what is written is on the disk before a call returns.
    """

    def __init__(self, records, assignment, student, *, sync=True):
        self.folder, self._sync = Path(records) / assignment / student, sync

    def submission(self):
        """Return the record of the newest graded submission, or None."""
        return _read(self.folder / SUBMISSION)

    def task(self, digest, key):
        """Return the record of one task, or None if it has not been judged under this key."""
        record = _read(self.of(digest) / key.file)
        expected = vars(key) | {"submission": digest}
        if record is None or any(record.get(k) != v for k, v in expected.items()):
            return None
        return record

    def of(self, digest):
        """Return the folder of one submission."""
        return self.folder / digest[:16]

    def save_task(self, digest, key, record):
        """Write the record of one task."""
        write_together(self._task_files(digest, {key: record}), sync=self._sync)

    def save_submission(self, digest, notebook, record, tasks=None):
        """Write the graded notebook and then, as the last thing, the submission's record.

        Parameters
        ----------
        digest : str
            Of the submission.
        notebook : str
            What has been graded.
        record : dict
            Of the submission.
        tasks : dict, optional
            ``{key: record}`` of tasks, which are written beside the notebook.
        """
        files = self._task_files(digest, tasks or {})
        write_together(files | {self.of(digest) / NOTEBOOK: notebook}, sync=self._sync)
        whole = record | {"submission": digest, "format": FORMAT}
        write_together({self.folder / SUBMISSION: _to_json(whole)}, sync=self._sync)

    def _task_files(self, digest, tasks):
        common = {"submission": digest, "format": FORMAT}
        return {
            self.of(digest) / key.file: _to_json(record | vars(key) | common)
            for key, record in tasks.items()
        }

    def save_failure(self, message):
        """Note that the submission could not be graded for reasons that are not its own."""
        record = {"message": message, "format": FORMAT}
        write_atomically(self.folder / FAILURE, _to_json(record))

    def clear_failure(self):
        """Forget such a note, since the submission has been graded."""
        (self.folder / FAILURE).unlink(missing_ok=True)

    def failure(self):
        """Return why the submission could not be graded the last time; None if it was."""
        record = _read(self.folder / FAILURE)
        return None if record is None else record["message"]

    def notebook(self, digest):
        """Return the text of the graded notebook, or None."""
        try:
            return (self.of(digest) / NOTEBOOK).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None


def failures(records, assignment):
    """Return ``{student: message}`` of submissions that could not be graded the last time."""
    folder = Path(records) / assignment
    found = {s: Store(records, assignment, s).failure() for s in _students(folder)}
    return {student: message for student, message in found.items() if message is not None}


def all_submissions(records, assignment):
    """Return ``{student: submission record}`` of an assignment, in the order of the ids."""
    folder = Path(records) / assignment
    found = {s: Store(records, assignment, s).submission() for s in _students(folder)}
    return {student: record for student, record in found.items() if record is not None}


def _students(folder):
    """Return the names of the folders in a folder; desktops leave files of their own there."""
    return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []


def recorded(course, name, student, task_id):
    """Return the records of a student's newest graded submission, and of one task in it.

    Raises
    ------
    ValueError
        If there is none.
    """
    store = Store(course.records, name, student)
    submission = store.submission()
    if submission is None:
        raise ValueError(f"student must have a graded submission of {name}, got {student!r}")
    entry = submission["tasks"].get(task_id)
    if entry is None:
        known = ", ".join(submission["tasks"])
        raise ValueError(f"task must be one of {known}, got {task_id!r}")
    if entry["key"] is None:
        raise ValueError(f"submission must have been read, got: {submission['unreadable']}")
    record = store.task(submission["submission"], Key(**entry["key"]))
    if record is None:
        raise ValueError(f"record of {task_id} must be sound, got none; grade with --force")
    return submission, record


def write_atomically(path, text):
    """Write a file so that it has its old content or the whole new one at any moment.

    Parameters
    ----------
    path : Path
        Its folder is made if need be.
    text : str
        Content, written in UTF-8.
    """
    write_together({path: text})


def write_together(files, *, sync=True):
    """Write several files, each as :func:`write_atomically`, and wait for the disk once.

    Parameters
    ----------
    files : dict
        ``{path: text}``.
    sync : bool
        Whether to wait for the disk, without which a loss of power can leave half a file.
    """
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in files}
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary[path], "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        if sync:
            _sync(temporary.values())
        for path in files:
            os.replace(temporary[path], path)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)
    # Windows cannot open folders and needs no such step.
    if sync and os.name == "posix":
        _sync({path.parent for path in files})


def _sync(paths):
    """Wait until files or folders are on the disk, which waits for all of them at a time."""
    paths = list(paths)
    if len(paths) > 1:
        with ThreadPoolExecutor(len(paths)) as pool:
            list(pool.map(_sync_one, paths))
    elif paths:
        _sync_one(paths[0])


def _sync_one(path):
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _to_json(record):
    # In ASCII, since the name of a student's folder need not be text.
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def _read(path):
    """Return the record in a file; None if there is none or it is of another format."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None
