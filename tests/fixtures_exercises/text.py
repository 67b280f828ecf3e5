"""Kind ``text``: run-length encoding, with the table of counts."""

import itertools

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(text):
    """Return the code, ``"aab"`` as ``"2a1b"``, and how often each letter occurs."""
    return variant(text)


def variant(text, *, wrong=frozenset()):
    runs = [(letter, len(list(run))) for letter, run in itertools.groupby(text)]
    if "last_run_lost" in wrong:
        runs = runs[:-1]
    counts = {}
    for letter, length in runs:
        more = 1 if "runs_counted" in wrong else length
        counts[letter] = counts.get(letter, 0) + more
    swap = "letter_first" in wrong
    code = "".join(f"{a}{n}" if swap else f"{n}{a}" for a, n in runs)
    return code, counts


def cases(rng):
    texts = ["".join(rng.choice(list(letters), n)) for letters, n in (("ab", 23), ("xyz", 11))]
    texts += ["ö" * 12 + "é"]
    return [Case((t,), {}, f"a text of {len(t)} letters") for t in texts] + [
        Case(("",), {}, "the empty text", "empty")
    ]


TASK = Task(
    id="fixtures.run_lengths",
    title="Run-length encoding",
    signature="(text)",
    equations=(),
    page="runs",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="text",
    criteria=(
        Criterion("values", 2, "code", part=0),
        Criterion("counts", 1, "counts", part=1),
        Criterion("empty", 1, "the empty text", tag="empty"),
    ),
    misconceptions=(
        Misconception("last_run_lost", "The last run is not written.", "runs", "ours"),
        Misconception("letter_first", "The letter stands before the number.", "runs", "ours"),
        Misconception("runs_counted", "Runs are counted, not letters.", "runs", "ours"),
    ),
    options={"parts": ("the code", "the table")},
)
