"""The loss that a plain recipe reaches within the token budget of the training task.

Ten runs of the reference of ``decoder.train_model``, each with its own language, text and first
weights, beside models that counted groups of words of the same text. The threshold of the task
is the worst loss of the ten plus three standard deviations.
"""

import numpy as np
import torch

from seqlib.exercises import _decoder_train as task
from seqlib.exercises._decoder_corpus import Language, vocabulary
from seqlib.experiments.training import seeded
from seqlib.subject.values import map_leaves

INPUTS = {
    "steps": task.STEPS,
    "batch": task.BATCH,
    "fresh": 2048,
    "orders": 16,
    "discounts": [0.5, 0.7, 0.9, 0.97],
}
REDUCED = INPUTS
SEEDS = tuple(range(10))
# Sixteen hundred steps of Adam enlarge the last bit of another processor's matrix product.
TOLERANCE = {"rtol": 0.0, "atol": 0.05}
PACKAGES = ("numpy", "torch")


def run(inputs, seed):
    """Return the losses of one run, in nats per token.

    Parameters
    ----------
    inputs : dict
        ``steps`` and ``batch`` of the training, windows of ``fresh`` text, ``orders`` and
        ``discounts`` of the counts.
    seed : int
        Seed of the language, of the texts and of the first weights.

    Returns
    -------
    dict
        ``floor``, ``spread`` (mean and standard deviation of the cost of a window under the
        grammar), ``model`` (loss minus floor, of the trained model), ``counts`` (the same of
        the counts, by order, each with the discount that is best on the fresh text).
    """
    rng = np.random.default_rng([seed, 0])
    language = Language(rng)
    ids = language.windows(inputs["steps"] * inputs["batch"], rng)
    fresh, cost = language.windows_with_cost(inputs["fresh"], rng)
    with seeded(seed):
        batches = ids.reshape(inputs["steps"], inputs["batch"], -1)
        model = task.reference(batches, len(vocabulary()))

    def predict(marked):
        with torch.no_grad():
            return map_leaves(lambda leaf: model(torch.from_numpy(leaf.array)).numpy(), marked)

    losses = count(ids, fresh, len(vocabulary()), inputs["orders"], inputs["discounts"])
    best = losses.min(axis=1) - cost.mean()
    return {
        "floor": float(cost.mean()),
        "spread": float(cost.mean(axis=1).std(ddof=1)),
        "model": float((task.nats_of(predict, fresh) - cost).mean()),
        "counts": {str(order): float(loss) for order, loss in enumerate(best, start=1)},
    }


def count(seen, fresh, V, orders, discounts):
    r"""Return the loss of counts with Kneser and Ney's discount on windows of text.

    A group is a word and the k - 1 words before it; a mark stands before the first word of a
    window, so that the counts know where a story begins. A group that was seen n times in its
    context c, of N times, in which D different words were seen, has

    .. math::

        p_k(w \mid c) = \frac{\max(n - d, 0) + d D\, p_{k-1}(w \mid c')}{N}

    where c' is c without its oldest word and d is the discount. In p_(k-1), as far as p_k takes
    it up, n is the number of different words that were seen before the group.

    Parameters
    ----------
    seen, fresh : ndarray of int of shape (n, T + 1)
        Windows to count, and to predict.
    V : int
        Number of words.
    orders : int
        Words of the longest group.
    discounts : list of float
        Between 0 and 1.

    Returns
    -------
    ndarray of shape (orders, len(discounts))
        Mean loss of the words after the first, in nats.

    References
    ----------
    Kneser and Ney (1995), "Improved backing-off for m-gram language modeling", ICASSP.
    """
    both = np.concatenate([seen, fresh])
    marked = np.pad(both, ((0, 0), (orders, 0)), constant_values=V)
    words, n, T = both[:, 1:], len(seen), both.shape[1] - 1
    # Contexts and groups are numbered from 0, so that counts are entries of an array.
    context = np.zeros_like(words)
    lower, losses = np.full((len(discounts), len(fresh), T), 1 / V), []
    for k in range(1, orders + 1):
        group = _numbered(context * V + words)
        older = marked[:, orders + 1 - k :][:, :T]  # the word before the group
        context_of = np.zeros(group.max() + 1, int)
        context_of[group.ravel()] = context.ravel()
        before = np.unique(group[:n] * (V + 1) + older[:n]) // (V + 1)
        asked = group[n:], context[n:], lower, discounts
        p = _discounted(group[:n], context_of, *asked)
        losses.append(-np.log(p).mean(axis=(1, 2)))
        lower = _discounted(before, context_of, *asked)
        context = _numbered(context * (V + 1) + older)
    return np.array(losses)


def _discounted(found, context_of, group, context, lower, discounts):
    """Return the probabilities of groups, by discount, from those that were found."""
    counts = np.bincount(found.ravel(), minlength=len(context_of))
    total = np.bincount(context_of, counts)[context]
    kinds = np.bincount(context_of, counts > 0)[context]
    d = np.reshape(discounts, (-1, 1, 1))
    kept = np.maximum(counts[group] - d, 0) + d * kinds * lower
    return np.where(total > 0, kept / np.maximum(total, 1), lower)


def _numbered(values):
    """Return the number of each value among the different ones."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)
