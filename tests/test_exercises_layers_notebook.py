"""The notebook of the assignment ``layers``: text, code and record agree."""

import contextlib
import inspect
import io
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from seqlib.exercises import get_assignment, get_task
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

ROOT = Path(__file__).resolve().parents[1]
LAYERS = get_assignment("layers")
TASKS = {task.function: task for task in LAYERS.tasks}


def result_of(name, function):
    return judge(TASKS[name], InProcess(function), seed=1)


def notebook(folder):
    path = ROOT / folder / "layers" / "layers.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))


def by_id(folder, prefix=""):
    return {
        cell["id"].removeprefix(prefix): "".join(cell["source"])
        for cell in notebook(folder)["cells"]
        if cell["id"].startswith(prefix)
    }


def defined(folder, name):
    """Run the set-up and one solution cell as a notebook would, and return the namespace."""
    cells, space = by_id(folder), {"__name__": "__main__"}
    exec(cells["setup"], space)
    exec(cells[name], space)
    return space


@pytest.mark.parametrize("name", TASKS)
def test_the_solution_gets_all_points(name):
    space = defined("solutions", name)
    assert result_of(name, space[name]).score == TASKS[name].points


@pytest.mark.parametrize("name", TASKS)
def test_the_release_gets_nothing(name):
    result = result_of(name, defined("assignments", name)[name])
    assert result.score == 0
    assert "not written yet" in result.criteria[0].message


@pytest.mark.parametrize("name", TASKS)
def test_the_notebooks_function_has_the_signature_of_the_record(name):
    function = defined("solutions", name)[name]
    assert str(inspect.signature(function)) == TASKS[name].signature
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^    (\w+, )*{parameter}\b.* : ", function.__doc__, re.MULTILINE)


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def numbers(text):
    return [float(n) for n in NUMBER.findall(text)]


@pytest.mark.parametrize("name", TASKS)
def test_the_worked_example_gives_the_numbers_that_its_comments_expect(name):
    """Case B13: text and code must not contradict each other."""
    space = defined("solutions", name)
    cell = by_id("solutions")[f"try_{name}"]
    expected = numbers(" ".join(re.findall("# expected: (.*)", cell)))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(cell, space)
    shown = numbers(printed.getvalue())
    assert len(expected) >= 2
    np.testing.assert_allclose(shown[: len(expected)], expected, atol=5e-4)


def test_points_and_titles_in_the_text_are_those_of_the_record():
    cells = by_id("solutions", "about_")
    table = dict(re.findall(r"\| `(\w+)` \| (\d+) \|", by_id("solutions")["about"]))
    assert {name: float(points) for name, points in table.items()} == {
        name: task.points for name, task in TASKS.items()
    }
    for number, (name, task) in enumerate(TASKS.items(), start=1):
        heading = cells[name].splitlines()[0]
        assert heading.startswith(f"## {number} ")
        assert heading.endswith(f"({task.points:g} points)")


def test_the_notebook_states_the_hours_and_what_is_granted():
    text = by_id("solutions")["about"]
    assert f"Expected time: {LAYERS.hours:g} hours" in text
    for grant in LAYERS.grants:
        assert f"`snp.{grant.rpartition('.')[2]}`" in text


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""
    cells = by_id("solutions")
    question, answer = cells["about_which_divisor"], cells["which_divisor"]
    rubric = " ".join(LAYERS.written[0].rubric)

    def first(c, *, count=4, eps=1e-5, outside=0.0):
        """Return the first entry of c (3, 1, 1, 1), normalised."""
        return 1.5 * c / (np.sqrt(3 * c**2 / count + eps) + outside)

    mistakes = {"count": 3}, {"eps": 0.0, "outside": 1e-5}, {"eps": 0.0}
    assert "(1.732, -0.577, -0.577, -0.577)" in question
    assert f"{first(1):.3f}" == "1.732"
    assert f"({first(1, count=3):.3f}, -0.500" in question
    for d, digits in ((4, 3), (512, 5)):
        factor = f"{np.sqrt(d / (d - 1)):.{digits}f}"
        assert factor in answer
        assert factor in rubric
    assert f"{first(1e-4, eps=0.0, outside=1e-5):.3f}" == "1.553"
    assert "1.553" in question
    for text in (answer, rubric):
        assert f"{first(1e-4):.4f}" in text
        assert "1.553" in text
        for options in ({}, *mistakes):
            assert f"{first(0.003, **options):.4f}" in text
    # (c) and (d): what each of the two rows of the question shows, and what not.
    seen = {
        c: [bool(abs(first(c, **m) / first(c) - 1) > 1e-3) for m in mistakes]
        for c in (1, 1e-4, 0.003)
    }
    assert seen == {
        1: [True, False, False],
        1e-4: [False, True, True],
        0.003: [True, True, True],
    }


def test_the_mark_scheme_adds_up():
    for question in LAYERS.written:
        points = [int(line.split()[0]) for line in question.rubric]
        assert sum(points) == question.points
    assert LAYERS.points == 100


def test_tasks_are_found_by_their_ids():
    assert [get_task(task.id) for task in LAYERS.tasks] == list(LAYERS.tasks)
    assert len(set(itertools.chain(TASKS, [q.id for q in LAYERS.written]))) == 8
