"""LSTM: real faults, gates set by hand, and the initial forget bias."""

import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from recurrent import cell_args, make_args
from twins import run

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward


@pytest.mark.parametrize(
    ("rows", "c", "h"),
    [
        ([0, 1, 2, 3], 0.5052157830175752, 0.3256309080617766),  # i, f, g, o: ours and torch's
        ([0, 1, 3, 2], 0.5607562092750908, 0.33753654455196236),  # written as i, f, o, g
        ([0, 2, 3, 1], 0.5699039420478801, 0.3231621754568103),  # written as i, o, f, g
    ],
)
def test_order_of_the_gates(rows, c, h):
    """Case A19: the same rows read in three orders; ours is i, f, g, o."""
    weight_ih = np.array([[0.1], [0.2], [0.3], [0.4]])[rows]
    weight_hh = np.array([[0.5], [0.6], [0.7], [0.8]])[rows]
    bias = np.array([0.01, 0.02, 0.03, 0.04])[rows]
    x, state, cell = np.array([[1.0]]), np.array([[0.5]]), np.array([[0.25]])
    new = run("lstm_cell", x, state, cell, weight_ih, weight_hh, bias, None)
    assert_allclose(new, ([[h]], [[c]]), rtol=1e-9)


def gated(i, f, g, o):
    """Return the arguments of a step, D = H = 1, whose sums are the given numbers."""
    bias = np.array([i, f, g, o], float)
    zeros = np.zeros((4, 1))
    return [np.zeros((1, 1)), np.zeros((1, 1)), np.full((1, 1), 2.0), zeros, zeros, bias, None]


@pytest.mark.parametrize(
    ("sums", "c", "h"),
    [
        ((-50, 50, 1, 50), 2.0, np.tanh(2.0)),  # keeps the cell state
        ((50, -50, 0.5, 50), np.tanh(0.5), np.tanh(np.tanh(0.5))),  # replaces it
        ((50, 50, 50, -50), 3.0, 0.0),  # adds to it and shows nothing
    ],
)
def test_gates_do_what_their_names_say(sums, c, h):
    new_h, new_c = run("lstm_cell", *gated(*sums))
    assert_allclose((new_h, new_c), ([[h]], [[c]]), atol=1e-12)


def test_the_cell_state_carries_a_gradient_that_the_forget_gate_alone_scales(rng):
    """With closed input and output gates d c_T / d c_0 is the product of the forget gates."""
    T, f = 20, 0.97
    x, h0, c0, weight_ih, weight_hh, *_ = make_args("lstm", rng, 1, T, 2, 3)
    bias = np.repeat([-50, np.log(f / (1 - f)), 0, -50], 3)
    args = [x, h0, c0, 0 * weight_ih, 0 * weight_hh, bias, None]
    dy = np.zeros((1, T, 3)), np.zeros((1, 3)), np.ones((1, 3))
    _, _, dc0, *_ = snp.lstm_backward(dy, *args)
    assert_allclose(dc0, f**T, rtol=1e-9)


def test_worked_number_of_the_docstring():
    """With f = 0.9, c = 2, i = 0.5, g = -1 and o = 1."""
    h, c = run("lstm_cell", *gated(0, np.log(9), -50, 50))
    assert_allclose((h, c), ([[np.tanh(1.3)]], [[1.3]]), rtol=1e-12)
    assert_allclose(h, [[0.862]], atol=5e-4)


@pytest.mark.parametrize("gate", range(4), ids=["i", "f", "g", "o"])
def test_a_wrong_derivative_of_one_gate_is_found(gate, monkeypatch, rng):
    """Case B08: a finite-difference check says so, instead of a dozen printed numbers."""
    module = sys.modules["seqlib.np.lstm"]  # the name seqlib.np.lstm is the function
    right = module._gates_backward

    def wrong(*args):
        da, dc = right(*args)
        da[:, 8 * gate : 8 * (gate + 1)] *= 1.001
        return da, dc

    monkeypatch.setattr(module, "_gates_backward", wrong)
    args = cell_args("lstm", rng, 7, 5, 8)
    with pytest.raises(AssertionError, match=r"the gradient of argument 0 \(x\) is wrong"):
        check_backward(snp.lstm_cell, snp.lstm_cell_backward, args, rng)


def test_gate_times_cell_is_elementwise(rng):
    """Case B09: with B = 7 and H = 8 a matrix product could not have this shape."""
    h, c = run("lstm_cell", *cell_args("lstm", rng, 7, 5, 8))
    assert h.shape == c.shape == (7, 8)


def test_forget_bias_acts_on_the_forget_gates_alone():
    torch.manual_seed(0)
    plain = spt.LSTM(3, 4, 2).state_dict()
    torch.manual_seed(0)
    module = spt.LSTM(3, 4, 2, forget_bias=1.0)
    for layer in (0, 1):
        _, _, bias_ih, bias_hh = module.parameters_of(layer)
        assert torch.equal((bias_ih + bias_hh)[4:8], torch.ones(4)), (
            "both biases act, so their sum must be 1"
        )
        for name, bias in (("bias_ih", bias_ih), ("bias_hh", bias_hh)):
            others = [0, 1, 2, 3, *range(8, 16)]
            assert torch.equal(bias[others], plain[f"{name}_l{layer}"][others])
    changed = {k for k, v in module.state_dict().items() if not torch.equal(v, plain[k])}
    assert changed == {f"bias_{kind}_l{layer}" for kind in ("ih", "hh") for layer in (0, 1)}
    assert all(p.requires_grad for p in module.parameters())


def test_forget_bias_needs_biases():
    with pytest.raises(ValueError, match=r"^forget_bias must be None without biases, got 1"):
        spt.LSTM(3, 4, bias=False, forget_bias=1.0)
