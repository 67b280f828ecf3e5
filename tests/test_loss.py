"""Cross-entropy, perplexity and bits against torch, calculus and cases by hand."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from twins import assert_equals_reference, error_text, run

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward

SHAPES = [(5,), (3, 5), (2, 3, 7), (2, 3, 5, 2), (0, 5), (4, 1), (1, 1)]
REDUCTIONS = ["mean", "sum", "none"]


def loss_args(shape, rng, *, ignored=0.0, ignore_index=-100):
    logits = 2 * rng.standard_normal(shape)
    targets = rng.integers(shape[-1], size=shape[:-1])
    return logits, np.where(rng.random(shape[:-1]) < ignored, ignore_index, targets)


def torch_loss(logits, targets, **options):
    """Torch wants the classes on axis 1, so flatten to one row per target."""
    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), **options)
    return loss.reshape(targets.shape) if options["reduction"] == "none" else loss


def assert_loss_equals_torch(logits, targets, rng, **options):
    def reference(z):
        return torch_loss(z, torch.tensor(targets), **options)

    assert_equals_reference(
        "cross_entropy", (logits,), reference, rng, targets=targets, **options
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s])
def test_equals_torch(shape, reduction, rng):
    logits, targets = loss_args(shape, rng)
    assert_loss_equals_torch(logits, targets, rng, reduction=reduction)


@pytest.mark.parametrize("ignore_index", [-100, -1, 3, 50])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_equals_torch_with_ignored_targets(reduction, ignore_index, rng):
    logits, targets = loss_args((4, 5, 7), rng, ignored=0.4, ignore_index=ignore_index)
    assert 0 < (targets == ignore_index).sum() < targets.size
    options = {"reduction": reduction, "ignore_index": ignore_index}
    assert_loss_equals_torch(logits, targets, rng, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_backward_equals_differences(shape, reduction, rng):
    args = loss_args(shape, rng, ignored=0.3)
    check_backward(
        lambda z, y, **kw: np.asarray(snp.cross_entropy(z, y, **kw)),
        snp.cross_entropy_backward,
        args,
        rng,
        kwargs={"reduction": reduction},
    )


CASE = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [5.0, 5.0, 5.0]])


def test_ignored_targets_do_not_count():
    """Case A27: dividing by 3 instead of 2 would give 0.446."""
    targets = np.array([0, -100, 2])
    assert_allclose(run("cross_entropy", CASE, targets), 0.6690785274449973, rtol=1e-9)
    expected = [
        [-0.1065069789192008, 0.05325348945960037, 0.05325348945960037],
        [0.0, 0.0, 0.0],
        [0.16666666666666666, 0.16666666666666666, -0.33333333333333337],
    ]
    assert_allclose(snp.cross_entropy_backward(1.0, CASE, targets), expected, atol=1e-9)
    logits = torch.tensor(CASE, requires_grad=True)
    spt.cross_entropy(logits, torch.tensor(targets)).backward()
    assert_allclose(logits.grad, expected, atol=1e-9)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(3, 3), (0, 3)])
def test_nothing_to_count_gives_0_with_zero_gradient(shape, reduction):
    """Case A27: the mean over nothing is 0 here, not NaN."""
    logits, targets = CASE[: shape[0]], np.full(shape[:1], -100)
    loss = run("cross_entropy", logits, targets, reduction=reduction)
    assert_array_equal(loss, np.zeros(shape[:1] if reduction == "none" else ()))
    dy = np.ones(np.shape(loss))
    grad = snp.cross_entropy_backward(dy, logits, targets, reduction=reduction)
    assert_array_equal(grad, np.zeros(shape))
    logits = torch.tensor(logits, requires_grad=True)
    spt.cross_entropy(logits, torch.tensor(targets), reduction=reduction).sum().backward()
    assert_array_equal(logits.grad, np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_of_ignored_rows_reach_nothing(bad):
    targets = np.array([0, -100, 2])
    clean = run("cross_entropy", CASE, targets)
    dirty = CASE.copy()
    dirty[1] = bad
    assert_allclose(run("cross_entropy", dirty, targets), clean, rtol=0)
    grad = snp.cross_entropy_backward(1.0, dirty, targets)
    assert_allclose(grad, snp.cross_entropy_backward(1.0, CASE, targets), rtol=0)
    logits = torch.tensor(dirty, requires_grad=True)
    spt.cross_entropy(logits, torch.tensor(targets)).backward()
    assert_allclose(logits.grad, grad, atol=1e-15)


def test_targets_are_held_against_the_logits_before_them():
    """Case A51: one shift; the same position gives 1.40, two shifts give 1.55."""
    tokens = np.array([0, 2, 1])
    logits = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [9.0, 9.0, 9.0]])
    inputs, targets = tokens[:-1], tokens[1:]
    assert_array_equal(inputs, [0, 2])
    assert_allclose(run("cross_entropy", logits[:-1], targets), 0.5514447139320511, rtol=1e-9)


def test_class_0_is_a_class():
    """Case A30: padding is recognised by ignore_index, never by the id 0."""
    logits = np.log([[0.2, 0.8], [0.5, 0.5]])
    loss = run("cross_entropy", logits, np.array([0, 1]), reduction="none")
    assert_allclose(loss, -np.log([0.2, 0.5]), rtol=1e-12)


def test_micro_batches_are_summed_and_divided_once():
    """Case A31: with the token losses w x the gradient is the mean of all x, 2.5, not 3.

    The loss of class 1 with the logits (w x + 40, 0) is w x + 40 to the last digit.
    """
    w, micro_batches = 0.7, [[4.0], [1.0, 2.0, 3.0]]
    summed, of_means = 0.0, 0.0
    for values in micro_batches:
        x = np.array(values)
        logits = np.stack([w * x + 40, np.zeros_like(x)], axis=-1)
        targets = np.ones(len(x), int)
        for reduction in ("sum", "mean"):
            grad = snp.cross_entropy_backward(1.0, logits, targets, reduction=reduction)
            dw = (grad[:, 0] * x).sum()
            if reduction == "sum":
                summed += dw / 4
            else:
                of_means += dw / 2
    assert_allclose(summed, 2.5, rtol=1e-12)
    assert_allclose(of_means, 3.0, rtol=1e-12)


def test_mean_over_tokens_is_not_the_mean_over_sequences():
    """The docstring's numbers: 10 / 6 against 1.5."""
    nats = np.array([[0.5, 1.5, 0, 0], [2, 2, 2, 2]])
    logits = np.stack(
        [-nats, np.log(-np.expm1(-nats), where=nats > 0, out=np.zeros((2, 4)))], -1
    )
    targets = np.array([[0, 0, -100, -100], [0, 0, 0, 0]])
    losses = run("cross_entropy", logits, targets, reduction="none")
    assert_allclose(losses, nats, rtol=1e-12)
    assert_allclose(run("cross_entropy", logits, targets), 10 / 6, rtol=1e-12)
    means = [run("cross_entropy", z, y) for z, y in zip(logits, targets, strict=True)]
    assert_allclose(np.mean(means), 1.5, rtol=1e-12)


