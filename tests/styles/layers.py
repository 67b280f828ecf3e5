"""Right answers to the assignment ``layers``, in styles that have little in common."""

import itertools
import math

import numpy as np
import torch

import seqlib.np as snp


def axis_layer_norm(X, gamma, beta, eps):
    mu = X.mean(axis=-1, keepdims=True)
    var = X.var(axis=-1, keepdims=True)
    X_hat = (X - mu) / np.sqrt(var + eps)
    return X_hat * gamma + beta, X_hat


def loops_layer_norm(X, gamma, beta, eps):
    """One token after the other, and one feature after the other."""
    d = X.shape[-1]
    Y, X_hat = np.empty_like(X), np.empty_like(X)
    for at in np.ndindex(X.shape[:-1]):
        mu = sum(X[at]) / d
        s = math.sqrt(sum((x - mu) ** 2 for x in X[at]) / d + eps)
        for i in range(d):
            X_hat[at][i] = (X[at][i] - mu) / s
            Y[at][i] = gamma[i] * X_hat[at][i] + beta[i]
    return Y, X_hat


def matrix_layer_norm(X, gamma, beta, eps):
    """Centre with a matrix, I - 1/d, and take the length of each row."""
    d = X.shape[-1]
    centred = X @ (np.eye(d) - 1 / d).astype(X.dtype)
    length = np.linalg.norm(centred, axis=-1)[..., None]
    X_hat = centred * math.sqrt(d) / np.hypot(length, math.sqrt(d * eps))
    return X_hat @ np.diag(gamma) + beta, X_hat


def torch_layer_norm(X, gamma, beta, eps):
    X, gamma, beta = map(torch.from_numpy, (X, gamma, beta))
    X_hat = torch.nn.functional.layer_norm(X, X.shape[-1:], eps=eps)
    return torch.addcmul(beta, X_hat, gamma), X_hat


def axis_layer_norm_backward(dY, X_hat, s, gamma):
    d = dY.shape[-1]
    g = dY * gamma
    dX = d * g - g.sum(-1, keepdims=True) - X_hat * (g * X_hat).sum(-1, keepdims=True)
    flat, flat_hat = dY.reshape(-1, d), X_hat.reshape(-1, d)
    return dX / (d * s), (flat * flat_hat).sum(0), flat.sum(0)


def jacobian_layer_norm_backward(dY, X_hat, s, gamma):
    """Write down the Jacobian of each token."""
    d = dY.shape[-1]
    dX, dgamma, dbeta = np.zeros_like(dY), np.zeros_like(gamma), np.zeros_like(gamma)
    for at in np.ndindex(dY.shape[:-1]):
        x_hat = X_hat[at]
        J = (np.eye(d) - 1 / d - np.outer(x_hat, x_hat) / d) / s[at]
        dX[at] = J.T @ (gamma * dY[at])
        dgamma += dY[at] * x_hat
        dbeta += dY[at]
    return [dX, dgamma, dbeta]


def einsum_layer_norm_backward(dY, X_hat, s, gamma):
    """Go through s and mu as variables of their own."""
    d = dY.shape[-1]
    dX_hat = np.einsum("...i,i->...i", dY, gamma)
    ds = -np.einsum("...i,...i->...", dX_hat, X_hat)[..., None] / s
    dcentred = dX_hat / s + ds * X_hat / d
    dX = dcentred - dcentred.sum(axis=-1, keepdims=True) / d
    rows, rows_hat = dY.reshape(-1, d), X_hat.reshape(-1, d)
    return dX, np.einsum("ni,ni->i", rows, rows_hat), np.einsum("ni->i", rows)


def torch_layer_norm_backward(dY, X_hat, s, gamma):
    """Differentiate a forward pass that is made to have this X_hat and this s."""
    gamma = torch.tensor(gamma, requires_grad=True)
    beta = torch.zeros_like(gamma, requires_grad=True)
    X = torch.tensor(X_hat * s, requires_grad=True)
    centred = X - X.mean(-1, keepdim=True)
    var = (centred**2).mean(-1, keepdim=True)
    eps = torch.from_numpy(s) ** 2 - var.detach()
    Y = gamma * centred / torch.sqrt(var + eps) + beta
    return torch.autograd.grad(Y, (X, gamma, beta), torch.from_numpy(dY))


