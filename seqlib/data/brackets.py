"""Well-formed rows of brackets: a language that needs a stack, with a known entropy."""

from functools import lru_cache
from math import log

import numpy as np

from seqlib._check import check_positive

__all__ = ["dyck", "dyck_nats"]


def dyck(n, rng, *, T, pairs=2, max_depth=None):
    """Draw rows of brackets in which every bracket is closed by its own kind.

    Opening brackets are the tokens 0 to pairs - 1, and ``pairs + i`` closes i. With two pairs
    the row ``( [ ] )`` is ``[0, 1, 3, 2]``. All rows of the length and depth are equally
    likely: for T = 4 and two pairs there are 2 ways to nest times 2 * 2 kinds, so 8 rows.

    Which bracket may close is known from the stack alone; how far the model must look back
    for it is the distance to the partner.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : numpy.random.Generator
        Source of the rows.
    T : int
        Length, even.
    pairs : int, default=2
        Kinds of brackets.
    max_depth : int, optional
        Largest number of brackets that are open at a time; T / 2 if not given.

    Returns
    -------
    ndarray of int of shape (n, T)
        Token ids below 2 pairs.

    Raises
    ------
    ValueError
        If T is odd.

    References
    ----------
    Chomsky and Schützenberger (1963), "The Algebraic Theory of Context-Free Languages". Hewitt
    et al. (2020), "RNNs can generate bounded hierarchical languages with optimal memory",
    arXiv:2010.07515 (bounded depth).
    """
    check_positive("n", n)
    ways = _ways(T, _check(T, pairs, max_depth))
    rows, depth = np.arange(n), np.zeros(n, np.int64)
    stack = np.zeros((n, len(ways[0])), np.int64)  # the kinds that are open
    ids = np.empty((n, T), np.int64)
    for t in range(T):
        left = T - t
        # Of all rows that begin like this one, the share that opens a bracket here.
        share = np.array([ways[left - 1][d + 1] / max(1, ways[left][d]) for d in range(T // 2)])
        kind = rng.integers(pairs, size=n)
        opens = rng.random(n) < np.append(share, 0)[depth]
        stack[rows[opens], depth[opens]] = kind[opens]
        depth += np.where(opens, 1, -1)
        ids[:, t] = np.where(opens, kind, pairs + stack[rows, depth])
    return ids


def dyck_nats(T, *, pairs=2, max_depth=None):
    """Return the entropy of a row of :func:`dyck`, the least loss that a model can reach.

    All rows are equally likely, so it is the logarithm of their number: ln 8 = 2.08 nats for
    T = 4 and two pairs, 0.52 a token.

    Parameters
    ----------
    T : int
        Length, even.
    pairs : int, default=2
        Kinds of brackets.
    max_depth : int, optional
        Largest number of brackets that are open at a time; T / 2 if not given.

    Returns
    -------
    float
        Nats per row.
    """
    ways = _ways(T, _check(T, pairs, max_depth))
    return log(ways[T][0]) + T // 2 * log(pairs)


@lru_cache(maxsize=8)
def _ways(T, max_depth):
    """Count how rows of one kind can end: entry [left][depth] for 0 to T steps to go."""
    ways = [[1] + [0] * (T // 2 + 1)]
    for _ in range(T):
        before = ways[-1]
        now = [0] * (T // 2 + 2)  # no row is deeper than T / 2, and none than max_depth
        for depth in range(min(T // 2, max_depth) + 1):
            now[depth] = before[depth + 1] + (before[depth - 1] if depth else 0)
        ways.append(now)
    return ways


def _check(T, pairs, max_depth):
    check_positive("T", T)
    check_positive("pairs", pairs)
    if T % 2:
        raise ValueError(f"T must be even, as every bracket has a partner, got {T}")
    if max_depth is None:
        return T // 2
    check_positive("max_depth", max_depth)
    return max_depth
