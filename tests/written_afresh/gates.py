"""Wrong answers to the assignment ``gates``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: one row
of the batch and one unit at a time, or matrices turned until the shapes fit.
"""

import math

import numpy as np


def squash(a):
    return 0.5 * (math.tanh(a / 2) + 1)


def total(row, vector, bias=0.0):
    return float(np.dot(row, vector) + bias)


# gates.lstm_step


def lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o, rule, join=None, s=squash):
    """Apply a rule to the gates of every unit of every row; the rule returns h and C."""
    h, C = np.zeros(C_prev.shape), np.zeros(C_prev.shape)
    for b in range(len(x)):
        v = np.append(h_prev[b], x[b]) if join is None else join(h_prev[b], x[b], C_prev[b])
        for j in range(C.shape[1]):
            f = s(total(W_f[j], v, b_f[j]))
            i = s(total(W_i[j], v, b_i[j]))
            g = math.tanh(total(W_C[j], v, b_C[j]))
            o = s(total(W_o[j], v, b_o[j]))
            h[b, j], C[b, j] = rule(f, i, g, o, C_prev[b, j])
    return h, C


def proper(f, i, g, o, old):
    new = f * old + i * g
    return o * math.tanh(new), new


def lstm_shows_the_cell_itself(*args):
    def rule(f, i, g, o, old):
        new = f * old + i * g
        return o * new, new

    return lstm(*args, rule)


def lstm_shows_yesterday(*args):
    def rule(f, i, g, o, old):
        return o * math.tanh(old), f * old + i * g

    return lstm(*args, rule)


def lstm_gates_in_the_wrong_order(x, h_prev, C_prev, W_i, b_i, W_f, b_f, *rest):
    return lstm(x, h_prev, C_prev, W_f, b_f, W_i, b_i, *rest, proper)


def lstm_third_block_is_the_output(x, h, C, Wf, bf, Wi, bi, Wo, bo, Wg, bg):
    return lstm(x, h, C, Wf, bf, Wi, bi, Wg, bg, Wo, bo, proper)


def lstm_one_gate_for_both(*args):
    def rule(f, i, g, o, old):
        new = f * (old + g)
        return o * math.tanh(new), new

    return lstm(*args, rule)


def lstm_leaky(*args):
    def rule(f, i, g, o, old):
        new = g + f * (old - g)
        return o * math.tanh(new), new

    return lstm(*args, rule)


def lstm_never_forgets(*args):
    def rule(f, i, g, o, old):
        new = old + i * g
        return o * math.tanh(new), new

    return lstm(*args, rule)


def lstm_tanh_kept_in_the_cell(*args):
    def rule(f, i, g, o, old):
        new = math.tanh(f * old + i * g)
        return o * math.tanh(new), new

    return lstm(*args, rule)


def lstm_input_before_state(*args):
    return lstm(*args, proper, join=lambda h, x, C: np.append(x, h))


def lstm_reads_the_cell(*args):
    return lstm(*args, proper, join=lambda h, x, C: np.append(C, x))


def lstm_copied_bias(x, h, C, W_f, b_f, W_i, b_i, W_C, b_C, W_o, b_o):
    return lstm(x, h, C, W_f, b_o, W_i, b_o, W_C, b_C, W_o, b_o, proper)


def lstm_quotient_of_exponentials(*args):
    def s(a):
        e = np.exp(np.float64(a))
        return e / (e + 1)

    return lstm(*args, proper, s=s)


def lstm_cell_first(*args):
    h, C = lstm(*args, proper)
    return C, h


# gates.lstm_sequence


def sequence(X, h_0, C_0, weights, start=None):
    """Run the step over time; ``start`` chooses what each step reads."""
    B, T, _ = X.shape
    H = np.zeros((B, T, h_0.shape[1]))
    C = np.zeros((B, T, h_0.shape[1]))
    for t in range(T):
        before = (H[:, t - 1], C[:, t - 1]) if t else (h_0, C_0)
        if start is not None:
            before = start(t, H, C, h_0, C_0)
        H[:, t], C[:, t] = lstm(X[:, t], *before, *weights, proper)
    return H, C


def sequence_index_minus_one(X, h_0, C_0, *weights):
    """Case B06: at t = 0 the index -1 is the last step, which still holds zeros."""
    return sequence(X, h_0, C_0, weights, lambda t, H, C, *_: (H[:, t - 1], C[:, t - 1]))


