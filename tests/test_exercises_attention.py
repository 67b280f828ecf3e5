"""The assignment ``attention``: no wrong answer survives, none is misnamed, right ones pass."""

import importlib
import inspect

import numpy as np
import pytest
import torch
from styles.attention import STYLES
from written_afresh.attention import AFRESH

import seqlib.np as snp
from seqlib.exercises import get_assignment
from seqlib.exercises.record import Tolerance
from seqlib.judge.compare import difference
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

ATTENTION = get_assignment("attention")
TASKS = {task.function: task for task in ATTENTION.tasks}
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
    assert min(counts.values()) >= 3
    assert counts["scaled_dot_product_attention"] >= 8
    assert counts["multi_head_attention"] >= 8


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
        one, other = outcome(named, case.args), outcome(made, case.args)
        assert (
            one == other
            if isinstance(one, str)
            else difference(one, other, Tolerance()) is None
        )


def outcome(function, args):
    """Return what a call gives, or the text of its error."""
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except ValueError as error:
            return str(error)


def map_arrays(f, value):
    return tuple(map(f, value)) if isinstance(value, tuple) else f(value)


def uniform(array):
    return np.full(np.shape(array), 1 / np.shape(array)[-1] if np.ndim(array) else 0.5)


EMPTY = {
    (name, kind): function
    for name, task in TASKS.items()
    for kind, function in (
        *degenerate_answers(task).items(),
        ("uniform", lambda *args, task=task: map_arrays(uniform, task.reference(*args))),
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


@pytest.mark.parametrize("name", [n for n in TASKS if hasattr(snp, n)])
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    copied = pasted(getattr(snp, name))
    assert result_of(name, copied).score < TASKS[name].points / 2


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    space = dict(vars(inspect.getmodule(function)))
    source = inspect.getsource(inspect.getmodule(function))
    exec(compile(source, "<pasted>", "exec"), space)
    return space[function.__name__]


@pytest.mark.parametrize("name", ["simple_self_attention", "scaled_dot_product_attention"])
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name):
    def simple(X):
        A = snp.softmax(X @ np.swapaxes(X, -1, -2))
        return A @ X, A

    def scaled(Q, K, V, M=None):
        eye = np.broadcast_to(np.eye(K.shape[-2]), (*K.shape[:-1], K.shape[-2]))
        attend = snp.scaled_dot_product_attention
        return attend(Q, K, V, mask=M), attend(Q, K, eye, mask=M)

    result = result_of(name, simple if name.startswith("simple") else scaled)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize(
    "name", sorted({*ATTENTION.grants, *(s for t in ATTENTION.tasks for s in t.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """A refusal names the module that defines a function: there it is, granted or not."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert callable(found)
    assert name in ATTENTION.grants or found.__module__ == module


def test_the_softmax_of_the_library_is_granted_where_it_is_not_the_answer():
    def scaled(Q, K, V, M=None):
        S = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
        A = snp.softmax(S if M is None else S + M)
        return A @ V, A

    assert result_of("scaled_dot_product_attention", scaled).score == 15


# Partial credit: one mistake costs once


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("simple_self_attention", ["no_shift"], {"values", "weights", "batch"}),
        ("simple_self_attention", ["weights_transposed"], {"weights"}),
        ("scaled_dot_product_attention", ["values_are_keys"], {"weights"}),
        (
            "scaled_dot_product_attention",
            ["empty_row_nan"],
            {"values", "weights", "mask", "large", "batch"},
        ),
        ("scaled_dot_product_attention", ["mask_ignored"], {"values", "weights", "large"}),
        ("scaled_dot_product_attention_backward", ["no_scale_dk"], {"dq", "dv"}),
        ("scaled_dot_product_attention_backward", ["no_scale_dq"], {"dk", "dv"}),
        ("scaled_dot_product_attention_backward", ["softmax_diagonal"], {"dv"}),
        (
            "scaled_dot_product_attention_backward",
            ["weights_unmasked"],
            {"values", "dq", "dk", "dv", "batch"},
        ),
        ("multi_head_attention", ["mask_multiplied"], {"values", "one_head", "widths"}),
        ("multi_head_attention", ["merge_interleaved"], {"one_head"}),
        (
            "multi_head_attention",
            ["all_axes_reversed"],
            {"values", "one_head", "widths", "mask"},
        ),
        ("count_parameters", ["output_bias_width"], {"values"}),
        ("count_parameters", ["bias_always"], set()),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


def test_a_naive_softmax_is_named_beside_another_mistake():
    task = TASKS["scaled_dot_product_attention"]
    result = result_of(task.function, function_of(task, "naive_softmax", "no_scale"))
    assert result.diagnosis.kind == "mistake"
    assert set(result.diagnosis.names) == {"naive_softmax", "no_scale"}


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11: a backward pass that writes into the gradient it is given."""

    def backward(dY, Q, K, V, A):
        gradients = TASKS["scaled_dot_product_attention_backward"].reference(dY, Q, K, V, A)
        dY *= 2
        return gradients

    result = result_of("scaled_dot_product_attention_backward", backward)
    assert result.score == 25
    assert any("changes its argument dY in place" in note for note in result.notes)
