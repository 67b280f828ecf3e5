"""Task: encode a text with learned merges."""

from itertools import pairwise

from seqlib.exercises import _tokens_train
from seqlib.exercises._tokens_merge import merged_once, wrong_merge
from seqlib.exercises._tokens_pairs import counts_of_pairs
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(text, merges):
    """Return the tokens of a text; merge k makes token 256 + k."""
    ids = list(text.encode())
    for k, pair in enumerate(merges):
        ids = merged_once(ids, pair, 256 + k)
    return ids


def variant(text, merges, *, wrong=frozenset()):
    """Return the tokens, with the mistakes named in ``wrong``."""
    ids = list(map(ord, text)) if "characters" in wrong else list(text.encode())
    first = 257 if "ids_from_257" in wrong else 256
    ranks = {tuple(pair): k for k, pair in enumerate(merges)}
    if "first_merge_lost" in wrong:
        ranks = {pair: k for pair, k in ranks.items() if k > 0}
    if "bytes_only" in wrong:
        ranks = {pair: k for pair, k in ranks.items() if max(pair) < 256}
    used = set()
    while found := [p for p in pairwise(ids) if p in ranks and p not in used]:
        pair = _chosen(found, ranks, wrong)
        if "first_place_only" in wrong:
            used.add(pair)
        ids = wrong_merge(ids, pair, first + ranks[pair], wrong=wrong | _once(wrong))
    return ids


def _once(wrong):
    """Merge one place at a time where the order of the places decides."""
    return {"first_place_only"} if "left_to_right" in wrong else set()


def _chosen(found, ranks, wrong):
    """Choose among the pairs that are there, in the order of their places."""
    if "left_to_right" in wrong:
        return found[0]
    if "last_learned_first" in wrong:
        return max(found, key=ranks.get)
    if "most_frequent_first" in wrong:
        return max(found, key=lambda pair: (found.count(pair), -ranks[pair]))
    if "smallest_pair_first" in wrong:
        return min(found)
    return min(found, key=ranks.get)


def longest_token(text, merges):
    """Take the longest token of the vocabulary that fits, again and again from the left."""
    data, vocabulary = text.encode(), [bytes([byte]) for byte in range(256)]
    for a, b in merges:
        vocabulary.append(vocabulary[a] + vocabulary[b])
    ids = []
    while data:
        fitting = [i for i, token in enumerate(vocabulary) if data.startswith(token)]
        ids.append(max(fitting, key=lambda i: len(vocabulary[i])))
        data = data[len(vocabulary[ids[-1]]) :]
    return ids


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_told_apart(rng, "abc", 10, 41), label="41 letters, 10 merges"),
        Case(_told_apart(rng, "abc", 13, 47), label="47 letters, 13 merges"),
        Case(_renamed(rng, "abc", [(1, 2), (0, 1)], "abcab"), label="5 letters, 2 merges"),
        Case(_drawn(rng, "éñüß", 6, 10), label="10 letters of two bytes", tag="unicode"),
        Case(_drawn(rng, "日本語", 7, 8), label="8 characters of three bytes", tag="unicode"),
        Case(
            _drawn(rng, ("e\u0301", "n\u0303", "u\u0308"), 4, 6),
            label="6 letters, each with an accent that is a character of its own",
            tag="unicode",
        ),
        Case(
            _renamed(rng, "ab", [(0, 0), (256, 1)], "aaabaaaaab"),
            label="runs of three and five letters, the first merge joins two of them",
            tag="runs",
        ),
        Case(("", [(97, 98)]), label="an empty text", tag="edge"),
        Case(("q", [(97, 98)]), label="one letter", tag="edge"),
        Case(("no", []), label="no merges", tag="edge"),
        Case((" Q\n", [(97, 98)]), label="white space at both ends", tag="edge"),
        Case(
            (_word(rng, "abc", 5), [(120, 121), (256, 122)]), label="no pair fits", tag="edge"
        ),
    ]


# Those that are right most often, first; two have criteria of their own.
_RIGHT_BY_CHANCE = (
    "smallest_pair_first",
    "most_frequent_first",
    "left_to_right",
    "last_learned_first",
    "bytes_only",
    "first_place_only",
    "first_merge_lost",
)


def _told_apart(rng, letters, n_merges, length):
    """Draw merges and a text on which every mistake gives tokens of its own."""
    while True:
        text, merges = _drawn(rng, letters, n_merges, length)
        outputs = {tuple(reference(text, merges)), tuple(longest_token(text, merges))}
        for number, name in enumerate(_RIGHT_BY_CHANCE, start=3):
            outputs.add(tuple(variant(text, merges, wrong={name})))
            if len(outputs) < number:
                break
        else:
            return text, merges


