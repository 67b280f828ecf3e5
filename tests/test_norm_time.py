"""The experiment on the cost of the norms: its counts and its committed ratios."""

import numpy as np
import pytest

from seqlib.experiments import load, norm_time


def test_every_kind_of_operation_counts_once():
    def function(x, weight):
        return 1 / np.sqrt(((x[0] + 3.0 - x[1]) * weight[0] / 2.0) ** 2)

    assert norm_time.operations(function, np.ones(2)) == 7


@pytest.mark.parametrize("width", [3, 8])
def test_operations_of_a_token(width):
    """LayerNorm: two means, deviations, squares, quotients, gain, shift; eps and the root."""
    found = norm_time.run({"tokens": 1, "width": width, "rounds": 0}, 0)["operations"]
    assert found == {"layer_norm": 7 * width + 3, "rms_norm": 4 * width + 3}


def test_the_ratio_is_that_of_the_times():
    work = lambda n: lambda: sum(range(n))  # noqa: E731
    assert norm_time.ratio(work(40_000), work(4_000), 11) > 3


@pytest.mark.parametrize("seed", range(5))
def test_fewer_operations_are_not_always_less_time(seed):
    found = load("norm_time")["by_seed"][seed]
    assert found["operations"]["rms_norm"] < 0.7 * found["operations"]["layer_norm"]
    assert found["ratio"]["numpy"] < 0.95
    assert found["ratio"]["pytorch"] > 1.05
