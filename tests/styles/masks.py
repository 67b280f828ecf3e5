"""Right answers to the assignment ``masks``, in styles that have little in common."""

import itertools
import math

import numpy as np


def compared_padding(lengths, n, side="right"):
    """Number the positions from the side where the tokens are."""
    from_token_side = np.arange(n) if side == "right" else np.arange(n)[::-1]
    M = np.zeros((len(lengths), 1, n))
    M[:, 0][from_token_side[None] >= lengths[:, None]] = -np.inf
    return M


def loops_padding(lengths, n, side="right"):
    rows = []
    for length in lengths.tolist():
        tokens, padding = [0.0] * length, [-math.inf] * (n - length)
        rows.append([tokens + padding if side == "right" else padding + tokens])
    return rows


def logarithm_padding(lengths, n, side="right"):
    """Take the logarithm of a mask of 0 and 1."""
    keep = (np.cumsum(np.ones((len(lengths), 1, n)), axis=-1) <= lengths[:, None, None]) * 1.0
    with np.errstate(divide="ignore"):
        return np.log(keep if side == "right" else np.flip(keep, axis=-1))


def compared_causal(n_q, n_k, past):
    position = past + np.arange(n_q)
    return np.where(np.arange(n_k) > position[:, None], -np.inf, 0)


def triangle_causal(n_q, n_k, past):
    M = np.full((n_q, n_k), -np.inf)
    return np.triu(M, k=past + 1) if n_k > past + 1 else np.zeros((n_q, n_k))


def loops_causal(n_q, n_k, past):
    return [[0.0 if j <= past + i else -math.inf for j in range(n_k)] for i in range(n_q)]


def rows_causal(n_q, n_k, past):
    """Copy rows of the mask of all places."""
    whole = np.where(np.tri(max(n_k, past + n_q), n_k, dtype=bool), 0.0, -np.inf)
    return whole[past : past + n_q]


def summed_masks(masks):
    added = [np.where(m, 0, -np.inf) if m.dtype == bool else m for m in masks]
    M = sum(added[1:], start=added[0])
    return M, np.isneginf(M).all(-1)


def booleans_masks(masks):
    """Keep what is blocked apart from the finite numbers."""
    blocked, bias = np.zeros((1, 1), bool), np.zeros((1, 1))
    for m in masks:
        closed = ~m if m.dtype.kind == "b" else np.isinf(m)
        blocked = blocked | closed
        bias = bias + np.where(closed, 0, m if m.dtype.kind == "f" else 0)
    M = np.where(blocked, -np.inf, bias)
    return [M, np.logical_and.reduce(blocked & np.ones(M.shape, bool), axis=-1)]


def stacked_masks(masks):
    stacked = []
    for m in np.broadcast_arrays(*masks):
        filled = np.zeros(m.shape)
        if m.dtype == bool:
            filled[~m] = -np.inf
        else:
            filled += m
        stacked.append(filled)
    M = np.add.reduce(stacked)
    return M, M.max(axis=-1) == -np.inf


def selected_softmax(S, M):
    blocked = np.broadcast_to(np.isinf(M), S.shape)
    Z = np.where(blocked, -np.inf, S) + np.where(np.isinf(M), 0, M)
    top = Z.max(-1, keepdims=True)
    E = np.exp(Z - np.where(np.isinf(top), 0, top))
    return E / np.maximum(E.sum(-1, keepdims=True), 1e-30)


def loops_softmax(S, M):
    """Go through the rows, and within each through its allowed keys."""
    M, A = np.broadcast_to(M, S.shape), np.zeros(S.shape)
    for row in np.ndindex(S.shape[:-1]):
        keys = [j for j in range(S.shape[-1]) if math.isfinite(M[row][j])]
        sums = [float(S[row][j]) + float(M[row][j]) for j in keys]
        powers = [math.exp(s - max(sums)) for s in sums]
        for j, power in zip(keys, powers, strict=True):
            A[(*row, j)] = power / sum(powers)
    return A


def logarithmic_softmax(S, M):
    """Subtract the logarithm of the sum; rows without a key are left out from the start."""
    M = np.broadcast_to(M, S.shape)
    A, used = np.zeros_like(S), ~(np.isneginf(M).all(axis=-1))
    Z = np.where(np.isneginf(M[used]), -np.inf, np.nan_to_num(S[used]) + M[used])
    A[used] = np.exp(Z - np.logaddexp.reduce(Z, axis=-1, keepdims=True))
    return A


def sorted_softmax(S, M):
    """Subtract the largest score by sorting, and divide only where there is a sum."""
    allowed = np.isfinite(M) & np.ones(S.shape, bool)
    Z = np.where(allowed, S, 0) + np.where(np.isfinite(M), M, 0)
    lowest = np.where(allowed, Z, -1e30)
    E = np.exp(np.minimum(Z - np.sort(lowest, axis=-1)[..., -1:], 0)) * allowed
    total = E.sum(axis=-1, keepdims=True)
    return np.divide(E, total, out=np.zeros_like(E), where=total > 0)


def matrix_backward(dA, S, M):
    """Sum over the axes that broadcasting has added."""
    A = selected_softmax(S, M)
    dS = dA * A - A * np.sum(dA * A, axis=-1, keepdims=True)
    front = S.ndim - M.ndim
    axes = [i for i in range(S.ndim) if i < front or M.shape[i - front] < S.shape[i]]
    return dS, dS.sum(axis=tuple(axes), keepdims=True).reshape(M.shape)


