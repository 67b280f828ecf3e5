"""The assignment ``bptt`` alone: what the library may do, and what is paid."""

import importlib

import numpy as np
import pytest
from exercise_tools import Exercises, draw, passed, pasted

import seqlib.np as snp
from seqlib.judge.diagnose import function_of
from seqlib.subject.values import Handle

EXERCISES = Exercises("bptt")
BPTT = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


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
