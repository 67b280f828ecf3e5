"""Cross-entropy over a vocabulary, and the units in which it is quoted; twin of the NumPy."""

import math

import torch

from seqlib._check import check_ids
from seqlib._loss import check_targets
from seqlib.pt.activation import log_softmax

__all__ = ["bits", "cross_entropy", "perplexity"]


def cross_entropy(logits, targets, *, ignore_index=-100, reduction="mean"):
    r"""Negative log-probability of the targets under the softmax of the logits, in nats.

    Twin of ``seqlib.np.cross_entropy``.

    .. math:: \ell_i = -\ln \mathrm{softmax}(z_i)_{y_i}, \qquad
        E = \frac{1}{M} \sum_{i : y_i \ne \mathrm{ignored}} \ell_i

    Parameters
    ----------
    logits : Tensor of shape (..., V)
        Scores of the V classes. Logits at ignored positions are never used.
    targets : Tensor of int of shape (...)
        Classes. For next-token prediction the caller shifts them: the logits at
        position t are held against token t + 1.
    ignore_index : int, default=-100
        The target value that marks positions without a loss, such as padding.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean over the targets that count, 0 if none does; their sum; or each loss, with 0
        where ignored.

    Returns
    -------
    Tensor of shape ()
        The loss; for ``reduction="none"`` a tensor like ``targets``.

    Raises
    ------
    ValueError
        If ``targets`` is not an integer tensor of the shape of ``logits`` without its last
        axis, or holds a class outside ``[0, V)`` that is not ``ignore_index``.

    References
    ----------
    Lecture notes, equation (3). ``torch.nn.functional.cross_entropy`` gives NaN if every
    target is ignored, and has its classes on axis 1.
    """
    check_targets(logits, targets, reduction)
    targets = targets.long()
    counted = targets != ignore_index
    check_ids("targets", targets[counted], logits.shape[-1])
    log_p = log_softmax(logits[counted])  # (M, V)
    found = -log_p.gather(-1, targets[counted][:, None])[:, 0]
    if reduction == "none":
        return logits.new_zeros(targets.shape).masked_scatter(counted, found)
    total = found.sum()
    return total if reduction == "sum" else total / max(1, found.numel())


def perplexity(nats):
    r"""Exponential of a mean loss per token; twin of ``seqlib.np.perplexity``.

    .. math:: \mathrm{PPL} = e^{E}

    Parameters
    ----------
    nats : float or Tensor of shape (...)
        Mean negative log-probability per token, as :func:`cross_entropy` returns it.

    Returns
    -------
    Tensor of shape (...)
        Perplexity; infinity where the exponential exceeds the dtype. A Python number gives
        float64.
    """
    if not isinstance(nats, torch.Tensor):
        nats = torch.tensor(nats, dtype=torch.float64)
    return nats.exp()


def bits(nats):
    r"""Convert a loss from nats to bits; twin of ``seqlib.np.bits``.

    .. math:: \mathrm{bits} = \mathrm{nats} / \ln 2

    Parameters
    ----------
    nats : float or Tensor of shape (...)
        Loss in nats.

    Returns
    -------
    float or Tensor of shape (...)
        Loss in bits.
    """
    return nats / math.log(2)
