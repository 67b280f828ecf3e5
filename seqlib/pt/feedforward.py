"""The feed-forward network of a Transformer layer, its gated form, and dropout."""

import torch

from seqlib._check import check_choice, check_shape
from seqlib.pt.activation import gelu, linear, relu, silu

__all__ = ["dropout", "feed_forward", "swiglu"]


def feed_forward(x, w1, b1, w2, b2, *, activation="gelu"):
    r"""Apply two linear maps with a nonlinearity between; twin of ``seqlib.np.feed_forward``.

    .. math:: y = \phi(x W_1^\top + b_1) \, W_2^\top + b_2

    Parameters
    ----------
    x : Tensor of shape (..., D)
        Tokens.
    w1 : Tensor of shape (F, D)
        Weights of the inner layer; F is usually 4 D.
    b1 : Tensor of shape (F,), or None
        Bias of the inner layer.
    w2 : Tensor of shape (D, F)
        Weights of the output.
    b2 : Tensor of shape (D,), or None
        Bias of the output.
    activation : {"gelu", "gelu_tanh", "relu"}, default="gelu"
        The nonlinearity: the exact GELU, its tanh form (GPT-2), or ReLU (the original
        Transformer).

    Returns
    -------
    Tensor of shape (..., D)
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
    check_choice("activation", activation, tuple(ACTIVATIONS))
    check_shape("w1", w1, ("F", x.shape[-1]))
    check_shape("w2", w2, (x.shape[-1], w1.shape[0]))
    return linear(ACTIVATIONS[activation](linear(x, w1, b1)), w2, b2)


def swiglu(x, w_gate, w_up, w_down):
    r"""Apply a gated feed-forward network (an extra); twin of ``seqlib.np.swiglu``.

    .. math:: y = \bigl(\mathrm{silu}(x W_{gate}^\top) \odot x W_{up}^\top\bigr) W_{down}^\top

    Parameters
    ----------
    x : Tensor of shape (..., D)
        Tokens.
    w_gate : Tensor of shape (F, D)
        Weights of the gate.
    w_up : Tensor of shape (F, D)
        Weights of the inner layer.
    w_down : Tensor of shape (D, F)
        Weights of the output.

    Returns
    -------
    Tensor of shape (..., D)
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
    check_shape("w_down", w_down, tuple(reversed(w_gate.shape)))
    return linear(silu(linear(x, w_gate)) * linear(x, w_up), w_down)


def dropout(x, *, p, rng):
    """Set entries to 0 with probability ``p``, scale the others; twin of ``seqlib.np.dropout``.

    The others are divided by 1 - p, so that the expected value of every entry is what it was.
    The generator is NumPy's, so that both backends drop the same entries.

    Parameters
    ----------
    x : Tensor of shape (...)
        Activations.
    p : float
        Probability of a zero, in ``[0, 1)``.
    rng : numpy.random.Generator
        Source of one uniform number per entry; none is drawn at p = 0.

    Returns
    -------
    Tensor of shape (...)
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
    kept = torch.as_tensor(rng.random(tuple(x.shape)) >= p, device=x.device)
    return torch.where(kept, x / (1 - p), 0)


def _gelu_tanh(x):
    return gelu(x, approximate="tanh")


ACTIVATIONS = {"gelu": gelu, "gelu_tanh": _gelu_tanh, "relu": relu}
