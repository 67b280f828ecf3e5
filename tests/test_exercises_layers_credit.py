"""The assignment ``layers`` pays for what is right: one mistake costs once."""

import pytest
from exercise_tools import Exercises, passed

import seqlib.np as snp
from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("layers")
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


@pytest.mark.parametrize(
    ("name", "mistake", "kept"),
    [
        ("layer_norm", "no_eps", {"values", "normalised", "batch"}),
        ("layer_norm", "eps_outside", {"values", "normalised", "batch"}),
        ("layer_norm", "beta_ignored", {"normalised"}),
        ("layer_norm", "over_axis_1", {"values", "normalised", "eps"}),
        ("layer_norm", "unbiased", set()),
        ("layer_norm_backward", "statistics_constant", {"dgamma", "dbeta"}),
        ("layer_norm_backward", "dgamma_with_gamma", {"dx", "dbeta"}),
        (
            "layer_norm_backward",
            "parameters_over_axis_0",
            {"values", "dx", "dgamma", "dbeta", "small"},
        ),
        ("rms_norm", "half_statistics", {"values", "normalised", "eps", "batch"}),
        ("rms_norm", "half_result", {"values", "normalised", "eps", "batch"}),
        ("rms_norm", "no_eps", {"values", "normalised", "half", "batch"}),
        ("rms_norm", "one_plus_gamma", {"normalised"}),
        ("rms_norm_backward", "no_gamma", {"dgamma"}),
        ("rms_norm_backward", "parameters_averaged", {"dx"}),
        ("feed_forward", "b_1_after", {"values"}),
        ("feed_forward", "exact_gelu", set()),
        ("post_norm_layer", "no_second_norm", {"z"}),
        ("post_norm_layer", "residual_from_input", {"z"}),
        ("post_norm_layer", "eps_ignored", {"values", "z", "batch"}),
        ("pre_norm_stack", "no_final_norm", {"layer"}),
        ("pre_norm_stack", "first_layer_repeated", {"values", "layer", "eps"}),
        ("pre_norm_stack", "residual_after_norm", set()),
    ],
)
def test_what_is_right_is_paid(name, mistake, kept):
    assert passed(result_of(name, function_of(TASKS[name], mistake))) == kept


def test_two_well_known_mistakes_are_named_together():
    """The deviation of harvardnlp/annotated-transformer#119: d - 1, and eps outside."""
    task = TASKS["layer_norm"]
    result = result_of(task.function, function_of(task, "unbiased", "eps_outside"))
    assert result.diagnosis.kind == "mistake"
    assert set(result.diagnosis.names) == {"unbiased", "eps_outside"}


def test_an_input_changed_in_place_is_said_and_costs_nothing():
    """A residual stream that is added to in place: right, but the caller's X is gone."""

    def stack(X, layers, gamma, eps):
        outputs = []
        for attention, mlp, gamma_1, gamma_2 in layers:
            X += attention(snp.rms_norm(X, gamma_1, eps=eps))
            X += mlp(snp.rms_norm(X, gamma_2, eps=eps))
            outputs.append(X.copy())
        return snp.rms_norm(X, gamma, eps=eps), outputs

    result = result_of("pre_norm_stack", stack)
    assert result.score == 15
    assert any("changes its argument X in place" in note for note in result.notes)