@given(shift=st.floats(-1e3, 1e3), seed=st.integers(0, 9))
def test_a_shift_of_the_logits_changes_nothing(shift, seed):
    logits, targets = loss_args((3, 5), np.random.default_rng(seed))
    expected = snp.cross_entropy(logits, targets)
    assert_allclose(snp.cross_entropy(logits + shift, targets), expected, rtol=1e-9)


def test_huge_logits_are_exact_and_do_not_warn():
    logits = np.array([[1e4, 0.0], [-1e4, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = run("cross_entropy", logits, np.array([1, 0]), reduction="none")
        grad = snp.cross_entropy_backward(1.0, logits, np.array([1, 0]), reduction="sum")
    assert_array_equal(losses, [1e4, 1e4])
    assert_array_equal(grad, [[1, -1], [-1, 1]])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_float32_stays_and_targets_of_any_integer_type_serve(reduction, rng):
    logits, targets = loss_args((3, 200), rng)
    logits = logits.astype(np.float32)
    expected = run("cross_entropy", logits, targets, reduction=reduction, rtol=1e-5)
    assert expected.dtype == np.float32
    dy = np.ones_like(expected)
    assert (
        snp.cross_entropy_backward(dy, logits, targets, reduction=reduction).dtype == np.float32
    )
    targets[0] = 156  # -100 modulo 256: must not be taken for the ignored value
    expected = run("cross_entropy", logits, targets, reduction=reduction, rtol=1e-5)
    for dtype in (np.uint8, np.int16, np.int32):
        loss = run(
            "cross_entropy", logits, targets.astype(dtype), reduction=reduction, rtol=1e-5
        )
        assert_array_equal(loss, expected)


@pytest.mark.parametrize(
    ("logits", "targets", "options", "text"),
    [
        (np.zeros((2, 3)), np.zeros(3, int), {}, "targets must have shape (2,), got (3,); one"),
        (np.zeros((2, 3)), np.zeros(2), {}, "targets must have an integer dtype, got float64"),
        (
            np.zeros((2, 3)),
            np.array([0, 3]),
            {},
            "targets must be less than 3 everywhere, got 3",
        ),
        (
            np.zeros((2, 3)),
            np.array([-1, 0]),
            {},
            "targets must be at least 0 everywhere, got -1",
        ),
        (
            np.zeros((2, 3)),
            np.array([-100, 0]),
            {"ignore_index": 0},
            "targets must be at least 0 everywhere, got -100",
        ),
        (
            np.zeros((2, 3)),
            np.zeros(2, int),
            {"reduction": "average"},
            "reduction must be 'mean' or 'sum' or 'none', got 'average'",
        ),
        (np.zeros(()), np.zeros((), int), {}, "logits must have shape (..., V), got ()"),
    ],
)
def test_wrong_arguments_are_refused(logits, targets, options, text):
    assert error_text("cross_entropy", logits, targets, **options).startswith(text)


# --- Units


def test_perplexity_of_a_corpus_is_that_of_the_mean_over_its_tokens():
    """Case A29: 4.48 and 5.05 are what other orders of averaging give."""
    batches = [np.array([0.5, 1.5]), np.array([2.0, 2.0, 2.0, 2.0])]
    tokens = np.concatenate(batches)
    assert_allclose(run("perplexity", tokens.mean()), 5.29449005047003, rtol=1e-9)
    means = [batch.mean() for batch in batches]
    assert_allclose(snp.perplexity(np.mean(means)), 4.4816890703380645, rtol=1e-9)
    assert_allclose(np.mean(snp.perplexity(np.array(means))), 5.0536689636948475, rtol=1e-9)


@pytest.mark.parametrize(("dtype", "nats"), [("float32", 100.0), ("float64", 800.0)])
def test_perplexity_overflows_to_infinity_without_a_warning(dtype, nats):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = run("perplexity", np.array([nats, 0.0], dtype))
    assert_array_equal(y, [np.inf, 1.0])
    assert y.dtype == dtype


def test_numbers_are_taken_too():
    assert_allclose(snp.perplexity(np.log(6)), 6, rtol=1e-12)
    assert_allclose(spt.perplexity(float(np.log(6))), 6, rtol=1e-12)
    for package in (snp, spt):
        assert_allclose(package.bits(float(np.log(2))), 1, rtol=1e-12)


def test_bits_per_byte_counts_raw_bytes():
    """Case A47: losses 1, 2, 3 over tokens of 1, 1 and 3 bytes."""
    n_bytes = sum(len(token) for token in (b"\xc3", b"\xa9", b"abc"))
    nats = run("bits", np.array([1.0, 2.0, 3.0])).sum() / n_bytes
    assert_allclose(nats, 1.7312340490667562, rtol=1e-9)


def test_first_loss_of_a_uniform_model_is_ln_V():
    """Case A54: 4.174, 5.545 and 10.825 nats for three vocabularies."""
    for V, nats in ((65, 4.174), (256, 5.545), (50257, 10.825)):
        assert_allclose(run("cross_entropy", np.zeros((1, V)), np.array([1])), nats, atol=5e-4)
