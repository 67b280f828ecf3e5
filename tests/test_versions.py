"""Versions in a released notebook, and what is said where others are installed."""

import dataclasses
import json
import sys

import pytest
import tiny_course
from click.testing import CliRunner
from tiny_course import as_bytes, released, solved, submit

import seqlib
from seqlib.exercises import get_assignment
from seqlib.grading.console import show_record
from seqlib.grading.grader import Grader
from seqlib.grading.local import check_notebook
from seqlib.grading.notebook import versions
from seqlib.grading.notebook.intake import take_in
from seqlib.grading.notebook.reading import read_cells
from seqlib.grading.notebook.versions import (
    carried,
    difference,
    grading_note,
    installed,
    local_note,
)
from seqlib.grading.records import recorded
from seqlib.grading.release import release
from seqlib.grading.report import class_data

TINY = tiny_course.ASSIGNMENT
HERE = {"version": seqlib.__version__, "tasks": {"tiny.double": 1, "tiny.add": 1}}
MIXED = {"tiny.double": 2, "tiny.gone": 3, "other.task": 9}
SENTENCE = (
    "The notebook was released with older versions of tiny.add (none, here 1) and "
    "newer versions of tiny.double (version 2, here 1), tiny.gone (version 3, here "
    "none); it was judged by those here."
)


def stamped(notebook, tasks=None, version=seqlib.__version__):
    data = {"version": version, "tasks": HERE["tasks"] if tasks is None else tasks}
    return notebook | {"metadata": {**notebook["metadata"], "seqlib": data}}


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    return tiny_course.make_course(tmp_path)


# In the release


def test_a_release_carries_the_versions_of_its_tasks_each_time_alike(course, monkeypatch):
    first = release(course, "tiny").read_bytes()
    assert json.loads(first)["metadata"]["seqlib"] == HERE == installed(TINY)
    assert release(course, "tiny").read_bytes() == first
    later = dataclasses.replace(TINY.tasks[1], version=2)
    assignment = dataclasses.replace(TINY, tasks=(TINY.tasks[0], later))
    monkeypatch.setattr(sys.modules["seqlib.exercises.tiny"], "ASSIGNMENT", assignment)
    again = json.loads(release(course, "tiny").read_bytes())["metadata"]["seqlib"]
    assert again["tasks"] == {"tiny.double": 1, "tiny.add": 2}


def test_the_rest_of_the_file_is_what_nbgrader_writes(course, monkeypatch):
    with_versions = json.loads(release(course, "tiny").read_bytes())
    stamp = with_versions["metadata"].pop("seqlib")
    monkeypatch.setattr("seqlib.grading.release._stamp", lambda path, assignment: None)
    plain = release(course, "tiny").read_bytes()
    assert json.loads(plain) == with_versions
    text = json.dumps(with_versions, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    assert plain == text.encode()
    assert stamp == HERE


# In a file that anybody may have written


def test_versions_are_read_and_survive_a_merge_but_no_damage():
    data = as_bytes(stamped(solved()))
    assert read_cells(data).versions == HERE
    assert read_cells(as_bytes(solved())).versions is None
    broken = data[: data.index(b'"metadata": {\n  "kernelspec"')]
    assert read_cells(broken).versions is None
    mark = b'   "source": "# Tiny"'
    merged = data.replace(
        mark, b"<<<<<<< a\n" + mark + b"\n=======\n" + mark + b"\n>>>>>>> b", 1
    )
    assert merged != data
    assert read_cells(merged).versions == HERE


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        "1",
        {},
        HERE | {"version": 1},
        HERE | {"version": "<b>1</b>"},
        HERE | {"version": "1" * 40},
        HERE | {"version": "1\n2"},
        HERE | {"tasks": None},
        HERE | {"tasks": ["tiny.add"]},
        HERE | {"tasks": {"tiny.add": True}},
        HERE | {"tasks": {"tiny.add": 1.5}},
        HERE | {"tasks": {"tiny.add": "2"}},
        HERE | {"tasks": {"tiny.add": 0}},
        HERE | {"tasks": {"tiny.add": 10**9}},
        HERE | {"tasks": {"tiny.add": 10**4000}},
        HERE | {"tasks": {"tiny.<script>": 2}},
        HERE | {"tasks": {"tiny.add\n": 2}},
        HERE | {"tasks": {"tiny." + "a" * 100: 2}},
        HERE | {"tasks": {f"tiny.t{i}": 2 for i in range(51)}},
    ],
)
def test_what_is_not_of_the_form_counts_as_nothing(found):
    assert carried({"seqlib": found}) is None
    notebook = solved() | {"metadata": {"seqlib": found}}
    read = read_cells(as_bytes(notebook))
    assert read.versions is None
    assert grading_note(read.versions, TINY) == local_note(read.versions, TINY) == ""


@pytest.mark.parametrize("metadata", [None, [], "seqlib", {"seqlib": HERE, "other": 1}])
def test_metadata_of_any_kind_can_be_read(metadata):
    expected = HERE if isinstance(metadata, dict) else None
    assert carried(metadata) == expected
    assert read_cells(as_bytes(solved() | {"metadata": metadata})).versions == expected


# What is said


def test_equal_versions_are_passed_over_in_silence():
    assert difference(HERE, TINY) == ("", "")
    assert grading_note(HERE, TINY) == local_note(HERE, TINY) == ""


