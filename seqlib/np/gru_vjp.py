"""Gated recurrent unit and its gradient in one pass, for speed."""

import numpy as np

from seqlib._recurrent import check_sequence
from seqlib.np._time_major import Steps, by_gate, remember, restore, stack_weights

__all__ = ["gru_with_vjp"]


def gru_with_vjp(
    x,
    h0,
    weight_ih,
    weight_hh,
    bias_ih,
    bias_hh,
    *,
    lengths=None,
    reverse=False,
    reset_after=False,
):
    """Run :func:`gru` and return its gradient as a function that remembers the forward pass.

    Values and gradients are those of the plain pair. Inside, the gradients of the sums are
    stored as n, r, z, m, where m is what the reset gate multiplies: the first three come
    from x, and with ``reset_after`` the last three from h. The weights of r and z are
    halved, as ``sigmoid(a) = (1 + tanh(a / 2)) / 2``.

    Parameters
    ----------
    x, h0, weight_ih, weight_hh, bias_ih, bias_hh, lengths, reverse, reset_after
        The arguments of :func:`gru`.

    Returns
    -------
    (y, h_n) : tuple of ndarray
        What :func:`gru` returns.
    vjp : callable
        ``vjp((dy, dh_n))`` returns what :func:`gru_backward` returns; it may be called
        again.
    """
    check_sequence(x, {"h0": h0}, weight_ih, weight_hh, bias_ih, bias_hh, gates="r, z, n")
    dtype = np.result_type(x, h0, weight_ih, weight_hh)
    steps = Steps(x, h0, dtype, lengths, reverse)
    (B, T, D), H = x.shape, h0.shape[1]
    n_r_z = np.roll(np.arange(3 * H), H)
    weight = stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, n_r_z, dtype)
    weight[:, H:] *= 0.5
    bias_m = np.zeros(H, dtype)
    if reset_after and bias_hh is not None:
        # The reset gate multiplies this bias too, so it cannot be added beforehand.
        bias_m += bias_hh[2 * H :]
        weight[D, :H] -= bias_m
    from_h = by_gate(np.roll(weight[D + 1 :], -H, axis=1), 3)  # r, z, n
    saved = np.empty((T, 4, B, H), dtype)  # r, z, m, n
    h, product = steps.h, np.empty((B, H), dtype)
    for start, stop in steps.blocks():
        from_x = steps.from_x(start, stop, weight[: D + 1], 3)
        for t in range(start, stop):
            r, z, m, n = saved[t]
            x_n, gates = from_x[t - start, 0], saved[t, :2]
            if reset_after:
                np.matmul(h[t], from_h, out=saved[t, :3])
                m += bias_m
            else:
                np.matmul(h[t], from_h[:2], out=gates)
            gates += from_x[t - start, 1:]
            np.tanh(gates, out=gates)
            gates *= 0.5
            gates += 0.5
            if reset_after:
                np.multiply(r, m, out=product)
            else:
                np.multiply(r, h[t], out=m)
                np.matmul(m, from_h[2], out=product)
            product += x_n
            np.tanh(product, out=n)
            np.subtract(n, h[t], out=product)
            product *= z
            np.add(h[t], product, out=h[t + 1])
            restore(steps.frozen[t], (h[t + 1], h[t]))

    def vjp(dy):
        dy, dh = steps.in_order(dy[0]), dy[1].astype(dtype)
        dx = np.empty((B, T, D), dtype)
        dweight_ih = np.zeros((3 * H, D + 1), dtype)  # rows n, r, z
        dweight_hh = np.zeros((3 * H, 1 + H), dtype)  # rows r, z, n
        rows_ih, rows_hh = weight_ih[n_r_z], weight_hh.reshape(3, H, H)
        slope = np.empty((2, B, H), dtype)
        for start, stop in reversed(steps.blocks()):
            da = np.empty((stop - start, B, 4, H), dtype)
            for t in reversed(range(start, stop)):
                frozen, da_t = steps.frozen[t], da[t - start].swapaxes(0, 1)
                da_n, da_r, da_z, da_m = da_t
                r, z, m, n = saved[t]
                (dh_old,) = remember(frozen, dh)
                dh = dh + dy[t]
                dn = dh * z
                np.multiply(saved[t, :2], saved[t, :2], out=slope)
                np.subtract(saved[t, :2], slope, out=slope)
                np.multiply(dh, n - h[t], out=product)
                np.multiply(product, slope[1], out=da_z)
                dh -= dn
                dn *= 1 - n * n
                da_n[:] = dn
                if reset_after:
                    np.multiply(dn, r, out=da_m)
                    np.multiply(dn * m, slope[0], out=da_r)
                    restore(frozen, (da_t, 0))
                    dh += (da_t[1:] @ rows_hh).sum(axis=0)
                else:
                    d_rh = dn @ rows_hh[2]
                    dh += d_rh * r
                    np.multiply(d_rh * h[t], slope[0], out=da_r)
                    restore(frozen, (da_t, 0))
                    dh += (da_t[1:3] @ rows_hh[:2]).sum(axis=0)
                restore(frozen, (dh, dh_old))
            rows, inputs = da.reshape(-1, 4 * H), steps.flat(start, stop)
            steps.in_order(dx)[start:stop] = (rows[:, : 3 * H] @ rows_ih).reshape(
                stop - start, B, D
            )
            dweight_ih += rows[:, : 3 * H].T @ inputs[:, : D + 1]
            if reset_after:
                dweight_hh += rows[:, H:].T @ inputs[:, D:]
            else:
                dweight_hh[: 2 * H] += rows[:, H : 3 * H].T @ inputs[:, D:]
                r_h = saved[start:stop, 2].reshape(-1, H)
                dweight_hh[2 * H :, 1:] += rows[:, :H].T @ r_h
        dweight_ih = np.roll(dweight_ih, -H, axis=0)  # back to r, z, n
        dbias_hh = dweight_hh[:, 0] if reset_after else dweight_ih[:, D]
        return (
            dx,
            dh,
            dweight_ih[:, :D].copy(),
            dweight_hh[:, 1:].copy(),
            None if bias_ih is None else dweight_ih[:, D].copy(),
            None if bias_hh is None else dbias_hh.copy(),
        )

    return (steps.output(), h[T].copy()), vjp
