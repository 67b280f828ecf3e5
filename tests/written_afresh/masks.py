"""Wrong answers to the assignment ``masks``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: loops,
lists, one sequence or one query at a time.
"""

import math

import numpy as np

# masks.padding_mask


def padding_rows(lengths, n, side, is_padding):
    """Fill one sequence after another."""
    M = np.zeros((len(lengths), 1, n))
    for b, length in enumerate(lengths):
        for j in range(n):
            if is_padding(j if side == "right" else n - 1 - j, int(length)):
                M[b, 0, j] = -np.inf
    return M


def padding_hides_words(lengths, n, side="right"):
    return padding_rows(lengths, n, side, lambda j, length: j < length)


def padding_one_too_many(lengths, n, side="right"):
    return padding_rows(lengths, n, side, lambda j, length: j > length)


def padding_always_behind(lengths, n, side="right"):
    return padding_rows(lengths, n, "right", lambda j, length: j >= length)


def padding_by_the_longest(lengths, n, side="right"):
    longest = max(lengths)
    return padding_rows(lengths, longest, side, lambda j, length: j >= length)


def padding_times_infinity(lengths, n, side="right"):
    keep = padding_rows(lengths, n, side, lambda j, length: j >= length) == 0
    with np.errstate(invalid="ignore"):
        return (1 - keep.astype(float)) * float("-inf")


def padding_of_truth(lengths, n, side="right"):
    return padding_rows(lengths, n, side, lambda j, length: j >= length) != 0


def padding_slice_from_the_end(lengths, n, side="right"):
    M = np.zeros((len(lengths), 1, n))
    for b, length in enumerate(lengths):
        padded = n - length
        if side == "right":
            M[b, 0, -padded:] = -np.inf
        else:
            M[b, 0, :padded] = -np.inf
    return M


def padding_slice_up_to_the_end(lengths, n, side="right"):
    M = np.full((len(lengths), 1, n), 0.0)
    for b, length in enumerate(lengths):
        hidden = slice(length, None) if side == "right" else slice(None, -length)
        M[b, 0, hidden] = -np.inf
    return M


# masks.causal_mask


def causal_pairs(n_q, n_k, sees, blocked=-math.inf):
    return np.array([[0.0 if sees(i, j) else blocked for j in range(n_k)] for i in range(n_q)])


def causal_not_itself(n_q, n_k, past):
    return causal_pairs(n_q, n_k, lambda i, j: j - past < i)


def causal_from_the_start(n_q, n_k, past):
    return np.triu(np.full((n_q, n_k), -np.inf), 1) if n_k > 1 else np.zeros((1, 1))


def causal_aligned_at_the_end(n_q, n_k, past):
    return causal_pairs(n_q, n_k, lambda i, j: n_k - 1 - j >= n_q - 1 - i)


def causal_new_ones_only(n_q, n_k, past):
    return causal_pairs(n_q, n_k, lambda i, j: past <= j <= past + i)


def causal_square(n_q, n_k, past):
    return causal_pairs(n_q, n_q, lambda i, j: j <= i)


def causal_large(n_q, n_k, past):
    return causal_pairs(n_q, n_k, lambda i, j: j <= past + i, blocked=-1e9)


# masks.combine_masks


def combined(masks, of_boolean):
    total = 0
    for mask in masks:
        total = total + (of_boolean(mask) if mask.dtype == bool else mask)
    return total


def closed(mask):
    return np.where(mask, 0.0, -np.inf)


def combine_plain_sum(masks):
    M = combined(masks, lambda m: m.astype(float))
    return M, np.all(M < -1e300, axis=-1)


def combine_true_is_blocked(masks):
    M = combined(masks, lambda m: closed(~m))
    return M, np.all(M < -1e300, axis=-1)


def combine_multiplied(masks):
    total = None
    with np.errstate(invalid="ignore"):
        for mask in masks:
            mask = closed(mask) if mask.dtype == bool else mask
            total = mask if total is None else total * mask
    return total, np.all(total == -math.inf, axis=-1)


def combine_one_is_enough(masks):
    M = combined(masks, closed)
    return M, np.any(M < -1e300, axis=-1)


