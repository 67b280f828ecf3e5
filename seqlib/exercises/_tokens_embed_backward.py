"""Task: the gradient of the embedding matrix, where tokens occur more than once."""

import numpy as np

from seqlib.exercises import _tokens_embed
from seqlib.exercises._tokens_embed import PAD_MISTAKES, drawn, padding
from seqlib.exercises.properties import gradient_matches
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(dX, ids, E, pad):
    """Return dE: for every token the sum of dX where it occurs, padding left out."""
    kept = ids != pad
    dE = np.zeros(E.shape, dX.dtype)
    np.add.at(dE, ids[kept], dX[kept])
    return dE


def variant(dX, ids, E, pad, *, wrong=frozenset()):
    """Return dE, with the mistakes named in ``wrong``."""
    V, d = E.shape
    kept = ~padding(ids, pad, wrong)
    if "counted_from_one" in wrong:
        ids = ids - 1
    ids = np.where(kept, ids % V, V)  # padding goes to a row that is cut off
    dE, count = np.zeros((V + 1, d), dX.dtype), np.bincount(ids.ravel(), minlength=V + 1)
    for rows in _added_at_once(ids, wrong):
        # Of equal ids that are added at once the last one counts.
        dE[ids.ravel()[rows]] += dX.reshape(-1, d)[rows]
    if "mean_of_occurrences" in wrong:
        dE = dE / np.maximum(count, 1)[:, None]
    if "divided_by_tokens" in wrong:
        dE = dE / ids.size
    dE = dE[:V]
    if "row_pad_zeroed" in wrong:
        dE[pad] = 0
    if "only_rows_that_occur" in wrong:
        dE = dE[count[:V] > 0]
    return dE.T if "transposed" in wrong else dE


def _added_at_once(ids, wrong):
    """List the places, counted in the flat array, that the code adds in one assignment."""
    places = np.arange(ids.size)
    if "last_one_only" in wrong:
        return [places]
    if "first_one_only" in wrong:
        return [places[::-1]]
    if ids.ndim > 1 and "lost_within_rows" in wrong:
        return list(places.reshape(-1, ids.shape[-1]))
    if ids.ndim > 1 and "lost_across_rows" in wrong:
        return list(places.reshape(-1, ids.shape[-1]).T)
    return list(places[:, None])


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_distinct(rng, 5, 11, 3), label="5 different ids, V=11, d=3, no padding"),
        Case(_distinct(rng, 7, 13, 2), label="7 different ids, V=13, d=2, no padding"),
        Case(_args(rng, (17,), 5, 3, -1), label="T=17, V=5, d=3", tag="repeated"),
        Case(_args(rng, (13,), 3, 7, -100), label="T=13, V=3, d=7", tag="repeated"),
        Case(_args(rng, (17,), 7, 3, 4), label="T=17, V=7, d=3, pad=4", tag="pad"),
        Case(_args(rng, (13,), 5, 2, 0), label="T=13, V=5, d=2, pad=0", tag="pad"),
        Case(_args(rng, (5, 11), 7, 3, -1), label="shape (5, 11), V=7, d=3", tag="shape"),
        Case(_args(rng, (3, 2, 11), 5, 7, -1), label="shape (3, 2, 11), V=5, d=7", tag="shape"),
        Case(_args(rng, (), 5, 3, -1), label="one id without an axis", tag="shape"),
    ]


def _distinct(rng, T, V, d):
    ids = rng.permutation(V)[:T]
    ids[ids == 0] = V - 1 if V - 1 not in ids else ids[ids == 0]
    return rng.standard_normal((T, d)), ids, rng.standard_normal((V, d)), -1


def _args(rng, shape, V, d, pad):
    """Return arguments whose ids repeat, and of which no token occurs once only."""
    ids, E, pad = drawn(rng, shape, V, d, pad)
    return rng.standard_normal((*ids.shape, d)), ids, E, pad


TASK = Task(
    id="tokens.embed_backward",
    title="Gradient of the embedding matrix",
    signature="(dX, ids, E, pad)",
    equations=("eq-embedding",),
    page="tokens#embedding-backward",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="backward",
    criteria=(
        Criterion("values", 4, "dE where every token occurs once"),
        Criterion("repeated", 6, "dE where tokens are repeated", tag="repeated"),
        Criterion("pad", 2, "pad is an id of the vocabulary", tag="pad"),
        Criterion("shape", 2, "ids of any shape", tag="shape"),
        Criterion(
            "gradient",
            1,
            "agreement with central differences",
            holds=gradient_matches(
                _tokens_embed.reference,
                lambda rng: list(drawn(rng, (3, 7), 5, 2, 3)),
                varied=(1,),
                names=("dE",),
            ),
        ),
    ),
    misconceptions=(
        Misconception(
            "last_one_only",
            "A token that occurs several times keeps the gradient of its last place only.",
            "tokens#embedding-backward",
            "our own: dE[ids] += dX, which adds once for each row",
            also=("assigned",),
        ),
        Misconception(
            "first_one_only",
            "A token that occurs several times keeps the gradient of its first place only.",
            "tokens#embedding-backward",
            "our own: np.unique with return_index",
        ),
        Misconception(
            "lost_within_rows",
            "Gradients of a token add up from sequence to sequence, but within a sequence only "
            "its last place counts.",
            "tokens#embedding-backward",
            "our own: a loop over the sequences with dE[ids[b]] += dX[b]",
        ),
        Misconception(
            "lost_across_rows",
            "Gradients of a token add up along a sequence, but where several sequences have it "
            "at one step only the last counts.",
            "tokens#embedding-backward",
            "our own: a loop over the steps with dE[ids[:, t]] += dX[:, t]",
        ),
        Misconception(
            "mean_of_occurrences",
            "The gradient of a token is the mean over its places, not their sum.",
            "tokens#embedding-backward",
            "our own: the scaling by frequency that PyTorch offers as an option",
        ),
        Misconception(
            "divided_by_tokens",
            "The gradient is divided by the number of tokens.",
            "tokens#embedding-backward",
            "our own: the mean of the loss taken a second time",
        ),
        Misconception(
            "pad_looked_up",
            "Padding sends a gradient to a row of E.",
            "tokens#embedding-backward",
            "our own: all ids added, and no word of pad",
        ),
        *PAD_MISTAKES,
        Misconception(
            "row_pad_zeroed",
            "Row `pad` of dE is set to zero; where `pad` is negative, that is the row of a "
            "token, or none.",
            "tokens#embedding-backward",
            "our own: dE[pad] = 0 at the end",
        ),
        Misconception(
            "counted_from_one",
            "The gradient is in the row before the right one, as if ids began at 1.",
            "tokens#embedding-backward",
            "our own: ids counted from 1",
        ),
        Misconception(
            "only_rows_that_occur",
            "Rows of tokens that do not occur are missing; they should be zero.",
            "tokens#embedding-backward",
            "our own: one row for each entry of np.unique",
        ),
        Misconception(
            "transposed",
            "The result is the transpose of dE.",
            "tokens#embedding-backward",
            "our own: the notes' x = E^T e read as a matrix of shape (d, V)",
        ),
    ),
    options={"axes": ("token id", "feature")},
    shortcuts=(
        "seqlib.np.tokens.embedding_backward",
        "seqlib.np.tokens.one_hot",
        "seqlib.np.tokens.embedding",
    ),
)
