"""GRU: the two forms, the two roles of z, and the class that refuses PyTorch's weights."""

import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from recurrent import as_tensors, assert_all_close, autograd, make_args, random_dy
from twins import run

import seqlib.np as snp
import seqlib.pt as spt

# Case A17, whose z is PyTorch's.
A17 = {
    "x": np.array([[0.5]]),
    "h": np.array([[0.2, -0.4]]),
    "weight_ih": np.array([[0.3], [-0.2], [0.5], [0.1], [-0.4], [0.6]]),
    "weight_hh": np.array(
        [[0.2, -0.1], [0.4, 0.3], [-0.3, 0.2], [0.1, 0.5], [0.7, -0.6], [0.2, 0.9]]
    ),
    "bias_ih": np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]),
    "bias_hh": np.array([-0.05, 0.1, 0.0, 0.2, 0.3, -0.1]),
}


@pytest.mark.parametrize(
    ("reset_after", "expected"),
    [
        (True, [0.2086579448456563, -0.13966664500054993]),
        (False, [0.2615347293368282, -0.16216538554447274]),
    ],
)
def test_reset_before_and_after_the_product(reset_after, expected):
    """Case A17: two layers, not two notations; the notes' form is the default."""
    args = [a.copy() for a in A17.values()]
    for parameter in args[2:]:
        parameter[2:4] *= -1  # PyTorch's z is one minus ours
    h = run("gru_cell", *args, reset_after=reset_after)
    assert_allclose(h, [expected], rtol=1e-9)
    if not reset_after:
        assert_allclose(run("gru_cell", *args), [expected], rtol=1e-9)


def test_the_two_forms_coincide_where_the_reset_gate_is_open(rng):
    """And with one state and no recurrent bias, so a test needs two states and a bias."""
    args = make_args("gru", rng, 3, 5, 2, 7)
    args[-2][:7] = 50  # r = 1 to the last digit
    assert_allclose(
        run("gru", *args)[0], run("gru", *args, reset_after=True)[0], rtol=1e-12, atol=1e-13
    )
    args[-2][:7] = 0
    gap = np.abs(run("gru", *args)[0] - run("gru", *args, reset_after=True)[0]).max()
    assert gap > 0.01
    single = make_args("gru", rng, 3, 5, 2, 1)
    single[-1][:] = 0
    assert_allclose(
        run("gru", *single)[0], run("gru", *single, reset_after=True)[0], rtol=1e-12
    )


def notes_gru(x, h, W_r, W_z, W):
    """Run the notes' four equations on columns, one sequence at a time."""
    states = []
    for x_t in x:
        joined = torch.cat([h, x_t])
        r, z = torch.sigmoid(W_r @ joined), torch.sigmoid(W_z @ joined)
        candidate = torch.tanh(W @ torch.cat([r * h, x_t]))
        h = (1 - z) * h + z * candidate
        states.append(h)
    return torch.stack(states)


@pytest.mark.parametrize("sizes", [(2, 3, 5, 7), (3, 7, 2, 5), (1, 1, 1, 1)])
def test_default_is_the_notes_form(sizes, rng):
    B, T, D, H = sizes
    matrices = [rng.standard_normal((H, H + D)) for _ in range(3)]
    x, h0 = rng.standard_normal((B, T, D)), rng.standard_normal((B, H))
    tensors = as_tensors([x, h0, *matrices], grad=True)
    expected = torch.stack(
        [notes_gru(x, h, *tensors[2:]) for x, h in zip(*tensors[:2], strict=True)]
    )
    args = [x, h0, *snp.gru_from_notes(*matrices)]
    y, h_n = run("gru", *args)
    assert_all_close([y, h_n], [expected, expected[:, -1]])

    dy = random_dy((y, h_n), rng)
    wanted = autograd((expected, expected[:, -1]), tensors, dy)
    dx, dh0, dweight_ih, dweight_hh, _, _ = snp.gru_backward(dy, *args)
    by_gate = np.split(np.concatenate([dweight_hh, dweight_ih], axis=1), 3)
    assert_all_close([dx, dh0, *by_gate], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("z", "state"), [(-50, 0.2), (50, 1.0)], ids=["keeps", "replaces"])
@pytest.mark.parametrize("reset_after", [False, True])
def test_update_gate_keeps_at_0_and_replaces_at_1(z, state, reset_after):
    bias = np.array([0.0, z, 50.0])
    args = [np.zeros((1, 1)), np.array([[0.2]]), np.zeros((3, 1)), np.zeros((3, 1)), bias, None]
    assert_allclose(run("gru_cell", *args, reset_after=reset_after), [[state]], rtol=1e-12)


def test_worked_number_of_the_docstring():
    bias = np.array([0.0, np.log(0.25 / 0.75), 50.0])  # z = 0.25, n = 1
    args = [np.zeros((1, 1)), np.array([[0.2]]), np.zeros((3, 1)), np.zeros((3, 1)), bias, None]
    assert_allclose(run("gru_cell", *args), [[0.4]], rtol=1e-12)


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside another module"])
def test_module_refuses_the_state_dict_of_torch(inside):
    state = torch.nn.GRU(3, 5).state_dict()
    module = spt.GRU(3, 5)
    prefix = ""
    if inside:
        module, prefix = torch.nn.ModuleDict({"encoder": module}), "encoder."
        state = {prefix + name: value for name, value in state.items()}
    text = (
        f"state_dict must hold the notes' parameters ({prefix}notes_weight_hh_l0), got those "
        f"of torch.nn.GRU ({prefix}weight_hh_l0), whose update gate is one minus the notes'; "
        "convert each layer with seqlib.np.gru_from_torch(state_dict, layer=0) and set "
        "reset_after=True"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        module.load_state_dict(state)


def test_module_takes_converted_weights_of_torch(rng):
    """What the message advises works, for every layer."""
    reference = torch.nn.GRU(3, 5, 2, batch_first=True).double()
    module = spt.GRU(3, 5, 2, reset_after=True).double()
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    state = {}
    for layer in (0, 1):
        arrays = snp.gru_from_torch(reference.state_dict(), layer=layer)
        for name, array in zip(names, arrays, strict=True):
            state[f"notes_{name}_l{layer}"] = torch.tensor(array)
    module.load_state_dict(state)
    x = torch.tensor(rng.standard_normal((2, 7, 3)))
    h0 = torch.tensor(rng.standard_normal((2, 2, 5)))
    assert_all_close(module(x, h0), reference(x, h0))


def test_module_saves_and_loads_its_own_state(rng):
    first, second = spt.GRU(3, 5, 2), spt.GRU(3, 5, 2)
    second.load_state_dict(first.state_dict())
    x = torch.tensor(rng.standard_normal((2, 7, 3)), dtype=torch.float32)
    assert_all_close(first(x), second(x), rtol=0, atol=0)
