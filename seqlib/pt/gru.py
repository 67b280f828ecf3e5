"""Gated recurrent unit in the form of the notes and in PyTorch's; twin of ``seqlib.np.gru``."""

import torch

from seqlib._recurrent import check_cell, check_sequence, time_order
from seqlib.pt._recurrent import Recurrent, keep, mask_padding, project, stack_steps

__all__ = ["GRU", "gru", "gru_cell"]

GATES = "r, z, n"


def gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, *, reset_after=False):
    r"""One step of a gated recurrent unit; twin of ``seqlib.np.gru_cell``.

    .. math::

        r &= \sigma(W_{ir} x + b_{ir} + W_{hr} h + b_{hr}) \\
        z &= \sigma(W_{iz} x + b_{iz} + W_{hz} h + b_{hz}) \\
        n &= \tanh(W_{in} x + b_{in} + W_{hn} (r \odot h) + b_{hn}) \\
        h' &= (1 - z) \odot h + z \odot n

    ``reset_after=True`` applies the reset gate after the product, as PyTorch does:

    .. math:: n = \tanh(W_{in} x + b_{in} + r \odot (W_{hn} h + b_{hn}))

    Parameters
    ----------
    x : Tensor of shape (B, D)
        Inputs of this step.
    h : Tensor of shape (B, H)
        State before the step.
    weight_ih : Tensor of shape (3H, D)
        Weights of the input, stacked as r, z, n.
    weight_hh : Tensor of shape (3H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : Tensor of shape (3H,) or None
        Biases. Only their sum matters, except for the rows of n with ``reset_after``.
    reset_after : bool, default=False
        Apply the reset gate after the product with the weights.

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
    Lecture notes, section 4.
    """
    check_cell(x, {"h": h}, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    H = h.shape[-1]
    from_x = project(x, weight_ih, bias_ih)
    bias_gates, bias_n = (None, None) if bias_hh is None else bias_hh.split([2 * H, H])
    gates = from_x[:, : 2 * H] + project(h, weight_hh[: 2 * H], bias_gates)
    r, z = torch.sigmoid(gates).chunk(2, dim=-1)
    if reset_after:
        from_h = r * project(h, weight_hh[2 * H :], bias_n)
    else:
        from_h = project(r * h, weight_hh[2 * H :], bias_n)
    n = torch.tanh(from_x[:, 2 * H :] + from_h)
    return (1 - z) * h + z * n


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
    """Run :func:`gru_cell` over a batch of sequences; twin of ``seqlib.np.gru``.

    Parameters
    ----------
    x : Tensor of shape (B, T, D)
        Inputs. What stands at padded steps is never used.
    h0 : Tensor of shape (B, H)
        State before the first step.
    weight_ih : Tensor of shape (3H, D)
        Weights of the input, stacked as r, z, n.
    weight_hh : Tensor of shape (3H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : Tensor of shape (3H,) or None
        Biases.
    lengths : ndarray of int of shape (B,), optional
        Number of valid steps of each sequence, from 0 to T; T for all if omitted.
    reverse : bool, default=False
        Run from the last valid step to the first.
    reset_after : bool, default=False
        Apply the reset gate after the product with the weights, as PyTorch does.

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
    Lecture notes, section 4.
    """
    check_sequence(x, {"h0": h0}, weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    x, valid = mask_padding(x, lengths)
    h, y = h0, [None] * x.shape[1]
    for t in time_order(x.shape[1], reverse):
        h_new = gru_cell(
            x[:, t], h, weight_ih, weight_hh, bias_ih, bias_hh, reset_after=reset_after
        )
        h = keep(valid, t, h_new, h)
        y[t] = h
    return stack_steps(y, h, valid), h


class GRU(Recurrent):
    """Stack of gated recurrent layers, batch first; each runs over the outputs below it.

    The parameters are those of the notes' equations, which :class:`torch.nn.GRU` does not
    follow: its update gate is one minus theirs. They are therefore named
    ``notes_weight_ih_l0`` and so on, and a ``state_dict`` of torch.nn.GRU is refused; with
    ``reset_after=True`` the arrays of ``seqlib.np.gru_from_torch`` fit.

    Parameters
    ----------
    input_size : int
        Number of features D of the input.
    hidden_size : int
        Number of features H of the state.
    num_layers : int, default=1
        Number of layers.
    bias : bool, default=True
        Whether the layers have biases; the notes' equations have none.
    reset_after : bool, default=False
        Apply the reset gate after the product with the weights, as PyTorch does.
    """

    blocks = 3
    prefix = "notes_"

    def __init__(self, input_size, hidden_size, num_layers=1, *, bias=True, reset_after=False):
        super().__init__(input_size, hidden_size, num_layers, bias=bias)
        self.reset_after = reset_after

    def forward(self, x, h0=None, *, lengths=None, reverse=False):
        """Run all layers.

        Parameters
        ----------
        x : Tensor of shape (B, T, D)
            Inputs.
        h0 : Tensor of shape (num_layers, B, H), optional
            States before the first step; zeros if omitted.
        lengths, reverse
            As in :func:`gru`.

        Returns
        -------
        y : Tensor of shape (B, T, H)
            Outputs of the last layer.
        h_n : Tensor of shape (num_layers, B, H)
            States of all layers after the last step.
        """
        h0 = self.initial_state(x, h0, "h0")
        options = {"lengths": lengths, "reverse": reverse, "reset_after": self.reset_after}
        h_n = []
        for layer in range(self.num_layers):
            x, h = gru(x, h0[layer], *self.parameters_of(layer), **options)
            h_n.append(h)
        return x, torch.stack(h_n)

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        # Called for this module also when it is a part of another one.
        if prefix + "weight_hh_l0" in state_dict:
            raise ValueError(
                f"state_dict must hold the notes' parameters ({prefix}notes_weight_hh_l0), "
                f"got those of torch.nn.GRU ({prefix}weight_hh_l0), whose update gate is "
                "one minus the notes'; convert each layer with "
                "seqlib.np.gru_from_torch(state_dict, layer=0) and set reset_after=True"
            )
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
