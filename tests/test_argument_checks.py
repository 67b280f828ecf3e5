"""The checks of arguments, one by one: what they accept, and the text of what they refuse."""

import re

import numpy as np
import pytest
import torch

from seqlib._check import check_choice, check_divisible, check_integers, check_shape

ACCEPTED = [
    ((3, 5), (3, 5)),
    ((), ()),
    ((3, 5), ("T", 5)),
    ((3, 3), ("T", "T")),
    ((3, 5), ("...", 5)),
    ((5,), ("...", 5)),
    ((2, 3, 3), ("...", "T", "T")),
    ((0, 5), ("B", 5)),
]
REFUSED = [
    ((3, 5), (5, 3), "(5, 3)"),
    ((5,), (5, 1), "(5, 1)"),
    ((3, 5), (5,), "(5,)"),
    ((3, 5), ("T", "T"), "(T, T)"),
    ((2, 3, 5), ("...", "T", "T"), "(..., T, T)"),
    ((5,), ("...", "T", 5), "(..., T, 5)"),
    ((), ("...", "D"), "(..., D)"),
    ((2, 3, 5), ("T", 5), "(T, 5)"),
]


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
@pytest.mark.parametrize(("shape", "expected"), ACCEPTED)
def test_shapes_that_fit(make, shape, expected):
    check_shape("x", make(shape), expected)
    with pytest.raises(ValueError, match=r"^x must have shape"):
        check_shape("x", make((*shape, 99)), expected)


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
@pytest.mark.parametrize(("shape", "expected", "shown"), REFUSED)
def test_shapes_that_do_not_fit(make, shape, expected, shown):
    text = re.escape(f"x must have shape {shown}, got {shape}")
    with pytest.raises(ValueError, match=f"^{text}$"):
        check_shape("x", make(shape), expected)
    with pytest.raises(ValueError, match=f"^{text}; transpose it$"):
        check_shape("x", make(shape), expected, fix="transpose it")


@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, None])
def test_what_is_no_array(value):
    text = f"^x must be an array or a tensor, got a {type(value).__name__}$"
    with pytest.raises(ValueError, match=text):
        check_shape("x", value, ("D",))


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_integers_within_bounds(make):
    check_integers("ids", make([0, 4]), low=0, high=5)
    check_integers("ids", make([-7, 99]))
    with pytest.raises(ValueError, match=r"^ids must be less than 5 everywhere, got 5; fix$"):
        check_integers("ids", make([[0, 5], [6, 1]]), low=0, high=5, fix="fix")
    with pytest.raises(ValueError, match=r"^ids must be at least 1 everywhere, got 0$"):
        check_integers("ids", make([1, 0]), low=1)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.zeros(2), "float64"),
        (torch.zeros(2), "float32"),
        (np.ones(2, dtype=bool), "bool"),
        (torch.ones(2, dtype=torch.bool), "bool"),
    ],
)
def test_what_is_no_integer(array, dtype):
    with pytest.raises(ValueError, match=f"^ids must have an integer dtype, got {dtype}$"):
        check_integers("ids", array, low=0)


def test_divisors():
    check_divisible("dim", 6, "n_head", 3)
    check_divisible("dim", np.int64(6), "n_head", np.int64(3))
    with pytest.raises(
        ValueError, match=r"^n_head must divide dim = 6, got 4; use one of \[1, 2, 3, 6\]$"
    ):
        check_divisible("dim", 6, "n_head", 4)
    with pytest.raises(ValueError, match=r"^n_head must divide dim = 6, got 4; use 3$"):
        check_divisible("dim", 6, "n_head", 4, fix="use 3")
    with pytest.raises(ValueError, match=r"^n_head must be a positive integer, got -3$"):
        check_divisible("dim", 6, "n_head", -3)


def test_choices():
    check_choice("side", "left", ("right", "left"))
    with pytest.raises(
        ValueError, match=r"^side must be 'right' or 'left', got 'top'; flip it$"
    ):
        check_choice("side", "top", ("right", "left"), fix="flip it")
