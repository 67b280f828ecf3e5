"""AdamW: the optimiser that trains the NumPy models."""

import numpy as np

from seqlib._config import check_params

__all__ = ["adamw_step"]


def adamw_step(params, grads, state, *, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    r"""Take one step of Adam with decoupled weight decay.

    .. math::

        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \theta_t &= (1 - \eta \lambda) \, \theta_{t-1}
            - \eta \, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    The first step of every parameter has size lr: m is 0.1 g and its divisor 0.1, so that the
    fraction is g / (|g| + eps).

    Parameters
    ----------
    params : dict of str to ndarray
        Parameters theta.
    grads : dict of str to ndarray
        Gradients g, with the same names and shapes.
    state : dict
        What the previous step returned; ``{}`` before the first step.
    lr : float
        Learning rate eta.
    betas : tuple of two floats, default=(0.9, 0.999)
        Decay of the running means of the gradient and of its square.
    eps : float, default=1e-8
        Keeps the divisor above 0.
    weight_decay : float, default=0.01
        Decay lambda; every parameter is pulled towards 0 by lr times this.

    Returns
    -------
    params : dict of str to ndarray
        New parameters.
    state : dict
        Number of steps, and the running means by name: to be passed to the next step.

    Raises
    ------
    ValueError
        If ``grads`` does not fit ``params``.

    References
    ----------
    Loshchilov and Hutter (2019), "Decoupled Weight Decay Regularization", Algorithm 2,
    arXiv:1711.05101, with the schedule in ``lr``.
    """
    check_params(grads, {name: p.shape for name, p in params.items()}, what="grads")
    step = state.get("step", 0) + 1
    beta1, beta2 = betas
    new_params, means, squares = {}, {}, {}
    for name, p in params.items():
        g = grads[name]
        m = state["m"][name] if step > 1 else np.zeros_like(p)
        v = state["v"][name] if step > 1 else np.zeros_like(p)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        update = (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps)
        new_params[name] = (1 - lr * weight_decay) * p - lr * update
        means[name], squares[name] = m, v
    return new_params, {"step": step, "m": means, "v": squares}
