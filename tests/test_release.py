"""Release of assignments: what nbgrader makes, what is committed, and what must not leak."""

import json
import re
from pathlib import Path

import pytest
import tiny_course

import seqlib.exercises
from seqlib.grading.course import Course
from seqlib.grading.notebook.calls import check_call
from seqlib.grading.release import faults, release

ROOT = Path(__file__).resolve().parents[1]
ASSIGNMENTS = seqlib.exercises.ASSIGNMENTS


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def shape(notebook):
    return [(c["id"], c["cell_type"], "".join(c["source"])) for c in notebook["cells"]]


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder): path.read_bytes() for path in files}
    return {name: data for name, data in names.items() if name.parts[0] != ".ipynb_checkpoints"}


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    return tiny_course.make_course(tmp_path, release=False)


def test_the_release_has_stubs_for_solutions_and_checksums(course):
    path = release(course, "tiny")
    assert path == course.release_file("tiny")
    notebook = load(path)
    assert shape(notebook) == shape(tiny_course.released())
    graded = [c["metadata"]["nbgrader"] for c in notebook["cells"][1:]]
    assert all(len(data["checksum"]) == 32 for data in graded)
    assert faults(notebook, tiny_course.ASSIGNMENT) == []
    assert "return 2 * x" not in path.read_text()


def test_releasing_twice_gives_the_same_bytes_and_touches_no_gradebook(course):
    first = release(course, "tiny").read_bytes()
    assert release(course, "tiny").read_bytes() == first
    assert not (course.grading / "gradebook.db").exists()


@pytest.mark.parametrize("name", ["twin.md", "twin.py", "solution.html", "old.bak"])
def test_a_text_twin_of_the_solution_is_not_released(course, name):
    (course.source("tiny").parent / name).write_text("return 2 * x")
    (course.source("tiny").parent / "table.csv").write_text("1,2")
    folder = release(course, "tiny").parent
    assert sorted(path.name for path in folder.iterdir()) == ["table.csv", "tiny.ipynb"]


def test_a_source_with_faults_is_refused_and_the_old_release_stays(course):
    before = release(course, "tiny").read_bytes()
    notebook = tiny_course.source()
    tiny_course.cell_of(notebook, "test-add")["source"] = 'check("tiny.add", add)\n3.0'
    tiny_course.cell_of(notebook, "why")["metadata"]["nbgrader"]["points"] = 10
    tiny_course.write(course.source("tiny"), notebook)
    with pytest.raises(ValueError, match="source of tiny must be sound") as error:
        release(course, "tiny")
    assert "'test-add' must be one line" in str(error.value)
    assert "'why' must be a written question" in str(error.value)
    assert course.release_file("tiny").read_bytes() == before


def test_a_source_that_nbgrader_refuses_leaves_the_old_release(course):
    before = release(course, "tiny").read_bytes()
    notebook = tiny_course.source()
    cell = tiny_course.cell_of(notebook, "add")
    cell["source"] = cell["source"].replace("    ### END SOLUTION", "")
    tiny_course.write(course.source("tiny"), notebook)
    with pytest.raises(ValueError, match="nbgrader must accept the source of tiny"):
        release(course, "tiny")
    assert course.release_file("tiny").read_bytes() == before


@pytest.mark.parametrize(
    ("key", "change", "fault"),
    [
        ("setup", {"outputs": [{"output_type": "stream"}]}, "cell 'setup' must have no output"),
        ("setup", {"execution_count": 3}, "cell 'setup' must have no output"),
        ("add", {"id": "other"}, "cell 7 must have its grade_id 'add' as id, got 'other'"),
        ("add", {"id": "setup"}, "cell 7 must have an id of its own, got 'setup'"),
        (
            "test-add",
            {"source": 'check("tiny.add", double)'},
            "cell 'test-add' must be one line, check of a task not yet checked",
        ),
        (
            "test-add",
            {"source": 'check("tiny.double", double)'},
            "cell 'test-add' must be one line, check of a task not yet checked",
        ),
        (
            "test-add",
            {"metadata": {"nbgrader": {"grade": True, "grade_id": "test-add", "points": 39}}},
            "cell 'test-add' must have 40 points as its task, got 39",
        ),
        ("test-add", {"metadata": {}}, "'tiny.add' of the record must have a cell"),
        ("why", {"metadata": {}}, "'why' of the record must have a cell"),
    ],
)
def test_each_fault_of_a_cell_is_found(key, change, fault):
    notebook = tiny_course.source()
    cell = tiny_course.cell_of(notebook, key)
    cell |= change
    assert fault in faults(notebook, tiny_course.ASSIGNMENT)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"nbformat_minor": 4}, "the format must be 4.5"),
        (
            {"metadata": {"language_info": {"name": "python"}}},
            "metadata.kernelspec.name must be 'python3'",
        ),
        (
            {"metadata": {"kernelspec": {"name": "python3"}}},
            "metadata.language_info.name must be 'python'",
        ),
    ],
)
def test_each_fault_of_a_file_is_found(change, fault):
    assert faults(tiny_course.source() | change, tiny_course.ASSIGNMENT) == [fault]


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ('check("tiny.add", add)', ("tiny.add", "add")),
        ("check('tiny.add', add)\n", ("tiny.add", "add")),
        ('check("tiny.add", add); 40.0', None),
        ('check("tiny.add", add)\n40.0', None),
        ('check("tiny.add", add, points=40)', None),
        ('check("tiny.add", lambda x: x)', None),
        ('check("tiny.add", *add)', None),
        ("check(task, add)", None),
        ('check(f"tiny.add", add)', None),
        ('x.check("tiny.add", add)', None),
        ('check("tiny.add", add', None),
        ("", None),
    ],
)
def test_only_one_form_of_a_test_cell_counts(source, call):
    assert check_call(source) == call


# The course's own assignments


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_what_is_committed_is_what_the_source_gives(name, tmp_path):
    made = release(Course(ROOT), name, out=tmp_path).parent
    assert contents(made) == contents(ROOT / "assignments" / name), (
        f"run `seqlib release {name}` and commit the result"
    )


@pytest.mark.parametrize("folder", ["solutions", "assignments"])
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_notebooks_of_the_course_are_sound(folder, name):
    notebook = load(ROOT / folder / name / f"{name}.ipynb")
    assert faults(notebook, seqlib.exercises.get_assignment(name)) == []


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_solution_is_left_in_the_release(name):
    text = (ROOT / "assignments" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    for mark in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME"):
        assert mark not in text


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_task_is_about_a_picture_that_the_solution_draws(name):
    """The picture would be missing in the students' notebook (AllenDowney/ThinkPython#22)."""
    text = (ROOT / "solutions" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    assert "def " in text
    assert not re.search(r"matplotlib|\bplt\.|savefig|display\(", text)
