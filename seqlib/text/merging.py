"""Encoding one piece of text with learned merges.

Tokens are numbers here: first the 256 bytes, then the results of the merges in the order of
learning, so of two pairs the one that makes the smaller number is merged first.
"""

import heapq
from itertools import pairwise, repeat

__all__ = ["merge_bytes"]

_LONG = 100  # bytes from which the heap is faster
_NOTHING = 1 << 62  # more than any token


def merge_bytes(chunk, pairs):
    """Merge the pairs of a piece of text, the one learned first before all others.

    Same result as :func:`seqlib.text.bpe_encode`, which goes through the piece once for each
    merge that there is.

    Parameters
    ----------
    chunk : bytes
        The piece.
    pairs : dict of tuple of int to int
        The token that each pair makes.

    Returns
    -------
    list of int
        The tokens.
    """
    return merge_short(chunk, pairs) if len(chunk) < _LONG else merge_long(chunk, pairs)


def merge_short(chunk, pairs):
    """Merge with a list of what each pair makes; its smallest entry is the next merge."""
    tokens, made_by, nothing = list(chunk), pairs.get, _NOTHING
    made = list(map(made_by, pairwise(tokens), repeat(nothing)))
    while made and (new := min(made)) != nothing:
        i = made.index(new)
        tokens[i] = new
        del tokens[i + 1], made[i]
        if i < len(made):
            made[i] = made_by((new, tokens[i + 1]), nothing)
        if i:
            made[i - 1] = made_by((tokens[i - 1], new), nothing)
    return tokens


def merge_long(chunk, pairs):
    """Merge with a heap, in time n log n for n bytes.

    The heap holds the pairs that can be merged, by the token that they make and then by
    place. A token that was merged into its left neighbour leaves the chain of neighbours.
    """
    tokens, made_by = list(chunk), pairs.get
    end = len(tokens)
    following, before = list(range(1, end + 1)), list(range(-1, end - 1))
    made = enumerate(map(made_by, pairwise(tokens)))
    heap = [(new, i) for i, new in made if new is not None]
    heapq.heapify(heap)
    while heap:
        new, i = heapq.heappop(heap)
        j = following[i]
        # Since this pair was listed, one of its tokens may have become part of another.
        if j == end or made_by((tokens[i], tokens[j])) != new:
            continue
        tokens[i], tokens[j] = new, None
        following[i] = right = following[j]
        if right < end:
            before[right] = i
            if (longer := made_by((new, tokens[right]))) is not None:
                heapq.heappush(heap, (longer, i))
        left = before[i]
        if left >= 0 and (longer := made_by((tokens[left], new))) is not None:
            heapq.heappush(heap, (longer, left))
    return [token for token in tokens if token is not None]
