"""Embedding as a one-hot product, as a lookup, and its gradient."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.np import tokens
from seqlib.testing import check_backward

SHAPES = [(), (7,), (3, 5), (2, 3, 5), (0,), (0, 5), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_one_hot_equals_torch(shape, rng):
    ids = np.asarray(rng.integers(0, 11, shape))
    expected = F.one_hot(torch.tensor(ids), 11).float()
    for y in (snp.one_hot(ids, 11), spt.one_hot(torch.tensor(ids), 11)):
        assert_array_equal(y, expected)
        assert str(y.dtype).endswith("float32")


@pytest.mark.parametrize("V", [1, 11, 600])
@pytest.mark.parametrize("shape", SHAPES)
def test_embedding_equals_torch(shape, V, rng):
    ids, weight = np.asarray(rng.integers(0, V, shape)), rng.standard_normal((V, 3))
    tensor = torch.tensor(weight, requires_grad=True)
    expected = F.embedding(torch.tensor(ids), tensor)
    assert_array_equal(snp.embedding(ids, weight), expected.detach())
    y = spt.embedding(torch.tensor(ids), tensor)
    assert_array_equal(y.detach(), expected.detach())

    dy = rng.standard_normal((*shape, 3))
    (expected,) = torch.autograd.grad(expected, tensor, torch.tensor(dy))
    (twin,) = torch.autograd.grad(y, tensor, torch.tensor(dy))
    assert_allclose(snp.embedding_backward(dy, ids, weight), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(twin, expected, rtol=1e-9, atol=1e-9)


def test_embedding_is_the_one_hot_product(rng):
    ids, weight = rng.integers(0, 11, (3, 5)), rng.standard_normal((11, 4))
    assert_array_equal(snp.one_hot(ids, 11) @ weight, snp.embedding(ids, weight))


@pytest.mark.parametrize("V", [11, 600])
def test_backward_equals_differences(V, rng):
    args = (rng.integers(0, V, (3, 50)), rng.standard_normal((V, 2)))
    check_backward(snp.embedding, snp.embedding_backward, args, rng)


def test_repeated_tokens_add_up():
    """`dweight[ids] += dy` would keep 20 for token 1 and lose the 1."""
    dy = np.array([[1.0], [3.0], [20.0]])
    dweight = snp.embedding_backward(dy, np.array([1, 0, 1]), np.zeros((3, 1)))
    assert_array_equal(dweight, [[3.0], [21.0], [0.0]])


@given(
    st.lists(st.integers(0, 4), max_size=40),
    st.sampled_from([5, 700]),
)
def test_both_ways_to_add_rows_equal_a_loop(ids, V):
    rows = np.array(ids, dtype=int)
    dy = np.random.default_rng(len(ids)).standard_normal((len(ids), 3))
    expected = np.zeros((V, 3))
    for i, row in enumerate(rows):
        expected[row] += dy[i]
    assert_allclose(tokens._add_rows_by_product(dy, rows, V), expected, atol=1e-12)
    assert_allclose(tokens._add_rows_by_sorting(dy, rows, V), expected, atol=1e-12)


@pytest.mark.parametrize("V", [11, 600])
def test_float32_stays_float32(V, rng):
    ids, weight = rng.integers(0, V, (3, 5)), rng.standard_normal((V, 2)).astype(np.float32)
    y = snp.embedding(ids, weight)
    assert y.dtype == np.float32
    assert snp.embedding_backward(y, ids, weight).dtype == np.float32


def test_the_output_is_not_a_view(rng):
    weight = rng.standard_normal((3, 2))
    before = weight.copy()
    snp.embedding(np.array([0, 1, 2]), weight)[:] = 0
    assert_array_equal(weight, before)


@pytest.mark.parametrize("backend", [snp, spt])
@pytest.mark.parametrize("name", ["one_hot", "embedding"])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 5], "must be less than 5 everywhere, got 5; the vocabulary has 5 entries"),
        ([-1, 4], "must be at least 0 everywhere, got -1; the vocabulary has 5 entries"),
        ([0.0, 1.0], "must have an integer dtype, got float"),
    ],
)
def test_rejects_ids_outside_the_vocabulary(backend, name, ids, message):
    array = np.asarray if backend is snp else torch.tensor
    second = 5 if name == "one_hot" else array(np.ones((5, 2)))
    with pytest.raises(ValueError, match=f"^ids {message}"):
        getattr(backend, name)(array(ids), second)


@pytest.mark.parametrize("backend", [snp, spt])
def test_rejects_a_wrong_weight_or_size(backend):
    array = np.asarray if backend is snp else torch.tensor
    with pytest.raises(ValueError, match=r"^weight must have shape \(V, D\), got \(4,\)$"):
        backend.embedding(array([0]), array([1.0, 2.0, 3.0, 4.0]))
    with pytest.raises(ValueError, match=r"^V must be a positive integer, got 0$"):
        backend.one_hot(array([0]), 0)
