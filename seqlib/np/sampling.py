"""From logits to the distribution that the next token is drawn from."""

import numpy as np

from seqlib._check import check_not_empty, check_shape
from seqlib._sampling import check_sampling

__all__ = ["next_token_distribution"]


def next_token_distribution(logits, *, temperature=1.0, top_k=None, top_p=None):
    r"""Turn logits into the probabilities that the next token is drawn with.

    In this order:

    1. ``temperature`` divides the logits, and softmax gives probabilities. At 0 the best token
       gets probability 1.
    2. ``top_k`` keeps the k most probable tokens, and the rest is renormalised.
    3. ``top_p`` keeps the most probable tokens until their sum reaches p, the token that
       crosses p included, and the rest is renormalised.

    Of tokens with equal logits the one with the lower id counts as the more probable.
    Probabilities 0.4, 0.3, 0.2, 0.1 with ``top_k=2`` become 0.571, 0.429, 0, 0; with
    ``top_p=0.5`` besides, 1, 0, 0, 0, because 0.571 has reached 0.5.

    Parameters
    ----------
    logits : ndarray of shape (..., V)
        Scores of the tokens; -inf excludes one.
    temperature : float, default=1.0
        At least 0; below 1 sharpens the distribution, above 1 flattens it.
    top_k : int, optional
        Number of tokens to keep; a number above V keeps all.
    top_p : float, optional
        Probability to keep, in ``(0, 1]``.

    Returns
    -------
    ndarray of shape (..., V)
        Probabilities; each row sums to 1.

    Raises
    ------
    ValueError
        If an option is out of range, or a row of logits has no finite maximum.

    References
    ----------
    Fan, Lewis and Dauphin (2018), "Hierarchical Neural Story Generation",
    arXiv:1805.04833 (top-k). Holtzman et al. (2020), "The Curious Case of Neural Text
    Degeneration", Section 3.1, arXiv:1904.09751 (top-p).
    """
    check_sampling(temperature, top_k, top_p)
    check_shape("logits", logits, ("...", "V"))
    check_not_empty("logits", logits, -1)
    if not np.isfinite(logits.max(axis=-1)).all():
        raise ValueError(
            "logits must have a finite maximum in every row, got NaN, inf or a row of -inf"
        )
    order = np.argsort(-logits, axis=-1, kind="stable")  # best first; lower id first in a tie
    ranked = np.take_along_axis(logits, order, axis=-1).astype(np.float64)
    if temperature == 0:
        p = np.zeros_like(ranked)
        p[..., 0] = 1
    else:
        with np.errstate(over="ignore"):  # a huge gap becomes -inf, and its probability 0
            p = np.exp((ranked - ranked[..., :1]) / temperature)
        p /= p.sum(axis=-1, keepdims=True)
    if top_k is not None:
        p[..., top_k:] = 0
        p /= p.sum(axis=-1, keepdims=True)
    if top_p is not None and top_p < 1:
        before = np.zeros_like(p)  # the probability of all better tokens
        before[..., 1:] = p[..., :-1].cumsum(axis=-1)
        p[before >= top_p] = 0
        p /= p.sum(axis=-1, keepdims=True)
    result = np.empty_like(p)
    np.put_along_axis(result, order, p, axis=-1)
    return result.astype(logits.dtype if logits.dtype.kind == "f" else np.float64, copy=False)
