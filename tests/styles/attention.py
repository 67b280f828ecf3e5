"""Right answers to the assignment ``attention``, in styles that have little in common."""

import itertools
import math

import numpy as np
import torch


def loops_simple(X):
    if X.ndim > 2:
        pairs = [loops_simple(x) for x in X]
        return np.stack([y for y, _ in pairs]), np.stack([a for _, a in pairs])
    n, d = X.shape
    A = np.zeros((n, n))
    Y = np.zeros((n, d))
    for i in range(n):
        scores = [float(np.dot(X[i], X[j])) for j in range(n)]
        powers = [math.exp(s - max(scores)) for s in scores]
        for j in range(n):
            A[i, j] = powers[j] / sum(powers)
            Y[i] += A[i, j] * X[j]
    return Y, A


def matrix_simple(X):
    S = X @ X.swapaxes(-2, -1)
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    A = E / E.sum(axis=-1, keepdims=True)
    return A @ X, A


def einsum_simple(X):
    S = np.einsum("...id,...jd->...ij", X, X)
    top = S.max(-1)[..., None]
    A = np.exp(S - top - np.log(np.exp(S - top).sum(-1))[..., None])
    return np.einsum("...ij,...jd->...id", A, X), A


def torch_simple(X):
    X = torch.from_numpy(X)
    A = torch.softmax(X @ X.transpose(-1, -2), dim=-1)
    return [A @ X, A]


def loops_scaled(Q, K, V, M=None):
    lead = Q.shape[:-2]
    n_q, n_k, d_v = Q.shape[-2], K.shape[-2], V.shape[-1]
    M = np.zeros((n_q, n_k)) if M is None else M
    M = np.broadcast_to(M, (*lead, n_q, n_k))
    A = np.zeros((*lead, n_q, n_k))
    Y = np.zeros((*lead, n_q, d_v))
    for at in itertools.product(*(range(size) for size in lead)):
        for i in range(n_q):
            allowed = [j for j in range(n_k) if M[at][i, j] == 0]
            if not allowed:
                continue
            scores = [Q[at][i] @ K[at][j] / math.sqrt(Q.shape[-1]) for j in allowed]
            powers = np.exp(np.array(scores) - max(scores))
            for j, a in zip(allowed, powers / powers.sum(), strict=True):
                A[at][i, j] = a
                Y[at][i] += a * V[at][j]
    return Y, A


def matrix_scaled(Q, K, V, M=None):
    S = (Q / np.sqrt(Q.shape[-1])) @ K.swapaxes(-2, -1)  # scaled before the product
    if M is not None:
        S = S + M
    top = S.max(axis=-1, keepdims=True)
    E = np.exp(S - np.where(np.isfinite(top), top, 0))
    Z = E.sum(axis=-1, keepdims=True)
    A = np.divide(E, Z, out=np.zeros_like(E), where=Z > 0)
    return A @ V, A


def einsum_scaled(Q, K, V, M=None):
    S = np.einsum("...qk,...sk->...qs", Q, K) * Q.shape[-1] ** -0.5
    keep = np.ones(1, dtype=bool) if M is None else np.isfinite(M)
    A = np.exp(S - S.max(-1, keepdims=True)) * keep  # renormalised after the mask
    with np.errstate(invalid="ignore"):
        A = np.nan_to_num(A / A.sum(-1, keepdims=True))
    return np.einsum("...qs,...sv->...qv", A, V), A


def torch_scaled(Q, K, V, M=None):
    Q, K, V = map(torch.from_numpy, (Q, K, V))
    S = Q @ K.mT / Q.shape[-1] ** 0.5
    if M is not None:
        S = S + torch.from_numpy(M).to(S.dtype)
    A = torch.softmax(S, dim=-1).nan_to_num(0.0)
    return A @ V, A


def matrix_backward(dY, Q, K, V, A):
    scale = 1 / np.sqrt(Q.shape[-1])
    dA = dY @ V.swapaxes(-2, -1)
    dS = scale * (A * dA - A * (A * dA).sum(-1, keepdims=True))
    return dS @ K, dS.swapaxes(-2, -1) @ Q, A.swapaxes(-2, -1) @ dY


def output_backward(dY, Q, K, V, A):
    """Take the row sum of dA * A from the output: it equals that of dY * Y."""
    row = np.einsum("...qv,...qv->...q", dY, A @ V)[..., None]
    dS = A * (np.einsum("...qv,...kv->...qk", dY, V) - row) / math.sqrt(K.shape[-1])
    dQ = np.einsum("...qk,...kd->...qd", dS, K)
    dK = np.einsum("...qk,...qd->...kd", dS, Q)
    return dQ, dK, np.einsum("...qk,...qv->...kv", A, dY)


