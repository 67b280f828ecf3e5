"""Backpropagation through time, cut after a given number of steps."""

import numpy as np

from seqlib._check import check_positive
from seqlib.np._recurrent import parameter_gradients, states_before
from seqlib.np.rnn import rnn

__all__ = ["rnn_truncated_backward"]


def rnn_truncated_backward(dy, x, h0, weight_ih, weight_hh, bias_ih, bias_hh, *, k1, k2):
    """Gradient of :func:`rnn` by truncated backpropagation through time.

    The forward pass is cut into blocks of ``k1`` steps; the last may be shorter. At the end
    of each block the gradients of the outputs of that block are carried back over at most
    ``k2`` steps, which may reach into earlier blocks. States are carried forward without a
    cut, so the values are those of :func:`rnn`; only the gradient is approximate.
    Each output counts once. With ``k2 >= T`` nothing is cut and the result is that of
    ``rnn_backward``, whatever ``k1`` is.

    With T = 5 and k1 = k2 = 2 the blocks are steps 1-2, 3-4 and 5. The output of step 5
    then acts on the gradient through steps 5 and 4, that of step 4 through 4 and 3, and
    that of step 3 through step 3 alone.

    Parameters
    ----------
    dy : tuple of two ndarray
        Gradients of the loss with respect to ``y``, of shape (B, T, H), and ``h_n``, of shape
        (B, H), which belongs to the last block.
    x, h0, weight_ih, weight_hh, bias_ih, bias_hh
        The arguments of the forward call of :func:`rnn`.
    k1 : int
        Steps between two backward passes, at least 1.
    k2 : int
        Steps that each backward pass goes back, at least ``k1``.

    Returns
    -------
    dx : ndarray of shape (B, T, D)
        Gradient with respect to ``x``.
    dh0 : ndarray of shape (B, H)
        Gradient with respect to ``h0``: what reaches the first step.
    dweight_ih : ndarray of shape (H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (H,) or None
        Gradients with respect to the biases; None for a bias that is None.

    Raises
    ------
    ValueError
        If ``k1`` is not a positive integer or ``k2`` is less than ``k1``.

    References
    ----------
    Lecture notes, section 2. Williams and Peng (1990), "An Efficient Gradient-Based Algorithm
    for On-Line Training of Recurrent Network Trajectories", Neural Computation 2, call this
    BPTT(h; h') with h = k2 and h' = k1.
    """
    check_positive("k1", k1)
    check_positive("k2", k2)
    if k2 < k1:
        raise ValueError(
            f"k2 must be at least k1 = {k1}, got {k2}; otherwise the first steps of a block "
            "get no gradient from its last outputs"
        )
    dy, dh_n = dy
    y, _ = rnn(x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    T = x.shape[1]
    da = np.zeros_like(y)
    dh0 = np.zeros_like(dh_n)
    for start in range(0, T, k1):
        stop = min(start + k1, T)
        dh = dh_n if stop == T else np.zeros_like(dh_n)
        for t in reversed(range(max(0, stop - k2), stop)):
            if t >= start:  # outputs before this block had their turn
                dh = dh + dy[:, t]
            da_t = dh * (1 - y[:, t] ** 2)
            da[:, t] += da_t
            dh = da_t @ weight_hh
        if stop <= k2:
            dh0 += dh
    if T == 0:
        dh0 += dh_n
    h_prev = states_before(y, h0, None, False)
    dweight_ih, dbias_ih = parameter_gradients(da, x, bias_ih)
    dweight_hh, dbias_hh = parameter_gradients(da, h_prev, bias_hh)
    return da @ weight_ih, dh0, dweight_ih, dweight_hh, dbias_ih, dbias_hh
