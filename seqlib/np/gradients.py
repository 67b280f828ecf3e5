"""How far gradients reach through time, and how to bound them."""

import numpy as np

from seqlib._gradients import check_finite_norm, check_limit, list_gradients, map_gradients
from seqlib.np.rnn import rnn

__all__ = ["clip_grad_norm", "clip_grad_value", "jacobian_norm_by_lag", "rnn_jacobian"]


def rnn_jacobian(x, h0, weight_ih, weight_hh, bias_ih, bias_hh):
    r"""Differentiate the last state of :func:`rnn` with respect to every earlier one.

    .. math:: \frac{\partial h_T}{\partial h_t}
        = \prod_{\tau = T}^{t + 1} \mathrm{diag}(1 - h_\tau^2) \, W_{hh}

    The factor of the last step stands on the left. The notes' equation (4) multiplies
    transposed factors in the opposite order: it is the transpose of this matrix, with which
    gradients are carried back.

    Parameters
    ----------
    x : ndarray of shape (B, T, D)
        Inputs.
    h0 : ndarray of shape (B, H)
        State before the first step.
    weight_ih : ndarray of shape (H, D)
        Weights of the input.
    weight_hh : ndarray of shape (H, H)
        Weights of the state.
    bias_ih, bias_hh : ndarray of shape (H,) or None
        Biases.

    Returns
    -------
    ndarray of shape (T, B, H, H)
        Entry t is the derivative of the last state with respect to the state after t steps:
        entry 0 belongs to ``h0``, entry T - 1 to the last state but one. Its rows are the
        components of the last state.

    References
    ----------
    Lecture notes, equation (4).
    """
    y, _ = rnn(x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    B, T, H = y.shape
    jacobian = np.empty((T, B, H, H), y.dtype)
    product = np.broadcast_to(np.eye(H, dtype=y.dtype), (B, H, H))
    for t in reversed(range(T)):
        step = (1 - y[:, t] ** 2)[:, :, None] * weight_hh  # one step's Jacobian, (B, H, H)
        product = product @ step
        jacobian[t] = product
    return jacobian


def jacobian_norm_by_lag(x, h0, weight_ih, weight_hh, bias_ih, bias_hh):
    r"""Measure the norm of :func:`rnn_jacobian` against the number of steps that it spans.

    The spectral norm is the largest factor by which a change of :math:`h_{T-l}` reaches
    :math:`h_T`. If it falls like 0.5 a step, 20 steps leave one millionth.

    Parameters
    ----------
    x : ndarray of shape (B, T, D)
        Inputs.
    h0 : ndarray of shape (B, H)
        State before the first step.
    weight_ih : ndarray of shape (H, D)
        Weights of the input.
    weight_hh : ndarray of shape (H, H)
        Weights of the state.
    bias_ih, bias_hh : ndarray of shape (H,) or None
        Biases.

    Returns
    -------
    ndarray of shape (T + 1, B)
        Entry l is the norm for lag l; entry 0 is 1, the norm of the identity.

    References
    ----------
    Bengio, Simard and Frasconi (1994), "Learning Long-Term Dependencies with Gradient Descent
    is Difficult", IEEE Transactions on Neural Networks 5.
    """
    jacobian = rnn_jacobian(x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    norms = np.ones((jacobian.shape[0] + 1, jacobian.shape[1]), jacobian.dtype)
    norms[1:] = np.linalg.norm(jacobian[::-1], ord=2, axis=(-2, -1))
    return norms


def clip_grad_norm(grads, *, max_norm):
    r"""Scale gradients so that their joint norm is at most ``max_norm``.

    .. math:: g \leftarrow \min\left(1, \frac{c}{\lVert g \rVert + 10^{-6}}\right) g

    The norm is taken over all entries of all arrays, so the direction of the step does not
    change: for the gradients ``[3, 4]`` and ``[12]`` the norm is 13, and ``max_norm=1``
    divides both by 13. Clipping each array by itself would give ``[0.6, 0.8]`` and ``[1]``.
    The small constant is PyTorch's; it keeps a division by 0 away.

    Parameters
    ----------
    grads : list, tuple or dict of ndarray
        Gradients. An entry that is None stays None.
    max_norm : float
        The limit c, positive.

    Returns
    -------
    grads : list, tuple or dict of ndarray
        New arrays in the same container.
    norm : float
        The norm before clipping.

    Raises
    ------
    ValueError
        If the norm is infinite or NaN, so that no scale would help, or ``max_norm`` is not
        positive.

    References
    ----------
    Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
    networks", arXiv:1211.5063.
    """
    check_limit("max_norm", max_norm)
    with np.errstate(over="ignore"):
        # Summed in float64: the square of a float32 gradient of 1e20 would overflow.
        squares = [np.square(g, dtype=np.float64).sum() for g in list_gradients(grads)]
        norm = float(sum(squares)) ** 0.5
    check_finite_norm(norm)
    scale = min(1.0, max_norm / (norm + 1e-6))
    return map_gradients(lambda g: g * scale, grads), norm


def clip_grad_value(grads, *, clip_value):
    """Limit every entry of the gradients to ``[-clip_value, clip_value]``.

    Unlike :func:`clip_grad_norm` this changes the direction: ``[3, 4]`` and ``[12]`` with the
    limit 3.5 give ``[3, 3.5]`` and ``[3.5]``. A NaN stays a NaN.

    Parameters
    ----------
    grads : list, tuple or dict of ndarray
        Gradients. An entry that is None stays None.
    clip_value : float
        The limit, positive.

    Returns
    -------
    list, tuple or dict of ndarray
        New arrays in the same container.

    Raises
    ------
    ValueError
        If ``clip_value`` is not positive.
    """
    check_limit("clip_value", clip_value)
    return map_gradients(lambda g: np.clip(g, -clip_value, clip_value), grads)
