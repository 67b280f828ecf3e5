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

from ..subject import reduction, values

MAGIC = b"SEQ1"
HEADER = struct.Struct("<4sQ")
# A message holds a value that is as large as a value may be, and a little around it.
MAX_BYTES = values.MAX_BYTES + 2**20
MAX_NODES = values.MAX_NODES + 1000
MAX_DEPTH = values.MAX_DEPTH + 8
MAX_AXES = 32
MAX_INT_BYTES = reduction.MAX_INT_BITS // 8 + 1
MAX_SIZE = 2**31  # product of the non-zero sizes of an array
MAX_SHARED = 64  # keys of a dict with one hash; (-1, -1, ...) and (-2, -2, ...) share theirs

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_CODES = {name: code for code, name in enumerate(DTYPES)}


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
    return HEADER.pack(MAGIC, encoder.size) + b"".join(encoder.parts)


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
    decoder = _Decoder(body, markers)
    value = decoder.value(0)
    if decoder.at != len(body):
        raise CodecError(f"{len(body) - decoder.at} bytes after the value")
    return value


class _Encoder:
    def __init__(self, limit):
        self.limit = limit
        self.parts, self.size, self.nodes = [], 0, 0

    def put(self, *parts):
        for part in parts:
            self.size += len(part)
            if self.size > self.limit:
                raise CodecError(f"a value must take at most {self.limit} bytes, got more")
            self.parts.append(part)

    def value(self, value, depth):
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise CodecError(f"a value must be nested at most {MAX_DEPTH} deep, got deeper")
        if self.nodes > MAX_NODES:
            raise CodecError(f"a value must have at most {MAX_NODES} parts, got more")
        # Exact types: a subclass may lie about itself, and reducing it is not done here.
        kind = type(value)
        if value is None:
            self.put(b"N")
        elif kind is bool:
            self.put(b"+" if value else b"-")
        elif kind is int:
            self.put(b"i", _integer(value))
        elif kind is float:
            self.put(b"f", struct.pack("<d", value))
        elif kind is complex:
            self.put(b"c", struct.pack("<dd", value.real, value.imag))
        elif kind is str:
            text = value.encode("utf-8", "replace")
            self.put(b"s", struct.pack("<I", len(text)), text)
        elif kind is bytes:
            self.put(b"b", struct.pack("<I", len(value)), value)
        elif kind is list or kind is tuple:
            self.put(b"l" if kind is list else b"t", struct.pack("<I", len(value)))
            for item in value:
                self.value(item, depth + 1)
        elif kind is dict:
            self.put(b"d", struct.pack("<I", len(value)))
            for key, item in value.items():
                self.value(key, depth + 1)
                self.value(item, depth + 1)
        elif kind is np.ndarray:
            self.array(b"a", value)
        elif isinstance(value, np.generic) and kind.__module__ == "numpy":
            self.array(b"g", np.asarray(value))
        elif kind is values.Seed:
            self.put(b"S", _integer(value.number))
        elif kind is values.Handle and value.number is not None:
            self.put(b"H", struct.pack("<I", value.number))
        elif kind is values.AsTensor:
            self.put(b"T", bytes([value.requires_grad]))
            self.array(b"a", value.array)
        else:
            raise CodecError(f"a value must be plain, got a {kind.__module__}.{kind.__name__}")

    def array(self, tag, array):
        name = array.dtype.name
        if name not in _CODES:
            raise CodecError(f"an array must have a numeric dtype, got {name}")
        if array.nbytes > self.limit:
            raise CodecError(
                f"a value must take at most {self.limit} bytes, got an array of shape "
                f"{array.shape} that takes {array.nbytes}"
            )
        if array.ndim > MAX_AXES:
            raise CodecError(f"an array must have at most {MAX_AXES} axes, got {array.ndim}")
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        sizes = struct.pack(f"<{array.ndim}Q", *array.shape)
        self.put(tag, bytes([_CODES[name], array.ndim]), sizes, little.tobytes())


