"""Attention masks, 0 where allowed and -inf where blocked; twins of ``seqlib.np.masks``.

Masks combine with ``+``: ``causal_mask(T) + padding_mask(is_padding)`` has shape (B, 1, T, T).
A boolean mask says True where a query may attend, and booleans combine with ``&``.
"""

import torch

from seqlib._check import (
    check_boolean,
    check_choice,
    check_integers,
    check_positive,
    check_shape,
)

__all__ = ["causal_mask", "padding_from_lengths", "padding_mask", "to_additive"]


def causal_mask(T, S=None):
    r"""Mask of a model that reads from left to right: no query sees a later key.

    .. math:: M_{ij} = 0 \text{ if } j \le i + S - T, \quad -\infty \text{ otherwise}

    With ``S = T`` this is equation (15). With ``S > T`` the queries are the last T of the S
    positions, as where the keys of earlier tokens are kept: ``causal_mask(1, 5)`` blocks
    nothing.

    Parameters
    ----------
    T : int
        Number of queries.
    S : int, optional
        Number of keys; T if not given.

    Returns
    -------
    Tensor of shape (T, S)
        0 where query i may attend to key j, -inf where it may not.

    Raises
    ------
    ValueError
        If ``T`` or ``S`` is not a positive integer.

    References
    ----------
    Lecture notes, equation (15).
    """
    S = T if S is None else S
    check_positive("T", T)
    check_positive("S", S)
    i = torch.arange(T)[:, None]
    j = torch.arange(S)[None, :]
    return to_additive(j <= i + S - T)


def padding_mask(is_padding):
    r"""Mask that hides padded keys from every query.

    .. math:: M_{ij} = -\infty \text{ if position } j \text{ is padding}, \quad
        0 \text{ otherwise}

    Parameters
    ----------
    is_padding : Tensor of bool of shape (B, S)
        True at padded positions.

    Returns
    -------
    Tensor of shape (B, 1, 1, S)
        0 at keys, -inf at padded ones; the same for all heads and queries.

    Raises
    ------
    ValueError
        If ``is_padding`` is not a boolean tensor with two axes.

    References
    ----------
    Lecture notes, equation (14).
    """
    check_boolean("is_padding", is_padding, "True = padding")
    check_shape("is_padding", is_padding, ("B", "S"))
    return to_additive(~is_padding)[:, None, None, :]  # (B, 1, 1, S)


def padding_from_lengths(lengths, S, *, side="right"):
    """Say which positions are padding when sequences of these lengths are padded to S.

    ``padding_from_lengths(torch.tensor([3, 0]), 4)`` is
    ``[[False, False, False, True], [True, True, True, True]]``.

    Parameters
    ----------
    lengths : Tensor of int of shape (B,)
        Number of real tokens of each sequence, from 0 to S.
    S : int
        Length after padding.
    side : {"right", "left"}, default="right"
        Where the padding stands.

    Returns
    -------
    Tensor of bool of shape (B, S)
        True at padded positions.

    Raises
    ------
    ValueError
        If a length is negative or exceeds ``S``, or if ``side`` is neither of the two.
    """
    check_positive("S", S)
    check_shape("lengths", lengths, ("B",))
    fix = f"they count real tokens, from 0 to S = {S}"
    check_integers("lengths", lengths, low=0, high=S + 1, fix=fix)
    check_choice("side", side, ("right", "left"))
    j = torch.arange(S, device=lengths.device)
    if side == "right":
        return j >= lengths[:, None]
    return j < S - lengths[:, None]


def to_additive(may_attend):
    r"""Turn a boolean mask into the additive M.

    .. math:: M_{ij} = 0 \text{ if query } i \text{ may attend to key } j, \quad -\infty
        \text{ otherwise}

    Parameters
    ----------
    may_attend : Tensor of bool of shape (...)
        True where a query may attend.

    Returns
    -------
    Tensor of shape (...)
        0 where ``may_attend`` is True, -inf where it is False.

    Raises
    ------
    ValueError
        If ``may_attend`` is not boolean.

    References
    ----------
    Lecture notes, equation (13).
    """
    check_boolean("may_attend", may_attend, "True = may attend")
    blocked = torch.full(may_attend.shape, -torch.inf, device=may_attend.device)
    return torch.where(may_attend, 0.0, blocked)
