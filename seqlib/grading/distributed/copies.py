"""Grading of a copy: what a worker on another machine gets, does and gives back.

The machines share no folder. A worker gets the release and the course's secret once, and with
each job the files of one submission and the records that there are of it. It grades this copy
as :class:`seqlib.grading.grader.Grader` grades a course, and gives the new records back, which
are therefore those of a worker on the instructor's machine. Students' files travel as bytes and
are read where the notebook is graded, nowhere before.
"""

import contextlib
import functools
import hashlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import seqlib
from seqlib.grading.course import Course
from seqlib.grading.notebook.intake import find_files, list_files, read_file
from seqlib.grading.records import NOTEBOOK, SUBMISSION, Store, write_atomically, write_together
from seqlib.grading.summary import libraries

MAX_JOB_BYTES = 64 * 2**20
_NAME = re.compile(rf"{re.escape(SUBMISSION)}|[0-9a-f]{{16}}/[\w-][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Material:
    """What a worker needs of a course, the same for all of its jobs.

    Attributes
    ----------
    assignment : str
        Name of the assignment.
    release, secret : bytes
        The files of the students' notebook and of the course's secret.
    make_grader : callable
        ``make_grader(course)`` returns the grader of a copy of the course.
    fingerprint : dict
        Of the instructor's machine.
    """

    assignment: str
    release: bytes
    secret: bytes
    make_grader: object
    fingerprint: dict


@dataclass(frozen=True)
class Job:
    """One submission to be graded.

    Attributes
    ----------
    student : str
        Whose.
    force : bool
        Whether to grade anew what has been graded under the same conditions.
    files : tuple of (str, bytes)
        What may be the notebook, by the name in the folder of the submission.
    locked : str
        What is wrong with a folder that may not be read; empty if nothing is.
    kept : tuple of (str, bytes)
        The records that there are, by the name in their folder. A graded notebook is there
        without its content.
    """

    student: str
    force: bool
    files: tuple
    locked: str
    kept: tuple

    @property
    def size(self):
        """Number of bytes."""
        return sum(len(data) for _, data in (*self.files, *self.kept))


@dataclass(frozen=True)
class Graded:
    """What a job gives.

    Attributes
    ----------
    record : dict
        Of the submission, as :meth:`seqlib.grading.grader.Grader.grade` returns it.
    files : dict
        ``{name: text}`` of the records that are new.
    """

    record: dict
    files: dict


def material(course, name, make_grader):
    """Return the :class:`Material` of an assignment of a course, which must have a secret."""
    return Material(
        name,
        course.release_file(name).read_bytes(),
        (course.grading / "secret").read_bytes(),
        make_grader,
        fingerprint(),
    )


def pack(course, name, student, force):
    """Return the :class:`Job` of one submission.

    Raises
    ------
    ValueError
        If its files are too large to be sent.
    OSError
        If they cannot be read.
    """
    folder = course.submission(student, name)
    listing = list_files(folder, f"{name}.ipynb")
    chosen = listing.notebooks or [*listing.archives, *listing.texts]
    size = sum(path.lstat().st_size for _, path in chosen)
    if size > MAX_JOB_BYTES:
        raise ValueError(
            f"submission must have at most {MAX_JOB_BYTES / 2**20:g} MiB of notebooks to be "
            f"sent to another machine, got {size / 2**20:.0f}; grade it here: "
            f"seqlib grade {name} --only {student}"
        )
    files = [(path.relative_to(folder).as_posix(), read_file(path)) for _, path in chosen]
    files += [(other, b"") for other in listing.others]
    locked = str(listing.locked[0]) if listing.locked else ""
    return Job(student, force, tuple(files), locked, tuple(_kept(course, name, student)))


def _kept(course, name, student):
    """Yield the records of the submission that was graded last."""
    store = Store(course.records, name, student)
    record = store.submission()
    if record is None:
        return
    yield SUBMISSION, (store.folder / SUBMISSION).read_bytes()
    folder = store.of(record["submission"])
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix in (".json", ".ipynb") and not path.name.startswith("."):
            data = b"" if path.name == NOTEBOOK else path.read_bytes()
            yield f"{folder.name}/{path.name}", data


@contextlib.contextmanager
def copy_grader(material, folder):
    """Give a process a copy of a course, and yield its function of one :class:`Job`.

    Parameters
    ----------
    material : Material
        What the copy is made of.
    folder : str
        Where the copy is put; it is removed at the end.

    Raises
    ------
    RuntimeError
        If the process has another seqlib or other libraries than the instructor's machine.
    """
    found = difference(material.fingerprint, fingerprint())
    if found:
        raise RuntimeError(f"it has {found}")
    with tempfile.TemporaryDirectory(dir=folder) as root:
        course = Course(Path(root), fleeting=True)
        secret = course.grading / "secret"
        _write(course.release_file(material.assignment), material.release)
        _write(secret, material.secret)
        secret.chmod(0o600)
        with material.make_grader(course) as grader:
            yield functools.partial(_grade_copy, grader, course, material.assignment)


def _grade_copy(grader, course, name, job):
    """Return what grading a job gives."""
    store = Store(course.records, name, job.student)
    folder = course.submission(job.student, name)
    try:
        folder.mkdir(parents=True)
        for file, data in job.files:
            _write(folder / file, data)
        for file, data in job.kept:
            _write(store.folder / file, data)
        # Here as on the instructor's machine: what cannot be read is no empty submission.
        if job.locked and not find_files(folder, f"{name}.ipynb")[0]:
            raise PermissionError(job.locked)
        record = grader.grade(job.student, force=job.force)
        return Graded(record, dict(_new_records(store.folder, dict(job.kept))))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(store.folder, ignore_errors=True)


def _new_records(folder, kept):
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (data := path.read_bytes()) != kept.get(name):
            yield name, data.decode("utf-8")


def unpack(course, name, student, graded):
    """Write what a student's job gave among the records of the course, and return its record.

    Raises
    ------
    ValueError
        If it is of another job, or names other files than records have.
    """
    record = graded.record
    if (record["student"], record["assignment"]) != (student, name):
        raise ValueError(
            f"result must be of {student} in {name}, got one of {record['student']} in "
            f"{record['assignment']}"
        )
    store = Store(course.records, name, student)
    for file in graded.files:
        if not _NAME.fullmatch(file):
            raise ValueError(f"result must have the names of records, got {file!r}")
    files = {store.folder / file: text for file, text in graded.files.items()}
    # As a store does it: the record of the submission is there when all others are.
    last = files.pop(store.folder / SUBMISSION, None)
    if files:
        write_together(files)
    if last is not None:
        write_atomically(store.folder / SUBMISSION, last)
    return record


def fingerprint():
    """Return what must be the same on all machines for their scores to be the same.

    Returns
    -------
    dict
        Versions of seqlib and the libraries, Python's without its last number, and a digest of
        the source of seqlib.
    """
    found = {"seqlib": seqlib.__version__, **libraries(), "source": _source_digest()}
    found.pop("seqlib-course")
    found["python"] = ".".join(found["python"].split(".")[:2])
    return found


def _source_digest():
    root = Path(seqlib.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).parts):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:12]


def difference(here, there):
    """Say how the fingerprint of another machine differs; empty if it does not."""
    return ", ".join(
        f"{name} {there.get(name)} in place of {value}"
        for name, value in here.items()
        if there.get(name) != value
    )


def _write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