def sequence_always_from_the_start(X, h_0, C_0, *weights):
    return sequence(X, h_0, C_0, weights, lambda t, H, C, *initial: initial)


def sequence_forgets_the_cell(X, h_0, C_0, *weights):
    def start(t, H, C, h_0, C_0):
        return (H[:, t - 1] if t else h_0), C_0

    return sequence(X, h_0, C_0, weights, start)


def sequence_one_array_for_all_steps(X, h_0, C_0, *weights):
    h, C = h_0.copy(), C_0.copy()
    hidden, cells = [], []
    for t in range(X.shape[1]):
        h[...], C[...] = lstm(X[:, t], h, C, *weights, proper)
        hidden.append(h)
        cells.append(C)
    return np.array(hidden).swapaxes(0, 1), np.array(cells).swapaxes(0, 1)


def sequence_list_of_steps(X, h_0, C_0, *weights):
    H, C = sequence(X, h_0, C_0, weights)
    return [H[:, t] for t in range(H.shape[1])], [C[:, t] for t in range(C.shape[1])]


def sequence_stored_too_early(X, h_0, C_0, *weights):
    H, C = sequence(X, h_0, C_0, weights)
    shift = (np.concatenate([s[:, None], S[:, :-1]], 1) for s, S in ((h_0, H), (C_0, C)))
    return tuple(shift)


# gates.lstm_step_backward


def lstm_back(dh, dC, x, h_prev, C_prev, f, i, g, o, C, W_f, W_i, W_C, W_o, **change):
    """Go back row by row; ``change`` replaces single formulas."""

    def formula(name, right):
        return change.get(name, right)

    B, H = dh.shape
    dx, dh_prev, dC_prev = np.zeros(x.shape), np.zeros((B, H)), np.zeros((B, H))
    dW = [np.zeros(W_f.shape) for _ in range(4)]
    db = [np.zeros(H) for _ in range(4)]
    for b in range(B):
        y = np.tanh(C[b])
        into = formula("into", lambda d, D, o, y, c, old: D + d * o * (1 - y**2))
        d = into(dh[b], dC[b], o[b], y, C[b], C_prev[b])
        slope = formula("slope", lambda s: s * (1 - s))
        sums = [
            d * formula("partner_f", lambda old, new: old)(C_prev[b], C[b]) * slope(f[b]),
            d * g[b] * slope(i[b]),
            d * i[b] * formula("slope_g", lambda v: 1 - v**2)(g[b]),
            dh[b] * formula("partner_o", lambda y, c: y)(y, C[b]) * slope(o[b]),
        ]
        v = formula("join", lambda h, x: np.append(h, x))(h_prev[b], x[b])
        dv = np.zeros(len(v))
        for k, W in enumerate((W_f, W_i, W_C, W_o)):
            dW[k] = dW[k] + sums[k][:, None] * v[None, :]
            db[k] = db[k] + sums[k]
            dv = dv + sums[k] @ W
        dh_prev[b], dx[b] = formula("cut", lambda dv: (dv[:H], dv[H:]))(dv)
        dC_prev[b] = formula("keep", lambda f, d: f * d)(f[b], d)
    return dx, dh_prev, dC_prev, dW[0], db[0], dW[1], db[1], dW[2], db[2], dW[3], db[3]


def lstm_back_overwrites_dC(*args):
    return lstm_back(*args, into=lambda d, D, o, y, c, old: d * o * (1 - y**2))


def lstm_back_only_the_cell(*args):
    return lstm_back(*args, into=lambda d, D, o, y, c, old: D)


def lstm_back_tanh_of_tanh(*args):
    return lstm_back(*args, into=lambda d, D, o, y, c, old: D + d * o / np.cosh(y) ** 2)


def lstm_back_cell_taken_for_its_tanh(*args):
    return lstm_back(*args, into=lambda d, D, o, y, c, old: D + d * o * (1 - c * c))


def lstm_back_gates_without_slope(*args):
    return lstm_back(*args, slope=lambda s: 1.0)


def lstm_back_candidate_as_gate(*args):
    return lstm_back(*args, slope_g=lambda v: v - v**2)


def lstm_back_forgets_f(*args):
    return lstm_back(*args, keep=lambda f, d: d)


