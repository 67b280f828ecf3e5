"""Storage that the fast recurrent layers share: step first, in the order of the computation.

The plain functions allocate as they read best. The ``*_with_vjp`` forms keep the inputs and
states of all steps in one array, write every intermediate in place, and do the products that
need no state (inputs, gradients of the weights) for a block of steps at a time, small enough
to stay in the cache.
"""

import numpy as np

from seqlib.np._recurrent import mask_padding


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

    def from_x(self, start, stop, weight, blocks):
        """Return what ``[x, 1]`` adds to each gate, ``(steps, blocks, B, H)``."""
        sums = self.flat(start, stop)[:, : self.D + 1] @ weight
        H = weight.shape[1] // blocks
        return sums.reshape(stop - start, self.B, blocks, H).swapaxes(1, 2)


def restore(frozen, *pairs):
    """Put the old values back for the frozen sequences, for each pair ``(new, old)``."""
    if frozen is not None:
        for new, old in pairs:
            np.copyto(new, old, where=frozen)


def remember(frozen, *arrays):
    """Return copies of the arrays if a step freezes some sequence, else the arrays."""
    return arrays if frozen is None else tuple(array.copy() for array in arrays)


def stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, rows, dtype):
    """Return the weights of ``[x, 1, h]``, ``(D + 1 + H, rows)``, with the rows reordered."""
    D, H = weight_ih.shape[1], weight_hh.shape[1]
    stacked = np.zeros((D + 1 + H, len(rows)), dtype)
    stacked[:D], stacked[D + 1 :] = weight_ih[rows].T, weight_hh[rows].T
    for bias in (bias_ih, bias_hh):
        if bias is not None:
            stacked[D] += bias[rows]
    return stacked


def by_gate(weight, blocks):
    """Return the columns of each gate as a matrix of its own, ``(blocks, H, H)``.

    One small product per gate is faster than a wide one, and leaves each gate contiguous.
    """
    H = len(weight)
    return np.ascontiguousarray(weight.reshape(H, blocks, -1).swapaxes(0, 1))