def combine_each_by_itself(masks):
    M = combined(masks, closed)
    empty = np.zeros(M.shape[:-1], bool)
    for mask in masks:
        mask = closed(mask) if mask.dtype == bool else mask
        empty = empty | np.all(mask == -math.inf, axis=-1)
    return M, empty


def combine_sum_alone(masks):
    return combined(masks, closed)


# masks.masked_softmax


def softmax_rows(S, M, one_row):
    """Treat one query after another."""
    M, A = np.broadcast_to(M, S.shape), np.zeros(S.shape)
    for row in np.ndindex(S.shape[:-1]):
        with np.errstate(all="ignore"):
            A[row] = one_row(S[row], M[row])
    return A


def softmax_quarter_for_the_blocked(S, M):
    def one_row(s, m):
        z = np.where(m == -math.inf, 0.0, s + m)
        e = np.exp(z - z.max())
        return e / e.sum()

    return softmax_rows(S, M, one_row)


def softmax_then_erased(S, M):
    def one_row(s, m):
        z = s + np.where(m == -math.inf, 0.0, m)
        e = np.exp(z - z.max())
        a = e / e.sum()
        a[m == -math.inf] = 0.0
        return a

    return softmax_rows(S, M, one_row)


def softmax_no_key_no_number(S, M):
    def one_row(s, m):
        z = np.where(m == -math.inf, -math.inf, s + m)
        e = np.exp(z - z.max())
        return e / e.sum()

    return softmax_rows(S, M, one_row)


def softmax_ten_to_the_nine(S, M):
    def one_row(s, m):
        z = np.where(m == -math.inf, -1e9, s + m)
        e = np.exp(z - z.max())
        return e / e.sum()

    return softmax_rows(S, M, one_row)


def softmax_literally_added(S, M):
    def one_row(s, m):
        z = s + m
        if (z == -math.inf).all():
            return np.zeros(len(z))
        e = np.exp(z - z.max())
        return e / e.sum()

    return softmax_rows(S, M, one_row)


def softmax_without_a_shift(S, M):
    def one_row(s, m):
        if (m == -math.inf).all():
            return np.zeros(len(s))
        e = np.where(m == -math.inf, 0.0, np.exp(s + m))
        return e / e.sum()

    return softmax_rows(S, M, one_row)


def softmax_with_a_tiny_number(S, M):
    def one_row(s, m):
        e = np.where(m == -math.inf, 0.0, np.exp(s + m))
        return e / (e.sum() + 1e-12)

    return softmax_rows(S, M, one_row)


def softmax_no_bias(S, M):
    def one_row(s, m):
        keys = m != -math.inf
        a = np.zeros(len(s))
        if keys.any():
            e = np.exp(s[keys] - s[keys].max())
            a[keys] = e / e.sum()
        return a

    return softmax_rows(S, M, one_row)


# masks.masked_softmax_backward


def right_weights(s, m):
    keys, a = m != -math.inf, np.zeros(len(s))
    if keys.any():
        e = np.exp((s + m)[keys] - (s + m)[keys].max())
        a[keys] = e / e.sum()
    return a


def backward_rows(dA, S, M, one_row, join=np.add):
    """Go back through one query after another, and collect dM on the way."""
    full = np.broadcast_to(M, S.shape)
    dS = np.zeros(S.shape)
    for row in np.ndindex(S.shape[:-1]):
        with np.errstate(all="ignore"):
            dS[row] = one_row(dA[row], S[row], full[row])
    dM = dS
    while dM.ndim > M.ndim:
        dM = join.reduce(dM, axis=0)
    for axis in range(M.ndim):
        if M.shape[axis] == 1:
            dM = join.reduce(dM, axis=axis, keepdims=True)
    return dS, dM


def right_row(d, s, m):
    a = right_weights(s, m)
    return a * (d - np.dot(a, d))


def backward_diagonal(dA, S, M):
    def one_row(d, s, m):
        a = right_weights(s, m)
        return d * (a - a**2)

    return backward_rows(dA, S, M, one_row)


def backward_forgets_the_mask(dA, S, M):
    return backward_rows(dA, S, M, lambda d, s, m: right_row(d, s, np.zeros(len(m))))