def loops_backward(dY, Q, K, V, A):
    """Apply the Jacobian diag(a) - a a^T of each row."""
    if Q.ndim > 2:
        parts = [loops_backward(*matrices) for matrices in zip(dY, Q, K, V, A, strict=True)]
        return [np.stack(part) for part in zip(*parts, strict=True)]
    dQ, dK, dV = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    for i, a in enumerate(A):
        ds = (np.diag(a) - np.outer(a, a)) @ (V @ dY[i]) / math.sqrt(len(Q[i]))
        for j in range(len(K)):
            dQ[i] += ds[j] * K[j]
            dK[j] += ds[j] * Q[i]
            dV[j] += a[j] * dY[i]
    return dQ, dK, dV


def axes_split(X, H):
    B, n, width = X.shape
    return X.reshape(B, n, H, width // H).transpose(2, 0, 1, 3)


def slices_split(X, H):
    return np.stack(np.split(X, H, axis=-1))


def loops_split(X, H):
    B, n, width = X.shape
    d_h = width // H
    heads = np.empty((H, B, n, d_h), dtype=X.dtype)
    for h, b, i, j in itertools.product(range(H), range(B), range(n), range(d_h)):
        heads[h, b, i, j] = X[b, i, h * d_h + j]
    return heads


def list_split(X, H):
    d_h = X.shape[-1] // H
    return [X[..., h * d_h : (h + 1) * d_h] for h in range(H)]


def concatenated_merge(heads):
    return np.concatenate(list(heads), axis=-1)


def axes_merge(heads):
    H, B, n, d_h = heads.shape
    return np.moveaxis(heads, 0, 2).reshape(B, n, H * d_h)


def loops_merge(heads):
    H, B, n, d_h = heads.shape
    X = np.empty((B, n, H * d_h), dtype=heads.dtype)
    for h, b, i, j in itertools.product(range(H), range(B), range(n), range(d_h)):
        X[b, i, h * d_h + j] = heads[h, b, i, j]
    return X


def heads_multihead(X, W_q, W_k, W_v, W_o, M=None):
    heads = []
    for w_q, w_k, w_v in zip(W_q, W_k, W_v, strict=True):
        heads.append(matrix_scaled(X @ w_q, X @ w_k, X @ w_v, M)[0])
    return np.concatenate(heads, axis=-1) @ W_o


def einsum_multihead(X, W_q, W_k, W_v, W_o, M=None):
    Q, K, V = (np.einsum("...nd,hdk->...hnk", X, W) for W in (W_q, W_k, W_v))
    if M is not None and M.ndim > 2:
        M = M[:, None]
    heads, _ = einsum_scaled(Q, K, V, M)
    H, _, d_v = W_v.shape
    return np.einsum("...hnv,hvd->...nd", heads, W_o.reshape(H, d_v, -1))


def blocks_multihead(X, W_q, W_k, W_v, W_o, M=None):
    """Add up what each head contributes through its own rows of W_o."""
    d_v = W_v.shape[-1]
    Y = np.zeros((*X.shape[:-1], W_o.shape[-1]), dtype=X.dtype)
    for h in range(len(W_q)):
        head, _ = loops_scaled(X @ W_q[h], X @ W_k[h], X @ W_v[h], M)
        Y += (head @ W_o[h * d_v : (h + 1) * d_v]).astype(X.dtype)
    return Y


def packed_multihead(X, W_q, W_k, W_v, W_o, M=None):
    """Pack the matrices of all heads side by side, as libraries do."""
    H = len(W_q)
    single = X.ndim == 2
    X = X[None] if single else X
    Q, K, V = (X @ np.concatenate(list(W), axis=1) for W in (W_q, W_k, W_v))
    Q, K, V = (axes_split(P, H) for P in (Q, K, V))
    heads, _ = matrix_scaled(Q, K, V, M)
    Y = axes_merge(heads) @ W_o
    return Y[0] if single else Y


def formula_count(d, H, d_k, d_v, bias=False):
    count = H * d * (2 * d_k + d_v) + H * d_v * d
    return count + bias * (H * (2 * d_k + d_v) + d)


def loop_count(d, H, d_k, d_v, bias=False):
    count = 0
    for width in [d_k, d_k, d_v]:
        for _ in range(H):
            count += (d + 1) * width if bias else d * width
    return count + (H * d_v + 1) * d if bias else count + H * d_v * d


def shapes_count(d, H, d_k, d_v, bias=False):
    shapes = [(H, d, d_k), (H, d, d_k), (H, d, d_v), (H * d_v, d)]
    if bias:
        shapes += [(H, d_k), (H, d_k), (H, d_v), (d,)]
    return float(sum(np.prod(shape) for shape in shapes))


STYLES = {
    "simple_self_attention": [loops_simple, matrix_simple, einsum_simple, torch_simple],
    "scaled_dot_product_attention": [loops_scaled, matrix_scaled, einsum_scaled, torch_scaled],
    "scaled_dot_product_attention_backward": [
        matrix_backward,
        output_backward,
        loops_backward,
    ],
    "split_heads": [axes_split, slices_split, loops_split, list_split],
    "merge_heads": [concatenated_merge, axes_merge, loops_merge],
    "multi_head_attention": [
        heads_multihead,
        einsum_multihead,
        blocks_multihead,
        packed_multihead,
    ],
    "count_parameters": [formula_count, loop_count, shapes_count],
}
