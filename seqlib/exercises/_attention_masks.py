"""Random masks for the cases: 0 where allowed, -inf where blocked."""

import numpy as np


def partial_mask(rng, n_q, n_k, lead=()):
    """Return a mask of shape (*lead, n_q, n_k) that blocks some keys of each row, not all.

    A row that is allowed in full would become a row without a key for those who read the mask
    the other way round, and confuse two mistakes.
    """
    shape = (*lead, n_q)
    count = rng.integers(1, n_k, size=shape)
    order = rng.permuted(np.broadcast_to(np.arange(n_k), (*shape, n_k)), axis=-1)
    return np.where(order < count[..., None], -np.inf, 0.0)


def empty_row_mask(rng, n_q, n_k):
    """Return a mask of shape (n_q, n_k) with one row that blocks every key."""
    mask = partial_mask(rng, n_q, n_k)
    mask[rng.integers(n_q)] = -np.inf
    return mask