def lstm_back_new_cell_for_f(*args):
    return lstm_back(*args, partner_f=lambda old, new: new)


def lstm_back_o_without_tanh(*args):
    return lstm_back(*args, partner_o=lambda y, c: c)


def lstm_back_mean(*args):
    grads = lstm_back(*args)
    return *grads[:3], *(g / len(args[0]) for g in grads[3:])


def lstm_back_input_first(*args):
    D = args[2].shape[1]
    return lstm_back(*args, join=lambda h, x: np.append(x, h), cut=lambda dv: (dv[D:], dv[:D]))


# gates.gru_step


def gru(x, h_prev, W_r, W_z, W, sum_n=None, rule=None, s=squash):
    """Apply rules for the sum of the candidate and for the new state."""
    new = np.zeros(h_prev.shape)
    H = h_prev.shape[1]
    for b in range(len(x)):
        h, v = h_prev[b], np.append(h_prev[b], x[b])
        r = np.array([s(total(row, v)) for row in W_r])
        z = np.array([s(total(row, v)) for row in W_z])
        if sum_n is None:
            a = W[:, :H] @ (r * h) + W[:, H:] @ x[b]
        else:
            a = sum_n(W[:, :H], W[:, H:], r, h, x[b])
        n = np.tanh(a)
        new[b] = (1 - z) * h + z * n if rule is None else rule(z, r, h, n)
    return new


def gru_other_convention(*args):
    return gru(*args, rule=lambda z, r, h, n: n + z * (h - n))


def gru_as_in_the_library(*args):
    return gru(*args, sum_n=lambda U, V, r, h, x: r * (U @ h) + V @ x)


def gru_without_reset(*args):
    return gru(*args, sum_n=lambda U, V, r, h, x: U @ h + V @ x)


def gru_reset_in_front_of_everything(*args):
    return gru(*args, sum_n=lambda U, V, r, h, x: r * (U @ h + V @ x))


def gru_gates_swapped(x, h, W_r, W_z, W):
    return gru(x, h, W_z, W_r, W)


def gru_overwritten_state(*args):
    return gru(*args, rule=lambda z, r, h, n: (1 - z) * (r * h) + z * n)


def gru_adds(*args):
    return gru(*args, rule=lambda z, r, h, n: h + z * n)


def gru_quotient(*args):
    def s(a):
        e = np.exp(np.float64(a))
        return e / (1 + e)

    return gru(*args, s=s)


# gates.gru_step_backward


def gru_back(dh, x, h_prev, r, z, n, W_r, W_z, W, **change):
    """Go back row by row; ``change`` replaces single terms."""
    B, H = dh.shape
    dx, dh_prev = np.zeros(x.shape), np.zeros((B, H))
    dW_r, dW_z, dW = (np.zeros(W.shape) for _ in range(3))
    slope = change.get("slope", lambda s: s * (1 - s))
    for b in range(B):
        d = dh[b]
        a_n = d * z[b] * change.get("slope_n", lambda v: 1 - v**2)(n[b])
        a_z = d * change.get("step", lambda n, h: n - h)(n[b], h_prev[b]) * slope(z[b])
        m = W[:, :H].T @ a_n
        a_r = m * h_prev[b] * slope(r[b])
        direct = change.get("direct", lambda d, z: d * (1 - z))(d, z[b])
        dh_prev[b] = direct + m * change.get("reset", lambda r: r)(r[b])
        dh_prev[b] += W_z[:, :H].T @ a_z
        dx[b] = W[:, H:].T @ a_n + W_z[:, H:].T @ a_z
        if not change.get("no_path_r"):
            dh_prev[b] += W_r[:, :H].T @ a_r
            dx[b] += W_r[:, H:].T @ a_r
        v = np.append(h_prev[b], x[b])
        dW_r += np.outer(a_r, v)
        dW_z += np.outer(a_z, v)
        w = change.get("reads", lambda r, h: r * h)(r[b], h_prev[b])
        dW += np.outer(a_n, np.append(w, x[b]))
    return dx, dh_prev, dW_r, dW_z, dW


def gru_back_only_through_matrices(*args):
    return gru_back(*args, direct=lambda d, z: 0 * d)


def gru_back_direct_by_z(*args):
    return gru_back(*args, direct=lambda d, z: d * z)


