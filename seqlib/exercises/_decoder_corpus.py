"""The corpus of the training task: tiny stories, word by word, in a language drawn anew.

The stories of :func:`seqlib.data.stories` are public, so text of them can be drawn or counted
beforehand. Here every check draws a language of its own: which word has which id, and in which
order the words of a sentence stand. There are more names, colours and toys besides, so that
counts of a few words hold few of the groups that occur.
"""

import functools
import re

import numpy as np

from seqlib.data.grammar import Grammar
from seqlib.data.stories import STORY_RULES

WORD = re.compile(r"[^ .\n]+[ .\n]*")  # a word with the blank or full stop behind it
T = 32  # tokens that a window predicts
NAMES, COLOURS, TOYS = 24, 16, 20
_TOGETHER = 64  # stories that are drawn as one text
_MANY = 3000  # stories in which every word of the grammar occurs


def _many(word, n, *forms):
    """Return a rule with n words; of its forms each word has one, in turn."""
    words = [f"{word}{i:02}" for i in range(n)]
    endings = [f"|{forms[i % len(forms)]}" if forms else "" for i in range(n)]
    return [(1 / n, word + ending) for word, ending in zip(words, endings, strict=True)]


RULES = STORY_RULES | {
    "name": _many("Name", NAMES, "she", "he"),
    "colour": _many("colour", COLOURS),
    "toy": _many("toy", TOYS),
}


@functools.cache
def vocabulary():
    """Return the words of the stories, sorted; they are the same in every language."""
    text = Grammar(RULES).sample(_MANY, np.random.default_rng(0))
    return tuple(sorted(set(WORD.findall(text))))


class Language:
    """Stories in an order of words, and with ids, that are drawn.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of both.

    Attributes
    ----------
    grammar : seqlib.data.Grammar
        The stories. They cost what they cost in English: the order of words is no choice.
    number : dict of str to int
        Id of each word.
    """

    def __init__(self, rng):
        self.grammar = Grammar(
            {
                name: [(p, _reordered(text, rng)) for p, text in options]
                for name, options in RULES.items()
            }
        )
        words = vocabulary()
        self.number = dict(zip(words, rng.permutation(len(words)).tolist(), strict=True))

    def windows(self, n, rng):
        """Draw windows of T + 1 tokens that begin with a story.

        Returns
        -------
        ids : ndarray of int of shape (n, T + 1)
            Words. Windows overlap: each story begins one.
        """
        return np.concatenate([ids for ids, _, _ in self._draw(n, rng)])

    def windows_with_cost(self, n, rng):
        """Draw windows, and say what they cost.

        Returns
        -------
        ids : ndarray of int of shape (n, T + 1)
            As :meth:`windows` draws them.
        nats : ndarray of shape (n, T)
            What the words after the first cost under the grammar, given those before. No model
            has a smaller loss on average.
        """
        ids, nats = [], []
        for found, starts, text in self._draw(n, rng):
            ends = np.cumsum([len(word) for word in WORD.findall(text)])
            # A word ends where it is known to end, so its cost is that of its characters.
            total = np.concatenate([[0.0], np.cumsum(self.grammar.nats(text))])
            ids.append(found)
            nats.append(_rows(np.diff(total[[0, *ends]]), starts)[:, 1:])
        return np.concatenate(ids), np.concatenate(nats)

    def _draw(self, n, rng):
        """Yield windows, their places in a text, and the text, until there are ``n``."""
        for done in range(0, n, _TOGETHER):
            number = min(n - done, _TOGETHER)
            # The last stories begin no window: one that is chosen for its length has another
            # cost on average. The shortest has 15 words.
            text = self.grammar.sample(number + 3, rng)
            words = WORD.findall(text)
            starts = np.flatnonzero([True, *(word.endswith("\n") for word in words[:-1])])
            starts = starts[:number]
            yield _rows(np.array([self.number[word] for word in words]), starts), starts, text


def _rows(values, starts):
    return values[starts[:, None] + np.arange(T + 1)]


def _reordered(text, rng):
    """Return the text of a rule with its inner words in another order.

    The first word stays, since it tells the rule from others of its symbol, and the last one,
    at which the sentence ends: so the words, with what is behind them, stay the same.
    """
    words = text.split(" ")
    first = 1 if words[0] else 2  # after a blank at the beginning
    inner = words[first:-1]
    inner = [inner[i] for i in rng.permutation(len(inner))]
    return " ".join([*words[:first], *inner, *words[-1:]]) if inner else text
