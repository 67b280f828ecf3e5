"""Storage that the fast recurrent layers share: step first, in the order of the computation.

The plain functions allocate as they read best. The ``*_with_vjp`` forms keep the inputs and
states of all steps in one array, write every intermediate in place, and do the products that
need no state (gradients of inputs and weights) for a block of steps at a time, small enough
to stay in the cache.
"""

import numpy as np

from seqlib.np._recurrent import mask_padding, narrow


class Steps:
    """The rows ``[x_t, 1, h]`` of every step, where ``h`` is the state before the step.

    Attributes
    ----------
    rows : ndarray of shape (T + 1, B, D + 1 + H)
        Step first, in the order in which the layer runs; the last one holds only ``h_n``.
        The column of ones multiplies the biases.
    frozen : list of T entries
        The sequences, ``(B, 1)``, that a step leaves as they are, or None if there are none.
    """

    def __init__(self, x, h0, dtype, lengths, reverse):
        x, valid = mask_padding(x, lengths)
        self.B, self.T, self.D = x.shape
        self.valid, self.reverse = valid, reverse
        self.frozen = [None] * self.T
        if valid is not None:
            padded = self.in_order(~valid)
            self.frozen = [step if step.any() else None for step in padded]
        self.rows = np.empty((self.T + 1, self.B, self.D + 1 + h0.shape[1]), dtype)
        self.rows[:-1, :, : self.D] = self.in_order(x)
        self.rows[:, :, self.D] = 1
        self.h[0] = h0

    @property
    def h(self):
        """The states before each step and after the last, ``(T + 1, B, H)``."""
        return self.rows[:, :, self.D + 1 :]

    def in_order(self, array):
        """View a ``(B, T, ...)`` array step first, in the order of the computation."""
        return (array[:, ::-1] if self.reverse else array).swapaxes(0, 1)

    def output(self):
        """Return ``y``, ``(B, T, H)``, which shares no memory with the saved states."""
        y = np.empty((self.B, self.T, self.h.shape[-1]), self.rows.dtype)
        self.in_order(y)[:] = self.h[1:]
        return y if self.valid is None else np.where(self.valid, y, 0)

    def blocks(self):
        """Return the ``(start, stop)`` of blocks of steps of about 256 rows each."""
        size = max(1, 256 // max(1, self.B))
        return [(s, min(s + size, self.T)) for s in range(0, self.T, size)]

    def flat(self, start, stop):
        """Return the rows of a block, ``(steps * B, D + 1 + H)``."""
        return self.rows[start:stop].reshape(-1, self.rows.shape[-1])


def restore(frozen, *pairs):
    """Put the old values back for the frozen sequences, for each pair ``(new, old)``."""
    if frozen is not None:
        for new, old in pairs:
            np.copyto(new, old, where=frozen)


def remember(frozen, *arrays):
    """Return copies of the arrays if a step freezes some sequence, else the arrays."""
    return arrays if frozen is None else tuple(array.copy() for array in arrays)


def stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates, dtype):
    """Return the weights of ``[x, 1, h]`` for the given gates, in narrow matrices.

    Parameters
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh
        The parameters of the layer, gate after gate.
    gates : sequence of int
        The gates that are wanted, in the order wanted.
    dtype : dtype
        That of the result.

    Returns
    -------
    ndarray of shape (gates, n, D + 1 + H, H / n)
        Each gate's columns in n matrices, for :func:`in_columns`.
    """
    D, H = weight_ih.shape[1], weight_hh.shape[1]
    columns = narrow(H, (D + 1 + H) * np.dtype(dtype).itemsize)
    stacked = np.zeros((len(gates), H // columns, D + 1 + H, columns), dtype)

    def split(parameter):  # (gates, n, H / n, ...)
        return parameter.reshape(-1, H // columns, columns, *parameter.shape[1:])[gates]

    stacked[:, :, :D] = split(weight_ih).swapaxes(-1, -2)
    stacked[:, :, D + 1 :] = split(weight_hh).swapaxes(-1, -2)
    for bias in (bias_ih, bias_hh):
        if bias is not None:
            stacked[:, :, D] += split(bias)
    return stacked