def backward_zero_by_zero(dA, S, M):
    def one_row(d, s, m):
        e = np.exp(np.where(m == -math.inf, -math.inf, s + m))
        a = e / e.sum()
        return a * (d - np.dot(a, d))

    return backward_rows(dA, S, M, one_row)


def backward_whole_bias(dA, S, M):
    dS, _ = backward_rows(dA, S, M, right_row)
    return dS, dS.copy()


def backward_mean_bias(dA, S, M):
    dS, dM = backward_rows(dA, S, M, right_row)
    return dS, dM * M.size / S.size


# masks.leak_test


def differ(one, other, limit=1e-5):
    return bool(np.max(np.abs(one - other)) > limit)


def leak_any_bit(model, ids, rng):
    whole = model(ids)
    for b in range(len(ids)):
        for t in range(ids.shape[1]):
            part = model(ids[b : b + 1, : t + 1])
            if (part[0] != whole[b, : t + 1]).any():
                return True
    return False


def leak_large_only(model, ids, rng):
    whole = model(ids)
    for b in range(len(ids)):
        for t in range(ids.shape[1]):
            if differ(model(ids[b : b + 1, : t + 1])[0], whole[b, : t + 1], 0.01):
                return True
    return False


def leak_first_sequence(model, ids, rng):
    whole = model(ids)
    return any(
        differ(model(ids[:1, : t + 1])[0], whole[0, : t + 1]) for t in range(ids.shape[1])
    )


def leak_whole_batch(model, ids, rng):
    whole = model(ids)
    return any(differ(model(ids[:, :n]), whole[:, :n]) for n in range(1, ids.shape[1] + 1))


def leak_batch_alone(model, ids, rng):
    whole = model(ids)
    return any(differ(model(ids[b][None])[0], whole[b]) for b in range(len(ids)))


def leak_changed_in_place_of_cut(model, ids, rng):
    whole = model(ids)
    for b in range(len(ids)):
        for t in range(ids.shape[1]):
            other = (ids + 3) % whole.shape[-1]
            other[b, : t + 1] = ids[b, : t + 1]
            if differ(model(other)[b, : t + 1], whole[b, : t + 1]):
                return True
    return False


def leak_own_logits_too(model, ids, rng):
    whole = model(ids)
    for b in range(len(ids)):
        for t in range(ids.shape[1]):
            other = (ids + 2) % whole.shape[-1]
            other[b, :t] = ids[b, :t]
            if differ(model(other)[b, : t + 1], whole[b, : t + 1]):
                return True
    return False


def leak_turned_round(model, ids, rng):
    whole = model(ids)
    for b in range(len(ids)):
        for t in range(ids.shape[1]):
            if differ(model(ids[b : b + 1, : t + 1])[0], whole[b, : t + 1]):
                return False
    return True


# masks.layer_cost


def cost_table(B, n_q, n_k, d, H, F, itemsize):
    return {
        "projections": B * n_q * d * d * 8,
        "attention": B * n_q * n_k * d * 4,
        "feed_forward": B * n_q * d * F * 4,
        "score_bytes": B * H * n_q * n_k * itemsize,
        "cache_bytes": B * n_k * 2 * d * itemsize,
    }


def cost_multiplications(B, n_q, n_k, d, H, F, itemsize):
    table = cost_table(B, n_q, n_k, d, H, F, itemsize)
    for name in ("projections", "attention", "feed_forward"):
        table[name] = table[name] // 2
    return table


def cost_every_head_is_wide(B, n_q, n_k, d, H, F, itemsize):
    table = cost_table(B, n_q, n_k, d, H, F, itemsize)
    table["attention"] = sum(table["attention"] for _ in range(H))
    return table


def cost_keys_and_values_again(B, n_q, n_k, d, H, F, itemsize):
    table = cost_table(B, n_q, n_k, d, H, F, itemsize)
    table["projections"] = B * 2 * d * d * (n_q + n_k + n_k + n_q)
    return table


def cost_half_a_cache(B, n_q, n_k, d, H, F, itemsize):
    table = cost_table(B, n_q, n_k, d, H, F, itemsize)
    table["cache_bytes"] /= 2
    return table


