"""The feed-forward network of a Transformer layer, its gated form, and dropout."""

import numpy as np

from seqlib._check import check_choice, check_shape
from seqlib.np.activation import (
    gelu,
    gelu_backward,
    linear,
    linear_backward,
    relu,
    relu_backward,
    silu,
    silu_backward,
)

__all__ = ["dropout", "feed_forward", "feed_forward_backward", "swiglu", "swiglu_backward"]


def feed_forward(x, w1, b1, w2, b2, *, activation="gelu"):
    r"""Two linear maps with a nonlinearity between, applied to each token by itself.

    .. math:: y = \phi(x W_1^\top + b_1) \, W_2^\top + b_2

    Parameters
    ----------
    x : ndarray of shape (..., D)
        Tokens.
    w1 : ndarray of shape (F, D)
        Weights of the inner layer; F is usually 4 D.
    b1 : ndarray of shape (F,), or None
        Bias of the inner layer.
    w2 : ndarray of shape (D, F)
        Weights of the output.
    b2 : ndarray of shape (D,), or None
        Bias of the output.
    activation : {"gelu", "gelu_tanh", "relu"}, default="gelu"
        The nonlinearity: the exact GELU, its tanh form (GPT-2), or ReLU (the original
        Transformer).

    Returns
    -------
    ndarray of shape (..., D)
        Outputs.

    Raises
    ------
    ValueError
        If a weight does not fit, or ``activation`` is none of the three.

    References
    ----------
    Lecture notes, "MLP" in equations (17) and (18). Vaswani et al. (2017), "Attention Is All
    You Need", Section 3.3, arXiv:1706.03762.
    """
    check_choice("activation", activation, tuple(_ACTIVATIONS))
    phi, _ = _ACTIVATIONS[activation]
    check_shape("w1", w1, ("F", x.shape[-1]))
    check_shape("w2", w2, (x.shape[-1], w1.shape[0]))
    return linear(phi(linear(x, w1, b1)), w2, b2)


def feed_forward_backward(dy, x, w1, b1, w2, b2, *, activation="gelu"):
    """Vector-Jacobian product of :func:`feed_forward`.

    Parameters
    ----------
    dy : ndarray of shape (..., D)
        Gradient of the loss with respect to the output.
    x, w1, b1, w2, b2, activation
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., D)
        Gradient with respect to ``x``.
    dw1 : ndarray of shape (F, D)
        Gradient with respect to ``w1``.
    db1 : ndarray of shape (F,)
        Gradient with respect to ``b1``; None if there is none.
    dw2 : ndarray of shape (D, F)
        Gradient with respect to ``w2``.
    db2 : ndarray of shape (D,)
        Gradient with respect to ``b2``; None if there is none.
    """
    phi, phi_backward = _ACTIVATIONS[activation]
    inner = linear(x, w1, b1)  # (..., F)
    dhidden, dw2, db2 = linear_backward(dy, phi(inner), w2, b2)
    dx, dw1, db1 = linear_backward(phi_backward(dhidden, inner), x, w1, b1)
    return dx, dw1, db1, dw2, db2


def swiglu(x, w_gate, w_up, w_down):
    r"""Gated feed-forward network without biases, as in LLaMA (an extra).

    .. math:: y = \bigl(\mathrm{silu}(x W_{gate}^\top) \odot x W_{up}^\top\bigr) W_{down}^\top

    Three matrices instead of two: F = 8 D / 3 gives the parameters of F = 4 D without a gate.

    Parameters
    ----------
    x : ndarray of shape (..., D)
        Tokens.
    w_gate : ndarray of shape (F, D)
        Weights of the gate.
    w_up : ndarray of shape (F, D)
        Weights of the inner layer.
    w_down : ndarray of shape (D, F)
        Weights of the output.

    Returns
    -------
    ndarray of shape (..., D)
        Outputs.

    Raises
    ------
    ValueError
        If a weight does not fit.

    References
    ----------
    Shazeer (2020), "GLU Variants Improve Transformer", equation (6), arXiv:2002.05202.
    """
    check_shape("w_gate", w_gate, ("F", x.shape[-1]))
    check_shape("w_up", w_up, w_gate.shape)
    check_shape("w_down", w_down, w_gate.shape[::-1])
    return linear(silu(linear(x, w_gate)) * linear(x, w_up), w_down)


def swiglu_backward(dy, x, w_gate, w_up, w_down):
    """Vector-Jacobian product of :func:`swiglu`.

    Parameters
    ----------
    dy : ndarray of shape (..., D)
        Gradient of the loss with respect to the output.
    x, w_gate, w_up, w_down
        The arguments of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., D)
        Gradient with respect to ``x``.
    dw_gate : ndarray of shape (F, D)
        Gradient with respect to ``w_gate``.
    dw_up : ndarray of shape (F, D)
        Gradient with respect to ``w_up``.
    dw_down : ndarray of shape (D, F)
        Gradient with respect to ``w_down``.
    """
    gate, up = linear(x, w_gate), linear(x, w_up)  # (..., F)
    dhidden, dw_down, _ = linear_backward(dy, silu(gate) * up, w_down)
    dx_gate, dw_gate, _ = linear_backward(silu_backward(dhidden * up, gate), x, w_gate)
    dx_up, dw_up, _ = linear_backward(dhidden * silu(gate), x, w_up)
    return dx_gate + dx_up, dw_gate, dw_up, dw_down


def dropout(x, *, p, rng):
    """Set entries to 0 with probability ``p`` and scale the others up (training only).

    The others are divided by 1 - p, so that the expected value of every entry is what it was:
    at p = 0.25 an entry of 3 becomes 0 once in four times, else 4.
    The gradient passes through the same entries: ``dropout(dy, p=p, rng=rng)`` with the
    generator in the state that it had before the forward call.

    Parameters
    ----------
    x : ndarray of shape (...)
        Activations.
    p : float
        Probability of a zero, in ``[0, 1)``.
    rng : numpy.random.Generator
        Source of one uniform number per entry; none is drawn at p = 0.

    Returns
    -------
    ndarray of shape (...)
        The entries kept, scaled, and zeros.

    Raises
    ------
    ValueError
        If ``p`` is not in ``[0, 1)``.

    References
    ----------
    Srivastava et al. (2014), "Dropout: A Simple Way to Prevent Neural Networks from
    Overfitting", Journal of Machine Learning Research 15, pages 1929-1958.
    """
    if not 0 <= p < 1:
        raise ValueError(f"p must lie in [0, 1), got {p}")
    if p == 0:
        return x
    kept = rng.random(x.shape) >= p
    return np.where(kept, x / (1 - p), 0)


_ACTIVATIONS = {
    "gelu": (gelu, gelu_backward),
    "gelu_tanh": (
        lambda x: gelu(x, approximate="tanh"),
        lambda dy, x: gelu_backward(dy, x, approximate="tanh"),
    ),
    "relu": (relu, relu_backward),
}
