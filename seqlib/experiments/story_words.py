"""Tiny stories word by word, with the cost of each word under their grammar."""

import functools
import re

import numpy as np

from seqlib.data import stories
from seqlib.data.stories import story_grammar

WORD = re.compile(r"[^ .\n]+[ .\n]*")  # a word with the blank or full stop behind it
T = 32  # tokens that a window predicts
_MANY = 2000  # stories in which every word of the grammar occurs


@functools.cache
def vocabulary():
    """Return the words of the grammar, sorted; a word's id is its place."""
    return tuple(sorted(set(WORD.findall(stories(_MANY, np.random.default_rng(0))))))


def windows(n, rng):
    """Draw windows of T + 1 tokens that begin with a story.

    Returns
    -------
    ids : ndarray of int of shape (n, T + 1)
        Words. Windows overlap: each story begins one.
    nats : ndarray of shape (n, T)
        What the words after the first cost under the grammar, given those before. No model
        has a smaller loss on average.
    """
    number, grammar = {word: i for i, word in enumerate(vocabulary())}, story_grammar()
    ids, nats = [], []
    while len(ids) < n:
        text = stories(min(n - len(ids), 64) + 8, rng)
        words = WORD.findall(text)
        found = np.array([number[word] for word in words])
        ends = np.cumsum([len(word) for word in words])
        # A word ends where it is known to end, so its cost is that of its characters.
        cost = np.diff(np.concatenate([[0.0], np.cumsum(grammar.nats(text))])[[0, *ends]])
        starts = [0, *(i + 1 for i, word in enumerate(words) if word.endswith("\n"))]
        for start in starts:
            if start + T < len(words) and len(ids) < n:
                ids.append(found[start : start + T + 1])
                nats.append(cost[start + 1 : start + T + 1])
    return np.array(ids), np.array(nats)
