"""Wrong answers to the assignment ``rnn``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: loops,
one sequence at a time, shapes forced to fit.
"""

import math

import numpy as np


def row_losses(Z, y, of_row):
    """Apply ``of_row(z, target)`` to every position."""
    flat = Z.reshape(-1, Z.shape[-1])
    losses = [of_row(z, int(c)) for z, c in zip(flat, y.reshape(-1), strict=True)]
    return np.array(losses).reshape(y.shape)


def lse(z):
    return np.max(z) + np.log(np.sum(np.exp(z - np.max(z))))


# rnn.token_losses


def losses_of_columns(Z, y):
    top = np.max(Z, axis=0)
    L = Z - (top + np.log(np.sum(np.exp(Z - top), axis=0)))
    out = np.empty(y.shape)
    for at in np.ndindex(*y.shape):
        out[at] = -L[at][y[at]]
    return out


def losses_softmax_of_softmax(Z, y):
    def of_row(z, c):
        p = np.exp(z - lse(z))
        return -(p - lse(p))[c]

    return row_losses(Z, y, of_row)


def losses_probability_only(Z, y):
    return row_losses(Z, y, lambda z, c: -np.exp(z[c] - lse(z)))


def losses_positive_logarithm(Z, y):
    return row_losses(Z, y, lambda z, c: z[c] - lse(z))


def losses_textbook_softmax(Z, y):
    with np.errstate(all="ignore"):
        p = np.exp(Z)
        p = p / p.sum(-1)[..., None]
        return row_losses(-np.log(p), y, lambda row, c: row[c])


def losses_stable_then_log(Z, y):
    p = np.exp(Z - np.amax(Z, -1)[..., None])
    p /= p.sum(-1)[..., None]
    with np.errstate(divide="ignore"):
        return row_losses(p, y, lambda row, c: -np.log(row[c]))


def losses_sum_of_exponentials(Z, y):
    with np.errstate(all="ignore"):
        return row_losses(Z, y, lambda z, c: np.log(sum(np.exp(v) for v in z)) - z[c])


def losses_in_bits(Z, y):
    return row_losses(Z, y, lambda z, c: (lse(z) - z[c]) * np.log2(np.e))


# rnn.masked_cross_entropy


def sequence_losses(Z, y, ignored):
    """Return the losses that count, a list for each sequence."""
    return [
        [lse(Z[b, t]) - Z[b, t, y[b, t]] for t in range(y.shape[1]) if y[b, t] != ignored]
        for b in range(len(y))
    ]


def two_means(lists):
    every = [v for values in lists for v in values]
    own = [np.mean(values) for values in lists if values]
    return (np.mean(every) if every else 0.0), (np.mean(own) if own else 0.0)


def masked_divides_by_shape(Z, y, ignored=-100):
    lists = sequence_losses(Z, y, ignored)
    B, T = y.shape
    return sum(map(sum, lists)) / (B * T), two_means(lists)[1]


def masked_mean_over_axis(Z, y, ignored=-100):
    lists = sequence_losses(Z, y, ignored)
    table = np.zeros(y.shape)
    for b, values in enumerate(lists):
        table[b, : len(values)] = values
    return two_means(lists)[0], np.mean(np.mean(table, axis=1))


def masked_second_like_first(Z, y, ignored=-100):
    tokens = two_means(sequence_losses(Z, y, ignored))[0]
    return tokens, tokens


def masked_wrong_way_round(Z, y, ignored=-100):
    return two_means(sequence_losses(Z, y, ignored))[::-1]


def masked_hard_coded(Z, y, ignored=-100):
    return two_means(sequence_losses(Z, y, -100))


def masked_shifts(Z, y, ignored=-100):
    return two_means(sequence_losses(Z[:, :-1], y[:, 1:], ignored))


def masked_empty_is_zero(Z, y, ignored=-100):
    lists = sequence_losses(Z, y, ignored)
    own = [sum(values) / len(values) if values else 0.0 for values in lists]
    return two_means(lists)[0], sum(own) / len(own)


def masked_skips_class_zero(Z, y, ignored=-100):
    return two_means(sequence_losses(Z, np.where(y == 0, ignored, y), ignored))


# rnn.corpus_perplexity


def perplexity_of_average(losses, counts):
    nats = sum(losses) / len(losses)
    return math.exp(nats), nats / math.log(2)


def token_mean(losses, counts):
    pairs = [(v, n) for v, n in zip(losses, counts, strict=True) if n > 0]
    return sum(v * n for v, n in pairs) / sum(n for _, n in pairs)


