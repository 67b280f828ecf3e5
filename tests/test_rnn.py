"""The recurrent layer: real faults and hand-worked numbers; test_recurrent.py has the rest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recurrent import as_tensors, autograd
from twins import run

import seqlib.np as snp
import seqlib.pt as spt


def scalar_rnn(x, h0, w=0.5, **options):
    """Run h_t = tanh(x_t + w h_{t-1}) on rows of numbers, in both backends."""
    x, h0 = np.array(x, float)[..., None], np.array(h0, float)[:, None]
    y, h_n = run("rnn", x, h0, np.ones((1, 1)), np.array([[w]]), None, None, **options)
    return y[..., 0], h_n[:, 0]


def test_state_is_carried_from_step_to_step():
    """Case A24: starting each step from h0 would give 0 after the first step."""
    y, h_n = scalar_rnn([[1, 0, 0]], [0])
    assert_allclose(
        y, [[0.7615941559557649, 0.36339948438905245, 0.1797262071203191]], rtol=1e-9
    )
    assert_allclose(h_n, y[:, -1], rtol=0)


def test_initial_state_is_used():
    """Case B06: reading the state before step 1 from the output array ignores h0."""
    y, _ = scalar_rnn([[0.2, -0.4]], [1.0])
    assert_allclose(y, [[0.6043677771171636, -0.09750533288515544]], rtol=1e-9)


def test_sequence_of_length_zero():
    """Case A58: the final state of an empty sequence is its initial state."""
    y, h_n = scalar_rnn([[1, -1], [0, 0]], [0.3, 0.3], lengths=np.array([2, 0]))
    assert_allclose(h_n, [-0.5307027723990235, 0.3], rtol=1e-9)
    assert_array_equal(y[1], [0, 0])


def test_final_state_is_that_of_the_last_valid_step():
    """Case A61: running over the padding would give 0.1797 for the short sequence."""
    y, h_n = scalar_rnn([[1, 1, 1], [1, 0, 0]], [0, 0], lengths=np.array([3, 1]))
    assert_allclose(h_n, [0.8938113693906988, 0.7615941559557649], rtol=1e-9)
    assert_array_equal(y[1, 1:], [0, 0])


def test_reverse_starts_at_the_last_valid_step():
    """Of the row 1, 0 (and padding) the zero comes first: tanh(0.15), then tanh(1 + ...)."""
    y, h_n = scalar_rnn([[1, 0, 9]], [0.3], lengths=np.array([2]), reverse=True)
    second = np.tanh(0.5 * 0.3)
    first = np.tanh(1 + 0.5 * second)
    assert_allclose(y, [[first, second, 0]], rtol=1e-12)
    assert_allclose(h_n, [first], rtol=1e-12)


def test_batch_of_one_and_sequence_of_one_keep_their_axes():
    """Case A63, for the recurrent layer: no axis of size 1 is squeezed away."""
    y, h_n = run(
        "rnn", np.full((1, 1, 1), 0.2), np.zeros((1, 1)), *[np.ones((1, 1))] * 2, None, None
    )
    assert y.shape == (1, 1, 1)
    assert h_n.shape == (1, 1)


# Case A21. Its rows are x W, so its matrices are the transposes of ours.
A21 = {
    "x": np.array([[[1.0], [-1.0], [0.5]]]),
    "h0": np.array([[0.1, -0.2]]),
    "weight_ih": np.array([[0.4, -0.3]]).T,
    "weight_hh": np.array([[0.2, 0.5], [-0.6, 0.1]]).T,
    "bias_ih": np.array([0.05, -0.1]),
    "bias_hh": None,
}
A21_GRADIENTS = [
    [[[0.433783565306613], [0.5453391117241718], [0.11472862334222494]]],
    [[0.23799872820797544, -0.6620406263355104]],
    np.transpose([[-0.06496436722409205, 0.09401829285603157]]),
    np.transpose(
        [[0.9661931970067, 0.19251101163255316], [-0.4093220513201909, 0.23204916007439574]]
    ),
    [3.78258977238928, 1.397282028609008],
]


def test_gradient_reaches_every_step():
    """Case A21: the gradient that comes from the next step must be added."""
    args = list(A21.values())
    y, _ = run("rnn", *args)
    expected = [
        [0.5298956075275294, -0.35399171247704597],
        [-0.03161531122474032, 0.4049440252786459],
        [0.0007105224682971558, -0.2215763621500577],
    ]
    assert_allclose(y[0], expected, atol=1e-9)
    assert_allclose(y.sum(), 0.32836676942262866, atol=1e-9)
    dy = np.ones((1, 3, 2)), np.zeros((1, 2))
    *by_hand, dbias_hh = snp.rnn_backward(dy, *args)
    assert dbias_hh is None
    tensors = as_tensors(args, grad=True)
    twin = autograd(spt.rnn(*tensors), tensors, dy)
    _, vjp = snp.rnn_with_vjp(*args)
    for grads in (by_hand, twin[:-1], vjp(dy)[:-1]):
        for grad, wanted in zip(grads, A21_GRADIENTS, strict=True):
            assert_allclose(grad, wanted, atol=1e-9)


@pytest.mark.parametrize("backward", ["rnn_backward", "rnn_truncated_backward", "rnn_with_vjp"])
def test_backward_leaves_the_upstream_gradient_alone(backward):
    """Case B11: adding the carried gradient into dy would change the caller's array."""
    dy = np.ones((1, 3, 2)), np.ones((1, 2))
    if backward == "rnn_with_vjp":
        snp.rnn_with_vjp(*A21.values())[1](dy)
    else:
        options = {"k1": 2, "k2": 2} if backward == "rnn_truncated_backward" else {}
        getattr(snp, backward)(dy, *A21.values(), **options)
    assert_array_equal(dy[0], np.ones((1, 3, 2)))
    assert_array_equal(dy[1], np.ones((1, 2)))


def test_the_same_parameters_serve_any_length(rng):
    """Equation (1): nothing in the layer depends on T."""
    weights = [rng.standard_normal(s) for s in ((7, 3), (7, 7), (7,), (7,))]
    x, h0 = rng.standard_normal((2, 30, 3)), np.zeros((2, 7))
    long, _ = run("rnn", x, h0, *weights)
    short, _ = run("rnn", x[:, :3], h0, *weights)
    assert_allclose(long[:, :3], short, rtol=1e-12)


@pytest.mark.parametrize(
    ("module", "count"), [(spt.RNN, 36), (spt.LSTM, 144), (spt.GRU, 108)], ids=lambda v: str(v)
)
def test_parameter_counts(module, count):
    """With D = 3 and H = 4 a GRU has three quarters of the parameters of an LSTM."""
    assert sum(p.numel() for p in module(3, 4).parameters()) == count
