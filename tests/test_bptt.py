"""Truncated backpropagation through time: k1 steps between passes, k2 steps back."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from recurrent import as_tensors, assert_all_close, make_args, random_dy

import seqlib.np as snp
import seqlib.pt as spt


def by_definition(dy, args, k1, k2):
    """Sum, over the blocks, autograd's gradient of the block's outputs on a cut graph.

    For each block the layer is run again from the true state k2 steps before the block's
    end, which is detached unless it is h0.
    """
    x, h0, *parameters = args
    T = x.shape[1]
    y, _ = snp.rnn(*args)
    total = [np.zeros_like(a) for a in args]
    for start in range(0, T, k1):
        stop = min(start + k1, T)
        first = max(0, stop - k2)
        entry = h0 if first == 0 else y[:, first - 1]
        leaves = as_tensors([x[:, first:stop], entry, *parameters], grad=True)
        part, last = spt.rnn(*leaves)
        loss = (part[:, start - first :] * torch.tensor(dy[0][:, start:stop])).sum()
        if stop == T:
            loss = loss + (last * torch.tensor(dy[1])).sum()
        grads = torch.autograd.grad(loss, leaves)
        total[0][:, first:stop] += grads[0].numpy()
        if first == 0:
            total[1] += grads[1].numpy()
        for i, grad in enumerate(grads[2:], start=2):
            total[i] += grad.numpy()
    return total


@pytest.mark.parametrize("k2", [1, 2, 3, 5, 7, 9])
@pytest.mark.parametrize("k1", [1, 2, 3, 4, 7, 9])
def test_equals_autograd_on_cut_graphs(k1, k2, rng):
    """T = 7 is divisible by 1 and 7 alone."""
    args = make_args("rnn", rng, 2, 7, 3, 5)
    dy = random_dy(snp.rnn(*args), rng)
    if k2 < k1:
        with pytest.raises(ValueError, match=f"^k2 must be at least k1 = {k1}, got {k2}; "):
            snp.rnn_truncated_backward(dy, *args, k1=k1, k2=k2)
        return
    grads = snp.rnn_truncated_backward(dy, *args, k1=k1, k2=k2)
    assert_all_close(grads, by_definition(dy, args, k1, k2), rtol=1e-9, atol=1e-12)


@given(T=st.integers(0, 7), k1=st.integers(1, 9), more=st.integers(0, 3))
def test_k2_of_T_or_more_is_the_full_gradient(T, k1, more):
    rng = np.random.default_rng(T)
    args = make_args("rnn", rng, 2, T, 3, 5)
    dy = random_dy(snp.rnn(*args), rng)
    grads = snp.rnn_truncated_backward(dy, *args, k1=k1, k2=max(T, k1) + more)
    assert_all_close(grads, snp.rnn_backward(dy, *args), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_biases_may_be_missing(bias, rng):
    args = make_args("rnn", rng, 2, 5, 3, 7, bias=bias)
    *_, dbias_ih, dbias_hh = snp.rnn_truncated_backward(
        random_dy(snp.rnn(*args), rng), *args, k1=2, k2=3
    )
    assert (dbias_ih is None) == (dbias_hh is None) == (not bias)


def test_the_state_is_carried_and_only_the_gradient_is_cut():
    """Case A23: h_t = tanh(x_t + 0.5 h_{t-1}), cut after step 2."""
    x = np.array([1.0, 0.5, -0.5, 1.0]).reshape(1, 4, 1)
    args = [x, np.zeros((1, 1)), np.ones((1, 1)), np.array([[0.5]]), None, None]
    y, _ = snp.rnn(*args)
    states = [0.7615941559557649, 0.7068184091418055, -0.145549720033691, 0.7292975412419628]
    assert_allclose(y[0, :, 0], states, rtol=1e-9)
    assert_allclose(y.sum(), 2.052160386305842, rtol=1e-9)
    dy = np.ones_like(y), np.zeros((1, 1))
    full = snp.rnn_backward(dy, *args)
    cut = snp.rnn_truncated_backward(dy, *args, k1=2, k2=2)
    assert_allclose(full[3], [[1.3969253260712022]], rtol=1e-9)
    assert_allclose(cut[3], [[1.1667517130139766]], rtol=1e-9)


def test_reach_of_each_output():
    """The docstring's example: T = 5, k1 = k2 = 2."""
    rng = np.random.default_rng(1)
    args = make_args("rnn", rng, 1, 5, 2, 3)
    reached = np.zeros((5, 5), bool)
    for t in range(5):
        dy = np.zeros((1, 5, 3)), np.zeros((1, 3))
        dy[0][:, t] = 1
        dx, *_ = snp.rnn_truncated_backward(dy, *args, k1=2, k2=2)
        reached[t] = np.abs(dx[0]).max(axis=1) > 0
    assert_array_equal(
        reached.astype(int),
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]],
    )


def test_float32_stays(rng):
    args = [a.astype(np.float32) for a in make_args("rnn", rng, 2, 5, 3, 7)]
    dy = tuple(d.astype(np.float32) for d in random_dy(snp.rnn(*args), rng))
    grads = snp.rnn_truncated_backward(dy, *args, k1=2, k2=3)
    assert {g.dtype for g in grads} == {np.dtype(np.float32)}


@pytest.mark.parametrize(("k1", "k2", "name"), [(0, 3, "k1"), (-1, 3, "k1"), (1, 0, "k2")])
def test_lengths_of_blocks_must_be_positive(k1, k2, name, rng):
    args = make_args("rnn", rng, 2, 5, 3, 7)
    dy = random_dy(snp.rnn(*args), rng)
    value = k1 if name == "k1" else k2
    with pytest.raises(ValueError, match=f"^{name} must be a positive integer, got {value}"):
        snp.rnn_truncated_backward(dy, *args, k1=k1, k2=k2)
