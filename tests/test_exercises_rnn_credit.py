"""The assignment ``rnn``: what the library may do, what is paid, and what a message says."""

import importlib
import sys

import numpy as np
import pytest
import torch
from exercise_tools import Exercises, passed, pasted
from styles.rnn import STYLES

import seqlib.data
import seqlib.np as snp
from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("rnn")
RNN = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


# What the book shows of the library, and the task nearest to it
SHOWN = {
    "token_losses": snp.cross_entropy,
    "masked_cross_entropy": snp.cross_entropy,
    "corpus_perplexity": snp.perplexity,
    "next_token_batches": seqlib.data.contiguous_batches,
    "rnn_step": snp.rnn_cell,
    "rnn_forward": snp.rnn,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    assert result_of(name, pasted(SHOWN[name])).score < TASKS[name].points / 2


def whole_losses(Z, y):
    return snp.cross_entropy(Z, y, reduction="none")


def whole_log_softmax(Z, y):
    return -np.take_along_axis(snp.log_softmax(Z), y[..., None], -1)[..., 0]


def whole_masked(Z, y, ignored=-100):
    tokens = snp.cross_entropy(Z, y, ignore_index=ignored)
    return tokens, tokens


def whole_perplexity(losses, counts):
    nats = np.average(losses, weights=counts)
    return snp.perplexity(nats), snp.bits(nats)


def whole_step(h, x, W, b):
    m = len(b)
    return snp.rnn_cell(x, h, W[:, m:], W[:, :m], b, None)


def whole_forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
    return snp.rnn(x, h_0, W_xh, W_hh, b_h, None, lengths=lengths)


def whole_torch(Z, y):
    losses = torch.nn.functional.cross_entropy(
        torch.from_numpy(Z).movedim(-1, 1), torch.from_numpy(y), reduction="none"
    )
    return losses.numpy()


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("token_losses", whole_losses),
        ("token_losses", whole_log_softmax),
        ("token_losses", whole_torch),
        ("masked_cross_entropy", whole_masked),
        ("corpus_perplexity", whole_perplexity),
        ("rnn_step", whole_step),
        ("rnn_forward", whole_forward),
    ],
)
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name, function):
    result = result_of(name, function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize(
    "name", sorted({*RNN.grants, *(s for task in RNN.tasks for s in task.shortcuts)})
)
def test_what_is_granted_or_refused_exists(name):
    """The owner must be found as the refusal finds it: from attribute to attribute."""
    package, *path = name.split(".")
    importlib.import_module(package)
    found = sys.modules[package]
    for part in path:
        found = getattr(found, part)
    assert callable(found)


def test_what_is_granted_may_be_used_where_it_is_not_the_answer():
    def masked(Z, y, ignored=-100):
        log_p = snp.log_softmax(np.where((y == ignored)[..., None], 0, Z))
        counted = y != ignored
        chosen = np.take_along_axis(log_p, np.where(counted, y, 0)[..., None], -1)[..., 0]
        own = [
            -row[mask].mean() for row, mask in zip(chosen, counted, strict=True) if mask.any()
        ]
        if not own:
            return 0.0, 0.0
        return -chosen[counted].mean(), np.mean(own)

    def forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
        h, states = h_0, []
        for t in range(x.shape[1]):
            new = snp.rnn_cell(x[:, t], h, W_xh, W_hh, b_h, None)
            valid = True if lengths is None else (t < lengths)[:, None]
            h = np.where(valid, new, h)
            states.append(np.where(valid, new, 0))
        return np.stack(states, axis=1), h

    assert result_of("masked_cross_entropy", masked).score == 15
    assert result_of("rnn_forward", forward).score == 25


# Partial credit: one mistake costs once


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("token_losses", ["log_of_zero"], {"values", "batch"}),
        ("token_losses", ["softmax_axis_one"], {"values", "large"}),
        ("token_losses", ["base_two"], set()),
        ("masked_cross_entropy", ["tokens_over_all"], {"sequences"}),
        ("masked_cross_entropy", ["sequence_sums"], {"values", "nothing"}),
        (
            "masked_cross_entropy",
            ["only_minus_100"],
            {"values", "sequences", "empty", "nothing", "padding", "large"},
        ),
        (
            "masked_cross_entropy",
            ["empty_sequence_nan", "nothing_counted_nan"],
            {"values", "sequences", "ignored", "padding", "large"},
        ),
        ("corpus_perplexity", ["power_of_two"], {"bits"}),
        ("corpus_perplexity", ["empty_nan"], {"values", "bits"}),
        ("next_token_batches", ["shifted_twice"], {"values"}),
        ("next_token_batches", ["wraps_around"], {"values", "targets", "edge"}),
        ("rnn_forward", ["time_first"], {"last", "last_valid"}),
        ("rnn_forward", ["lengths_ignored"], {"values", "last", "edge"}),
        ("rnn_forward", ["last_column"], {"values", "last", "lengths", "edge"}),
        (
            "rnn_forward",
            ["empty_as_one"],
            {"values", "last", "lengths", "last_valid", "edge"},
        ),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


def test_a_message_names_the_axes_of_the_part_that_is_wrong():
    result = result_of("rnn_forward", function_of(TASKS["rnn_forward"], "not_carried"))
    messages = {c.name: c.message for c in result.criteria}
    assert "(sequence 0, time step 1, component 0) of H" in messages["values"]
    assert "(sequence 0, component 0) of h_n" in messages["last"]


def test_means_over_nothing_are_named_together():
    """The usual code divides by a count of 0 in both places."""

    def masked(Z, y, ignored=-100):
        counted = y != ignored
        log_p = snp.log_softmax(np.where(counted[..., None], Z, 0))
        chosen = np.take_along_axis(log_p, np.where(counted, y, 0)[..., None], -1)[..., 0]
        sums, counts = -(chosen * counted).sum(axis=1), counted.sum(axis=1)
        with np.errstate(invalid="ignore"):
            return sums.sum() / counts.sum(), (sums / counts).mean()

    result = result_of("masked_cross_entropy", masked)
    assert result.diagnosis.kind == "mistake"
    assert set(result.diagnosis.names) == {"empty_sequence_nan", "nothing_counted_nan"}


def test_padding_is_no_product_with_zero():
    """NaN times 0 is NaN, and a state with NaN is not kept."""

    def forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
        B, T, _ = x.shape
        lengths = np.full(B, T) if lengths is None else lengths
        h, H = h_0, np.zeros((B, T, len(b_h)))
        for t in range(T):
            valid = (t < lengths)[:, None]
            h = valid * np.tanh(h @ W_hh.T + x[:, t] @ W_xh.T + b_h) + (1 - valid) * h
            H[:, t] = valid * h
        return H, h

    result = result_of("rnn_forward", forward)
    (lost,) = [c for c in result.criteria if not c.passed]
    assert lost.name == "empty"
    assert "nan, not finite" in lost.message
    assert "NaN in the padding (1 of 2 inputs fail)" in lost.message


def test_sequences_that_are_reversed_in_place_cost_what_the_text_asks_for():
    """The text of this task says that the result is a new array; only there it is paid."""

    def reverse(x, lengths):
        for b, n in enumerate(lengths):
            x[b, :n] = x[b, :n][::-1].copy()
        return x

    result = result_of("reverse_sequences", reverse)
    assert passed(result) == {"values", "edge"}
    assert result.score == 4
    assert result.criteria[2].message == "the call changes its arguments in place: number 1"


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11, for the forward pass: the state is updated in the array that was given."""

    def forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
        H, h_n = STYLES["rnn_forward"][0](x, h_0, W_hh, W_xh, b_h, lengths)
        h_0[:] = h_n
        return H, h_n

    result = result_of("rnn_forward", forward)
    assert result.score == 25
    assert any("changes its argument h_0 in place" in note for note in result.notes)
