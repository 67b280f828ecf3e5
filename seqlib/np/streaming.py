"""Attention whose memory grows linearly with the length: the weights are never all there.

A block of queries meets all keys, so its weights are a matrix of ``block`` rows; it is used
and overwritten by the next block. The result is exact, and the backward pass computes each
block's weights again instead of keeping them.
"""

import math

import numpy as np

from seqlib._check import check_positive, check_queries_and_keys, check_values

__all__ = ["streaming_attention", "streaming_attention_backward"]

_WEIGHTS = 2**18  # of a block: fewer make small products, more leave the processor's caches


def streaming_attention(q, k, v, *, causal=False, block=None):
    r"""Scaled dot-product attention, computed for a block of queries at a time.

    .. math:: Y = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V

    Equal to :func:`scaled_dot_product_attention` with no mask or with ``causal_mask(T, S)``.
    Besides the output it needs room for ``block * S`` weights, not for ``T * S``; where
    ``causal`` is set, the keys that a whole block must not see are skipped.

    Parameters
    ----------
    q : ndarray of shape (..., T, K)
        Queries.
    k : ndarray of shape (..., S, K)
        Keys.
    v : ndarray of shape (..., S, D)
        Values.
    causal : bool, default=False
        Whether query i sees only the keys j <= i + S - T.
    block : int, optional
        Number of queries that are computed together. By default 128 where ``causal`` is set,
        since all of a block's rows meet the keys of its last one, and else as many as have
        2**18 weights together, 1 MiB in single precision.

    Returns
    -------
    ndarray of shape (..., T, D)
        One average of values per query; zeros for a query that sees no key (T > S).

    Raises
    ------
    ValueError
        If ``q``, ``k`` and ``v`` do not fit, or if ``block`` is not a positive integer.

    References
    ----------
    Lecture notes, section 8. Rabe and Staats (2021), "Self-attention Does Not Need O(n^2)
    Memory", arXiv:2112.05682.
    """
    block = _checked(q, k, v, causal, block)
    y = np.zeros((*q.shape[:-1], v.shape[-1]), np.result_type(q, k, v))
    room = np.empty(min(block, q.shape[-2]) * k.shape[-2], y.dtype)
    for head in np.ndindex(q.shape[:-2]):
        queries = q[head] / math.sqrt(q.shape[-1])
        shift = _may_overflow(queries, k[head])
        for rows, seen in _blocks(q.shape[-2], k.shape[-2], causal, block):
            e, scale = _exponentials(queries, k[head], rows, seen, causal, shift, room)
            np.matmul(e, v[head][:seen], out=y[head][rows])
            y[head][rows] *= scale
    return y


def streaming_attention_backward(dy, q, k, v, *, causal=False, block=None):
    """Vector-Jacobian product of :func:`streaming_attention`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    q, k, v, causal, block
        The arguments of the forward call.

    Returns
    -------
    dq : ndarray of shape (..., T, K)
        Gradient with respect to ``q``.
    dk : ndarray of shape (..., S, K)
        Gradient with respect to ``k``.
    dv : ndarray of shape (..., S, D)
        Gradient with respect to ``v``.
    """
    block = _checked(q, k, v, causal, block)
    dtype = np.result_type(q, k, v)
    dq, dk, dv = (np.zeros(array.shape, dtype) for array in (q, k, v))
    room, other_room = np.empty((2, min(block, q.shape[-2]) * k.shape[-2]), dtype)
    root = math.sqrt(q.shape[-1])
    for head in np.ndindex(q.shape[:-2]):
        queries = q[head] / root
        shift = _may_overflow(queries, k[head])
        for rows, seen in _blocks(q.shape[-2], k.shape[-2], causal, block):
            # The weights are a = e * scale. Scaling the narrow factors of the products by
            # rows saves a pass over e.
            e, scale = _exponentials(queries, k[head], rows, seen, causal, shift, room)
            dv[head][:seen] += e.T @ (dy[head][rows] * scale)
            da = other_room[: e.size].reshape(e.shape)
            np.matmul(dy[head][rows], v[head][:seen].T, out=da)
            da -= np.einsum("ts,ts->t", da, e)[:, None] * scale
            da *= e  # the gradient of the scores is da * scale
            np.matmul(da, k[head][:seen], out=dq[head][rows])
            dq[head][rows] *= scale / root
            dk[head][:seen] += da.T @ (queries[rows] * scale)
    return dq, dk, dv


def _checked(q, k, v, causal, block):
    """Check the arguments and return the number of queries in a block."""
    check_queries_and_keys(q, k)
    check_values(v, k)
    if block is None:
        return 128 if causal else max(1, _WEIGHTS // max(1, k.shape[-2]))
    check_positive("block", block)
    return block


def _blocks(T, S, causal, block):
    """Yield the rows of each block, and how many keys its last row may see."""
    for start in range(0, T, block):
        stop = min(start + block, T)
        seen = min(stop + S - T, S) if causal else S
        if seen > 0:
            yield slice(start, stop), seen


def _may_overflow(queries, keys):
    """Whether the largest score must be taken off, which costs two passes over the weights.

    No score exceeds the product of the longest query and the longest key. Where that is below
    50, every exponential and every sum of them is a normal number of single precision.
    """
    if queries.dtype == np.float16:
        return True
    squares = [np.einsum("ts,ts->t", rows, rows).max(initial=0) for rows in (queries, keys)]
    return not squares[0] * squares[1] < 50**2  # so that NaN counts as too large


def _exponentials(queries, keys, rows, seen, causal, shift, room):
    """Return the exponentials of the scores of some rows, and 1 / their sum, as a column.

    The exponentials are written into ``room``; a row that sees no key has zeros and 1.
    ``shift`` says whether they are those of the distances to the row's largest score.
    """
    count = rows.stop - rows.start
    e = room[: count * seen].reshape(count, seen)
    np.matmul(queries[rows], keys[:seen].T, out=e)
    if causal:
        # Row r of the block sees seen - count + r + 1 keys: block what is right of that.
        width = min(count, seen)
        future = ~np.tri(count, width, k=width - count, dtype=bool)
        e[:, seen - width :][future] = -np.inf
    if shift:
        largest = e.max(axis=-1, keepdims=True)
        e -= np.where(np.isneginf(largest), 0, largest)  # -inf - (-inf) would be NaN
    np.exp(e, out=e)
    total = e @ np.ones((seen, 1), e.dtype)  # faster than e.sum(axis=-1)
    return e, 1 / np.where(total == 0, 1, total)
