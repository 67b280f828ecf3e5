"""The notebook of the assignment ``attention``: text, code and record agree."""

import numpy as np
from exercise_tools import Exercises

EXERCISES = Exercises("attention")
ATTENTION = EXERCISES.record
by_id = EXERCISES.by_id


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
