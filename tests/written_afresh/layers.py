"""Wrong answers to the assignment ``layers``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: loops,
one token at a time, shapes forced to fit.
"""

import math

import numpy as np


def each_token(f, X):
    """Apply ``f`` to the last axis, however many axes stand in front of it."""
    rows = [f(row) for row in X.reshape(-1, X.shape[-1])]
    return np.array(rows).reshape(X.shape)


def standardised(row, eps, *, count=None, outside=False):
    m = np.sum(row) / len(row)
    v = np.sum((row - m) ** 2) / (count or len(row))
    return (row - m) / (math.sqrt(v) + eps if outside else math.sqrt(v + eps))


# layers.layer_norm


def norm_like_a_sample(X, gamma, beta, eps):
    X_hat = each_token(lambda row: standardised(row, eps, count=len(row) - 1), X)
    return gamma * X_hat + beta, X_hat


def norm_plus_eps_afterwards(X, gamma, beta, eps):
    X_hat = each_token(lambda row: standardised(row, eps, outside=True), X)
    return gamma * X_hat + beta, X_hat


def norm_without_safety(X, gamma, beta, eps):
    X_hat = np.copy(X)
    X_hat -= np.mean(X, -1)[..., None]
    X_hat = X_hat / np.std(X, -1)[..., None]
    return np.multiply(X_hat, gamma) + beta, X_hat


def norm_my_own_eps(X, gamma, beta, eps):
    X_hat = each_token(lambda row: standardised(row, 0.00001), X)
    return gamma * X_hat + beta, X_hat


def norm_down_the_column(X, gamma, beta, eps):
    columns = np.swapaxes(X, -1, -2)
    X_hat = each_token(lambda row: standardised(row, eps), np.ascontiguousarray(columns))
    X_hat = np.swapaxes(X_hat, -1, -2)
    return gamma * X_hat + beta, X_hat


def norm_everything_at_once(X, gamma, beta, eps):
    X_hat = standardised(X.ravel(), eps).reshape(X.shape)
    return gamma * X_hat + beta, X_hat


def norm_shift_then_gain(X, gamma, beta, eps):
    X_hat = each_token(lambda row: standardised(row, eps), X)
    return np.array(beta + X_hat) * gamma, X_hat


def norm_gain_on_the_way_in(X, gamma, beta, eps):
    X_hat = each_token(lambda row: standardised(gamma * row, eps), X)
    return X_hat + beta, X_hat


def norm_divided_by_variance(X, gamma, beta, eps):
    X_hat = (X - np.mean(X, -1)[..., None]) / (np.var(X, -1) + eps)[..., None]
    return gamma * X_hat + beta, X_hat


# layers.layer_norm_backward


def back_one(dy, x_hat, s, gamma, *, mean=True, var=True, after=False):
    d = len(dy)
    g = [dy[i] * (1 if after else gamma[i]) for i in range(d)]
    a = sum(g) / d if mean else 0
    b = sum(g[i] * x_hat[i] for i in range(d)) / d if var else 0
    return [(gamma[i] if after else 1) * (g[i] - a - b * x_hat[i]) / s for i in range(d)]


def back_all(dY, X_hat, s, gamma, **options):
    dX = np.zeros(dY.shape)
    dgamma, dbeta = np.zeros(len(gamma)), np.zeros(len(gamma))
    for at in np.ndindex(*dY.shape[:-1]):
        dX[at] = back_one(dY[at], X_hat[at], s[at][0], gamma, **options)
        dgamma = dgamma + dY[at] * X_hat[at]
        dbeta = dbeta + dY[at]
    return dX, dgamma, dbeta


def back_numbers_for_statistics(dY, X_hat, s, gamma):
    return back_all(dY, X_hat, s, gamma, mean=False, var=False)


def back_forgets_the_mean(dY, X_hat, s, gamma):
    return back_all(dY, X_hat, s, gamma, mean=False)


def back_forgets_the_variance(dY, X_hat, s, gamma):
    return back_all(dY, X_hat, s, gamma, var=False)


def back_gain_at_the_end(dY, X_hat, s, gamma):
    return back_all(dY, X_hat, s, gamma, after=True)


def back_every_token_its_own(dY, X_hat, s, gamma):
    dX, _, _ = back_all(dY, X_hat, s, gamma)
    return dX, np.multiply(X_hat, dY), dY


def back_average_of_parameters(dY, X_hat, s, gamma):
    dX, dgamma, dbeta = back_all(dY, X_hat, s, gamma)
    how_many = np.prod(dY.shape[:-1])
    return dX, dgamma / how_many, dbeta / how_many


def back_first_axis(dY, X_hat, s, gamma):
    dX, _, _ = back_all(dY, X_hat, s, gamma)
    return dX, sum(dY * X_hat), sum(dY)


def back_swapped_names(dY, X_hat, s, gamma):
    dX, dgamma, dbeta = back_all(dY, X_hat, s, gamma)
    return dX, dbeta, dgamma


# layers.rms_norm


