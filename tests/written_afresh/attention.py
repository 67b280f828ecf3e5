"""Wrong answers to the assignment ``attention``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: loops,
one matrix at a time, shapes forced to fit.
"""

import math

import numpy as np


def soft(v):
    """Turn a vector of scores into weights; nothing allowed gives zeros."""
    v = np.asarray(v, dtype=float)
    if np.all(v == -np.inf):
        return np.zeros(len(v))
    e = np.exp(v - np.max(v))
    return e / np.sum(e)


def each_matrix(f, *stacks):
    """Apply ``f`` to matrices, however many axes stand in front of them."""
    if stacks[0].ndim == 2:
        return f(*stacks)
    parts = [each_matrix(f, *matrices) for matrices in zip(*stacks, strict=True)]
    if isinstance(parts[0], tuple):
        return tuple(np.array(column) for column in zip(*parts, strict=True))
    return np.array(parts)


# attention.simple_self_attention


def simple_columns_sum_to_one(X):
    def one(x):
        S = np.array([[np.dot(a, b) for b in x] for a in x])
        A = np.array([soft(S[:, j]) for j in range(len(x))]).T
        return np.matmul(A, x), A

    return each_matrix(one, X)


def simple_like_the_scaled_formula(X):
    def one(x):
        A = np.array([soft([a @ b / len(a) ** 0.5 for b in x]) for a in x])
        return A.dot(x), A

    return each_matrix(one, X)


def simple_exponentials_unshifted(X):
    def one(x):
        E = np.exp(x.dot(x.T))
        A = E / E.sum(1).reshape(-1, 1)
        return A.dot(x), A

    return each_matrix(one, X)


def simple_raw_scores(X):
    A = np.einsum("...ik,...jk->...ij", X, X)
    return np.einsum("...ij,...jk->...ik", A, X), A


def simple_dot_t(X):
    S = np.matmul(X, X.T)
    A = np.exp(S - np.amax(S, axis=-1)[..., None])
    A /= np.sum(A, axis=-1)[..., None]
    return np.matmul(A, X), A


def simple_forgets_weights(X):
    def one(x):
        return np.array([soft([a @ b for b in x]) for a in x]) @ x

    return each_matrix(one, X)


# attention.scaled_dot_product_attention


def attend(Q, K, V, M, row, scale):
    """Attend with a rule for one row of scores and its row of the mask."""
    if M is None:
        M = np.zeros((1, 1))
    M = np.broadcast_to(M, (*Q.shape[:-1], K.shape[-2]))

    def one(q, k, v, m):
        S = np.array([[float(np.sum(a * b)) * scale(q, k, v) for b in k] for a in q])
        A = np.array([row(s, mm) for s, mm in zip(S, m, strict=True)])
        return A @ v, A

    return each_matrix(one, Q, K, V, M)


def root(q, k, v):
    return 1 / math.sqrt(q.shape[1])


def scaled_without_any_scale(Q, K, V, M=None):
    return attend(Q, K, V, M, lambda s, m: soft(s + m), lambda q, k, v: 1)


def scaled_by_number_of_keys(Q, K, V, M=None):
    return attend(Q, K, V, M, lambda s, m: soft(s + m), lambda q, k, v: len(k) ** -0.5)


def scaled_by_width_without_root(Q, K, V, M=None):
    return attend(Q, K, V, M, lambda s, m: soft(s + m), lambda q, k, v: 1 / len(q[0]))


def scaled_weights_afterwards(Q, K, V, M=None):
    def row(s, m):
        return soft(s + m) / math.sqrt(Q.shape[-1])

    return attend(Q, K, V, M, row, lambda q, k, v: 1)


def scaled_averages_keys(Q, K, V, M=None):
    return attend(Q, K, K, M, lambda s, m: soft(s + m), root)


def scaled_mask_as_zeros_in_scores(Q, K, V, M=None):
    def row(s, m):
        keep = [0.0 if blocked == -np.inf else 1.0 for blocked in m]
        return soft(s * np.array(keep))

    return attend(Q, K, V, M, row, root)


def scaled_weights_blanked(Q, K, V, M=None):
    def row(s, m):
        a = soft(s)
        a[m == -np.inf] = 0.0
        return a

    return attend(Q, K, V, M, row, root)


def scaled_mask_turned_round(Q, K, V, M=None):
    def row(s, m):
        s = s.copy()
        s[m == 0] = -np.inf
        return soft(s)

    if M is None:
        return attend(Q, K, V, None, lambda s, m: soft(s), root)
    return attend(Q, K, V, M, row, root)


def scaled_filled_with_a_number(Q, K, V, M=None):
    def row(s, m):
        return soft(np.where(m == 0, s, -1e9))

    return attend(Q, K, V, M, row, root)


