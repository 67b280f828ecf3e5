"""Right answers to the assignment ``gates``, in styles that have little in common."""

import itertools
import math

import numpy as np
import torch


def logistic(a):
    return np.where(a >= 0, 1 / (1 + np.exp(-np.abs(a))), 1 - 1 / (1 + np.exp(-np.abs(a))))


def weighted(row, vector, bias=0.0):
    """Return the sum of one unit, entry by entry."""
    return sum((float(w) * float(v) for w, v in zip(row, vector, strict=True)), float(bias))


# gates.lstm_step


def rows_lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    z = np.concatenate([h_prev, x], axis=1)
    f, i, o = (logistic(z @ W.T + b) for W, b in ((W_f, b_f), (W_i, b_i), (W_o, b_o)))
    C = f * C_prev + i * np.tanh(z @ W_C.T + b_C)
    return o * np.tanh(C), C


def written_lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    """Write the sigmoid as it stands: it warns of an overflow, and is right."""
    z = np.hstack((h_prev, x))
    f = 1 / (1 + np.exp(-(z.dot(W_f.T) + b_f)))
    i = 1 / (1 + np.exp(-(z.dot(W_i.T) + b_i)))
    o = 1 / (1 + np.exp(-(z.dot(W_o.T) + b_o)))
    C = np.multiply(f, C_prev) + np.multiply(i, np.tanh(z.dot(W_C.T) + b_C))
    return [np.multiply(o, np.tanh(C)), C]


def packed_lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    """Stack the matrices, and split the product of columns instead."""
    z = np.vstack([h_prev.T, x.T])
    b = np.concatenate([b_f, b_i, b_o, b_C])[:, None]
    sums = np.vstack([W_f, W_i, W_o, W_C]) @ z + b
    H = len(b_f)
    f, i, o = np.split(logistic(sums[: 3 * H]), 3)
    C = f * C_prev.T + i * np.tanh(sums[3 * H :])
    return (o * np.tanh(C)).T, C.T


def loops_lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    h, C = np.zeros_like(C_prev), np.zeros_like(C_prev)
    for b, j in itertools.product(*map(range, C.shape)):
        z = [*h_prev[b], *x[b]]
        f, i, o = (
            0.5 + 0.5 * math.tanh(weighted(W[j], z, bias[j]) / 2)
            for W, bias in ((W_f, b_f), (W_i, b_i), (W_o, b_o))
        )
        C[b, j] = f * C_prev[b, j] + i * math.tanh(weighted(W_C[j], z, b_C[j]))
        h[b, j] = o * math.tanh(C[b, j])
    return h, C


def torch_lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    W = torch.from_numpy(np.stack([W_f, W_i, W_C, W_o]))
    b = torch.from_numpy(np.stack([b_f, b_i, b_C, b_o]))
    z = torch.cat([torch.from_numpy(np.array(h_prev)), torch.from_numpy(np.array(x))], dim=-1)
    a = torch.einsum("ghz,bz->gbh", W, z) + b[:, None]
    f, i, o = torch.sigmoid(a[[0, 1, 3]])
    C = f * torch.from_numpy(np.array(C_prev)) + i * a[2].tanh()
    return o * C.tanh(), C


# gates.lstm_sequence


def lists_sequence(X, h_0, C_0, *weights):
    states = [(h_0, C_0)]
    for x in np.moveaxis(X, 1, 0):
        states.append(rows_lstm(x, *states[-1], *weights))
    h, C = zip(*states[1:], strict=True)
    return np.stack(h, axis=1), np.stack(C, axis=1)


def arrays_sequence(X, h_0, C_0, *weights):
    """Fill arrays that have room for the initial states at step 0."""
    B, T, _ = X.shape
    h, C = (np.empty((B, T + 1, h_0.shape[1]), dtype=X.dtype) for _ in range(2))
    h[:, 0], C[:, 0] = h_0, C_0
    for t in range(T):
        h[:, t + 1], C[:, t + 1] = packed_lstm(X[:, t], h[:, t], C[:, t], *weights)
    return h[:, 1:], C[:, 1:]


