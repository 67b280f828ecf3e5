"""Task: perplexity and bits per token of a corpus that was evaluated in batches."""

import math

import numpy as np

from seqlib.exercises._rnn_clear import drawn_clearly
from seqlib.exercises.record import Case, Criterion, Misconception, Task


def reference(losses, counts):
    """Return perplexity and bits per token."""
    counted = counts > 0
    nats = (losses[counted] * counts[counted]).sum() / counts.sum()
    return np.exp(nats), nats / math.log(2)


def variant(losses, counts, *, wrong=frozenset()):
    """Return perplexity and bits per token, with the mistakes named in ``wrong``."""
    sums = losses * counts
    if not wrong & {"empty_nan", "mean_of_means"}:
        losses = np.where(counts > 0, losses, 0)
        sums = losses * counts
    if "losses_are_sums" in wrong:
        sums = losses
    nats = sums.sum() / (len(counts) if "divided_by_batches" in wrong else counts.sum())
    if "mean_of_means" in wrong:
        nats = losses.mean()
    if "mean_of_counted_means" in wrong:
        nats = losses[counts > 0].mean()
    with np.errstate(over="ignore"):
        perplexity = _perplexity(nats, losses, counts, wrong)
    bits = nats / math.log(2)
    if "bits_multiplied" in wrong:
        bits = nats * math.log(2)
    if "bits_are_nats" in wrong:
        bits = nats
    return (bits, perplexity) if "parts_exchanged" in wrong else (perplexity, bits)


def _perplexity(nats, losses, counts, wrong):
    if "mean_of_perplexities" in wrong:
        return np.exp(losses[counts > 0]).mean()
    if "weighted_perplexities" in wrong:
        return (np.exp(losses) * counts).sum() / counts.sum()
    if "power_of_two" in wrong:
        return 2**nats
    if "exponential_of_bits" in wrong:
        return np.exp(nats / math.log(2))
    return nats if "no_exponential" in wrong else np.exp(nats)


def cases(rng):
    """Draw inputs for one run."""

    def drawn(counts, of_empty=0.0):
        return drawn_clearly(lambda: _drawn(rng, counts, of_empty), TASK)

    return [
        Case(drawn([2, 3, 5, 7, 11]), label="5 batches of 2 to 11 tokens"),
        Case(drawn([13, 1, 4]), label="3 batches of 1 to 13 tokens"),
        Case(drawn([5]), label="one batch"),
        Case(drawn([3, 0, 7, 2], np.nan), label="a batch of 0 tokens, NaN", tag="empty"),
        Case(drawn([0, 5, 11]), label="a batch of 0 tokens, loss 0", tag="empty"),
    ]


def _drawn(rng, counts, of_empty):
    counts = rng.permutation(counts)
    losses = rng.uniform(0.5, 4, size=len(counts))
    return np.where(counts > 0, losses, of_empty), counts


TASK = Task(
    id="rnn.corpus_perplexity",
    title="Perplexity of a corpus",
    signature="(losses, counts)",
    equations=("eq-3",),
    page="sequences#perplexity",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 3, "perplexity", part=0),
        Criterion("bits", 1, "bits per token", part=1, needs=()),
        Criterion("empty", 1, "a batch without a token that counts", tag="empty"),
    ),
    misconceptions=(
        Misconception(
            "mean_of_means",
            "The losses of the batches are averaged as if all batches had equally many tokens.",
            "sequences#perplexity",
            "keras-team/keras-hub#2958",
        ),
        Misconception(
            "mean_of_perplexities",
            "The perplexities of the batches are averaged.",
            "sequences#perplexity",
            "macournoyer/neuralconvo#67",
        ),
        Misconception(
            "weighted_perplexities",
            "The perplexities of the batches are averaged, weighted by their tokens; the "
            "exponential comes before the mean.",
            "sequences#perplexity",
            "magenta/magenta#239",
        ),
        Misconception(
            "losses_are_sums",
            "The losses are added up and divided by the number of tokens, as if they were "
            "sums; they are means already.",
            "sequences#perplexity",
            "our own: a mean taken for a sum",
        ),
        Misconception(
            "divided_by_batches",
            "The sum of all losses is divided by the number of batches.",
            "sequences#perplexity",
            "our own: len of a list where the number of tokens was meant",
        ),
        Misconception(
            "power_of_two",
            "The perplexity is 2 to the power of a loss in nats.",
            "sequences#perplexity",
            "pytorch/pytorch#6427",
        ),
        Misconception(
            "exponential_of_bits",
            "The perplexity is the exponential of the loss in bits.",
            "sequences#perplexity",
            "facebookresearch/fairseq#466",
        ),
        Misconception(
            "no_exponential",
            "The loss itself is returned where the perplexity is asked for.",
            "sequences#perplexity",
            "tensorflow/tensor2tensor#1502",
        ),
        Misconception(
            "bits_multiplied",
            "The loss is multiplied by ln 2 to turn it into bits.",
            "sequences#perplexity",
            "NVIDIA/sentiment-discovery#25",
        ),
        Misconception(
            "bits_are_nats",
            "The loss per token is returned in nats where bits are asked for.",
            "sequences#perplexity",
            "NVIDIA/sentiment-discovery#25",
        ),
        Misconception(
            "empty_nan",
            "The loss of a batch without tokens is multiplied by 0, but 0 times NaN is NaN.",
            "sequences#perplexity",
            "pytorch/pytorch#75181",
        ),
        Misconception(
            "mean_of_counted_means",
            "Batches without tokens are left out, and the losses of the others are averaged "
            "as if they had equally many tokens.",
            "sequences#perplexity",
            "our own: a selection by counts > 0, then mean()",
        ),
        Misconception(
            "parts_exchanged",
            "The bits per token are returned first, the perplexity second.",
            "sequences#perplexity",
            "our own: the loss is found first",
        ),
    ),
    options={"parts": ("the perplexity", "the number of bits")},
    shortcuts=("seqlib.np.perplexity", "seqlib.np.bits"),
)
