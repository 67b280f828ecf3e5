"""Courses for the comparison of graders: ours, and the same submissions for plain nbgrader."""

import shutil
import sys
from pathlib import Path

from seqlib.grading.course import Course
from seqlib.grading.samples.damage import cell_of, to_bytes
from seqlib.grading.samples.sample_class import SampleClass

ROOT = Path(__file__).resolve().parents[1]
SECRET = "11" * 32  # the inputs follow from it: the same in every run
_UNDAMAGED = ("the solution", "right", "mistakes", "half done", "zeros", "constant", "first")
# Everything that nbgrader does by itself, in the folders of the course.
_PLAIN = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "assignments"
for step in ("submitted", "autograded", "feedback", "solution", "source_with_tests"):
    setattr(c.CourseDirectory, f"{{step}}_directory", f"grading/{{step}}")
c.CourseDirectory.db_url = "sqlite:///{root}/grading/gradebook.db"
c.ExecutePreprocessor.timeout = 600
c.ExecutePreprocessor.iopub_timeout = 60
"""


def sampled(root, name, n):
    """Lay out an assignment of the course with n right, wrong and unfinished submissions.

    Returns
    -------
    name : str
        The assignment.
    environment : dict
        What the environment of a grader must have besides.
    """
    course = _lay_out(root)
    for part in ("solutions", "assignments"):
        shutil.copytree(ROOT / part / name, root / part / name)
    found = SampleClass(Course(ROOT), name).samples()
    files = [s.files for s in found if s.harmless and s.name.startswith(_UNDAMAGED)]
    _submit(course, name, n, files)
    return name, {}


def attention(root, n):
    """Lay out the NumPy assignment."""
    return sampled(root, "attention", n)


def with_torch(root, n):
    """Lay out a small PyTorch assignment that is none of the course."""
    sys.path.insert(0, str(ROOT / "tests" / "redteam"))
    import tinytorch

    course = _lay_out(root)
    for path in (course.release_file(tinytorch.NAME), course.source(tinytorch.NAME)):
        path.parent.mkdir(parents=True)
        path.write_bytes(to_bytes(tinytorch.release()))
    softmax, affine = tinytorch.RIGHT["softmax"], tinytorch.RIGHT["Affine"]
    wrong = (
        {},
        {"softmax": softmax.replace("(x - x.max(dim=-1, keepdim=True).values)", "(x)")},
        {"softmax": softmax.replace("dim=-1", "dim=0")},
        {"softmax": "def softmax(x):\n    return torch.softmax(x, -1)"},
        {"Affine": affine.replace(" + self.bias", "")},
        {"Affine": affine.replace(".T", "")},
        {"softmax": "def softmax(x):\n    raise NotImplementedError()"},
    )
    _submit(course, tinytorch.NAME, n, [_files(tinytorch, cells) for cells in wrong])
    return tinytorch.NAME, {"PYTHONPATH": _library_with(tinytorch, root / "library")}


def plain(ours, theirs, name, size):
    """Lay out the first submissions of a course for nbgrader without plug-ins."""
    theirs.mkdir()
    for part in ("solutions", "assignments"):
        shutil.copytree(ours / part, theirs / part)
    for folder in sorted((ours / "grading" / "submitted").iterdir())[:size]:
        shutil.copytree(folder, theirs / "grading" / "submitted" / folder.name)
    (theirs / "nbgrader_config.py").write_text(_PLAIN.format(root=str(theirs)))


def _lay_out(root):
    root.mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    (root / "grading").mkdir()
    secret = root / "grading" / "secret"
    secret.write_text(SECRET + "\n", encoding="ascii")
    secret.chmod(0o600)
    return Course(root)


def _submit(course, name, n, submissions):
    """Write n submissions, those given in turn."""
    for number in range(n):
        folder = course.submission(f"s{number:03}", name)
        folder.mkdir(parents=True)
        for file, data in submissions[number % len(submissions)].items():
            (folder / file).write_bytes(data)


def _files(assignment, cells):
    notebook = assignment.release()
    for key, source in (assignment.RIGHT | cells).items():
        cell_of(notebook, key)["source"] = source
    return {f"{assignment.NAME}.ipynb": to_bytes(notebook)}


def _library_with(assignment, folder):
    """Write a copy of the library that has one assignment more, and return its search path."""
    shutil.copytree(
        ROOT / "seqlib", folder / "seqlib", ignore=shutil.ignore_patterns("__pycache__")
    )
    exercises = folder / "seqlib" / "exercises"
    shutil.copy(assignment.__file__, exercises)
    with open(exercises / "__init__.py", "a", encoding="utf-8") as file:
        file.write(f"\nASSIGNMENTS = (*ASSIGNMENTS, {assignment.NAME!r})\n")
    return str(folder)
