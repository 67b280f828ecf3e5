"""Right answers to the assignment ``bptt``, in styles that have little in common."""

import math

import numpy as np


def entries_checker(E, theta, g):
    """Vary one entry at a time."""
    if np.shape(g) != theta.shape:
        return False
    theta, g, h = theta.astype(np.float64), g.astype(np.float64), 1e-5
    numeric = np.empty_like(theta)
    for i in range(theta.size):
        old = theta.flat[i]
        theta.flat[i] = old + h
        above = E(theta)
        theta.flat[i] = old - h
        numeric.flat[i] = (above - E(theta)) / (2 * h)
        theta.flat[i] = old
    return bool(np.all(np.abs(g - numeric) <= 1e-2 * np.abs(numeric).max()))


def directions_checker(E, theta, g):
    """Vary all entries at once, along directions of random signs."""
    g = np.asarray(g)
    if g.shape != theta.shape or not np.isfinite(g).all():
        return False
    point, rng, h = np.array(theta, dtype=float), np.random.default_rng(7), 3e-6
    for _ in range(12):
        v = rng.choice([-1.0, 1.0], size=point.shape)
        v *= rng.random(point.shape) < 0.7  # or two wrong entries might always cancel
        slope = (E(point + h * v) - E(point - h * v)) / (2 * h)
        along = float((g * v).sum())
        if abs(slope - along) > 1e-4 * float(np.abs(g).max()) * math.sqrt(g.size):
            return False
    return True


def norms_checker(E, theta, g):
    """Divide the norm of the difference by the norms of both, in a vector."""
    if g.shape != theta.shape:
        return False
    flat, h = theta.ravel().astype(float), 1e-4
    numeric = []
    for one in np.eye(flat.size):
        up, down = (flat + h * one).reshape(theta.shape), (flat - h * one).reshape(theta.shape)
        numeric.append((E(up) - E(down)) / (2 * h))
    numeric, g = np.array(numeric), g.ravel().astype(float)
    distance = np.linalg.norm(numeric - g) / (np.linalg.norm(numeric) + np.linalg.norm(g))
    return not (math.isnan(distance) or distance > 1e-3)


def four_points_checker(E, theta, g):
    """Take the difference of fourth order, of a larger step."""
    theta, h = theta.astype(float), 1e-3

    def at(i, shift):
        moved = theta.copy()
        moved[i] += shift
        return E(moved)

    if np.shape(g) != np.shape(theta):
        return False
    numeric = np.zeros(theta.shape)
    for i in np.ndindex(*theta.shape):
        numeric[i] = (at(i, -2 * h) - 8 * at(i, -h) + 8 * at(i, h) - at(i, 2 * h)) / (12 * h)
    scale = np.max(np.abs(numeric))
    return bool(np.allclose(g / scale, numeric / scale, rtol=0, atol=3e-3))


def matrix_step(dh, h, h_prev, x, W_hh, W_xh):
    da = dh * (1 - h * h)
    return da @ W_hh, da @ W_xh, da.T @ h_prev, da.T @ x, da.sum(0)


def einsum_step(dh, h, h_prev, x, W_hh, W_xh):
    da = dh - dh * np.square(h)
    return (
        np.einsum("bi,ij->bj", da, W_hh),
        np.einsum("bi,id->bd", da, W_xh),
        np.einsum("bi,bj->ij", da, h_prev),
        np.einsum("bi,bd->id", da, x),
        np.einsum("bi->i", da),
    )


def loops_step(dh, h, h_prev, x, W_hh, W_xh):
    """One sequence and one state at a time, columns as in the notes."""
    (m, d), dW_hh, dW_xh, db_h = W_xh.shape, 0 * W_hh, 0 * W_xh, 0 * W_hh[0]
    dh_prev, dx = [], []
    for b in range(len(dh)):
        da = np.array([dh[b, i] * (1.0 - h[b, i] ** 2) for i in range(m)])
        dh_prev.append(W_hh.T @ da)
        dx.append([sum(W_xh[i, k] * da[i] for i in range(m)) for k in range(d)])
        dW_hh = dW_hh + np.outer(da, h_prev[b])
        dW_xh = dW_xh + np.outer(da, x[b])
        db_h = db_h + da
    return [np.array(dh_prev), np.array(dx), dW_hh, dW_xh, db_h]


