"""CTC by hand: against all paths, against PyTorch, against central differences."""

import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from seqlib.experiments import ctc
from seqlib.np import softmax
from seqlib.testing import check_backward

# Without repetition, with one, with two in a row, one label, none.
TARGETS = [[1, 2], [2, 2], [1, 1, 1], [1, 1, 2], [3], []]


def by_paths(logits, target):
    """Sum the probabilities of all paths of a text, one by one."""
    p = softmax(logits)
    T, V = p.shape
    return sum(
        np.prod(p[np.arange(T), path])
        for path in itertools.product(range(V), repeat=T)
        if ctc.collapse(path) == target
    )


@pytest.mark.parametrize("target", TARGETS)
def test_loss_is_that_of_all_paths_together(target, rng):
    logits = rng.standard_normal((5, 4))
    loss = ctc.ctc_loss(logits, np.array(target, dtype=int))
    assert_allclose(np.exp(-loss), by_paths(logits, target), rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("T", [5, 23])
def test_loss_and_gradient_are_those_of_torch(target, T, rng):
    logits, target = 3 * rng.standard_normal((T, 4)), np.array(target, dtype=int)
    tensor = torch.tensor(logits, requires_grad=True)
    theirs = torch.nn.functional.ctc_loss(
        tensor.log_softmax(dim=-1)[:, None],
        torch.from_numpy(target)[None],
        torch.tensor([T]),
        torch.tensor([len(target)]),
        reduction="sum",
    )
    theirs.backward()
    assert_allclose(ctc.ctc_loss(logits, target), theirs.item(), rtol=1e-12)
    actual = ctc.ctc_loss_backward(1.0, logits, target)
    assert_allclose(actual, tensor.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_gradient_agrees_with_central_differences(target, rng):
    target = np.array(target, dtype=int)
    check_backward(
        lambda logits: np.array(ctc.ctc_loss(logits, target)),
        lambda dy, logits: ctc.ctc_loss_backward(dy, logits, target),
        [rng.standard_normal((6, 4))],
        rng,
    )


def test_texts_of_all_paths_have_the_probability_one(rng):
    logits = rng.standard_normal((3, 3))
    texts = {tuple(ctc.collapse(path)) for path in itertools.product(range(3), repeat=3)}
    losses = [ctc.ctc_loss(logits, np.array(text, dtype=int)) for text in texts]
    assert_allclose(np.exp(-np.array(losses)).sum(), 1)


def test_long_sequences_do_not_underflow(rng):
    logits = rng.standard_normal((2000, 5))
    target = rng.integers(1, 5, size=200)
    loss = ctc.ctc_loss(logits, target)
    assert 1000 < loss < np.inf  # e to the minus 1000 is 0 in double precision
    assert np.isfinite(ctc.ctc_loss_backward(1.0, logits, target)).all()


def test_a_certain_path_costs_nothing():
    logits = np.full((4, 3), -1000.0)
    logits[np.arange(4), [1, 0, 1, 2]] = 0
    assert ctc.ctc_loss(logits, np.array([1, 1, 2])) == pytest.approx(0, abs=1e-12)
    assert ctc.best_path(logits) == [1, 1, 2]


@pytest.mark.parametrize(("target", "steps"), [([1, 2], 2), ([1, 1], 3), ([2, 2, 2], 5)])
def test_a_target_needs_a_step_for_each_label_and_one_between_equal_ones(target, steps):
    target = np.array(target)
    assert ctc.ctc_loss(np.zeros((steps, 3)), target) < np.inf
    assert ctc.ctc_loss(np.zeros((steps - 1, 3)), target) == np.inf
    with pytest.raises(ValueError, match=rf"^target must fit into {steps - 1} steps"):
        ctc.ctc_loss_backward(1.0, np.zeros((steps - 1, 3)), target)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([], []),
        ([0, 0], []),
        ([1, 1, 1], [1]),
        ([1, 0, 1], [1, 1]),
        ([0, 2, 2, 0, 0, 2, 1, 0], [2, 2, 1]),
    ],
)
def test_collapse_merges_before_it_removes(path, text):
    assert ctc.collapse(path) == text


@pytest.mark.parametrize(
    ("target", "message"),
    [([0], "target must hold labels only, got 0"), ([3], "target must be less than 3")],
)
def test_targets_that_are_no_labels_are_refused(target, message):
    with pytest.raises(ValueError, match=message):
        ctc.ctc_loss(np.zeros((4, 3)), np.array(target))


def test_arguments_stay_as_they_are(rng):
    logits, target = rng.standard_normal((5, 4)), np.array([1, 2])
    copies = logits.copy(), target.copy()
    ctc.ctc_loss_backward(1.0, logits, target)
    assert_allclose(logits, copies[0], atol=0)
    assert_allclose(target, copies[1], atol=0)
