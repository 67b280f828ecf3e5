"""The one writer of nbgrader's gradebook.

Scores get into the gradebook through nbgrader's own preprocessors, and graded notebooks to the
place where nbgrader expects them, so that formgrader, ``nbgrader generate_feedback`` and
``nbgrader export`` work on what ``seqlib grade`` has graded.
"""

import json
import os
import shutil
import stat
import sys
import warnings
from pathlib import Path

import nbformat
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades, SaveCells

from seqlib.grading.marks import remember_marks
from seqlib.grading.records import Store, write_atomically
from seqlib.grading.release import load_config


def register(course, name):
    """Make an assignment known to the gradebook, which is made too if there is none.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Whose gradebook; the address is ``CourseDirectory.db_url`` of its configuration.
    name : str
        The assignment, released.

    Raises
    ------
    ValueError
        If the gradebook has the assignment with other cells, and submissions of it.
    """
    # nbgrader calls `alembic` by its bare name when it makes a gradebook.
    beside = str(Path(sys.executable).parent)
    if beside not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", "")])
    config = load_config(course)
    directory = CourseDirectory(config=config)
    release = course.release(name)
    data = (cell["metadata"].get("nbgrader", {}) for cell in release["cells"])
    released = {d["grade_id"]: d.get("checksum") for d in data if "grade_id" in d}
    with _quiet(), Gradebook(directory.db_url, directory.course_id) as gradebook:
        gradebook.update_or_create_assignment(name)
        try:
            cells = gradebook.find_notebook(name, name).source_cells
        except MissingEntry:
            cells = []
        if {cell.name: cell.checksum for cell in cells} == released:
            return
    try:
        notebook = nbformat.from_dict(release)
        SaveCells(config=config).preprocess(notebook, _resources(directory, name, "."))
    except RuntimeError as error:
        raise ValueError(
            f"gradebook must have the cells of the release of {name}, got other cells with "
            "submissions; release the old cells again, or move the gradebook away to start a "
            "new one from the records"
        ) from error


def open_gradebook(course):
    """Return the gradebook of a course, an ``nbgrader.api.Gradebook``; close it after use."""
    directory = CourseDirectory(config=load_config(course))
    return Gradebook(directory.db_url, directory.course_id)


def _resources(directory, name, student):
    """Return what nbgrader's preprocessors want to know."""
    about = {"student": student, "assignment": name, "notebook": name}
    return {"nbgrader": about | {"db_url": directory.db_url}}


class Writer:
    """Applies records to the gradebook of a course.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Whose gradebook.
    name : str
        The assignment. It is registered where the gradebook does not have it.
    config : traitlets.config.Config, optional
        nbgrader's configuration; that of the course if None.
    """

    def __init__(self, course, name, *, config=None):
        self.course, self.name = course, name
        self.config = load_config(course) if config is None else config
        self.directory = CourseDirectory(config=self.config)
        register(course, name)
        self._preprocessors = [
            make(config=self.config) for make in (SaveAutoGrades, AssignLatePenalties)
        ]
        with _quiet(), open_gradebook(self.course) as gradebook:
            self._applied = _applied(gradebook, name)

    def apply(self, record, *, force=False):
        """Bring the gradebook and the graded notebook in line with a record.

        Parameters
        ----------
        record : dict
            Of a submission, as :meth:`seqlib.grading.grader.Grader.grade` returns it.
        force : bool, default=False
            Whether to write what seems to be there already: penalties for late submissions
            follow a new due date only then.

        Returns
        -------
        bool
            Whether anything had to be written.
        """
        student, digest = record["student"], record["submission"]
        store = Store(self.course.records, self.name, student)
        notebook = nbformat.from_dict(json.loads(store.notebook(digest)))
        timestamp = self.timestamp(student)
        if not force and self._is_applied(student, timestamp, notebook):
            return False
        with _quiet():
            with open_gradebook(self.course) as gradebook:
                gradebook.update_or_create_student(student)
                given = {} if timestamp is None else {"timestamp": timestamp}
                gradebook.update_or_create_submission(self.name, student, **given)
                remember_marks(gradebook, store, self.name, student, digest)
            for preprocessor in self._preprocessors:
                notebook, _ = preprocessor.preprocess(
                    notebook, _resources(self.directory, self.name, student)
                )
        self._write(student, notebook)
        self._applied[student] = (timestamp, _expected_scores(notebook))
        return True

    def timestamp(self, student):
        """Return the time of a submission from its ``timestamp.txt``; None if there is none."""
        path = self.course.submission(student, self.name) / "timestamp.txt"
        try:
            status = path.lstat()
            # It is copied as a whole, and a file with holes can have terabytes.
            if not stat.S_ISREG(status.st_mode) or status.st_size > 1000:
                return None
            with open(path, encoding="utf-8", errors="replace") as file:
                return utils.parse_utc(file.read(100).strip() or None)
        except (OSError, ValueError, OverflowError):
            return None

    def _file(self, student):
        return self.course.autograded(student, self.name) / f"{self.name}.ipynb"

    def _is_applied(self, student, timestamp, notebook):
        if self._applied.get(student) != (timestamp, _expected_scores(notebook)):
            return False
        try:
            written = nbformat.from_dict(json.loads(self._file(student).read_bytes()))
        except (OSError, ValueError):
            return False
        return _rejoined(written) == _rejoined(notebook)

    def _write(self, student, notebook):
        """Write the folder of a graded notebook, with the files that nbgrader puts there."""
        folder = self.course.autograded(student, self.name)
        shutil.rmtree(folder, ignore_errors=True)
        write_atomically(self._file(student), nbformat.v4.writes(notebook))
        released = self.course.release_file(self.name).parent
        ignored = [*self.directory.ignore, "*.ipynb"]
        for path in map(Path, utils.find_all_files(str(released), ignored)):
            target = folder / path.relative_to(released)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        timestamp = self.course.submission(student, self.name) / "timestamp.txt"
        if self.timestamp(student) is not None:
            shutil.copy(timestamp, folder, follow_symlinks=False)
        mode = 0o664 if self.directory.groupshared else 0o444
        for path in folder.rglob("*"):
            if path.is_file():
                path.chmod(mode)


def _expected_scores(notebook):
    """Return the scores that nbgrader reads from a graded notebook, None for a person's."""
    return {
        cell.metadata.nbgrader.grade_id: utils.determine_grade(cell)[0]
        for cell in notebook.cells
        if utils.is_grade(cell)
    }


def _applied(gradebook, name):
    """Return ``{student: (timestamp, {cell: score})}`` as the gradebook has them."""
    return {
        submission.student.id: (
            submission.timestamp,
            {
                g.name: g.auto_score
                for notebook in submission.notebooks
                for g in notebook.grades
            },
        )
        for submission in gradebook.assignment_submissions(name)
    }


def _rejoined(notebook):
    """Return a notebook's cells for comparison: texts in one piece, without checksums."""
    cells = nbformat.v4.rwbase.rejoin_lines(notebook).cells
    return [
        (c.cell_type, c.id, c.source, c.get("outputs"), c.get("execution_count")) for c in cells
    ]


class _quiet(warnings.catch_warnings):
    """Leave out the warnings of SQLAlchemy about how nbgrader uses it."""

    def __enter__(self):
        super().__enter__()
        warnings.filterwarnings("ignore", module=r"nbgrader\.|sqlalchemy\.")
        warnings.filterwarnings("ignore", category=_sa_warning())


def _sa_warning():
    from sqlalchemy.exc import SAWarning

    return SAWarning
