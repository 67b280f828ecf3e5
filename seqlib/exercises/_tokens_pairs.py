"""Task: count the pairs of neighbouring tokens, overlapping ones too."""

from itertools import pairwise

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def counts_of_pairs(words, times):
    """Return how often each pair of neighbours occurs in the whole text."""
    counts = {}
    for word, n in zip(words, times, strict=True):
        for pair in pairwise(word):
            counts[pair] = counts.get(pair, 0) + n
    return counts


def wrong_counts_of_pairs(words, times, *, wrong=frozenset()):
    """Return the counts, with the mistakes named in ``wrong``."""
    occurrences = list(zip(words, times, strict=True))
    if "last_listed" in wrong:
        occurrences = list(dict(zip(map(tuple, words), times, strict=True)).items())
    counts = {}
    for word, n in occurrences:
        for pair in pairs_that_count(word, wrong):
            once = "times_ignored" in wrong or (
                "first_counts_one" in wrong and pair not in counts
            )
            before = 0 if "overwritten" in wrong else counts.get(pair, 0)
            counts[pair] = before + (1 if once else n)
    return counts


def pairs_that_count(word, wrong=frozenset()):
    """List the pairs of one word as often as they count in it."""
    pairs, counts_now = [], True
    neighbours = list(pairwise(word))
    if "last_pair_missing" in wrong:
        neighbours = neighbours[:-1]
    if "wraps_around" in wrong and word:
        neighbours.append((word[-1], word[0]))
    for i, pair in enumerate(neighbours):
        # The second of two equal pairs in a run begins inside of the first.
        overlaps = i > 0 and pair[0] == pair[1] and pair == neighbours[i - 1]
        counts_now = not (overlaps and counts_now) if "overlaps_left_out" in wrong else True
        if counts_now:
            pairs.append(tuple(sorted(pair)) if "order_ignored" in wrong else pair)
    return sorted(set(pairs)) if "once_per_word" in wrong else pairs


def joined(words, times):
    """Count in one list of all words, so that pairs cross from a word to the next."""
    text = [
        token for word, n in zip(words, times, strict=True) for _ in range(n) for token in word
    ]
    return counts_of_pairs([text], [1])


def cases(rng):
    """Draw inputs for one run."""
    a, b, c = (int(i) for i in rng.permutation(200)[:3])
    run = [[a, a, a, b], [c, a, a, a, a, a], [b, b, b, a, b, b]]
    plain = [[*word, *word] for word in (_word(rng, [a, b, c, 300], 5) for _ in range(2))]
    return [
        Case((plain, _times(rng, 2)), label="two words, no token twice in a row"),
        Case(
            ([_word(rng, [a, b, 257, 300], n) for n in (7, 2, 5)] + plain, _times(rng, 5)),
            label="five words, no token twice in a row",
        ),
        Case((run, _times(rng, 3)), label="words with runs such as a, a, a", tag="overlap"),
        Case(
            # The first word has these pairs too: its place counts, whatever is lost later.
            ([[b, c, a, b], [c, a, b, c], [a, b, a], [c, a, b, c]], _times(rng, 4)),
            label="a word that is listed twice",
            tag="twice",
        ),
        Case(
            ([[a], [], [b, a], [c]], _times(rng, 4)),
            label="words of one token and of none",
            tag="edge",
        ),
        Case(([[a], []], [3, 2]), label="no pair at all", tag="edge"),
    ]


def _word(rng, tokens, n):
    """Draw a word in which no token follows itself, not even where it is repeated."""
    word = [tokens[0], tokens[1]]
    while len(word) < n:
        others = [t for t in tokens if t != word[-1] and (len(word) < n - 1 or t != word[0])]
        word.append(int(rng.choice(others)))
    return word


def _times(rng, n):
    """Draw different numbers of occurrences, all above 1."""
    return [int(i) for i in 2 + rng.permutation(3 * n)[:n]]


TASK = Task(
    id="tokens.count_pairs",
    title="Pairs of neighbours",
    signature="(words, times)",
    equations=(),
    page="tokens#pair-counts",
    reference=counts_of_pairs,
    variant=wrong_counts_of_pairs,
    cases=cases,
    kind="text",
    criteria=(
        Criterion("values", 4, "counts of pairs"),
        Criterion("overlap", 2, "runs of equal tokens: a, a, a", tag="overlap"),
        Criterion("twice", 1, "a word that is listed twice", tag="twice"),
        Criterion("edge", 1, "words of one token, empty words", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "times_ignored",
            "Every listed word counts once, however often it occurs.",
            "tokens#pair-counts",
            "our own: `times` never read",
        ),
        Misconception(
            "first_counts_one",
            "The first place of each pair counts 1, not as often as its word occurs.",
            "tokens#pair-counts",
            "our own: counts[pair] = 1 where the pair is new",
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
            "In a run such as a, a, a a pair that begins inside of the one before is not "
            "counted.",
            "tokens#pair-counts",
            "our own: what Python's str.count does",
        ),
        Misconception(
            "order_ignored",
            "The pairs (a, b) and (b, a) are counted as one.",
            "tokens#pair-counts",
            "our own: the pair sorted before it is counted",
        ),
        Misconception(
            "last_pair_missing",
            "The last pair of every word is not counted.",
            "tokens#pair-counts",
            "our own: a loop that ends one step too early",
        ),
        Misconception(
            "wraps_around",
            "The last token of a word is paired with its first one.",
            "tokens#pair-counts",
            "our own: neighbours taken with np.roll",
        ),
        Misconception(
            "joined_words",
            "Pairs cross from the end of a word to the beginning of the next.",
            "tokens#pair-counts",
            "our own: all words put into one list",
            function=joined,
        ),
        Misconception(
            "last_listed",
            "Of a word that is listed twice only the last entry counts.",
            "tokens#pair-counts",
            "umran666/UniqToken#8",
        ),
        Misconception(
            "overwritten",
            "Every place of a pair overwrites its count, so only the last word that has the "
            "pair counts, and once.",
            "tokens#pair-counts",
            "our own: counts[pair] = n in place of +=",
        ),
    ),
    shortcuts=("seqlib.text.naive.pair_counts", "seqlib.text.learning.PairCounts"),
)
