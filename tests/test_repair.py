"""Repair of submitted notebooks against the released one."""

import copy
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_course import RIGHT, as_bytes, cell_of, extra, released, solved

from seqlib.grading.notebook.reading import read_cells
from seqlib.grading.notebook.repair import ELSEWHERE, repair

RELEASED = released()
KEYS = [cell["id"] for cell in RELEASED["cells"]]


def mend(notebook):
    return repair(read_cells(as_bytes(notebook)).cells, RELEASED)


def remove(notebook, key):
    notebook["cells"].remove(cell_of(notebook, key))


def insert(notebook, key, *cells, after=True):
    """Put cells behind (or before) the one with an id."""
    place = notebook["cells"].index(cell_of(notebook, key)) + after
    notebook["cells"][place:place] = cells


def keys(notebook):
    return [cell["id"] for cell in notebook["cells"]]


def test_a_sound_notebook_comes_back_as_it_was():
    result = mend(solved())
    assert result.notebook == solved()
    assert result.mends == ()
    assert result.matched == 9


def test_deleted_cells_are_put_back():
    notebook = solved()
    remove(notebook, "test-double")
    remove(notebook, "why")
    result = mend(notebook)
    assert keys(result.notebook) == KEYS
    assert cell_of(result.notebook, "test-double") == cell_of(RELEASED, "test-double")
    assert cell_of(result.notebook, "why") == cell_of(RELEASED, "why")
    assert result.mends == (
        'These cells were missing and were put back: "test-double", "why".',
    )


def test_a_deleted_text_of_the_course_is_not_missed():
    notebook = solved()
    remove(notebook, "intro")
    result = mend(notebook)
    assert keys(result.notebook) == KEYS[1:]
    assert result.mends == ()


def test_a_deleted_answer_does_not_undo_its_copy_in_another_cell():
    # Both answers were merged into one cell.
    notebook = solved(double=f"{RIGHT['double']}\n\n\n{RIGHT['add']}")
    remove(notebook, "add")
    result = mend(notebook)
    assert cell_of(result.notebook, "add")["source"] == ELSEWHERE
    assert result.mends == ('The cell "add" was missing and was put back.',)


@pytest.mark.parametrize("stub_first", [True, False])
def test_of_two_copies_the_one_with_work_is_graded(stub_first):
    notebook = solved()
    stub = copy.deepcopy(cell_of(RELEASED, "double")) | {"id": "copy"}
    insert(notebook, "double", stub, after=not stub_first)
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends == (
        'The cell "double" was there more than once; the one with the most work was graded.',
    )


def test_a_copy_with_other_work_stays_before_the_one_that_is_graded():
    first = copy.deepcopy(cell_of(RELEASED, "double")) | {
        "id": "first",
        "source": "def half_done(x):\n    return x",
    }
    longer = "def double(x):\n    y = x + x\n    return y"
    notebook = solved(double=longer)
    insert(notebook, "double", first)
    result = mend(notebook)
    place = keys(result.notebook).index("double")
    assert result.notebook["cells"][place]["source"] == longer
    before = result.notebook["cells"][place - 1]
    assert before["source"] == "def half_done(x):\n    return x"
    assert before["metadata"] == {}
    assert keys(result.notebook) == [*KEYS[:3], "first", *KEYS[3:]]


def test_a_duplicated_test_is_there_once():
    notebook = solved()
    insert(notebook, "test-add", copy.deepcopy(cell_of(RELEASED, "test-add")) | {"id": "x"})
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends == ('The cell "test-add" was there more than once; one was kept.',)


def test_reordered_cells_are_put_in_order_and_own_cells_follow_theirs():
    notebook = solved()
    insert(notebook, "double", extra("print(1)"))
    notebook["cells"].reverse()
    insert(notebook, "double", extra("print(2)", id="second"))
    result = mend(notebook)
    # Reversed, the first own cell stands before the answer, behind the test.
    assert keys(result.notebook) == [*KEYS[:4], "second", "test-double", "mine", *KEYS[5:]]
    assert result.mends == ("Cells stood in another order; the released order was restored.",)


@pytest.mark.parametrize("key", ["double", "test-double", "why"])
def test_a_retyped_cell_gets_its_type_back(key):
    notebook = solved()
    cell = cell_of(notebook, key)
    was = cell["cell_type"]
    cell["cell_type"] = now = "markdown" if was == "code" else "code"
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends == (f'The cell "{key}" had been turned into {now}; it is {was} again.',)


def test_a_changed_locked_cell_is_put_back_and_the_changes_are_kept_beside_it():
    notebook = solved()
    cell_of(notebook, "setup")["source"] += "\nimport math"
    cell_of(notebook, "test-add")["source"] = "40.0"
    result = mend(notebook)
    cells = result.notebook["cells"]
    assert cell_of(result.notebook, "test-add") == cell_of(RELEASED, "test-add")
    assert cells[2]["source"].endswith("import math")
    assert cells[2]["metadata"] == {}
    assert result.mends[0] == (
        "These locked cells had been changed; their text was put back, "
        'yours stands behind: "setup", "test-add".'
    )


