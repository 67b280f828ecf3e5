"""The experiment on depth: what it shows, and that it measures what it says."""

import pytest
import torch

from seqlib.experiments import depth, load
from seqlib.pt import LayerNorm


# Both forms train when shallow; only one does so when deep.
@pytest.mark.parametrize("seed", range(5))
def test_pre_norm_trains_at_every_depth_and_post_norm_does_not(seed):
    found = load("depth")["by_seed"][seed]
    for warmup in ("0", "60"):
        for rate in ("0.001", "0.003", "0.01"):
            pre, post = (found[norm][warmup][rate] for norm in ("pre", "post"))
            assert max(pre.values()) < 0.5
            assert post["2"] < 0.5
            assert post["24"] > 2.5
    late = found["post"]["60"]["0.003"]["12"]
    assert late < 1 < 2.5 < found["post"]["0"]["0.003"]["12"]


def test_training_of_the_depth_experiment_leaves_torchs_generator_alone():
    before = torch.get_rng_state()
    inputs = {"steps": 1, "batch": 2}
    loss = depth.train(1, "post", 0.001, 0, 3, inputs)
    assert torch.equal(torch.get_rng_state(), before)
    assert depth.train(1, "post", 0.001, 0, 3, inputs) == loss
    assert depth.train(1, "post", 0.001, 0, 4, inputs) != loss


def test_a_pre_norm_stack_of_the_depth_experiment_ends_with_a_norm():
    for norm, closed in (("pre", True), ("post", False)):
        assert isinstance(depth.Stack(1, norm).norm, LayerNorm) == closed


def test_plot_of_the_depth_experiment_shows_every_run():
    found = load("depth")
    figure = depth.plot(found)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["rate 0.001", "rate 0.003", "rate 0.01"]
    drawn = [list(line.get_ydata()) for line in figure.axes[1].lines]
    for result in found["by_seed"]:
        assert list(result["post"]["60"]["0.003"].values()) in drawn
    assert figure.axes[0].get_ylabel() == "loss at the end (nats)"
