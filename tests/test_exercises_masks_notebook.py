"""The notebook of the assignment ``masks``: text, code and record agree."""

import contextlib
import io
import re

import numpy as np
import pytest
from exercise_tools import Exercises

from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("masks")
MASKS = EXERCISES.record
TASKS = EXERCISES.tasks
by_id = EXERCISES.by_id
defined = EXERCISES.defined


@pytest.mark.parametrize("name", TASKS)
def test_the_text_has_the_numbers_that_the_worked_example_expects(name):
    cells = by_id("solutions")
    text = cells[f"about_{name}"]
    for comment in re.findall("# expected: (.*)", cells[f"try_{name}"]):
        for number in re.findall(r"\d+\.\d+|\d{2,}", comment):
            assert number in text, number


def test_the_promises_in_the_text_of_the_leak_test_are_those_of_the_record():
    task, text = TASKS["leak_test"], by_id("solutions")["about_leak_test"]
    assert f"at most {task.options['max_calls']} times" in text
    drawn = [c for seed in range(5) for c in task.cases(np.random.default_rng(seed))]
    B, T = np.max([case.args[1].shape for case in drawn], axis=0)
    assert f"at most {B} sequences and {T} steps" in text
    right = {case.label for case in drawn if case.label.startswith("a right model")}
    assert f"acquits {['six', 'seven', 'eight'][len(right) - 6]} of them" in text


def test_the_models_of_the_worked_example_are_judged_by_the_solution():
    space = defined("solutions", "leak_test")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(by_id("solutions")["try_leak_test"], space)
    ids = np.array([[1, 2, 0], [2, 2, 1]])
    np.testing.assert_allclose(
        space["mean_so_far"](ids)[0], [[0, 1, 0], [0, 0.5, 0.5], [1 / 3] * 3]
    )
    for model, leaks in ((space["mean_so_far"], False), (space["mean_of_all"], True)):
        assert space["leak_test"](model, ids, np.random.default_rng(0)) is leaks


# The written question


SCORES = np.log([[1.0, 2.0, 5.0, 8.0]])
CHANGED = np.log([[1.0, 2.0, 5.0, 24.0]])
MASK = np.array([[0.0, 0.0, -np.inf, -np.inf]])
CLASSMATES = {"A": "mask_after_softmax", "B": "mask_multiplied", "C": "mask_polarity"}


def weights(scores, *mistakes):
    return function_of(TASKS["masked_softmax"], *mistakes)(scores, MASK)[0]


def test_the_classmates_numbers_are_those_of_the_mistakes():
    question, answer = by_id("solutions")["about_whose_mask"], by_id("solutions")["whose_mask"]
    np.testing.assert_allclose(weights(SCORES), [1 / 3, 2 / 3, 0, 0])
    for letter, mistake in CLASSMATES.items():
        (row,) = re.findall(rf"\| {letter} \| (.*) \|", question)
        np.testing.assert_allclose(
            [float(cell) for cell in row.split(" | ")], weights(SCORES, mistake), atol=5e-5
        )
        for weight in weights(SCORES, mistake)[weights(SCORES, mistake) > 0]:
            assert f"{weight:.4f}".rstrip("0") in answer or f"/{1 / weight:.0f}" in answer


def test_the_predictions_of_the_written_question():
    answer, rubric = by_id("solutions")["whose_mask"], " ".join(MASKS.written[0].rubric)
    np.testing.assert_allclose(weights(CHANGED), weights(SCORES))
    np.testing.assert_allclose(weights(CHANGED, "mask_multiplied")[:2], [0.2, 0.4])
    first, second = weights(CHANGED, "mask_after_softmax")[:2]
    assert (first, second) == pytest.approx((1 / 32, 2 / 32))
    for text in (answer, rubric):
        assert "0.03125" in text
        assert "0.0625" in text


def test_the_weights_of_a_sequence_padded_on_the_left_with_a_large_number():
    padding = TASKS["padding_mask"].reference(np.array([2]), 4, "left")[0]
    causal = TASKS["causal_mask"].reference(4, 4, 0)
    large = sum(np.where(np.isneginf(m), -1e9, 0) for m in (padding, causal))
    A = TASKS["masked_softmax"].reference(np.zeros((4, 4)), large)
    third, quarter, half = 1 / 3, 1 / 4, 1 / 2
    expected = [[third, 0, third, third], [quarter] * 4, [0, 0, 1, 0], [0, 0, half, half]]
    np.testing.assert_allclose(A, expected)
    right = TASKS["masked_softmax"].reference(np.zeros((4, 4)), padding + causal)
    np.testing.assert_allclose(right, [[0] * 4, [0] * 4, *expected[2:]])
    answer = by_id("solutions")["whose_mask"]
    for row in (
        "(1/3, 0, 1/3, 1/3)",
        "(1/4, 1/4, 1/4, 1/4)",
        "(0, 0, 1, 0)",
        "(0, 0, 1/2, 1/2)",
    ):
        assert row in answer