def root_of(row, eps):
    return math.sqrt(np.dot(row, row) / len(row) + eps)


def rms(X, gamma, eps, one):
    wide = X.astype(np.float32) if X.dtype == np.float16 else X
    X_hat = each_token(one, wide)
    return (X_hat * gamma).astype(X.dtype), X_hat


def rms_still_centred(X, gamma, eps):
    return rms(X, gamma, eps, lambda row: standardised(row, eps))


def rms_length(X, gamma, eps):
    return rms(X, gamma, eps, lambda row: row / math.sqrt(np.dot(row, row) + eps))


def rms_standard_deviation(X, gamma, eps):
    return rms(X, gamma, eps, lambda row: row / math.sqrt(row.var() + eps))


def rms_eps_added_last(X, gamma, eps):
    return rms(X, gamma, eps, lambda row: row / (root_of(row, 0) + eps))


def rms_times_root(X, gamma, eps):
    return rms(X, gamma, eps, lambda row: row * root_of(row, eps))


def rms_gemma(X, gamma, eps):
    return rms(X, gamma + np.ones_like(gamma), eps, lambda row: row / root_of(row, eps))


def rms_in_the_dtype_it_gets(X, gamma, eps):
    X_hat = X / np.sqrt((X * X).mean(-1)[..., None] + eps)
    return X_hat * gamma, X_hat


def rms_leaves_float32(X, gamma, eps):
    Y, X_hat = rms(X, gamma, eps, lambda row: row / root_of(row, eps))
    return (Y if X.dtype != np.float16 else X_hat * gamma), X_hat


# layers.rms_norm_backward


def rms_back(dY, X_hat, r, gamma, *, factor=1.0, also_mean=False):
    dX = np.zeros(dY.shape)
    for at in np.ndindex(*dY.shape[:-1]):
        g = dY[at] * gamma
        dX[at] = (g - factor * X_hat[at] * np.mean(g * X_hat[at])) / r[at][0]
        if also_mean:
            dX[at] -= np.mean(g) / r[at][0]
    return dX, np.array([np.sum(dY[..., i] * X_hat[..., i]) for i in range(len(gamma))])


def rms_back_root_is_a_number(dY, X_hat, r, gamma):
    return rms_back(dY, X_hat, r, gamma, factor=0)


def rms_back_copied_from_layer_norm(dY, X_hat, r, gamma):
    return rms_back(dY, X_hat, r, gamma, also_mean=True)


def rms_back_sum_over_features(dY, X_hat, r, gamma):
    return rms_back(dY, X_hat, r, gamma, factor=len(gamma))


def rms_back_gain_squared(dY, X_hat, r, gamma):
    return rms_back(dY, X_hat, r, gamma, factor=gamma)


def rms_back_forgets_gain(dY, X_hat, r, gamma):
    return rms_back(dY, X_hat, r, np.ones(len(gamma)))


# layers.feed_forward


def network(X, W_1, b_1, W_2, b_2, phi, last=lambda y: y):
    def one(x):
        inner = [phi(float(np.dot(x, W_1[:, f]) + b_1[f])) for f in range(len(b_1))]
        return last(np.dot(inner, W_2) + b_2)

    return each_token(one, X)


def smooth(u):
    return 0.5 * u * (1 + math.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))


def network_without_bend(X, W_1, b_1, W_2, b_2):
    return network(X, W_1, b_1, W_2, b_2, lambda u: u)


def network_rectified(X, W_1, b_1, W_2, b_2):
    return network(X, W_1, b_1, W_2, b_2, lambda u: u if u > 0 else 0)


def network_with_erf(X, W_1, b_1, W_2, b_2):
    return network(X, W_1, b_1, W_2, b_2, lambda u: u * (1 + math.erf(u * 0.5**0.5)) / 2)


def network_bends_at_the_end(X, W_1, b_1, W_2, b_2):
    bend = np.vectorize(smooth)
    return network(X, W_1, b_1, W_2, b_2, lambda u: u, last=bend)


def network_forgets_first_bias(X, W_1, b_1, W_2, b_2):
    return network(X, W_1, np.zeros(len(b_1)), W_2, b_2, smooth)


# layers.post_norm_layer


def normed(X, gamma, beta, eps):
    return each_token(lambda row: standardised(row, eps), X) * gamma + beta


