"""Where the parts of a course lie."""

import json
from dataclasses import dataclass
from pathlib import Path

CONFIG = "nbgrader_config.py"


@dataclass(frozen=True)
class Course:
    """The folders of a course.

    Attributes
    ----------
    root : Path
        The folder that holds ``nbgrader_config.py``.
    fleeting : bool
        Whether all of it is removed after a run, as a copy on another machine is: then nothing
        waits until it is on the disk.
    """

    root: Path
    fleeting: bool = False

    @property
    def grading(self):
        """What grading produces; never committed."""
        return self.root / "grading"

    @property
    def records(self):
        """Records of graded submissions."""
        return self.grading / "records"

    def source(self, name):
        """Return the path of the instructor's notebook of an assignment."""
        return self.root / "solutions" / name / f"{name}.ipynb"

    def release_file(self, name):
        """Return the path of the students' notebook of an assignment."""
        return self.root / "assignments" / name / f"{name}.ipynb"

    def submission(self, student, name):
        """Return the folder in which a student's files lie."""
        return self.grading / "submitted" / student / name

    def autograded(self, student, name):
        """Return the folder of the graded notebook, as nbgrader expects it."""
        return self.grading / "autograded" / student / name

    def report(self, name):
        """Return the folder of the class report."""
        return self.grading / "reports" / name

    def release(self, name):
        """Return the students' notebook, each source in one piece.

        Raises
        ------
        ValueError
            If it has not been released, or is no notebook of format 4.
        """
        path = self.release_file(name)
        if not path.is_file():
            raise ValueError(
                f"assignment must be released before it is graded, got {name!r}; "
                f"run `seqlib release {name}`"
            )
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if notebook.get("nbformat") != 4:
            raise ValueError(f"{path.name} must be of notebook format 4")
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        return notebook

    def students(self, name):
        """Return the ids of all students who submitted an assignment, sorted."""
        submitted = self.grading / "submitted"
        if not submitted.is_dir():
            return []
        return sorted(
            folder.name
            for folder in submitted.iterdir()
            if not folder.name.startswith(".") and (folder / name).is_dir()
        )


def find_course(root="."):
    """Return the course in a folder.

    Raises
    ------
    ValueError
        If the folder has no ``nbgrader_config.py``.
    """
    root = Path(root).resolve()
    if not (root / CONFIG).is_file():
        raise ValueError(f"course must be a folder with {CONFIG}, got {root}; change into it")
    return Course(root)
