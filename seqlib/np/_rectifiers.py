"""ReLU and its smooth relative GELU, with the error function that NumPy lacks."""

import math

import numpy as np

from seqlib._check import check_choice


def relu(x):
    r"""Rectified linear unit, applied to each entry.

    .. math:: \mathrm{relu}(x) = \max(x, 0)

    Parameters
    ----------
    x : ndarray of shape (...)
        Inputs.

    Returns
    -------
    ndarray of shape (...)
        ``x`` where it is positive, 0 elsewhere.
    """
    return np.maximum(x, 0)


def relu_backward(dy, x):
    """Vector-Jacobian product of :func:`relu`; the slope at 0 is taken as 0.

    Parameters
    ----------
    dy : ndarray of shape (...)
        Gradient of the loss with respect to the output.
    x
        The argument of the forward call.

    Returns
    -------
    ndarray of shape (...)
        Gradient with respect to ``x``.
    """
    return np.where(x > 0, dy, 0)


def gelu(x, *, approximate="none"):
    r"""Gaussian error linear unit, applied to each entry.

    .. math::

        \mathrm{gelu}(x) &= x \, \Phi(x)
            = \frac{x}{2} \left(1 + \mathrm{erf}(x / \sqrt{2})\right) \\
        \mathrm{gelu_{tanh}}(x) &= \frac{x}{2}
            \left(1 + \tanh\left(\sqrt{2 / \pi} \, (x + 0.044715 \, x^3)\right)\right)

    Parameters
    ----------
    x : ndarray of shape (...)
        Inputs.
    approximate : {"none", "tanh"}, default="none"
        The first formula or the second; they differ by less than 5e-4.

    Returns
    -------
    ndarray of shape (...)
        Outputs.

    Raises
    ------
    ValueError
        If ``approximate`` is neither of the two.

    References
    ----------
    Hendrycks and Gimpel (2016), "Gaussian Error Linear Units (GELUs)", Section 2,
    arXiv:1606.08415.
    """
    check_choice("approximate", approximate, ("none", "tanh"))
    if approximate == "tanh":
        return x * ((1 + np.tanh(_gelu_inner(x))) / 2)
    return x * _normal_cdf(x)


def gelu_backward(dy, x, *, approximate="none"):
    """Vector-Jacobian product of :func:`gelu`.

    Parameters
    ----------
    dy : ndarray of shape (...)
        Gradient of the loss with respect to the output.
    x, approximate
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (...)
        Gradient with respect to ``x``.
    """
    # Beyond 40 every term below is constant, and a square or cube could overflow.
    x = np.clip(x, -40, 40)
    if approximate == "tanh":
        t = np.tanh(_gelu_inner(x))
        dinner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
        return dy * ((1 + t) / 2 + x * (1 - t**2) * dinner / 2)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return dy * (_normal_cdf(x) + x * density)


def _gelu_inner(x):
    x = np.clip(x, -40, 40)  # tanh is 1 beyond, and the cube could overflow
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def _normal_cdf(x):
    return ((1 + _erf(x / math.sqrt(2))) / 2).astype(x.dtype)


def _erf(z):
    r"""Error function in float64, by a series whose terms all have the sign of z.

    .. math:: \mathrm{erf}(z) = \frac{2}{\sqrt{\pi}} e^{-z^2} z \left(1 + \frac{2 z^2}{3}
        \left(1 + \frac{2 z^2}{5} \left(1 + \dots \right) \right) \right)

    Nothing cancels, so the only errors are those of rounding, about 1e-15.
    """
    near = np.clip(z, -6, 6).astype(np.float64)  # erf(6) is 1 - 2e-17
    square = near**2
    terms = int(20 + 3 * np.fmax.reduce(square, axis=None, initial=0))  # enough for 1e-15
    total = np.ones_like(near)
    for n in range(terms, 0, -1):
        total = 1 + 2 * square / (2 * n + 1) * total
    erf = 2 / math.sqrt(math.pi) * np.exp(-square) * near * total
    return np.where(np.abs(z) < 6, np.clip(erf, -1, 1), np.sign(z))
