"""Task: cross-entropy of a padded batch, as two different means."""

import numpy as np

from seqlib.exercises._rnn_clear import drawn_clearly
from seqlib.exercises._rnn_losses import NAIVE_SOFTMAX, log_probabilities
from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance
from seqlib.np.loss import cross_entropy


def reference(Z, y, ignored=-100):
    """Return the mean over tokens and the mean over sequences."""
    losses = cross_entropy(Z, y, ignore_index=ignored, reduction="none")
    counts = (y != ignored).sum(axis=1)
    filled = counts > 0
    if not filled.any():
        return 0.0, 0.0
    sums = losses.sum(axis=1)
    return sums.sum() / counts.sum(), (sums[filled] / counts[filled]).mean()


def variant(Z, y, ignored=-100, *, wrong=frozenset()):
    """Return both means, with the mistakes named in ``wrong``."""
    if "shifted_again" in wrong:
        Z, y = Z[:, :-1], y[:, 1:]
    losses, counted = _losses(Z, y, ignored, wrong)
    sums, counts = losses.sum(axis=1), counted.sum(axis=1)
    tokens, sequences = (
        _over_tokens(sums, counts, y, wrong),
        _over_sequences(sums, counts, wrong),
    )
    if "sequences_over_T" in wrong:
        sequences = losses.mean()
    if "filled_over_T" in wrong:
        sequences = losses[counts > 0].mean() if counts.any() else 0.0
    if "nothing_counted_nan" in wrong and not counted.any():
        tokens = sequences = np.nan
    if "token_mean_twice" in wrong:
        return tokens, tokens
    if "sequence_mean_twice" in wrong:
        return sequences, sequences
    return (sequences, tokens) if "parts_exchanged" in wrong else (tokens, sequences)


def _losses(Z, y, ignored, wrong):
    """Return the loss of each position, 0 where ignored, and which positions count."""
    counted = y != (-100 if "only_minus_100" in wrong else ignored)
    if "zero_ignored" in wrong:
        counted = counted & (y != 0)
    if "negative_ignored" in wrong:
        counted = y >= 0
    classes = np.where(counted, y, 0)[..., None]
    losses = -np.take_along_axis(log_probabilities(Z, -1, wrong), classes, axis=-1)[..., 0]
    if "padding_times_zero" in wrong:
        return losses * counted, counted
    return np.where(counted, losses, 0), counted


def _over_tokens(sums, counts, y, wrong):
    divisor = counts.sum()
    if "tokens_over_all" in wrong:
        divisor = y.size
    if "tokens_over_sequences" in wrong:
        divisor = len(y)
    return sums.sum() / max(1, divisor)


def _over_sequences(sums, counts, wrong):
    filled = counts > 0
    if "empty_sequence_nan" in wrong and not filled.all():
        return np.nan
    if "sequence_sums" in wrong:
        return sums.mean()
    means = sums / np.maximum(1, counts)
    if "empty_sequence_zero" in wrong:
        return means.mean()
    return means[filled].mean() if filled.any() else 0.0


def cases(rng):
    """Draw inputs for one run."""

    def drawn(*args, finish=lambda *args: args, **options):
        return drawn_clearly(lambda: finish(*_drawn(rng, *args, **options)), TASK)

    return [
        Case(drawn((5, 2, 3), 5, 7), label="3 sequences of 5, 2 and 3 tokens, T=5"),
        Case(drawn((3, 7), 7, 5), label="2 sequences of 3 and 7 tokens, T=7"),
        Case(drawn((5, 2), 5, 3, 0), label="ignored=0, T=5", tag="ignored"),
        Case(drawn((1, 4), 4, 5, -1), label="ignored=-1, T=4", tag="ignored"),
        Case(drawn((5, 0, 2), 5, 7), label="one sequence of padding alone", tag="empty"),
        Case(drawn((0, 0), 3, 5), label="padding alone", tag="nothing"),
        Case(drawn((2, 3, 5), 5, 7, finish=_garbage), label="NaN as padding", tag="padding"),
        Case(drawn((5, 2), 5, 3, size=1000), label="logits near 1000", tag="large"),
    ]


def _drawn(rng, lengths, T, V, ignored=-100, size=0.0):
    """Logits, targets and `ignored`; sequences in random order, the longest begins ignored."""
    lengths = rng.permutation(lengths)
    Z = size + 2 * rng.standard_normal((len(lengths), T, V))
    y = rng.integers(1, V, size=Z.shape[:2])
    if ignored < 0:
        y[:, 1] = 0  # a class like any other
    y[np.arange(T) >= lengths[:, None]] = ignored
    if lengths.max() > 2:
        y[lengths.argmax(), 0] = ignored
    return (Z, y) if ignored == -100 else (Z, y, ignored)


