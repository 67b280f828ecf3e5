"""All assignments: no wrong answer survives, none is misnamed, right ones pass.

What holds for one assignment alone is in ``test_exercises_<name>*.py``.
"""

from importlib import import_module

import numpy as np
import pytest
from exercise_tools import (
    Exercises,
    draw,
    in_single_precision,
    map_arrays,
    replies,
    right_value,
)

from seqlib.exercises import ASSIGNMENTS
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.kinds import reference_reply
from seqlib.judge.run import agree

EXERCISES = {name: Exercises(name) for name in ASSIGNMENTS}
STYLES = {name: import_module(f"styles.{name}").STYLES for name in ASSIGNMENTS}
AFRESH = {name: import_module(f"written_afresh.{name}").AFRESH for name in ASSIGNMENTS}
TASKS = {task.id: task for e in EXERCISES.values() for task in e.record.tasks}
QUICK = {name: task for name, task in TASKS.items() if task.kind != "training"}
SEEDS = (1, 2)  # of right answers; wrong ones are judged with the first


def by_task(*tables):
    """Return the entries of tables by assignment and function, by the id of the task."""
    return {
        f"{assignment}.{function}": entries
        for table in tables
        for assignment, functions in table.items()
        for function, entries in functions.items()
    }


def result_of(task_id, answer, seed=1, **options):
    assignment, function = task_id.split(".")
    return EXERCISES[assignment].result_of(function, answer, seed, **options)


def slow_if_trained(task_id, *others):
    """Return parameters of a test; one that trains a model takes long."""
    marks = () if task_id in QUICK else pytest.mark.slow
    return pytest.param(task_id, *others, marks=marks)


def name_of(value):
    return getattr(value, "__name__", value)


# Right answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", QUICK)
def test_the_variant_without_a_switch_is_the_reference(name, seed):
    task = TASKS[name]
    right = [reference_reply(task, case) for case in draw(task, seed)]
    varied = replies(task, task.variant, seed)
    assert all(agree(task, *pair) and pair[1].ok for pair in zip(right, varied, strict=True))


RIGHT = [(name, style) for name, styles in by_task(STYLES).items() for style in styles]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("name", "style"), [pair for pair in RIGHT if pair[0] in QUICK], ids=name_of
)
def test_every_right_style_gets_all_points(name, style, precision, seed):
    function = style if precision == "float64" else in_single_precision(style)
    result = result_of(name, function, seed)
    assert result.score == TASKS[name].points, result.lines()
    assert result.notes == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "style"), [pair for pair in RIGHT if pair[0] not in QUICK], ids=name_of
)
def test_every_right_training_gets_all_points(name, style):
    """Its float32 and its own seed are part of the answer."""
    result = result_of(name, style)
    assert result.score == TASKS[name].points, result.lines()


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_there_are_three_styles_for_every_task(assignment):
    assert EXERCISES[assignment].tasks.keys() == STYLES[assignment].keys()
    assert min(len(styles) for styles in STYLES[assignment].values()) >= 3


# Wrong answers

MISTAKES = [
    slow_if_trained(name, m.name) for name, task in TASKS.items() for m in task.misconceptions
]


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_misconception_loses_points_and_is_named_as_itself(name, mistake):
    task = TASKS[name]
    result = result_of(name, function_of(task, mistake))
    assert result.score < task.points
    assert result.diagnosis.kind == "mistake"
    assert result.diagnosis.names == (mistake,)


# The fewest misconceptions of a task, by assignment; tasks that differ from it.
FEWEST = dict.fromkeys(ASSIGNMENTS, 8) | {"rnn": 3, "attention": 3, "masks": 12}
FEWEST_OF = {
    **dict.fromkeys(
        (
            "rnn.token_losses",
            "rnn.masked_cross_entropy",
            "rnn.next_token_batches",
            "rnn.rnn_forward",
            "attention.scaled_dot_product_attention",
            "attention.multi_head_attention",
        ),
        8,
    ),
    **dict.fromkeys(
        (
            "tokens.train_bpe",
            "tokens.encode",
            "tokens.embed_backward",
            "tokens.sinusoidal_positions",
        ),
        10,
    ),
    "decoder.train_model": 6,  # no more mistakes show in what was trained
}


@pytest.mark.parametrize("name", TASKS)
def test_there_are_enough_misconceptions(name):
    fewest = FEWEST_OF.get(name, FEWEST[name.split(".")[0]])
    assert len(TASKS[name].misconceptions) >= fewest


