"""The assignment ``layers``: no wrong answer survives, none is misnamed, right ones pass."""

import importlib
import inspect

import numpy as np
import pytest
import torch
from styles.layers import STYLES
from written_afresh.layers import AFRESH

import seqlib.np as snp
from seqlib.exercises import get_assignment
from seqlib.exercises.record import Tolerance
from seqlib.judge.compare import difference
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted, observe
from seqlib.subject.inprocess import InProcess

LAYERS = get_assignment("layers")
TASKS = {task.function: task for task in LAYERS.tasks}
SEEDS = (1, 2)  # of right answers; wrong ones are judged with the first


def result_of(name, function, seed=1):
    return judge(TASKS[name], InProcess(function), seed)


def reply(name, function, case):
    """Run a function on a case whose attention and MLP are handles."""
    return observe(TASKS[name], Trusted(function), case)


def draw(name, seed=1):
    return TASKS[name].cases(np.random.default_rng(seed))


# Right answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TASKS)
def test_the_variant_without_a_switch_is_the_reference(name, seed):
    task = TASKS[name]
    for case in draw(name, seed):
        expected, got = (reply(name, f, case) for f in (task.reference, task.variant))
        assert expected.ok
        assert got.ok
        assert difference(expected.value, got.value, task.tolerance) is None


RIGHT = [(name, style) for name, styles in STYLES.items() for style in styles]


def in_single_precision(function):
    """Return the same style working in float32, from its arguments to its result."""

    def single(value):
        if isinstance(value, list | tuple):
            return type(value)(map(single, value))
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype == torch.float64 else value
        is_double = isinstance(value, np.ndarray) and value.dtype == np.float64
        return value.astype(np.float32) if is_double else value

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
    assert min(len(task.misconceptions) for task in TASKS.values()) >= 8


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
    for pair in np.random.default_rng(7).permutation(pairs_of(task))[:5].tolist()
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
    for case in draw(name, seed=3):
        one, other = reply(name, named, case), reply(name, made, case)
        assert one.error == other.error
        assert difference(one.value, other.value, Tolerance()) is None


def map_arrays(f, value):
    return (
        type(value)(map_arrays(f, v) for v in value)
        if isinstance(value, tuple | list)
        else f(value)
    )


EMPTY = {
    (name, kind): function
    for name, task in TASKS.items()
    for kind, function in (
        *degenerate_answers(task).items(),
        ("fives", lambda *a, task=task: map_arrays(lambda x: 0 * x + 5, task.reference(*a))),
        ("all_arguments", lambda *args: args[:2]),
        ("first_argument_twice", lambda *args: (args[0], args[0])),
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


LIBRARY = {
    **{name: name for name in TASKS if hasattr(snp, name)},
    "post_norm_layer": "transformer_layer",
    "pre_norm_stack": "transformer_layer",
}


@pytest.mark.parametrize("name", TASKS)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    copied = pasted(getattr(snp, LIBRARY[name]))
    assert result_of(name, copied).score < TASKS[name].points / 2


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_the_librarys_source_with_its_star_removed_gets_less_than_half(name):
    function = pasted(getattr(snp, name))
    result = result_of(name, lambda *args: function(*args[:-1], eps=args[-1]))
    assert result.score < TASKS[name].points / 2
    assert result.diagnosis.names == ("output_alone",)


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    space = dict(vars(inspect.getmodule(function)))
    source = inspect.getsource(inspect.getmodule(function))
    exec(compile(source, "<pasted>", "exec"), space)
    return space[function.__name__]


def with_layer_norm(X, gamma, beta, eps):
    plain = snp.layer_norm(X, np.ones_like(gamma), np.zeros_like(beta), eps=eps)
    return gamma * plain + beta, plain


def with_rms_norm(X, gamma, beta, eps):
    """Use that LayerNorm is RMSNorm of the centred tokens."""
    plain = snp.rms_norm(X - X.mean(-1, keepdims=True), np.ones_like(gamma), eps=eps)
    return gamma * plain + beta, plain


@pytest.mark.parametrize("function", [with_layer_norm, with_rms_norm])
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(function):
    result = result_of("layer_norm", function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


def test_rms_norm_of_the_library_is_refused_where_it_is_the_answer():
    def function(X, gamma, eps):
        wide = X.astype(np.float32) if X.dtype == np.float16 else X
        return snp.rms_norm(X, gamma, eps=eps), snp.rms_norm(wide, np.ones(4), eps=eps)

    assert result_of("rms_norm", function).score == 0


@pytest.mark.parametrize(
    "name", sorted({*LAYERS.grants, *(s for t in LAYERS.tasks for s in t.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """A refusal names the module that defines a function: there it is, granted or not."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert callable(found)
    assert name in LAYERS.grants or found.__module__ == module
