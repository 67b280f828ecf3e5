"""Plain values as bytes, without pickle: what the judge and the sandbox send each other.

A value is plain as ``seqlib.subject.values`` defines it, or one of the markers for arguments
there: a seed, an array to be made a tensor, the number of a function that stays with the judge.
It is written as one tag byte followed by its content, and every length stands before what it
counts::

    None  N              str     s length:u32 utf-8        list   l count:u32 values
    True  +              bytes   b length:u32 bytes        tuple  t count:u32 values
    False -              int     i length:u16 two's compl. dict   d count:u32 key, value, ...
    float f 8 bytes      complex c 16 bytes                Seed   S int
    array a dtype:u8 ndim:u8 sizes:u64 ... bytes           Handle H number:u32
    (g for a NumPy scalar)                                 AsTensor T flag:u8 array

The decoder is the boundary: whatever bytes come from the sandbox, it returns a value whose
memory is bounded by the length of the frame, or raises :class:`CodecError`. A length is
compared with the bytes that are left before anything of that length is made.
A frame is ``SEQ1``, the length of the body as u64, and the body.
"""

import struct
from collections import Counter

import numpy as np

from ....subject import reduction, values

MAGIC = b"SEQ1"
HEADER = struct.Struct("<4sQ")
# A message holds a value that is as large as a value may be, and a little around it.
MAX_BYTES = values.MAX_BYTES + 2**20
MAX_NODES = values.MAX_NODES + 1000
MAX_DEPTH = values.MAX_DEPTH + 8
MAX_AXES = reduction.MAX_AXES
MAX_INT_BYTES = reduction.MAX_INT_BITS // 8 + 1
MAX_SIZE = 2**31  # product of the non-zero sizes of an array
MAX_SHARED = 64  # keys of a dict with one hash; (-1, -1, ...) and (-2, -2, ...) share theirs

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_CODES = {np.dtype(name): code for code, name in enumerate(DTYPES)}
# How each lies in the bytes, and what it is.
_STORED = [
    (np.dtype(n.replace("bool", "uint8")).newbyteorder("<"), np.dtype(n)) for n in DTYPES
]
_LENGTH, _U16, _U32 = struct.Struct("<cI"), struct.Struct("<H"), struct.Struct("<I")
_FLOAT, _COMPLEX, _ARRAY = struct.Struct("<d"), struct.Struct("<dd"), struct.Struct("<BB")
_LIST, _TENSOR = b"lT"


class CodecError(ValueError):
    """A value that is not plain, or bytes that are no value."""


def frame(value, *, limit=MAX_BYTES):
    """Return the frame of ``value``: header and body.

    Raises
    ------
    CodecError
        If a part of ``value`` is neither plain nor a marker, or the body would exceed
        ``limit`` bytes.
    """
    encoder = _Encoder(limit)
    encoder.value(value, 0)
    body = b"".join(encoder.parts)
    if len(body) > limit:
        raise _too_large(limit, "more")
    return HEADER.pack(MAGIC, len(body)) + body


def read_frame(receive, *, markers=False, limit=MAX_BYTES):
    """Return the value of the next frame.

    Parameters
    ----------
    receive : callable
        ``receive(n) -> bytes``: the next ``n`` bytes, exactly.
    markers : bool
        Whether the value may hold what is no plain value: seeds, tensors, handles and NumPy
        scalars. Only what the judge sends may.
    limit : int
        Most bytes that the body may have.

    Raises
    ------
    CodecError
        If the bytes are not a frame within the limits.
    """
    magic, length = HEADER.unpack(receive(HEADER.size))
    if magic != MAGIC:
        raise CodecError(f"a frame must start with {MAGIC!r}, got {magic!r}")
    if length > limit:
        raise CodecError(f"a frame must have at most {limit} bytes, got a claim of {length}")
    return decode(receive(length), markers=markers)


def decode(body, *, markers=False):
    """Return the value whose encoding is ``body``, all of it.

    Raises
    ------
    CodecError
        If ``body`` is not the encoding of one value.
    """
    decoder = _Decoder(bytes(body), markers)
    value = decoder.value(0)
    if decoder.at != len(body):
        raise CodecError(f"{len(body) - decoder.at} bytes after the value")
    return value


