"""Softmax of masked scores with a switch for each mistake that several tasks share."""

import numpy as np

from seqlib.exercises.record import Misconception

# Axes of the softmax for each mistake, on scores of shape (..., n_q, n_k), or with the heads
# in front.
_AXES = {
    "softmax_over_queries": (-2,),
    "softmax_over_all": (-2, -1),
    "softmax_over_heads": (0,),
    "softmax_over_heads_and_keys": (0, -1),
    "softmax_axis_one": (1,),
}


def weights(scores, M=None, *, wrong=frozenset()):
    """Turn scaled scores into attention weights.

    Parameters
    ----------
    scores : ndarray of shape (..., n_q, n_k)
        Scores, scaled already.
    M : ndarray that broadcasts to (..., n_q, n_k), optional
        0 where allowed, -inf where blocked.
    wrong : set of str
        Mistakes to make.

    Returns
    -------
    ndarray of shape (..., n_q, n_k)
        Weights; a row without an allowed key holds zeros.
    """
    blocked = np.zeros((1, 1), dtype=bool)
    if M is not None and "mask_ignored" not in wrong:
        blocked = np.isneginf(M)
        if "mask_polarity" in wrong:
            blocked = ~blocked
    masked = np.where(blocked, -np.inf, scores)
    if "mask_times_scores" in wrong and M is not None:
        with np.errstate(invalid="ignore"):  # -inf times 0
            masked = scores * M
    if "mask_multiplied" in wrong:
        masked = np.where(blocked, 0, scores)
    if "mask_after_softmax" in wrong:
        masked = scores
    axis = next((_AXES[name] for name in _AXES if name in wrong), (-1,))
    A = _softmax(masked, axis, wrong)
    if "mask_after_softmax" in wrong:
        A = np.where(blocked, 0, A)
    empty = np.broadcast_to(blocked, scores.shape).all(axis=-1, keepdims=True)
    if "empty_row_uniform" in wrong:
        A = np.where(empty, 1 / scores.shape[-1], A)
    if "empty_row_unmasked" in wrong:
        A = np.where(empty, _softmax(scores, axis, wrong), A)
    return A.astype(scores.dtype, copy=False)


def returned(Y, A, wrong):
    """Return Y and A as a tuple, with the mistakes named in ``wrong``."""
    if "output_alone" in wrong:
        return Y
    return (A, Y) if "parts_exchanged" in wrong else (Y, A)


def transposed(array, wrong):
    """Exchange the last two axes, or reverse all if that mistake is among ``wrong``."""
    return array.T if "all_axes_reversed" in wrong else np.swapaxes(array, -1, -2)


def _softmax(S, axis, wrong):
    if "no_softmax" in wrong:
        return S
    if "divided_by_sum" in wrong:
        return S / S.sum(axis=axis, keepdims=True)
    empty = np.isneginf(S).all(axis=axis, keepdims=True)
    top = S.max(axis=axis, keepdims=True)
    if wrong & {"no_shift", "naive_softmax"}:
        top = np.zeros_like(top)
    if "shift_of_all" in wrong:
        top = np.full_like(top, S.max())
    with np.errstate(all="ignore"):  # the mistakes overflow and divide 0 by 0
        E = np.exp(S - np.where(np.isneginf(top), 0, top))
        A = E / E.sum(axis=axis, keepdims=True)
    no_key = np.nan if wrong & {"empty_row_nan", "naive_softmax"} else 0
    return np.where(empty, no_key, A)


# Mistakes in what is returned, and with stacks of matrices, which several tasks share.
RETURNS = (
    Misconception(
        "output_alone",
        "Y is returned alone; the text asks for Y and A.",
        "attention#weights",
        "our own: the function of the book returns Y alone",
    ),
    Misconception(
        "parts_exchanged",
        "Y and A are returned in the other order.",
        "attention#weights",
        "our own: (7) names A first",
    ),
)
REVERSED = Misconception(
    "all_axes_reversed",
    "A stack of matrices is transposed with .T, which reverses the axes in front of them too.",
    "attention#leading-axes",
    "skyzh/tiny-llm#287",
)
SOFTMAX_AXIS_ONE = Misconception(
    "softmax_axis_one",
    "The softmax runs over axis 1, which holds the keys of one matrix, but not those of a "
    "stack of matrices.",
    "attention#leading-axes",
    "FudanNLP/fastNLP#254",
)
WIDTH_AXIS_ONE = Misconception(
    "width_axis_one",
    "The width d_k is read from axis 1, which is the width of one matrix, but not of a stack "
    "of matrices.",
    "attention#leading-axes",
    "our own: Q.shape[1] in a function for Q of any number of axes",
)
