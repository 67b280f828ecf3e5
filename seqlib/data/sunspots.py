"""Yearly sunspot numbers: a short real series with a period that is nearly regular."""

from pathlib import Path

import numpy as np

__all__ = ["sunspots"]


def sunspots():
    """Return the yearly mean sunspot numbers of 1700 to 2008.

    The number counts spots and ten times the groups of spots; it rises and falls about every
    11 years, and each cycle is different. The largest is 190.2, in 1957.

    Returns
    -------
    years : ndarray of int of shape (309,)
        1700 to 2008.
    numbers : ndarray of shape (309,)
        The mean of each year, in float64.

    References
    ----------
    National Geophysical Data Center (NOAA), international sunspot number, version 1; public
    domain. ``sunspots.csv`` beside this module says with what it was compared. Version 2, of
    2015, has larger numbers throughout and other terms of use.
    """
    path = Path(__file__).with_name("sunspots.csv")
    years, numbers = np.loadtxt(path, delimiter=",", skiprows=5, unpack=True)
    return years.astype(np.int64), numbers