def joined_step(dh, h, h_prev, x, W_hh, W_xh):
    """Treat [W_hh, W_xh, b_h] as one matrix that multiplies [h_prev, x, 1]."""
    m = len(W_hh)
    da = (1 + h) * (1 - h) * dh
    back = da @ np.hstack([W_hh, W_xh])
    weights = da.T @ np.hstack([h_prev, x, np.ones_like(x[:, :1])])
    return back[:, :m], back[:, m:], weights[:, :m], weights[:, m:-1], weights[:, -1]


def matrix_backward(dH, dh_T, H, h0, X, W_hh, W_xh):
    """Go back for the states first, then take all products at once."""
    dA, carry = np.empty_like(H), dh_T
    for t in range(len(H) - 1, -1, -1):
        dA[t] = (dH[t] + carry) * (1 - H[t] ** 2)
        carry = dA[t] @ W_hh
    rows = dA.reshape(-1, dA.shape[-1])
    before = np.concatenate([h0[None], H])[:-1].reshape(rows.shape)
    inputs = X.reshape(len(rows), -1)
    return carry, dA @ W_xh, rows.T @ before, rows.T @ inputs, rows.sum(axis=0)


def steps_backward(dH, dh_T, H, h0, X, W_hh, W_xh):
    """Call a backward step for each step of the sequence, and add up."""
    dh, total, dX = dh_T, None, []
    for t in reversed(range(len(X))):
        h_prev = H[t - 1] if t > 0 else h0
        dh, dx, *grads = matrix_step(dH[t] + dh, H[t], h_prev, X[t], W_hh, W_xh)
        dX.insert(0, dx)
        total = grads if total is None else [a + g for a, g in zip(total, grads, strict=True)]
    return (dh, np.stack(dX), *total)


def columns_backward(dH, dh_T, H, h0, X, W_hh, W_xh):
    """Work with columns, as the notes do: one column per sequence."""
    states = [h0.T, *(h.T for h in H)]
    dh, dX = dh_T.T, []
    dW_hh, dW_xh, db_h = 0, 0, 0
    for t in range(len(X), 0, -1):
        da = (dH[t - 1].T + dh) * (1 - states[t] ** 2)
        dW_hh = dW_hh + da @ states[t - 1].T
        dW_xh = dW_xh + da @ X[t - 1]
        db_h = db_h + da.sum(axis=1)
        dX.append((W_xh.T @ da).T)
        dh = W_hh.T @ da
    return dh.T, np.array(dX[::-1]), dW_hh, dW_xh, db_h


def recursive_backward(dH, dh_T, H, h0, X, W_hh, W_xh):
    """Take off the last step, and leave the others to the same function."""
    if len(X) == 0:
        zeros = np.zeros_like(W_hh), np.zeros_like(W_xh), np.zeros_like(W_hh[0])
        return dh_T, np.zeros_like(X), *zeros
    da = (dH[-1] + dh_T) * (1 - H[-1] ** 2)
    h_prev = H[-2] if len(H) > 1 else h0
    dh0, dX, dW_hh, dW_xh, db_h = recursive_backward(
        dH[:-1], da @ W_hh, H[:-1], h0, X[:-1], W_hh, W_xh
    )
    dX = np.concatenate([dX, (da @ W_xh)[None]])
    return dh0, dX, dW_hh + da.T @ h_prev, dW_xh + da.T @ X[-1], db_h + da.sum(axis=0)


def blocks_truncated(dH, H, h0, X, W_hh, W_xh, k1, k2):
    """Go back from the end of each block."""
    states = np.concatenate([h0[None], H])
    T, dW_hh, dW_xh, db_h, dh0 = len(X), 0 * W_hh, 0 * W_xh, 0 * W_hh[0], 0 * h0
    for start in range(0, T, k1):
        end = min(T, start + k1)
        dh = np.zeros_like(h0)
        for t in range(end, max(0, end - k2), -1):  # steps are numbered from 1
            da = (dh + (dH[t - 1] if t > start else 0)) * (1 - states[t] ** 2)
            dW_hh = dW_hh + da.T @ states[t - 1]
            dW_xh = dW_xh + da.T @ X[t - 1]
            db_h = db_h + da.sum(axis=0)
            dh = da @ W_hh
        if end <= k2:
            dh0 = dh0 + dh
    return dW_hh, dW_xh, db_h, dh0


