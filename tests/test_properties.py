"""Makers of properties: each passes right functions and fails the one that breaks it."""

import numpy as np
import pytest

from seqlib.exercises import properties
from seqlib.exercises.record import Case
from seqlib.judge.kinds import Trusted
from seqlib.judge.run import Caller
from seqlib.subject.inprocess import InProcess


def outcome(holds, function, seed=0, subject=InProcess):
    def ask(case):
        request = {"do": "call", "args": list(case.args), "kwargs": dict(case.kwargs)}
        return subject(function).perform(request)

    assert isinstance(Case(()), Case)
    return holds(Caller(ask), np.random.default_rng(seed))


def rng():
    return np.random.default_rng(3)


def batch(rng):
    return [rng.standard_normal((3, 5, 2))]


def running_sum(x):
    return np.cumsum(x, axis=1)


CAUSAL = properties.causal_in(batch)


def test_causality():
    assert outcome(CAUSAL, running_sum) is None
    assert outcome(CAUSAL, lambda x: x[:, :1].repeat(5, axis=1)) is None
    for leak in (
        lambda x: x + x.mean(axis=1, keepdims=True),
        lambda x: np.roll(x, -1, axis=1),
        lambda x: x + 1e-6 * x[:, -1:],
        lambda x: x * np.nan,
    ):
        assert "changes when the input from step" in outcome(CAUSAL, leak)


def test_a_leak_of_one_step_alone_is_found_sooner_or_later():
    def leaks_at_the_end(x):
        y = running_sum(x)
        y[:, -2] += x[:, -1]
        return y

    assert any(outcome(CAUSAL, leaks_at_the_end, seed) for seed in range(5))


def test_causality_of_ids():
    def ids(rng):
        return [rng.integers(50, size=(2, 6))]

    causal = properties.causal_in(ids, axis=1)
    assert outcome(causal, lambda i: np.cumsum(i, axis=1).astype(float)) is None
    assert outcome(causal, lambda i: i[:, ::-1].astype(float)) is not None


def test_independence_of_the_batch():
    independent = properties.batch_independent(batch)
    assert outcome(independent, running_sum) is None
    assert outcome(independent, lambda x: x - x.mean(axis=0)) == (
        "sequence 0 alone gives another output than in its batch"
    )


def test_equivariance():
    equivariant = properties.permutation_equivariant(batch)
    assert outcome(equivariant, lambda x: np.tanh(x) + x.mean(axis=1, keepdims=True)) is None
    assert "the tokens in another order" in outcome(equivariant, running_sum)
    one = properties.permutation_equivariant(lambda rng: [rng.standard_normal((1, 2, 1))])
    assert all(outcome(one, running_sum, seed) for seed in range(5))


def test_parts_of_the_output():
    second = properties.causal_in(batch, part=1)
    assert outcome(second, lambda x: (x.mean(), running_sum(x))) is None
    assert outcome(second, lambda x: (running_sum(x), x[:, ::-1])) is not None


def test_inputs_unmodified():
    unmodified = properties.inputs_unmodified(batch)
    assert outcome(unmodified, running_sum) is None

    def in_place(x):
        x += 1
        return x

    for subject in (InProcess, Trusted):
        assert outcome(unmodified, in_place, subject=subject) == (
            "the call changes its arguments in place: number 1"
        )


def product(x, w):
    return np.tanh(x) @ w, x.sum()


def product_backward(dy, x, w):
    dx = (dy[0] @ w.T) * (1 - np.tanh(x) ** 2) + dy[1]
    return dx, np.tanh(x).T @ dy[0]


GRADIENT = properties.gradient_matches(
    product,
    lambda rng: [rng.standard_normal((3, 2)), rng.standard_normal((2, 5))],
    varied=(0, 1),
    names=("dx", "dw"),
)


def test_gradients():
    assert outcome(GRADIENT, product_backward) is None
    assert outcome(GRADIENT, lambda *a: product_backward(*a)[:1]) == (
        "the answer has 1 gradients, not 2"
    )


def test_single_precision_is_precise_enough():
    def single(*args):
        return [np.float32(x) if isinstance(x, np.ndarray) else x for x in args]

    def gradients(dy, x, w):
        return product_backward(single(*dy), *single(x, w))

    assert all(outcome(GRADIENT, gradients, seed) is None for seed in range(10))
    independent = properties.batch_independent(batch)

    def rounded(x):
        """Round another way for every size of the batch, as blocked products do."""
        size = np.float32(len(x) + 2)
        return np.float32(x) * size / size

    assert any((rounded(x) != rounded(np.tile(x, (2, 1, 1)))[:3]).any() for x in batch(rng()))
    assert all(outcome(independent, rounded, seed) is None for seed in range(10))


@pytest.mark.parametrize(
    ("distort", "phrase"),
    [
        (lambda dx, dw: (0 * dx, dw), "dx disagrees"),
        (lambda dx, dw: (dx, 0.999 * dw), "dw disagrees"),
        (lambda dx, dw: (dx, dw * np.nan), "dw disagrees"),
        (lambda dx, dw: (dx, dw.T), "dw has shape (5, 2), not (2, 5)"),
        (lambda dx, dw: (dx + np.eye(3, 2), dw), "dx disagrees"),
    ],
)
def test_wrong_gradients(distort, phrase):
    found = outcome(GRADIENT, lambda *args: distort(*product_backward(*args)))
    assert found.startswith(phrase)


def test_the_gradient_of_a_scalar_needs_no_cotangent():
    scalar = properties.gradient_matches(
        lambda x: (x**3).sum(),
        lambda rng: [rng.standard_normal(4)],
        varied=(0,),
        cotangent=False,
    )
    assert outcome(scalar, lambda x: 3 * x**2) is None
    assert outcome(scalar, lambda x: 3 * x) == (
        "gradient 0 disagrees with central differences along a random direction"
    )
