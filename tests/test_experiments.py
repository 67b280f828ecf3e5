"""Committed results: what they name, that a rerun gives them, and what they show."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.experiments import (
    SCRIPTS,
    bottleneck,
    claims,
    load,
    long_lag,
    picture,
    record,
    sqrt_dk,
    style,
    weights,
)
from seqlib.np import scaled_dot_product_attention_backward


def script(name):
    return importlib.import_module(f"seqlib.experiments.{name}")


@pytest.mark.parametrize("name", SCRIPTS)
def test_record_names_inputs_seeds_and_versions(name):
    found = load(name)
    assert found["script"] == f"seqlib.experiments.{name}"
    assert found["inputs"] == script(name).INPUTS
    assert found["seeds"] == list(script(name).SEEDS)
    assert len(found["by_seed"]) == len(found["seeds"]) >= 5
    assert set(found["versions"]) == {"python", *getattr(script(name), "PACKAGES", ["numpy"])}


@pytest.mark.parametrize("name", SCRIPTS)
def test_results_are_the_mean_over_the_seeds(name):
    found = load(name)
    expected = dict(record.leaves(record.average(found["by_seed"])))
    actual = dict(record.leaves(found["results"]))
    assert actual.keys() == expected.keys()
    assert_allclose(list(actual.values()), list(expected.values()), rtol=1e-8, atol=1e-12)


def compare(module, results, committed):
    """Fail unless every number of ``results`` is the committed one within the tolerance."""
    expected = dict(record.leaves(committed))
    actual = dict(record.leaves(results))
    assert actual
    for path, value in actual.items():
        assert_allclose(value, expected[path], **module.TOLERANCE, err_msg=path)


@pytest.mark.parametrize("name", SCRIPTS)
def test_reduced_rerun_gives_the_committed_numbers(name):
    module = script(name)
    compare(module, module.run(module.REDUCED, module.SEEDS[0]), load(name)["by_seed"][0])


def test_a_changed_result_is_noticed():
    committed = load("sqrt_dk")["by_seed"][0]
    changed = json.loads(json.dumps(committed))
    changed["raw"]["q"]["median"]["64"] *= 1.001
    with pytest.raises(AssertionError, match=r"raw\.q\.median\.64"):
        compare(sqrt_dk, changed, committed)


# Without the factor most gradients vanish while a few grow; with it the width does not matter.
@pytest.mark.parametrize("seed", range(5))
def test_the_factor_keeps_the_gradient_of_a_query_in_place(seed):
    found = load("sqrt_dk")["by_seed"][seed]
    raw, scaled = found["raw"]["q"], found["scaled"]["q"]
    assert raw["median"]["4"] == pytest.approx(0.43, abs=0.03)
    assert raw["median"]["1024"] < 1e-4
    assert raw["mean"]["4"] == pytest.approx(0.53, abs=0.03)
    assert raw["mean"]["1024"] == pytest.approx(1.11, abs=0.15)
    assert raw["p99"]["4"] == pytest.approx(2.0, abs=0.3)
    assert raw["p99"]["1024"] == pytest.approx(20.7, abs=5)
    assert raw["tiny"]["1024"] > 0.5 > 0.01 > raw["tiny"]["4"]
    for width in raw["mean"]:
        assert 0.29 < scaled["mean"][width] < 0.35
        assert 0.70 < scaled["p99"][width] < 0.95


def test_gradient_of_the_experiment_is_the_one_of_attention(rng):
    q, k = rng.standard_normal((3, 1, 16)), rng.standard_normal((3, 8, 16))
    dweights = rng.standard_normal((3, 1, 8))
    _, dq = sqrt_dk.gradients(q, k, dweights, 1 / 4)
    # With the identity as values the output is the weights.
    identity = np.broadcast_to(np.eye(8), (3, 8, 8))
    expected, *_ = scaled_dot_product_attention_backward(dweights, q, k, identity)
    assert_allclose(dq, expected, rtol=1e-12, atol=1e-14)


def test_plot_of_the_experiment_names_axes_and_curves():
    figure = sqrt_dk.plot(load("sqrt_dk"))
    left, right = figure.axes
    assert [list(line.get_xdata()) for line in left.lines] == [[4, 16, 64, 256, 1024]] * 6
    drawn = {line.get_label(): list(line.get_ydata()) for line in right.lines}
    expected = load("sqrt_dk")["results"]["raw"]["q"]["p99"]
    assert drawn["without the factor, p99"] == list(expected.values())
    assert left.get_xlabel() == right.get_xlabel() == "width d_k of a key"
    assert left.get_ylabel() == "norm of the gradient"


@pytest.mark.parametrize("seed", range(5))
def test_heads_part_where_the_task_rewards_it(seed):
    found = load("two_heads")["by_seed"][seed]
    assert found["two"]["overlap"] < 0.2 < 0.3 < found["one"]["overlap"]
    assert found["equal"]["overlap"] == pytest.approx(1.0, abs=1e-9)
    assert max(found["two"]["loss"], found["one"]["loss"]) < 1e-3
    assert found["equal"]["loss"] > 0.2


def test_unknown_result_is_refused(tmp_path):
    names = ", ".join(sorted(SCRIPTS))
    with pytest.raises(ValueError, match=rf"^name must be .* \({names}\), got 'x'$"):
        load("x")
    with pytest.raises(ValueError, match=r"\(none\)"):
        load("sqrt_dk", folder=tmp_path)


def test_record_survives_a_round_trip(tmp_path):
    by_seed = {3: {"a": {"1": 1 / 3}}, 7: {"a": {"1": 1.0}}}
    record.write("demo", {"n": 2}, by_seed, folder=tmp_path)
    found = load("demo", folder=tmp_path)
    assert found["inputs"] == {"n": 2}
    assert found["seeds"] == [3, 7]
    assert found["results"]["a"]["1"] == pytest.approx(2 / 3, rel=1e-9)


def test_weights_are_written_for_the_models_that_pages_show():
    shown = [name for name in SCRIPTS if hasattr(script(name), "shown_model")]
    assert list(weights.SHOWN) == shown
    assert sorted(p.stem for p in weights.FOLDER.glob("*.json")) == shown
    for arguments in ([], ["sqrt_dk"], ["nope"]):
        with pytest.raises(SystemExit) as ended:
            weights.main(arguments)
        assert ended.value.code == 2


def test_command_names_the_scripts_it_has():
    done = subprocess.run(
        [sys.executable, "-m", "seqlib.experiments", "sqrt-dk"], capture_output=True, text=True
    )
    assert done.returncode == 2
    there = ", ".join(SCRIPTS)
    assert done.stderr.strip().endswith(f"unknown: sqrt-dk; there are: {there}")


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"a": True, "b": True}, "confirmed, 2 of 2"),
        ({"a": True, "b": np.bool_(False)}, "qualified, 1 of 2"),
        ({"a": False}, "refuted, 0 of 1"),
    ],
)
def test_verdict_follows_the_evidence(evidence, expected, capsys):
    assert claims.verdict("C0", evidence) == expected
    assert capsys.readouterr().out.startswith(f"C0: {expected.split(',')[0]}\n  ")


@pytest.mark.parametrize("evidence", [{}, {"a": 1}, {"a": "yes"}, {"a": np.float64(0.3)}])
def test_verdict_needs_truth_values(evidence):
    with pytest.raises(ValueError, match=r"^evidence must "):
        claims.verdict("C0", evidence)


def test_contrast_of_black_and_white():
    assert style.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert style.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("color", [style.TEXT, *style.COLORS])
@pytest.mark.parametrize("page", ["#ffffff", style.DARK_PAGE])
def test_colors_hold_on_light_and_dark_pages(color, page):
    assert style.contrast(color, page) >= 3


@pytest.mark.parametrize("narrow", [False, True])
def test_committed_picture_is_what_the_script_draws(narrow, tmp_path):
    picture.draw(tmp_path / "drawn.svg", narrow=narrow)
    committed = (picture.NARROW if narrow else picture.PATH).read_bytes()
    assert (tmp_path / "drawn.svg").read_bytes() == committed


def test_picture_shows_masked_attention():
    scores, mask, weights = picture.steps()
    allowed = mask == 0
    assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    assert (weights[~allowed] == 0).all()
    assert np.isneginf(mask[~allowed]).all()
    assert not allowed[:, picture.TOKENS.index("pad")].any()
    # Weights of one row relate as the exponentials of their scores.
    assert_allclose(weights[3, 0] / weights[3, 1], np.exp(scores[3, 0] - scores[3, 1]))


# Where the gates start decides: a bias towards keeping, or an orthogonal matrix without gates.
def test_long_lags_are_learned_from_a_start_that_keeps():
    found = load("long_lag")["results"]
    for kind in ("rnn_orthogonal", "lstm_3", "gru_3"):
        assert set(found[kind]["solved"].values()) == {1}, kind
    assert all(row["solved"]["5"] == 1 for row in found.values())
    assert found["lstm"]["solved"]["20"] == 0 < found["rnn"]["solved"]["20"]
    assert found["gru"]["solved"]["40"] == found["lstm"]["solved"]["40"] == 0


@pytest.mark.parametrize(("kind", "bias"), [("lstm_1", 1), ("lstm_3", 3), ("gru_3", 3)])
def test_networks_of_the_experiment_keep_what_their_names_say(kind, bias):
    layer = long_lag.build(kind, {"symbols": 4, "units": 6})
    with torch.no_grad():
        layer.weight_ih_l0.zero_()
        layer.weight_hh_l0.zero_()
        layer.bias_ih_l0[12:18] = layer.bias_hh_l0[12:18] = 0  # the candidate is 0
        ones = torch.ones(1, 1, 6)
        state = (ones, ones) if kind.startswith("lstm") else ones
        _, after = layer(torch.zeros(1, 1, 5), state)
    kept = after[1] if kind.startswith("lstm") else after
    assert_allclose(kept, np.full((1, 1, 6), 1 / (1 + np.exp(-bias))), rtol=1e-6)


def test_orthogonal_start_of_the_experiment():
    matrix = long_lag.build("rnn_orthogonal", {"symbols": 4, "units": 6}).weight_hh_l0
    assert_allclose((matrix @ matrix.T).detach(), np.eye(6), atol=1e-6)


# What one vector loses with the length, attention keeps: free running, seed by seed.
@pytest.mark.parametrize("seed", range(5))
def test_attention_copies_what_a_fixed_vector_loses(seed):
    found = load("bottleneck")["by_seed"][seed]
    for length in ("8", "16"):
        free = [found[kind]["free"][length] for kind in ("fixed", "wide", "attention")]
        assert free == sorted(set(free))
    assert min(found[kind]["free"]["4"] for kind in bottleneck.KINDS) > 0.9
    assert found["attention"]["free"]["16"] > found["wide"]["free"]["16"] + 0.2
    assert found["fixed"]["forced"]["16"] > found["fixed"]["free"]["16"] + 0.1
    for line in found["attention"]["map"]["8"].values():
        assert sum(line.values()) == pytest.approx(1, abs=1e-5)


def test_decoder_of_the_experiment_reads_the_targets_shifted_once(rng):
    source, shifted, targets = bottleneck.draw(5, rng, {"symbols": 8}, 6)
    assert_array_equal(targets, source)
    assert_array_equal(shifted[:, 1:], targets[:, :-1])
    assert (shifted[:, 0] == 8).all()


@pytest.mark.parametrize(("attention", "moves"), [(False, False), (True, True)])
def test_only_attention_looks_at_earlier_states(attention, moves, rng):
    torch.manual_seed(0)
    model = bottleneck.Copier(8, 4, 6, attention=attention)
    source, shifted, _ = bottleneck.draw(3, rng, {"symbols": 8}, 5)
    keys, state = model.encode(source)
    before, _, _ = model.decode(shifted, state, keys)
    changed = keys.clone()
    changed[:, 0] += 1
    after, _, _ = model.decode(shifted, state, changed)
    assert bool((before != after).any()) == moves
