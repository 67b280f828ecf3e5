r"""Forecasting yearly sunspot numbers: RNN, LSTM and GRU beside forecasts without a network.

Trained on the years before 1950, tested on 1950 to 2008. A one-step forecast knows all years
before its own; a ten-step forecast knows ten years less and puts its own forecasts in their
place. The first one is made at the end of 1949, for 1959.

All models forecast the square root of the number, standardised by the training years. How a
network is trained is chosen on the training years alone: each cell is trained with each of
``units`` and ``rates`` on the years before 1900, its error on 1900 to 1949 is measured every
``every`` updates, and with the best of these choices it is trained anew on all years before
1950.
"""

import numpy as np
import torch
from torch import nn

from seqlib.data import sunspots
from seqlib.experiments.forecasting_baselines import (
    akaike,
    fit_autoregression,
    forecast,
    rms,
    rolling,
)
from seqlib.experiments.training import make_update, seeded

INPUTS = {
    "cells": ["rnn", "lstm", "gru"],
    "units": [8, 16],
    "rates": [0.003, 0.01],
    "updates": 300,
    "every": 25,
    "window": 44,
    "stride": 2,
    "final": True,
}
REDUCED = {**INPUTS, "cells": ["gru"], "units": [8], "rates": [0.01], "final": False}
SEEDS = (0, 1, 2, 3, 4)
# Another processor adds in another order; 300 updates in double precision make that grow.
TOLERANCE = {"rtol": 2e-3, "atol": 0.0}
PACKAGES = ("numpy", "torch")

NAMES = {
    "persistence": "persistence",
    "lag11": "11 years ago",
    "ar": "autoregression",
    "rnn": "RNN",
    "lstm": "LSTM",
    "gru": "GRU",
}
CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
CYCLE = 11  # years; also the first steps of a window, which are read and not scored
LONGEST = 15  # the largest order that is tried
VALIDATION, TEST = 1900, 1950
HORIZONS = {"one": 1, "ten": 10}


def run(inputs, seed):
    """Return validation errors of all choices, the choice, and the forecasts of the test.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the initial weights.

    Returns
    -------
    dict
        ``validation[cell]["UNITS units, rate RATE"][update]``, root mean square one-step
        errors on 1900 to 1949; and if ``final`` is true ``chosen[cell]`` with ``units``,
        ``rate``, ``updates`` and ``parameters``, ``rms[model][horizon]`` and
        ``forecasts[cell][horizon][year]``.
    """
    found = {"validation": {cell: {} for cell in inputs["cells"]}}
    for cell in inputs["cells"]:
        for units in inputs["units"]:
            for rate in inputs["rates"]:
                errors = validate(cell, units, rate, inputs, seed)
                found["validation"][cell][f"{units} units, rate {rate}"] = errors
    if not inputs["final"]:
        return found
    years, numbers = sunspots()
    forecasts = {name: method() for name, method in BASELINES.items()}
    found |= {"chosen": {}, "forecasts": {}}
    for cell in inputs["cells"]:
        choice = best(found["validation"][cell])
        *_, model = train(cell, choice, TEST, inputs, seed)
        choice["parameters"] = sum(p.numel() for p in model.parameters())
        found["chosen"][cell] = choice
        forecasts[cell] = {
            name: model.forecast(places(years, horizon), horizon, inputs["window"])
            for name, horizon in HORIZONS.items()
        }
        found["forecasts"][cell] = {
            name: {
                str(year): round(float(value), 2)
                for year, value in zip(
                    tested(years, horizon), forecasts[cell][name], strict=True
                )
            }
            for name, horizon in HORIZONS.items()
        }
    found["rms"] = {
        model: {
            name: rms(values[name] - numbers[places(years, horizon)])
            for name, horizon in HORIZONS.items()
        }
        for model, values in forecasts.items()
    }
    return found


# ---------------------------------------------------------------- years


def places(years, horizon, start=TEST, end=2009):
    """Return the indices of the years that are forecast: none is forecast before ``start``."""
    return np.flatnonzero((years >= start + horizon - 1) & (years < end))


def tested(years, horizon):
    """Return the years themselves."""
    return years[places(years, horizon)]


def scale(before=TEST):
    """Return the standardised square roots, their mean and deviation in the years before."""
    years, numbers = sunspots()
    roots = np.sqrt(numbers)
    mean, deviation = roots[years < before].mean(), roots[years < before].std()
    return (roots - mean) / deviation, mean, deviation


# ---------------------------------------------------------------- without a network


def _rolled(method, series=None, back=lambda x: x):
    years, numbers = sunspots()
    series = numbers if series is None else series
    return {
        name: back(rolling(method, series, places(years, horizon), horizon))
        for name, horizon in HORIZONS.items()
    }


def persistence():
    """Forecast what is known last."""
    return _rolled(lambda known, steps: np.repeat(known[-1], steps))


def lag11():
    """Forecast the number of 11 years before."""
    return _rolled(lambda known, steps: np.resize(known[-CYCLE:], steps))


def chosen_order():
    """Return the order with the smallest criterion of Akaike in the years before 1950."""
    years, numbers = sunspots()
    roots = np.sqrt(numbers[years < TEST])
    return min(range(1, LONGEST + 1), key=lambda p: akaike(roots, p, LONGEST))