def cost_triangle(B, n_q, n_k, d, H, F, itemsize):
    table = cost_table(B, n_q, n_k, d, H, F, itemsize)
    pairs = sum(n_k - n_q + i + 1 for i in range(n_q))
    table["attention"] = 4 * B * pairs * d
    return table


def combine_zero_means_open(masks):
    total = 0
    for mask in masks:
        total = total + (np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask)
    return total, ~np.any(total == 0, axis=-1)


def softmax_tidied(S, M):
    with np.errstate(invalid="ignore"):
        Z = S + M
        E = np.exp(Z - np.max(Z, axis=-1, keepdims=True))
        return np.nan_to_num(E / np.sum(E, axis=-1, keepdims=True))


def softmax_down_the_columns(S, M):
    Z = np.where(np.isneginf(M), -np.inf, S + np.where(np.isneginf(M), 0, M))
    top = Z.max(axis=0)
    E = np.exp(Z - np.where(np.isneginf(top), 0, top))
    total = E.sum(axis=0)
    return E / np.where(total == 0, 1, total)


def leak_close_enough(model, ids, rng):
    B, T = ids.shape
    whole = model(ids)
    for b in range(B):
        for t in range(T):
            if not np.allclose(whole[b, t], model(ids[b : b + 1, : t + 1])[0, t]):
                return True
    return False


def leak_suspects_all(model, ids, rng):
    return True


AFRESH = {
    "padding_mask": {
        padding_hides_words: "polarity",
        padding_one_too_many: "one_long",
        padding_always_behind: "side_ignored",
        padding_by_the_longest: "width_from_batch",
        padding_times_infinity: "zero_times_inf",
        padding_of_truth: "booleans",
        padding_slice_from_the_end: "full_blocked",
        padding_slice_up_to_the_end: "empty_open",
    },
    "causal_mask": {
        causal_not_itself: "strict",
        causal_from_the_start: "past_ignored",
        causal_aligned_at_the_end: "past_from_sizes",
        causal_new_ones_only: "past_blocked",
        causal_square: "new_keys_alone",
        causal_large: "large_number",
    },
    "combine_masks": {
        combine_plain_sum: "booleans_added",
        combine_true_is_blocked: "booleans_reversed",
        combine_multiplied: "product",
        combine_one_is_enough: "empty_any",
        combine_each_by_itself: "empty_each",
        combine_sum_alone: "mask_alone",
        combine_zero_means_open: "empty_without_zero",
    },
    "masked_softmax": {
        softmax_quarter_for_the_blocked: "mask_multiplied",
        softmax_then_erased: "mask_after_softmax",
        softmax_no_key_no_number: "empty_row_nan",
        softmax_ten_to_the_nine: "empty_row_uniform",
        softmax_literally_added: "blocked_added",
        softmax_without_a_shift: "no_shift",
        softmax_with_a_tiny_number: "no_shift_guarded",
        softmax_no_bias: "bias_ignored",
        softmax_tidied: "nan_to_zero",
        softmax_down_the_columns: "softmax_axis_zero",
    },
    "masked_softmax_backward": {
        backward_diagonal: "softmax_diagonal",
        backward_forgets_the_mask: "weights_unmasked",
        backward_zero_by_zero: "empty_row_nan",
        backward_whole_bias: "dm_not_summed",
        backward_mean_bias: "dm_averaged",
    },
    "leak_test": {
        leak_any_bit: "exact",
        leak_large_only: "tolerance_wide",
        leak_first_sequence: "first_row",
        leak_whole_batch: "rows_together",
        leak_batch_alone: "future_untested",
        leak_changed_in_place_of_cut: "tokens_alone",
        leak_own_logits_too: "own_output",
        leak_suspects_all: "own_output",
        leak_close_enough: "exact",
        leak_turned_round: "inverted",
    },
    "layer_cost": {
        cost_multiplications: "multiply_add_one",
        cost_every_head_is_wide: "heads_multiply",
        cost_keys_and_values_again: "past_projected",
        cost_half_a_cache: "cache_keys_alone",
        cost_triangle: "causal_pairs",
    },
}
