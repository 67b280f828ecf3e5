"""Position vectors, rotary embedding and linear biases."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward

BACKENDS = [snp, spt]


def array(backend, values):
    return np.asarray(values) if backend is snp else torch.tensor(values)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sinusoidal_positions_of_width_4(backend):
    """Both columns of a pair share their frequency (SamLynnEvans/Transformer#25)."""
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.8414709848078965, 0.5403023058681398, 0.009999833334166664, 0.9999500004166653],
        [0.9092974268256817, -0.4161468365471424, 0.01999866669333308, 0.9998000066665778],
    ]
    assert_allclose(backend.sinusoidal_positions(3, 4), expected, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("D", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_sinusoidal_positions_entry_by_entry(backend, D, base):
    y = backend.sinusoidal_positions(7, D, base=base, offset=3)
    assert tuple(y.shape) == (7, D)
    expected = [
        [
            (math.sin if i % 2 == 0 else math.cos)(t / base ** ((i - i % 2) / D))
            for i in range(D)
        ]
        for t in range(3, 10)
    ]
    assert_allclose(y, expected, atol=1e-12)


def test_a_shift_of_sinusoidal_positions_is_a_rotation():
    """p(t + 3) is one fixed linear map of p(t): the property that the paper wanted."""
    p = snp.sinusoidal_positions(50, 6)
    shift = np.linalg.lstsq(p[:-3], p[3:], rcond=None)[0]
    assert_allclose(p[:-3] @ shift, p[3:], atol=1e-9)
    assert_allclose(shift @ shift.T, np.eye(6), atol=1e-6)


def rotate_half_split(x, position, base):
    """Rotate entry by entry with complex numbers, pairs (k, k + K/2)."""
    half = len(x) // 2
    turned = [
        complex(x[k], x[k + half]) * np.exp(1j * position * base ** (-2 * k / len(x)))
        for k in range(half)
    ]
    return [z.real for z in turned] + [z.imag for z in turned]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rotary_of_one_vector(backend):
    """Half-split pairs, not neighbours (huggingface/transformers#25199)."""
    x = array(backend, [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    expected = [-1.9841106485555495, 1.959900667496664, 2.4623779024123156, 4.019799668334994]
    assert_allclose(backend.rotary(x)[0], [1, 2, 3, 4], atol=1e-6)
    assert_allclose(backend.rotary(x)[1], expected, atol=1e-6)
    x64 = array(backend, np.array([[1.0, 2.0, 3.0, 4.0]]))
    y = backend.rotary(x64, offset=1)
    assert_allclose(y[0], expected, atol=1e-12)
    assert_allclose(np.linalg.norm(y), 5.477225575051661, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("offset", [0, 5, -2, [4, -1]])
def test_rotary_entry_by_entry(backend, offset, rng):
    x = rng.standard_normal((2, 3, 5, 6))
    per_row = offset if isinstance(offset, list) else [offset] * 2
    given_offset = array(backend, offset) if isinstance(offset, list) else offset
    y = backend.rotary(array(backend, x), offset=given_offset, base=50.0)
    expected = [
        [
            [rotate_half_split(x[b, n, t], per_row[b] + t, 50.0) for t in range(5)]
            for n in (0, 1, 2)
        ]
        for b in (0, 1)
    ]
    assert_allclose(y, expected, atol=1e-12)


@given(shift=st.integers(-50, 50), distance=st.integers(0, 30))
def test_rotary_scores_depend_on_the_distance_only(shift, distance):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 8))

    def score(query_position, key_position):
        q_rotated = snp.rotary(q, offset=query_position)
        return float((q_rotated @ snp.rotary(k, offset=key_position).T)[0, 0])

    assert_allclose(score(shift + distance, shift), score(distance, 0), atol=1e-9)


@pytest.mark.parametrize("offset", [0, 7, np.array([0, 3])])
def test_rotary_backward(offset, rng):
    x, dy = rng.standard_normal((2, 2, 3, 5, 4))
    kwargs = {"offset": offset, "base": 30.0}
    check_backward(snp.rotary, snp.rotary_backward, (x,), rng, kwargs=kwargs)
    tensor = torch.tensor(x, requires_grad=True)
    y = spt.rotary(tensor, offset=torch.as_tensor(offset), base=30.0)
    (expected,) = torch.autograd.grad(y, tensor, torch.tensor(dy))
    assert_allclose(snp.rotary_backward(dy, x, **kwargs), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rotary_keeps_the_dtype(dtype, rng):
    x = rng.standard_normal((2, 5, 4)).astype(dtype)
    offset = np.array([3, 1])
    assert snp.rotary(x, offset=offset).dtype == dtype
    assert snp.rotary_backward(x, x, offset=offset).dtype == dtype
    y = spt.rotary(torch.tensor(x), offset=torch.tensor(offset))
    assert y.dtype == torch.tensor(x).dtype


@pytest.mark.parametrize("backend", BACKENDS)
def test_alibi_bias_of_two_heads(backend):
    """Slopes 1/16 and 1/256; two queries at the end of three keys."""
    expected = np.array([[1, 0, 1], [2, 1, 0]]) * -np.array([1 / 16, 1 / 256])[:, None, None]
    assert_allclose(backend.alibi_bias(2, 2, 3), expected, atol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("N", "exponents"),
    [
        (1, [8]),
        (4, [2, 4, 6, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (6, [2, 4, 6, 8, 1, 3]),  # 4 heads first, then every second of 8
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_alibi_slopes(backend, N, exponents):
    assert_allclose(backend.alibi_bias(N, 1, 2)[:, 0, 0], -(2.0 ** -np.array(exponents)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.sinusoidal_positions(0, 4), "T must be a positive integer, got 0"),
        (lambda b: b.sinusoidal_positions(3, 0), "D must be a positive integer, got 0"),
        (lambda b: b.sinusoidal_positions(3, 4, base=0), "base must be positive, got 0"),
        (lambda b: b.alibi_bias(0, 3, 3), "N must be a positive integer, got 0"),
        (
            lambda b: b.rotary(array(b, np.ones((2, 3)))),
            "x must have an even number of features to form pairs, got 3",
        ),
        (
            lambda b: b.rotary(array(b, np.ones((2, 4))), base=-1),
            "base must be positive, got -1",
        ),
        (
            lambda b: b.rotary(array(b, np.ones((2, 3, 4))), offset=array(b, [1, 2, 3])),
            r"offset must have shape \(2,\), got \(3,\); give one position per sequence",
        ),
        (
            lambda b: b.rotary(array(b, np.ones(4))),
            r"x must have shape \(..., T, K\), got \(4,\)",
        ),
    ],
)
def test_rejects_bad_input(backend, call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call(backend)


def test_learned_positions_are_added():
    torch.manual_seed(0)
    module = spt.LearnedPositions(6, 4)
    x = torch.randn(2, 3, 4)
    assert_array_equal((module(x) - x).detach(), (x + module.weight[:3] - x).detach())
    assert_allclose(
        (module(x, offset=3) - x).detach()[1], module.weight[3:].detach(), atol=1e-6
    )
    assert set(module.state_dict()) == {"weight"}
    assert 0 < module.weight.abs().max() < 0.2


def test_learned_positions_end():
    module = spt.LearnedPositions(6, 4)
    with pytest.raises(
        ValueError,
        match=r"^x must fit in the 6 learned positions, got positions 4 to 6; cut the sequence",
    ):
        module(torch.ones(2, 3, 4), offset=4)
    with pytest.raises(ValueError, match="got positions -1 to 1"):
        module(torch.ones(2, 3, 4), offset=-1)
    with pytest.raises(
        ValueError, match=r"^x must have shape \(\.\.\., T, 4\), got \(2, 3, 5\)$"
    ):
        module(torch.ones(2, 3, 5))