def _drawn(rng, letters, n_merges, length):
    words = [_word(rng, letters, 6) for _ in range(4)]
    merges = _tokens_train.reference(words, [1, 2, 3, 4], n_merges)
    return _word(rng, letters, length), _shuffled(rng, merges)


def _shuffled(rng, merges):
    """Put merges into another order, in which each still stands behind those it needs.

    Any such order is legal, and the first merge need not be that of the most frequent pair.
    """
    left, order, number = list(range(len(merges))), [], {}
    while left:
        ready = [k for k in left if all(t < 256 or t - 256 in number for t in merges[k])]
        k = ready[rng.integers(len(ready))]
        left.remove(k)
        number[k] = len(order)
        order.append(k)
    return [tuple(t if t < 256 else 256 + number[t - 256] for t in merges[k]) for k in order]


def _word(rng, letters, length):
    """Draw letters of which none follows itself."""
    word = [str(rng.choice(list(letters)))]
    while len(word) < length:
        word.append(str(rng.choice([c for c in letters if c != word[-1]])))
    return "".join(word)


def _renamed(rng, letters, merges, text):
    """Write a text and its merges, (0, 1) for the first two letters, in other letters."""
    other = [chr(97 + i) for i in rng.permutation(26)[: len(letters)]]
    text = text.translate(dict(zip(map(ord, letters), other, strict=True)))
    return text, [tuple(t if t > 255 else ord(other[t]) for t in pair) for pair in merges]


MISCONCEPTIONS = (
    Misconception(
        "left_to_right",
        "Pairs are merged as they are met from the left, whichever was learned first.",
        "tokens#encoding",
        "rasbt/LLMs-from-scratch#558",
    ),
    Misconception(
        "longest_token",
        "From the left the longest token of the vocabulary that fits is taken.",
        "tokens#encoding",
        "our own: the rule of WordPiece",
        function=longest_token,
    ),
    Misconception(
        "last_learned_first",
        "Of the pairs that are there the one learned last is merged first.",
        "tokens#encoding",
        "our own: max in place of min",
    ),
    Misconception(
        "most_frequent_first",
        "Of the pairs that are there the one most frequent in this text is merged first.",
        "tokens#encoding",
        "our own: the loop of training used for encoding",
    ),
    Misconception(
        "smallest_pair_first",
        "Of the pairs that are there the one with the smallest ids is merged first.",
        "tokens#encoding",
        "our own: the tie rule of training used for encoding",
    ),
    Misconception(
        "first_merge_lost",
        "The first merge is never done: its rank is 0, which counts as False.",
        "tokens#encoding",
        "our own: if ranks.get(pair), where `is not None` is meant",
    ),
    Misconception(
        "first_place_only",
        "Every pair is merged in one place only, the first.",
        "tokens#merging",
        "our own: list.index and one replacement",
    ),
    Misconception(
        "bytes_only",
        "Pairs of bytes are merged, pairs with a merged token are not.",
        "tokens#encoding",
        "our own: the pairs of the text taken once, before any merge",
    ),
    Misconception(
        "characters",
        "The text is taken as characters with their code points, not as bytes of UTF-8.",
        "tokens#bytes",
        "our own: ord in place of encode",
    ),
    Misconception(
        "from_the_right",
        "A run is merged from its right end: a, a, a becomes a and the new token.",
        "tokens#merging",
        "our own: a loop from the last token to the first, to delete safely",
    ),
    Misconception(
        "ids_from_257",
        "The first merge makes token 257, not 256.",
        "tokens#encoding",
        "our own: merges counted from 1",
    ),
)

TASK = Task(
    id="tokens.encode",
    title="Encoding",
    signature="(text, merges)",
    equations=(),
    page="tokens#encoding",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="text",
    criteria=(
        Criterion("values", 8, "tokens of ASCII letters"),
        Criterion("unicode", 3, "letters of two and three bytes", tag="unicode"),
        Criterion("runs", 2, "runs of equal letters", tag="runs"),
        Criterion("edge", 2, "empty text, white space, no merge that fits", tag="edge"),
    ),
    misconceptions=MISCONCEPTIONS,
    options={
        "axes": ("token",),
        "forward": {"count_pairs": counts_of_pairs, "merge_pair": merged_once},
    },
    shortcuts=(
        "seqlib.text.naive.bpe_encode",
        "seqlib.text.merging.merge_bytes",
        "seqlib.text.bpe.BPETokenizer",
    ),
    version=2,
)
