"""The notebook of the assignment ``attention``: text, code and record agree."""

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
ATTENTION = get_assignment("attention")
TASKS = {task.function: task for task in ATTENTION.tasks}


def result_of(name, function):
    return judge(TASKS[name], InProcess(function), seed=1)


def notebook(folder):
    path = ROOT / folder / "attention" / "attention.ipynb"
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
    assert f"Expected time: {ATTENTION.hours:g} hours" in text
    for grant in ATTENTION.grants:
        assert f"`snp.{grant.rpartition('.')[2]}`" in text


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""

    def first(difference):
        return 1 / (1 + np.exp(-difference))

    question, answer = (
        by_id("solutions")["about_why_scaling"],
        by_id("solutions")["why_scaling"],
    )
    assert "(0.8808, 0.1192)" in question
    assert "(0.7311, 0.2689)" in question
    assert round(first(4 / 2), 4) == 0.8808
    assert round(first(4 / 4), 4) == 0.7311  # sqrt(16) and d_k = 4 alike
    rubric = " ".join(ATTENTION.written[0].rubric)
    for divisor in (np.sqrt(8), 4, 8):
        for weight in (first(4 / divisor), first(-4 / divisor)):
            assert f"{weight:.3f}" in answer
            assert f"{weight:.3f}" in rubric
    slopes = [first(d) * first(-d) for d in (16 / 8, 16)]
    assert [f"{s:.2g}" for s in slopes] == ["0.1", "1.1e-07"]
    assert f"{slopes[0]:.3f}" in answer
    assert f"{slopes[0]:.3f}" in rubric
    sqrt_of = [f"{v:.2f}" for v in (np.sqrt(3), np.sqrt(6))]
    assert all(v in answer for v in sqrt_of)


def test_the_mark_scheme_adds_up():
    for question in ATTENTION.written:
        points = [int(line.split()[0]) for line in question.rubric]
        assert sum(points) == question.points
    assert ATTENTION.points == 100


def test_tasks_are_found_by_their_ids():
    assert [get_task(task.id) for task in ATTENTION.tasks] == list(ATTENTION.tasks)
    assert len(set(itertools.chain(TASKS, [q.id for q in ATTENTION.written]))) == 8