def scaled_added_a_number(Q, K, V, M=None):
    def row(s, m):
        return soft(s + np.maximum(m, -1e9))

    return attend(Q, K, V, M, row, root)


def scaled_zero_by_zero(Q, K, V, M=None):
    def row(s, m):
        e = np.exp(s - s.max()) * np.exp(m)
        return e / e.sum()

    return attend(Q, K, V, M, row, root)


def scaled_times_mask(Q, K, V, M=None):
    def row(s, m):
        return soft(s) if M is None else soft(s * m)

    with np.errstate(invalid="ignore"):
        return attend(Q, K, V, M, row, root)


def scaled_second_size_is_the_width(Q, K, V, M=None):
    width = Q.shape[1]
    return attend(Q, K, V, M, lambda s, m: soft(s + m), lambda q, k, v: width**-0.5)


def scaled_exponentials_as_written(Q, K, V, M=None):
    def row(s, m):
        e = np.exp(s + m)
        return e / np.sum(e)

    return attend(Q, K, V, M, row, root)


# attention.scaled_dot_product_attention_backward


def gradients(dY, Q, K, V, A, row, scale):
    """Go back through one matrix at a time, with a rule for the softmax of one row."""

    def one(dy, q, k, v, a):
        da = dy @ v.T
        ds = np.array([row(g, w) for g, w in zip(da, a, strict=True)])
        return ds @ k * scale, ds.T @ q * scale, a.T @ dy

    return each_matrix(one, dY, Q, K, V, A)


def jacobian(g, w):
    return (np.diag(w) - np.outer(w, w)) @ g


def backward_diagonal_of_jacobian(dY, Q, K, V, A):
    def row(g, w):
        return np.diag(np.diag(np.diag(w) - np.outer(w, w))) @ g

    return gradients(dY, Q, K, V, A, row, Q.shape[-1] ** -0.5)


def backward_scale_forgotten(dY, Q, K, V, A):
    return gradients(dY, Q, K, V, A, jacobian, 1.0)


def backward_scale_forgotten_in_dk(dY, Q, K, V, A):
    dQ, dK, dV = gradients(dY, Q, K, V, A, jacobian, 1.0)
    return dQ / math.sqrt(Q.shape[-1]), dK, dV


def backward_other_order(dY, Q, K, V, A):
    dQ, dK, dV = gradients(dY, Q, K, V, A, jacobian, Q.shape[-1] ** -0.5)
    return dK, dQ, dV


def backward_mean_missing(dY, Q, K, V, A):
    return gradients(dY, Q, K, V, A, lambda g, w: g * w, Q.shape[-1] ** -0.5)


def backward_dot_t(dY, Q, K, V, A):
    dP = dY @ V.T
    dS = A * (dP - np.sum(A * dP, -1)[..., None])
    return dS @ K / Q.shape[-1] ** 0.5, dS.T @ Q / Q.shape[-1] ** 0.5, A.T @ dY


# attention.split_heads


