"""Learning merges without counting afresh: only what a merge changes is counted.

Same results as ``naive.bpe_train``, in one pass over the text and a few steps for each
occurrence of a merged pair.
"""

import heapq
from itertools import pairwise

__all__ = ["PairCounts", "learn_merges"]


def learn_merges(chunks, n_merges):
    """Learn merges; see :func:`seqlib.text.bpe_train`, whose result this equals.

    Parameters
    ----------
    chunks : dict of bytes to int
        The distinct pieces of the text and how often each occurs.
    n_merges : int
        Number of merges to learn. Fewer are learned when no pair is left.

    Returns
    -------
    list of (bytes, bytes)
        The merged pairs in the order in which they were learned.
    """
    pairs, merges = PairCounts(chunks), []
    while len(merges) < n_merges and (best := pairs.most_frequent()):
        merges.append(best)
        pairs.merge(best)
    return merges


class PairCounts:
    """The number of occurrences of each pair of neighbours, kept true while pairs are merged.

    Parameters
    ----------
    chunks : dict of bytes to int
        The distinct pieces of the text and how often each occurs.

    Attributes
    ----------
    words : list of list of bytes
        The pieces as tokens.
    counts : dict of (bytes, bytes) to int
        Occurrences of each pair, 0 for a pair that is no longer there.
    """

    def __init__(self, chunks):
        single = [bytes([byte]) for byte in range(256)]
        self.words = [[single[byte] for byte in chunk] for chunk in chunks]
        self._times = list(chunks.values())
        # The words that have, or once had, a pair; a word may be listed twice.
        self.counts, self._places = counts, places = {}, {}
        for i, (word, times) in enumerate(zip(self.words, self._times, strict=True)):
            for pair in pairwise(word):
                if pair in counts:
                    counts[pair] += times
                    places[pair].append(i)
                else:
                    counts[pair], places[pair] = times, [i]
        # A pair's true count may be lower than its entry here, never higher, so the first
        # entry that is true belongs to the most frequent pair.
        self._heap = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self._heap)

    def most_frequent(self):
        """Return the most frequent pair, of several the smallest; None when no pair is left."""
        while self._heap:
            listed, pair = self._heap[0]
            count = self.counts.get(pair, 0)
            if count == -listed:
                return pair
            if count:
                heapq.heapreplace(self._heap, (-count, pair))
            else:
                heapq.heappop(self._heap)
        return None

    def merge(self, pair):
        """Join a pair in all words."""
        a, b = pair
        new, counts, made = a + b, self.counts, set()
        for i in set(self._places.pop(pair)):
            word, times = self.words[i], self._times[i]
            merged, k, end = [], 0, len(word)
            while k < end:
                token = word[k]
                k += 1
                if token != a or k == end or word[k] != b:
                    merged.append(token)
                    continue
                k += 1
                # Of x a b y, the pairs x a and b y disappear and x ab and ab y appear.
                if merged:
                    counts[merged[-1], a] -= times
                    made.add(self._add((merged[-1], new), i))
                if k < end:
                    counts[b, word[k]] -= times
                    made.add(self._add((new, word[k]), i))
                merged.append(new)
            self.words[i] = merged
        del counts[pair]
        for pair in made:
            if counts[pair]:
                heapq.heappush(self._heap, (-counts[pair], pair))

    def _add(self, pair, i):
        """Count one more occurrence of a pair in word ``i``, and return the pair."""
        if pair in self.counts:
            self.counts[pair] += self._times[i]
            self._places[pair].append(i)
        else:
            self.counts[pair], self._places[pair] = self._times[i], [i]
        return pair