def _too_large(limit, got):
    return CodecError(f"a value must take at most {limit} bytes, got {got}")


class _Encoder:
    def __init__(self, limit):
        self.limit = limit
        self.parts, self.nodes = [], 1
        self.arrays = 0  # bytes; a view may announce more of them than there are

    def value(self, value, depth):
        # Exact types: a subclass may lie about itself, and reducing it is not done here.
        kind = type(value)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            self.parts.append(simple(value))
        elif kind is list or kind is tuple:
            self.parts.append(_LENGTH.pack(b"l" if kind is list else b"t", len(value)))
            self.items(value, depth + 1)
        elif kind is dict:
            self.parts.append(_LENGTH.pack(b"d", len(value)))
            self.items([part for item in value.items() for part in item], depth + 1)
        elif kind is np.ndarray:
            self.array(b"a", value)
        elif isinstance(value, np.generic) and kind.__module__ == "numpy":
            self.array(b"g", np.asarray(value))
        elif kind is values.Seed:
            self.parts.append(b"S" + _integer(value.number))
        elif kind is values.Handle and value.number is not None:
            self.parts.append(_LENGTH.pack(b"H", value.number))
        elif kind is values.AsTensor:
            self.parts.append(bytes([_TENSOR, value.requires_grad]))
            self.array(b"a", value.array)
        else:
            raise CodecError(f"a value must be plain, got a {kind.__module__}.{kind.__name__}")

    def items(self, items, depth):
        """Add the parts of a container; a call for each simple one would take twice as long."""
        self.nodes += len(items)
        if self.nodes > MAX_NODES:
            raise CodecError(f"a value must have at most {MAX_NODES} parts, got more")
        if depth > MAX_DEPTH and items:
            raise CodecError(f"a value must be nested at most {MAX_DEPTH} deep, got deeper")
        for item in items:
            simple = _SIMPLE.get(type(item))
            if simple is None:
                self.value(item, depth)
            else:
                self.parts.append(simple(item))

    def array(self, tag, array):
        code, axes = _CODES.get(array.dtype), array.ndim
        if code is None:
            code = _CODES.get(array.dtype.newbyteorder("="))
        if code is None:
            raise CodecError(f"an array must have a numeric dtype, got {array.dtype.name}")
        self.arrays += array.nbytes
        if self.arrays > self.limit:
            raise _too_large(
                self.limit, f"an array of shape {array.shape} that takes {array.nbytes}"
            )
        if axes > MAX_AXES:
            raise CodecError(f"an array must have at most {MAX_AXES} axes, got {axes}")
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        self.parts.append(tag + struct.pack(f"<BB{axes}Q", code, axes, *array.shape))
        self.parts.append(little.tobytes())


