"""Plain values: all that may pass between a judge and the code that it judges.

Plain are None, bool, int, float, str, bytes, list, tuple, dict and ndarray, where a dict has
keys without arrays and an ndarray holds booleans, integers, real or complex numbers.
:func:`reduce` makes a plain value of what a student's function returned, and reads it
with the methods of the base classes only, so that an overridden ``__array__`` or ``__eq__`` is
never run. :func:`materialise` makes arguments of plain values and of the three markers below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .reduction import MAX_BYTES, MAX_DEPTH, MAX_NODES, UnsupportedValue, reduce

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "AsTensor",
    "Handle",
    "Seed",
    "UnsupportedValue",
    "map_leaves",
    "materialise",
    "number_handles",
    "reduce",
    "unchanged",
]


@dataclass(frozen=True)
class Seed:
    """As an argument: a ``numpy.random.Generator`` made from this number."""

    number: int


@dataclass(frozen=True)
class AsTensor:
    """As an argument: a ``torch.Tensor`` with the values and the dtype of this array."""

    array: np.ndarray
    requires_grad: bool = False


@dataclass(frozen=True, eq=False)
class Handle:
    """As an argument: a function that stays with the judge and can only be called.

    Attributes
    ----------
    function : callable or None
        The judge's function. It gets plain values and must return one. None on the far side.
    number : int or None
        Its number within one request, given by :func:`number_handles`.
    """

    function: Callable | None = None
    number: int | None = None


def number_handles(request):
    """Take the functions out of a request.

    Parameters
    ----------
    request : object
        Nested dicts, lists and tuples with :class:`Handle` among the leaves.

    Returns
    -------
    request : object
        The same with ``Handle(None, number=i)`` in place of the i-th handle.
    functions : list of callable
        What handle i calls.
    """
    functions = []

    def number(leaf):
        if type(leaf) is not Handle:
            return leaf
        functions.append(leaf.function)
        return Handle(None, len(functions) - 1)

    return map_leaves(number, request), functions


def materialise(value, ask):
    """Make fresh arguments: writable copies of arrays, generators, tensors, functions.

    Parameters
    ----------
    value : object
        A plain value with markers among its leaves.
    ask : callable
        ``ask(number, args, kwargs)`` calls the judge's function behind a handle.

    Returns
    -------
    object
        Shares no array, list or dict with ``value``.
    """

    def make(leaf):
        if type(leaf) is np.ndarray:
            return np.array(leaf, order="C")
        if type(leaf) is Seed:
            return np.random.default_rng(leaf.number)
        if type(leaf) is AsTensor:
            import torch

            return torch.from_numpy(np.array(leaf.array)).requires_grad_(leaf.requires_grad)
        if type(leaf) is Handle:
            return _caller(leaf, ask)
        return leaf

    return map_leaves(make, value)


def unchanged(argument, value):
    """Whether a materialised argument still holds what it was made from."""
    if type(value) in (list, tuple):
        return (
            type(argument) is type(value)
            and len(argument) == len(value)
            and all(unchanged(a, v) for a, v in zip(argument, value, strict=True))
        )
    if type(value) is dict:
        return (
            type(argument) is dict
            and list(argument) == list(value)
            and all(unchanged(argument[key], value[key]) for key in value)
        )
    if type(value) is AsTensor:
        argument, value = argument.detach().numpy(), value.array
    if type(value) is np.ndarray:
        return (
            type(argument) is np.ndarray
            and argument.shape == value.shape
            and argument.dtype == value.dtype
            and argument.tobytes() == value.tobytes()  # NaN equals itself here
        )
    if type(value) in (Seed, Handle):
        return True
    return type(argument) is type(value) and (argument is value or argument == value)


_NESTED = frozenset({list, tuple, dict})
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


def _caller(handle, ask):
    def listed(arg):
        return list(arg) if type(arg) in _VIEWS else arg

    def call(*args, **kwargs):
        args = tuple(listed(arg) for arg in args)
        kwargs = {key: listed(arg) for key, arg in kwargs.items()}
        return ask(handle.number, reduce(args, "an argument"), reduce(kwargs, "an argument"))

    return call


def map_leaves(function, value) -> Any:
    """Apply ``function`` to every leaf of nested lists, tuples and dicts."""
    kind = type(value)
    if kind not in _NESTED:
        return function(value)
    # A call for every leaf would take as long again as what is done with them.
    if kind is dict:
        return {
            key: map_leaves(function, part) if type(part) in _NESTED else function(part)
            for key, part in value.items()
        }
    parts = [
        map_leaves(function, part) if type(part) in _NESTED else function(part)
        for part in value
    ]
    return parts if kind is list else tuple(parts)
