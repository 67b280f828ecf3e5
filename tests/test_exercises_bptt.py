"""The assignment ``bptt``: no wrong answer survives, none is misnamed, right ones pass."""

import importlib
import inspect

import numpy as np
import pytest
from styles.bptt import STYLES
from written_afresh.bptt import AFRESH

import seqlib.np as snp
from seqlib.exercises import bptt
from seqlib.judge.degenerate import degenerate_answers
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted, observe, reference_reply
from seqlib.judge.run import agree
from seqlib.subject.inprocess import InProcess
from seqlib.subject.values import Handle

BPTT = bptt.ASSIGNMENT
TASKS = {task.function: task for task in BPTT.tasks}
SEEDS = (1, 2)  # of right answers; wrong ones are judged with the first


def result_of(name, function, seed=1):
    return judge(TASKS[name], InProcess(function), seed)


def draw(task, seed=1):
    return task.cases(np.random.default_rng(seed))


def passed(result):
    return {c.name for c in result.criteria if c.passed}


def replies(task, function, seed):
    return [observe(task, Trusted(function), case) for case in draw(task, seed)]


# Right answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TASKS)
def test_the_variant_without_a_switch_is_the_reference(name, seed):
    task = TASKS[name]
    right = [reference_reply(task, case) for case in draw(task, seed)]
    varied = replies(task, task.variant, seed)
    assert all(agree(task, *pair) and pair[1].ok for pair in zip(right, varied, strict=True))


RIGHT = [(name, style) for name, styles in STYLES.items() for style in styles]


def in_single_precision(function):
    """Return the same style working in float32, from its arguments to its result."""

    def single(value):
        if isinstance(value, list | tuple):
            return type(value)(map(single, value))
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
    for pair in np.random.default_rng(7).permutation(pairs_of(task))[:6].tolist()
]


@pytest.mark.parametrize(("name", "pair"), SAMPLED)
def test_two_mistakes_together_are_named_or_one_that_gives_the_same_answers(name, pair):
    """A named mistake, or pair, must give what the student gave; never a false name."""
    task = TASKS[name]
    made = function_of(task, *pair)
    result = result_of(name, made)
    assert result.score < task.points
    if result.diagnosis is None:  # several pairs give these answers, none has to be named
        assert task.kind == "student_test"
        return
    if set(result.diagnosis.names) == set(pair):
        return
    assert result.diagnosis.kind in ("mistake", "either", "partial")
    if result.diagnosis.kind == "partial":
        assert set(result.diagnosis.names) <= set(pair)
        return
    named = function_of(task, *result.diagnosis.names[:1])
    if result.diagnosis.kind == "mistake":
        named = function_of(task, *result.diagnosis.names)
    both = zip(replies(task, named, 3), replies(task, made, 3), strict=True)
    assert all(agree(task, *pair) for pair in both)


def right_value(task, args):
    request = {"do": "call", "args": list(args), "kwargs": {}}
    return Trusted(task.reference).perform(request).value


def map_arrays(f, value):
    return (
        type(value)(map_arrays(f, v) for v in value)
        if isinstance(value, list | tuple)
        else f(value)
    )


