"""Task: a leak test that the student writes, tried on right models and on models that leak."""

import numpy as np

from seqlib.exercises._masks_leak_cases import cases
from seqlib.exercises._masks_models import VOCABULARY
from seqlib.exercises.record import Criterion, Misconception, Task

MAX_CALLS = 50  # of one model; the largest ids have 3 rows of 7 tokens


def reference(model, ids, rng):
    """Return whether a logit depends on more than its own row up to its own step."""
    return variant(model, ids, rng)


def variant(model, ids, rng, *, wrong=frozenset()):
    """Look at each row alone, cut off behind each step, with the mistakes in ``wrong``."""
    ids = np.array(ids)
    B = len(ids)
    rows = [slice(b, b + 1) for b in range(1 if "first_row" in wrong else B)]
    if "rows_together" in wrong:
        rows = [slice(0, B)]
    found = _finds(model, ids, rows, wrong)
    return not found if "inverted" in wrong else found


def _finds(model, ids, rows, wrong):
    """Return whether some row changes when what it may not see does."""
    before, changed = np.asarray(model(ids)), ids.copy()
    for row in rows:
        for n in _cuts(ids.shape[1], wrong):
            changed = changed if "changes_pile_up" in wrong else ids.copy()
            after = _after(model, ids, changed, row, n, wrong)
            kept = _kept(ids.shape[1], n, wrong)
            if _differ(before[row, kept], after[:, kept], wrong):
                return True
    return False


def _cuts(T, wrong):
    if "future_untested" in wrong:
        return [T]
    if "one_cut" in wrong:
        return [max(1, T // 2)]
    if "last_token" in wrong:
        return [max(1, T - 1)]
    return range(0 if "later_outputs" in wrong else 1, T + 1)


REPLACING = ("tokens_alone", "own_output", "later_outputs", "changes_pile_up")


def _after(model, ids, changed, row, n, wrong):
    """Return the logits of some rows when everything but their first n tokens is gone."""
    if not wrong & set(REPLACING):
        return np.asarray(model(ids[row, :n]))
    own = np.zeros(ids.shape, bool)
    own[row, : n - 1 if "own_output" in wrong else n] = True
    if "later_outputs" in wrong:  # the front changes and the back stays
        own[row] = ~own[row]
    changed[~own] = (ids[~own] + 1) % VOCABULARY
    return np.asarray(model(changed))[row]


def _kept(T, n, wrong):
    """Return the steps whose logits are compared."""
    if "later_outputs" in wrong:
        return slice(n, T)
    if "first_output" in wrong:
        return slice(0, 1)
    return slice(0, n - 1 if "neighbour_left_out" in wrong and n < T else n)


def _differ(one, other, wrong):
    limit = 1e-2 if "tolerance_wide" in wrong else 0 if "exact" in wrong else 1e-6
    if one.size == 0:
        return False
    if "tokens_compared" in wrong:
        return bool((one.argmax(axis=-1) != other.argmax(axis=-1)).any())
    if "means_compared" in wrong:
        return bool(abs(one.mean(dtype=float) - other.mean(dtype=float)) > limit)
    return bool((np.abs(one - other) > limit).any())


def last_token_changed(model, ids, rng):
    """Change the last token of every row, and compare all logits in front of it."""
    before = np.asarray(model(ids))
    changed = np.array(ids)
    changed[:, -1] = (changed[:, -1] + 1) % before.shape[-1]
    after = np.asarray(model(changed))
    return bool((np.abs(before[:, :-1] - after[:, :-1]) > 1e-6).any())


def _mistake(name, says, source, also=(), function=None):
    return Misconception(name, says, "masks#leak-test", source, function, also)


TASK = Task(
    id="masks.leak_test",
    title="A leak test",
    signature="(model, ids, rng)",
    equations=("eq-15",),
    page="masks#leak-test",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="student_test",
    options={"max_calls": MAX_CALLS},
    criteria=(
        Criterion("values", 6, "right models pass, one without a mask does not"),
        Criterion("one_position", 4, "leaks by one step", tag="one_position"),
        Criterion("last_step", 3, "leaks of the last step", tag="last_step"),
        Criterion("rows", 4, "leaks between sequences", tag="rows"),
        Criterion("quiet", 2, "leaks that show little", tag="quiet"),
        Criterion("length", 1, "leaks of the length T", tag="length"),
    ),
    misconceptions=(
        _mistake(
            "inverted",
            "The answer is turned round: True for the models that do not leak.",
            "our own: the name of the function read as 'passes the leak test'",
        ),
        _mistake(
            "exact",
            "The tolerance is 0 or so narrow that rounding counts as a leak: logits of right "
            "models in float32 differ by up to 1e-6.",
            "stanford-cs336/assignment1-basics#49",
            also=("np.allclose with its own tolerances, of which one is 1e-8",),
        ),
        _mistake(
            "tolerance_wide",
            "The tolerance is so wide that small leaks pass.",
            "our own: 0.01, chosen to let rounding pass",
        ),
        _mistake(
            "own_output",
            "Every model is accused, as happens where the logits at a changed token are "
            "compared too: a token may change its own.",
            "our own: <= where < is meant",
        ),
        _mistake(
            "later_outputs",
            "The front of a sequence is changed and the logits behind it are compared: they "
            "may change.",
            "our own: past and future exchanged",
        ),
        _mistake(
            "changes_pile_up",
            "A changed token stays changed in the rounds after it, where it is in the past.",
            "our own: one array without a copy",
        ),
        _mistake(
            "neighbour_left_out",
            "The logits directly in front of a change are not compared, so that a leak from "
            "the next step is not seen.",
            "our own: a slice that ends one too early",
        ),
        _mistake(
            "first_output",
            "Only the logits of the first step are compared.",
            "our own: the first step is the one that must see nothing else",
        ),
        _mistake(
            "last_token",
            "Only the last token is taken away or changed.",
            "our own: one change, at the end",
        ),
        _mistake(
            "one_cut",
            "Only one cut is tried, in the middle of the sequence.",
            "our own: two halves stand for all steps",
        ),
        _mistake(
            "rows_together",
            "All sequences are changed in the same way at once, so that none is ever without "
            "the others.",
            "our own: ids[:, t:] for the whole batch",
        ),
        _mistake(
            "first_row",
            "Only the first sequence of the batch is tried.",
            "our own: an index 0 in place of a loop",
        ),
        _mistake(
            "future_untested",
            "Sequences are separated from each other, but never from their own future.",
            "our own: a test of the batch alone",
        ),
        _mistake(
            "tokens_alone",
            "Tokens are changed, but the number of tokens is not: a model that knows how many "
            "will follow is not found.",
            "our own: the test of the chapter, which changes tokens",
        ),
        _mistake(
            "tokens_compared",
            "The most likely tokens are compared, not the logits.",
            "our own: the test looks at what a user sees",
        ),
        _mistake(
            "means_compared",
            "The means of the logits are compared, so that changes may cancel.",
            "our own: one number for all logits",
        ),
        _mistake(
            "last_token_changed",
            "Only the last token is changed, in all sequences at once: leaks between earlier "
            "steps, between sequences and of the length stay hidden.",
            "our own: the worked example, made into a test",
            function=last_token_changed,
        ),
    ),
    seconds=5.0,
    version=2,
)
