"""The assignment ``rnn`` on inputs on which real code went wrong, with their values."""

import numpy as np
import pytest

from seqlib.exercises import get_assignment
from seqlib.judge.diagnose import function_of

TASKS = {task.function: task for task in get_assignment("rnn").tasks}


def answer(name, *args, wrong=None):
    task = TASKS[name]
    return (function_of(task, wrong) if wrong else task.reference)(*args)


def scalar_forward(x, h_0, lengths=None, wrong=None):
    """Run h_t = tanh(x_t + 0.5 h_{t-1}) on rows of numbers."""
    x, h_0 = np.array(x, float)[..., None], np.array(h_0, float)[:, None]
    lengths = None if lengths is None else np.array(lengths)
    args = (x, h_0, np.array([[0.5]]), np.ones((1, 1)), np.zeros(1), lengths)
    H, h_n = answer("rnn_forward", *args, wrong=wrong)
    return H[..., 0], h_n[:, 0]


@pytest.mark.parametrize(
    ("wrong", "states"),
    [
        (None, [0.7615941559557649, 0.36339948438905245, 0.1797262071203191]),
        ("not_carried", [0.7615941559557649, 0, 0]),
    ],
)
def test_case_a24_the_state_is_carried(wrong, states):
    np.testing.assert_allclose(scalar_forward([[1, 0, 0]], [0], wrong=wrong)[0], [states])


@pytest.mark.parametrize(
    ("wrong", "states"),
    [
        (None, [0.6043677771171636, -0.09750533288515544]),
        ("zero_initial", [0.197375320224904, -0.2925131235431936]),
    ],
)
def test_case_b06_the_initial_state_is_used(wrong, states):
    np.testing.assert_allclose(scalar_forward([[0.2, -0.4]], [1.0], wrong=wrong)[0], [states])


def test_case_a58_a_sequence_of_length_zero_keeps_its_initial_state():
    H, h_n = scalar_forward([[1, -1], [0, 0]], [0.3, 0.3], [2, 0])
    np.testing.assert_allclose(h_n, [-0.5307027723990235, 0.3])
    np.testing.assert_array_equal(H[1], [0, 0])


@pytest.mark.parametrize(
    ("wrong", "last"),
    [
        (None, [0.8938113693906988, 0.7615941559557649]),
        ("state_runs_on", [0.8938113693906988, 0.1797262071203191]),
        ("last_column", [0.8938113693906988, 0]),
    ],
)
def test_case_a61_the_last_valid_state(wrong, last):
    x = [[1, 1, 1], [1, 0, 0]]
    np.testing.assert_allclose(scalar_forward(x, [0, 0], [3, 1], wrong=wrong)[1], last)


def test_case_a63_one_sequence_of_one_step_keeps_its_axes():
    H, h_n = answer("rnn_forward", np.ones((1, 1, 1)), *np.ones((3, 1, 1)), np.ones(1))
    assert H.shape == (1, 1, 1)
    assert h_n.shape == (1, 1)


LOGITS_A27 = np.array([[[2.0, 0, 0], [0, 1, 0], [5, 5, 5]]])


@pytest.mark.parametrize(
    ("wrong", "loss"),
    [(None, 0.6690785274449973), ("tokens_over_all", 0.4460523516299982)],
)
def test_case_a27_ignored_targets_are_not_counted(wrong, loss):
    y = np.array([[0, -100, 2]])
    assert answer("masked_cross_entropy", LOGITS_A27, y, wrong=wrong)[0] == pytest.approx(loss)


def test_case_a27_all_targets_ignored():
    y = np.full((1, 3), -100)
    assert answer("masked_cross_entropy", LOGITS_A27, y) == (0, 0)


def logits_of(losses):
    """Return logits of two classes for which target 1 has these losses."""
    p = np.exp(-np.asarray(losses, float))
    return np.stack([np.log(1 - p), np.log(p)], axis=-1)


def test_the_two_means_differ():
    Z = logits_of([[0.5, 1.5, 7, 7], [2, 2, 2, 2]])
    y = np.array([[1, 1, -100, -100], [1, 1, 1, 1]])
    np.testing.assert_allclose(answer("masked_cross_entropy", Z, y), (10 / 6, 1.5))