def perplexity_average(losses, counts):
    each = [math.exp(v) for v, n in zip(losses, counts, strict=True) if n > 0]
    return sum(each) / len(each), token_mean(losses, counts) / math.log(2)


def perplexity_to_base_two(losses, counts):
    nats = token_mean(losses, counts)
    return 2.0**nats, nats / math.log(2)


def perplexity_bits_times(losses, counts):
    nats = token_mean(losses, counts)
    return math.exp(nats), nats * math.log(2)


# rnn.next_token_batches


def windows(ids, B, T, place, K, shift=1):
    X = [[[ids[place(k, b, t)] for t in range(T)] for b in range(B)] for k in range(K)]
    Y = [[[ids[place(k, b, t) + shift] for t in range(T)] for b in range(B)] for k in range(K)]
    return np.array(X), np.array(Y)


def batches_without_shift(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    return windows(ids, B, T, lambda k, b, t: b * K * T + k * T + t, K, shift=0)


def batches_one_window_after_another(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    X = np.array(ids[: K * B * T]).reshape(K, B, T)
    Y = np.array(ids[1 : K * B * T + 1]).reshape(K, B, T)
    return X, Y


def batches_like_cards(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    rows = [ids[: K * B * T][b::B] for b in range(B)]
    nexts = [ids[1 : K * B * T + 1][b::B] for b in range(B)]
    X = [[row[k * T : k * T + T] for row in rows] for k in range(K)]
    Y = [[row[k * T : k * T + T] for row in nexts] for k in range(K)]
    return np.array(X), np.array(Y)


def batches_window_closes_on_itself(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    X, Y = windows(ids, B, T, lambda k, b, t: b * K * T + k * T + t, K)
    Y[:, :, -1] = X[:, :, 0]
    return X, Y


def batches_rows_in_front(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    return (
        ids[: B * K * T].reshape(B, K, T),
        ids[1 : B * K * T + 1].reshape(B, K, T),
    )


# rnn.rnn_step


def step_linear(h, x, W, b):
    return np.dot(np.concatenate([h, x], -1), W.T) + b


def step_wrong_order(h, x, W, b):
    return np.tanh(np.dot(np.concatenate([x, h], -1), W.T) + b)


def step_bias_outside(h, x, W, b):
    return np.tanh(np.concatenate([h, x], -1).dot(W.T)) + b


def step_two_biases(h, x, W, b):
    m = len(b)
    return np.tanh((h.dot(W[:, :m].T) + b) + (x.dot(W[:, m:].T) + b))


def step_logistic(h, x, W, b):
    return (1 + np.exp(-(np.concatenate([h, x], -1).dot(W.T) + b))) ** -1.0


def step_only_input(h, x, W, b):
    return np.tanh(x.dot(W[:, len(b) :].T) + b)


# rnn.rnn_forward


def layer(x, h_0, W_hh, W_xh, b_h, lengths, step):
    """Run each sequence alone; ``step(h, x_t, first)`` gives the next state."""
    B, T, _ = x.shape
    H, ends = np.zeros((B, T, len(b_h))), np.array(h_0, dtype=float)
    for b in range(B):
        h = h_0[b]
        for t in range(T if lengths is None else int(lengths[b])):
            h = step(h, x[b, t], h_0[b])
            H[b, t] = h
            ends[b] = h
    return H, ends


def forward_always_from_the_start(x, h_0, W_hh, W_xh, b_h, lengths=None):
    def step(h, v, first):
        return np.tanh(W_hh.dot(first) + W_xh.dot(v) + b_h)

    return layer(x, h_0, W_hh, W_xh, b_h, lengths, step)


def forward_without_tanh(x, h_0, W_hh, W_xh, b_h, lengths=None):
    def step(h, v, first):
        return W_hh.dot(h) + W_xh.dot(v) + b_h

    return layer(x, h_0, W_hh, W_xh, b_h, lengths, step)


def forward_transposed(x, h_0, W_hh, W_xh, b_h, lengths=None):
    def step(h, v, first):
        return np.tanh(h.dot(W_hh) + W_xh.dot(v) + b_h)

    return layer(x, h_0, W_hh, W_xh, b_h, lengths, step)


def right_step(W_hh, W_xh, b_h):
    return lambda h, v, first: np.tanh(W_hh.dot(h) + W_xh.dot(v) + b_h)


def forward_reads_padding(x, h_0, W_hh, W_xh, b_h, lengths=None):
    return layer(x, h_0, W_hh, W_xh, b_h, None, right_step(W_hh, W_xh, b_h))


def forward_last_column(x, h_0, W_hh, W_xh, b_h, lengths=None):
    H, _ = layer(x, h_0, W_hh, W_xh, b_h, lengths, right_step(W_hh, W_xh, b_h))
    return H, H[:, -1, :]


def forward_previous_column(x, h_0, W_hh, W_xh, b_h, lengths=None):
    """Read the state before step t from column t - 1, which is -1 at the start (case B06)."""
    B, T, _ = x.shape
    H, ends = np.zeros((B, T, len(b_h))), np.array(h_0)
    for t in range(T):
        H[:, t] = np.tanh(H[:, t - 1] @ W_hh.T + x[:, t] @ W_xh.T + b_h)
    for b in range(B):
        length = T if lengths is None else lengths[b]
        if length > 0:
            ends[b] = H[b, length - 1]
        H[b, length:] = 0
    return H, ends


def forward_time_in_front(x, h_0, W_hh, W_xh, b_h, lengths=None):
    H, ends = layer(x, h_0, W_hh, W_xh, b_h, lengths, right_step(W_hh, W_xh, b_h))
    return np.array([H[:, t] for t in range(H.shape[1])]), ends


def forward_empty_gives_zeros(x, h_0, W_hh, W_xh, b_h, lengths=None):
    H, ends = layer(x, h_0, W_hh, W_xh, b_h, lengths, right_step(W_hh, W_xh, b_h))
    for b in range(len(x)):
        if lengths is not None and lengths[b] == 0:
            ends[b] = 0
    return H, ends


# rnn.reverse_sequences


def reverse_everything(x, lengths):
    return np.array([sequence[::-1] for sequence in x])


def reverse_into_zeros(x, lengths):
    y = np.zeros(x.shape)
    for b in range(len(x)):
        for t in range(lengths[b]):
            y[b, t] = x[b, lengths[b] - t - 1]
    return y


def reverse_in_place_of_itself(x, lengths):
    y = [[list(step) for step in sequence] for sequence in x]
    for b in range(len(y)):
        for t in range(lengths[b]):
            y[b][t] = y[b][lengths[b] - 1 - t]
    return np.array(y)


def reverse_the_batch(x, lengths):
    return np.flip(x, 0).copy()


AFRESH = {
    "token_losses": {
        losses_of_columns: "softmax_over_positions",
        losses_softmax_of_softmax: "softmax_twice",
        losses_probability_only: "no_logarithm",
        losses_positive_logarithm: "no_minus",
        losses_textbook_softmax: "naive_softmax",
        losses_stable_then_log: "log_of_zero",
        losses_sum_of_exponentials: "no_shift",
        losses_in_bits: "base_two",
    },
    "masked_cross_entropy": {
        masked_divides_by_shape: "tokens_over_all",
        masked_mean_over_axis: "sequences_over_T",
        masked_second_like_first: "token_mean_twice",
        masked_wrong_way_round: "parts_exchanged",
        masked_hard_coded: "only_minus_100",
        masked_shifts: "shifted_again",
        masked_empty_is_zero: "empty_sequence_zero",
        masked_skips_class_zero: "zero_ignored",
    },
    "corpus_perplexity": {
        perplexity_of_average: "mean_of_means",
        perplexity_average: "mean_of_perplexities",
        perplexity_to_base_two: "power_of_two",
        perplexity_bits_times: "bits_multiplied",
    },
    "next_token_batches": {
        batches_without_shift: "not_shifted",
        batches_one_window_after_another: "windows_in_order",
        batches_like_cards: "dealt_out",
        batches_window_closes_on_itself: "rolled_in_window",
        batches_rows_in_front: "rows_first",
    },
    "rnn_step": {
        step_linear: "no_tanh",
        step_wrong_order: "inputs_first",
        step_bias_outside: "bias_after",
        step_two_biases: "bias_twice",
        step_logistic: "sigmoid",
        step_only_input: "state_ignored",
    },
    "rnn_forward": {
        forward_always_from_the_start: "not_carried",
        forward_without_tanh: "no_tanh",
        forward_transposed: "recurrent_transposed",
        forward_reads_padding: "lengths_ignored",
        forward_last_column: "last_column",
        forward_previous_column: "zero_initial",
        forward_time_in_front: "time_first",
        forward_empty_gives_zeros: "empty_zero",
    },
    "reverse_sequences": {
        reverse_everything: "whole_flipped",
        reverse_into_zeros: "padding_zeroed",
        reverse_in_place_of_itself: "overwritten",
        reverse_the_batch: "batch_flipped",
    },
}