def autoregression(order=None):
    """Forecast by an autoregression of the square roots, fitted to the years before 1950."""
    years, numbers = sunspots()
    roots = np.sqrt(numbers)
    fitted = fit_autoregression(roots[years < TEST], order or chosen_order())
    return _rolled(lambda known, steps: forecast(fitted, known, steps), roots, _squared)


def _squared(roots):
    return np.maximum(roots, 0) ** 2


BASELINES = {"persistence": persistence, "lag11": lag11, "ar": autoregression}


# ---------------------------------------------------------------- networks


class Forecaster(nn.Module):
    """A recurrent layer and a linear map from its state to the next standardised root.

    Parameters
    ----------
    cell : {"rnn", "lstm", "gru"}
        Kind of the layer.
    units : int
        Size H of the state.
    before : int
        The years before this one are the training years.
    """

    def __init__(self, cell, units, before):
        super().__init__()
        self.layer = CELLS[cell](1, units, batch_first=True)
        self.head = nn.Linear(units, 1)
        self.double()  # small enough, and other processors stay close
        series, self.mean, self.deviation = scale(before)
        self.register_buffer("series", torch.from_numpy(series), persistent=False)

    def forward(self, x, state=None):
        """Return for ``x (B, T)`` what follows each step, ``(B, T)``, and the state."""
        y, state = self.layer(x[..., None], state)
        return self.head(y)[..., 0], state

    @torch.no_grad()
    def forecast(self, places, horizon, window):
        """Forecast each place from the last ``window`` years known ``horizon`` before."""
        ends = torch.as_tensor(places) - horizon + 1
        known = torch.stack([self.series[end - window : end] for end in ends])
        y, state = self(known)
        for _ in range(horizon - 1):
            y, state = self(y[:, -1:], state)
        return _squared(y[:, -1].numpy() * self.deviation + self.mean)


def train(cell, choice, before, inputs, seed):
    """Train on the windows of the years before one, and yield the model every few updates.

    The windows overlap: they start every ``stride`` years, and the last one ends with the
    last of the years.
    """
    with seeded(seed):
        model = Forecaster(cell, choice["units"], before)
    years, _ = sunspots()
    known = model.series[torch.from_numpy(years < before)]
    length, stride = inputs["window"] + 1, inputs["stride"]
    windows = known[(len(known) - length) % stride :].unfold(0, length, stride)
    optimizer = torch.optim.Adam(model.parameters(), lr=choice["rate"])
    for update in range(1, choice["updates"] + 1):
        y, _ = model(windows[:, :-1])
        loss = ((y - windows[:, 1:])[:, CYCLE:] ** 2).mean()
        make_update(model, optimizer, loss)
        if update % inputs["every"] == 0:
            yield model


def validate(cell, units, rate, inputs, seed):
    """Return the one-step errors on 1900 to 1949 after more and more updates before 1900."""
    years, numbers = sunspots()
    years_asked = places(years, 1, VALIDATION, TEST)
    choice = {"units": units, "rate": rate, "updates": inputs["updates"]}
    models = train(cell, choice, VALIDATION, inputs, seed)
    return {
        str(update): rms(
            model.forecast(years_asked, 1, inputs["window"]) - numbers[years_asked]
        )
        for update, model in zip(
            range(inputs["every"], inputs["updates"] + 1, inputs["every"]), models, strict=True
        )
    }


def best(validation):
    """Return units, rate and updates with the smallest error of all trials of a cell."""
    trial, update = min(
        ((trial, update) for trial, errors in validation.items() for update in errors),
        key=lambda pair: validation[pair[0]][pair[1]],
    )
    units, rate = trial.split(" units, rate ")
    return {"units": int(units), "rate": float(rate), "updates": int(update)}


# ---------------------------------------------------------------- what the record shows


def squared_errors(record, cell, horizon):
    """Return the squared errors of a network by year, averaged over the seeds."""
    years, numbers = sunspots()
    truth = numbers[places(years, HORIZONS[horizon])]
    by_seed = [
        np.array(list(seed["forecasts"][cell][horizon].values())) for seed in record["by_seed"]
    ]
    return np.mean([(forecasts - truth) ** 2 for forecasts in by_seed], axis=0)


def plot(record, cell="gru"):
    """Draw the forecasts of one cell, seed by seed, and of the autoregression; return it."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    years, numbers = sunspots()
    figure, axes = plt.subplots(2, figsize=(6.8, 5.4), sharex=True, layout="constrained")
    for axis, (name, horizon) in zip(axes, HORIZONS.items(), strict=True):
        shown = years >= TEST
        axis.plot(years[shown], numbers[shown], "o-", color=style.TEXT, label="measured")
        ar = autoregression()[name]
        axis.plot(tested(years, horizon), ar, "--", color=style.ORANGE, label=NAMES["ar"])
        for i, seed in enumerate(record["by_seed"]):
            forecasts = list(seed["forecasts"][cell][name].values())
            label = f"{NAMES[cell]}, {len(record['seeds'])} seeds" if i == 0 else None
            axis.plot(tested(years, horizon), forecasts, color=style.BLUE, lw=0.9, label=label)
        axis.set(ylabel="sunspot number", title=f"{name}-step forecasts")
    axes[1].set(xlabel="year")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3)
    return figure
