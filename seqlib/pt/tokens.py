"""From token ids to vectors: the one-hot product and its lookup."""

import torch

from seqlib._check import check_ids, check_positive, check_shape

__all__ = ["embedding", "one_hot"]


def one_hot(ids, V):
    """Return the one-hot vectors of token ids; twin of :func:`seqlib.np.one_hot`.

    Parameters
    ----------
    ids : Tensor of int of shape (...)
        Token ids, each in ``[0, V)``.
    V : int
        Size of the vocabulary.

    Returns
    -------
    Tensor of shape (..., V)
        Zeros, and a 1 in place ``ids[...]`` of each row, of dtype float32
        (:func:`torch.nn.functional.one_hot` returns integers, which do not multiply weights).

    Raises
    ------
    ValueError
        If ``V`` is not positive, or an id is not an integer in ``[0, V)``.

    References
    ----------
    Lecture notes, the vectors e of section 9, "Tokenization and Embedding".
    """
    check_positive("V", V)
    check_ids("ids", ids, V)
    return (ids[..., None] == torch.arange(V, device=ids.device)).float()


def embedding(ids, weight):
    r"""Look up one row of ``weight`` per token id; twin of :func:`seqlib.np.embedding`.

    .. math:: x_i = E^\top e_{t_i}

    Autograd adds up the gradients of a token that occurs several times.

    Parameters
    ----------
    ids : Tensor of int of shape (...)
        Token ids, each in ``[0, V)``.
    weight : Tensor of shape (V, D)
        The embedding matrix E: one row per entry of the vocabulary.

    Returns
    -------
    Tensor of shape (..., D)
        The rows of ``weight`` that belong to the ids.

    Raises
    ------
    ValueError
        If ``weight`` is not a matrix, or an id is not an integer in ``[0, V)`` (a negative id
        is refused; plain indexing would count it from the end).

    References
    ----------
    Lecture notes, the equation for x in section 9, "Tokenization and Embedding".
    """
    check_shape("weight", weight, ("V", "D"))
    check_ids("ids", ids, weight.shape[0])
    return weight[ids.long()]
