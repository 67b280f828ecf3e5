"""The notebooks of all assignments: text, code and record agree.

What one notebook alone says is in ``test_exercises_<name>_notebook.py``.
"""

import inspect
import re

import numpy as np
import pytest
from exercise_tools import Exercises, values

from seqlib.exercises import ASSIGNMENTS, get_task

EXERCISES = {name: Exercises(name) for name in ASSIGNMENTS}
TASKS = [(name, function) for name, e in EXERCISES.items() for function in e.tasks]
TRAINED = [
    pytest.param(
        name,
        function,
        marks=pytest.mark.slow if EXERCISES[name].tasks[function].kind == "training" else (),
    )
    for name, function in TASKS
]
# Worked examples that call what another task defines.
CALLED = {
    ("masks", "masked_softmax_backward"): ["masked_softmax"],
    **{("tokens", f): [*EXERCISES["tokens"].tasks] for f in EXERCISES["tokens"].tasks},
}
IN_FULL = ("gates", "tokens")  # every number printed is in a comment


@pytest.mark.parametrize(("name", "function"), TRAINED)
def test_the_solution_gets_all_points(name, function):
    """Also alone: what a task builds on is there while it is judged."""
    exercises = EXERCISES[name]
    space = exercises.defined("solutions", function)
    result = exercises.result_of(function, space[function])
    assert result.score == exercises.tasks[function].points, result.lines()


@pytest.mark.parametrize(("name", "function"), TASKS)
def test_the_release_gets_nothing(name, function):
    exercises = EXERCISES[name]
    released = exercises.defined("assignments", function)[function]
    result = exercises.result_of(function, released)
    assert result.score == 0
    assert "not written yet" in result.criteria[0].message


@pytest.mark.parametrize(("name", "function"), TASKS)
def test_the_notebooks_function_has_the_signature_of_the_record(name, function):
    exercises = EXERCISES[name]
    solution = exercises.defined("solutions", function)[function]
    assert str(inspect.signature(solution)) == exercises.tasks[function].signature
    for parameter in inspect.signature(solution).parameters:
        assert re.search(rf"^    (\w+, )*{parameter}\b.* : ", solution.__doc__, re.MULTILINE)


@pytest.mark.parametrize(("name", "function"), TRAINED)
def test_the_worked_example_gives_the_values_that_its_comments_expect(name, function):
    """Case B13: text and code must not contradict each other."""
    exercises = EXERCISES[name]
    space = exercises.defined("solutions", *CALLED.get((name, function), ()), function)
    expected = values(exercises.expected(function))
    shown = values(exercises.printed(function, space))
    assert len(expected) >= 2
    if name in IN_FULL:
        assert len(shown) == len(expected)
    np.testing.assert_allclose(shown[: len(expected)], expected, atol=5e-4)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_points_and_titles_in_the_text_are_those_of_the_record(name):
    tasks = EXERCISES[name].tasks
    cells = EXERCISES[name].by_id("solutions")
    table = dict(re.findall(r"\| `(\w+)` \| (\d+) \|", cells["about"]))
    assert {function: float(points) for function, points in table.items()} == {
        function: task.points for function, task in tasks.items()
    }
    for number, (function, task) in enumerate(tasks.items(), start=1):
        heading = cells[f"about_{function}"].splitlines()[0]
        assert heading.startswith(f"## {number} ")
        assert heading.endswith(f" ({task.points:g} points)")


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_notebook_states_the_hours_and_what_is_granted(name):
    record = EXERCISES[name].record
    text = EXERCISES[name].by_id("solutions")["about"]
    assert f"Expected time: {record.hours:g} hours" in text
    for grant in record.grants:
        module, _, function = grant.rpartition(".")
        shown = f"snp.{function}" if module == "seqlib.np" else function
        assert f"`{shown}`" in text


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_mark_scheme_adds_up(name):
    record = EXERCISES[name].record
    for question in record.written:
        points = [int(line.split()[0]) for line in question.rubric]
        assert sum(points) == question.points
    assert record.written
    assert record.points == 100


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_tasks_are_found_by_their_ids_and_every_name_is_used_once(name):
    record = EXERCISES[name].record
    assert [get_task(task.id) for task in record.tasks] == list(record.tasks)
    names = [*EXERCISES[name].tasks, *(question.id for question in record.written)]
    assert len(set(names)) == len(names)
    assert 5 <= len(record.tasks) <= 8
