"""LSTM weights between this library, the notes' matrices on ``[h, x]``, and PyTorch."""

import numpy as np

from seqlib._check import check_shape
from seqlib._recurrent import check_weights
from seqlib.np._packing import join_notes, read_torch, split_notes, write_torch

__all__ = ["lstm_from_notes", "lstm_from_torch", "lstm_to_notes", "lstm_to_torch"]

GATES = "i, f, g, o"


def lstm_from_notes(W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    r"""Pack the notes' LSTM matrices for :func:`lstm`.

    The notes multiply one matrix by the state and the input joined to one vector; its first H
    columns belong to the state:

    .. math:: W_f [h, x] = W_{hf} h + W_{if} x

    Parameters
    ----------
    W_f : ndarray of shape (H, H + D)
        Matrix of the forget gate.
    b_f : ndarray of shape (H,)
        Bias of the forget gate.
    W_i : ndarray of shape (H, H + D)
        Matrix of the input gate.
    b_i : ndarray of shape (H,)
        Bias of the input gate.
    W_C : ndarray of shape (H, H + D)
        Matrix of the candidate.
    b_C : ndarray of shape (H,)
        Bias of the candidate.
    W_o : ndarray of shape (H, H + D)
        Matrix of the output gate.
    b_o : ndarray of shape (H,)
        Bias of the output gate.

    Returns
    -------
    weight_ih : ndarray of shape (4H, D)
        Columns of the input, rows in the order i, f, C, o.
    weight_hh : ndarray of shape (4H, H)
        Columns of the state.
    bias_ih : ndarray of shape (4H,)
        The biases.
    bias_hh : ndarray of shape (4H,)
        Zeros: the notes have one bias where PyTorch has two.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    matrices = {"W_i": W_i, "W_f": W_f, "W_C": W_C, "W_o": W_o}
    weight_ih, weight_hh = split_notes(matrices)
    for name, bias in (("b_i", b_i), ("b_f", b_f), ("b_C", b_C), ("b_o", b_o)):
        check_shape(name, bias, (weight_hh.shape[1],))
    bias_ih = np.concatenate([b_i, b_f, b_C, b_o])
    return weight_ih, weight_hh, bias_ih, np.zeros_like(bias_ih)


def lstm_to_notes(weight_ih, weight_hh, bias_ih, bias_hh):
    """Unpack the weights of :func:`lstm` into the notes' matrices on ``[h, x]``.

    Parameters
    ----------
    weight_ih : ndarray of shape (4H, D)
        Weights of the input, stacked as i, f, g, o.
    weight_hh : ndarray of shape (4H, H)
        Weights of the state, stacked alike.
    bias_ih, bias_hh : ndarray of shape (4H,) or None
        Biases; the notes' bias is their sum.

    Returns
    -------
    W_f : ndarray of shape (H, H + D)
        Matrix of the forget gate.
    b_f : ndarray of shape (H,)
        Bias of the forget gate.
    W_i : ndarray of shape (H, H + D)
        Matrix of the input gate.
    b_i : ndarray of shape (H,)
        Bias of the input gate.
    W_C : ndarray of shape (H, H + D)
        Matrix of the candidate.
    b_C : ndarray of shape (H,)
        Bias of the candidate.
    W_o : ndarray of shape (H, H + D)
        Matrix of the output gate.
    b_o : ndarray of shape (H,)
        Bias of the output gate.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    check_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    W_i, W_f, W_C, W_o = join_notes(weight_ih, weight_hh)
    bias = sum(
        (b for b in (bias_ih, bias_hh) if b is not None),
        start=np.zeros(len(weight_ih), weight_ih.dtype),
    )
    b_i, b_f, b_C, b_o = np.split(bias, 4)
    return W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o


def lstm_from_torch(state, *, layer=0):
    """Read the weights of one layer from the ``state_dict`` of a torch.nn.LSTM.

    Parameters
    ----------
    state : dict of str to Tensor or ndarray
        The ``state_dict``.
    layer : int, default=0
        Which layer.

    Returns
    -------
    weight_ih : ndarray of shape (4H, D)
        Weights of the input, as PyTorch stores them.
    weight_hh : ndarray of shape (4H, H)
        Weights of the state.
    bias_ih, bias_hh : ndarray of shape (4H,) or None
        Biases; None if the module has none.

    Raises
    ------
    ValueError
        If ``state`` is not that of a plain LSTM or has no such layer.
    """
    return read_torch(state, layer, GATES, "LSTM")


def lstm_to_torch(weight_ih, weight_hh, bias_ih, bias_hh):
    """Name the weights of :func:`lstm` as the ``state_dict`` of a torch.nn.LSTM does.

    Parameters
    ----------
    weight_ih : ndarray of shape (4H, D)
        Weights of the input.
    weight_hh : ndarray of shape (4H, H)
        Weights of the state.
    bias_ih, bias_hh : ndarray of shape (4H,) or None
        Biases.

    Returns
    -------
    dict of str to ndarray
        Keys ``weight_ih_l0`` and so on. To load it,
        ``{name: torch.tensor(array) for name, array in state.items()}``.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    check_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates=GATES)
    return write_torch(weight_ih, weight_hh, bias_ih, bias_hh)
