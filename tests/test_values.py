"""What is a plain value, and what of a lying object remains."""

import sys
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

from seqlib.subject.values import (
    AsTensor,
    Handle,
    Seed,
    UnsupportedValue,
    materialise,
    number_handles,
    reduce,
    unchanged,
)


def is_plain(value):
    if type(value) in (list, tuple):
        return all(is_plain(part) for part in value)
    if type(value) is dict:
        return all(is_plain(part) for pair in value.items() for part in pair)
    return type(value) in (type(None), bool, int, float, str, bytes, np.ndarray)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -(2**70),
        1.5,
        "text",
        b"bytes",
        [1, [2]],
        (1, ()),
        {"w": [1]},
        {(1, 2): 3},
    ],
)
def test_plain_values_stay_as_they_are(value):
    assert reduce(value) == value
    assert type(reduce(value)) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.array(2.5),
        np.arange(6).reshape(2, 3).T,
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([1.0, np.nan, -np.inf], np.float16),
        np.broadcast_to(np.float32(1), (3, 4)),
    ],
)
def test_arrays_are_copied_with_shape_and_dtype(array):
    plain = reduce(array)
    assert type(plain) is np.ndarray
    assert plain.dtype == array.dtype
    assert plain.flags.c_contiguous
    assert plain.flags.writeable
    assert not np.shares_memory(plain, array)
    np.testing.assert_array_equal(plain, array)


def test_arrays_get_the_byte_order_of_this_machine():
    swapped = np.arange(3.0).astype(np.dtype(float).newbyteorder("S"))
    assert reduce(swapped).dtype == np.float64
    np.testing.assert_array_equal(reduce(swapped), [0, 1, 2])
    assert reduce(np.arange(2, dtype=np.longdouble)).dtype == np.float64


def test_half_of_a_surrogate_pair_is_a_question_mark():
    """It cannot be sent, and both sides shall see the same."""
    assert reduce(["\ud83d\ude00", "\U0001f600", "a\udcffb"]) == ["??", "\U0001f600", "a?b"]
    assert reduce({np.str_("\udc80"): b"\xed"}) == {"?": b"\xed"}


def test_numpy_scalars_are_arrays_without_axes():
    plain = reduce(np.float32(1.5))
    assert (plain.shape, plain.dtype, plain.item()) == ((), np.float32, 1.5)
    assert reduce(np.bool_(True)).item() is True
    assert reduce(np.str_("abc")) == "abc"
    assert type(reduce(np.str_("abc"))) is str
    assert reduce({np.int64(3): 1}) == {3: 1}


class Liar(np.ndarray):
    """Claims to be equal to everything and to hold ones."""

    def __array_function__(self, *args, **kwargs):
        return True

    def __array_ufunc__(self, *args, **kwargs):
        return True

    def __array__(self, *args, **kwargs):
        return np.ones(3)

    def __eq__(self, other):
        return True

    __hash__ = None
    shape = (99,)
    dtype = "lies"
    nbytes = 0


class LyingFloat(float):
    def __float__(self):
        return 1.0

    def __eq__(self, other):
        return True

    __hash__ = None


class LyingInt(int):
    def __int__(self):
        return 1

    def __index__(self):
        return 1


class LyingList(list):
    def __iter__(self):
        return iter([1, 2, 3])

    def __len__(self):
        return 3


class LyingDict(dict):
    def items(self):
        return [("a", 1)]

    def __iter__(self):
        return iter("a")


class LyingScalar(np.float64):
    def __array__(self, *args, **kwargs):
        return np.array(1.0)


class LyingText(str):
    def __str__(self):
        return "right"


class Pretender:
    @property
    def __class__(self):
        return np.ndarray


def test_a_lying_subclass_shows_what_it_really_holds():
    plain = reduce(np.arange(4.0).view(Liar))
    assert type(plain) is np.ndarray
    np.testing.assert_array_equal(plain, [0, 1, 2, 3])
    assert reduce(LyingFloat(5.0)) == 5.0
    assert type(reduce(LyingFloat(5.0))) is float
    assert reduce(LyingInt(5)) == 5
    assert reduce(LyingList([7])) == [7]
    assert reduce(LyingDict(b=2)) == {"b": 2}
    assert reduce(LyingScalar(5.0)).item() == 5.0
    assert reduce(LyingText("wrong")) == "wrong"
    with pytest.raises(UnsupportedValue, match="Pretender"):
        reduce(Pretender())


def test_other_subclasses_become_their_base():
    pair = namedtuple("pair", "a b")(1, 2)
    assert type(reduce(pair)) is tuple
    assert type(reduce(OrderedDict(a=1))) is dict
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    np.testing.assert_array_equal(reduce(masked), [1.0, 2.0])
    assert type(reduce(masked)) is np.ndarray
    assert reduce(range(3)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ((i for i in range(3)), "the result is or contains a generator that has not run"),
        ({1, 2}, "the result is or contains a set; return a sorted list"),
        (len, "the result is or contains a builtin_function_or_method; call it"),
        (np.array([1, "x"], object), "dtype object, not of numbers; are its rows of equal"),
        (np.array(["a"]), "the result is an array of dtype <U1, not of numbers"),
        (np.datetime64("2020"), "datetime64"),
        (np.zeros(2, [("a", float)]), "not of numbers"),
        (np.broadcast_to(1.0, (2**20, 2**20)), "the result is larger than 32 MiB"),
        ("x" * 2**24, "larger than 32 MiB"),
        (range(10**12), "more than 100000 parts"),
        (10**2000, "more than 4096 bits"),
        (np.zeros((1,) * 33), "the result has an array of more than 32 axes"),
        ({np.float64: 1}, "is or contains a type"),
        ({(1, b"x"): np.zeros(1), "y": object()}, "is or contains an object"),
    ],
)
def test_everything_else_is_refused_in_one_sentence(value, sentence):
    with pytest.raises(UnsupportedValue) as refusal:
        reduce(value)
    assert sentence in str(refusal.value)


