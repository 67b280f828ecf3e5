"""Long short-term memory: six equations a step, and their gradient through time."""

import numpy as np

from seqlib._recurrent import check_cell, check_sequence, time_order
from seqlib.np._recurrent import (
    fast_transpose,
    keep,
    logistic,
    mask_padding,
    parameter_gradients,
    split_columns,
    times,
    total_bias,
    zero_padding,
)

__all__ = ["lstm", "lstm_backward", "lstm_cell", "lstm_cell_backward"]

GATES = "i, f, g, o"


def lstm_cell(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    r"""One step of a long short-term memory.

    .. math::

        i &= \sigma(W_{ii} x + b_{ii} + W_{hi} h + b_{hi}) &
        g &= \tanh(W_{ig} x + b_{ig} + W_{hg} h + b_{hg}) \\
        f &= \sigma(W_{if} x + b_{if} + W_{hf} h + b_{hf}) &
        o &= \sigma(W_{io} x + b_{io} + W_{ho} h + b_{ho}) \\
        c' &= f \odot c + i \odot g &
        h' &= o \odot \tanh(c')

    The rows of the weights hold the gates in PyTorch's order i, f, g, o; the notes write the
    candidate g as C-tilde, and c as C. With f = 0.9, c = 2, i = 0.5 and g = -1 the new cell
    state is 0.9 * 2 - 0.5 = 1.3; with o = 1 the new state is tanh(1.3) = 0.862.

    Parameters
    ----------
    x : ndarray of shape (B, D)
        Inputs of this step.
    h : ndarray of shape (B, H)
        State before the step.
    c : ndarray of shape (B, H)
        Cell state before the step.
    weight_ih : ndarray of shape (4H, D)
        Weights of the input, stacked as i, f, g, o.
    weight_hh : ndarray of shape (4H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : ndarray of shape (4H,) or None
        Biases; only their sum matters.

    Returns
    -------
    h : ndarray of shape (B, H)
        State after the step.
    c : ndarray of shape (B, H)
        Cell state after the step.

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    References
    ----------
    Lecture notes, section 3. Hochreiter and Schmidhuber (1997), "Long Short-Term Memory",
    Neural Computation 9; the forget gate is from Gers, Schmidhuber and Cummins (2000),
    "Learning to Forget", Neural Computation 12.
    """
    check_cell(x, {"h": h, "c": c}, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    i, f, g, o = _gates(x, h, weight_ih, weight_hh, bias_ih, bias_hh)
    c = f * c + i * g
    h = o * np.tanh(c)
    return h, c


def lstm_cell_backward(dy, x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """Vector-Jacobian product of :func:`lstm_cell`.

    Parameters
    ----------
    dy : tuple of two ndarray of shape (B, H)
        Gradients of the loss with respect to the state and the cell state after the step.
    x, h, c, weight_ih, weight_hh, bias_ih, bias_hh
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (B, D)
        Gradient with respect to ``x``.
    dh : ndarray of shape (B, H)
        Gradient with respect to the state before the step.
    dc : ndarray of shape (B, H)
        Gradient with respect to the cell state before the step.
    dweight_ih : ndarray of shape (4H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (4H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (4H,) or None
        Gradients with respect to the biases; None for a bias that is None.
    """
    gates = _gates(x, h, weight_ih, weight_hh, bias_ih, bias_hh)
    i, f, g, _ = gates
    da, dc = _gates_backward(*dy, gates, c, np.tanh(f * c + i * g))
    dweight_ih, dbias_ih = parameter_gradients(da, x, bias_ih)
    dweight_hh, dbias_hh = parameter_gradients(da, h, bias_hh)
    return da @ weight_ih, da @ weight_hh, dc, dweight_ih, dweight_hh, dbias_ih, dbias_hh


def lstm(x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False):
    r"""Run :func:`lstm_cell` over a batch of sequences.

    A sequence shorter than T is padded on the right and its length given in ``lengths``.
    A padded step leaves both states as they were and outputs 0, and what ``x`` holds there
    is never used.

    Parameters
    ----------
    x : ndarray of shape (B, T, D)
        Inputs.
    h0 : ndarray of shape (B, H)
        State before the first step.
    c0 : ndarray of shape (B, H)
        Cell state before the first step.
    weight_ih : ndarray of shape (4H, D)
        Weights of the input, stacked as i, f, g, o.
    weight_hh : ndarray of shape (4H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : ndarray of shape (4H,) or None
        Biases.
    lengths : ndarray of int of shape (B,), optional
        Number of valid steps of each sequence, from 0 to T; T for all if omitted.
    reverse : bool, default=False
        Run from the last valid step to the first.

    Returns
    -------
    y : ndarray of shape (B, T, H)
        State after each step, at the place of that step; 0 at padded steps.
    h_n : ndarray of shape (B, H)
        State after the last step that was run; ``h0`` for a sequence of length 0.
    c_n : ndarray of shape (B, H)
        Cell state after the last step that was run; ``c0`` for a sequence of length 0.

    Raises
    ------
    ValueError
        If the shapes do not fit together or a length is not in ``[0, T]``.

    References
    ----------
    Lecture notes, section 3.
    """
    states = {"h0": h0, "c0": c0}
    check_sequence(x, states, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    x, valid = mask_padding(x, lengths)
    (B, T, _), H = x.shape, h0.shape[1]
    weight_ih, weight_hh = fast_transpose(weight_ih), fast_transpose(weight_hh)
    y = np.empty((B, T, H), np.result_type(x, h0, c0, weight_ih, weight_hh))
    h, c = h0.astype(y.dtype), c0.astype(y.dtype)
    for t in time_order(T, reverse):
        h_new, c_new = lstm_cell(x[:, t], h, c, weight_ih, weight_hh, bias_ih, bias_hh)
        h, c = keep(valid, t, h_new, h), keep(valid, t, c_new, c)
        y[:, t] = h
    return zero_padding(y, valid), h, c


def lstm_backward(
    dy, x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False
):
    r"""Vector-Jacobian product of :func:`lstm`: backpropagation through time.

    Two gradients travel backwards. That of the cell state is multiplied by f at each step
    and nothing else, so it survives where the forget gates stay near 1:

    .. math:: \delta c_{t-1} = f_t \odot \delta c_t, \qquad
        \delta c_t \leftarrow \delta c_t + \delta h_t \odot o_t \odot (1 - \tanh^2 c_t)

    Parameters
    ----------
    dy : tuple of three ndarray
        Gradients of the loss with respect to ``y``, of shape (B, T, H), and ``h_n`` and
        ``c_n``, of shape (B, H).
    x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, lengths, reverse
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (B, T, D)
        Gradient with respect to ``x``; 0 at padded steps.
    dh0 : ndarray of shape (B, H)
        Gradient with respect to ``h0``.
    dc0 : ndarray of shape (B, H)
        Gradient with respect to ``c0``.
    dweight_ih : ndarray of shape (4H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (4H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (4H,) or None
        Gradients with respect to the biases; None for a bias that is None.
    """
    dy, dh, dc = dy
    x, valid = mask_padding(x, lengths)
    (B, T, _), H = x.shape, h0.shape[1]
    order = time_order(T, reverse)
    fast_ih, fast_hh = fast_transpose(weight_ih), fast_transpose(weight_hh)
    h_prev = np.empty((B, T, H), np.result_type(x, h0, c0, weight_ih, weight_hh))
    saved = [None] * T
    h, c = h0, c0
    # Forward once more, keeping what the derivatives need.
    for t in order:
        h_prev[:, t] = h
        gates = _gates(x[:, t], h, fast_ih, fast_hh, bias_ih, bias_hh)
        i, f, g, o = gates
        c_new = f * c + i * g
        tanh_c = np.tanh(c_new)
        saved[t] = gates, c, tanh_c
        h, c = keep(valid, t, o * tanh_c, h), keep(valid, t, c_new, c)
    da = np.empty((B, T, 4 * H), h_prev.dtype)
    back_hh = split_columns(weight_hh)
    for t in reversed(order):
        da_t, dc_t = _gates_backward(dy[:, t] + dh, dc, *saved[t])
        da[:, t] = keep(valid, t, da_t, 0)
        dh, dc = keep(valid, t, times(da_t, back_hh), dh), keep(valid, t, dc_t, dc)
    dweight_ih, dbias_ih = parameter_gradients(da, x, bias_ih)
    dweight_hh, dbias_hh = parameter_gradients(da, h_prev, bias_hh)
    return da @ weight_ih, dh, dc, dweight_ih, dweight_hh, dbias_ih, dbias_hh


def _gates(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """Return the gates i, f, g, o of one step, each ``(B, H)``."""
    # One small matrix per gate, (4, H, D) and (4, H, H), is faster than a tall one.
    H = h.shape[1]
    from_x = weight_ih.reshape(4, H, x.shape[1]).swapaxes(1, 2)
    from_h = weight_hh.reshape(4, H, H).swapaxes(1, 2)
    a = x @ from_x + h @ from_h  # (4, B, H)
    bias = total_bias(bias_ih, bias_hh)
    if bias is not None:
        a += bias.reshape(4, 1, H)
    i, f = logistic(a[:2])
    return i, f, np.tanh(a[2]), logistic(a[3])


def _gates_backward(dh, dc, gates, c, tanh_c):
    """Return the gradients of the sums ``a`` and of the cell state ``c`` before the step."""
    i, f, g, o = gates
    dh_o = dh * o
    dc = dc + dh_o * (1 - tanh_c**2)
    dc_i, dc_f = dc * i, dc * f
    da = [dc_i * g * (1 - i), dc_f * c * (1 - f), dc_i * (1 - g**2), dh_o * tanh_c * (1 - o)]
    return np.concatenate(da, axis=-1), dc_f
