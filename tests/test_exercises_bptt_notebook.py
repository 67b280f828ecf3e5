"""The notebook of the assignment ``bptt``: text, code and record agree."""

import re

import numpy as np
import pytest
from exercise_tools import Exercises

EXERCISES = Exercises("bptt")
BPTT = EXERCISES.record
TASKS = EXERCISES.tasks
by_id = EXERCISES.by_id
defined = EXERCISES.defined


@pytest.mark.parametrize("name", TASKS)
def test_the_text_has_the_numbers_that_the_worked_example_expects(name):
    cells = by_id("solutions")
    text = cells[f"about_{name}"]
    for comment in re.findall("# expected: (.*)", cells[f"try_{name}"]):
        for number in re.findall(r"\d+\.\d+", comment):
            assert number in text or f"{float(number):.3f}" in text, number


def test_the_limits_in_the_text_of_the_checker_are_those_of_the_record():
    task, text = TASKS["gradient_is_right"], by_id("solutions")["about_gradient_is_right"]
    assert f"at most {task.options['max_calls']} times" in text
    largest = max(case.args[1].size for case in task.cases(np.random.default_rng(1)))
    assert f"at most {largest} entries" in text


def test_the_helper_of_the_notebook_runs_the_network_of_the_text():
    space, rng = defined("solutions"), np.random.default_rng(0)
    X, h0 = rng.standard_normal((5, 2, 3)), rng.standard_normal((2, 4))
    W_hh, W_xh, b_h = rng.standard_normal((4, 4)), rng.standard_normal((4, 3)), np.ones(4)
    h, expected = h0, []
    for x in X:
        h = np.tanh(h @ W_hh.T + x @ W_xh.T + b_h)
        expected.append(h)
    np.testing.assert_allclose(space["states"](X, h0, W_hh, W_xh, b_h), expected)


def test_the_solutions_work_together_as_the_text_proposes():
    """Each gradient of task 3, put into the checker of task 1."""
    space = defined("solutions", "gradient_is_right", "rnn_backward")
    rng = np.random.default_rng(1)
    point = {
        "X": rng.standard_normal((5, 2, 3)),
        "h0": rng.standard_normal((2, 2)),
        "W_hh": rng.standard_normal((2, 2)),
        "W_xh": rng.standard_normal((2, 3)),
        "b_h": rng.standard_normal(2),
    }
    H, dH = space["states"](**point), rng.standard_normal((5, 2, 2))
    network = (H, point["h0"], point["X"], point["W_hh"], point["W_xh"])
    found = space["rnn_backward"](dH, np.zeros((2, 2)), *network)
    for name, g in zip(("h0", "X", "W_hh", "W_xh", "b_h"), found, strict=True):

        def E(theta, name=name):
            return float((dH * space["states"](**(point | {name: theta}))).sum())

        assert space["gradient_is_right"](E, point[name], g)
        assert not space["gradient_is_right"](E, point[name], 1.1 * g)


def test_the_blocks_in_the_table_of_truncation():
    """A gradient of step s reaches the steps that the table lists for its block."""
    table = re.findall(
        r"\| \d \| ([\d, ]+) \| (\d(?:, \d)*)",
        "".join(by_id("solutions")["about_rnn_truncated_backward"]),
    )
    assert table == [("1, 2, 3", "3, 2, 1"), ("4, 5, 6", "6, 5, 4, 3"), ("7", "7, 6, 5, 4")]
    task, T = TASKS["rnn_truncated_backward"], 7
    H, h0, W = np.full((T, 1, 1), 0.5), np.full((1, 1), 0.5), np.ones((1, 1))
    for losses, steps in table:
        for loss in map(int, losses.split(", ")):
            dH = np.zeros((T, 1, 1))
            dH[loss - 1] = 1
            reached = []
            for t in range(T):  # with one input of 1, dW_xh is the gradient of one step
                X = np.zeros((T, 1, 1))
                X[t] = 1
                if task.reference(dH, H, h0, X, W, W, 3, 4)[1][0, 0] != 0:
                    reached.append(t + 1)
            listed = [t for t in map(int, steps.split(", ")) if t <= loss]
            assert reached == sorted(listed)


def scalar_network(h, w=0.5, slope=True):
    """Return delta a_4 ... delta a_1 and the terms of dE/dw for E = h_4."""
    da, terms, dh = [], [], 1.0
    for t in (4, 3, 2, 1):
        da.append(dh * (1 - h[t] ** 2 if slope else 1))
        terms.append(da[-1] * h[t - 1])
        dh = w * da[-1]
    return da, terms, dh


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""
    question = by_id("solutions")["about_which_mistake"]
    answer, rubric = by_id("solutions")["which_mistake"], " ".join(BPTT.written[0].rubric)
    h = [0.5, 0.6, 0.8, 0.6, 0.0]
    for t, state in enumerate(h):
        assert re.search(rf"h_{t} = {state:g}\b", question)
    da, terms, dh0 = scalar_network(h)
    assert f"= {sum(terms):.4f}" in question
    for number in (*da, *terms, sum(terms)):
        shown = f"{number:.4f}".rstrip("0").rstrip(".")
        assert shown in answer
        assert shown in rubric
    assert f"{terms[0] + terms[1]:.4f}" in question  # A
    assert f"{terms[0]:.4f}" in question  # B
    assert f"{sum(scalar_network(h, slope=False)[1]):.4f}" in question  # C
    _, changed, _ = scalar_network([0.5, 0.6, 0.0, 0.6, 0.0])
    assert f"{sum(changed):.4f}" in answer
    assert f"{sum(changed):.4f}" in rubric
    assert changed[0] + changed[1] == changed[0] == 0.6
    assert f"{dh0:.4f}" in answer
    assert f"{dh0:.4f}" in rubric
    assert f"{0.5**20:.1e}" == "9.5e-07"
