"""Wrong answers to the assignment ``bptt``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: loops,
one sequence at a time, names from textbooks.
"""

import math

import numpy as np

# bptt.gradient_is_right


def quotient(E, theta, index, h=1e-5):
    up, down = np.array(theta, dtype="d"), np.array(theta, dtype="d")
    up[index] = up[index] + h
    down[index] = down[index] - h
    return (E(up) - E(down)) / (2.0 * h)


def numeric_gradient(E, theta):
    result = np.zeros(np.shape(theta))
    for index, _ in np.ndenumerate(theta):
        result[index] = quotient(E, theta, index)
    return result


def checker_spot_check(E, theta, g):
    if theta.shape != g.shape:
        return False
    index = (0,) * theta.ndim
    n = quotient(E, theta, index)
    return abs(n - g[index]) < 0.001 * abs(n)


def checker_adds_up(E, theta, g):
    if theta.shape != g.shape:
        return False
    n = numeric_gradient(E, theta)
    return math.isclose(float(np.sum(n)), float(np.sum(g, dtype="d")), rel_tol=1e-3)


def checker_fixed_number(E, theta, g):
    return theta.shape == g.shape and np.allclose(numeric_gradient(E, theta), g, 0, 1e-5)


def checker_allclose(E, theta, g):
    return theta.shape == g.shape and np.allclose(g, numeric_gradient(E, theta))


def checker_relative_in_each_place(E, theta, g):
    if theta.shape != g.shape:
        return False
    for n, a in zip(numeric_gradient(E, theta).ravel(), g.ravel(), strict=True):
        if n != a and not abs(n - a) / max(abs(n), abs(a)) < 1e-3:
            return False
    return True


def checker_looks_for_errors(E, theta, g):
    if theta.shape != g.shape:
        return False
    n = numeric_gradient(E, theta)
    for where in np.ndindex(g.shape):
        if abs(n[where] - g[where]) > 2e-3 * np.amax(np.abs(n)):
            return False
    return True


def checker_both_names(E, theta, g):
    if theta.shape != g.shape:
        return False
    n = np.zeros(theta.shape)
    for where in np.ndindex(theta.shape):
        right = theta.astype("d")
        left = right
        right[where] += 1e-5
        left[where] -= 1e-5
        n[where] = (E(right) - E(left)) / 2e-5
    return bool((abs(n - g) <= 1e-3 * abs(n).max()).all())


def checker_forgets_half(E, theta, g):
    if theta.shape != g.shape:
        return False
    n = 2 * numeric_gradient(E, theta)
    return bool(np.linalg.norm(n - g) <= 1e-3 * np.linalg.norm(n))


def checker_to_the_right_only(E, theta, g):
    if theta.shape != g.shape:
        return False
    base, h = theta.astype("d"), 1e-5
    n = np.array(
        [E(base + h * e.reshape(theta.shape)) - E(base) for e in np.eye(theta.size)]
    ).reshape(theta.shape)
    return bool(np.linalg.norm(n / h - g) <= 2e-3 * np.linalg.norm(n / h))


def checker_keeps_precision(E, theta, g):
    if theta.shape != g.shape:
        return False
    n = np.zeros(theta.shape)
    for where in np.ndindex(theta.shape):
        right, left = theta.copy(), theta.copy()
        right[where] += 1e-5
        left[where] -= 1e-5
        n[where] = (E(right) - E(left)) / 2e-5
    return bool((abs(n - g) <= 1e-3 * abs(n).max()).all())


# bptt.rnn_step_backward


def step(dh, h, h_prev, x, W_hh, W_xh, slope=lambda h, p: 1 - h**2, before=None):
    """Go through one sequence at a time, in columns."""
    dWhh, dWxh, db = np.zeros(W_hh.shape), np.zeros(W_xh.shape), np.zeros(len(W_hh))
    dp, dx = np.zeros(h_prev.shape), np.zeros(x.shape)
    for n in range(len(h)):
        raw = np.multiply(dh[n], slope(h[n], h_prev[n]))
        dp[n] = np.dot(W_hh.T, raw)
        dx[n] = np.dot(W_xh.T, raw)
        dWhh += np.outer(raw, h_prev[n] if before is None else before[n])
        dWxh += np.outer(raw, x[n])
        db += raw
    return dp, dx, dWhh, dWxh, db


def step_linear(dh, h, h_prev, x, W_hh, W_xh):
    return step(dh, h, h_prev, x, W_hh, W_xh, lambda h, p: np.ones(len(h)))


def step_slope_one_too_early(dh, h, h_prev, x, W_hh, W_xh):
    return step(dh, h, h_prev, x, W_hh, W_xh, lambda h, p: (1 - p) * (1 + p))


