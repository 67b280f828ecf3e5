r"""Forecasts without a network: persistence, the number of one cycle ago, autoregression.

All of them, and the networks of :mod:`seqlib.experiments.forecasting`, forecast in the same
way: at the end of a year they know all numbers so far, and never a later one.
"""

import numpy as np

from seqlib._check import check_positive

__all__ = [
    "akaike",
    "block_bootstrap",
    "fit_autoregression",
    "forecast",
    "largest_root",
    "rms",
    "rolling",
]


def fit_autoregression(series, order):
    r"""Fit an autoregression by least squares.

    .. math:: x_t = c + \varphi_1 x_{t-1} + \dots + \varphi_p x_{t-p} + \epsilon_t

    Parameters
    ----------
    series : ndarray of shape (T,)
        The series.
    order : int
        Number p of years that the forecast looks back.

    Returns
    -------
    ndarray of shape (p + 1,)
        c and the coefficients, that of the last year first.

    Raises
    ------
    ValueError
        If the series is too short to fit the coefficients.
    """
    check_positive("order", order)
    if len(series) < 2 * order + 1:
        raise ValueError(
            f"series must have at least {2 * order + 1} entries for order {order}, got "
            f"{len(series)}; use a smaller order"
        )
    return np.linalg.lstsq(_lags(series, order), series[order:], rcond=None)[0]


def akaike(series, order, longest):
    r"""Return Akaike's criterion of an autoregression; the order with the smallest is chosen.

    .. math:: n \ln \hat\sigma^2 + 2 (p + 1)

    Every order is compared on the same n entries, those behind the first ``longest``.

    Parameters
    ----------
    series : ndarray of shape (T,)
        The series.
    order, longest : int
        The order p, and the largest one of the comparison.

    Returns
    -------
    float
        The criterion.

    References
    ----------
    Akaike (1974), "A New Look at the Statistical Model Identification", IEEE Transactions on
    Automatic Control 19, 716-723.
    """
    if not 1 <= order <= longest:
        raise ValueError(f"order must lie in [1, {longest}], got {order}")
    inputs, targets = _lags(series[longest - order :], order), series[longest:]
    left = targets - inputs @ np.linalg.lstsq(inputs, targets, rcond=None)[0]
    return float(len(targets) * np.log(np.mean(left**2)) + 2 * (order + 1))


def forecast(coefficients, series, steps):
    """Return the forecasts of an autoregression for the steps behind a series, one by one.

    Parameters
    ----------
    coefficients : ndarray of shape (p + 1,)
        As from :func:`fit_autoregression`.
    series : ndarray of shape (T,)
        What is known; the last p entries count.
    steps : int
        Number of steps; each forecast takes the place of the number that is not yet known.

    Returns
    -------
    ndarray of shape (steps,)
        The forecasts.
    """
    order = len(coefficients) - 1
    if len(series) < order:
        raise ValueError(f"series must have at least {order} entries, got {len(series)}")
    known = list(series[len(series) - order :])
    for _ in range(steps):
        known.append(coefficients[0] + coefficients[1:] @ known[: -order - 1 : -1])
    return np.array(known[order:])


def rolling(method, series, places, horizon):
    """Forecast the entries at some places, each from what was known ``horizon`` steps before.

    Parameters
    ----------
    method : callable
        ``method(known, steps)`` returns the forecasts of the next steps.
    series : ndarray of shape (T,)
        The series.
    places : iterable of int
        Indices of the entries.
    horizon : int
        1 for the next entry.

    Returns
    -------
    ndarray of shape (n,)
        The forecasts.
    """
    check_positive("horizon", horizon)
    return np.array([method(series[: t - horizon + 1], horizon)[-1] for t in places])


def largest_root(coefficients):
    r"""Return the modulus and the period of the slowest oscillation of an autoregression.

    Solutions of the recursion without noise are sums of :math:`\lambda^t`, where lambda is a
    root of :math:`\lambda^p = \varphi_1 \lambda^{p-1} + \dots + \varphi_p`. A pair of complex
    roots of modulus r and angle w is a wave that is multiplied by r a step and lasts 2 pi / w
    steps.

    Parameters
    ----------
    coefficients : ndarray of shape (p + 1,)
        As from :func:`fit_autoregression`.

    Returns
    -------
    modulus, period : float
        Those of the complex root with the largest modulus.

    Raises
    ------
    ValueError
        If no root is complex.
    """
    roots = np.roots([1.0, *-np.asarray(coefficients)[1:]])
    roots = roots[roots.imag > 1e-9]
    if not len(roots):
        raise ValueError("coefficients must have a complex root to have a period, got none")
    root = max(roots, key=abs)
    return float(abs(root)), float(2 * np.pi / np.angle(root))


def rms(errors):
    """Return the root of the mean square.

    >>> rms([3.0, -4.0, 0.0, 0.0])
    2.5
    """
    return float(np.sqrt(np.mean(np.square(errors))))


def block_bootstrap(values, rng, *, block, draws=10_000):
    """Return means of resampled series, in which blocks of neighbours stay together.

    Errors of neighbouring years hang together, so years cannot be drawn one by one. Blocks of
    ``block`` years are drawn with any start, put together, and cut to the length of the series.

    Parameters
    ----------
    values : ndarray of shape (T,)
        One number a year, for example the difference of two squared errors.
    rng : numpy.random.Generator
        Source of the blocks.
    block : int
        Length of a block.
    draws : int, default=10_000
        Number of resampled series.

    Returns
    -------
    ndarray of shape (draws,)
        Their means.

    Raises
    ------
    ValueError
        If a block is longer than the series.

    References
    ----------
    Künsch (1989), "The Jackknife and the Bootstrap for General Stationary Observations",
    Annals of Statistics 17, 1217-1241.
    """
    check_positive("block", block)
    T = len(values)
    if block > T:
        raise ValueError(f"block must be at most the length {T} of the series, got {block}")
    starts = rng.integers(T - block + 1, size=(draws, -(-T // block)))
    places = (starts[..., None] + np.arange(block)).reshape(draws, -1)[:, :T]
    return np.asarray(values)[places].mean(axis=1)


def _lags(series, order):
    """Return the rows (1, x_(t-1), ..., x_(t-p)) for all t with p entries before them."""
    windows = np.lib.stride_tricks.sliding_window_view(series[:-1], order)[:, ::-1]
    return np.column_stack([np.ones(len(windows)), windows])
