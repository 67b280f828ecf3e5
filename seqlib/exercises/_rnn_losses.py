"""Task: the loss of each position, from logits."""

import math

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task, Tolerance
from seqlib.np.loss import cross_entropy


def reference(Z, y):
    """Return the loss of each position."""
    return cross_entropy(Z, y, reduction="none")


def variant(Z, y, *, wrong=frozenset()):
    """Return the loss of each position, with the mistakes named in ``wrong``."""
    axis = -1
    if "softmax_over_positions" in wrong:
        axis = 0
    if "softmax_axis_one" in wrong:
        axis = 1
    if "softmax_twice" in wrong:
        Z = np.exp(log_probabilities(Z, axis))
    log_p = log_probabilities(Z, axis, wrong)
    losses = -np.take_along_axis(log_p, y[..., None], axis=-1)[..., 0]
    if "no_minus" in wrong:
        losses = -losses
    if "base_two" in wrong:
        losses = losses / math.log(2)
    return losses.mean() if "averaged" in wrong else losses


def log_probabilities(Z, axis=-1, wrong=frozenset()):
    """Return the log-softmax of Z, with the mistakes named in ``wrong``."""
    top = Z.max(axis=axis, keepdims=True)
    if wrong & {"no_shift", "naive_softmax"}:
        top = np.zeros_like(top)
    if "shift_of_all" in wrong:
        top = np.full_like(top, Z.max())
    with np.errstate(all="ignore"):  # the mistakes overflow, or take the logarithm of 0
        E = np.exp(Z - top)
        total = E.sum(axis=axis, keepdims=True)
        if "no_logarithm" in wrong:
            return E / total
        if "epsilon" in wrong:
            return np.log(E / total + 1e-12)
        if wrong & {"naive_softmax", "log_of_zero"}:
            return np.log(E / total)
        if "no_normaliser" in wrong:
            return Z
        return Z - np.log(total) - (0 if "maximum_once" in wrong else top)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_drawn(rng, 5, 7), label="n=5 positions, V=7 classes"),
        Case(_drawn(rng, 7, 3), label="n=7 positions, V=3 classes"),
        Case(_drawn(rng, 1, 2), label="one position, V=2 classes"),
        Case(_large(rng, 7, 5), label="logits near 1000 and -1000, n=7, V=5", tag="large"),
        Case(_drawn(rng, 2, 5, 3), label="2 sequences, T=5, V=3", tag="batch"),
        Case(_drawn(rng, 3, 2, 7, 5), label="logits of shape (3, 2, 7, 5)", tag="batch"),
    ]


def _drawn(rng, *shape):
    return 2 * rng.standard_normal(shape), rng.integers(shape[-1], size=shape[:-1])


def _large(rng, n, V):
    """Rows near 1000, -1000 and 0 that differ by about 1; one target 900 below its row."""
    level = np.resize([1000.0, -1000.0, 0.0], n)
    Z = level[:, None] + rng.standard_normal((n, V))
    y = rng.integers(V, size=n)
    Z[2, y[2]] -= 900
    order = rng.permutation(n)
    return Z[order], y[order]


NAIVE_SOFTMAX = Misconception(
    "naive_softmax",
    "The softmax is computed as it is written, and large logits overflow to inf / inf.",
    "sequences#log-softmax",
    "FluxML/NNlib.jl#68",
)

TASK = Task(
    id="rnn.token_losses",
    title="The loss of each position",
    signature="(Z, y)",
    equations=("eq-3",),
    page="sequences#cross-entropy",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 5, "losses"),
        Criterion("large", 3, "logits near 1000 and -1000", tag="large"),
        Criterion("batch", 2, "leading axes", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "softmax_over_positions",
            "The softmax runs over axis 0, the positions, so each class is normalised over "
            "the positions and not each position over the classes.",
            "sequences#cross-entropy",
            "d2l-ai/d2l-en#2274",
        ),
        Misconception(
            "softmax_axis_one",
            "The softmax runs over axis 1, which holds the classes of one matrix, but not "
            "those of a batch of sequences.",
            "sequences#cross-entropy",
            "ctallec/world-models#10",
        ),
        Misconception(
            "softmax_twice",
            "The softmax is applied twice: what is normalised are probabilities, not logits.",
            "sequences#cross-entropy",
            "nfmcclure/tensorflow_cookbook#86",
        ),
        Misconception(
            "no_logarithm",
            "The loss is minus the probability of the target: the logarithm is missing.",
            "sequences#cross-entropy",
            "AnubhavGupta3377/Text-Classification-Models-Pytorch#9",
        ),
        Misconception(
            "no_minus",
            "The logarithm of the probability itself is returned, so the losses are negative.",
            "sequences#cross-entropy",
            "our own: the minus of the negative log-likelihood is forgotten",
        ),
        Misconception(
            "no_normaliser",
            "The loss is minus the logit of the target: the other classes do not enter.",
            "sequences#cross-entropy",
            "pytorch/pytorch#10033",
        ),
        Misconception(
            "base_two",
            "The losses are in bits, not in nats: the logarithm has base 2.",
            "sequences#perplexity",
            "facebookresearch/fairseq#466",
        ),
        Misconception(
            "averaged",
            "The mean over all positions is returned; the text asks for one loss for each.",
            "sequences#cross-entropy",
            "our own: the mean is the default of the book's function",
        ),
        NAIVE_SOFTMAX,
        Misconception(
            "no_shift",
            "The exponentials of the logits are added up unshifted: the sum of large ones is "
            "infinite, that of very negative ones is 0.",
            "sequences#log-softmax",
            "tensorflow/tensorflow#10142",
        ),
        Misconception(
            "log_of_zero",
            "The softmax does not overflow, but a very small probability becomes 0 before its "
            "logarithm is taken.",
            "sequences#log-softmax",
            "deeplearning4j/deeplearning4j#785",
        ),
        Misconception(
            "epsilon",
            "A small number, 1e-12, is added to the probability, so no loss can exceed 27.6.",
            "sequences#log-softmax",
            "chainer/chainer#584",
        ),
        Misconception(
            "maximum_once",
            "The maximum is subtracted inside of the exponentials only, and neither added to "
            "the logarithm of their sum nor subtracted from the logit of the target.",
            "sequences#log-softmax",
            "choderalab/perses#1238",
        ),
        Misconception(
            "shift_of_all",
            "The maximum of the whole array is subtracted, so in a row of much smaller logits "
            "all exponentials become 0.",
            "sequences#log-softmax",
            "our own: one maximum for rows of different size",
        ),
    ),
    # Measured in float32: 7e-5 for logits near 1000, everything else agrees to 1e-6.
    tolerance=Tolerance(rtol32=1e-5, atol32=5e-4),
    options={"axes": ("sequence", "position")},
    shortcuts=(
        "seqlib.np.log_softmax",
        "seqlib.np.softmax",
        "seqlib.np.cross_entropy",
        "torch.log_softmax",
        "torch.nn.functional.log_softmax",
        "torch.nn.functional.cross_entropy",
    ),
)
