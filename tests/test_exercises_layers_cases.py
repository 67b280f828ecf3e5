"""The assignment ``layers`` on inputs on which real code went wrong, with their values."""

import numpy as np
import pytest
import torch

from seqlib.exercises import get_assignment
from seqlib.judge.diagnose import function_of

TASKS = {task.function: task for task in get_assignment("layers").tasks}


def wrong(name, *mistakes):
    return function_of(TASKS[name], *mistakes)


ROW = np.array([[3.0, 1.0, 1.0, 1.0]])
ONE, ZERO = np.ones(4), np.zeros(4)


def test_case_a13_the_deviation_of_a_row_of_four():
    Y, X_hat = TASKS["layer_norm"].reference(ROW, ONE, ZERO, 1e-5)
    expected = [[1.7320392606789625, *[-0.5773464202263208] * 3]]
    np.testing.assert_allclose(Y, expected, atol=1e-7)
    np.testing.assert_allclose(X_hat, expected, atol=1e-7)


def test_case_a13_the_deviation_with_d_minus_1_and_eps_outside():
    Y, _ = wrong("layer_norm", "unbiased", "eps_outside")(ROW, ONE, ZERO, 1e-5)
    expected = [[1.4999850001499984, *[-0.49999500004999947] * 3]]
    np.testing.assert_allclose(Y, expected, atol=1e-12)


@pytest.mark.parametrize(("d", "factor"), [(4, 1.1547005383792515), (512, 1.000977995343767)])
def test_errata_e26_the_divisor_d_minus_1_hides_in_wide_rows(d, factor, rng):
    args = rng.standard_normal((3, d)), np.ones(d), np.zeros(d), 1e-12
    right = TASKS["layer_norm"].reference(*args)[0]
    np.testing.assert_allclose(right, factor * wrong("layer_norm", "unbiased")(*args)[0])


@pytest.mark.parametrize("value", [7.0, 0.0])
def test_errata_e26_a_constant_row_has_no_value_without_eps(value):
    args = np.full((1, 4), value), ONE, ZERO, 1e-5
    np.testing.assert_array_equal(TASKS["layer_norm"].reference(*args)[0], [[0, 0, 0, 0]])
    with np.errstate(invalid="ignore"):
        assert np.isnan(wrong("layer_norm", "no_eps")(*args)[0]).all()


def test_case_a60_a_constant_row_forward_and_backward():
    gamma, beta = np.full(4, 2.0), np.full(4, 0.5)
    Y, X_hat = TASKS["layer_norm"].reference(np.full((1, 4), 7.0), gamma, beta, 1e-5)
    np.testing.assert_array_equal(Y, [[0.5, 0.5, 0.5, 0.5]])
    s, dY = np.array([[np.sqrt(1e-5)]]), np.array([[1.0, 0.0, 0.0, 0.0]])
    dX, _, _ = TASKS["layer_norm_backward"].reference(dY, X_hat, s, gamma)
    np.testing.assert_allclose(dX, [[474.34164902525686, *[-158.11388300841895] * 3]])


@pytest.mark.parametrize(
    ("row", "expected", "mistaken"),
    [
        ([300, -300, 300, 300], [1, -1, 1, 1], [0, 0, 0, 0]),  # case A15
        ([1000, -1000], [1, -1], [0, 0]),  # case B22
    ],
)
def test_cases_a15_b22_squares_beyond_the_range_of_float16(row, expected, mistaken):
    args = np.array([row], np.float16), np.ones(len(row), np.float16), 1e-6
    Y, _ = TASKS["rms_norm"].reference(*args)
    assert Y.dtype == np.float16
    np.testing.assert_allclose(Y[0], expected, atol=1e-3)
    with np.errstate(over="ignore"):
        Y, _ = wrong("rms_norm", "half_statistics")(*args)
    np.testing.assert_array_equal(Y[0], mistaken)
    assert wrong("rms_norm", "half_result")(*args)[0].dtype == np.float32


def test_case_b22_the_half_precision_input_has_large_small_and_mixed_rows():
    (case,) = [c for c in TASKS["rms_norm"].cases(np.random.default_rng(1)) if c.tag == "half"]
    large, small, mixed = np.abs(case.args[0].astype(float))
    assert large.min() > 256 > np.sqrt(65504)  # each square alone is infinite
    assert small.max() < 0.05
    assert mixed.max() > 256
    assert mixed.min() < 2