def sums_of_x_sequence(X, h_0, C_0, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    """Multiply all inputs at once; only the part of the state is left for the loop."""
    H = h_0.shape[1]
    W = np.stack([W_f, W_i, W_C, W_o])
    from_x = np.einsum("ghd,btd->gbth", W[..., H:], X)
    from_x = from_x + np.stack([b_f, b_i, b_C, b_o])[:, None, None]
    h, C = h_0.copy(), C_0.copy()
    hidden, cells = np.zeros_like(from_x[0]), np.zeros_like(from_x[0])
    for t in range(X.shape[1]):
        a = from_x[:, :, t] + np.einsum("ghk,bk->gbh", W[..., :H], h)
        f, i, o = logistic(a[[0, 1, 3]])
        C *= f
        C += i * np.tanh(a[2])
        h[...] = o * np.tanh(C)
        hidden[:, t], cells[:, t] = h, C
    return hidden, cells


def recursive_sequence(X, h_0, C_0, *weights):
    h, C = torch_lstm(X[:, 0], h_0, C_0, *weights)
    h, C = h.numpy(), C.numpy()
    if X.shape[1] == 1:
        return h[:, None], C[:, None]
    rest = recursive_sequence(X[:, 1:], h, C, *weights)
    return [np.concatenate([s[:, None], r], axis=1) for s, r in zip((h, C), rest, strict=True)]


# gates.lstm_step_backward


def rows_lstm_backward(dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o):
    H = h_prev.shape[1]
    z = np.concatenate([h_prev, x], axis=1)
    t = np.tanh(C)
    total = dC + dh * o * (1 - t * t)
    d_f, d_i = total * C_prev * f * (1 - f), total * C_tilde * i * (1 - i)
    d_C, d_o = total * i * (1 - C_tilde**2), dh * t * o * (1 - o)
    dz = d_f @ W_f + d_i @ W_i + d_C @ W_C + d_o @ W_o
    grads = [dz[:, H:], dz[:, :H], f * total]
    for d in (d_f, d_i, d_C, d_o):
        grads += [d.T @ z, np.sum(d, axis=0)]
    return grads


def packed_lstm_backward(dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o):
    """Treat the four blocks as one layer, and the bias as a column of ones."""
    B, H = dh.shape
    z = np.hstack([h_prev, x, np.ones((B, 1), dtype=x.dtype)])
    total = dC + dh * o / np.cosh(C) ** 2
    gates = np.stack([f, i, o])
    slopes = gates - gates**2
    d = [total * C_prev * slopes[0], total * C_tilde * slopes[1]]
    d += [total * i - total * i * C_tilde * C_tilde, dh * np.tanh(C) * slopes[2]]
    d = np.hstack(d)
    dz = d @ np.vstack([W_f, W_i, W_C, W_o])
    dW = np.einsum("bg,bz->gz", d, z).reshape(4, H, -1)
    parameters = [part for block in dW for part in (block[:, :-1], block[:, -1])]
    return dz[:, H:], dz[:, :H], total * f, *parameters


def loops_lstm_backward(dh, dC, x, h_prev, C_prev, f, i, C_tilde, o, C, W_f, W_i, W_C, W_o):
    """Go through the batch row by row, with columns and outer products."""
    dx, dh_prev, dC_prev = np.zeros_like(x), np.zeros_like(h_prev), np.zeros_like(C_prev)
    matrices = (W_f, W_i, W_C, W_o)
    dW, db = [np.zeros_like(W) for W in matrices], [np.zeros_like(W[:, 0]) for W in matrices]
    for b in range(len(x)):
        z = np.append(h_prev[b], x[b])
        t = np.tanh(C[b])
        total = dC[b] + dh[b] * o[b] * (1 - t**2)
        d = [
            total * C_prev[b] * f[b] * (1 - f[b]),
            total * C_tilde[b] * i[b] * (1 - i[b]),
            total * i[b] * (1 - C_tilde[b] ** 2),
            dh[b] * t * o[b] * (1 - o[b]),
        ]
        for k, W in enumerate(matrices):
            dW[k] += np.outer(d[k], z)
            db[k] += d[k]
            dz = W.T.dot(d[k])
            dh_prev[b] += dz[: len(d[k])]
            dx[b] += dz[len(d[k]) :]
        dC_prev[b] = total * f[b]
    return dx, dh_prev, dC_prev, dW[0], db[0], dW[1], db[1], dW[2], db[2], dW[3], db[3]


# gates.gru_step


def rows_gru(x, h_prev, W_r, W_z, W):
    hx = np.concatenate([h_prev, x], axis=1)
    r, z = logistic(hx @ W_r.T), logistic(hx @ W_z.T)
    h_tilde = np.tanh(np.concatenate([r * h_prev, x], axis=1) @ W.T)
    return h_prev + z * (h_tilde - h_prev)


def split_gru(x, h_prev, W_r, W_z, W):
    """Keep state and input apart, and write the sigmoid as it stands."""
    H = h_prev.shape[1]
    (R_h, R_x), (Z_h, Z_x), (N_h, N_x) = ((V[:, :H], V[:, H:]) for V in (W_r, W_z, W))
    r = 1 / (1 + np.exp(-(np.einsum("ij,bj->bi", R_h, h_prev) + x @ R_x.T)))
    z = 1 / (1 + np.exp(-(np.einsum("ij,bj->bi", Z_h, h_prev) + x @ Z_x.T)))
    n = np.tanh(np.einsum("ij,bj,bj->bi", N_h, r, h_prev) + x @ N_x.T)
    return (1 - z) * h_prev + z * n


def loops_gru(x, h_prev, W_r, W_z, W):
    new = np.zeros_like(h_prev)
    B, H = new.shape
    for b in range(B):
        hx = [*h_prev[b], *x[b]]
        r = [0.5 + 0.5 * math.tanh(weighted(row, hx) / 2) for row in W_r]
        reset = [r[j] * float(h_prev[b, j]) for j in range(H)]
        for j in range(H):
            z = 0.5 + 0.5 * math.tanh(weighted(W_z[j], hx) / 2)
            candidate = math.tanh(weighted(W[j], [*reset, *x[b]]))
            new[b, j] = (1 - z) * h_prev[b, j] + z * candidate
    return new


def torch_gru(x, h_prev, W_r, W_z, W):
    x, h, W_r, W_z, W = map(torch.from_numpy, (x, h_prev, W_r, W_z, W))
    hx = torch.cat([h, x], dim=1)
    r, z = torch.sigmoid(hx @ W_r.T), torch.sigmoid(hx @ W_z.T)
    return torch.lerp(h, torch.tanh(torch.cat([r * h, x], dim=1) @ W.T), z)


# gates.gru_step_backward


def rows_gru_backward(dh, x, h_prev, r, z, h_tilde, W_r, W_z, W):
    H = h_prev.shape[1]
    hx = np.hstack([h_prev, x])
    rhx = np.hstack([r * h_prev, x])
    d_n = dh * z * (1 - h_tilde**2)
    d_z = dh * (h_tilde - h_prev) * z * (1 - z)
    back = d_n @ W
    d_r = back[:, :H] * h_prev * r * (1 - r)
    both = d_r @ W_r + d_z @ W_z
    dh_prev = (1 - z) * dh + back[:, :H] * r + both[:, :H]
    return back[:, H:] + both[:, H:], dh_prev, d_r.T @ hx, d_z.T @ hx, d_n.T @ rhx


def loops_gru_backward(dh, x, h_prev, r, z, h_tilde, W_r, W_z, W):
    dx, dh_prev = np.zeros_like(x), np.zeros_like(h_prev)
    dW_r, dW_z, dW = np.zeros_like(W_r), np.zeros_like(W_z), np.zeros_like(W)
    H = h_prev.shape[1]
    for b in range(len(x)):
        hx, rhx = np.append(h_prev[b], x[b]), np.append(r[b] * h_prev[b], x[b])
        d_n = dh[b] * z[b] * (1 - h_tilde[b] ** 2)
        d_z = (dh[b] * h_tilde[b] - dh[b] * h_prev[b]) * z[b] * (1 - z[b])
        back = W.T.dot(d_n)
        d_r = back[:H] * h_prev[b] * r[b] * (1 - r[b])
        for d, V, dV, v in ((d_r, W_r, dW_r, hx), (d_z, W_z, dW_z, hx), (d_n, W, dW, rhx)):
            dV += np.outer(d, v)
            dx[b] += V[:, H:].T.dot(d)
        dh_prev[b] = (1 - z[b]) * dh[b] + r[b] * back[:H]
        dh_prev[b] += W_r[:, :H].T.dot(d_r) + W_z[:, :H].T.dot(d_z)
    return dx, dh_prev, dW_r, dW_z, dW


def einsum_gru_backward(dh, x, h_prev, r, z, h_tilde, W_r, W_z, W):
    """Stack the gates; the state and the input stay apart."""
    H = h_prev.shape[1]
    d_n = z * dh - z * dh * h_tilde * h_tilde
    d_reset = np.einsum("bi,ij->bj", d_n, W[:, :H])
    gates = np.stack([r, z])
    through = np.stack([d_reset * h_prev, dh * h_tilde - dh * h_prev])
    d = through * (gates - gates**2)
    matrices = np.stack([W_r, W_z])
    dx = np.einsum("gbi,gid->bd", d, matrices[..., H:]) + d_n @ W[:, H:]
    dh_prev = np.einsum("gbi,gij->bj", d, matrices[..., :H]) + d_reset * r + dh - z * dh
    dW_r, dW_z = np.concatenate(
        [np.einsum("gbi,bj->gij", d, h_prev), np.einsum("gbi,bd->gid", d, x)], axis=-1
    )
    dW = np.concatenate([d_n.T @ (r * h_prev), d_n.T @ x], axis=1)
    return [dx, dh_prev, dW_r, dW_z, dW]


# gates.count_parameters


def formula_count(D, H):
    return 4 * H * (H + D + 1), 3 * H * (H + D)


def loops_count(D, H):
    lstm = gru = 0
    for block in range(4):
        for _ in range(H):
            lstm += H + D + 1
            gru += H + D if block < 3 else 0
    return [lstm, gru]


def shapes_count(D, H):
    matrix, bias = np.zeros((H, H + D)), np.zeros(H)
    return np.array([4 * (matrix.size + bias.size), 3 * matrix.size], dtype=float)


STYLES = {
    "lstm_step": [rows_lstm, written_lstm, packed_lstm, loops_lstm, torch_lstm],
    "lstm_sequence": [
        lists_sequence,
        arrays_sequence,
        sums_of_x_sequence,
        recursive_sequence,
    ],
    "lstm_step_backward": [rows_lstm_backward, packed_lstm_backward, loops_lstm_backward],
    "gru_step": [rows_gru, split_gru, loops_gru, torch_gru],
    "gru_step_backward": [rows_gru_backward, loops_gru_backward, einsum_gru_backward],
    "count_parameters": [formula_count, loops_count, shapes_count],
}