def step_tanh_of_tanh(dh, h, h_prev, x, W_hh, W_xh):
    return step(dh, h, h_prev, x, W_hh, W_xh, lambda h, p: np.cosh(h) ** -2.0)


def step_uses_new_state(dh, h, h_prev, x, W_hh, W_xh):
    return step(dh, h, h_prev, x, W_hh, W_xh, before=h)


def step_W_turned(dh, h, h_prev, x, W_hh, W_xh):
    _, dx, *rest = step(dh, h, h_prev, x, W_hh, W_xh)
    return (np.einsum("ij,bj->bi", W_hh, dh * (1 - h**2)), dx, *rest)


def step_bias_per_sequence(dh, h, h_prev, x, W_hh, W_xh):
    *rest, _ = step(dh, h, h_prev, x, W_hh, W_xh)
    return (*rest, np.array([a * (1 - b * b) for a, b in zip(dh, h, strict=True)]))


def step_average(dh, h, h_prev, x, W_hh, W_xh):
    dp, dx, *rest = step(dh, h, h_prev, x, W_hh, W_xh)
    return [dp, dx] + [r / h.shape[0] for r in rest]


# bptt.rnn_backward


def sequence(dH, dh_T, H, h0, X, W_hh, W_xh, begin=None, pass_on=None, upstream=None):
    """Go back step by step, with a rule for what is handed from one step to the one before."""
    T = X.shape[0]
    dWhh, dWxh, db, dX = 0.0, 0.0, 0.0, [None] * T
    dnext = dh_T
    for t in reversed(range(T)):
        previous = H[t - 1] if t else (h0 if begin is None else begin)
        total = (dH[t] if upstream is None else upstream(t, T, dH)) + dnext
        raw = total * (1 - H[t] ** 2)
        dX[t] = raw @ W_xh
        dWhh = dWhh + np.einsum("bi,bj->ij", raw, previous)
        dWxh = dWxh + np.einsum("bi,bj->ij", raw, X[t])
        db = db + np.sum(raw, 0)
        dlast, dnext = dnext, raw @ W_hh
        if pass_on is not None:
            dnext = pass_on(t, dlast, dnext, raw, total)
    return dnext, np.array(dX), dWhh, dWxh, db


def sequence_every_step_alone(dH, dh_T, H, h0, X, W_hh, W_xh):
    def forget(t, dlast, dnext, raw, total):
        return dnext if t == 0 else np.zeros(dnext.shape)

    return sequence(dH, dh_T, H, h0, X, W_hh, W_xh, pass_on=forget)


def sequence_adds_to_itself(dH, dh_T, H, h0, X, W_hh, W_xh):
    def add(t, dlast, dnext, raw, total):
        return dlast + dnext

    return sequence(dH, dh_T, H, h0, X, W_hh, W_xh, pass_on=add)


def sequence_only_last_loss(dH, dh_T, H, h0, X, W_hh, W_xh):
    def last(t, T, dH):
        return dH[t] if t + 1 == T else 0.0

    return sequence(dH, dh_T, H, h0, X, W_hh, W_xh, upstream=last)


def sequence_without_last_gradient(dH, dh_T, H, h0, X, W_hh, W_xh):
    return sequence(dH, 0.0, H, h0, X, W_hh, W_xh)


def sequence_starts_at_zero(dH, dh_T, H, h0, X, W_hh, W_xh):
    return sequence(dH, dh_T, H, h0, X, W_hh, W_xh, begin=0.0 * h0)


def sequence_index_minus_one(dH, dh_T, H, h0, X, W_hh, W_xh):
    return sequence(dH, dh_T, H, h0, X, W_hh, W_xh, begin=H[-1])


def sequence_stops_early(dH, dh_T, H, h0, X, W_hh, W_xh):
    def keep(t, dlast, dnext, raw, total):
        return total if t == 0 else dnext

    return sequence(dH, dh_T, H, h0, X, W_hh, W_xh, pass_on=keep)


def sequence_of_inputs_turned_round(dH, dh_T, H, h0, X, W_hh, W_xh):
    dh0, dX, *rest = sequence(dH, dh_T, H, h0, X, W_hh, W_xh)
    return (dh0, np.flip(dX, axis=0), *rest)


def sequence_mean_of_steps(dH, dh_T, H, h0, X, W_hh, W_xh):
    dh0, dX, *rest = sequence(dH, dh_T, H, h0, X, W_hh, W_xh)
    return (dh0, dX, *(np.divide(r, H.shape[0]) for r in rest))


# bptt.rnn_truncated_backward


