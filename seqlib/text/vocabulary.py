"""The two ways in which a vocabulary says what to merge: by pairs, or by ranks."""

from seqlib.text.merging import merge_bytes

__all__ = ["Vocabulary", "from_merges", "from_ranks"]

_BYTES = [bytes([byte]) for byte in range(256)]


class Vocabulary:
    """Tokens by number, the 256 bytes first, and what is merged to get the others.

    Parameters
    ----------
    tokens : list of bytes
        Token n consists of the bytes ``tokens[n]``; a lower number is merged earlier.
    pairs : dict of tuple of int to int
        The token that each pair makes.
    whole : dict of bytes to int
        Pieces of text that are one token as they stand.
    """

    def __init__(self, tokens, pairs, whole):
        self.tokens, self.pairs, self.whole = tokens, pairs, whole

    def encode(self, chunk):
        """Return the tokens of one piece of text in bytes, by number."""
        token = self.whole.get(chunk)
        return merge_bytes(chunk, self.pairs) if token is None else [token]


def from_merges(merges):
    """Make the vocabulary of merges as training learns them: a pair is merged, nothing else.

    Parameters
    ----------
    merges : sequence of (bytes, bytes)
        Pairs of tokens in the order in which they were learned.

    Returns
    -------
    Vocabulary
        The vocabulary.

    Raises
    ------
    ValueError
        If a merge needs a token that no earlier merge makes, or makes one that is there.
    """
    tokens, pairs = list(_BYTES), {}
    number = {token: n for n, token in enumerate(tokens)}
    for rank, merge in enumerate(merges):
        left, right = merge
        missing = [token for token in merge if token not in number]
        if missing:
            raise ValueError(
                f"merges must join tokens that are there, got {left!r} + {right!r} at place "
                f"{rank}, before a merge that makes {missing[0]!r}"
            )
        if left + right in number:
            raise ValueError(
                f"merges must make new tokens, got {left!r} + {right!r} at place {rank}, "
                "whose result is there already"
            )
        pairs[number[left], number[right]] = number[left + right] = len(tokens)
        tokens.append(left + right)
    return Vocabulary(tokens, pairs, {})


def from_ranks(tokens):
    """Make the vocabulary of ranked tokens, with the rule of tiktoken.

    Whatever two neighbours join to a token are merged, the token of the lowest rank first,
    and a piece of text that is a token is not cut at all. For tokens that training has made
    both rules give the same; for others, such as tokens added by hand, they may not.

    Parameters
    ----------
    tokens : sequence of bytes
        The tokens of two bytes or more, by rank.

    Returns
    -------
    Vocabulary
        The vocabulary.
    """
    tokens = [*_BYTES, *tokens]
    number = {token: n for n, token in enumerate(tokens)}
    pairs = {}
    for n, token in enumerate(tokens):
        for cut in range(1, len(token)):
            left, right = number.get(token[:cut]), number.get(token[cut:])
            if left is not None and right is not None:
                pairs[left, right] = n
    return Vocabulary(tokens, pairs, number)
