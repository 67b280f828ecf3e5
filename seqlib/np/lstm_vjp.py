"""Long short-term memory and its gradient in one pass, for speed."""

import numpy as np

from seqlib._recurrent import check_sequence
from seqlib.np._recurrent import in_columns, logistic_of_negative, split_columns
from seqlib.np._time_major import Steps, remember, restore, stack_weights

__all__ = ["lstm_with_vjp"]


def lstm_with_vjp(
    x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False
):
    """Run :func:`lstm` and return its gradient as a function that remembers the forward pass.

    Values and gradients are those of the plain pair. Inside, the gates are ordered i, f, o, g
    so that the three logistic ones are one block, and the weights of that block have the other
    sign: ``sigmoid(a) = 1 / (1 + exp(-a))`` then needs no pass for the minus.

    Parameters
    ----------
    x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, lengths, reverse
        The arguments of :func:`lstm`.

    Returns
    -------
    (y, h_n, c_n) : tuple of ndarray
        What :func:`lstm` returns.
    vjp : callable
        ``vjp((dy, dh_n, dc_n))`` returns what :func:`lstm_backward` returns; it may be
        called again.
    """
    states = {"h0": h0, "c0": c0}
    check_sequence(x, states, weight_ih, weight_hh, bias_ih, bias_hh, gates="i, f, g, o")
    dtype = np.result_type(x, h0, c0, weight_ih, weight_hh)
    steps = Steps(x, h0, dtype, lengths, reverse)
    (B, T, D), H = x.shape, h0.shape[1]
    order = [0, 1, 3, 2]  # of the gates, its own inverse
    weight = stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, order, dtype)
    weight[:3] *= -1
    # i, f, o, g, and from before the step c and tanh(c)
    h, saved = steps.h, np.empty((T + 1, 6, B, H), dtype)
    saved[0, 4] = c0
    gates_columns, products = in_columns(saved[:, :4], weight), np.empty((2, B, H), dtype)
    for t in range(T):
        sigmoids, g = saved[t, :3], saved[t, 3]
        c, tanh_c = saved[t + 1, 4:]
        np.matmul(steps.rows[t], weight, out=gates_columns[t])
        logistic_of_negative(sigmoids)
        np.tanh(g, out=g)
        np.multiply(saved[t, :2], saved[t, 3:5], out=products)  # i * g, f * c
        np.add(*products, out=c)
        np.tanh(c, out=tanh_c)
        np.multiply(saved[t, 2], tanh_c, out=h[t + 1])
        restore(steps.frozen[t], (h[t + 1], h[t]), (c, saved[t, 4]))

    def vjp(dy):
        dy, dh, dc = steps.in_order(dy[0]), dy[1].astype(dtype), dy[2].astype(dtype)
        dx = np.empty((B, T, D), dtype)
        dweight = np.zeros((4 * H, D + 1 + H), dtype)
        rows_ih, rows_hh = (_reorder(w, order) for w in (weight_ih, weight_hh))
        rows_hh = split_columns(rows_hh)
        dh_columns, one = in_columns(dh, rows_hh), np.ones((), dtype)
        slope, factor = np.empty((2, 4, B, H), dtype)
        for start, stop in reversed(steps.blocks()):
            da = np.empty((stop - start, B, 4, H), dtype)
            for t in reversed(range(start, stop)):
                i, f, o = saved[t, :3]
                # At a frozen step this is not the tanh of c; nothing of it is kept.
                tanh_c = saved[t + 1, 5]
                frozen, da_t = steps.frozen[t], da[t - start].swapaxes(0, 1)
                dh_old, dc_old = remember(frozen, dh, dc)
                # Derivatives of the gates: s - s^2 for the logistic ones, 1 - g^2 for g.
                np.square(saved[t, :4], out=slope)
                np.subtract(saved[t, :3], slope[:3], out=slope[:3])
                np.subtract(one, slope[3], out=slope[3])
                dh += dy[t]
                np.multiply(dh, tanh_c, out=factor[2])
                dc += _through_tanh(dh, factor[2], tanh_c, o, out=factor[3])
                np.multiply(dc, saved[t, 3:5], out=factor[:2])
                np.multiply(dc, i, out=factor[3])
                np.multiply(slope, factor, out=da_t)
                dc *= f
                restore(frozen, (da_t, 0))
                np.matmul(da[t - start].reshape(B, 4 * H), rows_hh, out=dh_columns)
                restore(frozen, (dh, dh_old), (dc, dc_old))
            rows = da.reshape(-1, 4 * H)
            steps.in_order(dx)[start:stop] = (rows @ rows_ih).reshape(stop - start, B, D)
            dweight += rows.T @ steps.flat(start, stop)
        dweight = _reorder(dweight, order)
        dbias = [None if b is None else dweight[:, D].copy() for b in (bias_ih, bias_hh)]
        return dx, dh, dc, dweight[:, :D].copy(), dweight[:, D + 1 :].copy(), *dbias

    return (steps.output(), h[T].copy(), saved[T, 4].copy()), vjp


def _reorder(rows, order):
    """Return the rows of a matrix with its gates in another order."""
    return rows.reshape(len(order), -1, rows.shape[1])[order].reshape(rows.shape)


def _through_tanh(dh, dh_tanh_c, tanh_c, o, out):
    """Return ``dh * o * (1 - tanh_c**2)``, what the gradient of h adds to that of c."""
    np.multiply(dh_tanh_c, tanh_c, out=out)
    np.subtract(dh, out, out=out)
    out *= o
    return out