def truncated(dH, H, h0, X, W_hh, W_xh, reach, ends, counted):
    """Go back from each of ``ends`` to ``reach(end)``; ``counted(t, end)``: is a loss added."""
    states = [h0, *H]
    result = [np.zeros(W_hh.shape), np.zeros(W_xh.shape), np.zeros(len(W_hh))]
    dh0 = np.zeros(h0.shape)
    for end in ends:
        flow, t = np.zeros(h0.shape), end
        while t > reach(end):
            if counted(t, end):
                flow = flow + dH[t - 1]
            raw = flow * (1 - states[t] ** 2)
            result[0] += raw.T @ states[t - 1]
            result[1] += raw.T @ X[t - 1]
            result[2] += raw.sum(axis=0)
            flow = raw @ W_hh
            t -= 1
        if t == 0:
            dh0 = dh0 + flow
    return (*result, dh0)


def ends_of(T, k1):
    """Return the last step of every block, steps counted from 1."""
    return [*range(k1, T, k1), T]


def start_of(end, k1):
    return (end - 1) // k1 * k1


def truncated_at_the_block(dH, H, h0, X, W_hh, W_xh, k1, k2):
    def in_block(t, end):
        return t > start_of(end, k1)

    args = dH, H, h0, X, W_hh, W_xh
    return truncated(*args, lambda end: start_of(end, k1), ends_of(len(X), k1), in_block)


def truncated_nowhere(dH, H, h0, X, W_hh, W_xh, k1, k2):
    T = len(X)
    return truncated(dH, H, h0, X, W_hh, W_xh, lambda end: 0, [T], lambda t, end: True)


def truncated_all_losses_in_reach(dH, H, h0, X, W_hh, W_xh, k1, k2):
    args = dH, H, h0, X, W_hh, W_xh
    ends = ends_of(len(X), k1)
    return truncated(*args, lambda end: max(0, end - k2), ends, lambda t, end: True)


def truncated_each_loss_k2(dH, H, h0, X, W_hh, W_xh, k1, k2):
    args, ends = (dH, H, h0, X, W_hh, W_xh), range(1, len(X) + 1)
    return truncated(*args, lambda end: max(end - k2, 0), ends, lambda t, end: t == end)


def truncated_k2_before_the_block(dH, H, h0, X, W_hh, W_xh, k1, k2):
    def reach(end):
        return max(start_of(end, k1) - k2, 0)

    def in_block(t, end):
        return t > start_of(end, k1)

    return truncated(dH, H, h0, X, W_hh, W_xh, reach, ends_of(len(X), k1), in_block)