def axis_rms_norm(X, gamma, eps):
    half = X.dtype == np.float16
    wide = np.float32(X) if half else X
    X_hat = wide * (np.square(wide).mean(-1, keepdims=True) + eps) ** -0.5
    Y = X_hat * gamma
    return (np.float16(Y) if half else Y), X_hat


def loops_rms_norm(X, gamma, eps):
    Y, X_hat = np.empty_like(X), np.empty(X.shape, np.result_type(X, np.float32))
    for at in np.ndindex(X.shape[:-1]):
        squares = [float(x) ** 2 for x in X[at]]
        root = math.sqrt(sum(squares) / len(squares) + eps)
        for i, x in enumerate(X[at]):
            X_hat[at][i] = float(x) / root
            Y[at][i] = float(gamma[i]) * X_hat[at][i]
    return Y, X_hat


def einsum_rms_norm(X, gamma, eps):
    wide = X.astype(np.result_type(X, np.float32))
    r = np.sqrt(np.einsum("...i,...i->...", wide, wide) / X.shape[-1] + eps)
    X_hat = np.einsum("...i,...->...i", wide, 1 / r)
    return np.einsum("...i,i->...i", X_hat, gamma).astype(X.dtype), X_hat


def torch_rms_norm(X, gamma, eps):
    wide = torch.from_numpy(X.astype(np.result_type(X, np.float32)))
    X_hat = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    Y = torch.from_numpy(gamma.astype(wide.numpy().dtype)) * X_hat
    return Y.numpy().astype(X.dtype), X_hat


def axis_rms_norm_backward(dY, X_hat, r, gamma):
    g = dY * gamma
    dX = g / r - X_hat * (g * X_hat).mean(-1)[..., None] / r
    return dX, (dY * X_hat).reshape(-1, len(gamma)).sum(0)


def jacobian_rms_norm_backward(dY, X_hat, r, gamma):
    dX, dgamma = np.zeros_like(dY), np.zeros_like(gamma)
    d = dY.shape[-1]
    for at in np.ndindex(dY.shape[:-1]):
        J = np.empty((d, d))
        for i, j in itertools.product(range(d), repeat=2):
            J[i, j] = ((i == j) - X_hat[at][i] * X_hat[at][j] / d) / r[at][0]
        dX[at] = (gamma * dY[at]) @ J
        dgamma += dY[at] * X_hat[at]
    return dX, dgamma


def einsum_rms_norm_backward(dY, X_hat, r, gamma):
    along = np.einsum("...i,i,...i->...", dY, gamma, X_hat)[..., None] / len(gamma)
    rows, rows_hat = dY.reshape(-1, len(gamma)), X_hat.reshape(-1, len(gamma))
    return [(gamma * dY - along * X_hat) / r, np.einsum("ni,ni->i", rows_hat, rows)]


def axis_feed_forward(X, W_1, b_1, W_2, b_2):
    u = np.matmul(X, W_1) + b_1
    t = np.tanh(math.sqrt(2 / math.pi) * u * (1 + 0.044715 * u * u))
    return np.matmul(u * (t + 1) / 2, W_2) + b_2


def loops_feed_forward(X, W_1, b_1, W_2, b_2):
    def gelu(u):
        u = float(u)
        return 0.5 * u * (1 + math.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))

    Y = np.zeros_like(X)
    for at in np.ndindex(X.shape[:-1]):
        Y[at] = b_2
        for f in range(len(b_1)):
            Y[at] += gelu(X[at] @ W_1[:, f] + b_1[f]) * W_2[f]
    return Y


def sigmoid_feed_forward(X, W_1, b_1, W_2, b_2):
    """Use 1 + tanh(v) = 2 sigmoid(2 v), and einsum."""
    u = np.einsum("...d,df->...f", X, W_1) + b_1
    v = np.sqrt(2 / np.pi).astype(u.dtype) * (u + 0.044715 * np.power(u, 3))
    return np.einsum("...f,fd->...d", u / (1 + np.exp(-2 * v)), W_2) + b_2


