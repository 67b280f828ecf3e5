"""From token ids to vectors: the one-hot product and its lookup."""

import numpy as np

from seqlib._check import check_ids, check_positive, check_shape

__all__ = ["embedding", "embedding_backward", "one_hot"]

# Up to this many vocabulary entries a matrix product is the faster way to add up rows.
_SMALL_VOCABULARY = 512


def one_hot(ids, V):
    """Return the one-hot vectors of token ids: ``one_hot([2, 0], 3)`` is ``[[0,0,1],[1,0,0]]``.

    Parameters
    ----------
    ids : ndarray of int of shape (...)
        Token ids, each in ``[0, V)``.
    V : int
        Size of the vocabulary.

    Returns
    -------
    ndarray of shape (..., V)
        Zeros, and a 1 in place ``ids[...]`` of each row. Of dtype float32, which holds 0 and 1
        exactly, so that a product with float32 or float64 weights keeps their dtype.

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
    return (ids[..., None] == np.arange(V)).astype(np.float32)


def embedding(ids, weight):
    r"""Look up one row of ``weight`` per token id.

    .. math:: x_i = E^\top e_{t_i}

    The product with a one-hot vector picks a row, so the row is picked by its index:
    the result equals ``one_hot(ids, V) @ weight`` without the V multiplications per number.

    Parameters
    ----------
    ids : ndarray of int of shape (...)
        Token ids, each in ``[0, V)``.
    weight : ndarray of shape (V, D)
        The embedding matrix E: one row per entry of the vocabulary.

    Returns
    -------
    ndarray of shape (..., D)
        The rows of ``weight`` that belong to the ids.

    Raises
    ------
    ValueError
        If ``weight`` is not a matrix, or an id is not an integer in ``[0, V)`` (a negative id
        is refused; NumPy's own indexing would count it from the end).

    References
    ----------
    Lecture notes, the equation for x in section 9, "Tokenization and Embedding".
    """
    check_shape("weight", weight, ("V", "D"))
    check_ids("ids", ids, weight.shape[0])
    return weight[ids]


def embedding_backward(dy, ids, weight):
    r"""Vector-Jacobian product of :func:`embedding`.

    A token that occurs several times receives the sum of its gradients:

    .. math:: dE_v = \sum_{i : t_i = v} dy_i

    ``dweight[ids] += dy`` would keep only the last of them.

    Parameters
    ----------
    dy : ndarray of shape (..., D)
        Gradient of the loss with respect to the output.
    ids, weight
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (V, D)
        Gradient with respect to ``weight``; zero for tokens that do not occur.
    """
    V, D = weight.shape
    rows, dy = ids.reshape(-1), dy.reshape(-1, D)
    add_rows = _add_rows_by_product if V <= _SMALL_VOCABULARY else _add_rows_by_sorting
    return add_rows(dy, rows, V).astype(weight.dtype, copy=False)


def _add_rows_by_product(dy, rows, V):
    """Add up the rows of equal id as a matrix product: row v is the sum of e_i[v] * dy_i."""
    return one_hot(rows, V).T @ dy


def _add_rows_by_sorting(dy, rows, V):
    """Add up the rows of equal id by bringing them together; needs no (V, tokens) matrix."""
    total = np.zeros((V, dy.shape[1]), dy.dtype)
    order = np.argsort(rows, kind="stable")
    found, starts = np.unique(rows[order], return_index=True)
    total[found] = np.add.reduceat(dy[order], starts, axis=0)
    return total
