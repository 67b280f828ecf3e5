"""The codec returns what was sent, and refuses hostile bytes without making anything large."""

import contextlib
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlib.grading.sandbox.inside import codec
from seqlib.grading.sandbox.inside.codec import HEADER, CodecError, decode, frame, read_frame
from seqlib.subject.values import AsTensor, Handle, Seed


def reader(data):
    """Return ``receive(n)`` over ``data``."""
    at = 0

    def receive(count):
        nonlocal at
        assert at + count <= len(data), "the decoder asked for bytes that were not sent"
        at += count
        return data[at - count : at]

    return receive


def round_trip(value):
    return read_frame(reader(frame(value)), markers=True)


def body(value):
    return frame(value)[HEADER.size :]


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    return a == b


SCALARS = [None, True, False, 0, -1, 255, -256, 2**63, -(2**4095), 0.1, -0.0, float("nan")]
SCALARS += [float("-inf"), 1 - 2j, "", "ατ\x00", b"", b"\xff\x00"]


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_scalars(value):
    assert same(round_trip(value), value)


@pytest.mark.parametrize("dtype", codec.DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3)])
def test_arrays(dtype, shape, rng):
    array = np.asarray(100 * rng.standard_normal(shape)).astype(dtype)
    back = round_trip(array)
    assert same(back, array)
    assert back.flags.writeable
    assert back.flags.aligned


def test_array_layouts(rng):
    array = rng.standard_normal((4, 6))
    for view in (array.T, array[::2, ::-1], array.astype(">f8"), np.broadcast_to(1.0, (2, 3))):
        back = round_trip(view)
        assert back.shape == view.shape
        assert np.array_equal(back, view)
        assert back.dtype == np.float64


def test_numpy_scalars_stay_scalars():
    for value in (np.float32(0.1), np.int64(-3), np.bool_(True)):
        assert same(round_trip(value), value)


def test_containers():
    value = {"a": [1, (2.0, None)], 3: {}, (1, "x"): [], None: (), b"k": np.arange(3)}
    assert same(round_trip(value), value)


def test_markers():
    assert round_trip(Seed(2**70)) == Seed(2**70)
    assert round_trip([Handle(None, 7)])[0].number == 7
    back = round_trip(AsTensor(np.ones((2, 0), np.float32), requires_grad=True))
    assert back.requires_grad
    assert same(back.array, np.ones((2, 0), np.float32))


@pytest.mark.parametrize(
    "marker", [Seed(1), Handle(None, 0), AsTensor(np.zeros(2)), np.float64(1)]
)
def test_only_the_judge_may_send_markers(marker):
    with pytest.raises(CodecError, match="no value starts with"):
        read_frame(reader(frame([marker])))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_any_plain_value(value):
    assert same(round_trip(value), value)


class Float(float):
    pass


class Array(np.ndarray):
    pass


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Float(1),
        np.zeros(2).view(Array),
        np.array([object()]),
        np.array(["text"]),
        {1, 2},
        len,
        Handle(len),
        np.zeros(1, "M8[s]"),
        np.broadcast_to(0.0, (1 << 40,)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_encoder_refuses(value):
    with pytest.raises(CodecError, match="must"):
        frame([value])


def test_encoder_refuses_cycles_and_size():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(CodecError, match="nested"):
        frame(cycle)
    with pytest.raises(CodecError, match="at most 100 bytes"):
        frame(b"x" * 200, limit=100)
    with pytest.raises(CodecError, match="parts"):
        frame([None] * (codec.MAX_NODES + 1))


def u32(n):
    return struct.pack("<I", n)


def array_head(code, *shape, axes=None):
    axes = len(shape) if axes is None else axes
    return b"a" + bytes([code, axes]) + struct.pack(f"<{len(shape)}Q", *shape)


COLLIDING = b"".join(body(i * (2**61 - 1)) + b"N" for i in range(1, 3000))

HOSTILE = {
    "nothing": b"",
    "unknown tag": b"?",
    "bytes after the value": b"NN",
    "string of 4 GB": b"s" + u32(2**32 - 1) + b"x",
    "bytes of 4 GB": b"b" + u32(2**32 - 1) + b"x",
    "list of 4 G items": b"l" + u32(2**32 - 1) + b"N",
    "dict of 4 G items": b"d" + u32(2**32 - 1) + b"NN",
    "integer without its bytes": b"i" + struct.pack("<H", 65535) + b"\x01",
    "deep nesting": (b"l" + u32(1)) * 100_000 + b"N",
    "many parts": b"l" + u32(200_000) + b"N" * 200_000,
    "nested lists of nothing": b"l" + u32(150_000) + (b"l" + u32(0)) * 150_000,
    "array of 10 GB": array_head(11, 10 << 30) + b"\0" * 64,
    "array of 2**63 entries": array_head(11, 2**63),
    "negative size": array_head(11, 2**64 - 1),
    "sizes whose product overflows to 0": array_head(1, 2**32, 2**32),
    "empty array with a huge size": array_head(11, 0, 2**62),
    "too many axes": array_head(1, *[1] * 33) + b"\0",
    "fewer sizes than axes": array_head(1, 1, axes=4) + b"\0",
    "unknown dtype": array_head(99, 1) + b"\0" * 8,
    "array shorter than its shape": array_head(11, 3) + b"\0" * 23,
    "array longer than its shape": array_head(11, 3) + b"\0" * 25,
    "list as a key": b"d" + u32(1) + b"l" + u32(0) + b"N",
    "array as a key": b"d" + u32(1) + array_head(11) + b"\0" * 8 + b"N",
    "tuple with a list as a key": b"d" + u32(1) + b"t" + u32(1) + b"l" + u32(0) + b"N",
    "keys of one hash": b"d" + u32(2999) + COLLIDING,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_decoder_refuses(data):
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 * len(data) + 2**16


def test_frames_are_refused_before_their_body_is_read():
    receive = reader(HEADER.pack(b"SEQ1", 10 << 30))
    with pytest.raises(CodecError, match="at most"):
        read_frame(receive)
    with pytest.raises(CodecError, match="start with"):
        read_frame(reader(b"HTTP/1.1 200"))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_an_error(data):
    try:
        value = decode(data)
    except CodecError:
        return
    assert same(decode(body(value)), value)


@given(PLAIN, st.data())
def test_damaged_frames_give_a_value_or_an_error(value, data):
    damaged = bytearray(body(value))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CodecError):
        decode(bytes(damaged))


def test_bools_are_zero_or_one():
    back = decode(array_head(0, 3) + b"\x00\x02\xff")
    assert back.tolist() == [False, True, True]
    assert back.tobytes() == b"\x00\x01\x01"
