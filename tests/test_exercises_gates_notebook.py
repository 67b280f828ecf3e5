"""The notebook of the assignment ``gates``: text, code and record agree."""

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
GATES = get_assignment("gates")
TASKS = {task.function: task for task in GATES.tasks}


def result_of(name, function):
    return judge(TASKS[name], InProcess(function), seed=1)


def by_id(folder, prefix=""):
    path = ROOT / folder / "gates" / "gates.ipynb"
    return {
        cell["id"].removeprefix(prefix): "".join(cell["source"])
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["id"].startswith(prefix)
    }


def defined(folder, *names):
    """Run the set-up and some solution cells as a notebook would, and return the namespace."""
    cells, space = by_id(folder), {"__name__": "__main__"}
    for name in ("setup", *names):
        exec(cells[name], space)
    return space


def printed(name, space):
    """Run a trial cell and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(by_id("solutions")[f"try_{name}"], space)
    return out.getvalue()


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
    cell = by_id("solutions")[f"try_{name}"]
    expected = numbers(" ".join(re.findall("# expected: (.*)", cell)))
    shown = numbers(printed(name, defined("solutions", name)))
    assert len(expected) >= 2
    np.testing.assert_allclose(shown, expected, atol=5e-4)


def test_the_numbers_in_the_text_of_the_worked_backward_passes():
    """The intermediate numbers, computed here once more from the given ones."""
    text = by_id("solutions", "about_")["lstm_step_backward"]
    f, i, C_tilde, o, C, C_prev = 0.75, 0.25, 0.8, 0.5, 0.5, 0.4
    through_h = o * (1 - np.tanh(C) ** 2)
    dC = 1 + through_h
    sums = [
        dC * C_prev * f * (1 - f),
        dC * C_tilde * i * (1 - i),
        dC * i * (1 - C_tilde**2),
        np.tanh(C) * o * (1 - o),
    ]
    for value in (through_h, dC, *sums, dC * f, sums[0] * 0.5, sums[0] * np.log(3)):
        assert f"{value:.3f}" in text
    assert f"{sums[2] * 2 * np.log(3):.3f}" in text
    text = by_id("solutions", "about_")["gru_step_backward"]
    reset = 0.375 * 5 * np.log(3)
    for value in (reset, reset * 0.4 * 0.25 * 0.75, -0.3 * 0.25, reset * 0.25):
        assert f"{value:.3f}" in text
    assert f"{reset * 0.4 * 0.1875 * -np.log(3):.3f}" in text


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
    assert f"Expected time: {GATES.hours:g} hours" in text
    for grant in GATES.grants:
        assert f"`snp.{grant.rpartition('.')[2]}`" in text


def test_the_practice_converts_one_convention_and_not_the_other():
    solved = printed("convert_gru", defined("solutions", "gru_step", "convert_gru"))
    first, second = numbers(solved)
    assert first == 0
    assert second > 0.1
    with pytest.raises(NotImplementedError):
        defined("assignments", "convert_gru")["convert_gru"](1, 2, 3)


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""
    question = by_id("solutions")["about_what_is_kept"]
    answer = by_id("solutions")["what_is_kept"]
    rubric = " ".join(GATES.written[0].rubric)

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    assert f"{0.5**20:.1e}" == "9.5e-07"
    assert r"9.5 \cdot 10^{-7}" in answer
    assert "9.5e-7" in rubric
    f = 0.5**0.01
    for value, digits in (
        (sigmoid(1), 4),
        (sigmoid(1) ** 20, 5),
        (sigmoid(3), 4),
        (sigmoid(3) ** 20, 3),
        (f, 5),
        (np.log(f / (1 - f)), 2),
        (sigmoid(-3), 4),
    ):
        assert f"{value:.{digits}f}" in answer
        assert f"{value:.{digits}f}" in rubric
    assert f"{sigmoid(-3) ** 20:.1e}" == "3.3e-27"
    assert r"3.3 \cdot 10^{-27}" in question
    W, r, h = np.array([[0, 1], [0, 0]]), np.array([1, 0]), np.array([2, 3])
    assert (W @ (r * h)).tolist() == [0, 0]
    assert (r * (W @ h)).tolist() == [3, 0]
    assert "gives the sums $(0, 0)$" in answer
    assert "gives $(3, 0)$" in answer


def test_the_classmates_numbers_follow_from_the_mistake_that_is_asked_for():
    """Part (c): the sum is -3 where h is 1 and where it has decayed, so W_z is on x alone."""
    task = TASKS["gru_step"]
    h_right, h_wrong, h_mended = (np.ones((1, 1)) for _ in range(3))
    x, W_z, zero = np.ones((1, 1)), np.array([[0.0, -3.0]]), np.zeros((1, 2))
    for _ in range(20):
        h_right = task.reference(x, h_right, zero, W_z, zero)
        h_wrong = task.variant(x, h_wrong, zero, W_z, zero, wrong={"update_exchanged"})
        h_mended = task.variant(x, h_mended, zero, -W_z, zero, wrong={"update_exchanged"})
    assert f"{h_right.item():.3f}" == "0.378"
    assert f"{h_wrong.item():.1e}" == "3.3e-27"
    np.testing.assert_allclose(h_mended, h_right)


def test_the_mark_scheme_adds_up():
    for question in GATES.written:
        points = [int(line.split()[0]) for line in question.rubric]
        assert sum(points) == question.points
    assert GATES.points == 100


def test_tasks_are_found_by_their_ids():
    assert [get_task(task.id) for task in GATES.tasks] == list(GATES.tasks)
    assert len(set(itertools.chain(TASKS, [q.id for q in GATES.written]))) == 7
