"""The notebook of the assignment ``rnn``: text, code and record agree."""

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
RNN = get_assignment("rnn")
TASKS = {task.function: task for task in RNN.tasks}


def result_of(name, function):
    return judge(TASKS[name], InProcess(function), seed=1)


def notebook(folder):
    path = ROOT / folder / "rnn" / "rnn.ipynb"
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
    assert f"Expected time: {RNN.hours:g} hours" in text
    for grant in RNN.grants:
        assert f"`snp.{grant.rpartition('.')[2]}`" in text


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""
    question = by_id("solutions")["about_three_numbers"]
    answer = by_id("solutions")["three_numbers"]
    rubric = " ".join(RNN.written[0].rubric)
    assert f"{np.log(65):.3f}" in answer
    assert f"{np.log(65):.3f}" in rubric
    assert f"{np.exp(-9):.4f}" == "0.0001" in answer
    first, second = [2.0] * 4, [1.0]
    tokens, sequences = np.mean(first + second), np.mean([np.mean(first), np.mean(second)])
    everywhere = sum(first + second) / 8
    for mean in (tokens, sequences, everywhere):
        assert f"{mean:.4g}" in answer
        assert f"{mean:.4g}" in rubric
    assert f"perplexity {np.exp(everywhere):.2f}" in question
    assert f"{np.exp(tokens):.2f}" in answer
    assert f"{np.exp(tokens):.2f}" in rubric
    h, states = 0.0, []
    for x in (1, 0, 0):
        h = np.tanh(x + 0.5 * h)
        states.append(f"{h:.4f}")
    assert all(state in answer for state in states)
    assert ", ".join(states) in rubric
    assert f"{states[0]}, 0, 0" in question


def test_the_mark_scheme_adds_up():
    for question in RNN.written:
        points = [int(line.split()[0]) for line in question.rubric]
        assert sum(points) == question.points
    assert RNN.points == 100


def test_tasks_are_found_by_their_ids():
    assert [get_task(task.id) for task in RNN.tasks] == list(RNN.tasks)
    assert len(set(itertools.chain(TASKS, [q.id for q in RNN.written]))) == 8
