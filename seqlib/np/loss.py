"""Cross-entropy over a vocabulary, and the units in which it is quoted."""

import math

import numpy as np

from seqlib._check import check_ids
from seqlib._loss import check_targets
from seqlib.np.activation import log_softmax, softmax

__all__ = ["bits", "cross_entropy", "cross_entropy_backward", "perplexity"]


def cross_entropy(logits, targets, *, ignore_index=-100, reduction="mean"):
    r"""Negative log-probability of the targets under the softmax of the logits, in nats.

    .. math:: \ell_i = -\ln \mathrm{softmax}(z_i)_{y_i}, \qquad
        E = \frac{1}{M} \sum_{i : y_i \ne \mathrm{ignored}} \ell_i

    M counts the targets that are not ignored, over the whole array. With the losses 0.5 and
    1.5 in one sequence and 2, 2, 2, 2 in another, the mean is 10 / 6 = 1.667; the mean of the
    two sequence means, the notes' equation (3) averaged over the batch, is 1.5. The first
    weighs every token alike, the second every sequence.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
        Scores of the V classes. Logits at ignored positions are never used.
    targets : ndarray of int of shape (...)
        Classes. For next-token prediction the caller shifts them: the logits at
        position t are held against token t + 1.
    ignore_index : int, default=-100
        The target value that marks positions without a loss, such as padding.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean over the targets that count, 0 if none does; their sum; or each loss, with 0
        where ignored.

    Returns
    -------
    ndarray of shape ()
        The loss; for ``reduction="none"`` an array like ``targets``.

    Raises
    ------
    ValueError
        If ``targets`` is not an integer array of the shape of ``logits`` without its last
        axis, or holds a class outside ``[0, V)`` that is not ``ignore_index``.

    References
    ----------
    Lecture notes, equation (3). ``torch.nn.functional.cross_entropy`` gives NaN if every
    target is ignored, and has its classes on axis 1.
    """
    check_targets(logits, targets, reduction)
    counted = targets != ignore_index
    check_ids("targets", targets[counted], logits.shape[-1])
    log_p = log_softmax(logits[counted])  # (M, V)
    losses = np.zeros(targets.shape, log_p.dtype)
    losses[counted] = -np.take_along_axis(log_p, targets[counted][:, None], axis=-1)[:, 0]
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / max(1, int(counted.sum()))


def cross_entropy_backward(dy, logits, targets, *, ignore_index=-100, reduction="mean"):
    r"""Vector-Jacobian product of :func:`cross_entropy`.

    .. math:: \frac{\partial \ell_i}{\partial z_{iv}}
        = \mathrm{softmax}(z_i)_v - [v = y_i]

    Parameters
    ----------
    dy : ndarray of shape ()
        Gradient with respect to the output; for ``reduction="none"`` an array like
        ``targets``.
    logits, targets, ignore_index, reduction
        The arguments of the forward call.

    Returns
    -------
    ndarray of shape (..., V)
        Gradient with respect to ``logits``; 0 at ignored positions.
    """
    counted = targets != ignore_index
    dlogits = np.zeros_like(logits)
    p = softmax(logits[counted])  # (M, V)
    rows = np.arange(len(p))
    p[rows, targets[counted]] -= 1
    if reduction == "none":
        dy = dy[counted][:, None]
    elif reduction == "mean":
        dy = dy / max(1, len(p))
    dlogits[counted] = dy * p
    return dlogits


def perplexity(nats):
    r"""Exponential of a mean loss per token: the number of equally likely choices.

    .. math:: \mathrm{PPL} = e^{E}

    A model that is as unsure as a fair die has E = ln 6 = 1.79 and perplexity 6. The mean
    must be taken over all tokens first: with the losses 0.5 and 1.5 in one batch and
    2, 2, 2, 2 in the next it is exp(10 / 6) = 5.29, while the exponential of the mean of the
    batch means is 4.48 and the mean of the batch perplexities 5.05.

    Parameters
    ----------
    nats : float or ndarray of shape (...)
        Mean negative log-probability per token, as :func:`cross_entropy` returns it.

    Returns
    -------
    ndarray of shape (...)
        Perplexity; infinity where the exponential exceeds the dtype, without a warning, as
        in PyTorch.
    """
    with np.errstate(over="ignore"):
        return np.exp(nats)


def bits(nats):
    r"""Convert a loss from nats to bits.

    .. math:: \mathrm{bits} = \mathrm{nats} / \ln 2

    A fair coin costs ln 2 = 0.693 nats, one bit. Divided by the number of bytes instead of
    tokens, the total gives bits per byte, which can be compared between tokenizers.

    Parameters
    ----------
    nats : float or ndarray of shape (...)
        Loss in nats.

    Returns
    -------
    float or ndarray of shape (...)
        Loss in bits.
    """
    return nats / math.log(2)
