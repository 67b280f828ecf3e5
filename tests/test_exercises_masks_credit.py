"""The assignment ``masks`` pays for what is right: one mistake costs once."""

import numpy as np
import pytest
from exercise_tools import Exercises, passed

from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("masks")
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("padding_mask", ["side_ignored"], {"values", "empty"}),
        ("padding_mask", ["polarity"], set()),
        ("causal_mask", ["past_ignored"], {"values"}),
        ("causal_mask", ["past_from_sizes"], {"values", "past"}),
        ("causal_mask", ["strict"], set()),
        ("combine_masks", ["booleans_added"], {"values", "empty", "bias", "bias_empty"}),
        ("combine_masks", ["empty_each"], {"values", "booleans", "bias", "bias_empty"}),
        ("combine_masks", ["bias_lost"], {"values", "empty", "booleans", "bias_empty"}),
        ("masked_softmax", ["empty_row_nan"], {"values", "bias", "large", "rubbish", "batch"}),
        ("masked_softmax", ["no_shift"], {"values", "bias", "empty_rows", "rubbish", "batch"}),
        (
            "masked_softmax",
            ["blocked_added"],
            {"values", "bias", "empty_rows", "large", "batch"},
        ),
        (
            "masked_softmax",
            ["bias_ignored"],
            {"values", "empty_rows", "large", "rubbish", "batch"},
        ),
        ("masked_softmax", ["mask_after_softmax"], set()),
        ("masked_softmax_backward", ["empty_row_nan"], {"values", "bias"}),
        ("masked_softmax_backward", ["dm_averaged"], {"values", "empty_rows"}),
        (
            "leak_test",
            ["rows_together"],
            {"values", "one_position", "last_step", "quiet", "length"},
        ),
        (
            "leak_test",
            ["tokens_alone"],
            {"values", "one_position", "last_step", "rows", "quiet"},
        ),
        (
            "leak_test",
            ["tolerance_wide"],
            {"values", "one_position", "last_step", "rows", "length"},
        ),
        ("leak_test", ["exact"], set()),
        (
            "layer_cost",
            ["causal_pairs"],
            {"projections", "feed_forward", "score_bytes", "cache_bytes"},
        ),
        (
            "layer_cost",
            ["past_projected"],
            {"values", "projections", "feed_forward", "score_bytes", "cache_bytes"},
        ),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


@pytest.mark.parametrize("threshold", [-20, -100, -1000])
def test_a_finite_number_far_below_zero_is_no_block(threshold):
    def masked_softmax(S, M):
        return TASKS["masked_softmax"].reference(S, np.where(threshold < M, M, -np.inf))

    def combine_masks(masks):
        M, _ = TASKS["combine_masks"].reference(masks)
        return M, (threshold > M).all(axis=-1)

    A = masked_softmax(np.zeros((1, 3)), np.array([[-2000, -2000, -np.inf]]))
    assert A.tolist() == [[0, 0, 0]]
    for function, lost in ((masked_softmax, "large"), (combine_masks, "bias_empty")):
        result = result_of(function.__name__, function)
        assert [c.name for c in result.criteria if not c.passed] == [lost]
        message = next(c.message for c in result.criteria if not c.passed)
        assert "-2000" in message


def test_the_gradient_of_a_number_for_all_keys_is_summed_over_the_keys():
    def masked_softmax_backward(dA, S, M):
        dS, _ = TASKS["masked_softmax_backward"].reference(dA, S, M)
        dM = dS.sum(axis=tuple(range(S.ndim - M.ndim)))
        shared = tuple(i for i, n in enumerate(M.shape[:-1]) if n == 1)
        return dS, dM.sum(axis=shared, keepdims=True)

    result = result_of("masked_softmax_backward", masked_softmax_backward)
    assert passed(result) == {"values", "empty_rows"}
    assert "dM has shape (5, 3), not (5, 1)" in result.criteria[2].message


