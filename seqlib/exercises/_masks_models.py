"""Small models that leak, or do not: what a leak test of a student is tried on.

One layer of attention over all tokens of all sequences of the batch; which of them a token may
look at says whether the model is right. Every model is a function of its ids alone.
"""

import zlib

import numpy as np

from seqlib.subject.values import Handle

VOCABULARY = 7
PADDING = 0  # the id that padded models take for padding
_WIDTH = 6


def same_row(b, i, c, j, T):
    """Allow what a right model allows: tokens of its own sequence, up to its own step."""
    return (c == b) & (j <= i)


class Model:
    """A model with random weights.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the weights.
    ids : ndarray of int of shape (B, T)
        The largest input that will come.
    extra : callable, optional
        ``extra(b, i, c, j, T)``: whether token i of row b sees token j of row c besides what
        it may see; arrays in, an array out.
    padded : bool
        Whether id 0 is padding, which nobody sees and whose logits are 0.
    single : bool
        Whether the logits are float32, with the rounding that comes with it.
    size : float, optional
        How far some logit of ``ids`` moves when all that it must not see is cut away; without
        it, all of the logits come from the attention that leaks.
    position : callable, optional
        ``position(t, T)``, which number a step counts as; its own if not given.
    head : callable, optional
        Last change of the logits: ``head(logits, ids)``.
    over_queries : bool
        Whether the softmax runs over the queries.
    """

    def __init__(
        self,
        rng,
        ids,
        extra=None,
        *,
        padded=False,
        single=True,
        size=None,
        position=None,
        head=None,
        over_queries=False,
    ):
        self.limits = ids.shape
        self.embedding = rng.standard_normal((VOCABULARY, _WIDTH))
        self.positions = 0.5 * rng.standard_normal((2 * ids.shape[1], _WIDTH))
        self.keys = 0.2 * rng.standard_normal((_WIDTH, _WIDTH))
        self.output = 0.06 * rng.standard_normal((_WIDTH, VOCABULARY))
        self.output[:, PADDING] = 0  # near 0 a relative tolerance does not cover rounding
        self.extra, self.padded, self.single = extra, padded, single
        self.position, self.head = position, head
        self.over_queries = over_queries
        self.share = 1.0
        if size is not None:
            self.share = size / np.abs(self._logits(ids, extra) - self._logits(ids, None)).max()
        self._known = {}  # logits by ids: the wrong leak tests ask for the same ones

    def handle(self):
        """Return the model as a student's function gets it."""
        return Handle(self)

    def __call__(self, ids):
        """Return the logits, of shape (B, T, V)."""
        ids = _checked(ids, self.limits)
        key = ids.shape, ids.tobytes()
        if key not in self._known:
            self._known[key] = self._answer(ids)
        return self._known[key].copy()

    def _answer(self, ids):
        right = self._logits(ids, None)
        logits = right
        if self.extra is not None or self.over_queries:
            leaky = self._logits(ids, self.extra)
            logits = (1 - self.share) * right + self.share * leaky
        if self.head is not None:
            logits = self.head(logits, ids)
        if not self.single:
            return np.round(logits, 6)
        logits = logits + rounding(ids, logits.shape)
        if self.padded:
            logits = np.where((ids == PADDING)[..., None], 0, logits)
        return logits.astype(np.float32)

    def _logits(self, ids, extra):
        B, T = ids.shape
        t = np.arange(T) if self.position is None else self.position(np.arange(T), T)
        X = (self.embedding[ids] + self.positions[t]).reshape(B * T, _WIDTH)
        row, step = np.divmod(np.arange(B * T), T)
        grid = row[:, None], step[:, None], row[None, :], step[None, :], T
        allowed = same_row(*grid)
        if extra is not None:
            allowed = allowed | extra(*grid)
        if self.padded:
            allowed = allowed & (ids.ravel() != PADDING)
        scores = np.tanh(X @ self.keys @ X.T)  # at most 1, so that every weight counts
        E = np.where(allowed, np.exp(scores), 0)
        axis = 0 if self.over_queries and extra is not None else 1
        total = E.sum(axis=axis, keepdims=True)
        A = E / np.where(total == 0, 1, total)
        return ((X + 2 * A @ X) @ self.output).reshape(B, T, VOCABULARY)


def rounding(ids, shape):
    """Return errors of up to 2e-7, as of sums that are rounded in another order.

    They stand for those of float32 on any machine: they change with every part of the input,
    are the same whenever the input is, and two of them differ by less than 1e-6.
    """
    seed = [zlib.crc32(ids.tobytes()), *ids.shape]
    return np.random.default_rng(seed).uniform(-2e-7, 2e-7, shape)


def _checked(ids, limits):
    ids = np.asarray(ids)
    if ids.ndim != 2 or not all(
        0 < n <= most for n, most in zip(ids.shape, limits, strict=True)
    ):
        raise ValueError(
            f"ids must have shape (B, T) with 1 to {limits[0]} rows and 1 to {limits[1]} "
            f"steps, got shape {ids.shape}"
        )
    if not ((ids >= 0) & (ids < VOCABULARY) & (ids == np.round(ids))).all():
        raise ValueError(f"ids must be whole numbers from 0 to {VOCABULARY - 1}")
    return ids.astype(np.int64)
