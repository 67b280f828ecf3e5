r"""Connectionist temporal classification: a loss for labels whose places are not known.

A network gives probabilities over the labels and a *blank*, number 0, at each of T steps. A
path chooses one of them at each step; equal neighbours are merged, then blanks are removed, and
what is left is the text that the path stands for. The loss of a text is minus the logarithm of
the probability of all its paths together.

Here for one sequence in NumPy, to be read; training uses :func:`torch.nn.functional.ctc_loss`,
which the tests compare with this.
"""

import numpy as np

from seqlib._check import check_ids, check_shape
from seqlib.np import softmax

__all__ = ["BLANK", "best_path", "collapse", "ctc_loss", "ctc_loss_backward", "extend"]

BLANK = 0


def collapse(path):
    """Return the text of a path: merge equal neighbours, then remove blanks.

    >>> collapse([1, 1, 0, 1, 2, 2, 0])
    [1, 1, 2]
    """
    path = [int(label) for label in path]
    merged = [b for a, b in zip([None, *path], path, strict=False) if a != b]
    return [label for label in merged if label != BLANK]


def best_path(logits):
    """Return the text of the most probable path, which takes the best label at every step.

    Parameters
    ----------
    logits : ndarray of shape (T, V)
        Scores of the blank and the labels.

    Returns
    -------
    list of int
        The text. Another one may be more probable, as the sum over many paths.
    """
    return collapse(logits.argmax(axis=-1))


def extend(target):
    """Return the target with a blank before, between and behind its labels.

    >>> extend(np.array([3, 3])).tolist()
    [0, 3, 0, 3, 0]
    """
    extended = np.full(2 * len(target) + 1, BLANK)
    extended[1::2] = target
    return extended


def ctc_loss(logits, target):
    r"""Return the loss of one target, in nats.

    .. math:: \ell = -\ln \sum_{\pi \to y} \prod_t p_t(\pi_t)

    Parameters
    ----------
    logits : ndarray of shape (T, V)
        Scores of the blank, which is number 0, and the labels.
    target : ndarray of int of shape (L,)
        Labels, none of them the blank.

    Returns
    -------
    float
        The loss; infinite if no path of T steps has this text, as a label needs a step and
        two equal labels in a row one more between them.

    Raises
    ------
    ValueError
        If the target holds a blank or a label that the logits do not have.

    References
    ----------
    Graves, Fernández, Gomez and Schmidhuber (2006), "Connectionist Temporal Classification",
    International Conference on Machine Learning, section 4.
    """
    _check(logits, target)
    alpha = _forward(_log_probabilities(logits)[:, extend(target)], _may_skip(target))
    return float(-_both_ends(alpha[-1]))


def ctc_loss_backward(dy, logits, target):
    r"""Gradient of :func:`ctc_loss` with respect to the logits.

    .. math:: \frac{\partial \ell}{\partial z_{tv}} = p_t(v) - \gamma_t(v)

    where gamma is the share of the paths' probability that has label v at step t.

    Parameters
    ----------
    dy : float
        Gradient of the output.
    logits, target
        The arguments of the forward call; the loss must be finite.

    Returns
    -------
    ndarray of shape (T, V)
        Gradient with respect to ``logits``.
    """
    _check(logits, target)
    places = extend(target)
    log_p = _log_probabilities(logits)
    emitted, may_skip = log_p[:, places], _may_skip(target)
    alpha = _forward(emitted, may_skip)
    # From the end: the same recursion for time and text reversed.
    beta = _forward(emitted[::-1, ::-1], _may_skip(np.asarray(target)[::-1]))[::-1, ::-1]
    total = _both_ends(alpha[-1])
    if total == -np.inf:
        raise ValueError(
            f"target must fit into {len(logits)} steps for a gradient, got {len(target)} labels"
        )
    share = np.exp(alpha + beta - emitted - total)  # both have counted the label of step t
    gamma = np.zeros_like(log_p)
    np.add.at(gamma.T, places, share.T)
    return dy * (softmax(logits) - gamma)


def _log_probabilities(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _may_skip(target):
    """Return where a path may come from two places before: to a label unlike the last one."""
    extended = extend(target)
    skips = np.zeros(len(extended), dtype=bool)
    skips[2:] = (extended[2:] != BLANK) & (extended[2:] != extended[:-2])
    return skips


def _forward(emitted, may_skip):
    """Return ln alpha: the paths that have come to each place, by step ``(T, 2L + 1)``."""
    alpha = np.full(emitted.shape, -np.inf)
    alpha[0, :2] = emitted[0, :2]
    for t in range(1, len(emitted)):
        stay = alpha[t - 1]
        step = np.concatenate([[-np.inf], stay[:-1]])
        skip = np.concatenate([[-np.inf, -np.inf], stay[:-2]])[: len(stay)]
        skip = np.where(may_skip, skip, -np.inf)
        alpha[t] = emitted[t] + np.logaddexp(np.logaddexp(stay, step), skip)
    return alpha


def _both_ends(alpha):
    """Return the logarithm of the paths that end with the last label or the blank behind it."""
    return np.logaddexp.reduce(alpha[-2:])


def _check(logits, target):
    check_shape("logits", logits, ("T", "V"))
    check_shape("target", target, ("L",))
    check_ids("target", target, logits.shape[1])
    if (target == BLANK).any():
        raise ValueError("target must hold labels only, got 0; the blank is put in by the loss")
