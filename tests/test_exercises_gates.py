"""The assignment ``gates`` alone: what the library may do, and what is paid."""

import importlib
import inspect

import numpy as np
import pytest
from exercise_tools import Exercises, draw, passed, pasted
from styles.gates import STYLES

import seqlib.np as snp
from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("gates")
GATES = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


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
