"""Long short-term memory; twin of ``seqlib.np.lstm``."""

import torch

from seqlib._recurrent import check_cell, check_sequence, time_order
from seqlib.pt._recurrent import Recurrent, keep, mask_padding, pre_activation, stack_steps

__all__ = ["LSTM", "lstm", "lstm_cell"]

GATES = "i, f, g, o"


def lstm_cell(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    r"""One step of a long short-term memory; twin of ``seqlib.np.lstm_cell``.

    .. math::

        i &= \sigma(W_{ii} x + b_{ii} + W_{hi} h + b_{hi}) &
        g &= \tanh(W_{ig} x + b_{ig} + W_{hg} h + b_{hg}) \\
        f &= \sigma(W_{if} x + b_{if} + W_{hf} h + b_{hf}) &
        o &= \sigma(W_{io} x + b_{io} + W_{ho} h + b_{ho}) \\
        c' &= f \odot c + i \odot g &
        h' &= o \odot \tanh(c')

    Parameters
    ----------
    x : Tensor of shape (B, D)
        Inputs of this step.
    h : Tensor of shape (B, H)
        State before the step.
    c : Tensor of shape (B, H)
        Cell state before the step.
    weight_ih : Tensor of shape (4H, D)
        Weights of the input, stacked as i, f, g, o.
    weight_hh : Tensor of shape (4H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : Tensor of shape (4H,) or None
        Biases; only their sum matters.

    Returns
    -------
    h : Tensor of shape (B, H)
        State after the step.
    c : Tensor of shape (B, H)
        Cell state after the step.

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    References
    ----------
    Lecture notes, section 3.
    """
    check_cell(x, {"h": h, "c": c}, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    a = pre_activation(x, h, weight_ih, weight_hh, bias_ih, bias_hh)
    i, f, g, o = a.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def lstm(x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, *, lengths=None, reverse=False):
    """Run :func:`lstm_cell` over a batch of sequences; twin of ``seqlib.np.lstm``.

    Parameters
    ----------
    x : Tensor of shape (B, T, D)
        Inputs. What stands at padded steps is never used.
    h0 : Tensor of shape (B, H)
        State before the first step.
    c0 : Tensor of shape (B, H)
        Cell state before the first step.
    weight_ih : Tensor of shape (4H, D)
        Weights of the input, stacked as i, f, g, o.
    weight_hh : Tensor of shape (4H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : Tensor of shape (4H,) or None
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
    c_n : Tensor of shape (B, H)
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
    h, c, y = h0, c0, [None] * x.shape[1]
    for t in time_order(x.shape[1], reverse):
        h_new, c_new = lstm_cell(x[:, t], h, c, weight_ih, weight_hh, bias_ih, bias_hh)
        h, c = keep(valid, t, h_new, h), keep(valid, t, c_new, c)
        y[t] = h
    return stack_steps(y, h, valid), h, c


class LSTM(Recurrent):
    """Stack of LSTM layers, batch first; each runs over the outputs of the one below.

    Parameters carry the names of :class:`torch.nn.LSTM` and are initialised alike, uniformly
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
    forget_bias : float, optional
        Initial bias of the forget gates. With 1.0 they start near sigmoid(1) = 0.73, and 20
        steps keep 0.73**20 = 0.002 of the cell state instead of 0.5**20 = 0.000001. PyTorch's
        random biases are kept if omitted.
    """

    blocks = 4

    def __init__(self, input_size, hidden_size, num_layers=1, *, bias=True, forget_bias=None):
        super().__init__(input_size, hidden_size, num_layers, bias=bias)
        if forget_bias is None:
            return
        if not bias:
            raise ValueError(
                f"forget_bias must be None without biases, got {forget_bias}; use bias=True"
            )
        rows = slice(hidden_size, 2 * hidden_size)
        with torch.no_grad():
            for layer in range(num_layers):
                _, _, bias_ih, bias_hh = self.parameters_of(layer)
                bias_ih[rows], bias_hh[rows] = forget_bias, 0  # what acts is their sum

    def forward(self, x, state=None, *, lengths=None, reverse=False):
        """Run all layers.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            Inputs.
        state : tuple of two Tensor of shape (num_layers, B, H), optional
            ``(h0, c0)`` before the first step; zeros if omitted.
        lengths, reverse
            As in :func:`lstm`.

        Returns
        -------
        y : Tensor of shape (B, T, H)
            Outputs of the last layer.
        (h_n, c_n) : tuple of two Tensor of shape (num_layers, B, H)
            States of all layers after the last step.
        """
        h0, c0 = (None, None) if state is None else state
        h0, c0 = self.initial_state(x, h0, "h0"), self.initial_state(x, c0, "c0")
        h_n, c_n = [], []
        for layer in range(self.num_layers):
            parameters = self.parameters_of(layer)
            states = h0[layer], c0[layer]
            x, h, c = lstm(x, *states, *parameters, lengths=lengths, reverse=reverse)
            h_n.append(h)
            c_n.append(c)
        return x, (torch.stack(h_n), torch.stack(c_n))
