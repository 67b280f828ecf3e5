"""Task: look up embeddings, with zeros at padding."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(ids, E, pad):
    """Return the row of E of every token, and zeros where the id is ``pad``."""
    kept = ids != pad
    return np.where(kept[..., None], E[np.where(kept, ids, 0)], 0)


def variant(ids, E, pad, *, wrong=frozenset()):
    """Return the embeddings, with the mistakes named in ``wrong``."""
    V, d = E.shape
    if "row_pad_zeroed" in wrong:
        E = np.array(E)
        E[pad] = 0
    rows = np.broadcast_to(np.arange(ids.size).reshape(ids.shape), ids.shape)
    picked = rows if "places_looked_up" in wrong else ids - ("counted_from_one" in wrong)
    X = E[picked % V]
    X = np.where(padding(ids, pad, wrong)[..., None], 0, X)
    if "scaled" in wrong:
        X = X * np.sqrt(d)
    if "features_first" in wrong:
        X = np.moveaxis(X, -1, 0)
    return X.reshape(-1, d) if "flattened" in wrong else X


def padding(ids, pad, wrong):
    """Return where the code sees padding."""
    if "pad_looked_up" in wrong:
        return np.zeros(ids.shape, bool)
    if "zero_is_padding" in wrong:
        return ids == 0
    return ids < 0 if "negative_is_padding" in wrong else ids == pad


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(drawn(rng, (11,), 7, 3, -1), label="T=11, V=7, d=3, pad=-1"),
        Case(drawn(rng, (13,), 5, 2, -100), label="T=13, V=5, d=2, pad=-100"),
        Case(drawn(rng, (17,), 7, 3, 4), label="T=17, V=7, d=3, pad=4", tag="pad"),
        Case(drawn(rng, (13,), 5, 2, 0), label="T=13, V=5, d=2, pad=0", tag="pad"),
        Case(drawn(rng, (2, 11), 7, 3, -1), label="shape (2, 11)", tag="shape"),
        Case(drawn(rng, (3, 2, 5), 7, 4, 6), label="shape (3, 2, 5)", tag="shape"),
        Case(drawn(rng, (), 5, 3, -1), label="one id without an axis", tag="shape"),
        Case(drawn(rng, (7,), 2, 1, -1), label="V=2, d=1", tag="shape"),
    ]


def drawn(rng, shape, V, d, pad):
    """Return ids in which all V tokens occur if there is room, a fifth of them padding."""
    count = int(np.prod(shape, dtype=int))
    ids = np.concatenate([np.arange(V), rng.integers(V, size=max(0, count - V))])[-count:]
    if count > 1:
        ids[-(count // 5) :] = pad
    return rng.permutation(ids).reshape(shape), rng.standard_normal((V, d)), pad


PAD_MISTAKES = (
    Misconception(
        "zero_is_padding",
        "Token 0 is taken for padding, whatever `pad` is.",
        "tokens#embedding",
        "neuralmagic/deepsparse#1141",
    ),
    Misconception(
        "negative_is_padding",
        "Only negative ids are taken for padding.",
        "tokens#embedding",
        "our own: written for pad = -1",
    ),
)

TASK = Task(
    id="tokens.embed",
    title="Embedding lookup",
    signature="(ids, E, pad)",
    equations=("eq-embedding",),
    page="tokens#embedding",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 3, "embeddings"),
        Criterion("pad", 1, "pad is an id of the vocabulary", tag="pad"),
        Criterion("shape", 1, "ids of any shape", tag="shape"),
    ),
    misconceptions=(
        Misconception(
            "pad_looked_up",
            "Padding is looked up like any token; a negative id takes a row from the end.",
            "tokens#embedding",
            "our own: E[ids], and no word of pad",
        ),
        *PAD_MISTAKES,
        Misconception(
            "row_pad_zeroed",
            "Row `pad` of E is set to zero; where `pad` is negative, that is the row of a "
            "token, or none.",
            "tokens#embedding",
            "our own: E[pad] = 0 before the lookup",
        ),
        Misconception(
            "counted_from_one",
            "The row before the right one is taken, as if ids began at 1.",
            "tokens#embedding",
            "our own: ids counted from 1",
        ),
        Misconception(
            "places_looked_up",
            "The place of a token in the sequence is looked up, not its id.",
            "tokens#embedding",
            "our own: the table of positions taken for that of tokens",
        ),
        Misconception(
            "scaled",
            "The embeddings are multiplied by the root of d.",
            "tokens#embedding",
            "our own: a step of the original Transformer, which is not in this text",
        ),
        Misconception(
            "features_first",
            "The features are the first axis of the result, not the last.",
            "tokens#embedding",
            "our own: columns of E.T, as the notes write vectors",
        ),
        Misconception(
            "flattened",
            "The result has one axis of tokens, whatever the shape of ids.",
            "tokens#embedding",
            "our own: ids.ravel() and no reshape back",
        ),
    ),
    options={"axes": ("token", "feature")},
    shortcuts=("seqlib.np.tokens.embedding", "seqlib.np.tokens.one_hot"),
)
