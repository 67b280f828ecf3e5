"""The recurrent layer of equation (2); twin of ``seqlib.np.rnn``."""

import torch

from seqlib._recurrent import check_cell, check_sequence, time_order
from seqlib.pt._recurrent import Recurrent, keep, mask_padding, pre_activation, stack_steps

__all__ = ["RNN", "rnn", "rnn_cell"]


def rnn_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    r"""One step of a recurrent network; twin of ``seqlib.np.rnn_cell``.

    .. math:: h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})

    Parameters
    ----------
    x : Tensor of shape (B, D)
        Inputs of this step.
    h : Tensor of shape (B, H)
        State before the step.
    weight_ih : Tensor of shape (H, D)
        Weights of the input, the notes' ``W_xh``.
    weight_hh : Tensor of shape (H, H)
        Weights of the state, the notes' ``W_hh``.
    bias_ih, bias_hh : Tensor of shape (H,) or None
        Biases. Only their sum matters.

    Returns
    -------
    Tensor of shape (B, H)
        State after the step.

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    References
    ----------
    Lecture notes, equation (2).
    """
    check_cell(x, {"h": h}, weight_ih, weight_hh, bias_ih, bias_hh, gates="")
    return torch.tanh(pre_activation(x, h, weight_ih, weight_hh, bias_ih, bias_hh))


def rnn(x, h0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False):
    r"""Run :func:`rnn_cell` over a batch of sequences; twin of ``seqlib.np.rnn``.

    .. math:: h_t = \tanh(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh}), \quad t = 1, ..., T

    Parameters
    ----------
    x : Tensor of shape (B, T, D)
        Inputs. What stands at padded steps is never used.
    h0 : Tensor of shape (B, H)
        State before the first step.
    weight_ih : Tensor of shape (H, D)
        Weights of the input.
    weight_hh : Tensor of shape (H, H)
        Weights of the state.
    bias_ih, bias_hh : Tensor of shape (H,) or None
        Biases.
    lengths : ndarray of int of shape (B,), optional
        Number of valid steps of each sequence, from 0 to T; T for all if omitted.
    reverse : bool, default=False
        Run from the last valid step to the first.

    Returns
    -------
    y : Tensor of shape (B, T, H)
        State after each step, at the place of that step; 0 at padded steps.
    h_n : Tensor of shape (B, H)
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
    h, y = h0, [None] * x.shape[1]
    for t in time_order(x.shape[1], reverse):
        h_new = rnn_cell(x[:, t], h, weight_ih, weight_hh, bias_ih, bias_hh)
        h = keep(valid, t, h_new, h)
        y[t] = h
    return stack_steps(y, h, valid), h


class RNN(Recurrent):
    """Stack of recurrent layers, batch first; each runs over the outputs of the one below.

    Parameters carry the names of :class:`torch.nn.RNN` and are initialised alike, uniformly
    between -1/sqrt(H) and 1/sqrt(H), so its ``state_dict`` loads here.

    Parameters
    ----------
    input_size : int
        Number of features D of the input.
    hidden_size : int
        Number of features H of the state.
    num_layers : int, default=1
        Number of layers.
    bias : bool, default=True
        Whether the layers have biases.
    """

    def forward(self, x, h0=None, *, lengths=None, reverse=False):
        """Run all layers.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            Inputs.
        h0 : Tensor of shape (num_layers, B, H), optional
            States before the first step; zeros if omitted.
        lengths, reverse
            As in :func:`rnn`.

        Returns
        -------
        y : Tensor of shape (B, T, H)
            Outputs of the last layer.
        h_n : Tensor of shape (num_layers, B, H)
            States of all layers after the last step.
        """
        h0 = self.initial_state(x, h0, "h0")
        h_n = []
        for layer in range(self.num_layers):
            parameters = self.parameters_of(layer)
            x, h = rnn(x, h0[layer], *parameters, lengths=lengths, reverse=reverse)
            h_n.append(h)
        return x, torch.stack(h_n)
