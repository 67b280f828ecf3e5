"""The experiment on the time of attention: its fit, its record, its figure."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seqlib.experiments import attention_time, load

RECORD = load("attention_time")
LENGTHS, WIDTHS = RECORD["inputs"]["lengths"], RECORD["inputs"]["widths"]


def seconds(result):
    """Return the times of one seed as an array of shape (lengths, widths)."""
    table = result["milliseconds"]
    return np.array([[table[str(n)][str(d)] for d in WIDTHS] for n in LENGTHS]) / 1e3


def test_the_fit_finds_the_terms_that_made_the_times():
    n, d = np.meshgrid([256, 512], [16, 64, 256], indexing="ij")
    times = 2e-9 * n**2 + 3e-11 * n**2 * d
    a, b, error = attention_time.fit([256, 512], [16, 64, 256], times)
    assert_allclose([a, b], [2e-9, 3e-11], rtol=1e-9)
    assert error < 1e-9
    times[0, 0] *= 2
    assert attention_time.fit([256, 512], [16, 64, 256], times)[2] > 0.1


def test_operations_are_those_of_the_two_products_and_the_softmax():
    assert attention_time.count(3, 2) == 36 + 9 + 45 + 36
    assert attention_time.exponent([16, 32, 64], [1.0, 8.0, 64.0]) == pytest.approx(3)


@pytest.mark.parametrize("seed", range(5))
def test_the_committed_fit_is_that_of_the_committed_times(seed):
    found = RECORD["by_seed"][seed]
    a, b, error = attention_time.fit(LENGTHS, WIDTHS, seconds(found))
    expected = [1e9 * a, 1e9 * b, a / b, error]
    assert_allclose([found["fit"][k] for k in ("a", "b", "even", "error")], expected, rtol=1e-6)
    assert min(a, b) > 0
    assert error < 0.25
    slope = attention_time.exponent(WIDTHS, seconds(found)[-1])
    assert found["exponent"]["d"] == pytest.approx(slope, rel=1e-6)
    assert slope < 0.8  # one power law hides that the softmax has no d


def test_times_are_measured_and_positive():
    times = attention_time.measure([8, 16], [4, 8], 3, np.random.default_rng(0))
    assert times.shape == (2, 2)
    assert (times > 0).all()
    assert np.isfinite(times).all()


def test_plot_names_axes_and_lengths():
    (axis,) = attention_time.plot(RECORD).axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        f"n = {n}" for n in LENGTHS
    ]
    assert axis.get_xlabel() == "width d of a head"
    assert axis.get_ylabel() == "processor time in milliseconds"
