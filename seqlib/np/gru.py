"""Gated recurrent unit in the form of the notes and in PyTorch's, with its gradient."""

import numpy as np

from seqlib._recurrent import check_cell, check_sequence, time_order
from seqlib.np._recurrent import (
    fast_transpose,
    keep,
    logistic,
    mask_padding,
    parameter_gradients,
    project,
    states_before,
    zero_padding,
)

__all__ = ["gru", "gru_backward", "gru_cell", "gru_cell_backward"]

GATES = "r, z, n"


def gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, *, reset_after=False):
    r"""One step of a gated recurrent unit.

    .. math::

        r &= \sigma(W_{ir} x + b_{ir} + W_{hr} h + b_{hr}) \\
        z &= \sigma(W_{iz} x + b_{iz} + W_{hz} h + b_{hz}) \\
        n &= \tanh(W_{in} x + b_{in} + W_{hn} (r \odot h) + b_{hn}) \\
        h' &= (1 - z) \odot h + z \odot n

    This is the notes' form; they write the candidate n as h-tilde and have no biases.
    With ``h = 0.2``, ``n = 1`` and an update gate ``z = 0.25`` the new state is
    0.75 * 0.2 + 0.25 * 1 = 0.4.

    ``reset_after=True`` applies the reset gate after the product, as PyTorch and cuDNN do:

    .. math:: n = \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn}))

    No choice of weights turns one form into the other. PyTorch also swaps the roles of z and
    1 - z; ``gru_from_torch`` converts its weights.

    Parameters
    ----------
    x : ndarray of shape (B, D)
        Inputs of this step.
    h : ndarray of shape (B, H)
        State before the step.
    weight_ih : ndarray of shape (3H, D)
        Weights of the input, stacked as r, z, n.
    weight_hh : ndarray of shape (3H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : ndarray of shape (3H,) or None
        Biases. Only their sum matters, except for the rows of n with ``reset_after``.
    reset_after : bool, default=False
        Apply the reset gate after the product with the weights.

    Returns
    -------
    ndarray of shape (B, H)
        State after the step.

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    References
    ----------
    Lecture notes, section 4. Chung et al. (2014), "Empirical Evaluation of Gated Recurrent
    Neural Networks on Sequence Modeling", arXiv:1412.3555, has this role of z; Cho et al.
    (2014), arXiv:1406.1078, has PyTorch's.
    """
    check_cell(x, {"h": h}, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    from_x = project(x, weight_ih, bias_ih)
    _, z, n, _ = _gates(from_x, h, weight_hh, bias_hh, reset_after)
    return (1 - z) * h + z * n


def gru_cell_backward(dy, x, h, weight_ih, weight_hh, bias_ih, bias_hh, *, reset_after=False):
    """Vector-Jacobian product of :func:`gru_cell`.

    Parameters
    ----------
    dy : ndarray of shape (B, H)
        Gradient of the loss with respect to the state after the step.
    x, h, weight_ih, weight_hh, bias_ih, bias_hh, reset_after
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (B, D)
        Gradient with respect to ``x``.
    dh : ndarray of shape (B, H)
        Gradient with respect to the state before the step.
    dweight_ih : ndarray of shape (3H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (3H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (3H,) or None
        Gradients with respect to the biases; None for a bias that is None.
    """
    from_x = project(x, weight_ih, bias_ih)
    gates = _gates(from_x, h, weight_hh, bias_hh, reset_after)
    dx_part, dh_part, dh = _gates_backward(dy, h, weight_hh, gates, reset_after)
    dweight_ih, dbias_ih = parameter_gradients(dx_part, x, bias_ih)
    dweight_hh, dbias_hh = _state_gradients(dh_part, h, gates[0], bias_hh, reset_after)
    return dx_part @ weight_ih, dh, dweight_ih, dweight_hh, dbias_ih, dbias_hh


def gru(
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
    r"""Run :func:`gru_cell` over a batch of sequences.

    A sequence shorter than T is padded on the right and its length given in ``lengths``.
    A padded step leaves the state as it was and outputs 0, and what ``x`` holds there is
    never used.

    Parameters
    ----------
    x : ndarray of shape (B, T, D)
        Inputs.
    h0 : ndarray of shape (B, H)
        State before the first step.
    weight_ih : ndarray of shape (3H, D)
        Weights of the input, stacked as r, z, n.
    weight_hh : ndarray of shape (3H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : ndarray of shape (3H,) or None
        Biases.
    lengths : ndarray of int of shape (B,), optional
        Number of valid steps of each sequence, from 0 to T; T for all if omitted.
    reverse : bool, default=False
        Run from the last valid step to the first.
    reset_after : bool, default=False
        Apply the reset gate after the product with the weights, as PyTorch does.

    Returns
    -------
    y : ndarray of shape (B, T, H)
        State after each step, at the place of that step; 0 at padded steps.
    h_n : ndarray of shape (B, H)
        State after the last step that was run; ``h0`` for a sequence of length 0.

    Raises
    ------
    ValueError
        If the shapes do not fit together or a length is not in ``[0, T]``.

    References
    ----------
    Lecture notes, section 4.
    """
    check_sequence(x, {"h0": h0}, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    x, valid = mask_padding(x, lengths)
    (B, T, _), H = x.shape, h0.shape[1]
    weight_ih, weight_hh = fast_transpose(weight_ih), fast_transpose(weight_hh)
    y = np.empty((B, T, H), np.result_type(x, h0, weight_ih, weight_hh))
    h = h0.astype(y.dtype)
    for t in time_order(T, reverse):
        h_new = gru_cell(
            x[:, t], h, weight_ih, weight_hh, bias_ih, bias_hh, reset_after=reset_after
        )
        h = keep(valid, t, h_new, h)
        y[:, t] = h
    return zero_padding(y, valid), h


def gru_backward(
    dy,
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
    r"""Vector-Jacobian product of :func:`gru`: backpropagation through time.

    The state acts on the next one along two paths, through the gates and directly. The
    direct one multiplies the gradient by 1 - z, so it survives where z is near 0.

    Parameters
    ----------
    dy : tuple of two ndarray
        Gradients of the loss with respect to ``y``, of shape (B, T, H), and ``h_n``, of shape
        (B, H).
    x, h0, weight_ih, weight_hh, bias_ih, bias_hh, lengths, reverse, reset_after
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (B, T, D)
        Gradient with respect to ``x``; 0 at padded steps.
    dh0 : ndarray of shape (B, H)
        Gradient with respect to ``h0``.
    dweight_ih : ndarray of shape (3H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (3H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (3H,) or None
        Gradients with respect to the biases; None for a bias that is None.
    """
    dy, dh = dy
    args = (weight_ih, weight_hh, bias_ih, bias_hh)
    y, _ = gru(x, h0, *args, lengths=lengths, reverse=reverse, reset_after=reset_after)
    x, valid = mask_padding(x, lengths)
    h_prev = states_before(y, h0, valid, reverse)
    (B, T, _), H = x.shape, h0.shape[1]
    # With the states known, the gates of all steps are computed at once.
    rows_h = h_prev.reshape(B * T, H)
    from_x = project(x, weight_ih, bias_ih).reshape(B * T, 3 * H)
    gates = _gates(from_x, rows_h, weight_hh, bias_hh, reset_after)
    gates = [gate.reshape(B, T, H) for gate in gates]
    dx_part = np.empty((B, T, 3 * H), y.dtype)
    dh_part = np.empty_like(dx_part)
    for t in reversed(time_order(T, reverse)):
        gates_t = [gate[:, t] for gate in gates]
        dx_t, dh_t, dh_prev = _gates_backward(
            dy[:, t] + dh, h_prev[:, t], weight_hh, gates_t, reset_after
        )
        dx_part[:, t], dh_part[:, t] = keep(valid, t, dx_t, 0), keep(valid, t, dh_t, 0)
        dh = keep(valid, t, dh_prev, dh)
    dweight_ih, dbias_ih = parameter_gradients(dx_part, x, bias_ih)
    dweight_hh, dbias_hh = _state_gradients(dh_part, h_prev, gates[0], bias_hh, reset_after)
    return dx_part @ weight_ih, dh, dweight_ih, dweight_hh, dbias_ih, dbias_hh


def _gates(from_x, h, weight_hh, bias_hh, reset_after):
    """Return r, z, n and the vector m that r multiplies, for rows of states ``h``."""
    H = h.shape[-1]
    bias_gates, bias_n = (
        (None, None) if bias_hh is None else (bias_hh[: 2 * H], bias_hh[2 * H :])
    )
    if reset_after:
        from_h = project(h, weight_hh, bias_hh)
        gates, m = logistic(from_x[:, : 2 * H] + from_h[:, : 2 * H]), from_h[:, 2 * H :]
        r, z = gates[:, :H], gates[:, H:]
        n = np.tanh(from_x[:, 2 * H :] + r * m)
    else:
        gates = logistic(from_x[:, : 2 * H] + project(h, weight_hh[: 2 * H], bias_gates))
        r, z, m = gates[:, :H], gates[:, H:], h
        n = np.tanh(from_x[:, 2 * H :] + project(r * m, weight_hh[2 * H :], bias_n))
    return r, z, n, m


def _gates_backward(dh, h, weight_hh, gates, reset_after):
    """Return the gradients of the sums from x and from h, and of the state before the step."""
    H = h.shape[-1]
    r, z, n, m = gates
    da_n = dh * z * (1 - n**2)
    da_z = dh * (n - h) * z * (1 - z)
    d_rm = da_n if reset_after else da_n @ weight_hh[2 * H :]  # gradient of r * m
    da_r = d_rm * m * r * (1 - r)
    dm = d_rm * r
    da = np.concatenate([da_r, da_z, da_n], axis=-1)
    dh = dh * (1 - z)
    if reset_after:
        da_h = np.concatenate([da[:, : 2 * H], dm], axis=-1)
        return da, da_h, dh + da_h @ weight_hh
    return da, da, dh + dm + da[:, : 2 * H] @ weight_hh[: 2 * H]


def _state_gradients(da_h, h, r, bias_hh, reset_after):
    """Return the gradients of ``weight_hh`` and ``bias_hh``."""
    H = h.shape[-1]
    dweight, dbias = parameter_gradients(da_h, h, bias_hh)
    if not reset_after:  # the candidate's rows were multiplied by r * h
        dweight[2 * H :], _ = parameter_gradients(da_h[..., 2 * H :], r * h, None)
    return dweight, dbias