def torch_feed_forward(X, W_1, b_1, W_2, b_2):
    X, W_1, b_1, W_2, b_2 = map(torch.from_numpy, (X, W_1, b_1, W_2, b_2))
    inner = torch.nn.functional.gelu(X @ W_1 + b_1, approximate="tanh")
    return inner @ W_2 + b_2


def library_post_norm(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    Z = snp.layer_norm(X + attention(X), gamma_1, beta_1, eps=eps)
    return snp.layer_norm(Z + mlp(Z), gamma_2, beta_2, eps=eps), Z


def helper_post_norm(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    """Write one part of the layer once and use it twice."""

    def sublayer(x, f, gamma, beta):
        return axis_layer_norm(f(x) + x, gamma, beta, eps)[0]

    Z = sublayer(X, attention, gamma_1, beta_1)
    return sublayer(Z, mlp, gamma_2, beta_2), Z


def loops_post_norm(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    """Keep the states in a list."""
    states = [np.array(X)]
    for f, gamma, beta in ((attention, gamma_1, beta_1), (mlp, gamma_2, beta_2)):
        total = np.add(states[-1], f(states[-1]))
        states.append(loops_layer_norm(total, gamma, beta, eps)[0])
    return states[2], states[1]


def torch_post_norm(X, attention, mlp, gamma_1, beta_1, gamma_2, beta_2, eps):
    first, second = (
        tuple(map(torch.from_numpy, pair)) for pair in ((gamma_1, beta_1), (gamma_2, beta_2))
    )
    norm = torch.nn.functional.layer_norm
    Z = norm(torch.from_numpy(attention(X) + X), X.shape[-1:], *first, eps=eps)
    total = Z + torch.from_numpy(mlp(Z.numpy()))
    return [norm(total, X.shape[-1:], *second, eps=eps), Z]


def library_pre_norm(X, layers, gamma, eps):
    outputs = []
    for attention, mlp, gamma_1, gamma_2 in layers:
        X = X + attention(snp.rms_norm(X, gamma_1, eps=eps))
        X = X + mlp(snp.rms_norm(X, gamma_2, eps=eps))
        outputs.append(X)
    return snp.rms_norm(outputs[-1], gamma, eps=eps), outputs


def recursive_pre_norm(X, layers, gamma, eps):
    """Apply the first layer, and the rest to its output."""

    def norm(x, g):
        return einsum_rms_norm(x, g, eps)[0]

    if not layers:
        return norm(X, gamma), []
    (attention, mlp, gamma_1, gamma_2), *rest = layers
    Z = attention(norm(X, gamma_1)) + X
    out = mlp(norm(Z, gamma_2)) + Z
    Y, later = recursive_pre_norm(out, rest, gamma, eps)
    return Y, [out, *later]


def stacked_pre_norm(X, layers, gamma, eps):
    """Add to a stream in place, a copy of the input, and stack the outputs."""
    stream, outputs = X.copy(), []
    for layer in layers:
        for f, g in zip(layer[:2], layer[2:], strict=True):
            stream += f(loops_rms_norm(stream, g, eps)[0])
        outputs.append(stream.copy())
    return loops_rms_norm(stream, gamma, eps)[0], np.stack(outputs)


STYLES = {
    "layer_norm": [axis_layer_norm, loops_layer_norm, matrix_layer_norm, torch_layer_norm],
    "layer_norm_backward": [
        axis_layer_norm_backward,
        jacobian_layer_norm_backward,
        einsum_layer_norm_backward,
        torch_layer_norm_backward,
    ],
    "rms_norm": [axis_rms_norm, loops_rms_norm, einsum_rms_norm, torch_rms_norm],
    "rms_norm_backward": [
        axis_rms_norm_backward,
        jacobian_rms_norm_backward,
        einsum_rms_norm_backward,
    ],
    "feed_forward": [
        axis_feed_forward,
        loops_feed_forward,
        sigmoid_feed_forward,
        torch_feed_forward,
    ],
    "post_norm_layer": [library_post_norm, helper_post_norm, loops_post_norm, torch_post_norm],
    "pre_norm_stack": [library_pre_norm, recursive_pre_norm, stacked_pre_norm],
}
