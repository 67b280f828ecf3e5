"""Task: count the parameters of an LSTM and of a GRU as the notes write them."""

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(D, H):
    """Return the number of parameters of an LSTM and of a GRU."""
    return 4 * (H * (H + D) + H), 3 * H * (H + D)


def count_variant(D, H, *, wrong=frozenset()):
    """Return the counts, with the mistakes named in ``wrong``."""
    width = H + D
    if "input_alone" in wrong:
        width = D
    if "state_alone" in wrong:
        width = H
    blocks = (3, 2) if "gates_alone" in wrong else (4, 3)
    biases = 2 * H if "two_biases" in wrong else H
    lstm_biases = 0 if "no_biases" in wrong else biases
    gru_biases = biases if "gru_biases" in wrong else 0
    lstm, gru = blocks[0] * (H * width + lstm_biases), blocks[1] * (H * width + gru_biases)
    if "one_bias_number" in wrong:
        lstm = blocks[0] * (H * width + 1)
    return (gru, lstm) if "parts_exchanged" in wrong else (lstm, gru)


def cases(rng):
    """Draw inputs for one run: two different primes, so that no two products agree."""
    primes = [3, 5, 7, 11, 13, 17, 19, 23]
    draws = [tuple(int(p) for p in rng.permutation(primes)[:2]) for _ in range(3)]
    return [Case((D, H), label=f"D={D}, H={H}") for D, H in [*draws, (3, 4), (1, 1)]]


TASK = Task(
    id="gates.count_parameters",
    title="Count the parameters",
    signature="(D, H)",
    equations=(),
    page="gru#parameters",
    reference=reference,
    variant=count_variant,
    cases=cases,
    options={"parts": ("the count of the LSTM", "the count of the GRU")},
    criteria=(
        Criterion("values", 3, "LSTM", part=0),
        Criterion("gru", 2, "GRU", part=1, needs=()),
    ),
    misconceptions=(
        Misconception(
            "gru_biases",
            "Biases are counted for the GRU; as the notes write it, it has none.",
            "gru#parameters",
            "our own: PyTorch's GRU has biases",
        ),
        Misconception(
            "no_biases",
            "The biases of the LSTM are not counted.",
            "lstm#parameters",
            "our own: the matrices alone",
        ),
        Misconception(
            "two_biases",
            "Two biases are counted for each block of the LSTM, as PyTorch has them; the notes "
            "have one.",
            "lstm#parameters",
            "apache/mxnet#7486",
        ),
        Misconception(
            "one_bias_number",
            "A bias is counted as one number; it has one for each unit.",
            "lstm#parameters",
            "our own: b_f taken for a scalar",
        ),
        Misconception(
            "gates_alone",
            "Only the gates are counted; the candidate has a matrix too.",
            "lstm#parameters",
            "our own: three gates and two gates",
        ),
        Misconception(
            "input_alone",
            "The matrices are counted with D columns: those of the state are missing.",
            "lstm#columns",
            "our own: a layer without recurrence",
        ),
        Misconception(
            "state_alone",
            "The matrices are counted with H columns: those of the input are missing.",
            "lstm#columns",
            "our own: the input is not counted",
        ),
        Misconception(
            "parts_exchanged",
            "The counts are returned in the other order: that of the GRU comes first.",
            "gru#parameters",
            "our own: two numbers without names",
        ),
    ),
)
