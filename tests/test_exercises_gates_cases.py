"""The assignment ``gates`` against the library and central differences, and on real faults."""

import numpy as np
import pytest

import seqlib.np as snp
from seqlib.exercises import get_assignment
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

TASKS = {task.function: task for task in get_assignment("gates").tasks}
BACKWARD = ("lstm_step_backward", "gru_step_backward")


def drawn(name, tag=None):
    """Return the arguments of the cases of a task."""
    cases = TASKS[name].cases(np.random.default_rng(1))
    return [case.args for case in cases if tag in (None, case.tag)]


# The references of the backward passes


def with_kept(args, rng):
    """Return arguments of the backward pass of a step: gradients, and what it has kept."""
    x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o = args
    z = np.concatenate([h_prev, x], axis=1)
    f, i, o = (snp.sigmoid(z @ W.T + b) for W, b in ((W_f, b_f), (W_i, b_i), (W_o, b_o)))
    C_tilde = np.tanh(z @ W_C.T + b_C)
    C = f * C_prev + i * C_tilde
    dh, dC = rng.standard_normal((2, *C.shape))
    return dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o


@pytest.mark.parametrize("args", drawn("lstm_step"))
def test_lstm_gradients_are_those_of_the_library(args, rng):
    dh, dC, *kept = with_kept(args, rng)
    got = TASKS["lstm_step_backward"].reference(dh, dC, *kept)
    weights = snp.lstm_from_notes(*args[3:])
    *states, dW_ih, dW_hh, db, _ = snp.lstm_cell_backward((dh, dC), *args[:3], *weights)
    right = *states, *snp.lstm_to_notes(dW_ih, dW_hh, db, None)
    for part, other in zip(got, right, strict=True):
        np.testing.assert_allclose(part, other, atol=1e-12)


@pytest.mark.parametrize("args", drawn("gru_step_backward"))
def test_gru_gradients_are_those_of_the_library(args):
    dh, x, h_prev, _, _, _, *matrices = args
    weights = snp.gru_from_notes(*matrices)
    dx, dh_prev, *packed = snp.gru_cell_backward(dh, x, h_prev, *weights)
    right = dx, dh_prev, *snp.gru_to_notes(packed[0], packed[1], None, None)
    got = TASKS["gru_step_backward"].reference(*args)
    for part, other in zip(got, right, strict=True):
        np.testing.assert_allclose(part, other, atol=1e-12)


def test_gradients_of_an_lstm_step_are_those_of_its_forward_pass(rng):
    """Central differences of task 1 along random directions, through both states."""
    args = drawn("lstm_step")[0]
    dh, dC, *kept = with_kept(args, rng)
    forward = TASKS["lstm_step"].reference
    for place, grad in enumerate(TASKS["lstm_step_backward"].reference(dh, dC, *kept)):
        v = rng.standard_normal(args[place].shape)
        losses = []
        for step in (1e-5, -1e-5):
            h_t, C_t = forward(*args[:place], args[place] + step * v, *args[place + 1 :])
            losses.append((dh * h_t).sum() + (dC * C_t).sum())
        numeric = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose((grad * v).sum(), numeric, rtol=1e-6, atol=1e-8)


# Cases


@pytest.mark.parametrize(
    ("order", "cell", "hidden"),
    [
        ("ifCo", 0.5052157830175752, 0.3256309080617766),
        ("ifoC", 0.5607562092750908, 0.33753654455196236),
        ("iofC", 0.5699039420478801, 0.3231621754568103),
    ],
)
def test_case_a19_the_same_four_rows_in_three_orders(order, cell, hidden):
    rows = {"i": (0.5, 0.1), "f": (0.6, 0.2), "C": (0.7, 0.3), "o": (0.8, 0.4)}
    biases = {"i": 0.01, "f": 0.02, "C": 0.03, "o": 0.04}
    row_of = dict(zip(order, "ifCo", strict=True))
    weights = [
        part
        for gate in "fiCo"
        for part in (np.array([rows[row_of[gate]]]), np.array([biases[row_of[gate]]]))
    ]
    x, h_prev, C_prev = np.array([[1.0]]), np.array([[0.5]]), np.array([[0.25]])
    h, C = TASKS["lstm_step"].reference(x, h_prev, C_prev, *weights)
    np.testing.assert_allclose([C.item(), h.item()], [cell, hidden], rtol=1e-9)


