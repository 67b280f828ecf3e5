"""The stories word by word, in windows that begin with a story, with what each word costs."""

import functools
import re

import numpy as np

from seqlib.data import stories
from seqlib.data.stories import story_grammar

__all__ = ["T", "vocabulary", "windows"]

WORD = re.compile(r"[^ .\n]+[ .\n]*")  # a word with the blank or full stop behind it
T = 32  # words that a window predicts


@functools.cache
def vocabulary():
    """Return the words of the grammar, sorted; a word's id is its place."""
    return tuple(sorted(set(WORD.findall(stories(2000, np.random.default_rng(0))))))


def windows(n, rng, *, at_once=None):
    """Draw windows of T + 1 words.

    Parameters
    ----------
    n : int
        Number of windows. They may overlap: every story with T words behind it begins one.
    rng : numpy.random.Generator
        Source of the stories.
    at_once : int, optional
        Stories that are drawn at a time; if omitted, eight more than windows are missing, and
        at most 72.

    Returns
    -------
    ids : ndarray of int of shape (n, T + 1)
        The words.
    nats : ndarray of shape (n, T)
        What the words after the first cost under the grammar, given those before. No model
        has a smaller loss on average.
    """
    number, grammar = {word: i for i, word in enumerate(vocabulary())}, story_grammar()
    ids, nats = [], []
    while len(ids) < n:
        text = stories(at_once or min(n - len(ids), 64) + 8, rng)
        words = WORD.findall(text)
        # A word ends where it is known to end, so its cost is that of its characters.
        ends = np.cumsum([0, *map(len, words)])
        cost = np.diff(np.concatenate([[0.0], grammar.nats(text).cumsum()])[ends])
        found = np.array([number[word] for word in words])
        first = [0, *(i + 1 for i, word in enumerate(words) if word.endswith("\n"))]
        for start in (i for i in first if i + T < len(words)):
            ids.append(found[start : start + T + 1])
            nats.append(cost[start + 1 : start + T + 1])
    return np.array(ids[:n]), np.array(nats[:n])
