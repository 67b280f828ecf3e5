"""The recurrent layer and its gradient in one pass, for speed."""

import numpy as np

from seqlib._recurrent import check_sequence
from seqlib.np._recurrent import in_columns, split_columns
from seqlib.np._time_major import Steps, remember, restore, stack_weights

__all__ = ["rnn_with_vjp"]


def rnn_with_vjp(x, h0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False):
    """Run :func:`rnn` and return its gradient as a function that remembers the forward pass.

    ``rnn_backward`` runs the forward pass again; this form keeps the states instead, so a
    training step costs one forward and one backward pass. Values and gradients are those of
    the plain pair.

    Parameters
    ----------
    x, h0, weight_ih, weight_hh, bias_ih, bias_hh, lengths, reverse
        The arguments of :func:`rnn`.

    Returns
    -------
    (y, h_n) : tuple of ndarray
        What :func:`rnn` returns.
    vjp : callable
        ``vjp((dy, dh_n))`` returns what :func:`rnn_backward` returns; it may be called
        again.
    """
    check_sequence(x, {"h0": h0}, weight_ih, weight_hh, bias_ih, bias_hh, gates="")
    dtype = np.result_type(x, h0, weight_ih, weight_hh)
    steps = Steps(x, h0, dtype, lengths, reverse)
    (B, T, D), H = x.shape, h0.shape[1]
    weight = stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, [0], dtype)[0]
    h, a = steps.h, np.empty((B, H), dtype)
    a_columns = in_columns(a, weight)
    for t in range(T):
        np.matmul(steps.rows[t], weight, out=a_columns)
        np.tanh(a, out=h[t + 1])
        restore(steps.frozen[t], (h[t + 1], h[t]))

    def vjp(dy):
        dy, dh = steps.in_order(dy[0]), dy[1].astype(dtype)
        dx = np.empty((B, T, D), dtype)
        dweight = np.zeros((H, D + 1 + H), dtype)
        rows_hh, slope = split_columns(weight_hh), np.empty((B, H), dtype)
        dh_columns, one = in_columns(dh, rows_hh), np.ones((), dtype)
        for start, stop in reversed(steps.blocks()):
            da = np.empty((stop - start, B, H), dtype)
            for t in reversed(range(start, stop)):
                frozen, da_t = steps.frozen[t], da[t - start]
                (dh_old,) = remember(frozen, dh)
                np.square(h[t + 1], out=slope)
                np.subtract(one, slope, out=slope)
                np.add(dy[t], dh, out=da_t)
                da_t *= slope
                restore(frozen, (da_t, 0))
                np.matmul(da_t, rows_hh, out=dh_columns)
                restore(frozen, (dh, dh_old))
            rows = da.reshape(-1, H)
            steps.in_order(dx)[start:stop] = (rows @ weight_ih).reshape(stop - start, B, D)
            dweight += rows.T @ steps.flat(start, stop)
        dbias = [None if b is None else dweight[:, D].copy() for b in (bias_ih, bias_hh)]
        return dx, dh, dweight[:, :D].copy(), dweight[:, D + 1 :].copy(), *dbias

    return (steps.output(), h[T].copy()), vjp