def test_each_task_is_named_with_the_way_in_which_it_differs():
    found = {"version": "0.0.9", "tasks": MIXED}
    assert grading_note(found, TINY) == SENTENCE
    assert local_note(found, TINY) == (
        f"Note: released with seqlib 0.0.9, here is {seqlib.__version__}; the "
        "notebook has older versions of tiny.add (none, here 1): get the notebook anew; the "
        "notebook has newer "
        "versions of tiny.double (version 2, here 1), tiny.gone (version 3, here "
        "none): install the newer seqlib."
    )


def test_another_release_with_the_same_tasks_is_no_matter_for_grading():
    found = HERE | {"version": "0.0.9"}
    assert grading_note(found, TINY) == ""
    assert local_note(found, TINY) == (
        f"Note: released with seqlib 0.0.9, here is {seqlib.__version__}; the tasks are the "
        "same."
    )


def test_a_sentence_names_few_tasks():
    tasks = HERE["tasks"] | {f"tiny.t{i:02}": 1 for i in range(versions.MAX_TASKS - 2)}
    found = carried({"seqlib": HERE | {"tasks": tasks}})
    sentence = grading_note(found, TINY)
    assert sentence.count("here none") == versions.SHOWN
    assert f" and {versions.MAX_TASKS - 2 - versions.SHOWN} more; it was" in sentence


# seqlib check


def checked(course, notebook):
    path = course.root / "tiny.ipynb"
    path.write_bytes(as_bytes(notebook))
    lines = []
    return check_notebook(path, write=lines.append), lines


def test_check_says_first_that_the_notebook_has_other_versions(course):
    found, lines = checked(course, stamped(solved(), MIXED))
    assert found == (80.0, 80.0)
    assert lines[0].startswith("Note: the notebook has older versions of tiny.add (none, ")
    assert "tiny.double (version 2, here 1)" in lines[0]
    assert sum(line.startswith("Note:") for line in lines) == 1
    assert not any(line.startswith("Note:") for line in checked(course, stamped(solved()))[1])


def test_check_prints_the_running_total_after_each_task(course):
    _, lines = checked(course, solved(add="def add(x, y):\n    return x - y"))
    total = "tiny so far: 40 of 100 points; 20 are for what you write in words, which a person"
    assert [line for line in lines if "so far" in line] == [f"{total} grades"] * 2
    assert lines[-1] == f"{total} grades"


def test_a_task_that_is_checked_twice_counts_with_its_last_check(course):
    notebook = solved()
    wrong = tiny_course.extra("def wrong(x, y):\n    return x", id="a")
    again = tiny_course.extra('check("tiny.add", wrong)', id="b")
    assert checked(course, notebook | {"cells": [*notebook["cells"], wrong, again]})[0] == (
        40.0,
        80.0,
    )


def test_points_of_a_practice_notebook_count_nowhere(tmp_path, monkeypatch):
    setup = get_assignment("setup")
    path = tmp_path / "setup.ipynb"
    cell = {"cell_type": "code", "metadata": {}, "source": 'check("setup.row_means", f)'}
    path.write_bytes(as_bytes({"cells": [cell], "metadata": {"seqlib": installed(setup)}}))
    lines = []
    assert check_notebook(path, write=lines.append) == (0.0, 10.0)
    assert lines[-1] == "setup so far: 0 of 10 points, which count nowhere"


# seqlib grade


def grade(course, notebook):
    submit(course, "s001", notebook)
    with Grader(course, "tiny", trust_students=True) as grader:
        return grader.grade("s001")


def test_a_submission_with_other_versions_is_graded_in_full_and_told(course, capsys):
    record = grade(course, stamped(solved(), MIXED))
    assert (record["state"], record["score"]) == ("graded", 80.0)
    assert (record["mends"], record["notes"]) == ([], [SENTENCE])
    graded = course.records / "tiny" / "s001" / record["submission"][:16] / "notebook.ipynb"
    first, *_ = json.loads(graded.read_text(encoding="utf-8"))["cells"]
    assert "newer versions of" in first["source"]
    show_record(*recorded(course, "tiny", "s001", "tiny.add"))
    assert f"Noted       {SENTENCE}" in capsys.readouterr().out
    (student,) = class_data(TINY, {"s001": record}, {})["students"]
    assert student["remarks"] == [SENTENCE]


@pytest.mark.parametrize("notebook", [solved(), stamped(solved())])
def test_a_submission_without_other_versions_is_told_nothing(course, notebook):
    record = grade(course, notebook)
    assert record["notes"] == []
    taken = take_in(course.submission("s001", "tiny"), "tiny", released(), TINY)
    assert taken.notes == ()


def test_a_record_of_an_earlier_course_has_no_notes():
    record = {"mends": ["A."], "left_out": ["B."]}
    from seqlib.grading.report import _remarks

    assert _remarks(record) == ["A.", "B."]


def test_the_command_prints_it_too(course):
    from seqlib.cli import main

    path = course.root / "tiny.ipynb"
    path.write_bytes(as_bytes(stamped(solved(), {"tiny.double": 1, "tiny.add": 2})))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.output.splitlines()[0] == (
        "Note: the notebook has newer versions of tiny.add (version 2, here 1): install the "
        "newer seqlib."
    )
