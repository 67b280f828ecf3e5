"""The notebook of the assignment ``rnn``: text, code and record agree."""

import numpy as np
from exercise_tools import Exercises

EXERCISES = Exercises("rnn")
RNN = EXERCISES.record
by_id = EXERCISES.by_id


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
