"""Make a plain value of whatever a student's function returned.

Everything is read with the methods of the base classes only, so that an overridden
``__array__``, ``__eq__`` or ``__torch_function__`` is never run.
"""

import sys

import numpy as np

MAX_BYTES = 32 * 2**20
MAX_NODES = 100_000
MAX_DEPTH = 16
MAX_AXES = 32
MAX_INT_BITS = 4096


class UnsupportedValue(ValueError):
    """A value that is not plain; the message is a sentence for the student."""


def reduce(value, what="the result"):
    """Return ``value`` as a plain value; ``what`` names it in messages.

    Subclasses become their base class: a ``numpy.matrix`` or a masked array its buffer, an
    ``nn.Parameter`` or any other CPU tensor an ndarray (bfloat16 as float32), a named tuple a
    tuple, a NumPy scalar a 0-d array. Arrays are copied, in C order and native byte order.
    Half of a surrogate pair, which no UTF-8 holds, becomes a question mark.

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

    def _spend(self, nodes=0, size=0, axes=0):
        if axes > MAX_AXES:
            raise UnsupportedValue(f"{self.what} has an array of more than {MAX_AXES} axes")
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
        if type(text) is bytes:
            self._spend(size=len(text))
            return text
        self._spend(size=4 * len(text))
        return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

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
        self._spend(size=array.nbytes, axes=array.ndim)
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
            self._spend(size=tensor.numel() * tensor.element_size(), axes=tensor.dim())
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
    verb = "pass" if what == "an argument" else "return"
    advice = f"{verb} a NumPy array, a list or a number"
    if hasattr(type(value), "__next__"):
        name, advice = f"{name} that has not run", f"{verb} a list, or an array made from it"
    elif issubclass(type(value), set | frozenset):
        advice = f"{verb} a sorted list"
    elif callable(value):
        advice = f"call it and {verb} its result"
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{what} is or contains {article} {name}; {advice}"
