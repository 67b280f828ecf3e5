"""The n-gram language model: counts of short contexts, the baseline of every neural one."""

import numpy as np

from seqlib._check import check_ids, check_positive, check_shape

__all__ = ["NGramLM"]


class NGramLM:
    r"""Predict a token from the n - 1 tokens before it, by counting.

    Each order is smoothed with the next lower one, which counts like ``strength`` further
    observations; below the single tokens lies the uniform distribution:

    .. math::

        p_k(w \mid c) = \frac{\mathrm{count}(c\, w) + \alpha \, p_{k-1}(w \mid c')}
            {\mathrm{count}(c) + \alpha}, \qquad p_0(w) = \frac{1}{V}

    where c is the context of k - 1 tokens and c' is c without its oldest token. A context
    that was never seen leaves the lower order as it is.

    For the text 0 0 1 with V = 2 and strength 1, the single tokens have
    p(0) = (2 + 0.5) / (3 + 1) = 0.625; after 0 came one 0 and one 1, so the bigram has
    p(0 | 0) = (1 + 0.625) / (2 + 1) = 0.5417.

    Parameters
    ----------
    n : int
        Length of the counted groups: 1 counts single tokens, 2 pairs, and so on.
    V : int
        Number of entries of the vocabulary.
    strength : float, default=1.0
        The weight alpha of the lower order, positive.

    References
    ----------
    MacKay and Peto (1995), "A hierarchical Dirichlet language model", Natural Language
    Engineering 1.
    """

    def __init__(self, n, V, *, strength=1.0):
        check_positive("n", n)
        check_positive("V", V)
        if V**n >= 2**63:
            raise ValueError(
                f"n must be small enough that V**n stays below 2**63, got n = {n}, V = {V}"
            )
        if not 0 < strength < np.inf:
            raise ValueError(f"strength must be positive and finite, got {strength}")
        self.n, self.V, self.strength = n, V, strength
        self._counts = None

    def fit(self, ids):
        """Count all groups of 1 to n tokens in a text and return the model.

        Parameters
        ----------
        ids : ndarray of int of shape (T,)
            Token ids, at least one.

        Returns
        -------
        NGramLM
            The model itself.
        """
        ids = self._check(ids)
        if len(ids) == 0:
            raise ValueError("ids must hold at least 1 token, got 0; the text is empty")
        # A group is one number in base V; a context is its group without the last digit.
        self._counts = []
        for k in range(1, self.n + 1):
            groups, count = np.unique(self._groups(ids, k), return_counts=True)
            contexts, first = np.unique(groups // self.V, return_index=True)
            total = np.add.reduceat(count, first) if len(count) else count
            self._counts.append((groups, count, contexts, total))
        return self

    def distribution(self, context):
        """Return the probabilities of the next token.

        Parameters
        ----------
        context : ndarray of int of shape (T,)
            The tokens so far, possibly none; the last n - 1 of them matter.

        Returns
        -------
        ndarray of shape (V,)
            Probabilities.
        """
        context = self._check(context, "context")
        p = np.full(self.V, 1 / self.V)
        for k in range(1, min(self.n, len(context) + 1) + 1):
            last = context[len(context) - k + 1 :]
            groups = self._groups(last, k - 1)[0] * self.V + np.arange(self.V)
            p = self._smooth(p, groups, k)
        return p

    def nats(self, ids):
        """Return the negative log-probability of each token of a text, given those before.

        Parameters
        ----------
        ids : ndarray of int of shape (T,)
            Token ids. The first n - 1 have fewer tokens before them, and those are used.

        Returns
        -------
        ndarray of shape (T,)
            Losses in nats; their mean is the cross-entropy of the text.
        """
        ids = self._check(ids)
        p = np.full(len(ids), 1 / self.V)
        for k in range(1, min(self.n, len(ids)) + 1):
            p[k - 1 :] = self._smooth(p[k - 1 :], self._groups(ids, k), k)
        return -np.log(p)

    def _smooth(self, lower, groups, k):
        """Return p_k of groups of k tokens from p_(k-1) of their last k - 1 tokens."""
        if self._counts is None:
            raise ValueError("fit must be called before the model predicts, got no counts")
        known, count, contexts, total = self._counts[k - 1]
        count_group = _look_up(groups, known, count)
        count_context = _look_up(groups // self.V, contexts, total)
        return (count_group + self.strength * lower) / (count_context + self.strength)

    def _groups(self, ids, k):
        """Return the number of every group of ``k`` consecutive tokens, in base V."""
        groups = np.zeros(len(ids) - k + 1 if len(ids) >= k else 0, np.int64)
        for j in range(k):
            groups = groups * self.V + ids[j : j + len(groups)]
        return groups

    def _check(self, ids, name="ids"):
        ids = np.asarray(ids)
        check_shape(name, ids, ("T",), fix="a text is one row of token ids")
        if len(ids):
            check_ids(name, ids, self.V)
        return ids.astype(np.int64)


def _look_up(keys, known, values):
    """Return the value of each key, 0 if it is not among the sorted ``known`` keys."""
    if len(known) == 0:
        return np.zeros(len(keys), np.int64)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, values[place], 0)