def notes_gru_a17():
    """Return the step of case A17 for the notes' GRU.

    An input that is always 1 stands for the biases, and the rows of z are negated since the
    case keeps the old state where z is near 1.
    """
    W_ih = np.array([[0.3], [-0.2], [0.5], [0.1], [-0.4], [0.6]])
    W_hh = np.array([[0.2, -0.1], [0.4, 0.3], [-0.3, 0.2], [0.1, 0.5], [0.7, -0.6], [0.2, 0.9]])
    b_ih = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06])
    b_hh = np.array([-0.05, 0.1, 0.0, 0.2, 0.3, -0.1])
    rows = np.hstack([W_hh, W_ih, (b_ih + b_hh)[:, None]])
    return np.array([[0.5, 1.0]]), np.array([[0.2, -0.4]]), rows[:2], -rows[2:4], rows[4:]


def test_case_a17_the_reset_gate_in_front_of_the_product():
    h = TASKS["gru_step"].reference(*notes_gru_a17())
    np.testing.assert_allclose(h, [[0.2615347293368282, -0.16216538554447274]], rtol=1e-9)


def test_case_a17_with_one_unit_and_no_bias_both_places_of_the_reset_gate_agree():
    variant = TASKS["gru_step"].variant
    for args in drawn("gru_step"):
        same = np.allclose(variant(*args), variant(*args, wrong={"reset_after"}))
        assert same == (args[1].shape[1] == 1)
    assert not np.allclose(
        variant(*notes_gru_a17()), variant(*notes_gru_a17(), wrong={"reset_after"})
    )


def test_case_b06_the_initial_states_are_not_zero():
    for args in drawn("lstm_sequence"):
        assert args[1].all()
        assert args[2].all()


def test_case_b06_a_wrong_first_step_is_said():
    from written_afresh.gates import sequence_index_minus_one

    result = judge(TASKS["lstm_sequence"], InProcess(sequence_index_minus_one), seed=1)
    assert "time step 0" in result.criteria[0].message
    assert "h_0 and C_0 are not used" in result.diagnosis.says[0]


def test_case_b08_a_wrong_gate_derivative_is_named_with_its_gradients():
    """One wrong derivative: the message says which gradients are wrong, and where."""
    from written_afresh.gates import lstm_back_new_cell_for_f

    result = judge(TASKS["lstm_step_backward"], InProcess(lstm_back_new_cell_for_f), seed=1)
    wrong = {c.says: c.message for c in result.criteria if not c.passed}
    assert {"dW_f", "db_f", "dx", "dh_prev"} <= wrong.keys()
    assert {"dC_prev", "dW_i", "dW_C", "dW_o"}.isdisjoint(wrong)
    assert "of dW_f is" in wrong["dW_f"]


def test_case_b09_a_matrix_product_of_gate_and_state_is_shown_by_its_shape():
    def lstm_step(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
        z = np.hstack([h_prev, x])
        f, i, o = (snp.sigmoid(z @ W.T + b) for W, b in ((W_f, b_f), (W_i, b_i), (W_o, b_o)))
        C = f.T @ C_prev + i.T @ np.tanh(z @ W_C.T + b_C)  # turned until it fits
        return o @ np.tanh(C), C

    result = judge(TASKS["lstm_step"], InProcess(lstm_step), seed=1)
    assert result.score == 0
    assert "C_t has shape (2, 2), not (5, 2)" in result.criteria[1].message


@pytest.mark.parametrize("name", [n for n in TASKS if n != "count_parameters"])
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    args = drawn(name)[0]
    shapes = {arg.shape for arg in args}
    assert all(len(set(shape)) == len(shape) for shape in shapes)


def test_e12_the_counts_of_the_notes_and_of_pytorch():
    import torch

    assert TASKS["count_parameters"].reference(3, 4) == (128, 84)
    layers = torch.nn.LSTM(3, 4), torch.nn.GRU(3, 4)
    counts = [sum(p.numel() for p in layer.parameters()) for layer in layers]
    assert counts == [144, 108]


# What the cases hold


@pytest.mark.parametrize("name", ["lstm_step", "gru_step"])
def test_saturated_cases_hold_every_combination_of_open_and_closed_gates(name):
    (args,) = drawn(name, "saturated")
    if name == "lstm_step":
        signs = np.sign([args[k] for k in (4, 6, 8, 10)])
        assert len(set(map(tuple, signs.T))) == 16
    else:
        H = args[1].shape[1]
        columns = np.array([W[:, H] for W in args[2:]])
        kinds = np.where(np.abs(columns) > 100, np.sign(columns), 0)
        assert len(set(map(tuple, kinds.T))) == 12
    with np.errstate(all="raise"):
        values = TASKS[name].reference(*args)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", BACKWARD)
def test_saturated_gates_are_exactly_0_and_1(name):
    (args,) = drawn(name, "saturated")
    places = (5, 6, 8) if name == "lstm_step_backward" else (3, 4)
    gates = np.array([args[k] for k in places])
    assert (gates == 1).any()
    assert (gates == 0).any()
    assert ((gates > 0.01) & (gates < 0.99)).any()
