"""The recurrent layer of equation (2), and its gradient by backpropagation through time."""

import numpy as np

from seqlib._recurrent import check_cell, check_sequence, time_order
from seqlib.np._recurrent import (
    fast_transpose,
    keep,
    mask_padding,
    parameter_gradients,
    pre_activation,
    states_before,
    zero_padding,
)

__all__ = ["rnn", "rnn_backward", "rnn_cell", "rnn_cell_backward"]


def rnn_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    r"""One step of a recurrent network.

    .. math:: h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

    With one feature and one state, ``x = 1``, ``h = 0``, an input weight of 1, a recurrent
    weight of 0.5 and no biases, the first state is tanh(1) = 0.7616; a second step with
    ``x = 0`` gives tanh(0.5 * 0.7616) = 0.3634.

    Parameters
    ----------
    x : ndarray of shape (B, D)
        Inputs of this step.
    h : ndarray of shape (B, H)
        State before the step.
    weight_ih : ndarray of shape (H, D)
        Weights of the input, the notes' ``W_xh``.
    weight_hh : ndarray of shape (H, H)
        Weights of the state, the notes' ``W_hh``.
    bias_ih, bias_hh : ndarray of shape (H,) or None
        Biases. Only their sum matters; PyTorch stores two, the notes one (``b_h``).

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
    Lecture notes, equation (2). Elman (1990), "Finding Structure in Time", Cognitive Science
    14, with tanh in place of the logistic function.
    """
    check_cell(x, {"h": h}, weight_ih, weight_hh, bias_ih, bias_hh, gates="")
    return np.tanh(pre_activation(x, h, weight_ih, weight_hh, bias_ih, bias_hh))


def rnn_cell_backward(dy, x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """Vector-Jacobian product of :func:`rnn_cell`.

    Parameters
    ----------
    dy : ndarray of shape (B, H)
        Gradient of the loss with respect to the state after the step.
    x, h, weight_ih, weight_hh, bias_ih, bias_hh
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (B, D)
        Gradient with respect to ``x``.
    dh : ndarray of shape (B, H)
        Gradient with respect to the state before the step.
    dweight_ih : ndarray of shape (H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (H,) or None
        Gradients with respect to the biases; None for a bias that is None.
    """
    h_new = rnn_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh)
    da = dy * (1 - h_new**2)  # tanh'(a) = 1 - tanh(a)^2, with a the argument of tanh
    dweight_ih, dbias_ih = parameter_gradients(da, x, bias_ih)
    dweight_hh, dbias_hh = parameter_gradients(da, h, bias_hh)
    return da @ weight_ih, da @ weight_hh, dweight_ih, dweight_hh, dbias_ih, dbias_hh


def rnn(x, h0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False):
    r"""Run :func:`rnn_cell` over a batch of sequences.

    .. math:: h_t = \tanh(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh}), \quad t = 1, ..., T

    A sequence shorter than T is padded on the right and its length given in ``lengths``.
    A padded step leaves the state as it was and outputs 0, and what ``x`` holds there is
    never used; for two sequences of lengths 3 and 1, ``h_n`` holds the third state of the
    first and the first state of the second.

    Parameters
    ----------
    x : ndarray of shape (B, T, D)
        Inputs.
    h0 : ndarray of shape (B, H)
        State before the first step: zeros, or ``h_n`` of the preceding part of the sequence.
    weight_ih : ndarray of shape (H, D)
        Weights of the input.
    weight_hh : ndarray of shape (H, H)
        Weights of the state. The same parameters serve every step.
    bias_ih, bias_hh : ndarray of shape (H,) or None
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

    Raises
    ------
    ValueError
        If the shapes do not fit together or a length is not in ``[0, T]``.

    References
    ----------
    Lecture notes, equations (1) and (2).
    """
    check_sequence(x, {"h0": h0}, weight_ih, weight_hh, bias_ih, bias_hh, gates="")
    x, valid = mask_padding(x, lengths)
    (B, T, _), H = x.shape, h0.shape[1]
    weight_ih, weight_hh = fast_transpose(weight_ih), fast_transpose(weight_hh)
    y = np.empty((B, T, H), np.result_type(x, h0, weight_ih, weight_hh))
    h = h0.astype(y.dtype)
    for t in time_order(T, reverse):
        h_new = rnn_cell(x[:, t], h, weight_ih, weight_hh, bias_ih, bias_hh)
        h = keep(valid, t, h_new, h)
        y[:, t] = h
    return zero_padding(y, valid), h


def rnn_backward(
    dy, x, h0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False
):
    r"""Vector-Jacobian product of :func:`rnn`: backpropagation through time.

    The state :math:`h_t` acts on the loss in two ways, through the output of step t and
    through the next state. With :math:`a_t` the argument of tanh and :math:`\delta` a
    gradient of the loss,

    .. math:: \delta a_t = (1 - h_t^2) \odot
        \left(\delta y_t + W_{hh}^\top \delta a_{t+1}\right), \qquad
        \delta W_{hh} = \sum_t \delta a_t h_{t-1}^\top

    Parameters
    ----------
    dy : tuple of two ndarray
        Gradients of the loss with respect to ``y``, of shape (B, T, H), and ``h_n``, of shape
        (B, H). A loss on the last state alone has zeros in the first.
    x, h0, weight_ih, weight_hh, bias_ih, bias_hh, lengths, reverse
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (B, T, D)
        Gradient with respect to ``x``; 0 at padded steps.
    dh0 : ndarray of shape (B, H)
        Gradient with respect to ``h0``.
    dweight_ih : ndarray of shape (H, D)
        Gradient with respect to ``weight_ih``.
    dweight_hh : ndarray of shape (H, H)
        Gradient with respect to ``weight_hh``.
    dbias_ih, dbias_hh : ndarray of shape (H,) or None
        Gradients with respect to the biases; None for a bias that is None.

    References
    ----------
    Lecture notes, equation (4). Werbos (1990), "Backpropagation through time: what it does
    and how to do it", Proceedings of the IEEE 78.
    """
    dy, dh = dy
    y, _ = rnn(x, h0, weight_ih, weight_hh, bias_ih, bias_hh, lengths=lengths, reverse=reverse)
    x, valid = mask_padding(x, lengths)
    da = np.empty_like(y)
    for t in reversed(time_order(x.shape[1], reverse)):
        # From the output of this step, and from the step that used this state.
        da_t = (dy[:, t] + dh) * (1 - y[:, t] ** 2)
        da[:, t] = keep(valid, t, da_t, 0)
        dh = keep(valid, t, da_t @ weight_hh, dh)
    h_prev = states_before(y, h0, valid, reverse)
    dweight_ih, dbias_ih = parameter_gradients(da, x, bias_ih)
    dweight_hh, dbias_hh = parameter_gradients(da, h_prev, bias_hh)
    return da @ weight_ih, dh, dweight_ih, dweight_hh, dbias_ih, dbias_hh
