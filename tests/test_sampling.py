"""The distribution of the next token, in both backends."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp
import seqlib.pt as spt

BACKENDS = [snp, spt]


def distribution(backend, logits, **options):
    logits = np.asarray(logits)
    logits = logits if backend is snp else torch.tensor(logits)
    return np.asarray(backend.next_token_distribution(logits, **options))


def by_hand(logits, temperature=1.0, top_k=None, top_p=None):
    """Follow the three rules with Python lists, for one row."""
    ranking = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if temperature == 0:
        weights = {ranking[0]: 1.0}
    else:
        top = max(logits)
        weights = {i: float(np.exp((logits[i] - top) / temperature)) for i in ranking}
    total = sum(weights.values())
    kept = [(i, weights[i] / total) for i in ranking if i in weights][:top_k]
    total = sum(p for _, p in kept)
    kept = [(i, p / total) for i, p in kept]
    if top_p is not None:
        count, mass = 0, 0.0
        while count < len(kept) and mass < top_p:
            mass += kept[count][1]
            count += 1
        kept = kept[:count]
    total = sum(p for _, p in kept)
    result = np.zeros(len(logits))
    for i, p in kept:
        result[i] = p / total
    return result


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("logits", [[1, 3, 2], [1.0, 3.0, 2.0]])
def test_temperature(backend, logits):
    """Temperature 0 is the best token, and a tiny one does not overflow (nanoGPT#738)."""
    assert_array_equal(distribution(backend, logits, temperature=0), [0, 1, 0])
    for tiny in (1e-9, 1e-300, 5e-324):
        assert_array_equal(distribution(backend, logits, temperature=tiny), [0, 1, 0])
    expected = [0.1863237232258476, 0.506480391055654, 0.3071958857184984]
    assert_allclose(distribution(backend, np.array(logits, float), temperature=2), expected)
    assert_array_equal(distribution(backend, [3, 3, 1], temperature=0), [1, 0, 0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_top_k(backend):
    """A k above the size of the vocabulary keeps all (TransformerLens#1347)."""
    logits = [1.0, 3.0, 2.0]
    everything = [0.09003057317038046, 0.6652409557748218, 0.24472847105479764]
    expected = {
        1: [0, 1, 0],
        2: [0, 0.7310585786300049, 0.2689414213699951],
        3: everything,
        5: everything,
        None: everything,
    }
    for k, p in expected.items():
        assert_allclose(distribution(backend, logits, top_k=k), p, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_top_p_keeps_the_token_that_crosses(backend):
    """`cumulative <= p` would drop it (rasbt/reasoning-from-scratch#164)."""
    logits = np.log([0.6, 0.25, 0.1, 0.05])
    assert_allclose(distribution(backend, logits, top_p=0.5), [1, 0, 0, 0], atol=1e-9)
    kept = [0.7058823529411765, 0.29411764705882354]
    assert_allclose(distribution(backend, logits, top_p=0.7), [*kept, 0, 0], atol=1e-9)
    # Two of four equal tokens reach 0.5 exactly: a third is not needed.
    assert_array_equal(distribution(backend, np.zeros(4), top_p=0.5), [0.5, 0.5, 0, 0])
    unsorted = np.log([0.05, 0.6, 0.1, 0.25])
    expected = [0, kept[0], 0, kept[1]]
    assert_allclose(distribution(backend, unsorted, top_p=0.7), expected, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_top_k_comes_before_top_p(backend):
    """After top-k 0.4 has become 0.571 and reaches 0.5 alone (gpt-neox#1250)."""
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    assert_allclose(distribution(backend, logits, top_k=2, top_p=0.5), [1, 0, 0, 0], atol=1e-9)
    assert_allclose(
        distribution(backend, logits, top_p=0.5),
        [0.5714285714285714, 0.42857142857142855, 0, 0],
        atol=1e-9,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_temperature_comes_before_top_p(backend):
    """At temperature 2 the probabilities are flatter, and more tokens are needed for 0.7."""
    logits = np.log([0.64, 0.16, 0.16, 0.04])
    assert (distribution(backend, logits, top_p=0.7) > 0).sum() == 2
    assert (distribution(backend, logits, top_p=0.7, temperature=2) > 0).sum() == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_ties_go_to_the_lower_id(backend):
    logits = np.zeros(40)
    assert_array_equal(np.flatnonzero(distribution(backend, logits, top_k=3)), [0, 1, 2])
    assert_array_equal(np.flatnonzero(distribution(backend, logits, top_p=0.04)), [0, 1])
    assert_array_equal(np.flatnonzero(distribution(backend, logits, temperature=0)), [0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_excluded_and_extreme_logits(backend):
    assert_allclose(distribution(backend, [-np.inf, 0.0, 0.0]), [0, 0.5, 0.5])
    assert_allclose(distribution(backend, [1e300, -1e300, 0.0], temperature=1e-10), [1, 0, 0])
    # top_p = 1 keeps even a token whose probability is lost in the sum of the others.
    logits = np.array([0.0, -45.0])
    assert (distribution(backend, logits, top_p=1.0) > 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    logits=st.lists(st.integers(-40, 40).map(lambda i: i / 8), min_size=1, max_size=12),
    temperature=st.sampled_from([0, 0.3, 1.0, 2.5]),
    top_k=st.none() | st.integers(1, 14),
    top_p=st.none() | st.sampled_from([0.05, 0.31, 0.62, 0.9, 1.0]),
)
def test_equals_the_rules_by_hand(backend, logits, temperature, top_k, top_p):
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    p = distribution(backend, np.array(logits, float), **options)
    assert_allclose(p, by_hand(logits, **options), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_leading_axes_and_dtype(dtype, rng):
    logits = rng.standard_normal((2, 3, 7)).astype(dtype)
    options = {"temperature": 0.7, "top_k": 5, "top_p": 0.8}
    p = distribution(snp, logits, **options)
    assert p.dtype == dtype
    assert distribution(spt, logits, **options).dtype == dtype
    assert_allclose(p, distribution(spt, logits, **options), rtol=1e-6)
    for i in np.ndindex(2, 3):
        expected = by_hand(logits[i].astype(float).tolist(), **options)
        assert_allclose(p[i], expected, atol=5 * np.finfo(dtype).eps)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be a finite number of at least 0, got -1"),
        ({"temperature": np.nan}, "temperature must be a finite number of at least 0, got nan"),
        ({"temperature": np.inf}, "temperature must be a finite number of at least 0, got inf"),
        ({"top_k": 0}, "top_k must be a positive integer, got 0; None keeps every token"),
        ({"top_k": 2.0}, "top_k must be a positive integer, got 2.0"),
        ({"top_p": 0.0}, r"top_p must lie in \(0, 1\], got 0.0; None keeps every token"),
        ({"top_p": 1.1}, r"top_p must lie in \(0, 1\], got 1.1"),
        ({"top_p": np.nan}, r"top_p must lie in \(0, 1\], got nan"),
    ],
)
def test_rejects_options_out_of_range(backend, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        distribution(backend, [1.0, 2.0], **options)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "logits", [[0.0, np.nan], [0.0, np.inf], [-np.inf, -np.inf], [[0.0, 1.0], [np.nan, 0.0]]]
)
def test_rejects_logits_without_a_finite_maximum(backend, logits):
    with pytest.raises(ValueError, match=r"^logits must have a finite maximum in every row"):
        distribution(backend, logits)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rejects_an_empty_vocabulary(backend):
    with pytest.raises(ValueError, match=r"^logits must have an entry along axis -1"):
        distribution(backend, np.ones((2, 0)))


def test_arguments_are_not_modified(rng):
    logits = rng.standard_normal(7)
    before = logits.copy()
    tensor = torch.tensor(logits)
    for backend in BACKENDS:
        backend.next_token_distribution(
            logits if backend is snp else tensor, top_k=3, top_p=0.5
        )
    assert_array_equal(logits, before)
    assert_array_equal(tensor, before)
