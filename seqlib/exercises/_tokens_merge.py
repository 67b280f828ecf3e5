"""Task: replace a pair by a new token, in one pass from the left."""

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def merged_once(ids, pair, new):
    """Return the tokens with ``new`` wherever the pair stood, from the left."""
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def wrong_merge(ids, pair, new, *, wrong=frozenset()):
    """Return the merged tokens, with the mistakes named in ``wrong``."""
    if "from_the_right" in wrong:
        backwards = _one_pass(ids[::-1], pair[::-1], new, wrong)
        return backwards[::-1]
    return _one_pass(ids, pair, new, wrong)


def _one_pass(ids, pair, new, wrong):
    if "nothing_merged" in wrong:
        return list(ids)
    pairs = [tuple(pair), tuple(pair[::-1])] if "either_order" in wrong else [tuple(pair)]
    end = len(ids) - 2 if "stops_before_the_end" in wrong else len(ids)
    merged, i, done = [], 0, False
    while i < len(ids):
        here = i < end and tuple(ids[i : i + 2]) in pairs
        if not here or (done and "first_place_only" in wrong):
            if i < len(ids) - 1 or "last_token_lost" not in wrong:
                merged.append(ids[i])
            i += 1
            continue
        done = True
        merged.append(ids[i] if "first_token_kept" in wrong else new)
        if "second_token_kept" in wrong:
            merged.append(ids[i + 1])
        steps = 1 if "one_step_forward" in wrong else 2
        i += steps
        if "next_token_lost" in wrong:
            i += 1
        elif steps == 2 and "overlaps_merged" in wrong and tuple(ids[i - 1 : i + 1]) in pairs:
            i -= 1  # the second token of this pair is the first one of the next
    return merged


def cases(rng):
    """Draw inputs for one run."""
    a, b, c = (int(i) for i in rng.permutation(200)[:3])
    d, new = 256 + int(rng.integers(20)), 300 + int(rng.integers(20))
    middle = [c, a, b, d, b, a, c, a, b, c]
    return [
        Case((middle, (a, b), new), label="ten tokens, the pair in two places"),
        Case(
            ([d, c, *middle, a, b, d, c], (a, b), new), label="the pair in three places or more"
        ),
        Case(([c, b, d, a, d, c, b, d, c, d], (d, c), new), label="a pair with a merged token"),
        Case(
            ([b, a, a, a, c, a, a, a, a, a, b], (a, a), new),
            label="runs of three and five, the pair (a, a)",
            tag="overlap",
        ),
        Case(([a, a, a], (a, a), new), label="the tokens a, a, a", tag="overlap"),
        Case(([a, b, c, d, a, b], (a, b), new), label="the pair at both ends", tag="edge"),
        Case(([b, a, c, b], (a, b), new), label="the pair does not occur", tag="edge"),
        # Written with blanks, "98 97" stands in "198 97" and "98 971" too.
        Case(
            ([198, 97, 98, 971, 98, 97], (98, 97), 1000),
            label="tokens with the same last digits",
            tag="edge",
        ),
        Case(([a], (a, a), new), label="one token", tag="edge"),
        Case(([], (a, b), new), label="no token", tag="edge"),
    ]


TASK = Task(
    id="tokens.merge_pair",
    title="One merge",
    signature="(ids, pair, new)",
    equations=(),
    page="tokens#merging",
    reference=merged_once,
    variant=wrong_merge,
    cases=cases,
    kind="text",
    criteria=(
        Criterion("values", 3, "merged tokens"),
        Criterion("overlap", 2, "runs of equal tokens, from the left", tag="overlap"),
        Criterion("edge", 2, "the pair at the ends or absent, short inputs", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "nothing_merged",
            "No pair is found: the tokens come back as they are.",
            "tokens#merging",
            "our own: ids[i:i + 2] == pair, where a list equals no tuple",
        ),
        Misconception(
            "from_the_right",
            "A run is merged from its right end: a, a, a becomes a and the new token.",
            "tokens#merging",
            "our own: a loop from the last token to the first, to delete safely",
        ),
        Misconception(
            "overlaps_merged",
            "Every place where the pair stands becomes the new token, also where two of them "
            "share a token.",
            "tokens#merging",
            "our own: places found first, without regard to what is used up",
        ),
        Misconception(
            "first_place_only",
            "Only the first place where the pair stands is merged.",
            "tokens#merging",
            "our own: list.index and one replacement",
        ),
        Misconception(
            "either_order",
            "The pair is merged in the reverse order too.",
            "tokens#merging",
            "our own: the two tokens compared as a set",
        ),
        Misconception(
            "second_token_kept",
            "The second token of the pair stays behind the new one.",
            "tokens#merging",
            "our own: the first token replaced, the second not deleted",
        ),
        Misconception(
            "one_step_forward",
            "Behind a merged pair the pass goes on with its second token, which stays or is "
            "merged once more.",
            "tokens#merging",
            "our own: one step forward where two are needed",
        ),
        Misconception(
            "first_token_kept",
            "The first token of the pair stands in the result where the new one should.",
            "tokens#merging",
            "our own: the second token deleted, the first not renamed",
        ),
        Misconception(
            "next_token_lost",
            "The token behind each merged pair is lost.",
            "tokens#merging",
            "our own: two steps forward, and one more by the loop",
        ),
        Misconception(
            "last_token_lost",
            "A last token that is in no pair is lost.",
            "tokens#merging",
            "our own: a loop over the pairs, of which there is one less than of tokens",
        ),
        Misconception(
            "stops_before_the_end",
            "A pair at the very end is not merged.",
            "tokens#merging",
            "our own: a loop that ends one step too early",
        ),
    ),
    options={"axes": ("token",)},
    shortcuts=("seqlib.text.naive.merge_pair",),
)
