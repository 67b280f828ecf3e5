"""What counts as equal, and what is said about the first difference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlib.exercises.record import Tolerance
from seqlib.judge.compare import as_array, difference, equal

T = Tolerance()


def differ(expected, got, **options):
    return difference(expected, got, T, **options)


Y = np.array([[0.5, -1.0, 2.0], [3.0, 4.0, -5.0]])


@pytest.mark.parametrize(
    "got",
    [
        Y.tolist(),
        tuple(map(tuple, Y.tolist())),
        list(Y),
        Y + 1e-10,
        (Y * (1 + 1e-5)).astype(np.float32),
        np.asfortranarray(Y),
    ],
)
def test_arrays_in_any_form_are_equal(got):
    assert differ(Y, got) is None


@pytest.mark.parametrize("got", [2, 2.0, np.array(2.0), np.array(2, np.int8), np.float32(2)])
def test_numbers_in_any_form_are_equal(got):
    got = np.asarray(got) if isinstance(got, np.generic) else got
    assert differ(2.0, got) is None
    assert differ(np.array(2.0), got) is None
    assert differ(2, got) is None


@pytest.mark.parametrize(
    ("expected", "got", "phrase"),
    [
        (Y, None, "the answer is None; is a return statement missing?"),
        (Y, "text", "the answer is a text, not an array"),
        (Y, {"y": 1}, "the answer is a dict, not an array"),
        (Y, [[1, 2], [3]], "the answer is a list of 2 that do not form an array of numbers"),
        (Y, Y > 0, "the answer has dtype bool, not numbers"),
        (Y > 0, Y, "the answer has dtype float64, not True and False"),
        (Y, Y + 0j, "the answer has complex numbers"),
        (Y, Y.T, "the answer has shape (3, 2), not (2, 3)"),
        (Y, Y[None], "the answer has shape (1, 2, 3), not (2, 3)"),
        (Y, (Y,), "the answer has shape (1, 2, 3), not (2, 3)"),
        (1.5, [1.5], "the answer has shape (1,), not ()"),
        (
            Y,
            Y.astype(np.float16),
            "the answer has dtype float16: 3 digits are too few",
        ),
        (True, 1, "the answer is 1, not True or False"),
        (1.0, True, "the answer is True, not a number"),
        (np.array([True]), [1], "the answer has dtype int64, not True and False"),
        (None, Y, "the answer must be None here, not an array"),
        ((Y, Y), Y[0, 0].item(), "the answer is a number, not 2 parts"),
        ((Y, Y), (Y,), "the answer has 1 part, not 2"),
        ((Y, Y), (Y, -Y), "entry [0, 0] of part 1 of the answer is -0.5, which is wrong"),
        ((Y, None), (Y, Y), "part 1 of the answer must be None here"),
        ({"w": Y}, [Y], "the answer is a list of 1, not a dict"),
        ({"w": Y}, {}, "the answer lacks the key 'w'"),
        ({"w": Y}, {"w": Y, "b": Y}, "the answer has the key 'b', which does not belong there"),
        ({}, {"k" * 10**6: 1}, f"the answer has the key '{'k' * 36}..., which does not belong"),
        ({(1, 2): 3}, {}, "the answer lacks 1 of 1 keys"),
        ({"w": Y}, {"w": 2 * Y}, "of part 'w' of the answer is 1, which is wrong"),
        ("abc", b"abc", "the answer is a bytes object, not a text"),
        ("abcdef", "abXdef", "the answer is wrong from position 2 on, where it reads 'Xdef'"),
        ("abc", "ab", "the answer begins right and ends too early, with length 2"),
        ("abc", "abcd", "the answer begins right and ends too late, with length 4"),
        (["a", "b"], ["a", "c"], "part 1 of the answer is wrong from position 0 on"),
        (2**80, 2**80 + 1, "the answer is wrong"),
        (7, 8, "the answer is 8, which is wrong"),
        ([1, 2, 3], [1, 2], "the answer has shape (2,), not (3,)"),
    ],
)
def test_the_first_difference_is_named(expected, got, phrase):
    assert phrase in differ(expected, got)
    assert not equal(expected, got, T)


def test_differences_are_named_in_one_order():
    """Type before shape before dtype before non-finite entries before values."""
    single = Y.astype(np.float32)
    broken = np.full((2, 3), np.nan)
    assert "complex" in differ(Y, np.zeros(3, complex), dtype=True)
    assert "shape" in differ(Y, np.zeros(3, np.float32), dtype=True)
    assert "dtype" in differ(Y, single * 2, dtype=True)
    assert differ(Y, single) is None
    broken[0, 0] = 9
    assert differ(Y, broken) == "entry [0, 1] of the answer is nan, not finite (5 of 6 entries)"


@pytest.mark.parametrize(
    "got",
    [[0.5, 0.25], [0.123456, np.inf], [[1.0, 2.0]], "text", None, {"y": 1}, [True, False]],
)
def test_no_right_value_is_shown(got):
    """Two references that are wrong in the same places give the same phrase."""
    one = differ(np.array([0.123456, 0.234567]), got)
    other = differ(np.array([0.123456, 0.987654]), got)
    assert one == other
    assert "0.23" not in one


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_is_never_equal_to_a_non_finite_one(bad):
    assert differ(np.array([1.0, 2.0]), np.array([1.0, bad])) is not None
    assert differ(np.array([1e300, 2.0]), np.array([bad, 2.0])) is not None
    # A huge neighbour must not make the tolerance infinite.
    assert differ(np.array([np.inf, 2.0]), np.array([np.inf, bad])) is not None
    assert differ(np.array([-np.inf, 2.0]), np.array([-np.inf, 5.0])) is not None


def test_infinities_that_are_asked_for_are_equal_to_themselves_alone():
    mask = np.array([0.0, -np.inf])
    assert differ(mask, mask.copy()) is None
    assert differ(mask, np.array([0.0, np.inf])) is not None
    assert differ(mask, np.array([0.0, -1e300])) is not None
    assert differ(mask, np.array([0.0, np.nan])) is not None


def test_the_tolerance_follows_the_coarser_dtype():
    near, far = Y * (1 + 1e-5), Y * (1 + 1e-2)
    assert differ(Y, near) is not None
    assert differ(Y, near.astype(np.float32)) is None
    assert differ(Y.astype(np.float32), near) is None
    assert differ(Y, far.astype(np.float32)) is not None
    half = Y.astype(np.float16)
    assert differ(half, half) is None
    assert differ(half, (Y * 1.1).astype(np.float16)) is not None


def test_integers_are_compared_exactly():
    assert differ(np.array([10**9]), np.array([10**9 + 1])) is not None
    assert differ(np.array([10**9]), np.array([1e9])) is None
    assert differ([1, 2], [1.0, 2.0 + 1e-9]) is not None


def test_rounding_of_the_largest_entry_is_allowed_in_the_smallest():
    expected = np.array([1e12, 1e-3])
    assert differ(expected, expected + np.array([0, 1e-4])) is None
    assert differ(expected, expected + np.array([0, 1.0])) is not None


def test_axes_are_named_and_time_comes_first():
    axes = ("batch row", "time step", "feature")
    got = np.zeros((2, 3, 2))
    expected = got.copy()
    expected[1, 0, 1] = expected[0, 2, 0] = 1
    assert differ(expected, got, axes=axes) == (
        "entry [1, 0, 1] (batch row 1, time step 0, feature 1) of the answer is 0, "
        "which is wrong (2 of 12 entries)"
    )
    assert "[0, 2, 0] of" in differ(expected, got)
    assert "(batch row 0, time step 0, feature 1)" in differ(
        np.ones((4, 1, 1, 2)), np.array([[1.0, 0.0]] * 4).reshape(4, 1, 1, 2), axes=axes
    )
    assert "(feature 1)" in differ(np.ones(2), np.array([1.0, 0.0]), axes=axes)


def test_parts_may_have_axes_of_their_own():
    axes = {"H": ("row", "time step"), "h_n": ("row",)}
    right, wrong = np.zeros((2, 3)), np.ones((2, 3))
    options = {"axes": axes, "names": ("H", "h_n")}
    assert "(row 0, time step 0) of H" in differ(
        (right, right[0]), (wrong, right[0]), **options
    )
    assert "[0] (row 0) of h_n" in differ((right, right[0]), (right, wrong[0]), **options)
    assert "[0] of other" in differ(right[0], wrong[0], axes=axes, what="other")


def test_parts_have_the_names_of_the_task():
    assert "entry [0, 0] of A is" in differ((Y, Y), (Y, -Y), names=("Y", "A"))
    assert "of the table is" in differ({"t": Y}, {"t": -Y}, names={"t": "the table"})


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(allow_nan=False),
            st.text(max_size=5),
            st.binary(max_size=5),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.text(max_size=2), inner, max_size=3),
        ),
        max_leaves=8,
    ),
    st.data(),
)
def test_every_plain_value_equals_itself_and_any_other_is_answered(value, data):
    assert differ(value, value) is None
    other = data.draw(st.sampled_from([None, True, 3, 2.5, "t", b"b", [], (1,), {}, Y]))
    for pair in ((value, other), (other, value)):
        phrase = differ(*pair)
        assert phrase is None or (isinstance(phrase, str) and "\n" not in phrase)
        assert equal(*pair, T) == (phrase is None)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6),
    st.integers(0, 5),
    st.floats(1e-3, 1e3),
)
def test_a_clear_change_of_one_entry_is_found(values, i, change):
    expected = np.array(values)
    got = expected.copy()
    got[i % len(values)] += change + abs(got[i % len(values)])
    assert differ(expected, got) is not None


def test_what_counts_as_an_array():
    assert as_array([[1, 2], [3, 4]]).shape == (2, 2)
    assert as_array([]).shape == (0,)
    assert as_array([[], []]).shape == (2, 0)
    assert as_array([1, "a"]) is None
    assert as_array([2**70]) is None
    assert as_array([np.ones(2), np.zeros(2)]).shape == (2, 2)


STRANGE = [
    *(None, True, 0, 1.5, 1j, 2**60, 2**63, -(2**63), 2**70, 2**2000, float("nan")),
    *("x", b"b", [], (), {}, {1: 2}, {(1, 2): [3]}, [2**70, 1], [2**2000, 1.5], [[1], [2, 3]]),
    *(
        [[]],
        np.zeros((3, 0)),
        np.zeros((2**31, 0)),
        np.array(1j),
        np.zeros(3, bool),
        np.ones(3),
    ),
    *(
        np.array([2**64 - 1], np.uint64),
        np.full(3, np.inf),
        np.array(1, np.float16),
        {"a": [np.ones(2)]},
    ),
]


@pytest.mark.parametrize("expected", STRANGE, ids=lambda value: repr(value)[:20])
def test_any_two_answers_can_be_compared(expected):
    """What a student's function said first stands for the right answer later."""
    for got in STRANGE:
        found = difference(expected, got, Tolerance())
        assert found is None or isinstance(found, str)
        assert equal(expected, got, Tolerance()) == (found is None)
