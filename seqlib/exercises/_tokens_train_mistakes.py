"""The known mistakes in the training of byte pair encoding."""

from seqlib.exercises._tokens_merge import merged_once
from seqlib.exercises._tokens_pairs import counts_of_pairs
from seqlib.exercises.record import Misconception


def across_words(words, times, n_merges):
    """Learn in one list of all words."""
    text = "".join(word * n for word, n in zip(words, times, strict=True))
    tokens, merges = list(text.encode()), []
    while len(merges) < n_merges and len(tokens) > 1:
        counts = counts_of_pairs([tokens], [1])
        pair = min(counts, key=lambda p: (-counts[p], p))
        tokens = merged_once(tokens, pair, 256 + len(merges))
        merges.append(pair)
    return merges


MISCONCEPTIONS = (
    Misconception(
        "tie_first_met",
        "Of equally frequent pairs the one that is met first in the words is merged.",
        "tokens#ties",
        "karpathy/minbpe#93",
    ),
    Misconception(
        "tie_last_met",
        "Of equally frequent pairs the one that is met last in the words is merged.",
        "tokens#ties",
        "our own: a comparison with >= in a loop over the pairs",
    ),
    Misconception(
        "tie_second_ignored",
        "Of equally frequent pairs only the first ids are compared; where these are equal, the "
        "pair that is met first is merged.",
        "tokens#ties",
        "our own: the key (-count, pair[0])",
    ),
    Misconception(
        "tie_largest",
        "Of equally frequent pairs the largest one is merged.",
        "tokens#ties",
        "CS336 assignment 1, changelog 0.1.5: the rule of another course",
    ),
    Misconception(
        "tie_by_bytes",
        "Equally frequent pairs are compared by the bytes of their tokens, not by their ids.",
        "tokens#ties",
        "our own: the rule of the library of this book, whose tokens are bytes",
    ),
    Misconception(
        "times_ignored",
        "Every listed word counts once, however often it occurs.",
        "tokens#training",
        "our own: `times` never read",
    ),
    Misconception(
        "once_per_word",
        "A pair counts once for each word that has it, not once for each place where it "
        "stands.",
        "tokens#pair-counts",
        "our own: a set of the pairs of a word",
    ),
    Misconception(
        "overlaps_left_out",
        "In a run such as a, a, a a pair that begins inside of the one before is not counted.",
        "tokens#pair-counts",
        "our own: what Python's str.count does",
    ),
    Misconception(
        "across_words",
        "Pairs cross from the end of a word to the beginning of the next.",
        "tokens#training",
        "our own: all words put into one list",
        function=across_words,
    ),
    Misconception(
        "characters",
        "The words are taken as characters with their code points, not as bytes of UTF-8.",
        "tokens#bytes",
        "our own: ord in place of encode",
    ),
    Misconception(
        "counted_once",
        "The pairs are counted at the beginning only, so no merge contains a merged token.",
        "tokens#training",
        "our own: the most frequent pairs of one count",
    ),
    Misconception(
        "stale_counts",
        "After a merge the new pairs are counted, but the pairs that it destroyed keep their "
        "old counts.",
        "tokens#training",
        "rohitg00/ai-engineering-from-scratch#47",
    ),
    Misconception(
        "stops_at_one",
        "Learning stops when the most frequent pair occurs only once.",
        "tokens#training",
        "our own: a rule of other tokenizers, which is not in this text",
    ),
    Misconception(
        "from_the_right",
        "A run is merged from its right end: a, a, a becomes a and the new token.",
        "tokens#merging",
        "our own: a loop from the last token to the first, to delete safely",
    ),
    Misconception(
        "first_place_only",
        "In every word only the first place where the pair stands is merged.",
        "tokens#merging",
        "our own: list.index and one replacement",
    ),
    Misconception(
        "ids_from_257",
        "The first merge makes token 257, not 256.",
        "tokens#training",
        "our own: merges counted from 1",
    ),
    Misconception(
        "last_listed",
        "Of a word that is listed twice only the last entry counts.",
        "tokens#training",
        "umran666/UniqToken#8",
    ),
)