def gru_back_same_input_for_all(*args):
    return gru_back(*args, reads=lambda r, h: h)


def gru_back_candidate_alone_in_z(*args):
    return gru_back(*args, step=lambda n, h: n)


def gru_back_reset_not_applied(*args):
    return gru_back(*args, reset=lambda r: 1.0)


def gru_back_no_path_through_r(*args):
    return gru_back(*args, no_path_r=True)


def gru_back_gates_without_slope(*args):
    return gru_back(*args, slope=lambda s: 1.0)


def gru_back_state_first(*args):
    dx, dh_prev, *rest = gru_back(*args)
    return [dh_prev, dx, *rest]


# gates.count_parameters


def count_both_with_biases(D, H):
    block = (D + H + 1) * H
    return 4 * block, 3 * block


def count_matrices_alone(D, H):
    return 4 * H * D + 4 * H * H, 3 * H * D + 3 * H * H


def count_like_a_framework(D, H):
    return 4 * (H * D + H * H + H + H), 3 * (H * D + H * H)


def count_three_gates(D, H):
    gate = H * D + H * H
    return 3 * gate + 3 * H, 2 * gate


AFRESH = {
    "lstm_step": {
        lstm_shows_the_cell_itself: "no_tanh",
        lstm_shows_yesterday: "old_cell_shown",
        lstm_gates_in_the_wrong_order: "forget_input_exchanged",
        lstm_third_block_is_the_output: "candidate_output_exchanged",
        lstm_one_gate_for_both: "forget_gate_alone",
        lstm_leaky: "coupled_gates",
        lstm_never_forgets: "no_forget_gate",
        lstm_tanh_kept_in_the_cell: "cell_squashed",
        lstm_input_before_state: "columns_x_first",
        lstm_reads_the_cell: "cell_in_gates",
        lstm_copied_bias: "one_bias",
        lstm_quotient_of_exponentials: "naive_sigmoid",
        lstm_cell_first: "parts_exchanged",
    },
    "lstm_sequence": {
        sequence_index_minus_one: "zero_initial_states",
        sequence_always_from_the_start: "states_not_carried",
        sequence_forgets_the_cell: "cell_not_carried",
        sequence_one_array_for_all_steps: "last_step_everywhere",
        sequence_list_of_steps: "time_first",
        sequence_stored_too_early: "states_before",
    },
    "lstm_step_backward": {
        lstm_back_overwrites_dC: "later_dC_missing",
        lstm_back_only_the_cell: "through_h_missing",
        lstm_back_tanh_of_tanh: "tanh_derivative_of_tanh",
        lstm_back_cell_taken_for_its_tanh: "tanh_derivative_of_value",
        lstm_back_gates_without_slope: "sigmoid_derivative_missing",
        lstm_back_candidate_as_gate: "candidate_like_a_gate",
        lstm_back_forgets_f: "dC_prev_without_f",
        lstm_back_new_cell_for_f: "forget_gate_new_cell",
        lstm_back_o_without_tanh: "output_gate_without_tanh",
        lstm_back_mean: "mean_over_batch",
        lstm_back_input_first: "columns_x_first",
    },
    "gru_step": {
        gru_other_convention: "update_exchanged",
        gru_as_in_the_library: "reset_after",
        gru_without_reset: "reset_ignored",
        gru_reset_in_front_of_everything: "reset_of_the_sum",
        gru_gates_swapped: "gates_exchanged",
        gru_overwritten_state: "old_state_reset",
        gru_adds: "old_state_in_full",
        gru_quotient: "naive_sigmoid",
    },
    "gru_step_backward": {
        gru_back_only_through_matrices: "direct_path_missing",
        gru_back_direct_by_z: "direct_path_with_z",
        gru_back_same_input_for_all: "matrix_of_h",
        gru_back_candidate_alone_in_z: "update_gate_without_state",
        gru_back_reset_not_applied: "reset_factor_missing",
        gru_back_no_path_through_r: "reset_gate_not_followed",
        gru_back_gates_without_slope: "sigmoid_derivative_missing",
        gru_back_state_first: "dh_prev_first",
    },
    "count_parameters": {
        count_both_with_biases: "gru_biases",
        count_matrices_alone: "no_biases",
        count_like_a_framework: "two_biases",
        count_three_gates: "gates_alone",
    },
}
