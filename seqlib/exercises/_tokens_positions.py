"""Task: sinusoidal position vectors, for sequences that begin at different positions."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance


def reference(T, d, offsets, base):
    """Return position vectors of shape (B, T, d): sine and cosine side by side."""
    column = np.arange(d)
    position = offsets[:, None] + np.arange(T)
    angle = position[..., None] * float(base) ** (-2 * (column // 2) / d)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def variant(T, d, offsets, base, *, wrong=frozenset()):
    """Return the position vectors, with the mistakes named in ``wrong``."""
    position = _positions(T, offsets, wrong)
    column = np.arange(d)
    base = 10000.0 if "base_ignored" in wrong else float(base)
    sign = 1 if "exponent_positive" in wrong else -1
    angle = position[..., None] * base ** (sign * _exponents(column, d, wrong))
    sine = column % 2 == 0
    if "halves" in wrong:  # all sines in front, then all cosines
        order = np.argsort(column % 2, kind="stable")
        angle, sine = angle[..., order], sine[order]
    if "cosine_first" in wrong:
        sine = ~sine
    P = np.where(sine, np.sin(angle), np.cos(angle))
    if "last_column_zero" in wrong and d % 2 == 1:
        P[..., -1] = 0
    return P


def _positions(T, offsets, wrong):
    if "offset_ignored" in wrong:
        offsets = np.zeros_like(offsets)
    if "one_offset_for_all" in wrong:
        offsets = np.full_like(offsets, offsets[0])
    if "offset_subtracted" in wrong:
        offsets = -offsets
    position = offsets[:, None] + np.arange(T) + ("from_one" in wrong)
    return np.maximum(position, 0) if "no_negative_positions" in wrong else position


def _exponents(column, d, wrong):
    """Return the exponent of each column's frequency, without its sign."""
    width = d
    if d % 2 == 1 and "odd_width_rounded" in wrong:
        width = d + 1
    k = column // 2
    # The published loop steps by two over the columns; i is the even column.
    i = column if "cosine_own_frequency" in wrong else 2 * k
    exponent = i
    if "index_doubled" in wrong:
        exponent = 2 * i
    elif "index_halved" in wrong:
        exponent = i / 2
    if "reaches_base" in wrong:
        return exponent / max(2 * ((d + 1) // 2 - 1), 1)
    return exponent / width


def cases(rng):
    """Draw inputs for one run."""
    zero, base = np.zeros(1, int), 10000.0
    three = rng.permutation([-3, 2, 5]) + np.array([0, 0, int(rng.integers(3))])
    return [
        Case((7, 4, zero, base), label="T=7, d=4, offset 0"),
        Case((5, 8, zero, base), label="T=5, d=8, offset 0"),
        Case((3, 6, zero, base), label="T=3, d=6, offset 0"),
        Case(
            (5, 6, three, base), label="T=5, d=6, three offsets, one of them -3", tag="offset"
        ),
        Case(
            (1, 4, rng.permutation(300)[:2] + 1, base),
            label="one new token behind two caches, d=4",
            tag="offset",
        ),
        Case((7, 5, zero, base), label="T=7, d=5", tag="odd"),
        Case((5, 3, zero, base), label="T=5, d=3", tag="odd"),
        Case((4, 1, zero, base), label="T=4, d=1", tag="odd"),
        Case(
            (7, 6, zero, float(rng.integers(20, 200))),
            label="T=7, d=6, a base between 20 and 200",
            tag="other_base",
        ),
    ]


TASK = Task(
    id="tokens.sinusoidal_positions",
    title="Sinusoidal positions",
    signature="(T, d, offsets, base)",
    equations=("eq-16",),
    page="positions#sinusoidal",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 4, "position vectors from position 0 on, even d"),
        Criterion("offset", 3, "offsets, one for each sequence", tag="offset"),
        Criterion("odd", 2, "odd d", tag="odd"),
        Criterion("base", 1, "another base", tag="other_base"),
    ),
    misconceptions=(
        Misconception(
            "cosine_own_frequency",
            "A cosine column has a frequency of its own, computed from its own number.",
            "positions#frequencies",
            "SamLynnEvans/Transformer#25",
        ),
        Misconception(
            "index_doubled",
            "The exponent grows twice as fast as it should from pair to pair.",
            "positions#frequencies",
            "SamLynnEvans/Transformer#25",
        ),
        Misconception(
            "index_halved",
            "The exponent grows half as fast as it should from pair to pair.",
            "positions#frequencies",
            "our own: k / d for pair k",
        ),
        Misconception(
            "reaches_base",
            "The frequencies are spread so that the last pair has exactly 1 / base.",
            "positions#frequencies",
            "our own: the spacing of the library tensor2tensor",
        ),
        Misconception(
            "halves",
            "All sines come first and all cosines behind them; they should alternate.",
            "positions#interleaving",
            "our own: np.concatenate of the two",
        ),
        Misconception(
            "cosine_first",
            "Sine and cosine are exchanged.",
            "positions#interleaving",
            "our own: cosines in the even columns",
        ),
        Misconception(
            "from_one",
            "The first position is 1 more than its offset.",
            "positions#offset",
            "our own: positions counted from 1",
        ),
        Misconception(
            "offset_ignored",
            "Every sequence begins at position 0, whatever its offset.",
            "positions#offset",
            "our own: `offsets` never read",
        ),
        Misconception(
            "one_offset_for_all",
            "All sequences have the offset of the first one.",
            "positions#left-padding",
            "our own: one vector of positions shared by the batch",
        ),
        Misconception(
            "offset_subtracted",
            "The offset is subtracted from the positions.",
            "positions#offset",
            "our own: the offset read as a number of padded tokens",
        ),
        Misconception(
            "no_negative_positions",
            "Negative positions are set to 0.",
            "positions#left-padding",
            "our own: positions clipped, as those of a learned table must be",
        ),
        Misconception(
            "odd_width_rounded",
            "For an odd d the frequencies are those of the width d + 1.",
            "positions#odd-width",
            "our own: one column more computed, and cut off",
        ),
        Misconception(
            "last_column_zero",
            "For an odd d the last column is 0.",
            "positions#odd-width",
            "our own: pairs filled in, and the rest of np.zeros left",
        ),
        Misconception(
            "base_ignored",
            "The base is 10000, whatever the argument says.",
            "positions#frequencies",
            "our own: a number written into the formula",
        ),
        Misconception(
            "exponent_positive",
            "The minus sign of the exponent is missing: the frequencies grow from pair to "
            "pair.",
            "positions#frequencies",
            "our own: a product with the power where a quotient is meant",
        ),
    ),
    options={"axes": ("sequence", "time step", "feature")},
    # Angles up to 300 in float32 have errors near 300 * 6e-8 = 2e-5.
    tolerance=Tolerance(atol32=1e-4),
    shortcuts=("seqlib.np.positions.sinusoidal_positions",),
)
