r"""Do two heads learn two relations? Twice the same layer, with and without a reason to.

A token is its content, two standard normal numbers, and its position, one-hot.
Task ``two``: position t must give the contents of the tokens one and two steps before.
Task ``one``: position t must give the content of the token one step before, only.
Task ``equal``: as ``two``, but both heads start from the same numbers.

Two heads are compared by the overlap of their attention: the mean over queries of
:math:`\sum_j \min(a_{ij}, b_{ij})`, which is 0 for heads that look at different tokens and 1
for heads that look at the same.
"""

import numpy as np

from seqlib.np.activation import linear
from seqlib.np.attention import attention_weights
from seqlib.np.multihead import (
    multi_head_attention,
    multi_head_attention_backward,
    split_heads,
)

INPUTS = {"steps": 600, "batch": 32, "rate": 0.02}
REDUCED = INPUTS
SEEDS = (0, 1, 2, 3, 4)
# Six hundred steps of Adam enlarge the last bit of another processor's matrix product.
TOLERANCE = {"rtol": 0.0, "atol": 0.05}

TASKS = ("two", "one", "equal")

N_HEAD = 2
LENGTH = 6
CONTENT = 2
D = CONTENT + LENGTH  # 8, so a head has 4 features


def run(inputs, seed):
    """Return the final loss and the overlap of the heads for each task.

    Parameters
    ----------
    inputs : dict
        ``steps`` of Adam, ``batch`` size, learning ``rate``.
    seed : int
        Seed of the repetition.

    Returns
    -------
    dict
        ``[task][measure]`` with the measures ``loss`` and ``overlap``, on fresh data.
    """
    return {task: _train(task, inputs, np.random.default_rng(seed)) for task in TASKS}


def _train(task, inputs, rng):
    params = _initial(task, rng)
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in params]
    for step in range(1, inputs["steps"] + 1):
        x, target = _draw(task, inputs["batch"], rng)
        dy = 2 * _error(params, x, target) / _count(target)
        grads = multi_head_attention_backward(dy, x, *params, n_head=N_HEAD)[1:]
        for p, grad, (mean, square) in zip(params, grads, moments, strict=False):
            # Adam of Kingma and Ba (2015) with its usual constants.
            mean += 0.1 * (grad - mean)
            square += 0.001 * (grad**2 - square)
            p -= (
                inputs["rate"]
                * (mean / (1 - 0.9**step))
                / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            )
    x, target = _draw(task, 500, rng)
    loss = (_error(params, x, target) ** 2).sum() / _count(target)
    return {"loss": float(loss), "overlap": overlap(x, params)}


def _initial(task, rng):
    params = [
        rng.standard_normal((3 * D, D)) / np.sqrt(D),
        np.zeros(3 * D),
        rng.standard_normal((D, D)) / np.sqrt(D),
        np.zeros(D),
    ]
    if task == "equal":
        half = D // N_HEAD
        for third in range(3):
            first = slice(third * D, third * D + half)
            params[0][third * D + half : (third + 1) * D] = params[0][first]
        params[2][:, half:] = params[2][:, :half]
    return params


def _draw(task, batch, rng):
    """Return tokens of shape (B, 6, 8) and targets, NaN where nothing is asked."""
    content = rng.standard_normal((batch, LENGTH, CONTENT))
    position = np.broadcast_to(np.eye(LENGTH), (batch, LENGTH, LENGTH))
    target = np.full((batch, LENGTH, D), np.nan)
    target[:, 2:, :CONTENT] = content[:, 1:-1]
    if task != "one":
        target[:, 2:, CONTENT : 2 * CONTENT] = content[:, :-2]
    return np.concatenate([content, position], axis=-1), target


def _error(params, x, target):
    y = multi_head_attention(x, *params, n_head=N_HEAD)
    return np.where(np.isnan(target), 0.0, y - target)


def _count(target):
    return np.count_nonzero(~np.isnan(target))


def overlap(x, params):
    """Return how much the two heads look at the same tokens, from 0 to 1."""
    weight, bias = params[:2]
    q, k = (
        split_heads(linear(x, weight[rows], bias[rows]), n_head=N_HEAD)
        for rows in (slice(0, D), slice(D, 2 * D))
    )
    weights = attention_weights(q, k)[:, :, 2:]  # the queries that are asked something
    return float(np.minimum(weights[:, 0], weights[:, 1]).sum(axis=-1).mean())
