"""From logits to the distribution that the next token is drawn from."""

import torch

from seqlib._check import check_not_empty, check_shape
from seqlib._sampling import check_sampling

__all__ = ["next_token_distribution"]


def next_token_distribution(logits, *, temperature=1.0, top_k=None, top_p=None):
    r"""Turn logits into probabilities; twin of ``seqlib.np.next_token_distribution``.

    In this order:

    1. ``temperature`` divides the logits, and softmax gives probabilities. At 0 the best token
       gets probability 1.
    2. ``top_k`` keeps the k most probable tokens, and the rest is renormalised.
    3. ``top_p`` keeps the most probable tokens until their sum reaches p, the token that
       crosses p included, and the rest is renormalised.

    Of tokens with equal logits the one with the lower id counts as the more probable.

    Parameters
    ----------
    logits : Tensor of shape (..., V)
        Scores of the tokens; -inf excludes one.
    temperature : float, default=1.0
        At least 0; below 1 sharpens the distribution, above 1 flattens it.
    top_k : int, optional
        Number of tokens to keep; a number above V keeps all.
    top_p : float, optional
        Probability to keep, in ``(0, 1]``.

    Returns
    -------
    Tensor of shape (..., V)
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
    if not bool(torch.isfinite(logits.amax(dim=-1)).all()):
        raise ValueError(
            "logits must have a finite maximum in every row, got NaN, inf or a row of -inf"
        )
    # Best first; lower id first in a tie.
    ranked, order = torch.sort(logits.double(), dim=-1, descending=True, stable=True)
    if temperature == 0:
        p = torch.zeros_like(ranked)
        p[..., 0] = 1
    else:
        p = torch.exp((ranked - ranked[..., :1]) / temperature)
        p = p / p.sum(dim=-1, keepdim=True)
    if top_k is not None:
        p[..., top_k:] = 0
        p = p / p.sum(dim=-1, keepdim=True)
    if top_p is not None and top_p < 1:
        before = torch.zeros_like(p)  # the probability of all better tokens
        before[..., 1:] = p[..., :-1].cumsum(dim=-1)
        p = torch.where(before < top_p, p, 0)
        p = p / p.sum(dim=-1, keepdim=True)
    p = torch.empty_like(p).scatter(-1, order, p)
    return p.to(logits.dtype) if logits.is_floating_point() else p
