"""Byte pair encoding in its shortest form: every step counts all pairs afresh.

This is the form to learn from. It passes over the text once for each merge; ``learning.py``
and ``merging.py`` give the same results much faster.

A token is a piece of text in bytes, such as ``b"th"``. A word is a list of tokens, at first
of single bytes.
"""

from collections import Counter
from itertools import pairwise

__all__ = ["bpe_encode", "bpe_train", "merge_pair", "pair_counts"]


def pair_counts(words):
    """Count how often two tokens stand side by side: in 3 times "abab" there are 6 a, b.

    Parameters
    ----------
    words : list of (list of bytes, int)
        Words, each with the number of times that it occurs in the text.

    Returns
    -------
    Counter
        Number of occurrences of each pair. Overlaps count: "aaa" has the pair a, a twice.
    """
    counts = Counter()
    for word, times in words:
        for pair in pairwise(word):
            counts[pair] += times
    return counts


def merge_pair(word, pair):
    """Join a pair wherever it stands, from the left: a, a, a becomes aa, a.

    Parameters
    ----------
    word : list of bytes
        Tokens.
    pair : tuple of (bytes, bytes)
        The two tokens to join.

    Returns
    -------
    list of bytes
        The shorter word, or an equal one if the pair does not occur.
    """
    merged = []
    for token in word:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged


def bpe_train(chunks, n_merges):
    """Learn merges: again and again, the most frequent pair becomes a token.

    Of pairs that are equally frequent the smallest is taken: the one with the smaller first
    token, then with the smaller second one, compared byte by byte. ``{b"abcdabcd": 1}`` has
    the pairs ab, bc and cd twice each; the merges are a + b, ab + c, abc + d.

    Parameters
    ----------
    chunks : dict of bytes to int
        The distinct pieces of the text and how often each occurs. Pairs do not cross them.
    n_merges : int
        Number of merges to learn. Fewer are learned when no pair is left.

    Returns
    -------
    list of (bytes, bytes)
        The merged pairs in the order in which they were learned.

    References
    ----------
    Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword
    Units", Section 3.2.
    """
    words = [([bytes([byte]) for byte in chunk], times) for chunk, times in chunks.items()]
    merges = []
    for _ in range(n_merges):
        counts = pair_counts(words)
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        words = [(merge_pair(word, best), times) for word, times in words]
    return merges


def bpe_encode(chunk, merges):
    """Encode one piece of text: of the pairs that occur, merge the one learned first.

    With the merges b + c, then a + b, the text abc becomes a, bc: the order of learning
    decides, not the order in the text.

    Parameters
    ----------
    chunk : bytes
        The piece.
    merges : list of (bytes, bytes)
        What :func:`bpe_train` returned.

    Returns
    -------
    list of bytes
        Its tokens. Joined they are the piece again.
    """
    word = [bytes([byte]) for byte in chunk]
    for pair in merges:
        word = merge_pair(word, pair)
    return word
