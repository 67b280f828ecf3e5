"""Task: the causal mask of queries that stand behind earlier tokens, equation (15)."""

import numpy as np

from seqlib.exercises._masks_padding import FILLINGS, allowed_is_true, filled
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(n_q, n_k, past):
    """Return M of shape (n_q, n_k): query i stands at position ``past + i`` of the keys."""
    return variant(n_q, n_k, past)


def variant(n_q, n_k, past, *, wrong=frozenset()):
    """Return the mask, with the mistakes named in ``wrong``."""
    if "new_keys_alone" in wrong:
        n_k, past = n_q, 0
    i, j = np.arange(n_q)[:, None], np.arange(n_k)[None, :]
    allowed = _allowed(i, j, n_q, n_k, past, wrong)
    if "polarity" in wrong:
        allowed = ~allowed
    M = filled(allowed, wrong)
    return M.T if "transposed" in wrong else M


def _allowed(i, j, n_q, n_k, past, wrong):
    offset = past
    if "past_ignored" in wrong:
        offset = 0
    elif "past_from_sizes" in wrong:
        offset = n_k - n_q
    elif "past_subtracted" in wrong:
        offset = -past
    if "strict" in wrong:
        offset = offset - 1
    elif "one_ahead" in wrong:
        offset = offset + 1
    allowed = j >= i + offset if "wrong_triangle" in wrong else j <= i + offset
    return allowed & (j >= past) if "past_blocked" in wrong else allowed


def booleans_allowed(n_q, n_k, past):
    """Return True where query i may look at key j."""
    return variant(n_q, n_k, past) == 0


def cases(rng):
    """Draw inputs for one run: whole sequences, chunks behind a past, and free places."""
    n, m = (int(k) for k in rng.permutation([3, 5, 7])[:2])
    past, long = (int(k) for k in rng.permutation([2, 4, 6])[:2])
    free = int(rng.choice([2, 3]))

    def case(n_q, n_k, past, label, tag="base"):
        return Case((n_q, n_k, past), label=f"n_q={n_q}, n_k={n_k}, {label}", tag=tag)

    return [
        case(n, n, 0, "no past"),
        case(m, m, 0, "no past"),
        case(1, 1, 0, "no past"),
        case(n, n + past, past, f"past={past}", "past"),
        case(m, m + long, long, f"past={long}", "past"),
        case(1, 1 + past, past, f"past={past}", "past"),
        case(n, n + past + free, past, f"past={past}, {free} free places", "free"),
        case(m, m + free, 0, f"no past, {free} free places", "free"),
        case(1, 1 + long + free, long, f"past={long}, {free} free places", "free"),
    ]


TASK = Task(
    id="masks.causal_mask",
    title="Causal mask",
    signature="(n_q, n_k, past)",
    equations=("eq-13", "eq-15"),
    page="masks#causal",
    reference=reference,
    variant=variant,
    cases=cases,
    options={"axes": ("query", "key")},
    criteria=(
        Criterion("values", 4, "whole sequences, n_k = n_q"),
        Criterion("past", 4, "queries behind earlier tokens", tag="past"),
        Criterion("free", 2, "more keys than tokens", tag="free"),
    ),
    misconceptions=(
        Misconception(
            "polarity",
            "The mask blocks what it should allow and allows the future.",
            "masks#polarity",
            "rasbt/LLMs-from-scratch#1061",
        ),
        Misconception(
            "strict",
            "A query may not look at its own position.",
            "masks#causal",
            "our own: j < i in place of j <= i",
        ),
        Misconception(
            "one_ahead",
            "A query may look at the position after its own.",
            "masks#causal",
            "our own: the diagonal of np.triu taken one step too far",
        ),
        Misconception(
            "wrong_triangle",
            "The other triangle is open: a query sees its own position and those after it.",
            "masks#causal",
            "jadore801120/attention-is-all-you-need-pytorch#19",
        ),
        Misconception(
            "past_ignored",
            "Queries are counted from the first key: the tokens of the past are not in front "
            "of them.",
            "masks#offset",
            "rasbt/LLMs-from-scratch#697",
        ),
        Misconception(
            "past_from_sizes",
            "The past is computed as n_k - n_q: the free places behind the queries are taken "
            "for it.",
            "masks#offset",
            "our own: the rule of a cache without free places",
        ),
        Misconception(
            "past_subtracted",
            "The past moves the queries to the front, not to the back.",
            "masks#offset",
            "our own: the offset with the other sign",
        ),
        Misconception(
            "past_blocked",
            "The queries see one another, but the keys of the past are blocked.",
            "masks#offset",
            "QwenLM/Qwen#979",
        ),
        Misconception(
            "new_keys_alone",
            "The mask is square: it has no columns for the other keys.",
            "masks#offset",
            "rasbt/LLMs-from-scratch#697",
        ),
        Misconception(
            "transposed",
            "The mask is transposed: its rows are keys and its columns queries.",
            "masks#causal",
            "our own: rows and columns of M exchanged",
        ),
        *FILLINGS,
        allowed_is_true(booleans_allowed),
    ),
    shortcuts=("seqlib.np.masks.causal_mask",),
)