def truncated_full_blocks(dH, H, h0, X, W_hh, W_xh, k1, k2):
    ends = [(i + 1) * k1 for i in range(len(X) // k1)]

    def in_block(t, end):
        return end - k1 < t

    args = dH, H, h0, X, W_hh, W_xh
    return truncated(*args, lambda end: max(0, end - k2), ends, in_block)


def truncated_once(dH, H, h0, X, W_hh, W_xh, k1, k2):
    T = len(X)
    args = dH, H, h0, X, W_hh, W_xh
    return truncated(*args, lambda end: max(0, T - k2), [T], lambda t, end: True)


# bptt.state_jacobians


def jacobians(H, W_hh, join, step, norm):
    m = len(W_hh)
    found = [np.eye(m)]
    for lag in range(1, len(H) + 1):
        found.append(join(found[-1], step(H[len(H) - lag])))
    return np.stack(found), np.array([norm(J) for J in found])


def largest_singular(J):
    return np.linalg.svd(J)[1].max()


def jacobians_in_order_of_time(H, W_hh):
    def step(h):
        return np.diag(1 - h * h) @ W_hh

    return jacobians(H, W_hh, lambda J, S: S @ J, step, largest_singular)


def jacobians_slope_behind(H, W_hh):
    def step(h):
        return W_hh @ np.diag(1 - h * h)

    return jacobians(H, W_hh, np.matmul, step, largest_singular)


def jacobians_powers(H, W_hh):
    return jacobians(H, W_hh, np.matmul, lambda h: W_hh, largest_singular)


def jacobians_like_the_notes(H, W_hh):
    def step(h):
        return W_hh.T @ np.diag(1 - h * h)

    return jacobians(H, W_hh, lambda J, S: S @ J, step, largest_singular)


def jacobians_norm_of_all_entries(H, W_hh):
    def step(h):
        return np.diag(1 - h * h) @ W_hh

    return jacobians(H, W_hh, np.matmul, step, lambda J: math.sqrt(np.sum(J * J)))


def jacobians_eigenvalues(H, W_hh):
    def step(h):
        return np.diag(1 - h * h) @ W_hh

    return jacobians(
        H, W_hh, np.matmul, step, lambda J: max(abs(v) for v in np.linalg.eig(J)[0])
    )


def jacobians_of_the_start(H, W_hh):
    J = np.eye(len(W_hh))
    found = [J]
    for h in H:
        J = np.dot(np.diag(1 - h * h), np.dot(W_hh, J))
        found.append(J)
    return np.array(found), np.array([largest_singular(J) for J in found])


# bptt.clip_grad_norm


def clip(grads, c, norm, factor=None):
    """Scale by a rule for the norm and one for the factor."""
    n = norm(grads)
    if np.isnan(n) or np.isinf(n):
        return None, n
    ratio = c / (n + 0.000001)
    s = (ratio if ratio < 1 else 1.0) if factor is None else factor(n, c)
    return [np.multiply(s, g) for g in grads], n


def joint(grads):
    return math.sqrt(math.fsum(float(v) ** 2 for g in grads for v in g.flat))


def clip_arrays_one_by_one(grads, c):
    n = joint(grads)
    if not np.isfinite(n):
        return None, n
    return [clip([g], c, joint)[0][0] for g in grads], n


def clip_entries(grads, c):
    n = joint(grads)
    if not np.isfinite(n):
        return None, n
    return [np.minimum(np.maximum(g, -c), c) for g in grads], n


def clip_also_small_ones(grads, c):
    return clip(grads, c, joint, lambda n, c: c / (n + 1e-6))


def clip_sum_of_norms(grads, c):
    return clip(grads, c, lambda grads: sum(joint([g]) for g in grads))


def clip_without_root(grads, c):
    return clip(grads, c, lambda grads: sum(float(np.vdot(g, g)) for g in grads))


def clip_reports_new_norm(grads, c):
    clipped, n = clip(grads, c, joint)
    return clipped, (n if clipped is None else joint(clipped))


def clip_zero_if_broken(grads, c):
    clipped, n = clip(grads, c, joint)
    return ([0.0 * np.ones(g.shape) for g in grads] if clipped is None else clipped), n


def clip_plain_quotient(grads, c):
    return clip(grads, c, joint, lambda n, c: c / n if n > c else 1.0)


AFRESH = {
    "gradient_is_right": {
        checker_spot_check: "first_entry",
        checker_adds_up: "sums_compared",
        checker_fixed_number: "absolute",
        checker_allclose: "fixed_floor",
        checker_relative_in_each_place: "relative_per_entry",
        checker_looks_for_errors: "nan_passes",
        checker_both_names: "one_array",
        checker_forgets_half: "no_two",
        checker_to_the_right_only: "one_sided",
        checker_keeps_precision: "float32_kept",
    },
    "rnn_step_backward": {
        step_linear: "no_slope",
        step_slope_one_too_early: "slope_of_previous",
        step_tanh_of_tanh: "slope_twice",
        step_uses_new_state: "own_state",
        step_W_turned: "W_hh_transposed",
        step_bias_per_sequence: "bias_not_summed",
        step_average: "batch_mean",
    },
    "rnn_backward": {
        sequence_every_step_alone: "no_carry",
        sequence_adds_to_itself: "carry_accumulates",
        sequence_only_last_loss: "upstream_last_only",
        sequence_without_last_gradient: "last_state_ignored",
        sequence_starts_at_zero: "h0_is_zero",
        sequence_index_minus_one: "h0_is_last",
        sequence_stops_early: "dh0_is_dh1",
        sequence_of_inputs_turned_round: "dX_reversed",
        sequence_mean_of_steps: "time_mean",
    },
    "rnn_truncated_backward": {
        truncated_at_the_block: "k2_ignored",
        truncated_nowhere: "not_truncated",
        truncated_all_losses_in_reach: "losses_repeated",
        truncated_each_loss_k2: "every_step",
        truncated_k2_before_the_block: "k2_from_start",
        truncated_full_blocks: "remainder_dropped",
        truncated_once: "last_k2_steps",
    },
    "state_jacobians": {
        jacobians_in_order_of_time: "factors_reversed",
        jacobians_slope_behind: "slope_on_columns",
        jacobians_powers: "no_slope",
        jacobians_of_the_start: "from_the_start",
        jacobians_like_the_notes: "transposed",
        jacobians_norm_of_all_entries: "norm_frobenius",
        jacobians_eigenvalues: "norm_spectral_radius",
    },
    "clip_grad_norm": {
        clip_arrays_one_by_one: "each_array",
        clip_entries: "by_value",
        clip_also_small_ones: "always",
        clip_sum_of_norms: "norms_added",
        clip_without_root: "no_root",
        clip_reports_new_norm: "norm_after",
        clip_zero_if_broken: "nonfinite_zeros",
        clip_plain_quotient: "no_constant",
    },
}