@pytest.mark.parametrize(("wrong", "mean"), [(None, 3.0), ("zero_ignored", 3.5)])
def test_case_a30_a_target_of_class_zero_counts(wrong, mean):
    """Class 0 is a real token here; padding is known by its mark. 1, 2 or 6 nats a token."""
    with np.errstate(divide="ignore"):
        Z = np.log(np.exp(-np.array([[9.0, 9, 1, 2, 6]])))[..., None] * np.array([1, 1, 1.0])
    p = np.exp(Z[..., 0])
    Z = np.stack([np.log(p), np.log((1 - p) / 2), np.log((1 - p) / 2)], axis=-1)
    Z[0, [2, 4]] = Z[0, [2, 4]][:, [1, 0, 2]]  # targets of class 1, the one between of class 0
    y = np.array([[-100, -100, 1, 0, 1]])
    tokens, _ = answer("masked_cross_entropy", Z, y, wrong=wrong)
    assert tokens == pytest.approx(mean)


@pytest.mark.parametrize(
    ("wrong", "perplexity"),
    [
        (None, 5.29449005047003),
        ("mean_of_means", 4.4816890703380645),
        ("mean_of_perplexities", 5.0536689636948475),
    ],
)
def test_case_a29_perplexity_of_two_batches(wrong, perplexity):
    found = answer("corpus_perplexity", np.array([1.0, 2.0]), np.array([2, 4]), wrong=wrong)
    assert found[0] == pytest.approx(perplexity)


TOKENS_A51, LOGITS_A51 = np.array([0, 2, 1]), np.array([[0.0, 0, 1], [0, 1, 0], [9, 9, 9]])


def test_case_a51_position_t_predicts_token_t_plus_one():
    X, Y = answer("next_token_batches", TOKENS_A51, 1, 2)
    assert X[0, 0].tolist() == [0, 2]
    losses = answer("token_losses", LOGITS_A51[:2], Y[0, 0])
    assert losses.mean() == pytest.approx(0.5514447139320511)
    _, unshifted = answer("next_token_batches", TOKENS_A51, 1, 2, wrong="not_shifted")
    assert unshifted[0, 0].tolist() == [0, 2]
    losses = answer("token_losses", LOGITS_A51, TOKENS_A51)
    assert losses.mean() == pytest.approx(1.400500572177404)


def test_case_a51_shifted_once_more_inside_of_the_loss():
    y = np.array([[2, 1]])
    tokens, _ = answer("masked_cross_entropy", LOGITS_A51[None, :2], y, wrong="shifted_again")
    assert tokens == pytest.approx(1.551444713932051)


@pytest.mark.parametrize(
    ("V", "loss"),
    [(65, 4.174387269895637), (256, 5.545177444479562), (50257, 10.82490511970208)],
)
def test_case_a54_equal_logits_cost_the_logarithm_of_the_classes(V, loss):
    assert answer("token_losses", np.zeros((1, V)), np.array([7])) == pytest.approx(loss)


def test_case_a56_large_logits():
    Z = np.array([[1000.0, 1001, 999]] * 3 + [[-1e30] * 3])
    expected = [0.24472847105479764, 0.6652409557748218, 0.09003057317038046, 1 / 3]
    losses = answer("token_losses", Z, np.array([0, 1, 2, 0]))
    np.testing.assert_allclose(np.exp(-losses), expected)


@pytest.mark.parametrize("name", ["rnn_step", "rnn_forward", "masked_cross_entropy"])
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """An exchanged axis must not fit by chance; W_hh alone is square."""
    args = TASKS[name].cases(np.random.default_rng(1))[0].args
    shapes = [a.shape for i, a in enumerate(args) if (name, i) != ("rnn_forward", 2)]
    assert all(len(set(shape)) == len(shape) for shape in shapes)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["masked_cross_entropy", "corpus_perplexity"])
def test_no_mistake_is_nearly_right_on_a_drawn_input(name, seed):
    """A mean over other tokens may come near the right one by chance; such inputs are left."""
    task = TASKS[name]
    for case in task.cases(np.random.default_rng(seed)):
        right = np.array(answer(name, *case.args))
        for mistake in task.misconceptions:
            wrong = np.array(answer(name, *case.args, wrong=mistake.name))
            gap = np.abs(wrong - right) / np.maximum(1, right)
            assert (np.isnan(gap) | (gap < 1e-9) | (gap >= 0.003)).all()


@pytest.mark.parametrize("seed", range(5))
def test_every_input_of_the_base_value_tells_the_two_means_apart(seed):
    for case in TASKS["masked_cross_entropy"].cases(np.random.default_rng(seed))[:2]:
        tokens, sequences = answer("masked_cross_entropy", *case.args)
        assert abs(tokens - sequences) > 1e-3