def test_cycles_depth_and_repeated_parts_are_bounded():
    loop = []
    loop.append(loop)
    with pytest.raises(UnsupportedValue, match="contains itself"):
        reduce(loop)
    table = {}
    table["self"] = [table]
    with pytest.raises(UnsupportedValue, match="contains itself"):
        reduce(table)
    deep = []
    for _ in range(20):
        deep = [deep]
    with pytest.raises(UnsupportedValue, match="nested more than 16 deep"):
        reduce(deep)
    wide = [0]
    for _ in range(12):
        wide = [wide] * 10  # 10**12 parts in a few lists
    with pytest.raises(UnsupportedValue, match="parts"):
        reduce(wide)


def test_the_same_array_twice_is_no_cycle():
    part = [1]
    assert reduce([part, part]) == [[1], [1]]


def test_arguments_share_nothing_with_what_they_are_made_from():
    given = {"x": np.arange(3.0), "names": ["a"], "pair": (np.ones(1), Seed(3))}
    made = materialise(given, None)
    assert unchanged(made, given)
    made["x"][0] = 5
    made["names"].append("b")
    assert given["x"][0] == 0
    assert given["names"] == ["a"]
    assert not unchanged(made, given)
    assert isinstance(made["pair"][1], np.random.Generator)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["x"].resize((1, 3), refcheck=False),
        lambda a: a["names"].__setitem__(0, "b"),
        lambda a: a.update(z=1),
        lambda a: a["names"].clear(),
        lambda a: a["deep"][0]["n"].__setitem__(0, 2.0),
    ],
)
def test_any_change_of_an_argument_is_seen(change):
    given = {"x": np.arange(3.0), "names": ["a"], "deep": [{"n": [1.0]}]}
    made = materialise(given, None)
    change(made)
    assert not unchanged(made, given)


def test_handles_are_numbered_and_their_functions_taken_out():
    one, two = Handle(len), Handle(sum)
    request, functions = number_handles({"args": [one, {"f": two}], "kwargs": {"g": (one,)}})
    assert functions == [len, sum, len]
    assert request["args"][1]["f"].function is None
    assert request["args"][1]["f"].number == 1
    made = materialise(request["args"], lambda number, args, kwargs: (number, args, kwargs))
    assert made[1]["f"]([1], key=2) == (1, ([1],), {"key": 2})
    with pytest.raises(
        UnsupportedValue, match="an argument is or contains a set; pass a sorted"
    ):
        made[0]({1})
    words = {(1, 2): 3}
    asked = made[0](words.keys(), words.values(), key=words.items())
    assert asked == (0, ([(1, 2)], [3]), {"key": [((1, 2), 3)]})
    with pytest.raises(UnsupportedValue, match="a dict_keys; pass a NumPy array, a list or"):
        made[0]([words.keys()])


def test_tensors_are_read_from_their_buffer():
    torch = pytest.importorskip("torch")

    class LyingTensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            return torch.ones(3)

    plain = reduce(torch.arange(4.0).as_subclass(LyingTensor))
    np.testing.assert_array_equal(plain, [0, 1, 2, 3])
    with pytest.raises(UnsupportedValue, match="more than 32 axes"):
        reduce(torch.zeros((1,) * 33))
    parameter = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(reduce(parameter.T), [[0, 3], [1, 4], [2, 5]])
    assert reduce(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32
    assert reduce(torch.ones((), dtype=torch.float64)).shape == ()
    assert reduce(torch.zeros(0, 3)).shape == (0, 3)
    np.testing.assert_array_equal(reduce(torch.tensor([1 + 2j]).conj()), [1 - 2j])
    with pytest.raises(UnsupportedValue, match="larger than 32 MiB"):
        reduce(torch.zeros(1).expand(2**30))
    with pytest.raises(UnsupportedValue, match="sparse"):
        reduce(torch.eye(3).to_sparse())
    with pytest.raises(UnsupportedValue, match="without values"):
        reduce(torch.zeros(2, device="meta"))


def test_a_tensor_argument_is_made_from_an_array():
    torch = pytest.importorskip("torch")
    given = AsTensor(np.arange(3, dtype=np.float32), requires_grad=True)
    made = materialise(given, None)
    assert isinstance(made, torch.Tensor)
    assert made.requires_grad
    assert made.dtype == torch.float32
    assert unchanged(made, given)
    made.detach()[0] = 9
    assert not unchanged(made, given)
    assert given.array[0] == 0


def test_reduced_values_are_plain(monkeypatch):
    value = {"a": [np.float64(1), (np.arange(2),)], 3: None}
    assert is_plain(reduce(value))
    monkeypatch.setitem(sys.modules, "torch", None)  # a machine without torch
    assert is_plain(reduce(value))
