"""Forecasts: what each may know, the autoregression, the bootstrap, the record."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.data import sunspots
from seqlib.experiments import forecasting, load
from seqlib.experiments import forecasting_baselines as baselines

YEARS, NUMBERS = sunspots()
SMALL = {**forecasting.INPUTS, "updates": 2, "every": 1, "window": 20}


def changed_from(place):
    """Return the numbers with everything from one place on replaced."""
    changed = NUMBERS.copy()
    changed[place:] = 50.0
    return changed


# ---------------------------------------------------------------- without a network


def test_an_autoregression_without_noise_is_found(rng):
    coefficients = np.array([1.0, 0.5, -0.3, 0.2])
    series = [*rng.standard_normal(3)]
    for _ in range(30):
        series.append(coefficients[0] + coefficients[1:] @ series[:-4:-1])
    fitted = baselines.fit_autoregression(np.array(series), 3)
    assert_allclose(fitted, coefficients, rtol=1e-9)
    assert_allclose(baselines.forecast(fitted, np.array(series[:-5]), 5), series[-5:])


def test_forecasts_of_an_autoregression_by_hand():
    assert_allclose(
        baselines.forecast(np.array([14, 1.4, -0.7]), np.array([7.0, 184.8, 159.0]), 2),
        [107.24, 14 + 1.4 * 107.24 - 0.7 * 159],
    )


def test_order_2_is_chosen_for_a_series_of_order_2():
    """The criterion adds a coefficient too many now and then, and never leaves one out here."""
    chosen = []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        series = np.zeros(400)
        for t in range(2, 400):
            series[t] = 1.4 * series[t - 1] - 0.7 * series[t - 2] + draw.standard_normal()
        criteria = [baselines.akaike(series, p, 6) for p in range(1, 7)]
        chosen.append(1 + int(np.argmin(criteria)))
    assert min(chosen) == 2
    assert chosen.count(2) >= 12


def test_a_period_is_read_off_the_roots():
    r, w = 0.9, 2 * np.pi / 11
    coefficients = np.array([3.0, 2 * r * np.cos(w), -(r**2)])
    assert_allclose(baselines.largest_root(coefficients), (0.9, 11), rtol=1e-9)
    with pytest.raises(ValueError, match=r"^coefficients must have a complex root"):
        baselines.largest_root(np.array([0.0, 0.5]))


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_rolling_forecast_knows_what_was_there_before(horizon):
    asked = []

    def method(known, steps):
        asked.append((len(known), steps))
        return known[-1] + np.arange(1, steps + 1)

    forecasts = baselines.rolling(method, np.arange(10.0), [5, 8], horizon)
    assert asked == [(6 - horizon, horizon), (9 - horizon, horizon)]
    assert_allclose(forecasts, [5, 8])  # a straight line is forecast rightly


def test_blocks_of_the_bootstrap_are_neighbours(rng):
    # Entry t is 2**t, so the mean of a resampled series tells which entries are in it.
    values = 2.0 ** np.arange(6)
    sums = 6 * baselines.block_bootstrap(values, rng, block=3, draws=500)
    blocks = [values[i : i + 3].sum() for i in range(4)]
    assert set(sums) == {a + b for a in blocks for b in blocks}


def test_the_last_block_of_the_bootstrap_is_cut(rng):
    values = 2.0 ** np.arange(5)
    sums = 5 * baselines.block_bootstrap(values, rng, block=2, draws=2000)
    blocks = [values[i : i + 2].sum() for i in range(4)]
    assert set(sums) == {a + b + first for a in blocks for b in blocks for first in values[:4]}


def test_blocks_make_the_interval_of_a_slow_series_wider():
    slow = np.repeat(np.random.default_rng(1).standard_normal(20), 10)
    spread = [
        baselines.block_bootstrap(slow, np.random.default_rng(0), block=block).std()
        for block in (1, 20)
    ]
    # Twenty independent values, each ten times: the truth is 10 ** 0.5 times the first.
    assert 2.4 < spread[1] / spread[0] < 3.8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: baselines.fit_autoregression(np.ones(6), 3), "series must have at least 7"),
        (lambda: baselines.akaike(np.ones(50), 4, 3), r"order must lie in \[1, 3\], got 4"),
        (lambda: baselines.forecast(np.ones(4), np.ones(2), 1), "series must have at least 3"),
        (
            lambda: baselines.block_bootstrap(np.ones(5), None, block=6),
            "block must be at most the length 5 of the series, got 6",
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


# ---------------------------------------------------------------- the future


def test_the_test_begins_after_1949():
    for name, horizon in forecasting.HORIZONS.items():
        asked = forecasting.tested(YEARS, horizon)
        assert asked[0] - horizon + 1 == 1950, name  # what is known ends with 1949
        assert asked[-1] == 2008


@pytest.mark.parametrize("name", [*forecasting.BASELINES, *forecasting.CELLS])
@pytest.mark.parametrize("horizon", ["one", "ten"])
def test_no_forecast_knows_its_future(name, horizon, monkeypatch):
    """Everything from one year on is changed: forecasts made before it must stay."""

    def forecasts():
        if name in forecasting.BASELINES:
            return forecasting.BASELINES[name]()[horizon]
        torch.manual_seed(0)
        model = forecasting.Forecaster(name, 3, 1950)
        steps = forecasting.HORIZONS[horizon]
        return model.forecast(forecasting.places(YEARS, steps), steps, 44)

    first = 1985
    asked = forecasting.tested(YEARS, forecasting.HORIZONS[horizon])
    before = forecasts()
    changed = changed_from(np.flatnonzero(first == YEARS)[0])
    monkeypatch.setattr(forecasting, "sunspots", lambda: (YEARS, changed))
    after = forecasts()
    last_known = asked - forecasting.HORIZONS[horizon]
    assert_array_equal(after[last_known < first], before[last_known < first])
    # A number of 11 years ago is the old one for ten years more.
    assert (after[last_known >= first] != before[last_known >= first]).mean() > 0.5


@pytest.mark.parametrize("before", [1900, 1950])
def test_training_sees_training_years_only(before, monkeypatch):
    choice = {"units": 3, "rate": 0.01, "updates": 2}

    def trained():
        *_, model = forecasting.train("gru", choice, before, SMALL, 0)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    reference = trained()
    place = np.flatnonzero(before == YEARS)[0]
    monkeypatch.setattr(forecasting, "sunspots", lambda: (YEARS, changed_from(place)))
    assert torch.equal(trained(), reference)
    monkeypatch.setattr(forecasting, "sunspots", lambda: (YEARS, changed_from(place - 1)))
    assert not torch.equal(trained(), reference)


def test_order_and_scale_are_those_of_training_years(monkeypatch):
    order, (_, mean, deviation) = forecasting.chosen_order(), forecasting.scale()
    place = np.flatnonzero(YEARS == 1950)[0]
    monkeypatch.setattr(forecasting, "sunspots", lambda: (YEARS, changed_from(place)))
    assert forecasting.chosen_order() == order == 9
    assert forecasting.scale()[1:] == (mean, deviation)


# ---------------------------------------------------------------- networks


def test_ten_steps_are_one_step_ten_times():
    torch.manual_seed(0)
    model = forecasting.Forecaster("lstm", 4, 1950)
    place = np.flatnonzero(YEARS == 1990)[0]
    z, mean, deviation = forecasting.scale()
    known = list(z[place - 9 - 44 : place - 9])
    for _ in range(10):
        y, _ = model(torch.tensor(known)[None])
        known.append(y[0, -1].item())
    expected = max(known[-1] * deviation + mean, 0) ** 2
    assert_allclose(model.forecast([place], 10, 44), [expected], rtol=1e-9)


def test_the_choice_has_the_smallest_error():
    errors = {
        "8 units, rate 0.003": {"25": 15.0, "50": 12.5},
        "16 units, rate 0.01": {"25": 12.0, "50": 13.0},
    }
    assert forecasting.best(errors) == {"units": 16, "rate": 0.01, "updates": 25}


# ---------------------------------------------------------------- the record


@pytest.fixture(scope="module")
def record():
    return load("forecasting")


def test_recorded_errors_are_those_of_the_recorded_forecasts(record):
    for seed in record["by_seed"]:
        for cell in forecasting.CELLS:
            for name, horizon in forecasting.HORIZONS.items():
                forecasts = list(seed["forecasts"][cell][name].values())
                truth = NUMBERS[forecasting.places(YEARS, horizon)]
                error = baselines.rms(np.array(forecasts) - truth)
                assert_allclose(seed["rms"][cell][name], error, atol=0.01)


def test_recorded_choices_follow_from_the_recorded_errors(record):
    for seed in record["by_seed"]:
        for cell, chosen in seed["chosen"].items():
            assert forecasting.best(seed["validation"][cell]).items() <= chosen.items()
        counts = [
            sum(map(len, seed["validation"][cell].values())) for cell in forecasting.CELLS
        ]
        assert counts == [48] * 3  # as many candidates for each cell


def test_errors_of_the_baselines_are_the_known_ones(record):
    found = record["results"]["rms"]
    assert_allclose([found["persistence"][h] for h in ("one", "ten")], [33.2, 35.7], atol=0.05)
    assert_allclose([found["ar"][h] for h in ("one", "ten")], [16.4, 28.9], atol=0.05)


def test_a_plot_has_all_seeds_and_both_horizons(record):
    top, bottom = forecasting.plot(record).axes
    assert len(top.lines) == len(bottom.lines) == 2 + len(record["seeds"])
    assert_array_equal(bottom.lines[1].get_xdata(), np.arange(1959, 2009))
    assert_array_equal(top.lines[0].get_ydata(), NUMBERS[YEARS >= 1950])
    assert top.get_ylabel() == "sunspot number"