class _Decoder:
    def __init__(self, body, markers):
        self.body, self.size, self.markers = body, len(body), markers
        self.at, self.nodes = 0, 0

    def step(self, count):
        """Go on by some bytes, if there are as many; return where they begin."""
        start, self.at = self.at, self.at + count
        if self.at > self.size:
            raise CodecError(f"{count} bytes announced, {self.size - start} bytes are left")
        return start

    def take(self, count):
        start = self.step(count)
        return self.body[start : self.at]

    def unpack(self, form):
        return form.unpack_from(self.body, self.step(form.size))

    def counted(self):
        """Return some bytes whose number stands before them."""
        start = self.step(4)
        return self.take(int.from_bytes(self.body[start : start + 4], "little"))

    def value(self, depth):
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise CodecError(f"a value must be nested at most {MAX_DEPTH} deep, got deeper")
        if self.nodes > MAX_NODES:
            raise CodecError(f"a value must have at most {MAX_NODES} parts, got more")
        tag = self.body[self.step(1)]
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        read = _READERS.get(tag)
        if read is not None:
            return read(self)
        if tag in b"lt":
            items = [self.value(depth + 1) for _ in range(self.count())]
            return items if tag == _LIST else tuple(items)
        if tag in b"d":
            return self.dict(depth + 1)
        if self.markers and tag in b"gSHT":
            return self.marker(tag)
        raise CodecError(f"no value starts with {bytes([tag])!r}")

    def count(self):
        """Return a number of items: each takes a byte at least, so it cannot exceed these."""
        (count,) = self.unpack(_U32)
        if count > self.size - self.at:
            raise CodecError(f"{count} items announced, {self.size - self.at} bytes left")
        return count

    def integer(self):
        (length,) = self.unpack(_U16)
        if length > MAX_INT_BYTES:
            raise CodecError(f"an integer may take {MAX_INT_BYTES} bytes, got {length}")
        return int.from_bytes(self.take(length), "little", signed=True)

    def dict(self, depth):
        items = [(self.value(depth), self.value(depth)) for _ in range(self.count())]
        try:
            # Keys chosen to share one hash would make the dict quadratic in time.
            if len(items) > MAX_SHARED:
                shared = max(Counter(hash(key) for key, _ in items).values())
                if shared > MAX_SHARED:
                    raise CodecError(f"keys must differ, got {shared} with one hash")
            return dict(items)
        except TypeError:
            raise CodecError("a key must be hashable") from None

    def array(self):
        code, axes = self.unpack(_ARRAY)
        if code >= len(DTYPES) or axes > MAX_AXES:
            raise CodecError(f"no array has dtype code {code} and {axes} axes")
        shape = struct.unpack_from(f"<{axes}Q", self.body, self.step(8 * axes))
        size, extent = 1, 1
        for length in shape:
            size, extent = size * length, extent * max(length, 1)
        if extent > MAX_SIZE:
            raise CodecError(f"an array must have at most {MAX_SIZE} entries, got {shape}")
        # A byte that is neither 0 nor 1 is no bool, so these are compared with 0.
        stored, dtype = _STORED[code]
        start = self.step(size * stored.itemsize)
        array = np.frombuffer(self.body, stored, size, start) if size else np.empty(0, stored)
        array = array != 0 if dtype.kind == "b" else array
        return np.array(array.reshape(shape), dtype=dtype)

    def marker(self, tag):
        if tag in b"g":
            return self.array()[()]
        if tag in b"S":
            return values.Seed(self.integer())
        if tag in b"H":
            return values.Handle(None, *self.unpack(_U32))
        flag = self.take(1)[0]
        array = self.value(MAX_DEPTH)
        if type(array) is not np.ndarray:
            raise CodecError(f"a tensor must be made from an array, got {type(array).__name__}")
        return values.AsTensor(array, bool(flag))


def _text(value):
    text = value.encode("utf-8", "replace")
    return _LENGTH.pack(b"s", len(text)) + text


def _integer(value):
    """Return the length of an integer in bytes (u16) and its two's complement."""
    length = value.bit_length() // 8 + 1
    if length > MAX_INT_BYTES:
        raise CodecError(f"an integer must take at most {MAX_INT_BYTES} bytes, got {length}")
    return struct.pack("<H", length) + value.to_bytes(length, "little", signed=True)


_SIMPLE = {
    type(None): lambda value: b"N",
    bool: lambda value: b"+" if value else b"-",
    int: lambda value: b"i" + _integer(value),
    float: lambda value: b"f" + _FLOAT.pack(value),
    complex: lambda value: b"c" + _COMPLEX.pack(value.real, value.imag),
    str: _text,
    bytes: lambda value: _LENGTH.pack(b"b", len(value)) + value,
}
_CONSTANTS = {ord("N"): None, ord("+"): True, ord("-"): False}
_READERS = {
    ord("i"): _Decoder.integer,
    ord("f"): lambda decoder: decoder.unpack(_FLOAT)[0],
    ord("c"): lambda decoder: complex(*decoder.unpack(_COMPLEX)),
    ord("s"): lambda decoder: str(decoder.counted(), "utf-8", "replace"),
    ord("b"): _Decoder.counted,
    ord("a"): _Decoder.array,
}