def split_one_reshape_before_tokens(X, H):
    B, n, d = X.shape
    Z = X.reshape(B, H, n, d // H)
    return np.array([[Z[b, h] for b in range(B)] for h in range(H)])


def split_every_h_th(X, H):
    return np.array([X[:, :, h::H] for h in range(H)])


def split_batch_first(X, H):
    return np.array([np.split(x, H, axis=1) for x in X])


# attention.merge_heads


def merge_alternating(heads):
    return np.stack(list(heads), axis=-1).reshape(*heads.shape[1:3], -1)


def merge_without_moving_to_tokens(heads):
    H, B, n, d = heads.shape
    return np.array([heads[:, b].reshape(n, H * d) for b in range(B)])


def merge_by_sum(heads):
    return sum(heads)


# attention.multi_head_attention


def multihead(X, W_q, W_k, W_v, W_o, M=None, *, scale=None, join=None, output=True):
    """Loop over sequences and heads, with a rule for the scale and for joining the heads."""
    if X.ndim == 3:
        Ms = [None] * len(X) if M is None else np.broadcast_to(M, (len(X), *M.shape[-2:]))
        args = dict(scale=scale, join=join, output=output)
        pairs = zip(X, Ms, strict=True)
        return np.array([multihead(x, W_q, W_k, W_v, W_o, m, **args) for x, m in pairs])
    heads = []
    for h in range(len(W_q)):
        q, k, v = X @ W_q[h], X @ W_k[h], X @ W_v[h]
        s = q @ k.T / math.sqrt(q.shape[1] if scale is None else scale(q))
        s = s if M is None else s + M
        heads.append(np.array([soft(r) for r in s]) @ v)
    joined = np.hstack(heads) if join is None else join(heads)
    return joined @ W_o if output else joined


def multihead_token_width(X, W_q, W_k, W_v, W_o, M=None):
    return multihead(X, W_q, W_k, W_v, W_o, M, scale=lambda q: X.shape[-1])


def multihead_no_scale(X, W_q, W_k, W_v, W_o, M=None):
    return multihead(X, W_q, W_k, W_v, W_o, M, scale=lambda q: 1)


def multihead_output_forgotten(X, W_q, W_k, W_v, W_o, M=None):
    return multihead(X, W_q, W_k, W_v, W_o, M, output=False)


def multihead_alternating_features(X, W_q, W_k, W_v, W_o, M=None):
    def join(heads):
        n, d_v = heads[0].shape
        rows = [
            [heads[h][i, j] for j in range(d_v) for h in range(len(heads))] for i in range(n)
        ]
        return np.array(rows)

    return multihead(X, W_q, W_k, W_v, W_o, M, join=join)


def multihead_joined_by_reshape(X, W_q, W_k, W_v, W_o, M=None):
    def join(heads):
        return np.concatenate([head.ravel() for head in heads]).reshape(len(heads[0]), -1)

    return multihead(X, W_q, W_k, W_v, W_o, M, join=join)


def multihead_first_head_for_all(X, W_q, W_k, W_v, W_o, M=None):
    H = len(W_q)
    same = [np.array([W[0] for _ in range(H)]) for W in (W_q, W_k, W_v)]
    return multihead(X, *same, W_o, M)


def multihead_roles_of_q_and_k(X, W_q, W_k, W_v, W_o, M=None):
    return multihead(X, W_k, W_q, W_v, W_o, M)


def multihead_mask_forgotten(X, W_q, W_k, W_v, W_o, M=None):
    return multihead(X, W_q, W_k, W_v, W_o)


# attention.count_parameters


def count_four_squares(d, H, d_k, d_v, bias=False):
    return 4 * d * d + (H * (d_k + d_k + d_v) + d if bias else 0)


def count_projections_of_one_head(d, H, d_k, d_v, bias=False):
    total = 0
    for width in (d_k, d_k, d_v):
        total += d * width + (width if bias else 0)
    return total + H * d_v * d + (d if bias else 0)


def count_nothing_after_the_heads(d, H, d_k, d_v, bias=False):
    per_head = 2 * d * d_k + d * d_v
    return H * per_head + (H * (2 * d_k + d_v) + d) * int(bias)


AFRESH = {
    "simple_self_attention": {
        simple_columns_sum_to_one: "softmax_over_queries",
        simple_like_the_scaled_formula: "scaled",
        simple_exponentials_unshifted: "no_shift",
        simple_raw_scores: "no_softmax",
        simple_dot_t: "all_axes_reversed",
        simple_forgets_weights: "output_alone",
    },
    "scaled_dot_product_attention": {
        scaled_without_any_scale: "no_scale",
        scaled_by_number_of_keys: "scale_n_k",
        scaled_by_width_without_root: "scale_without_root",
        scaled_weights_afterwards: "scale_after_softmax",
        scaled_averages_keys: "values_are_keys",
        scaled_mask_as_zeros_in_scores: "mask_multiplied",
        scaled_weights_blanked: "mask_after_softmax",
        scaled_mask_turned_round: "mask_polarity",
        scaled_filled_with_a_number: "empty_row_uniform",
        scaled_added_a_number: "empty_row_unmasked",
        scaled_zero_by_zero: "empty_row_nan",
        scaled_times_mask: "mask_times_scores",
        scaled_second_size_is_the_width: "width_axis_one",
        scaled_exponentials_as_written: "naive_softmax",
    },
    "scaled_dot_product_attention_backward": {
        backward_diagonal_of_jacobian: "softmax_diagonal",
        backward_scale_forgotten: "no_scale",
        backward_scale_forgotten_in_dk: "no_scale_dk",
        backward_other_order: "dq_dk_exchanged",
        backward_mean_missing: "softmax_no_sum",
        backward_dot_t: "all_axes_reversed",
    },
    "split_heads": {
        split_one_reshape_before_tokens: "reshape_moves_tokens",
        split_every_h_th: "interleaved",
        split_batch_first: "heads_after_batch",
    },
    "merge_heads": {
        merge_alternating: "interleaved",
        merge_without_moving_to_tokens: "heads_before_tokens",
        merge_by_sum: "summed",
    },
    "multi_head_attention": {
        multihead_token_width: "scale_d",
        multihead_no_scale: "no_scale",
        multihead_output_forgotten: "no_output",
        multihead_alternating_features: "merge_interleaved",
        multihead_joined_by_reshape: "merge_by_reshape",
        multihead_first_head_for_all: "first_head_projections",
        multihead_roles_of_q_and_k: "queries_keys_exchanged",
        multihead_mask_forgotten: "mask_ignored",
    },
    "count_parameters": {
        count_four_squares: "square",
        count_projections_of_one_head: "one_head",
        count_nothing_after_the_heads: "no_output",
    },
}
