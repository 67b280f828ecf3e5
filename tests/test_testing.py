"""check_backward itself: it accepts right gradients and rejects slightly wrong ones."""

import numpy as np
import pytest

from seqlib.testing import check_backward


def square(x):
    return x * x


def square_backward(dy, x):
    return 2 * dy * x


def softmax(x):
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def sum_and_product(a, b):
    return a + b, a * b


def sum_and_product_backward(dy, a, b):
    dsum, dproduct = dy
    return dsum + dproduct * b, dsum + dproduct * a


def affine(ids, params, bias, n):
    """Pick rows of a table, scale them, and add a bias if there is one; ``n`` is a size."""
    y = n * params["table"][ids] * params["scale"]
    return y if bias is None else y + bias


def affine_backward(dy, ids, params, bias, n):
    rows = params["table"][ids]
    dtable = np.zeros_like(params["table"])
    np.add.at(dtable, ids, n * dy * params["scale"])
    grads = {"table": dtable, "scale": (n * dy * rows).sum(axis=0)}
    return grads, None if bias is None else dy.sum(axis=0)


def affine_args(rng, bias):
    table, scale = rng.standard_normal((5, 3)), rng.standard_normal(3)
    return np.array([4, 0, 4, 2]), {"table": table, "scale": scale}, bias, 7


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 3)])
def test_accepts_the_right_gradient(shape, rng):
    check_backward(square, square_backward, (np.asarray(rng.standard_normal(shape)),), rng)


def test_accepts_a_tuple_of_outputs(rng):
    args = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    check_backward(sum_and_product, sum_and_product_backward, args, rng)


@pytest.mark.parametrize("bias", [None, np.arange(3.0)])
def test_accepts_integers_dicts_none_and_sizes(bias, rng):
    check_backward(affine, affine_backward, affine_args(rng, bias), rng)


def test_passes_keyword_options_to_both(rng):
    def power(x, *, n):
        return x**n

    def power_backward(dy, x, *, n):
        return dy * n * x ** (n - 1)

    check_backward(power, power_backward, (rng.standard_normal(5),), rng, kwargs={"n": 3})
    with pytest.raises(AssertionError, match=r"argument 0 \(x\) is wrong"):
        check_backward(
            power,
            lambda dy, x, *, n: power_backward(dy, x, n=n - 1),
            (rng.standard_normal(5),),
            rng,
            kwargs={"n": 3},
        )


def wrong_in_one_entry(dy, x):
    dx = 2 * dy * x
    dx[2] *= 1.001
    return dx


def nan_in_one_entry(dy, x):
    dx = 2 * dy * x
    dx[3] = np.nan
    return dx


def modifies_its_input(dy, x):
    dx = 2 * dy * x
    x += 1
    return dx


def modifies_the_cotangent(dy, x):
    dy *= 2
    return dy * x


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda dy, x: 2.002 * dy * x, r"gradient of argument 0 \(x\) is wrong"),
        (lambda dy, x: 1.998 * dy * x, r"gradient of argument 0 \(x\) is wrong"),
        (wrong_in_one_entry, r"furthest off is entry \(2,\)"),
        (lambda dy, x: np.zeros_like(x), r"gradient of argument 0 \(x\) is wrong"),
        (lambda dy, x: np.full_like(x, np.nan), "it gives nan"),
        (nan_in_one_entry, r"furthest off is entry \(3,\): nan against"),
        (lambda dy, x: (2 * dy * x).sum(), r"must have shape \(5,\), got \(\)"),
        (lambda dy, x: 2 * dy * x[:, None], r"must have shape \(5,\), got \(5, 5\)"),
        (lambda dy, x: (2 * dy * x, dy), "must return 1 gradients, got 2"),
        (modifies_its_input, "must not modify the arguments"),
        (modifies_the_cotangent, "must not modify dy"),
    ],
)
def test_rejects_a_wrong_gradient(wrong, message, rng):
    with pytest.raises(AssertionError, match=message):
        check_backward(square, wrong, (rng.standard_normal(5),), rng)


def test_rejects_a_forward_that_modifies_its_input(rng):
    def doubles_in_place(x):
        x *= 2
        return x * 1

    with pytest.raises(AssertionError, match="must not modify the arguments"):
        check_backward(doubles_in_place, lambda dy, x: 2 * dy, (rng.standard_normal(5),), rng)


@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("argument", [0, 1])
def test_rejects_an_error_of_one_permille_in_one_term(output, argument, rng):
    """Each of the four terms of the gradient is checked, not their sum alone."""

    def wrong(dy, a, b):
        # a has the factors 1 and b in the two outputs, b the factors 1 and a.
        terms = [[dy[0], dy[1] * b], [dy[0], dy[1] * a]]
        terms[argument][output] = 1.001 * terms[argument][output]
        return tuple(sum(pair) for pair in terms)

    args = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    with pytest.raises(AssertionError, match=f"argument {argument}"):
        check_backward(sum_and_product, wrong, args, rng)


def test_rejects_zeros_where_a_cotangent_of_ones_would_not(rng):
    """The entries of a softmax sum to 1, so with dy = 1 every gradient is 0."""
    with pytest.raises(AssertionError, match="is wrong"):
        check_backward(softmax, lambda dy, x: np.zeros_like(x), (rng.standard_normal(5),), rng)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g, b: ({"table": g["table"]}, b), r"dict with the keys \['table', 'scale'\]"),
        (lambda g, b: (g["table"], b), "dict with the keys .* got ndarray"),
        (
            lambda g, b: ({**g, "scale": 1.001 * g["scale"]}, b),
            r"\(params\)\['scale'\] is wrong",
        ),
        (
            lambda g, b: ({**g, "table": 1.001 * g["table"]}, b),
            r"\(params\)\['table'\] is wrong",
        ),
        (lambda g, b: (g, np.zeros(3)), r"argument 2 \(bias\) must be None"),
        (lambda g, b: (g,), "must return 2 gradients, got 1"),
    ],
)
def test_rejects_wrong_dicts_and_a_gradient_for_none(change, message, rng):
    def wrong(dy, *args):
        return change(*affine_backward(dy, *args))

    with pytest.raises(AssertionError, match=message):
        check_backward(affine, wrong, affine_args(rng, None), rng)


def test_refuses_single_precision(rng):
    x = rng.standard_normal(5).astype(np.float32)
    with pytest.raises(ValueError, match=r"^args must hold float64 arrays, got float32; "):
        check_backward(square, square_backward, (x,), rng)