def _garbage(Z, y):
    return np.where((y == -100)[..., None], np.nan, Z), y


TASK = Task(
    id="rnn.masked_cross_entropy",
    title="Cross-entropy of a padded batch",
    signature="(Z, y, ignored=-100)",
    equations=("eq-3",),
    page="sequences#ignored-targets",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 4, "mean over tokens", part=0),
        Criterion("sequences", 3, "mean over sequences", part=1, needs=()),
        Criterion("ignored", 2, "another value of ignored", tag="ignored"),
        Criterion("empty", 2, "a sequence without a target that counts", tag="empty"),
        Criterion("nothing", 1, "no target that counts at all", tag="nothing"),
        Criterion("padding", 2, "NaN in logits of ignored positions", tag="padding"),
        Criterion("large", 1, "logits near 1000", tag="large"),
    ),
    misconceptions=(
        Misconception(
            "tokens_over_all",
            "For the mean over tokens the sum of the losses is divided by the number of all "
            "positions, those that are ignored included.",
            "sequences#ignored-targets",
            "dmlc/gluon-nlp#238",
        ),
        Misconception(
            "tokens_over_sequences",
            "For the mean over tokens the sum of the losses is divided by the number of "
            "sequences.",
            "sequences#ignored-targets",
            "OpenNMT/OpenNMT-py#557",
        ),
        Misconception(
            "sequences_over_T",
            "For the mean over sequences each sum is divided by T, padding included.",
            "sequences#ignored-targets",
            "d2l-ai/d2l-en#2707",
        ),
        Misconception(
            "sequence_sums",
            "For the mean over sequences the sums of the sequences are averaged: they are not "
            "divided by the sequence's own number of tokens.",
            "sequences#ignored-targets",
            "yunjey/pytorch-tutorial#13",
        ),
        Misconception(
            "token_mean_twice",
            "The second number is the mean over tokens too.",
            "sequences#ignored-targets",
            "OpenNMT/OpenNMT-tf#570",
        ),
        Misconception(
            "sequence_mean_twice",
            "The first number is the mean over sequences too.",
            "sequences#ignored-targets",
            "CarperAI/trlx#452",
        ),
        Misconception(
            "parts_exchanged",
            "The two means are returned in the other order.",
            "sequences#ignored-targets",
            "our own: two numbers that look alike",
        ),
        Misconception(
            "only_minus_100",
            "Only the target -100 is ignored, whatever the argument ignored says.",
            "sequences#ignored-targets",
            "FlagAI-Open/FlagAI#522",
        ),
        Misconception(
            "negative_ignored",
            "Every negative target is ignored and no other, whatever the argument ignored "
            "says.",
            "sequences#ignored-targets",
            "karpathy/nanoGPT#297",
        ),
        Misconception(
            "zero_ignored",
            "Targets of class 0 are left out as well, as if 0 always meant padding.",
            "sequences#ignored-targets",
            "neuralmagic/deepsparse#1141",
        ),
        Misconception(
            "shifted_again",
            "The targets are shifted inside of the function, although y holds the next tokens "
            "already: each position is held against the token after the next.",
            "sequences#shifted-targets",
            "huggingface/transformers#37830",
        ),
        Misconception(
            "empty_sequence_zero",
            "A sequence without a target that counts enters the mean over sequences as 0.",
            "sequences#ignored-targets",
            "our own: max(1, count) as divisor, and all sequences counted",
        ),
        Misconception(
            "empty_sequence_nan",
            "A sequence without a target that counts makes the mean over sequences NaN.",
            "sequences#ignored-targets",
            "jaywonchung/BERT4Rec-VAE-Pytorch#22",
        ),
        Misconception(
            "nothing_counted_nan",
            "Where no target of the batch counts, both means are 0/0, which is NaN.",
            "sequences#ignored-targets",
            "pytorch/pytorch#70348",
        ),
        Misconception(
            "padding_times_zero",
            "Losses at ignored positions are multiplied by 0, but 0 times NaN is NaN.",
            "sequences#ignored-targets",
            "NVIDIA-NeMo/Megatron-Bridge#3117",
        ),
        NAIVE_SOFTMAX,
        Misconception(
            "filled_over_T",
            "For the mean over sequences each sum is divided by T, padding included; only "
            "sequences without a target are left out.",
            "sequences#ignored-targets",
            "our own: the 1/T of equation (3), read as it stands",
        ),
    ),
    # Measured in float32: 2e-5 for logits near 1000, everything else agrees to 1e-6.
    tolerance=Tolerance(rtol32=1e-5, atol32=2e-4),
    options={"parts": ("the mean over tokens", "the mean over sequences")},
    shortcuts=("seqlib.np.cross_entropy", "torch.nn.functional.cross_entropy"),
)
