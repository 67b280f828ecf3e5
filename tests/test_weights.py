"""Converters: the notes' matrices on [h, x] and PyTorch's state dicts."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from recurrent import assert_all_close

import seqlib.np as snp


def notes_lstm(x, h, c, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    """Run the notes' six equations on columns, one sequence at a time."""
    states = []
    for x_t in x:
        joined = np.concatenate([h, x_t])
        f, i, o = (
            1 / (1 + np.exp(-(W @ joined + b))) for W, b in ((W_f, b_f), (W_i, b_i), (W_o, b_o))
        )
        c = f * c + i * np.tanh(W_C @ joined + b_C)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), c


def notes_matrices(rng, count, H=5, D=3, *, bias):
    matrices = []
    for _ in range(count):
        matrices.append(rng.standard_normal((H, H + D)))
        if bias:
            matrices.append(rng.standard_normal(H))
    return matrices


def test_lstm_from_notes_runs_the_notes_equations(rng):
    matrices = notes_matrices(rng, 4, bias=True)
    x, h0, c0 = (rng.standard_normal(s) for s in ((2, 7, 3), (2, 5), (2, 5)))
    y, _, c_n = snp.lstm(x, h0, c0, *snp.lstm_from_notes(*matrices))
    for b in range(2):
        states, c = notes_lstm(x[b], h0[b], c0[b], *matrices)
        assert_allclose(y[b], states, rtol=1e-10)
        assert_allclose(c_n[b], c, rtol=1e-10)


def test_round_trips_through_the_notes(rng):
    matrices = notes_matrices(rng, 4, bias=True)
    assert_all_close(
        snp.lstm_to_notes(*snp.lstm_from_notes(*matrices)), matrices, rtol=0, atol=0
    )
    matrices = notes_matrices(rng, 3, bias=False)
    assert_all_close(snp.gru_to_notes(*snp.gru_from_notes(*matrices)), matrices, rtol=0, atol=0)


def test_the_two_biases_are_added_for_the_notes(rng):
    packed = [rng.standard_normal(s) for s in ((20, 3), (20, 5), (20,), (20,))]
    _, b_f, _, b_i, *_ = snp.lstm_to_notes(*packed)
    assert_allclose(b_i, (packed[2] + packed[3])[:5], rtol=1e-15)
    assert_allclose(b_f, (packed[2] + packed[3])[5:10], rtol=1e-15)
    _, b_f, *_ = snp.lstm_to_notes(*packed[:2], None, None)
    assert_array_equal(b_f, np.zeros(5))


def test_parameter_counts_as_the_notes_write_them(rng):
    """With D = 3 and H = 4: LSTM 128, GRU 84, whose equations have no biases."""
    lstm = snp.lstm_to_notes(*(rng.standard_normal(s) for s in ((16, 3), (16, 4), 16, 16)))
    gru = snp.gru_to_notes(
        rng.standard_normal((12, 3)), rng.standard_normal((12, 4)), None, None
    )
    assert sum(m.size for m in lstm) == 128
    assert sum(m.size for m in gru) == 84


MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("name", MODULES)
def test_weights_of_torch_give_the_same_layer(name, bias, rng):
    module = MODULES[name](3, 5, batch_first=True, bias=bias).double()
    weights = getattr(snp, f"{name}_from_torch")(module.state_dict())
    x = rng.standard_normal((2, 7, 3))
    expected, _ = module(torch.tensor(x))
    zeros = [np.zeros((2, 5))] * (2 if name == "lstm" else 1)
    options = {"reset_after": True} if name == "gru" else {}
    y, *_ = getattr(snp, name)(x, *zeros, *weights, **options)
    assert_all_close([y], [expected])


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("name", MODULES)
def test_round_trip_through_torch(name, bias, rng):
    state = MODULES[name](3, 5, bias=bias).state_dict()
    back = getattr(snp, f"{name}_to_torch")(*getattr(snp, f"{name}_from_torch")(state))
    assert back.keys() == state.keys()
    assert_all_close(back.values(), state.values(), rtol=0, atol=0)
    fresh = MODULES[name](3, 5, bias=bias)
    fresh.load_state_dict({key: torch.tensor(array) for key, array in back.items()})


@pytest.mark.parametrize("name", MODULES)
def test_any_layer_is_read_and_the_result_is_a_copy(name):
    module = MODULES[name](3, 5, 2)
    state = module.state_dict()
    weight_ih, *_ = getattr(snp, f"{name}_from_torch")(state, layer=1)
    assert weight_ih.shape == (len(weight_ih), 5)
    before = state["weight_ih_l1"].clone()
    weight_ih[:] = 0
    assert torch.equal(state["weight_ih_l1"], before)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (
            torch.nn.LSTM(3, 5).state_dict(),
            r"^weight_hh must have shape \(15, 5\), got \(20, 5\)",
        ),
        (
            torch.nn.GRU(3, 5, bidirectional=True).state_dict(),
            "^state must be that of a GRU in one",
        ),
        (
            {"weight": 1},
            r"^state must hold weight_ih_l0, a parameter of torch.nn.GRU, got the keys",
        ),
    ],
)
def test_other_state_dicts_are_refused(state, text):
    with pytest.raises(ValueError, match=text):
        snp.gru_from_torch(state)


def test_a_missing_layer_is_refused():
    with pytest.raises(ValueError, match=r"^state must hold weight_ih_l1, a parameter of"):
        snp.lstm_from_torch(torch.nn.LSTM(3, 5).state_dict(), layer=1)


def test_a_projected_lstm_is_refused():
    with pytest.raises(ValueError, match=r"without projection, got weight_hr_l0$"):
        snp.lstm_from_torch(torch.nn.LSTM(3, 5, proj_size=2).state_dict())


def test_wrong_matrices_are_refused(rng):
    W_r, W_z, W = notes_matrices(rng, 3, bias=False)
    with pytest.raises(ValueError, match=r"^W must have shape \(5, 8\), got \(5, 7\); all"):
        snp.gru_from_notes(W_r, W_z, W[:, :7])
    with pytest.raises(
        ValueError, match=r"^W_r must have more columns than rows, got shape \(5, 5\)"
    ):
        snp.gru_from_notes(W_r[:, :5], W_z[:, :5], W[:, :5])
    lstm = notes_matrices(rng, 4, bias=True)
    lstm[3] = lstm[3][:4]
    with pytest.raises(ValueError, match=r"^b_i must have shape \(5,\), got \(4,\)$"):
        snp.lstm_from_notes(*lstm)


def test_a_gru_with_biases_has_no_form_in_the_notes(rng):
    weight_ih, weight_hh, bias_ih, bias_hh = snp.gru_from_notes(
        *notes_matrices(rng, 3, bias=False)
    )
    bias_hh[4] = 0.25
    with pytest.raises(ValueError, match=r"^bias_hh must be zero, got 0.25 among its entries"):
        snp.gru_to_notes(weight_ih, weight_hh, bias_ih, bias_hh)