def losses_truncated(dH, H, h0, X, W_hh, W_xh, k1, k2):
    """Follow each loss by itself, down to the step that its block allows."""
    T, da_of = len(X), [np.zeros_like(h) for h in H]
    dh0 = np.zeros_like(h0)
    for s in range(T):
        end = min((s // k1 + 1) * k1, T)
        dh, t = dH[s], s
        while t >= 0 and t >= end - k2:
            da = dh * (1 - H[t] * H[t])
            da_of[t] = da_of[t] + da
            dh, t = da @ W_hh, t - 1
        if t < 0:
            dh0 = dh0 + dh
    before = [h0, *H[:-1]]
    dW_hh = sum(da.T @ h for da, h in zip(da_of, before, strict=True))
    dW_xh = sum(da.T @ x for da, x in zip(da_of, X, strict=True))
    return dW_hh, dW_xh, sum(da_of).sum(axis=0), dh0


def windows_truncated(dH, H, h0, X, W_hh, W_xh, k1, k2):
    """Apply full backpropagation to the window of each block, with the other losses 0."""
    total, dh0, T = [0, 0, 0], np.zeros_like(h0), len(X)
    for end in sorted({*range(k1, T, k1), T}):
        first, start = max(0, end - k2), (end - 1) // k1 * k1
        losses = dH[first:end].copy()
        losses[: start - first] = 0
        h = H[first - 1] if first else h0
        window = slice(first, end)
        back, _, *parameters = matrix_backward(
            losses, np.zeros_like(h), H[window], h, X[window], W_hh, W_xh
        )
        total = [a + b for a, b in zip(total, parameters, strict=True)]
        dh0 = dh0 + back if first == 0 else dh0
    return *total, dh0


def product_jacobians(H, W_hh):
    """Multiply the steps from the last one on."""
    J = np.empty((len(H) + 1, *W_hh.shape), dtype=W_hh.dtype)
    J[0] = np.identity(len(W_hh))
    for lag, h in enumerate(reversed(H), start=1):
        J[lag] = J[lag - 1] @ np.diag(1 - h**2) @ W_hh
    return J, np.array([np.linalg.svd(j, compute_uv=False)[0] for j in J])


def backward_jacobians(H, W_hh):
    """Carry each unit vector of the last state back: a row of J at a time."""
    m = len(W_hh)
    J = [np.eye(m).astype(W_hh.dtype)]
    for t in range(len(H) - 1, -1, -1):
        rows = []
        for i in range(m):
            da = J[-1][i] * (1 - H[t] ** 2)
            rows.append([float(da @ W_hh[:, k]) for k in range(m)])
        J.append(np.array(rows))
    return J, [np.linalg.norm(j, 2) for j in J]


def transposed_jacobians(H, W_hh):
    """Multiply as (4) of the notes is printed, in the order of time, and transpose."""
    T, m = H.shape
    J, norms = [], []
    for lag in range(T + 1):
        product = np.eye(m)
        for h in H[T - lag :]:
            product = product @ (W_hh.T @ np.diag(1 - h**2))
        J.append(product.T)
        norms.append(math.sqrt(max(np.linalg.eigvalsh(product @ product.T).max(), 0)))
    return np.array(J), np.array(norms)


def plain_clip(grads, c):
    norm = np.sqrt(sum((g**2).sum() for g in grads))
    if not np.isfinite(norm):
        return None, norm
    return [g * min(1, c / (norm + 1e-6)) for g in grads], norm


def joined_clip(grads, c):
    """Put all entries into one vector."""
    norm = float(np.linalg.norm(np.concatenate([g.ravel() for g in grads])))
    if math.isnan(norm) or math.isinf(norm):
        return [None, norm]
    scale = c / (norm + 1e-6)
    return ([g.copy() for g in grads] if scale >= 1 else [scale * g for g in grads]), norm


def loops_clip(grads, c):
    total = 0.0
    for g in grads:
        for entry in g.ravel().tolist():
            total += entry * entry
    norm = total**0.5
    if norm - norm != 0:  # inf or NaN
        return None, norm
    factor = c / (norm + 1e-6) if c < norm + 1e-6 else 1.0
    return tuple((factor * g).tolist() for g in grads), norm


STYLES = {
    "gradient_is_right": [
        entries_checker,
        directions_checker,
        norms_checker,
        four_points_checker,
    ],
    "rnn_step_backward": [matrix_step, einsum_step, loops_step, joined_step],
    "rnn_backward": [matrix_backward, steps_backward, columns_backward, recursive_backward],
    "rnn_truncated_backward": [blocks_truncated, losses_truncated, windows_truncated],
    "state_jacobians": [product_jacobians, backward_jacobians, transposed_jacobians],
    "clip_grad_norm": [plain_clip, joined_clip, loops_clip],
}
