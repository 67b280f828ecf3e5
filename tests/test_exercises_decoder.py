"""The assignment ``decoder`` alone: what the library may do, and what is paid."""

import importlib

import numpy as np
import pytest
import torch
from exercise_tools import Exercises, draw, passed, pasted
from styles.decoder import STYLES

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.kinds import observe, reference_reply
from seqlib.judge.run import agree
from seqlib.subject.inprocess import InProcess

EXERCISES = Exercises("decoder")
DECODER = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


def test_a_model_that_computes_in_float64_gives_the_same_answers():
    """The weights come in float32; a student may go on in float64."""

    def model(*sizes):
        built = STYLES["LanguageModel"][0](*sizes)
        forward = built.forward

        def widened(ids):
            built.double()
            return forward(ids)

        built.forward = widened
        return built

    task = TASKS["LanguageModel"]
    for case in (c for c in draw(task) if c.kwargs["cotangent"] is None):
        double = observe(task, InProcess(model), case)
        assert double.value["output"].dtype == np.float64
        assert agree(task, reference_reply(task, case), double)


def test_most_pairs_are_named():
    sampled = [
        (name, pair)
        for name, task in TASKS.items()
        if task.kind != "training"
        for pair in np.random.default_rng(7).permutation(pairs_of(task))[:5].tolist()
    ]
    named = 0
    for name, pair in sampled:
        diagnosis = result_of(name, function_of(TASKS[name], *pair)).diagnosis
        named += diagnosis is not None and set(diagnosis.names) == set(pair)
    assert named >= 0.6 * len(sampled)


def test_a_model_without_layers_gets_nothing():
    """A table of pairs has a good first loss and sees no later token."""

    def model(vocab_size, context, d, n_layer, n_head):
        return STYLES["LanguageModel"][0](vocab_size, context, d, 0, n_head)

    def other(*sizes):
        built = STYLES["LanguageModel"][0](*sizes)
        built.forward = lambda ids: built.E[ids] @ built.E.T
        return built

    assert result_of("LanguageModel", model).score == 0
    assert result_of("LanguageModel", other).score == 0


def test_a_model_with_other_parameters_is_told_which_it_needs():
    def module_for_E(*sizes):
        built = STYLES["LanguageModel"][0](*sizes)
        del built.E
        built.E = torch.nn.Embedding(sizes[0], sizes[2])
        return built

    def untied(*sizes):
        built = STYLES["LanguageModel"][0](*sizes)
        built.head = torch.nn.Linear(sizes[2], sizes[0], bias=False)
        return built

    for build, phrase in (
        (module_for_E, "lacks E and has E.weight besides"),
        (untied, "parameters of the text: it has head.weight besides"),
    ):
        assert phrase in result_of("LanguageModel", build).criteria[0].message


# The answer is one page away


LIBRARY = {
    "LanguageModel": [spt.DecoderLM],
    "next_token_loss": [snp.cross_entropy, spt.cross_entropy],
    "next_token_distribution": [snp.next_token_distribution, spt.next_token_distribution],
    "generate": [snp.generate, spt.generate],
    "read_with_cache": [spt.attention.scaled_dot_product_attention],
}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    for function in LIBRARY[name]:
        assert result_of(name, pasted(function)).score < TASKS[name].points / 2


def test_the_librarys_distribution_with_its_star_removed_gets_less_than_all():
    """What is missing is the requirement that this task adds."""
    function = pasted(snp.next_token_distribution)
    result = result_of(
        "next_token_distribution",
        lambda z, temperature, top_k, top_p, allowed: function(
            z, temperature=temperature, top_k=top_k, top_p=top_p
        ),
    )
    assert passed(result) == {c.name for c in result.criteria} - {"allowed"}
    assert result.diagnosis.names == ("allowed_ignored",)


def test_the_librarys_model_is_refused_where_it_is_the_answer():
    def model(vocab_size, context, d, n_layer, n_head):
        config = spt.DecoderConfig(vocab_size, context, dim=d, n_layer=n_layer, n_head=n_head)
        return spt.DecoderLM(config)

    result = result_of("LanguageModel", model)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize(
    "name", sorted({*DECODER.grants, *(s for t in DECODER.tasks for s in t.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """A refusal names the module that defines a function: there it is, granted or not."""
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert callable(found)
    assert name in DECODER.grants or found.__module__ == module
