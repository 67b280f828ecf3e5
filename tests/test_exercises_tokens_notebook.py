"""The notebook of the assignment ``tokens``: text, code and record agree."""

import math
import re

import numpy as np
import pytest
from exercise_tools import Exercises

EXERCISES = Exercises("tokens")
TOKENS = EXERCISES.record
TASKS = EXERCISES.tasks
by_id = EXERCISES.by_id


@pytest.mark.parametrize("name", TASKS)
def test_the_text_has_the_numbers_that_the_worked_example_expects(name):
    cells = by_id("solutions")
    for comment in re.findall("# expected: (.*)", cells[f"try_{name}"]):
        for number in re.findall(r"-?\d+(?:\.\d+)?", comment):
            assert re.search(
                rf"(?<![\d.]){re.escape(number)}(?![\d.]\d)", cells[f"about_{name}"]
            )


def test_the_notebook_states_the_hours_and_what_stands_in():
    text = by_id("solutions")["about"]
    assert f"Expected time: {TOKENS.hours:g} hours" in text
    assert TOKENS.grants == ()
    helped = {
        name: task.options["forward"]
        for name, task in TASKS.items()
        if task.options.get("forward")
    }
    assert list(helped) == ["train_bpe", "encode"]
    assert set().union(*helped.values()) == {"count_pairs", "merge_pair"}
    assert "`train_bpe` and `encode` may call `count_pairs` and `merge_pair`" in text


def test_the_examples_of_the_tie_rule():
    """The two comparisons of the text of task 3, and the other rule that it speaks of."""
    text = by_id("solutions")["about_train_bpe"]
    for smaller, larger in re.findall(
        r"\((\d+, \d+)\)\$ (?:comes )?before \$\((\d+, \d+)\)", text
    ):
        assert tuple(map(int, smaller.split(", "))) < tuple(map(int, larger.split(", ")))
    assert len(re.findall(r"before \$\(", text)) == 2
    assert (99, 100) < (256, 99)
    assert b"c" > b"ab"  # by bytes the pair of token 256 would come first


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""
    question = by_id("solutions")["about_per_byte"]
    answer, rubric = by_id("solutions")["per_byte"], " ".join(TOKENS.written[0].rubric)
    text, n_bytes = TASKS["decode"].reference([0xC3, 0xA9, *b"abc"], [])
    assert (text, n_bytes) == ("éabc", 5)
    decoded_alone = sum(
        len(piece.decode(errors="replace").encode()) for piece in (b"\xc3", b"\xa9", b"abc")
    )
    per_byte = [f"{6 / math.log(2) / n:.3f}" for n in (n_bytes, decoded_alone)]
    assert per_byte == ["1.731", "0.962"]
    assert per_byte[1] in question
    models = [f"{math.log2(3):.3f}", f"{40 * math.log2(12) / 100:.3f}"]
    assert models == ["1.585", "1.434"]
    for number in (*per_byte, *models):
        assert number in answer
        assert number in rubric
    assert f"{math.log2(12):.3f}" in answer
    merges = [(98, 99), (97, 98)]
    right = TASKS["encode"].reference("abc", merges)
    wrong = TASKS["encode"].variant("abc", merges, wrong={"left_to_right"})
    for ids in (right, wrong):
        assert ", ".join(map(str, ids)) in answer
        assert ", ".join(map(str, ids)) in rubric
        assert TASKS["decode"].reference(ids, merges)[0] == "abc"
    ids, dX, E = np.array([5, 2, 5, 5]), np.array([[1.0], [3], [2], [4]]), np.zeros((6, 1))
    dE = TASKS["embed_backward"].reference(dX, ids, E, -1)[:, 0]
    last = TASKS["embed_backward"].variant(dX, ids, E, -1, wrong={"last_one_only"})[:, 0]
    assert (dE[5], dE[2], last[5], last[2]) == (7, 3, 4, 3)
    assert "= 7" in answer
    assert "= 7" in rubric
