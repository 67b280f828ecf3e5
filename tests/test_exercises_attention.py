"""The assignment ``attention`` alone: what the library may do, and what is paid."""

import importlib

import numpy as np
import pytest
from exercise_tools import Exercises, passed, pasted

import seqlib.np as snp
from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("attention")
ATTENTION = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


@pytest.mark.parametrize("name", [n for n in TASKS if hasattr(snp, n)])
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    copied = pasted(getattr(snp, name))
    assert result_of(name, copied).score < TASKS[name].points / 2


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
