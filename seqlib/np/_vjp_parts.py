"""The parts of a decoder, each as a result and its vector-Jacobian product.

A part works on rows of tokens, keeps what its gradient needs, and returns ``y, vjp``.
``vjp(dy, grads)`` returns the gradient of the part's input and writes those of the parameters
to the dict ``grads``, under the names of the parameters.
The mathematics is that of the plain functions; temporaries are reused in place.
"""

import math

import numpy as np

from seqlib.np._fast_gelu import gelu_and_slope
from seqlib.np.activation import sigmoid
from seqlib.np.positions import rotary, rotary_backward

__all__ = []


def linear(x, params, weight_name, bias_name):
    """Return ``x @ weight.T + bias``."""
    weight, bias = params[weight_name], params.get(bias_name)
    y = x @ weight.T
    if bias is not None:
        y += bias

    def vjp(dy, grads):
        grads[weight_name] = dy.T @ x
        if bias is not None:
            grads[bias_name] = sum_rows(dy)
        return dy @ weight

    return y, vjp


def norm(x, params, name, eps):
    """Return LayerNorm where there is a bias, RMSNorm where there is none."""
    weight, bias = params[f"{name}.weight"], params.get(f"{name}.bias")
    D = x.shape[-1]
    mean = np.full(D, 1 / D, x.dtype)  # x @ mean is faster than x.mean(axis=-1)
    x_hat = x.copy() if bias is None else x - (x @ mean)[:, None]
    rstd = (1 / np.sqrt(np.vecdot(x_hat, x_hat) / D + eps))[:, None]
    x_hat *= rstd
    y = x_hat * weight
    if bias is not None:
        y += bias

    def vjp(dy, grads):
        grads[f"{name}.weight"] = np.einsum("nd,nd->d", dy, x_hat)
        dx = dy * weight
        via_scale = x_hat * (np.vecdot(dx, x_hat) / D)[:, None]
        if bias is not None:
            grads[f"{name}.bias"] = sum_rows(dy)
            dx -= (dx @ mean)[:, None]
        dx -= via_scale
        dx *= rstd
        return dx

    return y, vjp


def attend(packed, sizes, mask, rotary_base):
    """Attend with the packed queries, keys and values of all heads.

    ``sizes`` is (B, T, N, K); with ``rotary_base``, queries and keys are rotated.
    Heads are views of the packed rows, so that no product needs a copy of its operands.
    """
    B, T, N, K = sizes
    q, k, v = _heads(packed, sizes)
    if rotary_base is not None:
        q, k = rotary(q, base=rotary_base), rotary(k, base=rotary_base)
    p = q @ k.swapaxes(-1, -2)  # (B, N, T, T)
    p *= 1 / math.sqrt(K)
    p += mask
    # A row of -inf stays -inf, and its exponentials are 0.
    p -= np.maximum(p.max(axis=-1, keepdims=True), np.finfo(p.dtype).min)
    np.exp(p, out=p)
    total = p @ np.ones(T, p.dtype)  # (B, N, T)
    p *= (1 / np.maximum(total, np.finfo(p.dtype).tiny))[..., None]
    y = np.empty((B * T, N * K), packed.dtype)
    (y_heads,) = _heads(y, sizes)
    np.matmul(p, v, out=y_heads)

    def vjp(dy, grads):
        (dy_heads,) = _heads(dy, sizes)
        dpacked = np.empty_like(packed)
        dq, dk, dv = _heads(dpacked, sizes)
        np.matmul(p.swapaxes(-1, -2), dy_heads, out=dv)
        dscores = dy_heads @ v.swapaxes(-1, -2)
        # The row sums of p * dp that softmax subtracts are those of dy * y.
        dscores -= np.vecdot(dy_heads, y_heads)[..., None]
        dscores *= p
        dscores *= 1 / math.sqrt(K)
        np.matmul(dscores, k, out=dq)
        np.matmul(dscores.swapaxes(-1, -2), q, out=dk)
        if rotary_base is not None:
            dq[:] = rotary_backward(dq, q, base=rotary_base)
            dk[:] = rotary_backward(dk, k, base=rotary_base)
        return dpacked

    return y, vjp


def activate(x, activation):
    """Return the nonlinearity of a feed-forward network."""
    if activation == "relu":
        y, slope = np.maximum(x, 0), (x > 0).astype(x.dtype)
    else:
        y, slope = gelu_and_slope(x, "tanh" if activation == "gelu_tanh" else "none")
    return y, lambda dy, grads: dy * slope


def gate(x, up):
    """Return ``silu(x) * up``; the vjp returns the gradients of both."""
    s = sigmoid(x)
    silu = x * s

    def vjp(dy, grads):
        slope = x * (1 - s)
        slope += 1
        slope *= s
        slope *= up
        slope *= dy
        return slope, dy * silu

    return silu * up, vjp


def sum_rows(x):
    """Sum over the rows; a product with ones is faster than ``x.sum(axis=0)``."""
    return np.ones(len(x), x.dtype) @ x


def _heads(rows, sizes):
    """View rows of width m N K as m arrays of shape (B, N, T, K)."""
    B, T, N, K = sizes
    return rows.reshape(B, T, rows.shape[-1] // (N * K), N, K).transpose(2, 0, 3, 1, 4)
