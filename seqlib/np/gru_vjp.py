"""Gated recurrent unit and its gradient in one pass, for speed."""

import numpy as np

from seqlib._recurrent import check_sequence
from seqlib.np._recurrent import in_columns, logistic_of_negative, split_columns
from seqlib.np._time_major import Steps, remember, restore, stack_weights

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
    from x, and with ``reset_after`` the last three from h. The weights of r and z have
    the other sign: ``sigmoid(a) = 1 / (1 + exp(-a))`` then needs no pass for the minus.

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
    bias_n = None if reset_after else bias_hh  # what the reset gate does not multiply
    weight = stack_weights(weight_ih, weight_hh, bias_ih, bias_hh, [0, 1], dtype)
    weight *= -1
    weight_n = stack_weights(weight_ih, weight_hh, bias_ih, bias_n, [2], dtype)[0]
    n_from_x, n_from_h = weight_n[:, : D + 1], weight_n[:, D + 1 :]
    saved = np.empty((T, 5, B, H), dtype)  # r, z, m, n, n - h
    h, product = steps.h, np.empty((B, H), dtype)
    product_columns = in_columns(product, weight)
    gates_columns, m_columns, n_columns = (
        in_columns(saved[:, part], weight) for part in (slice(2), 2, 3)
    )
    for t in range(T):
        r, z, m, n, change = saved[t]
        gates = saved[t, :2]
        np.matmul(steps.rows[t], weight, out=gates_columns[t])
        logistic_of_negative(gates)
        if reset_after:
            np.matmul(h[t], n_from_h, out=m_columns[t])
            if bias_hh is not None:
                m += bias_hh[2 * H :]
            np.multiply(r, m, out=product)
        else:
            np.multiply(r, h[t], out=m)
            np.matmul(m, n_from_h, out=product_columns)
        np.matmul(steps.rows[t, :, : D + 1], n_from_x, out=n_columns[t])
        n += product
        np.tanh(n, out=n)
        np.subtract(n, h[t], out=change)
        np.multiply(change, z, out=product)
        np.add(h[t], product, out=h[t + 1])
        restore(steps.frozen[t], (h[t + 1], h[t]))

    def vjp(dy):
        dy, dh = steps.in_order(dy[0]), dy[1].astype(dtype)
        dx = np.empty((B, T, D), dtype)
        dweight_ih = np.zeros((3 * H, D + 1), dtype)  # rows n, r, z
        dweight_hh = np.zeros((3 * H, 1 + H), dtype)  # rows r, z, n
        rows_ih = np.roll(weight_ih, H, axis=0)
        # The rows that the gradients of r, z and m meet; without reset_after, those of r and z.
        into_h = split_columns(weight_hh if reset_after else weight_hh[: 2 * H])
        into_m = split_columns(weight_hh[2 * H :])
        slope, (d_m, dn, slope_n) = np.empty((2, B, H), dtype), np.empty((3, B, H), dtype)
        dh_columns, d_m_columns = in_columns(product, into_h), in_columns(d_m, into_m)
        one = np.ones((), dtype)
        for start, stop in reversed(steps.blocks()):
            da = np.empty((stop - start, B, 4, H), dtype)
            for t in reversed(range(start, stop)):
                frozen, da_t = steps.frozen[t], da[t - start].swapaxes(0, 1)
                da_n, da_r, da_z, da_m = da_t
                rows = da[t - start].reshape(B, 4 * H)
                r, z, m, n, change = saved[t]
                (dh_old,) = remember(frozen, dh)
                dh += dy[t]
                np.multiply(dh, z, out=dn)
                np.square(saved[t, :2], out=slope)
                np.subtract(saved[t, :2], slope, out=slope)
                np.multiply(dh, change, out=product)
                np.multiply(product, slope[1], out=da_z)
                dh -= dn
                np.square(n, out=slope_n)
                np.subtract(one, slope_n, out=slope_n)
                dn *= slope_n
                da_n[:] = dn
                if reset_after:
                    np.multiply(dn, r, out=da_m)
                    np.multiply(dn * m, slope[0], out=da_r)
                    restore(frozen, (da_t, 0))
                    np.matmul(rows[:, H:], into_h, out=dh_columns)
                else:
                    np.matmul(dn, into_m, out=d_m_columns)
                    np.multiply(d_m, r, out=product)
                    dh += product
                    d_m *= h[t]
                    np.multiply(d_m, slope[0], out=da_r)
                    restore(frozen, (da_t, 0))
                    np.matmul(rows[:, H : 3 * H], into_h, out=dh_columns)
                dh += product
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
