"""GRU weights between this library, the notes' matrices on ``[h, x]``, and PyTorch."""

import numpy as np

from seqlib._recurrent import check_weights
from seqlib.np._packing import join_notes, read_torch, split_notes, write_torch

__all__ = ["gru_from_notes", "gru_from_torch", "gru_to_notes", "gru_to_torch"]

GATES = "r, z, n"


def gru_from_notes(W_r, W_z, W):
    """Pack the notes' GRU matrices for :func:`gru`.

    Parameters
    ----------
    W_r, W_z : ndarray of shape (H, H + D)
        Matrices of the reset and the update gate on ``[h, x]``.
    W : ndarray of shape (H, H + D)
        Matrix of the candidate on ``[r * h, x]``.

    Returns
    -------
    weight_ih : ndarray of shape (3H, D)
        Columns of the input, rows in the order r, z, n.
    weight_hh : ndarray of shape (3H, H)
        Columns of the state.
    bias_ih, bias_hh : ndarray of shape (3H,)
        Zeros: the notes' GRU has no biases.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    weight_ih, weight_hh = split_notes({"W_r": W_r, "W_z": W_z, "W": W})
    bias = np.zeros(len(weight_ih), weight_ih.dtype)
    return weight_ih, weight_hh, bias, bias.copy()


def gru_to_notes(weight_ih, weight_hh, bias_ih, bias_hh):
    """Unpack the weights of :func:`gru` into the notes' matrices on ``[h, x]``.

    Parameters
    ----------
    weight_ih : ndarray of shape (3H, D)
        Weights of the input, stacked as r, z, n.
    weight_hh : ndarray of shape (3H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : ndarray of shape (3H,) or None
        Biases, which must be zero.

    Returns
    -------
    W_r, W_z, W : ndarray of shape (H, H + D)
        In the order of the arguments of :func:`gru_from_notes`.

    Raises
    ------
    ValueError
        If the shapes do not fit together or a bias is not zero.
    """
    check_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    for name, bias in (("bias_ih", bias_ih), ("bias_hh", bias_hh)):
        if bias is not None and bias.any():
            raise ValueError(
                f"{name} must be zero, got {bias[bias != 0][0]} among its entries; the notes' "
                "GRU has no biases"
            )
    return join_notes(weight_ih, weight_hh)


def gru_from_torch(state, *, layer=0):
    r"""Read the weights of one layer from the ``state_dict`` of a torch.nn.GRU.

    PyTorch keeps the old state where its update gate is 1, the notes where theirs is 0. As
    :math:`1 - \sigma(a) = \sigma(-a)`, the rows of z are negated. The result is for
    :func:`gru` with ``reset_after=True``; no weights make PyTorch's GRU that of the notes.

    Parameters
    ----------
    state : dict of str to Tensor or ndarray
        The ``state_dict``.
    layer : int, default=0
        Which layer.

    Returns
    -------
    weight_ih : ndarray of shape (3H, D)
        Weights of the input, the rows of z negated.
    weight_hh : ndarray of shape (3H, H)
        Weights of the state, the rows of z negated.
    bias_ih, bias_hh : ndarray of shape (3H,) or None
        Biases, the entries of z negated; None if the module has none.

    Raises
    ------
    ValueError
        If ``state`` is not that of a plain GRU or has no such layer.
    """
    return tuple(_negate_z(p) for p in read_torch(state, layer, GATES, "GRU"))


def gru_to_torch(weight_ih, weight_hh, bias_ih, bias_hh):
    """Convert weights of :func:`gru` with ``reset_after=True`` for a torch.nn.GRU.

    Parameters
    ----------
    weight_ih : ndarray of shape (3H, D)
        Weights of the input.
    weight_hh : ndarray of shape (3H, H)
        Weights of the state.
    bias_ih, bias_hh : ndarray of shape (3H,) or None
        Biases.

    Returns
    -------
    dict of str to ndarray
        Keys ``weight_ih_l0`` and so on, the rows of z negated.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    check_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    return write_torch(*map(_negate_z, (weight_ih, weight_hh, bias_ih, bias_hh)))


def _negate_z(parameter):
    """Negate the second third of the rows."""
    if parameter is None:
        return None
    H = len(parameter) // 3
    return np.concatenate([parameter[:H], -parameter[H : 2 * H], parameter[2 * H :]])
