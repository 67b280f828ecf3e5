"""How to bound gradients; twin of ``seqlib.np.gradients``."""

from seqlib._gradients import check_finite_norm, check_limit, list_gradients, map_gradients

__all__ = ["clip_grad_norm", "clip_grad_value"]


def clip_grad_norm(grads, *, max_norm):
    r"""Scale gradients so that their joint norm is at most ``max_norm``.

    Twin of ``seqlib.np.clip_grad_norm``. PyTorch's ``torch.nn.utils.clip_grad_norm_`` changes
    the ``grad`` of parameters in place; this returns new tensors.

    .. math:: g \leftarrow \min\left(1, \frac{c}{\lVert g \rVert + 10^{-6}}\right) g

    Parameters
    ----------
    grads : list, tuple or dict of Tensor
        Gradients. An entry that is None stays None.
    max_norm : float
        The limit c, positive.

    Returns
    -------
    grads : list, tuple or dict of Tensor
        New tensors in the same container.
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
    # Summed in float64: the square of a float32 gradient of 1e20 would overflow.
    squares = [g.double().square().sum().item() for g in list_gradients(grads)]
    norm = sum(squares) ** 0.5
    check_finite_norm(norm)
    scale = min(1.0, max_norm / (norm + 1e-6))
    return map_gradients(lambda g: g * scale, grads), norm


def clip_grad_value(grads, *, clip_value):
    """Limit every entry of the gradients to ``[-clip_value, clip_value]``.

    Twin of ``seqlib.np.clip_grad_value``.

    Parameters
    ----------
    grads : list, tuple or dict of Tensor
        Gradients. An entry that is None stays None.
    clip_value : float
        The limit, positive.

    Returns
    -------
    list, tuple or dict of Tensor
        New tensors in the same container.

    Raises
    ------
    ValueError
        If ``clip_value`` is not positive.
    """
    check_limit("clip_value", clip_value)
    return map_gradients(lambda g: g.clamp(-clip_value, clip_value), grads)
