"""Steps that the recurrent layers share in NumPy."""

import numpy as np

from seqlib._recurrent import check_lengths, time_order


def project(x, weight, bias):
    """Return ``x @ weight.T + bias``, where the bias may be None."""
    y = x @ weight.T
    if bias is not None:
        y += bias
    return y


def pre_activation(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """Return ``W_ih x + b_ih + W_hh h + b_hh`` for the rows of ``x`` and ``h``."""
    a = x @ weight_ih.T + h @ weight_hh.T
    bias = total_bias(bias_ih, bias_hh)
    if bias is not None:
        a += bias
    return a


def total_bias(bias_ih, bias_hh):
    """Return the sum of two biases, either of which may be None."""
    if bias_ih is None or bias_hh is None:
        return bias_hh if bias_ih is None else bias_ih
    return bias_ih + bias_hh


def logistic(a):
    """Return ``1 / (1 + exp(-a))``, in a third of the passes of :func:`seqlib.np.sigmoid`.

    Far below 0 the exponential is infinite and its reciprocal the right 0; far above 0 it
    vanishes beside 1. Neither is to be reported.
    """
    s = np.negative(a)
    logistic_of_negative(s)
    return s


def logistic_of_negative(a):
    """Overwrite ``a`` by ``1 / (1 + exp(a))``."""
    with np.errstate(over="ignore", under="ignore"):
        np.exp(a, out=a)
    a += 1
    np.reciprocal(a, out=a)


def fast_transpose(weight):
    """Return the same matrix, stored so that the rows of its transpose are contiguous.

    The loop over time multiplies by ``weight.T`` once per step, which is faster so. Between
    two of those rows 128 bytes are left free: at a distance of a power of 2, as it often is
    without, all rows compete for the same few places of a cache.
    """
    rows, columns = weight.shape
    stored = np.empty((columns, rows + 128 // weight.itemsize), weight.dtype)[:, :rows]
    stored[:] = weight.T
    return stored.T


def split_columns(weight):
    """Return a matrix of ``(K, H)`` as n narrow ones, ``(n, K, H / n)``."""
    K, H = weight.shape
    columns = narrow(H, K * weight.itemsize)
    return np.ascontiguousarray(weight.reshape(K, H // columns, columns).swapaxes(0, 1))


def in_columns(out, weight):
    """View where ``rows @ weight`` is to go as the product with narrow matrices fills it.

    The view is made once, before a loop over time with ``np.matmul(rows, weight, out=view)``.

    Parameters
    ----------
    out : ndarray of shape (..., B, H)
        Where the products go.
    weight : ndarray of shape (..., n, K, H / n)
        The columns of the weights.

    Returns
    -------
    ndarray of shape (..., n, B, H / n)
    """
    *_, n, _, columns = weight.shape
    return out.reshape(*out.shape[:-1], n, columns).swapaxes(-2, -3)


def times(rows, weight):
    """Return ``rows @ weight`` for the narrow matrices that hold a weight's columns."""
    n, _, columns = weight.shape
    y = np.empty((len(rows), n * columns), np.result_type(rows, weight))
    np.matmul(rows, weight, out=in_columns(y, weight))
    return y


def narrow(H, size):
    """Return how many of H columns of ``size`` bytes each a narrow matrix has.

    A product of few rows reads the weights once for every few of these rows: it is faster
    where they stay in the smallest cache, of 32 KiB or more.
    """
    columns = H
    while columns % 2 == 0 and columns > 32 and columns * size > 2**15:
        columns //= 2
    return columns


def mask_padding(x, lengths):
    """Return ``x`` with its padded steps set to 0, and where steps are valid, ``(B, T, 1)``.

    What stands at a padded step, NaN included, then reaches neither a value nor a gradient.
    Without lengths the second result is None: every step is valid.
    """
    if lengths is None:
        return x, None
    lengths = np.asarray(lengths)
    check_lengths(lengths, x)
    valid = (np.arange(x.shape[1]) < lengths[:, None])[..., None]  # (B, T, 1)
    return np.where(valid, x, 0), valid


def keep(valid, t, new, old):
    """Return ``new`` for the sequences in which step ``t`` is valid, else ``old``."""
    return new if valid is None else np.where(valid[:, t], new, old)


def zero_padding(y, valid):
    """Return ``y`` with its padded steps set to 0."""
    return y if valid is None else np.where(valid, y, 0)


def parameter_gradients(da, inputs, bias):
    """Return the gradients of the weight and the bias of ``a = inputs @ weight.T + bias``.

    Every step of every sequence used the same parameters, so their gradients are sums over
    all of them; one matrix product over ``B * T`` rows adds them up.
    """
    rows_da = da.reshape(-1, da.shape[-1])  # (B T, rows of the weight)
    rows_in = inputs.reshape(-1, inputs.shape[-1])
    return rows_da.T @ rows_in, None if bias is None else rows_da.sum(axis=0)


def states_before(y, h0, valid, reverse):
    """Return the state before each step, ``(B, T, H)``, from the states ``y`` after them."""
    before = np.empty_like(y)
    h = h0
    for t in time_order(y.shape[1], reverse):
        before[:, t] = h
        h = keep(valid, t, y[:, t], h)
    return before
