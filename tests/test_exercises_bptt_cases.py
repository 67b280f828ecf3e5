"""The assignment ``bptt`` on inputs on which real code went wrong, and beside the library."""

import numpy as np
import pytest

import seqlib.np as snp
from seqlib.exercises import bptt
from seqlib.judge.diagnose import function_of

TASKS = {task.function: task for task in bptt.ASSIGNMENT.tasks}


def batch_first(array):
    return np.swapaxes(array, 0, 1)


def parameters_of(args):
    """Return X, h0, W_xh, W_hh and the bias of the network behind a case, for the library."""
    H, h0, X, W_hh, W_xh = args
    b_h = np.arctanh(H[0, 0]) - W_hh @ h0[0] - W_xh @ X[0, 0]
    return batch_first(X), h0, W_xh, W_hh, b_h, None


def assert_same(answer, expected):
    for one, other in zip(answer, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def cases(name):
    return TASKS[name].cases(np.random.default_rng(3))


# The references are those of the library, in another layout


@pytest.mark.parametrize("case", cases("rnn_backward"), ids=lambda c: c.label)
def test_backward_agrees_with_the_library(case):
    dH, dh_T, *network = case.args
    dX, dh0, dW_xh, dW_hh, db_h, _ = snp.rnn_backward(
        (batch_first(dH), dh_T), *parameters_of(network)
    )
    answer = TASKS["rnn_backward"].reference(*case.args)
    assert_same(answer, (dh0, batch_first(dX), dW_hh, dW_xh, db_h))


@pytest.mark.parametrize("case", cases("rnn_truncated_backward"), ids=lambda c: c.label)
def test_truncated_backward_agrees_with_the_library(case):
    dH, *network, k1, k2 = case.args
    _, dh0, dW_xh, dW_hh, db_h, _ = snp.rnn_truncated_backward(
        (batch_first(dH), np.zeros_like(network[1])), *parameters_of(network), k1=k1, k2=k2
    )
    answer = TASKS["rnn_truncated_backward"].reference(*case.args)
    assert_same(answer, (dW_hh, dW_xh, db_h, dh0))


@pytest.mark.parametrize("case", cases("rnn_step_backward"), ids=lambda c: c.label)
def test_a_step_agrees_with_the_library(case):
    dh, h, h_prev, x, W_hh, W_xh = case.args
    for b in range(len(dh)):  # the bias that gives the state of this sequence
        b_h = np.arctanh(h[b]) - W_hh @ h_prev[b] - W_xh @ x[b]
        row = slice(b, b + 1)
        dx, dh_prev, dW_xh, dW_hh, db_h, _ = snp.rnn_cell_backward(
            dh[row], x[row], h_prev[row], W_xh, W_hh, b_h, None
        )
        answer = TASKS["rnn_step_backward"].reference(
            dh[row], h[row], h_prev[row], x[row], W_hh, W_xh
        )
        assert_same(answer, (dh_prev, dx, dW_hh, dW_xh, db_h))


def test_jacobians_agree_with_the_library():
    *_, H, h0, X, W_hh, W_xh = cases("rnn_backward")[0].args
    expected = snp.rnn_jacobian(*parameters_of((H, h0, X, W_hh, W_xh)))
    norms = snp.jacobian_norm_by_lag(*parameters_of((H, h0, X, W_hh, W_xh)))
    for b in range(H.shape[1]):
        J, n = TASKS["state_jacobians"].reference(H[:, b], W_hh)
        assert_same(J[:0:-1], expected[:, b])
        assert_same(n, norms[:, b])
        np.testing.assert_array_equal(J[0], np.eye(len(W_hh)))


def test_truncation_of_a_depth_of_all_steps_is_the_full_gradient():
    dH, *network, _, _ = cases("rnn_truncated_backward")[0].args
    dh0, _, *full = TASKS["rnn_backward"].reference(dH, 0 * dH[0], *network)
    for k1 in (1, 2, 4, 6):
        answer = TASKS["rnn_truncated_backward"].reference(dH, *network, k1, 6)
        assert_same(answer, (*full, dh0))


# Faults that people met


def case_a21():
    H = [
        [0.5298956075275294, -0.35399171247704597],
        [-0.03161531122474032, 0.4049440252786459],
        [0.0007105224682971558, -0.2215763621500577],
    ]
    return (
        np.ones((3, 1, 2)),
        np.zeros((1, 2)),
        np.array(H)[:, None],
        np.array([[0.1, -0.2]]),
        np.array([[[1.0]], [[-1.0]], [[0.5]]]),
        np.array([[0.2, 0.5], [-0.6, 0.1]]).T,  # the record has rows times W
        np.array([[0.4, -0.3]]).T,
    )


def test_case_a21_the_gradient_from_the_next_step():
    dh0, dX, dW_hh, dW_xh, db_h = TASKS["rnn_backward"].reference(*case_a21())
    expected_W = [
        [0.9661931970067, 0.19251101163255316],
        [-0.4093220513201909, 0.23204916007439574],
    ]
    np.testing.assert_allclose(dW_hh.T, expected_W, atol=1e-9)
    np.testing.assert_allclose(
        dW_xh.T, [[-0.06496436722409205, 0.09401829285603157]], atol=1e-9
    )
    np.testing.assert_allclose(db_h, [3.78258977238928, 1.397282028609008], atol=1e-9)
    np.testing.assert_allclose(dh0, [[0.23799872820797544, -0.6620406263355104]], atol=1e-9)
    np.testing.assert_allclose(
        dX.ravel(), [0.433783565306613, 0.5453391117241718, 0.11472862334222494], atol=1e-9
    )


@pytest.mark.parametrize("mistake", ["no_carry", "carry_accumulates"])
def test_case_a21_the_faults_of_the_reports_give_other_numbers(mistake):
    right = TASKS["rnn_backward"].reference(*case_a21())
    wrong = function_of(TASKS["rnn_backward"], mistake)(*case_a21())
    assert all(np.abs(a - b).max() > 0.01 for a, b in zip(right[2:], wrong[2:], strict=True))


@pytest.mark.parametrize(("k2", "dw"), [(4, 1.3969253260712022), (2, 1.1667517130139766)])
def test_case_a23_the_cut_changes_the_gradient_and_no_state(k2, dw):
    X = np.array([1.0, 0.5, -0.5, 1.0]).reshape(4, 1, 1)
    W_hh, W_xh = np.array([[0.5]]), np.array([[1.0]])
    H, _ = snp.rnn(batch_first(X), np.zeros((1, 1)), W_xh, W_hh, None, None)
    expected = [0.7615941559557649, 0.7068184091418055, -0.145549720033691, 0.7292975412419628]
    np.testing.assert_allclose(H.ravel(), expected, atol=1e-12)
    args = np.ones((4, 1, 1)), batch_first(H), np.zeros((1, 1)), X, W_hh, W_xh, 2, k2
    dW_hh, *_ = TASKS["rnn_truncated_backward"].reference(*args)
    np.testing.assert_allclose(dW_hh, [[dw]], atol=1e-9)


@pytest.mark.parametrize(
    ("c", "wrong", "expected"),
    [
        (1, frozenset(), [[3 / 13, 4 / 13], [12 / 13]]),
        (20, frozenset(), [[3, 4], [12]]),
        (1, frozenset({"each_array"}), [[0.6, 0.8], [1.0]]),
    ],
)
def test_case_a25_the_joint_norm_is_13(c, wrong, expected):
    grads = [np.array([3.0, 4.0]), np.array([12.0])]
    clipped, norm = TASKS["clip_grad_norm"].variant(grads, c, wrong=wrong)
    assert norm == 13
    for one, other in zip(clipped, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_case_a25_a_norm_that_is_not_finite_is_reported(bad):
    clipped, norm = TASKS["clip_grad_norm"].reference([np.array([3.0, bad]), np.ones(1)], 1.0)
    assert clipped is None
    assert not np.isfinite(norm)


def test_clipping_agrees_with_the_library():
    for case in cases("clip_grad_norm"):
        clipped, norm = TASKS["clip_grad_norm"].reference(*case.args)
        if clipped is not None:
            expected, size = snp.clip_grad_norm(case.args[0], max_norm=case.args[1])
            assert_same([*clipped, norm], [*expected, size])


def test_case_b06_the_index_minus_one_is_the_last_state():
    """The fault changes the term of the first step alone: delta a_1 (h_T - h_0)^T."""
    args = case_a21()
    _, dX, right, _, _ = TASKS["rnn_backward"].reference(*args)
    wrong = function_of(TASKS["rnn_backward"], "h0_is_last")(*args)[2]
    h0, last, W_xh = args[3], args[2][-1], args[6]
    difference = wrong - right
    np.testing.assert_allclose(W_xh.T @ difference, dX[0].T @ (last - h0), atol=1e-12)
    assert np.abs(difference).max() > 0.01


@pytest.mark.parametrize(
    "name", ["rnn_step_backward", "rnn_backward", "rnn_truncated_backward"]
)
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    case = TASKS[name].cases(np.random.default_rng(1))[0]
    sizes = set(case.args[-1 if name != "rnn_truncated_backward" else -3].shape)
    states = next(a for a in case.args if isinstance(a, np.ndarray))
    assert len({*sizes, *states.shape}) == len(sizes) + states.ndim - 1  # m is in both


def test_case_b20_differences_in_float32_reject_a_right_gradient():
    """tanh at 0.3: a step of 1e-6 in float32 is mostly rounding, 1e-5 in float64 is not."""
    right = 1 - np.tanh(0.3) ** 2
    x, h = np.float32(0.3), np.float32(1e-6)
    single = (np.tanh(x + h) - np.tanh(x - h)) / (2 * h)
    double = (np.tanh(0.3 + 1e-5) - np.tanh(0.3 - 1e-5)) / 2e-5
    assert abs(single - right) > 1e-3
    assert abs(double - right) < 1e-9
    checker = TASKS["gradient_is_right"]
    theta, g = np.array([0.3], np.float32), np.array([right], np.float32)

    def E(point):
        return float(np.tanh(point).sum() + point.dtype.type(30))

    assert checker.reference(E, theta, g)
    assert not function_of(checker, "float32_kept")(E, theta, g)


# What the notes say of (4)


def test_a_large_singular_value_alone_does_not_make_a_product_grow():
    W = np.array([[0.0, 10.0], [0.0, 0.0]])
    H = np.random.default_rng(0).uniform(-0.9, 0.9, (5, 2))
    _, norms = TASKS["state_jacobians"].reference(H, W)
    assert np.linalg.norm(W, 2) == 10
    assert (norms[2:] == 0).all()


def test_a_matrix_without_eigenvalues_but_zero_makes_a_product_grow():
    """Erratum 6: the pre-activations (0, 2) are held by the input."""
    W = 3 * np.array([[1.0, 1.0], [-1.0, -1.0]])
    H = np.tile(np.tanh([0.0, 2.0]), (20, 1))
    J, norms = TASKS["state_jacobians"].reference(H, W)
    np.testing.assert_allclose(norms[[1, 5, 10, 20]], [4.3, 257, 4.3e4, 1.2e9], rtol=0.05)
    assert np.abs(np.linalg.eigvals(W)).max() < 1e-6
    assert J.shape == (21, 2, 2)


def test_the_product_of_the_notes_is_the_transpose():
    task = TASKS["state_jacobians"]
    H, W = task.cases(np.random.default_rng(1))[0].args
    J, norms = task.reference(H, W)
    product = np.eye(len(W))
    for h in H:  # in the order of time
        product = product @ (W.T @ np.diag(1 - h**2))
    np.testing.assert_allclose(product.T, J[-1], atol=1e-12)
    transposed, same = function_of(task, "transposed")(H, W)
    np.testing.assert_allclose(transposed[-1], product, atol=1e-12)
    np.testing.assert_allclose(same, norms)
