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
    for bias in (bias_ih, bias_hh):
        if bias is not None:
            a += bias
    return a


def logistic(a):
    """Return ``sigmoid(a)`` as ``(1 + tanh(a / 2)) / 2``: the gates take most of the time.

    Equal to :func:`seqlib.np.sigmoid` to the rounding of 1, in a third of its passes.
    """
    s = np.tanh(0.5 * a)
    s += 1
    s *= 0.5
    return s


def fast_transpose(weight):
    """Return the same matrix, stored so that its transpose is contiguous.

    The loop over time multiplies by ``weight.T`` once per step, and a product with a
    contiguous matrix takes about two thirds of the time.
    """
    return np.asfortranarray(weight)


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
