"""The assignment ``masks`` alone: what the library may do, and what is paid."""

import importlib
import re

import numpy as np
import pytest
from exercise_tools import ROOT, Exercises, pasted

import seqlib.np as snp
from seqlib.complexity import attention_cost, layer_cost

EXERCISES = Exercises("masks")
MASKS = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


def test_nothing_is_granted():
    assert MASKS.grants == ()


# What a student finds in the library, under the name of each task; for the leak test it is
# what the chapter shows.
LIBRARY = {
    "padding_mask": [snp.padding_mask, snp.padding_from_lengths],
    "causal_mask": [snp.causal_mask],
    "combine_masks": [snp.to_additive],
    "masked_softmax": [snp.softmax, snp.attention_weights],
    "masked_softmax_backward": [snp.softmax_backward, snp.attention_weights_backward],
    "layer_cost": [layer_cost, attention_cost],
}
PASTED = [(name, f) for name, functions in LIBRARY.items() for f in functions]


@pytest.mark.parametrize(("name", "function"), PASTED, ids=lambda v: getattr(v, "__name__", v))
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name, function):
    assert result_of(name, pasted(function)).score < TASKS[name].points / 2


def test_the_test_of_the_chapter_under_the_name_of_the_task_gets_less_than_half():
    """It changes tokens of one array of floats, and knows nothing of a batch."""
    page = (ROOT / "book" / "masks.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^def leaks\(.*?(?=\n\n\n)", page, re.MULTILINE | re.DOTALL)
    space = {"np": np, "rng": np.random.default_rng(0)}
    exec(source, space)

    def leak_test(model, ids, rng):
        return bool(np.triu(space["leaks"](lambda x: model(x)), 1).any())

    assert result_of("leak_test", space["leaks"]).score == 0
    assert result_of("leak_test", leak_test).score == 0


def library_softmax(S, M):
    return snp.softmax(S + M)


def library_weights(S, M):
    return snp.attention_weights(S, np.sqrt(S.shape[-1]) * np.eye(S.shape[-1]), mask=M)


def library_causal(n_q, n_k, past):
    return snp.causal_mask(past + n_q, n_k)[past:]


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("masked_softmax", library_softmax),
        ("masked_softmax", library_weights),
        ("causal_mask", library_causal),
    ],
)
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name, function):
    result = result_of(name, function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize("name", sorted({s for t in MASKS.tasks for s in t.shortcuts}))
def test_what_is_refused_exists(name):
    """A refusal names the module that defines a function."""
    module, _, function = name.rpartition(".")
    assert getattr(importlib.import_module(module), function).__module__ == module