WRITTEN = [
    slow_if_trained(name, f, mistake)
    for name, pairs in by_task(AFRESH).items()
    for f, mistake in pairs.items()
]


@pytest.mark.parametrize(("name", "function", "mistake"), WRITTEN, ids=name_of)
def test_a_mistake_written_afresh_is_named_alike(name, function, mistake):
    result = result_of(name, function)
    assert result.score < TASKS[name].points
    assert result.diagnosis.kind == "mistake", result.lines()
    assert result.diagnosis.names == (mistake,)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_two_or_more_mistakes_of_every_task_are_written_afresh(assignment):
    assert EXERCISES[assignment].tasks.keys() == AFRESH[assignment].keys()
    assert min(len(mistakes) for mistakes in AFRESH[assignment].values()) >= 2


SAMPLED = [
    (name, pair)
    for name, task in QUICK.items()
    for pair in np.random.default_rng(7).permutation(pairs_of(task))[:8].tolist()
]


@pytest.mark.parametrize(
    ("name", "pair"), SAMPLED, ids=lambda v: "+".join(v) if isinstance(v, list) else v
)
def test_two_mistakes_together_are_named_or_one_that_gives_the_same_answers(name, pair):
    """A named mistake, or pair, must give what the student gave; never a false name."""
    task = TASKS[name]
    made = function_of(task, *pair)
    result = result_of(name, made)
    assert result.score < task.points
    if result.diagnosis is None:  # several pairs give these answers, none has to be named
        assert task.kind == "student_test" or name.startswith("decoder.")
        return
    if set(result.diagnosis.names) == set(pair):
        return
    assert result.diagnosis.kind in ("mistake", "either", "partial")
    if result.diagnosis.kind == "partial":
        assert set(result.diagnosis.names) <= set(pair)
        return
    either = result.diagnosis.kind == "either"
    names = result.diagnosis.names[:1] if either else result.diagnosis.names
    named = replies(task, function_of(task, *names), 3)
    for one, other in zip(named, replies(task, made, 3), strict=True):
        assert agree(task, one, other)
        assert one.error == other.error


# Answers without content


def uniform(array):
    return np.full(np.shape(array), 1 / np.shape(array)[-1] if np.ndim(array) else 0.5)


def tiny_noise(array):
    return 1e-3 * np.random.default_rng(0).standard_normal(np.shape(array))


def filled(fill):
    """Return the maker of an answer that has the right shapes and other numbers."""
    return lambda task: lambda *args: map_arrays(fill, right_value(task, args))


FOR_ALL = {
    "all_arguments": lambda task: lambda *args: args,
    "one_number": lambda task: lambda *args: 1.0,
}
UNIFORM = {"uniform": filled(uniform)}
VERDICTS = {
    "true": lambda task: lambda *args: True,
    "false": lambda task: lambda *args: False,
    "tiny_noise": filled(tiny_noise),
}
PARTS = {
    "fives": filled(lambda x: 0 * x + 5),
    "two_arguments": lambda task: lambda *args: args[:2],
    "first_argument_twice": lambda task: lambda *args: (args[0], args[0]),
}
# What comes near a right answer to some task of an assignment, for all of its tasks.
NEAR = {
    "rnn": UNIFORM,
    "attention": UNIFORM,
    "bptt": VERDICTS,
    "masks": VERDICTS,
    "layers": PARTS,
}
EMPTY = {
    (name, kind): answer
    for name, task in TASKS.items()
    for kind, answer in (
        *degenerate_answers(task).items(),
        *((kind, make(task)) for kind, make in FOR_ALL.items()),
        *((kind, make(task)) for kind, make in NEAR.get(name.split(".")[0], {}).items()),
    )
}


@pytest.mark.parametrize(("name", "answer"), EMPTY)
def test_an_answer_without_content_gets_nothing(name, answer):
    """Most call the reference for its shapes, so what that calls is not refused here."""
    result = result_of(name, EMPTY[name, answer], refusing=False)
    assert result.score == 0
    found = result.diagnosis
    if answer == "zeros" and name in QUICK:
        assert found is None or found.kind == "property", found


@pytest.mark.parametrize("name", TASKS)
def test_an_exception_gets_nothing_and_is_shown(name):
    def function(*args):
        raise IndexError("list index out of range")

    result = result_of(name, function)
    assert result.score == 0
    assert "IndexError: list index out of range" in result.criteria[0].message