def test_errata_e27_the_machine_epsilon_in_place_of_eps():
    X = np.full((1, 4), 1e-4)
    right = TASKS["rms_norm"].reference(X, ONE, 1e-5)[0]
    mistaken = wrong("rms_norm", "machine_eps")(X, ONE, 1e-5)[0]
    single = wrong("rms_norm", "machine_eps")(X.astype(np.float32), ONE, 1e-5)[0]
    np.testing.assert_allclose([right[0, 0], mistaken[0, 0]], [0.032, 1.0], atol=5e-4)
    np.testing.assert_allclose(single[0, 0], 0.278, atol=5e-4)


def test_gamma_before_the_division_is_no_mistake():
    """What is one: gamma before the statistics (content of the gallery of wrong answers)."""
    X, gamma = np.array([[3.0, 1.0, 1.0, 1.0]]), np.array([1.0, 2.0, 3.0, 4.0])
    centred = X - X.mean()
    before = gamma * centred / np.sqrt((centred**2).mean() + 1e-5)
    np.testing.assert_allclose(TASKS["layer_norm"].reference(X, gamma, ZERO, 1e-5)[0], before)
    mistaken = wrong("layer_norm", "gamma_before_statistics")(X, gamma, ZERO, 1e-5)[0]
    assert np.abs(mistaken - before).max() > 0.1


def torch_layer(norm_first, d):
    layer = torch.nn.TransformerEncoderLayer(
        d, 1, 2 * d, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    for norm in (layer.norm1, layer.norm2):
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    return layer.eval()


def test_the_reference_of_the_post_norm_layer_is_torchs(rng):
    torch.manual_seed(0)
    layer = torch_layer(norm_first=False, d=6)
    X = rng.standard_normal((2, 5, 6))
    with torch.no_grad():

        def attention(x):
            x = torch.from_numpy(x)
            return layer.self_attn(x, x, x)[0].numpy()

        def mlp(x):
            return layer.linear2(torch.relu(layer.linear1(torch.from_numpy(x)))).numpy()

        pairs = [
            p.numpy() for norm in (layer.norm1, layer.norm2) for p in (norm.weight, norm.bias)
        ]
        Y, _ = TASKS["post_norm_layer"].reference(X, attention, mlp, *pairs, 1e-5)
        np.testing.assert_allclose(Y, layer(torch.from_numpy(X)).numpy(), atol=1e-10)


def test_case_pytorch_61165_the_residual_kept_after_the_norm(rng):
    """With parts that return 0 a pre-norm layer changes nothing; the mistake normalises."""
    X, gain = rng.standard_normal((3, 4)), np.array([1.0, 2.0, 3.0, 4.0])
    args = X, [(np.zeros_like, np.zeros_like, gain, gain)], ONE, 1e-6
    _, (right,) = TASKS["pre_norm_stack"].reference(*args)
    _, (mistaken,) = wrong("pre_norm_stack", "residual_after_norm")(*args)
    np.testing.assert_array_equal(right, X)
    assert np.abs(mistaken - X).max() > 0.5


@pytest.mark.parametrize("name", TASKS)
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    args = TASKS[name].cases(np.random.default_rng(1))[0].args
    shapes = [arg.shape for arg in args if isinstance(arg, np.ndarray)]
    assert all(len(set(shape)) == len(shape) for shape in shapes)


@pytest.mark.parametrize("name", TASKS)
def test_a_gain_is_neither_one_nor_constant(name):
    """Otherwise a wrong use of gamma, or the same norm twice, would not be seen."""
    for case in TASKS[name].cases(np.random.default_rng(1)):
        gains = [
            arg
            for arg in case.args[1:]
            if isinstance(arg, np.ndarray) and arg.ndim == 1 and name != "feed_forward"
        ]
        assert gains or name == "feed_forward"
        for i, one in enumerate(gains):
            assert len(np.unique(one)) == len(one)
            assert all(np.abs(one - other).max() > 0.1 for other in gains[:i])
