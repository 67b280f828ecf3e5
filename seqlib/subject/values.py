"""Plain values: all that may pass between a judge and the code that it judges.

Plain are None, bool, int, float, str, bytes, list, tuple, dict and ndarray, where a dict has
keys without arrays and an ndarray holds booleans, integers, real or complex numbers.
:func:`reduce` makes a plain value of what a student's function returned, and reads it
with the methods of the base classes only, so that an overridden ``__array__`` or ``__eq__`` is
never run. :func:`materialise` makes arguments of plain values and of the three markers below.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_BYTES = 32 * 2**20
MAX_NODES = 100_000
MAX_DEPTH = 16
MAX_INT_BITS = 4096


class UnsupportedValue(ValueError):
    """A value that is not plain; the message is a sentence for the student."""


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


def reduce(value, what="the result"):
    """Return ``value`` as a plain value; ``what`` names it in messages.

    Subclasses become their base class: a ``numpy.matrix`` or a masked array its buffer, an
    ``nn.Parameter`` or any other CPU tensor an ndarray (bfloat16 as float32), a named tuple a
    tuple, a NumPy scalar a 0-d array. Arrays are copied, in C order and native byte order.

    Raises
    ------
    UnsupportedValue
        If it holds anything else, or is too large, too deep or contains itself.
    """
    try:
        return _Reduction(what).value(value, 0)
    except UnsupportedValue:
        raise
    except Exception as error:
        raise UnsupportedValue(
            f"{what} could not be read ({type(error).__name__}); return a NumPy array"
        ) from None


class _Reduction:
    """One walk through a value, with its budget."""

    def __init__(self, what):
        self.what = what
        self.nodes = MAX_NODES
        self.bytes = MAX_BYTES
        self.open = set()  # ids of the containers that are being walked

    def value(self, value, depth):
        kind = type(value)
        self._spend(nodes=1)
        if depth > MAX_DEPTH:
            raise UnsupportedValue(f"{self.what} is nested more than {MAX_DEPTH} deep")
        if value is None or kind is bool:
            return value
        if issubclass(kind, np.generic):
            return self._scalar(value)
        if issubclass(kind, int):
            return self._int(value)
        if issubclass(kind, float):
            return float.__float__(value)
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, bytes):
            return self._text(bytes.__getitem__(value, slice(None)))
        if issubclass(kind, np.ndarray):
            return self._array(np.ndarray.view(value, np.ndarray))
        if kind is range:
            self._spend(nodes=len(value))
            return list(value)
        if issubclass(kind, list | tuple | dict):
            return self._container(value, kind, depth)
        torch = sys.modules.get("torch")  # no torch, no tensor
        if torch is not None and issubclass(kind, torch.Tensor):
            return self._tensor(torch, value)
        raise UnsupportedValue(_refusal(value, self.what))

    def _spend(self, nodes=0, size=0):
        self.nodes -= nodes
        self.bytes -= size
        if self.nodes < 0:
            raise UnsupportedValue(f"{self.what} has more than {MAX_NODES} parts")
        if self.bytes < 0:
            raise UnsupportedValue(f"{self.what} is larger than {MAX_BYTES // 2**20} MiB")

    def _int(self, value):
        value = int.__int__(value)
        if value.bit_length() > MAX_INT_BITS:
            raise UnsupportedValue(
                f"{self.what} holds a number of more than {MAX_INT_BITS} bits"
            )
        return value

    def _text(self, text):
        self._spend(size=len(text) * (4 if type(text) is str else 1))
        return text

    def _scalar(self, value):
        if issubclass(type(value), np.str_):
            return self._text(str.__str__(value))
        if issubclass(type(value), np.bytes_):
            return self._text(bytes.__getitem__(value, slice(None)))
        return self._array(np.generic.__array__(value))

    def _array(self, array):
        if array.dtype.kind not in "biufc":
            raise UnsupportedValue(
                f"{self.what} is an array of dtype {array.dtype}, not of numbers"
                + ("; are its rows of equal length?" if array.dtype.kind == "O" else "")
            )
        self._spend(size=array.nbytes)
        dtype = array.dtype.newbyteorder("=")
        if dtype.itemsize > (16 if dtype.kind == "c" else 8):  # long double
            dtype = np.dtype(complex if dtype.kind == "c" else float)
        return np.array(array, dtype=dtype, order="C")

    def _tensor(self, torch, value):
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            if torch.Tensor.layout.__get__(value) is not torch.strided:
                raise UnsupportedValue(f"{self.what} is a sparse tensor; call to_dense()")
            tensor = torch.Tensor.as_subclass(torch.Tensor.detach(value), torch.Tensor)
            if tensor.device.type == "meta":
                raise UnsupportedValue(
                    f"{self.what} is a tensor without values (device 'meta')"
                )
            self._spend(size=tensor.numel() * tensor.element_size())
            if tensor.dtype == torch.bfloat16:
                tensor = tensor.float()
            array = tensor.cpu().resolve_conj().resolve_neg().numpy()
        return np.array(array, order="C")

    def _container(self, value, kind, depth):
        if id(value) in self.open:
            raise UnsupportedValue(f"{self.what} contains itself")
        self.open.add(id(value))
        try:
            if issubclass(kind, dict):
                return {self._key(k): self.value(v, depth + 1) for k, v in dict.items(value)}
            base = list if issubclass(kind, list) else tuple
            return base([self.value(part, depth + 1) for part in base.__iter__(value)])
        finally:
            self.open.discard(id(value))

    def _key(self, key):
        key = self.value(key, MAX_DEPTH - 2)
        return _without_arrays(key, self.what)


def _without_arrays(key, what):
    if type(key) is np.ndarray and key.ndim == 0:
        return key.item()
    if type(key) is tuple:
        return tuple(_without_arrays(part, what) for part in key)
    if type(key) in (list, dict, np.ndarray):
        raise UnsupportedValue(f"a key of {what} is a {type(key).__name__}")
    return key


def _refusal(value, what):
    name = str(getattr(type(value), "__name__", "object"))[:60]
    advice = "return a NumPy array or a number"
    if hasattr(type(value), "__next__"):
        name, advice = f"{name} that has not run", "return a list, or an array made from it"
    elif issubclass(type(value), set | frozenset):
        advice = "return a sorted list"
    elif callable(value):
        advice = "call it and return its result"
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{what} is or contains {article} {name}; {advice}"


def _caller(handle, ask):
    def call(*args, **kwargs):
        return ask(handle.number, reduce(args, "an argument"), reduce(kwargs, "an argument"))

    return call


def map_leaves(function, value) -> Any:
    """Apply ``function`` to every leaf of nested lists, tuples and dicts."""
    if type(value) is list:
        return [map_leaves(function, part) for part in value]
    if type(value) is tuple:
        return tuple(map_leaves(function, part) for part in value)
    if type(value) is dict:
        return {key: map_leaves(function, part) for key, part in value.items()}
    return function(value)
