"""Task: learn the merges of byte pair encoding."""

from itertools import pairwise

from seqlib.exercises._tokens_merge import merged_once, wrong_merge
from seqlib.exercises._tokens_pairs import counts_of_pairs, wrong_counts_of_pairs
from seqlib.exercises._tokens_train_mistakes import MISCONCEPTIONS
from seqlib.exercises.record import Case, Criterion, Task

_LATIN = ("né", "née", "été", "thé", "ñandú", "über", "garçon", "façade", "crème")
_CYRILLIC = ("мама", "мы", "дом", "дома", "вода", "год", "города", "нога")


def reference(words, times, n_merges):
    """Return the merged pairs in the order of learning; merge k makes token 256 + k."""
    tokens, merges = [list(word.encode()) for word in words], []
    while len(merges) < n_merges:
        counts = counts_of_pairs(tokens, times)
        if not counts:
            break
        pair = min(counts, key=lambda p: (-counts[p], p))
        new = 256 + len(merges)
        tokens = [merged_once(word, pair, new) for word in tokens]
        merges.append(pair)
    return merges


def variant(words, times, n_merges, *, wrong=frozenset()):
    """Return the merges, with the mistakes named in ``wrong``."""
    if "last_listed" in wrong:
        words, times = zip(*dict(zip(words, times, strict=True)).items(), strict=True)
    code = (lambda w: list(map(ord, w))) if "characters" in wrong else (lambda w: [*w.encode()])
    tokens, merges = [code(word) for word in words], []
    counts = wrong_counts_of_pairs(tokens, times, wrong=wrong)
    spelled = {}
    while len(merges) < n_merges and counts:
        pair = _best(counts, spelled, wrong)
        if "stops_at_one" in wrong and counts[pair] < 2:
            break
        new = 256 + len(merges) + ("ids_from_257" in wrong)
        spelled[new] = sum((spelled.get(token, (token,)) for token in pair), ())
        merges.append(pair)
        tokens = [wrong_merge(word, pair, new, wrong=wrong) for word in tokens]
        recount = wrong_counts_of_pairs(tokens, times, wrong=wrong)
        counts = _counts_after(counts, recount, pair, new, wrong)
    return merges


def _counts_after(counts, recount, pair, new, wrong):
    """Return the counts for the next merge."""
    if not wrong & {"counted_once", "stale_counts"}:
        return recount
    kept = {p: n for p, n in counts.items() if p != pair}
    if "stale_counts" in wrong:
        kept |= {p: n for p, n in recount.items() if new in p}
    return kept


def _best(counts, spelled, wrong):
    """Choose the pair to merge, by one of several rules for ties."""
    most = max(counts.values())
    tied = [pair for pair in counts if counts[pair] == most]
    if "tie_first_met" in wrong:
        return tied[0]
    if "tie_second_ignored" in wrong:
        return min(tied, key=lambda pair: pair[0])
    if "tie_last_met" in wrong:
        return tied[-1]
    if "tie_largest" in wrong:
        return max(tied)
    if "tie_by_bytes" in wrong:
        return min(tied, key=lambda p: [spelled.get(token, (token,)) for token in p])
    return min(tied)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_without_ties(rng, _random_words(4, 6), 5), label="4 words, 5 merges"),
        Case(_without_ties(rng, _random_words(7, 5), 7), label="7 words, 7 merges"),
        Case(_with_ties(rng), label="all pairs equally frequent, 4 merges", tag="ties"),
        Case(_with_merged_ties(rng), label="a tie with a merged token", tag="ties"),
        Case(_with_ties_of_first_ids(rng), label="ties with the same first id", tag="ties"),
        Case(
            _without_ties(rng, _chosen(_LATIN, 5), 4),
            label="5 words with accents, 4 merges",
            tag="unicode",
        ),
        Case(
            _without_ties(rng, _chosen(_CYRILLIC, 4), 4),
            label="4 Russian words, 4 merges",
            tag="unicode",
        ),
        *_runs(rng),
        Case(_listed_twice(rng), label="a word that is listed twice, 3 merges", tag="edge"),
        Case((["ab", "cd"], [1, 2], 5), label="5 merges asked for, 2 possible", tag="edge"),
        Case((["", "q", "xy"], [3, 2, 1], 3), label="an empty word, one letter", tag="edge"),
        Case((["q", ""], [4, 1], 3), label="no pair", tag="edge"),
        Case(([" Q", "x\t"], [3, 2], 3), label="words with white space", tag="edge"),
        Case((["xyz"], [3], 0), label="no merge asked for", tag="edge"),
    ]


