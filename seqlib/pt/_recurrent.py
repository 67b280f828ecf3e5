"""Steps that the recurrent layers share in PyTorch, and the module that owns parameters."""

import math

import torch
from torch import nn

from seqlib._check import check_positive, check_shape
from seqlib._recurrent import check_lengths


def pre_activation(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    """Return ``W_ih x + b_ih + W_hh h + b_hh`` for the rows of ``x`` and ``h``."""
    return project(x, weight_ih, bias_ih) + project(h, weight_hh, bias_hh)


def project(x, weight, bias):
    """Return ``x @ weight.T + bias``, where the bias may be None."""
    return nn.functional.linear(x, weight, bias)


def mask_padding(x, lengths):
    """Return ``x`` with its padded steps set to 0, and where steps are valid, ``(B, T, 1)``.

    What stands at a padded step, NaN included, then reaches neither a value nor a gradient.
    Without lengths the second result is None: every step is valid.
    """
    if lengths is None:
        return x, None
    lengths = torch.as_tensor(lengths, device=x.device)
    check_lengths(lengths, x)
    valid = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    return x.masked_fill(~valid[..., None], 0), valid[..., None]


def keep(valid, t, new, old):
    """Return ``new`` for the sequences in which step ``t`` is valid, else ``old``."""
    return new if valid is None else torch.where(valid[:, t], new, old)


def stack_steps(steps, h, valid):
    """Join the states after each step to ``y``, ``(B, T, H)``, 0 at padded steps."""
    y = torch.stack(steps, dim=1) if steps else h.new_zeros((h.shape[0], 0, h.shape[1]))
    return y if valid is None else y.masked_fill(~valid, 0)


class Recurrent(nn.Module):
    """Parameters of a stack of recurrent layers, named and initialised as PyTorch does.

    A subclass sets ``blocks``, the number of gates that the weights stack, and the ``prefix``
    of the parameter names.
    """

    blocks = 1
    prefix = ""

    def __init__(self, input_size, hidden_size, num_layers=1, *, bias=True):
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.bias = num_layers, bias
        rows, bound = self.blocks * hidden_size, 1 / math.sqrt(hidden_size)
        for layer in range(num_layers):
            columns = input_size if layer == 0 else hidden_size
            shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, hidden_size)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            for name, shape in shapes.items():
                value = torch.empty(shape).uniform_(-bound, bound)
                self.register_parameter(f"{self.prefix}{name}_l{layer}", nn.Parameter(value))

    def parameters_of(self, layer):
        """Return ``weight_ih, weight_hh, bias_ih, bias_hh`` of a layer; None for no bias."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self, f"{self.prefix}{name}_l{layer}", None) for name in names]

    def initial_state(self, x, state, name):
        """Return the given states of all layers, ``(num_layers, B, H)``, or zeros."""
        check_shape("x", x, ("B", "T", self.input_size), fix="batch first: (B, T, D)")
        shape = (self.num_layers, x.shape[0], self.hidden_size)
        if state is None:
            return x.new_zeros(shape)
        check_shape(name, state, shape, fix="one state per layer and sequence")
        return state

    def extra_repr(self):
        """Show the sizes in ``print(module)``."""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
