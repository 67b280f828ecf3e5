"""Batches of next-token pairs from one long row of token ids."""

import numpy as np

from seqlib._check import check_integers, check_positive, check_shape

__all__ = ["contiguous_batches", "random_windows"]


def contiguous_batches(ids, B, T):
    """Cut a text into batches in which every row continues its row of the batch before.

    The text is cut into B parts of equal length, one per row, and the rows are read T tokens
    at a time; so a recurrent network may carry its state from one batch to the next. Targets
    are the inputs shifted by one, and this is the only place that shifts.

    The ids 0 to 8 with B = 2 and T = 3 give the rows 0-3 and 4-7 and two batches: inputs
    ``[[0, 1, 2], [4, 5, 6]]`` with targets ``[[1, 2, 3], [5, 6, 7]]``, then ``[[3], [7]]``
    with ``[[4], [8]]``.

    The state must be set to zero where the text starts again, at the start of each epoch.

    Parameters
    ----------
    ids : ndarray of int of shape (n,)
        Token ids of the text.
    B : int
        Number of rows.
    T : int
        Steps per batch; the last batch may be shorter.

    Yields
    ------
    inputs : ndarray of int of shape (B, T)
        Token ids.
    targets : ndarray of int of shape (B, T)
        The token after each of them. Up to B - 1 pairs at the end of the text are left out,
        so that all rows are equally long.

    Raises
    ------
    ValueError
        If ``ids`` is not one row of at least B + 1 integers.
    """
    check_positive("B", B)
    check_positive("T", T)
    _check_text(ids, B + 1, "every row needs one token and its successor")
    steps = (len(ids) - 1) // B
    inputs = ids[: B * steps].reshape(B, steps)
    targets = ids[1 : B * steps + 1].reshape(B, steps)
    return ((inputs[:, t : t + T], targets[:, t : t + T]) for t in range(0, steps, T))


def random_windows(ids, B, T, *, rng):
    """Draw one batch of windows at random places of a text.

    Every place at which a window and the token after it fit is equally likely, so the ids
    0 to 8 with T = 3 have 6 windows, the first from 0 to 2 with the targets 1 to 3.

    Parameters
    ----------
    ids : ndarray of int of shape (n,)
        Token ids of the text.
    B : int
        Number of windows.
    T : int
        Tokens per window.
    rng : numpy.random.Generator
        Source of the places.

    Returns
    -------
    inputs : ndarray of int of shape (B, T)
        Token ids.
    targets : ndarray of int of shape (B, T)
        The token after each of them.

    Raises
    ------
    ValueError
        If ``ids`` is not one row of at least T + 1 integers.
    """
    check_positive("B", B)
    check_positive("T", T)
    _check_text(ids, T + 1, "a window needs T tokens and the successor of the last")
    starts = rng.integers(len(ids) - T, size=B)
    places = starts[:, None] + np.arange(T)  # (B, T)
    return ids[places], ids[places + 1]


def _check_text(ids, least, fix):
    check_shape("ids", ids, ("n",), fix="a text is one row of token ids")
    check_integers("ids", ids)
    if len(ids) < least:
        raise ValueError(f"ids must hold at least {least} tokens, got {len(ids)}; {fix}")
