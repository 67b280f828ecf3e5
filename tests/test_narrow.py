"""Products over narrow matrices, in sizes at which the columns are split and in odd ones."""

import numpy as np
import pytest

import seqlib.np as snp
from seqlib.np._recurrent import split_columns, times


@pytest.mark.parametrize(("K", "H", "n"), [(300, 96, 4), (5, 6, 1), (300, 51, 1)])
def test_times_is_the_product(K, H, n, rng):
    rows, weight = rng.standard_normal((3, K)), rng.standard_normal((K, H))
    parts = split_columns(weight)
    assert len(parts) == n
    np.testing.assert_allclose(times(rows, parts), rows @ weight, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "gates"), [("rnn", 1), ("lstm", 4), ("gru", 3)])
def test_fast_form_equals_the_plain_pair_where_columns_are_split(name, gates, rng):
    B, T, D, H = 2, 3, 60, 96
    states = [rng.standard_normal((B, H)) for _ in range(2 if name == "lstm" else 1)]
    sizes = ((gates * H, D), (gates * H, H), (gates * H,), (gates * H,))
    weights = [0.2 * rng.standard_normal(size) for size in sizes]
    args = (rng.standard_normal((B, T, D)), *states, *weights)
    dy = (rng.standard_normal((B, T, H)), *states)
    results, vjp = getattr(snp, f"{name}_with_vjp")(*args)
    plain = *getattr(snp, name)(*args), *getattr(snp, f"{name}_backward")(dy, *args)
    for fast, other in zip((*results, *vjp(dy)), plain, strict=True):
        np.testing.assert_allclose(fast, other, rtol=1e-9, atol=1e-9)
