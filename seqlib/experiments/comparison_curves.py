"""How the records of the comparison are read: better rates, paired differences, equal times."""

import numpy as np

__all__ = [
    "NAMES",
    "ahead",
    "at_time",
    "best_rate",
    "interval",
    "losses",
    "plot_curves",
    "plot_differences",
    "plot_times",
    "steps",
]

NAMES = {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU", "transformer": "Transformer"}
MARKS = {"rnn": "s--", "lstm": "^-.", "gru": "d:", "transformer": "o-"}
# 97.5 % points of Student's distribution, by degrees of freedom.
STUDENT = {4: 2.77645, 5: 2.57058, 6: 2.44691, 7: 2.36462, 8: 2.30600, 9: 2.26216}


def interval(first, second):
    """Return mean and 95 % interval of the paired differences ``first - second``.

    With the differences 0.1, 0.2, 0.3, 0.2, 0.2 of five seeds the mean is 0.2, the standard
    deviation 0.0707 and the standard error 0.0707 / sqrt(5) = 0.0316; the interval reaches
    2.776 standard errors to both sides, from 0.112 to 0.288.

    Parameters
    ----------
    first, second : sequence of float
        One number for each seed, in the same order; five to ten seeds.

    Returns
    -------
    mean, low, high : float
        The mean difference and the ends of Student's interval.

    Raises
    ------
    ValueError
        If there are not five to ten pairs.
    """
    if len(first) != len(second) or len(first) - 1 not in STUDENT:
        raise ValueError(
            f"first and second must have 5 to 10 numbers each, one for each seed, got "
            f"{len(first)} and {len(second)}"
        )
    differences = np.subtract(first, second)
    n = len(differences)
    half = STUDENT[n - 1] * differences.std(ddof=1) / np.sqrt(n)
    mean = differences.mean()
    return float(mean), float(mean - half), float(mean + half)


def ahead(first, second):
    """Return -1 if the first losses are reliably lower, 1 if the second are, else 0.

    Reliably: the 95 % interval of the paired differences does not contain 0.
    """
    _, low, high = interval(first, second)
    return -1 if high < 0 else 1 if low > 0 else 0


def steps(record, kind):
    """Return the numbers of updates after which a network was measured."""
    rate = _rates(record, kind)[0]
    return [int(step) for step in record["by_seed"][0][kind][rate]["equal"]]


def best_rate(record, kind, step):
    """Return the rate, as text, with the lower mean loss on the text for choosing."""
    return min(
        _rates(record, kind),
        key=lambda rate: _values(record, kind, rate, "choice", step).mean(),
    )


def losses(record, kind, step, way="equal", rate=None):
    """Return the losses of all seeds, in nats per character.

    Parameters
    ----------
    record : dict
        The committed result ``comparison``.
    kind : str
        A network.
    step : int
        Number of updates.
    way : {"equal", "windows", "carried"}, default="equal"
        How the loss is measured.
    rate : float, optional
        The learning rate; that of :func:`best_rate` if not given.
    """
    rate = best_rate(record, kind, step) if rate is None else f"{rate:g}"
    return _values(record, kind, rate, way, step)


def at_time(record, times, kind, seconds):
    """Return the losses of all seeds after so many seconds of training, interpolated.

    A step takes the mean over the seeds of ``times``; between two measurements the loss is a
    straight line in the logarithm of the steps.

    Raises
    ------
    ValueError
        If the network was not measured before and after that time.
    """
    context = str(record["inputs"]["context"])
    wanted = 1000 * seconds / times["results"]["milliseconds"][kind][context]
    measured = steps(record, kind)
    if not measured[0] <= wanted <= measured[-1]:
        raise ValueError(
            f"seconds must be a time between the first and the last measurement of {kind}, "
            f"got {seconds}, which is step {wanted:.0f} of {measured[0]} to {measured[-1]}"
        )
    rows = np.stack([losses(record, kind, step) for step in measured])  # (steps, seeds)
    return np.array([np.interp(np.log(wanted), np.log(measured), row) for row in rows.T])


def plot_curves(record, times):
    """Draw the mean loss against the characters read, and against the time; return it."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    inputs = record["inputs"]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.9), sharey=True, layout="constrained")
    for (kind, name), color in zip(NAMES.items(), style.COLORS, strict=True):
        measured = np.array(steps(record, kind))
        values = np.stack([losses(record, kind, step) for step in measured])
        each = times["results"]["milliseconds"][kind][str(inputs["context"])] / 1000
        tokens = measured * inputs["batch"] * inputs["context"] / 1e6
        for axis, x in zip(axes, (tokens, measured * each), strict=True):
            axis.plot(x, values.mean(axis=1), MARKS[kind], color=color, label=name)
            low, high = values.min(axis=1), values.max(axis=1)
            axis.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
    axes[0].set(xscale="log", xlabel="million characters read", ylabel="nats per character")
    axes[1].set(xscale="log", xlabel="seconds of training, one thread")
    for axis, ticks in zip(axes, ((0.1, 0.2, 0.5, 1), (1, 2, 5, 10, 20, 30)), strict=True):
        axis.set_xticks(ticks, ticks)
        axis.minorticks_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def plot_differences(rows):
    """Draw mean and interval of paired differences, a line for each name; return the figure.

    Parameters
    ----------
    rows : dict of str to (float, float, float)
        Name of a pair to what :func:`interval` returns.
    """
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    figure, axis = plt.subplots(figsize=(6.4, 0.8 + 0.3 * len(rows)), layout="constrained")
    for height, (mean, low, high) in enumerate(rows.values()):
        color = style.TEXT if low <= 0 <= high else style.BLUE if high < 0 else style.ORANGE
        axis.plot([low, high], [height, height], "-", color=color, linewidth=3)
        axis.plot(mean, height, "o", color=color)
    axis.axvline(0, color=style.TEXT, linewidth=0.8)
    axis.set_yticks(range(len(rows)), rows)
    axis.invert_yaxis()
    axis.set(xlabel="difference in nats per character; below 0 the first is ahead")
    return figure


def plot_times(times):
    """Draw the time of a training step against the context; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    contexts = times["inputs"]["contexts"]
    for (kind, name), color in zip(NAMES.items(), style.COLORS, strict=True):
        values = list(times["results"]["milliseconds"][kind].values())
        axis.plot(contexts, values, MARKS[kind], color=color, label=name)
    axis.set(xscale="log", yscale="log", xlabel="context", ylabel="milliseconds for a step")
    axis.set_xticks(contexts, contexts)
    axis.set_yticks((10, 20, 50, 100, 200), (10, 20, 50, 100, 200))
    axis.minorticks_off()
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _rates(record, kind):
    return [f"{rate:g}" for rate in record["inputs"]["rates"][kind]]


def _values(record, kind, rate, way, step):
    return np.array([seed[kind][rate][way][str(step)] for seed in record["by_seed"]])
