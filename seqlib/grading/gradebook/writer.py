"""The one writer of nbgrader's gradebook.

Scores get into the gradebook through nbgrader's own preprocessors, and graded notebooks to the
place where nbgrader expects them, so that formgrader, ``nbgrader generate_feedback`` and
``nbgrader export`` work on what ``seqlib grade`` has graded.
"""

import json
import shutil
import stat
import warnings
from pathlib import Path

from seqlib.grading.gradebook.database import alone, problems_of, repeated
from seqlib.grading.gradebook.lean import (
    one_transaction,
    shared,
    version_read_here,
    without_collections,
    without_grammars,
)
from seqlib.grading.gradebook.marks import remember_marks
from seqlib.grading.notebook.reading import to_lines
from seqlib.grading.records import Store, write_atomically
from seqlib.grading.release import load_config

with without_grammars(), without_collections():
    import nbformat
    from nbgrader import api, utils
    from nbgrader.api import Gradebook, MissingEntry
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.preprocessors import SaveCells, latesubmissions, saveautogrades

    from seqlib.grading.gradebook.kept import KeptGradebook


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
        If the gradebook has the assignment with other cells, and submissions of it; or if the
        address is none of a gradebook.
    """
    config = load_config(course)
    directory = CourseDirectory(config=config)
    with problems_of(directory.db_url), alone(directory.db_url):
        repeated(lambda: _register(course, name, config, directory))


def _register(course, name, config, directory):
    release = course.release(name)
    data = (cell["metadata"].get("nbgrader", {}) for cell in release["cells"])
    released = {d["grade_id"]: d.get("checksum") for d in data if "grade_id" in d}
    with _quiet(), _open(directory) as gradebook:
        _know_course(gradebook)
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


def _know_course(gradebook):
    """Enter the course that the assignments refer to, as PostgreSQL demands of a reference.

    nbgrader enters it only where it has a name, and by default it has none.
    """
    if gradebook.engine.dialect.name == "sqlite":
        return
    if gradebook.db.get(api.Course, gradebook.course_id) is None:
        gradebook.db.add(api.Course(id=gradebook.course_id))
        gradebook.db.commit()


def address(course):
    """Return the address of a course's gradebook, ``CourseDirectory.db_url``."""
    return CourseDirectory(config=load_config(course)).db_url


def open_gradebook(course):
    """Return the gradebook of a course, an ``nbgrader.api.Gradebook``; close it after use.

    Raises
    ------
    ValueError
        If the address in the configuration is none of a gradebook that can be opened.
    """
    return _open(CourseDirectory(config=load_config(course)))


def _open(directory, kind=Gradebook):
    with version_read_here(api), problems_of(directory.db_url):
        return repeated(lambda: kind(directory.db_url, directory.course_id))


def _resources(directory, name, student):
    """Return what nbgrader's preprocessors want to know."""
    about = {"student": student, "assignment": name, "notebook": name}
    return {"nbgrader": about | {"db_url": directory.db_url}}


class Writer:
    """Applies records to the gradebook of a course; close it, or use it as a context.

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
        self._save_scores = saveautogrades.SaveAutoGrades(config=self.config)
        self._assign_penalties = latesubmissions.AssignLatePenalties(config=self.config)
        self._assign_penalties.init_plugin()  # says what is wrong before anything is graded
        self._gradebook = _open(self.directory, KeptGradebook)
        with _quiet(), one_transaction(self._gradebook):
            self._applied = _applied(self._gradebook, name)

    def close(self):
        """Close the gradebook."""
        self._gradebook.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

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
        notebook = repeated(lambda: self._save(student, digest, timestamp, notebook))
        self._write(student, notebook)
        self._applied[student] = (timestamp, _expected_scores(notebook))
        return True

    def _save(self, student, digest, timestamp, notebook):
        """Write a graded notebook to the gradebook, and return it as nbgrader leaves it."""
        gradebook = self._gradebook
        store = Store(self.course.records, self.name, student)
        with (
            _quiet(),
            one_transaction(gradebook),
            shared(gradebook, saveautogrades, latesubmissions),
        ):
            gradebook.update_or_create_student(student)
            # Without a time too: one that is there was that of an older submission.
            submission = gradebook.update_or_create_submission(
                self.name, student, timestamp=timestamp
            )
            with gradebook.at(submission):
                remember_marks(gradebook, store, self.name, student, digest)
                about = _resources(self.directory, self.name, student)
                with gradebook.committing_once():
                    notebook, about = self._save_scores.preprocess(notebook, about)
                # The penalty may depend on the score, so that is in the database by now.
                return self._assign_penalties.preprocess(notebook, about)[0]

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
        notebook = nbformat.v4.rwbase.strip_transient(notebook)
        write_atomically(self._file(student), to_lines(notebook))
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