def test_space_at_the_ends_of_a_locked_cell_is_no_change():
    notebook = solved()
    cell_of(notebook, "setup")["source"] += "  \n\n"
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends == ()


@pytest.mark.parametrize(
    "change",
    [
        {"points": 5000},
        {"grade": False},
        {"solution": True},
        {"locked": False},
        {"task": True},
        {"points": "many"},
    ],
)
def test_changed_grading_data_are_put_right(change):
    notebook = solved()
    cell_of(notebook, "test-add")["metadata"]["nbgrader"] |= change
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends == ('The grading data of cell "test-add" were put right.',)


def test_tags_that_would_skip_a_cell_are_removed():
    notebook = solved()
    cell_of(notebook, "test-add")["metadata"]["tags"] = ["skip-execution"]
    insert(notebook, "test-add", extra("x", metadata={"tags": ["<b>", "raises-exception"]}))
    result = mend(notebook)
    assert all("tags" not in cell["metadata"] for cell in result.notebook["cells"])
    assert result.mends == (
        'Tags of cell "test-add" were removed: "skip-execution".',
        'Tags of ordinary cells were removed: "?b?", "raises-exception".',
    )


def test_lost_metadata_are_told_by_the_id():
    notebook = solved()
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    result = mend(notebook)
    assert result.notebook == solved()
    assert len(result.mends) == 1
    assert result.mends[0].startswith("The grading data of these cells were put right: ")


def test_lost_metadata_and_ids_are_told_by_content_and_place():
    notebook = solved()
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends[0].startswith("These cells had lost their ids; their content told")
    assert 'The answer "why" had lost its id; its place told it.' in result.mends


def test_an_id_that_was_changed_is_told_by_content():
    notebook = solved()
    cell = cell_of(notebook, "double")
    cell["id"] = "mine"
    cell["metadata"]["nbgrader"]["grade_id"] = "my-double"
    result = mend(notebook)
    assert result.notebook == solved()
    assert result.mends == (
        'The cell "double" had lost its id; its content told it.',
        'The grading data of cell "double" were put right.',
    )


def test_grading_data_of_strange_cells_are_removed():
    notebook = solved()
    stranger = {"nbgrader": {"grade": True, "grade_id": "gift", "points": 100, "locked": True}}
    insert(notebook, "why", extra("100.0", metadata=stranger))
    result = mend(notebook)
    assert result.notebook["cells"][-1]["metadata"] == {}
    assert result.mends == ("Grading data of 1 cells unknown here were removed.",)


def test_own_cells_get_ids_that_are_free():
    notebook = solved()
    insert(
        notebook, "why", extra("1", id="setup-2"), extra("2", id=None), extra("3", id="own-0")
    )
    insert(notebook, "intro", extra("4", id="setup-2"))
    found = keys(mend(notebook).notebook)
    assert len(set(found)) == len(found) == 14


def test_a_foreign_notebook_matches_nothing():
    assert mend({"cells": [extra("x = 1")]}).matched == 0


def test_neither_argument_is_modified():
    cells = read_cells(as_bytes(solved())).cells
    cells[3]["metadata"]["tags"] = ["x"]
    before = copy.deepcopy((cells, RELEASED))
    result = repair(cells, RELEASED)
    result.notebook["cells"][3]["metadata"]["nbgrader"]["points"] = 7
    assert (cells, RELEASED) == before


@given(st.integers(0, 2**32))
def test_any_damage_ends_in_the_released_form(seed):
    choice = random.Random(seed)
    notebook = solved()
    for _ in range(choice.randint(1, 8)):
        cells = notebook["cells"]
        i, j = choice.randrange(len(cells) + 1), choice.randrange(len(cells) + 1)
        match choice.choice(["delete", "copy", "swap", "retype", "data", "text"]):
            case "delete":
                del cells[i : i + 1]
            case "copy":
                cells[j:j] = copy.deepcopy(cells[i : i + 1])
            case "swap":
                cells.insert(min(j, len(cells) - 1), cells.pop(i % len(cells)))
            case "retype":
                cells[i % len(cells)]["cell_type"] = choice.choice(["code", "markdown", "raw"])
            case "data":
                donor = choice.choice(RELEASED["cells"])["metadata"]
                cells[i % len(cells)]["metadata"] = copy.deepcopy(donor)
            case "text":
                cells[i % len(cells)]["source"] = choice.choice(["", "x = 1", RIGHT["add"]])
        cells or cells.append(extra("x = 1"))
    result = mend(notebook)
    for cell in result.notebook["cells"]:
        data = cell["metadata"].get("nbgrader")
        if data is None:
            assert cell["metadata"] == {}
            continue
        right = cell_of(RELEASED, data["grade_id"])
        assert cell["cell_type"] == right["cell_type"]
        assert cell["metadata"] == right["metadata"]
        if data["locked"]:
            assert cell["source"] == right["source"]
    graded = [key for key in keys(result.notebook) if key in KEYS[1:]]
    assert graded == KEYS[1:]
    # Repairing what is already in the released form changes nothing.
    again = repair(read_cells(json.dumps(result.notebook).encode()).cells, RELEASED)
    assert again.notebook == result.notebook
    assert again.mends == ()