EMPTY = {
    (name, kind): function
    for name, task in TASKS.items()
    for kind, function in (
        *degenerate_answers(task).items(),
        ("all_arguments", lambda *args: args),
        ("one_number", lambda *args: 1.0),
        ("true", lambda *args: True),
        ("false", lambda *args: False),
        (
            "tiny_noise",
            lambda *args, task=task: map_arrays(
                lambda a: 1e-3 * np.random.default_rng(0).standard_normal(np.shape(a)),
                right_value(task, args),
            ),
        ),
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


# What a student finds in the library, under the name of each task.
LIBRARY = {
    "rnn_step_backward": snp.rnn_cell_backward,
    "rnn_backward": snp.rnn_backward,
    "rnn_truncated_backward": snp.rnn_truncated_backward,
    "state_jacobians": snp.rnn_jacobian,
    "clip_grad_norm": snp.clip_grad_norm,
    "gradient_is_right": importlib.import_module("seqlib.testing").check_backward,
}


@pytest.mark.parametrize("name", TASKS)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    copied = pasted(LIBRARY[name])
    assert result_of(name, copied).score < TASKS[name].points / 2


def pasted(function):
    """Return the same source as another function, which no list of shortcuts knows."""
    space = dict(vars(inspect.getmodule(function)))
    source = inspect.getsource(inspect.getmodule(function))
    exec(compile(source, "<pasted>", "exec"), space)
    return space[function.__name__]


def batch_first(array):
    return np.swapaxes(array, 0, 1)


def library_backward(dH, dh_T, H, h0, X, W_hh, W_xh):
    """Call the library, with a bias that is found from the states."""
    b_h = np.arctanh(H[0, 0]) - W_hh @ h0[0] - W_xh @ X[0, 0]
    dX, dh0, dW_xh, dW_hh, db_h, _ = snp.rnn_backward(
        (batch_first(dH), dh_T), batch_first(X), h0, W_xh, W_hh, b_h, None
    )
    return dh0, batch_first(dX), dW_hh, dW_xh, db_h


def library_clip(grads, c):
    return snp.clip_grad_norm(grads, max_norm=c)


@pytest.mark.parametrize(
    ("name", "function"),
    [("rnn_backward", library_backward), ("clip_grad_norm", library_clip)],
)
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name, function):
    result = result_of(name, function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize(
    "name",
    sorted(
        s
        for s in {*BPTT.grants, *(s for t in BPTT.tasks for s in t.shortcuts)}
        if s.startswith("seqlib.")
    ),
)
def test_what_is_granted_or_refused_exists(name):
    """A refusal names the module that defines a function: there it is, granted or not."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert callable(found)
    assert name in BPTT.grants or found.__module__ == module


# Partial credit: one mistake costs once


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        (
            "gradient_is_right",
            ["nan_passes"],
            {"values", "one_entry", "sizes", "rounding", "minimum"},
        ),
        ("gradient_is_right", ["tolerance_wide"], {"values", "disguised"}),
        ("gradient_is_right", ["no_two"], set()),
        ("rnn_step_backward", ["W_hh_transposed"], {"dx", "dW_hh", "dW_xh", "db_h"}),
        ("rnn_step_backward", ["bias_not_summed"], {"dh_prev", "dx", "dW_hh", "dW_xh"}),
        (
            "rnn_backward",
            ["last_state_ignored"],
            {"values", "dh0", "dX", "dW_hh", "dW_xh", "db_h"},
        ),
        ("rnn_backward", ["h0_is_last"], {"dh0", "dX", "dW_xh", "db_h"}),
        ("rnn_backward", ["time_mean"], {"dh0", "dX"}),
        ("rnn_truncated_backward", ["k2_ignored"], {"values", "dW_xh", "db_h"}),
        (
            "rnn_truncated_backward",
            ["dh0_of_every_block"],
            {"values", "dW_xh", "db_h", "overlap", "whole"},
        ),
        ("rnn_truncated_backward", ["state_zeroed"], {"dW_xh", "db_h", "dh0"}),
        ("state_jacobians", ["norm_frobenius"], {"values"}),
        ("state_jacobians", ["transposed"], {"norms"}),
        ("clip_grad_norm", ["always"], {"values", "norm", "nonfinite", "small"}),
        ("clip_grad_norm", ["by_value"], {"norm"}),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


def test_a_wrong_step_costs_nothing_in_the_tasks_that_call_it():
    source = """
def rnn_step_backward(dh, h, h_prev, x, W_hh, W_xh):
    return 5 * dh, 5 * x, 5 * W_hh, 5 * W_xh, 5 * dh[0]

def rnn_backward(dH, dh_T, H, h0, X, W_hh, W_xh):
    before, dX, total, dh = [h0, *H[:-1]], [], [0, 0, 0], dh_T
    for t in reversed(range(len(X))):
        dh, dx, *grads = rnn_step_backward(dH[t] + dh, H[t], before[t], X[t], W_hh, W_xh)
        dX.append(dx)
        total = [a + g for a, g in zip(total, grads)]
    return dh, dX[::-1], *total
"""
    space = {}
    exec(source, space)
    assert result_of("rnn_backward", space["rnn_backward"]).score == 25
    assert result_of("rnn_step_backward", space["rnn_step_backward"]).score == 0


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11: a backward pass that adds what it carries to the gradients it is given."""

    def backward(dH, dh_T, H, h0, X, W_hh, W_xh):
        dH[-1] += dh_T
        return TASKS["rnn_backward"].reference(dH, 0 * dh_T, H, h0, X, W_hh, W_xh)

    result = result_of("rnn_backward", backward)
    assert result.score == 25
    assert any("changes its argument dH in place" in note for note in result.notes)


def test_a_checker_that_calls_the_loss_too_often_is_told_so():
    def checker(E, theta, g):
        return sum(E(theta) for _ in range(101)) > 0

    result = result_of("gradient_is_right", checker)
    assert result.score == 0
    assert "the model may be called at most 100 times" in result.criteria[0].message


def test_losses_of_the_checker_have_the_gradients_that_they_claim():
    """Against differences of another order and step, and at most 9 parameters each."""
    right = 0
    for case in draw(TASKS["gradient_is_right"]):
        loss, theta, g = case.args
        assert isinstance(loss, Handle)
        assert theta.size <= 9
        if not case.label.startswith(("a right", "right")):
            continue
        right += 1
        at, h, numeric = theta.astype(float), 1e-4 * np.abs(theta).max(), []
        for one in np.eye(theta.size):
            v = h * one.reshape(theta.shape)
            f = [loss.function(at + s * v) for s in (-2, -1, 1, 2)]
            numeric.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h))
        error = np.abs(np.array(numeric) - g.ravel()).max()
        assert error <= 1e-6 * np.abs(g).max()
    assert right >= 7
