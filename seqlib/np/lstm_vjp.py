"""Long short-term memory and its gradient in one pass, for speed."""

import numpy as np

from seqlib._recurrent import check_sequence
from seqlib.np._time_major import Steps, by_gate, remember, restore, stack_weights

__all__ = ["lstm_with_vjp"]


def lstm_with_vjp(
    x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False
):
    """Run :func:`lstm` and return its gradient as a function that remembers the forward pass.

    Values and gradients are those of the plain pair. Inside, the gates are ordered i, f, o, g
    so that the three logistic ones are one block, and the weights of that block are halved:
    with ``sigmoid(a) = (1 + tanh(a / 2)) / 2`` one tanh serves all four gates.

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
    i_f, g_o = np.arange(2 * H), np.arange(2 * H, 4 * H).reshape(2, H)
    order = np.concatenate([i_f, g_o[1], g_o[0]])  # its own inverse
    weight = stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, order, dtype)
    weight[:, : 3 * H] *= 0.5
    from_h = by_gate(weight[D + 1 :], 4)
    gates, tanh_c = np.empty((T, 4, B, H), dtype), np.empty((T, B, H), dtype)
    h, c = steps.h, np.empty((T + 1, B, H), dtype)
    c[0] = c0
    product = np.empty((B, H), dtype)
    for start, stop in steps.blocks():
        from_x = steps.from_x(start, stop, weight[: D + 1], 4)
        for t in range(start, stop):
            gates_t, sigmoids = gates[t], gates[t, :3]
            i, f, o, g = gates_t
            np.matmul(h[t], from_h, out=gates_t)
            gates_t += from_x[t - start]
            np.tanh(gates_t, out=gates_t)
            sigmoids *= 0.5
            sigmoids += 0.5
            np.multiply(f, c[t], out=c[t + 1])
            c[t + 1] += np.multiply(i, g, out=product)
            np.tanh(c[t + 1], out=tanh_c[t])
            np.multiply(o, tanh_c[t], out=h[t + 1])
            restore(steps.frozen[t], (h[t + 1], h[t]), (c[t + 1], c[t]))

    def vjp(dy):
        dy, dh, dc = steps.in_order(dy[0]), dy[1].astype(dtype), dy[2].astype(dtype)
        dx = np.empty((B, T, D), dtype)
        dweight = np.zeros((4 * H, D + 1 + H), dtype)
        rows_ih, rows_hh = weight_ih[order], weight_hh[order].reshape(4, H, H)
        slope, factor = np.empty((2, 4, B, H), dtype)
        for start, stop in reversed(steps.blocks()):
            da = np.empty((stop - start, B, 4, H), dtype)
            for t in reversed(range(start, stop)):
                i, f, o, g = gates[t]
                frozen, da_t = steps.frozen[t], da[t - start].swapaxes(0, 1)
                dh_old, dc_old = remember(frozen, dh, dc)
                # Derivatives of the gates: s - s^2 for the logistic ones, 1 - g^2 for g.
                np.multiply(gates[t], gates[t], out=slope)
                np.subtract(gates[t, :3], slope[:3], out=slope[:3])
                np.subtract(1, slope[3], out=slope[3])
                dh = dh + dy[t]
                np.multiply(dh, tanh_c[t], out=factor[2])
                dc += (dh - factor[2] * tanh_c[t]) * o
                np.multiply(dc, g, out=factor[0])
                np.multiply(dc, c[t], out=factor[1])
                np.multiply(dc, i, out=factor[3])
                np.multiply(slope, factor, out=da_t)
                dc *= f
                restore(frozen, (da_t, 0))
                dh = (da_t @ rows_hh).sum(axis=0)
                restore(frozen, (dh, dh_old), (dc, dc_old))
            rows = da.reshape(-1, 4 * H)
            steps.in_order(dx)[start:stop] = (rows @ rows_ih).reshape(stop - start, B, D)
            dweight += rows.T @ steps.flat(start, stop)
        dweight = dweight[order]
        dbias = [None if b is None else dweight[:, D].copy() for b in (bias_ih, bias_hh)]
        return dx, dh, dc, dweight[:, :D].copy(), dweight[:, D + 1 :].copy(), *dbias

    return (steps.output(), h[T].copy(), c[T].copy()), vjp