class _Decoder:
    def __init__(self, body, markers):
        self.body, self.markers = memoryview(body), markers
        self.at, self.nodes = 0, 0

    def take(self, count):
        left = len(self.body) - self.at
        if count > left:
            raise CodecError(f"{count} bytes announced, {left} bytes are left")
        self.at += count
        return self.body[self.at - count : self.at]

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def value(self, depth):
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise CodecError(f"a value must be nested at most {MAX_DEPTH} deep, got deeper")
        if self.nodes > MAX_NODES:
            raise CodecError(f"a value must have at most {MAX_NODES} parts, got more")
        tag = bytes(self.take(1))
        if tag == b"N":
            return None
        if tag in b"+-":
            return tag == b"+"
        if tag == b"i":
            return self.integer()
        if tag == b"f":
            return self.unpack("<d")[0]
        if tag == b"c":
            return complex(*self.unpack("<dd"))
        if tag == b"s":
            return str(self.take(*self.unpack("<I")), "utf-8", "replace")
        if tag == b"b":
            return bytes(self.take(*self.unpack("<I")))
        if tag in b"lt":
            items = [self.value(depth + 1) for _ in range(self.count())]
            return items if tag == b"l" else tuple(items)
        if tag == b"d":
            return self.dict(depth + 1)
        if tag == b"a":
            return self.array()
        if self.markers and tag in b"gSHT":
            return self.marker(tag)
        raise CodecError(f"no value starts with {tag!r}")

    def count(self):
        """Return a number of items: each takes a byte at least, so it cannot exceed these."""
        (count,) = self.unpack("<I")
        if count > len(self.body) - self.at:
            raise CodecError(f"{count} items announced, {len(self.body) - self.at} bytes left")
        return count

    def integer(self):
        (length,) = self.unpack("<H")
        if length > MAX_INT_BYTES:
            raise CodecError(
                f"an integer must take at most {MAX_INT_BYTES} bytes, got {length}"
            )
        return int.from_bytes(self.take(length), "little", signed=True)

    def dict(self, depth):
        items = [(self.value(depth), self.value(depth)) for _ in range(self.count())]
        try:
            hashes = Counter(hash(key) for key, _ in items)
        except TypeError:
            raise CodecError("a key must be hashable") from None
        # Keys chosen to share one hash would make the dict quadratic in time.
        shared = max(hashes.values(), default=0)
        if shared > MAX_SHARED:
            raise CodecError(f"keys must differ, got {shared} with one hash")
        return dict(items)

    def array(self):
        code, axes = self.unpack("<BB")
        if code >= len(DTYPES) or axes > MAX_AXES:
            raise CodecError(f"no array has dtype code {code} and {axes} axes")
        shape = self.unpack(f"<{axes}Q")
        size, extent = 1, 1
        for length in shape:
            size, extent = size * length, extent * max(length, 1)
        if extent > MAX_SIZE:
            raise CodecError(f"an array must have at most {MAX_SIZE} entries, got {shape}")
        # A byte that is neither 0 nor 1 is no bool, so these are compared with 0.
        dtype = np.dtype("uint8" if DTYPES[code] == "bool" else DTYPES[code])
        data = self.take(size * dtype.itemsize)
        array = np.frombuffer(data, dtype.newbyteorder("<"), size).reshape(shape)
        return np.array(array != 0 if DTYPES[code] == "bool" else array, dtype=DTYPES[code])

    def marker(self, tag):
        if tag == b"g":
            return self.array()[()]
        if tag == b"S":
            return values.Seed(self.integer())
        if tag == b"H":
            return values.Handle(None, *self.unpack("<I"))
        flag = self.take(1)[0]
        array = self.value(MAX_DEPTH)
        if type(array) is not np.ndarray:
            raise CodecError(f"a tensor must be made from an array, got {type(array).__name__}")
        return values.AsTensor(array, bool(flag))


def _integer(value):
    """Return the length of an integer in bytes (u16) and its two's complement."""
    length = value.bit_length() // 8 + 1
    if length > MAX_INT_BYTES:
        raise CodecError(f"an integer must take at most {MAX_INT_BYTES} bytes, got {length}")
    return struct.pack("<H", length) + value.to_bytes(length, "little", signed=True)