def jacobian_backward(dA, S, M):
    """Multiply each row by the Jacobian of its softmax."""
    A = logarithmic_softmax(S, M)
    J = np.einsum("...j,jl->...jl", A, np.eye(A.shape[-1])) - A[..., :, None] * A[..., None, :]
    dS = np.einsum("...j,...jl->...l", dA, J)
    dM, view = np.zeros(M.shape), None
    view = np.broadcast_to(np.arange(dM.size).reshape(M.shape), S.shape)
    np.add.at(dM.reshape(-1), view.ravel(), dS.ravel())
    return dS, dM


def loops_backward(dA, S, M):
    A, dS = loops_softmax(S, M), np.zeros(S.shape)
    shape = (1,) * (S.ndim - M.ndim) + M.shape
    dM = np.zeros(shape)
    for row in np.ndindex(S.shape[:-1]):
        mean = sum(float(a) * float(d) for a, d in zip(A[row], dA[row], strict=True))
        for j in range(S.shape[-1]):
            dS[(*row, j)] = A[row][j] * (dA[row][j] - mean)
            place = (i if n > 1 else 0 for i, n in zip((*row, j), shape, strict=True))
            dM[tuple(place)] += dS[(*row, j)]
    return [dS, dM.reshape(M.shape)]


def cut_leak_test(model, ids, rng):
    """Read each sequence alone up to each step, and look at its last logits."""
    B, T = ids.shape
    whole = model(ids)
    for b, n in itertools.product(range(B), range(T)):
        last = model(ids[[b], : n + 1])[0, n]
        if not np.allclose(last, whole[b, n], rtol=0, atol=1e-5):
            return True
    return False


def replaced_leak_test(model, ids, rng):
    """Exchange one token after another; then shorten all sequences together."""
    B, T = ids.shape
    whole = model(ids)
    for b, t in np.ndindex(B, T):
        other = ids.copy()
        other[b, t] = (ids[b, t] + rng.integers(1, whole.shape[-1])) % whole.shape[-1]
        moved = np.abs(model(other) - whole).max(axis=-1) > 1e-5
        moved[b, t:] = False
        if moved.any():
            return True
    return any(np.abs(model(ids[:, :n]) - whole[:, :n]).max() > 1e-5 for n in range(1, T))


def three_leak_tests(model, ids, rng):
    """Test the future, the other sequences and the length one after the other."""
    B, T = ids.shape
    whole, V = model(ids), model(ids).shape[-1]
    found = []
    for t in range(1, T):
        later = np.concatenate([ids[:, :t], (ids[:, t:] + 1 + t % (V - 1)) % V], axis=1)
        found.append(np.abs(model(later)[:, :t] - whole[:, :t]).max())
        found.append(np.abs(model(ids[:, :t]) - whole[:, :t]).max())
    for b in range(B):
        found.append(np.abs(model(ids[b : b + 1])[0] - whole[b]).max())
    return bool(max(found) > 3e-6)


def products_cost(B, n_q, n_k, d, H, F, itemsize):
    """Write down each product as the shapes of its factors."""

    def flops(count, m, k, n):
        return 2 * count * m * k * n

    d_h, new = d // H, B * n_q
    return {
        "projections": sum(flops(1, new, d, d) for _ in range(4)),
        "attention": flops(B * H, n_q, d_h, n_k) + flops(B * H, n_q, n_k, d_h),
        "feed_forward": flops(1, new, d, F) + flops(1, new, F, d),
        "score_bytes": itemsize * math.prod((B, H, n_q, n_k)),
        "cache_bytes": itemsize * 2 * math.prod((B, H, n_k, d_h)),
    }


def closed_cost(B, n_q, n_k, d, H, F, itemsize):
    return dict(
        score_bytes=B * n_q * H * n_k * itemsize,
        cache_bytes=B * n_k * d * itemsize * 2,
        projections=8 * B * n_q * d**2,
        attention=4 * B * n_q * n_k * d,
        feed_forward=4 * B * n_q * d * F,
    )


def arrays_cost(B, n_q, n_k, d, H, F, itemsize):
    """Ask NumPy for the sizes, in floats where a count would do."""
    token, scores = np.float64(B * n_q), np.empty((B, H, n_q, n_k), np.int8)
    cache = np.empty((2, B, n_k, d), np.int8)
    return {
        "projections": token * 8 * d * d,
        "attention": np.float64(2 * 2 * scores.size) * (d // H),
        "feed_forward": token * 4 * d * F,
        "score_bytes": np.int64(scores.nbytes * itemsize),
        "cache_bytes": np.int64(cache.nbytes * itemsize),
    }


STYLES = {
    "padding_mask": [compared_padding, loops_padding, logarithm_padding],
    "causal_mask": [compared_causal, triangle_causal, loops_causal, rows_causal],
    "combine_masks": [summed_masks, booleans_masks, stacked_masks],
    "masked_softmax": [
        selected_softmax,
        loops_softmax,
        logarithmic_softmax,
        sorted_softmax,
    ],
    "masked_softmax_backward": [matrix_backward, jacobian_backward, loops_backward],
    "leak_test": [cut_leak_test, replaced_leak_test, three_leak_tests],
    "layer_cost": [products_cost, closed_cost, arrays_cost],
}