def post_norms_in_front(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    Z = np.array(X)
    Z = Z + attention(normed(X, gamma_1, beta_1, eps))
    out = np.array(Z)
    out += mlp(normed(Z, gamma_2, beta_2, eps))
    return out, Z


def post_one_norm_for_both(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    def norm(T):
        return normed(T, gamma_1, beta_1, eps)

    Z = norm(X + attention(X))
    return norm(Z + mlp(Z)), Z


def post_adds_x_again(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    Z = normed(np.sum([X, attention(X)], axis=0), gamma_1, beta_1, eps)
    return normed(np.sum([X, mlp(Z)], axis=0), gamma_2, beta_2, eps), Z


def post_x_overwritten(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    X = attention(X)
    X = X + X
    Z = normed(X, gamma_1, beta_1, eps)
    return normed(mlp(Z) + Z, gamma_2, beta_2, eps), Z


def post_default_eps(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    Z = normed(X + attention(X), gamma_1, beta_1, 1e-5)
    return normed(Z + mlp(Z), gamma_2, beta_2, 1e-5), Z


def post_mlp_alone(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    Z = normed(X + attention(X), gamma_1, beta_1, eps)
    return normed(mlp(Z), gamma_2, beta_2, eps), Z


# layers.pre_norm_stack


def scaled(X, gamma, eps):
    return each_token(lambda row: row / root_of(row, eps), X) * gamma


def pre_x_is_its_norm(X, layers, gamma, eps):
    found = []
    for layer in layers:
        X = scaled(X, layer[2], eps)
        X = X + layer[0](X)
        X = scaled(X, layer[3], eps)
        X = X + layer[1](X)
        found.append(X)
    return scaled(X, gamma, eps), found


def pre_ends_without_norm(X, layers, gamma, eps):
    found = []
    for layer in layers:
        X = X + layer[0](scaled(X, layer[2], eps))
        X = X + layer[1](scaled(X, layer[3], eps))
        found.append(X)
    return found[-1], found


def pre_same_gain_twice(X, layers, gamma, eps):
    found = []
    for f, g, gain, _ in layers:
        for part in (f, g):
            X = X + part(scaled(X, gain, eps))
        found.append(X)
    return scaled(found[-1], gamma, eps), found


def pre_always_the_first(X, layers, gamma, eps):
    found = []
    for _ in range(len(layers)):
        X = X + layers[0][0](scaled(X, layers[0][2], eps))
        X = X + layers[0][1](scaled(X, layers[0][3], eps))
        found.append(X)
    return scaled(X, gamma, eps), found


def pre_side_by_side(X, layers, gamma, eps):
    found = []
    for f, g, first, second in layers:
        X = X + f(scaled(X, first, eps)) + g(scaled(X, second, eps))
        found.append(X)
    return scaled(X, gamma, eps), found


def pre_norms_as_in_17(X, layers, gamma, eps):
    found = []
    for f, g, first, second in layers:
        X = scaled(X + f(X), first, eps)
        X = scaled(X + g(X), second, eps)
        found.append(X)
    return scaled(X, gamma, eps), found


AFRESH = {
    "layer_norm": {
        norm_like_a_sample: "unbiased",
        norm_plus_eps_afterwards: "eps_outside",
        norm_without_safety: "no_eps",
        norm_my_own_eps: "eps_ignored",
        norm_down_the_column: "over_tokens",
        norm_everything_at_once: "over_array",
        norm_shift_then_gain: "beta_first",
        norm_gain_on_the_way_in: "gamma_before_statistics",
        norm_divided_by_variance: "no_root",
    },
    "layer_norm_backward": {
        back_numbers_for_statistics: "statistics_constant",
        back_forgets_the_mean: "mean_constant",
        back_forgets_the_variance: "variance_constant",
        back_gain_at_the_end: "gamma_last",
        back_every_token_its_own: "parameters_not_summed",
        back_average_of_parameters: "parameters_averaged",
        back_first_axis: "parameters_over_axis_0",
        back_swapped_names: "dgamma_dbeta_exchanged",
    },
    "rms_norm": {
        rms_still_centred: "layer_norm",
        rms_length: "sum",
        rms_standard_deviation: "variance",
        rms_eps_added_last: "eps_outside",
        rms_times_root: "multiplied",
        rms_gemma: "one_plus_gamma",
        rms_in_the_dtype_it_gets: "half_statistics",
        rms_leaves_float32: "half_result",
    },
    "rms_norm_backward": {
        rms_back_root_is_a_number: "root_constant",
        rms_back_copied_from_layer_norm: "layer_norm",
        rms_back_sum_over_features: "sums",
        rms_back_gain_squared: "gamma_twice",
        rms_back_forgets_gain: "no_gamma",
    },
    "feed_forward": {
        network_without_bend: "no_activation",
        network_rectified: "relu",
        network_with_erf: "exact_gelu",
        network_bends_at_the_end: "activation_last",
        network_forgets_first_bias: "b_1_ignored",
    },
    "post_norm_layer": {
        post_norms_in_front: "pre_norm",
        post_one_norm_for_both: "first_norm_twice",
        post_adds_x_again: "residual_from_input",
        post_x_overwritten: "attention_doubled",
        post_default_eps: "eps_ignored",
        post_mlp_alone: "no_mlp_residual",
    },
    "pre_norm_stack": {
        pre_x_is_its_norm: "residual_after_norm",
        pre_ends_without_norm: "no_final_norm",
        pre_same_gain_twice: "first_norm_twice",
        pre_always_the_first: "first_layer_repeated",
        pre_side_by_side: "parallel",
        pre_norms_as_in_17: "post_norm",
    },
}
