"""The assignment ``attention`` on inputs on which real code went wrong, with their values."""

import numpy as np
import pytest

from seqlib.exercises import get_assignment
from seqlib.judge.diagnose import function_of

TASKS = {task.function: task for task in get_assignment("attention").tasks}


def unscaled(scores):
    """Return Q and K whose scaled scores are ``scores``."""
    scores = np.asarray(scores, dtype=float)
    return scores * np.sqrt(scores.shape[-1]), np.eye(scores.shape[-1])


def blocked(keep):
    return np.where(np.asarray(keep) == 1, 0.0, -np.inf)


REFERENCE = TASKS["scaled_dot_product_attention"].reference


def test_case_a01_a_row_without_an_allowed_key_beside_a_normal_one():
    Q, K = unscaled([[1, 2, 3], [0, np.log(2), 5]])
    V = np.array([[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    Y, A = REFERENCE(Q, K, V, blocked([[0, 0, 0], [1, 1, 0]]))
    np.testing.assert_allclose(A, [[0, 0, 0], [1 / 3, 2 / 3, 0]], atol=1e-12)
    np.testing.assert_allclose(Y, [[0, 0], [1 / 3, 4 / 3]], atol=1e-12)
    backward = TASKS["scaled_dot_product_attention_backward"].reference
    # Q is sqrt(3) times the scores and K the unit matrix, so dQ = dS / sqrt(3).
    dQ = backward(np.ones((2, 2)), Q, K, V, A)[0]
    np.testing.assert_allclose(dQ * np.sqrt(3), [[0, 0, 0], [-2 / 9, 2 / 9, 0]], atol=1e-12)


def test_case_a10_weights_are_rows_and_the_last_key_does_not_reach_the_first_query():
    Q, K = unscaled([[0, 5], [1, 0]])
    causal = blocked([[1, 0], [1, 1]])
    Y, A = REFERENCE(Q, K, np.array([[1.0], [3.0]]), causal)
    np.testing.assert_allclose(A, [[1, 0], [0.7310585786300049, 0.2689414213699951]])
    np.testing.assert_allclose(Y, [[1], [1.5378828427399902]])
    Y, _ = REFERENCE(Q, K, np.array([[1.0], [-7.0]]), causal)
    np.testing.assert_allclose(Y, [[1], [-1.1515313709599608]])


def test_case_b10_a_mask_that_keeps_three_of_four_keys():
    Q, K = unscaled([[2, 1, 4, 1]])
    _, A = REFERENCE(Q, K, np.ones((4, 1)), blocked([1, 1, 0, 1]))
    expected = [[0.5761168847658291, 0.21194155761708544, 0, 0.21194155761708544]]
    np.testing.assert_allclose(A, expected, atol=1e-12)


def multihead_a65(wrong=frozenset()):
    """Return the weights of head 1 of two, d = 8, for the inner products 4 and 0."""
    W_q, W_k, W_v = np.zeros((2, 8, 4)), np.zeros((2, 8, 4)), np.zeros((2, 8, 4))
    W_q[0, 0, 0], W_k[0, 0, 0], W_v[0, 0, 0], W_v[0, 1, 1] = 2, 2, 1, 1
    X = np.eye(8)[:2]  # the first token matches itself, 4, and the second one not, 0
    return TASKS["multi_head_attention"].variant(X, W_q, W_k, W_v, np.eye(8), wrong=wrong)


@pytest.mark.parametrize(
    ("wrong", "weights"),
    [
        (frozenset(), [0.8807970779778823, 0.11920292202211755]),
        (frozenset({"scale_d"}), [0.8044296825069569, 0.19557031749304313]),
        (frozenset({"scale_without_root"}), [0.7310585786300049, 0.2689414213699951]),
    ],
)
def test_case_a65_the_scale_of_a_head_of_two(wrong, weights):
    np.testing.assert_allclose(multihead_a65(wrong)[0, :2], weights)


def test_case_a09_heads_of_two_tokens():
    X = np.arange(8.0).reshape(1, 2, 4)
    heads = [[[[0, 1], [4, 5]]], [[[2, 3], [6, 7]]]]
    np.testing.assert_array_equal(TASKS["split_heads"].reference(X, 2), heads)
    np.testing.assert_array_equal(TASKS["merge_heads"].reference(np.array(heads)), X)
    wrong = function_of(TASKS["split_heads"], "reshape_moves_tokens")(X, 2)
    np.testing.assert_array_equal(wrong, [[[[0, 1], [2, 3]]], [[[4, 5], [6, 7]]]])


def test_case_pytorch_60853_the_number_of_heads_does_not_change_the_parameters():
    count = TASKS["count_parameters"].reference
    assert [count(512, H, 512 // H, 512 // H, bias=True) for H in (1, 64)] == [1050624] * 2


@pytest.mark.parametrize("name", [n for n in TASKS if n != "count_parameters"])
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    args = TASKS[name].cases(np.random.default_rng(1))[0].args
    if name == "multi_head_attention":
        args = args[:-1]  # W_o is square here, H d_v = d, and not where the widths differ
    shapes = [arg.shape for arg in args if isinstance(arg, np.ndarray)]
    assert all(len(set(shape)) == len(shape) for shape in shapes)