def _random_words(count, length):
    def draw(rng):
        letters = "".join(chr(97 + i) for i in rng.permutation(26)[:5])
        words = []
        while len(words) < count:
            word = "".join(rng.choice(list(letters), length))
            # Runs of one letter have a criterion of their own.
            if word not in words and all(2 * c not in word for c in letters):
                words.append(word)
        # A pair that is twice in a word tells counts of places from counts of words.
        return [words[0] + words[0], *words[1:]] if words[0][0] != words[0][-1] else draw(rng)

    return draw


def _chosen(words, count):
    def draw(rng):
        return [str(word) for word in rng.permutation(words)[:count]]

    return draw


def _without_ties(rng, draw, n_merges):
    """Draw words and numbers until the most frequent pair is a single one at every step."""
    while True:
        words = draw(rng)
        times = [int(i) for i in 2 + rng.permutation(40)[: len(words)]]
        switches = ({"tie_largest"}, {"tie_first_met"}, {"tie_last_met"}, {"tie_by_bytes"})
        right = reference(words, times, n_merges)
        # In a tie the smallest and the largest of the pairs are different ones.
        other = [variant(words, times, n_merges, wrong=s) for s in switches]
        merged = any(token > 255 for pair in right for token in pair)
        if merged and len(right) == n_merges and all(o == right for o in other):
            return words, times, n_merges


def _with_ties(rng):
    """Return one word of different letters, so that all pairs occur equally often."""
    while True:
        word = "".join(chr(97 + i) for i in rng.permutation(26)[:6])
        met = list(pairwise(word))
        if min(met) not in (met[0], met[-1]) and max(met) not in (met[0], met[-1]):
            return [word], [int(rng.integers(2, 9))], 4


def _with_ties_of_first_ids(rng):
    """Return words of two letters that begin alike; the smallest pair is not met first."""
    first, *others = (chr(97 + i) for i in rng.permutation(26)[:5])
    i = others.index(min(others))
    others[i], others[2] = others[2], others[i]
    return [first + other for other in others], [int(rng.integers(2, 9))] * 4, 4


def _with_merged_ties(rng):
    """Return words after whose first merge the order of ids and of bytes disagree.

    The letters a < b < c < d: ab is merged first. Then (ab, d) and (c, d) are equally
    frequent; c has the smaller id, ab the smaller bytes.
    """
    a, b, c, d = (chr(97 + i) for i in sorted(rng.permutation(26)[:4]))
    n = int(rng.integers(2, 9))
    words = [a + b, a + b + d, c + d]
    return [words[i] for i in rng.permutation(3)], [n] * 3, 3


def _runs(rng):
    a, b, c = (chr(97 + i) for i in sorted(rng.permutation(26)[:3]))
    n = int(rng.integers(2, 9))
    return [
        # (a, a) is counted 6 n times, without overlaps 4 n times, and (c, b) 5 n times.
        Case(
            ([a * 4, c + b + c + b, c + b], [2 * n, 2 * n, n], 2),
            label="a run of four letters, 2 merges",
            tag="runs",
        ),
        # From the left aaab becomes (aa, a, b), so that (a, b) is left.
        Case(
            ([a * 3 + b, c + a * 3], [3 * n, n], 3),
            label="runs of three letters, 3 merges",
            tag="runs",
        ),
    ]


def _listed_twice(rng):
    """Return a word in two entries, and two others more frequent than its last one."""
    a, b, c, d, e, f = (chr(97 + i) for i in rng.permutation(26)[:6])
    n = int(rng.integers(4, 9))
    return [a + b, c + d, e + f, a + b], [2 * n, 3 * n, 2 * n - 1, n + 1 + n % 2], 3


TASK = Task(
    id="tokens.train_bpe",
    title="Learning the merges",
    signature="(words, times, n_merges)",
    equations=(),
    page="tokens#training",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="text",
    criteria=(
        Criterion("values", 8, "merges, with one most frequent pair at every step"),
        Criterion("ties", 4, "ties: pairs that are equally frequent", tag="ties"),
        Criterion("unicode", 3, "letters of two bytes", tag="unicode"),
        Criterion("runs", 3, "runs of equal letters", tag="runs"),
        Criterion(
            "edge", 2, "nothing left to merge, white space, a word listed twice", tag="edge"
        ),
    ),
    misconceptions=MISCONCEPTIONS,
    options={
        "axes": ("merge", "token"),
        "forward": {
            "count_pairs": counts_of_pairs,
            "merge_pair": merged_once,
        },
    },
    shortcuts=(
        "seqlib.text.naive.bpe_train",
        "seqlib.text.learning.learn_merges",
        "seqlib.text.learning.PairCounts",
        "seqlib.text.bpe.BPETokenizer",
    ),
    seconds=10.0,
    version=2,
)
