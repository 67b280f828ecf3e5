"""The assignment ``layers`` alone: what the library may do, and what is paid."""

import importlib

import numpy as np
import pytest
from exercise_tools import Exercises, pasted

import seqlib.np as snp

EXERCISES = Exercises("layers")
LAYERS = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


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