@pytest.mark.parametrize(
    ("limit", "lost"), [(3e-6, []), (1e-4, []), (1e-3, ["quiet"]), (5e-3, ["quiet"])]
)
def test_a_leak_test_sees_leaks_that_are_small_and_larger_than_rounding(limit, lost):
    def leak_test(model, ids, rng):
        whole = model(ids)
        return any(
            np.abs(model(ids[b : b + 1, :n])[0] - whole[b, :n]).max() > limit
            for b in range(len(ids))
            for n in range(1, ids.shape[1] + 1)
        )

    result = result_of("leak_test", leak_test)
    assert [c.name for c in result.criteria if not c.passed] == lost
    assert (result.diagnosis is None) == (not lost)
    if lost:
        assert result.diagnosis.names == ("tolerance_wide",)


def test_a_wrong_softmax_costs_nothing_in_its_backward_pass():
    source = """
def masked_softmax(S, M):
    return 5 * S

def masked_softmax_backward(dA, S, M):
    A = masked_softmax(S, M)
    dS = A * (dA - (dA * A).sum(axis=-1, keepdims=True))
    axes = tuple(i for i in range(M.ndim) if M.shape[i] == 1)
    dM = dS.reshape(-1, *dS.shape[dS.ndim - M.ndim:]).sum(axis=0).sum(axis=axes, keepdims=True)
    return dS, dM
"""
    space = {}
    exec(source, space)
    assert result_of("masked_softmax_backward", space["masked_softmax_backward"]).score == 10
    assert result_of("masked_softmax", space["masked_softmax"]).score == 0


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    """Case B11: scores that are overwritten, and ids that are changed for a test."""

    def softmax(S, M):
        A = TASKS["masked_softmax"].reference(S, M)
        S[:] = 0
        return A

    def leak_test(model, ids, rng):
        found = TASKS["leak_test"].reference(model, ids, rng)
        ids[:] = 0
        return found

    for function, argument in ((softmax, "S"), (leak_test, "ids")):
        name = "masked_softmax" if argument == "S" else "leak_test"
        result = result_of(name, function)
        assert result.score == 20
        assert any(f"changes its argument {argument} in place" in note for note in result.notes)


def test_a_leak_test_that_calls_the_model_too_often_is_told_so():
    def leak_test(model, ids, rng):
        return max(abs(model(ids)).max() for _ in range(51)) < 0

    result = result_of("leak_test", leak_test)
    assert result.score == 0
    assert "the model may be called at most 50 times" in result.criteria[0].message


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda ids: ids + 7, "ids must be whole numbers from 0 to 6"),
        (lambda ids: ids[0], "ids must have shape (B, T) with 1 to"),
        (lambda ids: ids[:, :0], "ids must have shape (B, T) with 1 to"),
        (lambda ids: ids.repeat(2, axis=1), "ids must have shape (B, T) with 1 to"),
    ],
)
def test_a_model_says_which_ids_it_takes(change, phrase):
    result = result_of("leak_test", lambda model, ids, rng: model(change(ids)).max() > 0)
    assert result.score == 0
    assert phrase in result.criteria[0].message


@pytest.mark.parametrize("step", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_differences_of_a_loss_do_not_pass_for_a_gradient(step, dtype):
    softmax = TASKS["masked_softmax"].reference

    def gradient(loss, at):
        found = np.zeros(at.shape, dtype)
        for i in zip(*np.nonzero(np.isfinite(at)), strict=True):
            there = np.zeros(at.shape)
            there[i] = step
            found[i] = (loss(at + there) - loss(at - there)) / (2 * step)
        return found

    def masked_softmax_backward(dA, S, M):
        return (
            gradient(lambda S: (dA * softmax(S, M)).sum(), S),
            gradient(lambda M: (dA * softmax(S, M)).sum(), M),
        )

    result = result_of("masked_softmax_backward", masked_softmax_backward)
    assert result.score == 0
    assert result.criteria[0].message.endswith(
        "Input: one query has one key left, with dA = 1e10 (1 of 4 inputs fail)"
    )
