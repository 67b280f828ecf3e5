"""Helpers of the tests: run a function in both backends, and hold it against a reference."""

import inspect
import pkgutil
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import seqlib.np as snp
import seqlib.pt as spt


def modules(package):
    """Return the public modules that a package imports.

    Not by attribute: ``seqlib.np.rnn`` is the function, which hides the module of that name.
    """
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name[0] != "_"]
    full = [f"{package.__name__}.{name}" for name in names]
    return [sys.modules[name] for name in full if name in sys.modules]


def functions(package):
    """Return the public functions of a package by name."""
    public = {
        name: getattr(module, name)
        for module in modules(package)
        for name in getattr(module, "__all__", [])
    }
    return {name: f for name, f in public.items() if inspect.isfunction(f)}


NUMPY, PYTORCH = functions(snp), functions(spt)


def tensors(values, *, grad=False):
    """Turn arrays into tensors of the same dtype, and leave everything else as it is."""
    if isinstance(values, dict):
        return dict(zip(values, tensors(list(values.values()), grad=grad), strict=True))
    return [
        torch.tensor(v, requires_grad=grad and v.dtype.kind == "f")
        if isinstance(v, np.ndarray)
        else v
        for v in values
    ]


def run(name, *args, rtol=1e-12, atol=1e-13, **kwargs):
    """Call the function of both backends; they must agree. Return NumPy's result."""
    y = getattr(snp, name)(*args, **kwargs)
    twin = getattr(spt, name)(*tensors(args), **tensors(kwargs))
    for ours, other in zip(_as_tuple(y), _as_tuple(twin), strict=True):
        assert ours.shape == other.shape
        assert_allclose(ours, other, rtol=rtol, atol=atol)
    return y


def gradients(y, inputs, dy):
    """Return autograd's gradients of ``<dy, y>``; None for an input that is None."""
    wanted = [x for x in inputs if x is not None]
    found = iter(torch.autograd.grad(y, wanted, torch.tensor(dy)))
    return [None if x is None else next(found) for x in inputs]


def assert_equals_reference(
    name, args, reference, rng, *, rtol=1e-10, grad_rtol=1e-9, **kwargs
):
    """Hold values and gradients of both backends against a function of tensors.

    ``reference(*tensors)`` closes over its options; ``kwargs`` are those of our function.
    """
    theirs, ours = tensors(args, grad=True), tensors(args, grad=True)
    expected = reference(*theirs)
    twin = getattr(spt, name)(*ours, **tensors(kwargs))
    y = getattr(snp, name)(*args, **kwargs)
    assert y.shape == tuple(expected.shape)
    assert_allclose(y, expected.detach(), rtol=rtol, atol=rtol)
    assert_allclose(twin.detach(), expected.detach(), rtol=rtol, atol=rtol)

    dy = rng.standard_normal(y.shape).astype(y.dtype)
    by_hand = _as_tuple(getattr(snp, f"{name}_backward")(dy, *args, **kwargs))
    for grad, other, wanted in zip(
        by_hand, gradients(twin, ours, dy), gradients(expected, theirs, dy), strict=True
    ):
        if wanted is None:
            assert grad is None
            continue
        assert grad.dtype == y.dtype
        assert_allclose(grad, wanted, rtol=grad_rtol, atol=grad_rtol)
        assert_allclose(other, wanted, rtol=grad_rtol, atol=grad_rtol)


def error_text(name, *args, **kwargs):
    """Return the text of the ValueError that both backends must raise alike."""
    with pytest.raises(ValueError, match=" must ") as ours:
        getattr(snp, name)(*args, **kwargs)
    with pytest.raises(ValueError, match=" must ") as twin:
        getattr(spt, name)(*tensors(args), **tensors(kwargs))
    assert str(ours.value) == str(twin.value)
    return str(ours.value)


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)
