"""The assignment ``gates``: no wrong answer survives, none is misnamed, right ones pass."""

import importlib
import inspect

import numpy as np
import pytest
import torch
from styles.gates import STYLES
from written_afresh.gates import AFRESH

import seqlib.np as snp
from seqlib.exercises import get_assignment
from seqlib.exercises.record import Tolerance
from seqlib.judge.compare import difference
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

GATES = get_assignment("gates")
TASKS = {task.function: task for task in GATES.tasks}
SEEDS = (1, 2)  # of right answers; wrong ones are judged with the first


def result_of(name, function, seed=1):
    return judge(TASKS[name], InProcess(function), seed)


def draw(task, seed=1):
    return task.cases(np.random.default_rng(seed))


def passed(result):
    return {c.name for c in result.criteria if c.passed}


# Right answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TASKS)
def test_the_variant_without_a_switch_is_the_reference(name, seed):
    task = TASKS[name]
    for case in draw(task, seed):
        expected = task.reference(*case.args)
        assert difference(expected, task.variant(*case.args), task.tolerance) is None


RIGHT = [(name, style) for name, styles in STYLES.items() for style in styles]


def in_single_precision(function):
    """Return the same style working in float32, from its arguments to its result."""

    def single(value):
        if isinstance(value, list | tuple):
            return type(value)(map(single, value))
        if isinstance(value, torch.Tensor):
            return value.float()
        return value.astype(np.float32) if isinstance(value, np.ndarray) else value

    return lambda *args: single(function(*map(single, args)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("name", "style"), RIGHT, ids=lambda v: getattr(v, "__name__", v))
def test_every_right_style_gets_all_points(name, style, precision, seed):
    function = style if precision == "float64" else in_single_precision(style)
    result = result_of(name, function, seed)
    assert result.score == TASKS[name].points, result.lines()
    assert result.notes == ()


def test_there_are_three_styles_for_every_task():
    assert TASKS.keys() == STYLES.keys()
    assert min(len(styles) for styles in STYLES.values()) >= 3


# Wrong answers

MISTAKES = [(name, m.name) for name, task in TASKS.items() for m in task.misconceptions]


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_misconception_loses_points_and_is_named_as_itself(name, mistake):
    task = TASKS[name]
    result = result_of(name, function_of(task, mistake))
    assert result.score < task.points
    assert result.diagnosis.kind == "mistake"
    assert result.diagnosis.names == (mistake,)


def test_there_are_enough_misconceptions():
    counts = {name: len(task.misconceptions) for name, task in TASKS.items()}
    assert min(counts.values()) >= 8


WRITTEN = [(name, f, mistake) for name, pairs in AFRESH.items() for f, mistake in pairs.items()]


@pytest.mark.parametrize(
    ("name", "function", "mistake"), WRITTEN, ids=lambda v: getattr(v, "__name__", v)
)
def test_a_mistake_written_afresh_is_named_alike(name, function, mistake):
    result = result_of(name, function)
    assert result.score < TASKS[name].points
    assert result.diagnosis.kind == "mistake", result.lines()
    assert result.diagnosis.names == (mistake,)


def test_two_or_more_mistakes_of_every_task_are_written_afresh():
    assert TASKS.keys() == AFRESH.keys()
    assert min(len(mistakes) for mistakes in AFRESH.values()) >= 2


SAMPLED = [
    (name, pair)
    for name, task in TASKS.items()
    for pair in np.random.default_rng(7).permutation(pairs_of(task))[:8].tolist()
]


@pytest.mark.parametrize(("name", "pair"), SAMPLED)
def test_two_mistakes_together_are_named_or_one_that_gives_the_same_answers(name, pair):
    """A named mistake, or pair, must give what the student gave; never a false name."""
    task = TASKS[name]
    made = function_of(task, *pair)
    result = result_of(name, made)
    assert result.score < task.points
    if set(result.diagnosis.names) == set(pair):
        return
    assert result.diagnosis.kind in ("mistake", "either", "partial")
    if result.diagnosis.kind == "partial":
        assert set(result.diagnosis.names) <= set(pair)
        return
    named = function_of(task, *result.diagnosis.names)
    for case in draw(task, seed=3):
        assert difference(named(*case.args), made(*case.args), Tolerance()) is None


EMPTY = {
    (name, kind): function
    for name, task in TASKS.items()
    for kind, function in (
        *degenerate_answers(task).items(),
        ("all_arguments", lambda *args: args),
        ("one_number", lambda *args: 1.0),
    )
}


@pytest.mark.parametrize(("name", "answer"), EMPTY)
def test_an_answer_without_content_gets_nothing(name, answer):
    assert result_of(name, EMPTY[name, answer]).score == 0


@pytest.mark.parametrize("name", TASKS)
def test_an_exception_gets_nothing_and_is_shown(name):
    def function(*args):
        raise IndexError("list index out of range")

    result = result_of(name, function)
    assert result.score == 0
    assert "IndexError: list index out of range" in result.criteria[0].message


# What the chapters show, by the task that it resembles.
SHOWN = {
    "lstm_step": snp.lstm_cell,
    "lstm_sequence": snp.lstm,
    "lstm_step_backward": snp.lstm_cell_backward,
    "gru_step": snp.gru_cell,
    "gru_step_backward": snp.gru_cell_backward,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    """The notes' matrices do not fit the library's functions, and its states are packed."""
    copied = pasted(SHOWN[name])
    assert result_of(name, copied).score < TASKS[name].points / 2
    first = len(inspect.signature(copied).parameters)
    assert result_of(name, lambda *args: copied(*args[:first])).score < TASKS[name].points / 2


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    space = dict(vars(inspect.getmodule(function)))
    source = inspect.getsource(inspect.getmodule(function))
    exec(compile(source, "<pasted>", "exec"), space)
    return space[function.__name__]


def step_by_library(x, h, C, *weights):
    return snp.lstm_cell(x, h, C, *snp.lstm_from_notes(*weights))


def sequence_by_library(X, h, C, *weights):
    y, _, _ = snp.lstm(X, h, C, *snp.lstm_from_notes(*weights))
    return y, y


def gru_by_library(x, h, W_r, W_z, W):
    return snp.gru_cell(x, h, *snp.gru_from_notes(W_r, W_z, W))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("lstm_step", step_by_library),
        ("lstm_sequence", sequence_by_library),
        ("gru_step", gru_by_library),
    ],
)
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name, function):
    result = result_of(name, function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


def test_a_step_of_the_library_is_granted_over_a_sequence():
    def sequence(X, h, C, *weights):
        states = []
        for t in range(X.shape[1]):
            h, C = step_by_library(X[:, t], h, C, *weights)
            states.append((h, C))
        return tuple(np.stack(part, axis=1) for part in zip(*states, strict=True))

    assert result_of("lstm_sequence", sequence).score == 10


@pytest.mark.parametrize(
    "name", sorted({*GATES.grants, *(s for t in GATES.tasks for s in t.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """A refusal names the module that defines a function: there it is, granted or not."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert callable(found)
    assert name in GATES.grants or module == "torch.nn" or found.__module__ == module


# Partial credit: one mistake costs once

LSTM_GRADIENTS = {c.name for c in TASKS["lstm_step_backward"].criteria[1:12]}


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("lstm_step", ["no_tanh"], {"cell"}),
        ("lstm_step", ["output_gate_tanh"], {"cell"}),
        ("lstm_step", ["naive_sigmoid"], {"values", "cell", "edge"}),
        ("lstm_step", ["forget_input_exchanged"], set()),
        ("gru_step", ["naive_tanh"], {"values", "edge"}),
        ("lstm_step_backward", ["dC_prev_without_f"], LSTM_GRADIENTS - {"dc_prev"}),
        ("lstm_step_backward", ["one_bias"], LSTM_GRADIENTS - {"db_i", "db_o"}),
        ("lstm_step_backward", ["later_dC_missing"], {"dw_o", "db_o"}),
        (
            "lstm_step_backward",
            ["candidate_without_i"],
            LSTM_GRADIENTS - {"dx", "dh_prev", "dw_c", "db_c"},
        ),
        ("gru_step_backward", ["direct_path_missing"], {"dx", "dw_r", "dw_z", "dw"}),
        ("gru_step_backward", ["matrix_of_h"], {"dx", "dh_prev", "dw_r", "dw_z"}),
        ("count_parameters", ["gru_biases"], {"values"}),
        ("count_parameters", ["no_biases"], {"gru"}),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


@pytest.mark.parametrize(("name", "points"), [("lstm_step", 20), ("gru_step", 15)])
def test_an_overflow_that_only_warns_costs_nothing(name, points):
    """1 / (1 + exp(1000)) is 0, and right; NumPy warns on the way."""
    style = next(f for f in STYLES[name] if f.__name__ in ("written_lstm", "split_gru"))
    args = next(c for c in draw(TASKS[name]) if c.tag == "saturated").args
    with pytest.warns(RuntimeWarning, match="overflow"):
        style(*args)
    assert result_of(name, style).score == points


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11: a backward pass that adds into the gradient it is given."""

    def backward(dh, dC, *args):
        gradients = TASKS["lstm_step_backward"].reference(dh, dC, *args)
        dC += dh
        return gradients

    result = result_of("lstm_step_backward", backward)
    assert result.score == 25
    assert any("changes its argument dC in place" in note for note in result.notes)
