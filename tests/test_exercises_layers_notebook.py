"""The notebook of the assignment ``layers``: text, code and record agree."""

import numpy as np
from exercise_tools import Exercises

EXERCISES = Exercises("layers")
LAYERS = EXERCISES.record
by_id = EXERCISES.by_id


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
