"""Helpers of the tests of recurrent layers: arguments, and PyTorch's layers as reference."""

import numpy as np
import torch
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import seqlib.np as snp
import seqlib.pt as spt

BLOCKS = {"rnn": 1, "lstm": 4, "gru": 3}
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

# Kinds of layers with the options under which PyTorch has the same layer.
KINDS = [("rnn", {}), ("lstm", {}), ("gru", {"reset_after": True})]
ALL_KINDS = [*KINDS, ("gru", {})]


def kind_id(kind):
    name, options = kind
    return f"{name}-reset_after" if options else name


def make_args(name, rng, B, T, D, H, *, bias=True, scale=0.5):
    """Return x, the initial states and the four parameters, none of them zero."""
    rows = BLOCKS[name] * H
    states = [(B, H)] * (2 if name == "lstm" else 1)
    shapes = [(B, T, D), *states, (rows, D), (rows, H), (rows,), (rows,)]
    args = [scale * rng.standard_normal(shape) for shape in shapes]
    return args if bias else [*args[:-2], None, None]


def cell_args(name, rng, B, D, H, *, bias=True):
    """Return the arguments of one step."""
    x, *rest = make_args(name, rng, B, 1, D, H, bias=bias)
    return [x[:, 0], *rest]


def as_tensors(args, *, grad=False):
    return [None if a is None else torch.tensor(a, requires_grad=grad) for a in args]


def torch_layer(name, x, *args, lengths=None, reverse=False, reset_after=None):
    """Run PyTorch's layer; its own reverse direction and packing serve as reference."""
    states, (weight_ih, *_) = args[:-4], args[-4:]
    kind = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[name]
    H = states[0].shape[-1]
    module = kind(
        weight_ih.shape[1], H, batch_first=True, bidirectional=True, bias=args[-1] is not None
    ).double()
    parameters = {}
    for parameter, value in zip(NAMES, args[-4:], strict=True):
        if value is None:
            continue
        if name == "gru":  # PyTorch's update gate is one minus ours
            sign = torch.ones(3 * H, dtype=value.dtype)
            sign[H : 2 * H] = -1
            value = value * (sign if value.ndim == 1 else sign[:, None])
        parameters[f"{parameter}_l0"] = parameters[f"{parameter}_l0_reverse"] = value
    both = tuple(torch.stack([state, state]) for state in states)
    both = both if name == "lstm" else both[0]
    if lengths is not None:
        packed = pack_padded_sequence(
            x, torch.as_tensor(lengths), batch_first=True, enforce_sorted=False
        )
        y, last = functional_call(module, parameters, (packed, both))
        y, _ = pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
    else:
        y, last = functional_call(module, parameters, (x, both))
    last = last if name == "lstm" else (last,)
    y = y[..., H:] if reverse else y[..., :H]
    return (y, *(state[int(reverse)] for state in last))


def call(package, name, args, **options):
    return getattr(package, name)(*args, **options)


def numpy_gradients(name, dy, args, **options):
    return getattr(snp, f"{name}_backward")(dy, *args, **options)


def autograd(outputs, inputs, dy):
    """Return autograd's gradients for a tuple of outputs; None for an input that is None."""
    loss = sum((y * torch.tensor(d)).sum() for y, d in zip(outputs, dy, strict=True))
    found = iter(torch.autograd.grad(loss, [x for x in inputs if x is not None]))
    return [None if x is None else next(found) for x in inputs]


def assert_all_close(actual, expected, *, rtol=1e-10, atol=1e-10):
    for ours, theirs in zip(actual, expected, strict=True):
        if theirs is None:
            assert ours is None
            continue
        ours = ours.detach() if hasattr(ours, "detach") else ours
        theirs = theirs.detach() if hasattr(theirs, "detach") else theirs
        assert ours.shape == tuple(theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def random_dy(outputs, rng):
    return tuple(rng.standard_normal(tuple(y.shape)) for y in outputs)


BACKENDS = {"np": snp, "pt": spt}
