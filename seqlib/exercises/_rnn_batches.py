"""Task: batches of a text whose rows continue from one batch to the next."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(ids, B, T):
    """Return inputs and targets."""
    K = (len(ids) - 1) // (B * T)
    places = K * T * np.arange(B)[:, None] + T * np.arange(K)[:, None, None]
    places = places + np.arange(T)  # (K, B, T)
    return ids[places], ids[places + 1]


def variant(ids, B, T, *, wrong=frozenset()):
    """Return inputs and targets, with the mistakes named in ``wrong``."""
    places = _places(len(ids), B, T, wrong)
    X, Y = ids[places], ids[(places + 1) % len(ids)]
    if "not_shifted" in wrong:
        Y = X
    if "shifted_twice" in wrong:
        Y = ids[(places + 2) % len(ids)]
    if "rolled_in_window" in wrong:
        Y = np.roll(X, -1, axis=-1)
    if "rolled_in_text" in wrong:
        Y = ids[(places + 1) % places.size]
    if "time_first" in wrong:
        X, Y = np.swapaxes(X, 1, 2), np.swapaxes(Y, 1, 2)
    if "rows_first" in wrong:
        X, Y = np.swapaxes(X, 0, 1), np.swapaxes(Y, 0, 1)
    return (Y, X) if "parts_exchanged" in wrong else (X, Y)


def _places(n, B, T, wrong):
    """Return where in the text each input stands, (K, B, T)."""
    K = (n - 1) // (B * T)
    if "wraps_around" in wrong:
        K = n // (B * T)
    if "shifted_twice" in wrong:
        K = (n - 2) // (B * T)
    if "windows_apart" in wrong:
        K = n // (B * (T + 1))
    if "targets_in_row" in wrong:
        K = (n // B - 1) // T
    k, b, t = np.ogrid[:K, :B, :T]
    if "windows_in_order" in wrong:
        return (k * B + b) * T + t
    if "dealt_out" in wrong:
        return (k * T + t) * B + b
    if "windows_apart" in wrong:
        return (b * K + k) * (T + 1) + t
    row = K * T
    if "longer_rows" in wrong:
        row = (n - 1) // B
    if "targets_in_row" in wrong:
        row = n // B
    return b * row + k * T + t


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case((_text(rng, 53), 3, 5), label="53 tokens, B=3, T=5"),
        Case((_text(rng, 60), 2, 7), label="60 tokens, B=2, T=7"),
        Case((_text(rng, 79), 5, 3), label="79 tokens, B=5, T=3"),
        Case((_text(rng, 31), 2, 5), label="31 = 2 * 3 * 5 + 1 tokens", tag="exact"),
        Case((_text(rng, 30), 2, 5), label="30 = 2 * 3 * 5 tokens", tag="exact"),
        Case((_text(rng, 23), 1, 7), label="B=1, T=7", tag="edge"),
        Case((_text(rng, 11), 3, 1), label="B=3, T=1", tag="edge"),
    ]


def _text(rng, n):
    """Return n different ids, so that every place of the text can be recognised."""
    return rng.permutation(100 + n)[:n]


TASK = Task(
    id="rnn.next_token_batches",
    title="Batches that continue",
    signature="(ids, B, T)",
    equations=(),
    page="sequences#batches",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 6, "inputs X", part=0),
        Criterion("targets", 6, "targets Y", part=1, needs=()),
        Criterion("exact", 2, "no token left over, or the last target missing", tag="exact"),
        Criterion("edge", 1, "one row, one step", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "not_shifted",
            "The targets are the inputs themselves, not the tokens after them.",
            "sequences#shifted-targets",
            "huggingface/transformers#27517",
        ),
        Misconception(
            "shifted_twice",
            "The targets are the tokens after the next ones.",
            "sequences#shifted-targets",
            "huggingface/transformers#44642",
        ),
        Misconception(
            "parts_exchanged",
            "Inputs and targets are exchanged: a target is the token before its input.",
            "sequences#shifted-targets",
            "our own: X and Y returned in the other order",
        ),
        Misconception(
            "rolled_in_window",
            "The last target of each window is the first input of that same window.",
            "sequences#shifted-targets",
            "hzy46/Char-RNN-TensorFlow#16",
        ),
        Misconception(
            "wraps_around",
            "The last target of the text is the first token of the text: there is one batch "
            "too many where the token after the last window is missing.",
            "sequences#shifted-targets",
            "sherjilozair/char-rnn-tensorflow#26",
        ),
        Misconception(
            "windows_in_order",
            "Neighbouring windows of the text are laid into neighbouring rows of one batch, so "
            "a row does not go on in the next batch.",
            "sequences#batches",
            "zackchase/mxnet-the-straight-dope#378",
        ),
        Misconception(
            "dealt_out",
            "Neighbouring tokens of the text are dealt out to different rows, like cards.",
            "sequences#batches",
            "pytorch/tutorials#1841",
        ),
        Misconception(
            "windows_apart",
            "Each window takes T + 1 tokens of its own, so the last target of a window is "
            "never an input, and rows skip a token from batch to batch.",
            "sequences#batches",
            "our own: a window cut first, then split into inputs and targets",
        ),
        Misconception(
            "longer_rows",
            "The text is cut into rows of (n - 1) // B tokens before the batches are cut, so "
            "the rows after the first begin too late.",
            "sequences#batches",
            "our own: the book's function keeps a shorter last batch, and cuts so",
        ),
        Misconception(
            "targets_in_row",
            "The text is cut into rows of n // B tokens, so the rows after the first begin too "
            "late.",
            "sequences#batches",
            "shirinyamani/Translation_Machine#3",
        ),
        Misconception(
            "time_first",
            "The numbers are right, but the axes are batch number, time step, row.",
            "sequences#batches",
            "pytorch/text#342",
        ),
        Misconception(
            "rows_first",
            "The numbers are right, but the axes are row, batch number, time step.",
            "sequences#batches",
            "our own: the axis of batches is not moved to the front",
        ),
        Misconception(
            "rolled_in_text",
            "The tokens that are left over are cut off before the shift, so the very last "
            "target is the first token of the text.",
            "sequences#shifted-targets",
            "our own: np.roll of the inputs, all of them in a row",
        ),
    ),
    options={"axes": ("batch", "row", "time step"), "parts": ("X", "Y")},
    shortcuts=("seqlib.data.contiguous_batches",),
)
