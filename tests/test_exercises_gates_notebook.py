"""The notebook of the assignment ``gates``: text, code and record agree."""

import numpy as np
import pytest
from exercise_tools import Exercises, values

EXERCISES = Exercises("gates")
GATES = EXERCISES.record
TASKS = EXERCISES.tasks
by_id = EXERCISES.by_id
defined = EXERCISES.defined
printed = EXERCISES.printed


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


def test_the_practice_converts_one_convention_and_not_the_other():
    solved = printed("convert_gru", defined("solutions", "gru_step", "convert_gru"))
    _, first, _, second = values(solved)  # each after the value of reset_after
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
