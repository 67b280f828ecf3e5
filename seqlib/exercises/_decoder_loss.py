"""Task: the loss of next-token prediction, over the real tokens of a padded batch."""

import numpy as np

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import AsTensor


def reference(logits, ids, is_padding):
    """Return the mean cross-entropy of the next token over all targets that are real."""
    log_p = logits[:, :-1].log_softmax(dim=-1)
    nats = -log_p.gather(-1, ids[:, 1:, None])[..., 0]
    real = ~is_padding[:, 1:]
    return (nats * real).sum() / real.sum().clamp(min=1)


def variant(logits, ids, is_padding, *, wrong=frozenset()):
    """Return the loss with the mistakes named in ``wrong``."""
    logits, targets, real = _pairs(logits, ids, is_padding, wrong)
    if "id_0_ignored" in wrong:
        real = real & (targets != 0)
    if "softmax_twice" in wrong:
        logits = logits.softmax(dim=-1)
    log_p = logits.log_softmax(dim=-1)
    if "log_of_softmax" in wrong:
        log_p = logits.softmax(dim=-1).log()
    nats = -log_p.gather(-1, targets[..., None])[..., 0]
    if "bits" in wrong:
        nats = nats / np.log(2)
    total = (nats * real).sum()
    if "no_gradient" in wrong:
        total = total.detach()
    if "sum" in wrong:
        return total
    if "divided_by_all" in wrong:
        return total / max(real.numel(), 1)
    if "divided_by_sequences" in wrong:
        return total / len(real)
    count = real.sum() if "nan_without_targets" in wrong else real.sum().clamp(min=1)
    if "mean_of_sequences" in wrong:
        by_row = (nats * real).sum(dim=-1) / real.sum(dim=-1).clamp(min=1)
        by_row = by_row.detach() if "no_gradient" in wrong else by_row
        rows = real.any(dim=-1)
        return (by_row * rows).sum() / rows.sum().clamp(min=1)
    return total / count


def _pairs(logits, ids, is_padding, wrong):
    """Return the logits, what they are compared with, and which of these pairs count."""
    real = ~is_padding
    if "padding_counted" in wrong:
        real = real | is_padding
    if "polarity" in wrong:
        real = is_padding
    if "not_shifted" in wrong:
        return logits, ids, real
    if "shifted_back" in wrong:
        return logits[:, 1:], ids[:, :-1], real[:, :-1]
    if "shifted_twice" in wrong:
        return logits[:, :-2], ids[:, 2:], real[:, 2:]
    if "wraps_around" in wrong:
        return logits, ids.roll(-1, dims=1), real.roll(-1, dims=1)
    if "across_rows" in wrong:
        flat = logits.flatten(0, 1)[None, :-1]
        return flat, ids.flatten()[None, 1:], real.flatten()[None, 1:]
    if "padding_of_inputs" in wrong:
        return logits[:, :-1], ids[:, 1:], real[:, :-1]
    return logits[:, :-1], ids[:, 1:], real[:, 1:]


def cases(rng):
    """Draw inputs for one run."""
    return [
        _case(rng, (2, 5, 7), (5, 5), "2 sequences of 5 tokens, V=7, no padding"),
        _case(rng, (3, 7, 5), (7, 7, 7), "3 sequences of 7 tokens, V=5, no padding"),
        _case(rng, (1, 3, 2), (3,), "one sequence of 3 tokens, V=2, no padding"),
        _case(rng, (3, 7, 5), (7, 4, 2), "3 sequences of 7, 4 and 2 tokens, V=5", "padding"),
        _case(rng, (2, 5, 11), (3, 5), "2 sequences of 3 and 5 tokens, V=11", "padding"),
        _case(rng, (4, 5, 3), (2, 5, 3, 4), "lengths 2, 5, 3 and 4, V=3", "padding"),
        _case(rng, (2, 5, 7), (5, 5), "logits near 1000 and -1000", "large", scale=1000),
        _case(rng, (2, 3, 5), (1, 0), "lengths 1 and 0: no token has a target", "empty"),
        _case(rng, (3, 1, 7), (1, 1, 1), "3 sequences of one token", "empty"),
        _case(rng, (2, 5, 3), (5, 5), "2 sequences of 5 tokens, V=3", "gradient", grad=True),
    ]


def _case(rng, shape, lengths, label, tag="base", *, scale=2.0, grad=False):
    B, T, V = shape
    logits = scale * rng.standard_normal(shape)
    ids = rng.integers(V, size=(B, T))
    ids[:, 1::3] = 0  # a real token may have the id 0
    is_padding = np.arange(T) >= np.array(lengths)[:, None]
    # What a padded place holds must not matter.
    ids[is_padding] = rng.integers(V, size=is_padding.sum())
    args = AsTensor(logits, requires_grad=grad), AsTensor(ids), AsTensor(is_padding)
    return Case(args, label=label, tag=tag)


TASK = Task(
    id="decoder.next_token_loss",
    title="Loss of next-token prediction",
    signature="(logits, ids, is_padding)",
    equations=(),
    page="decoder#loss",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 4, "loss of sequences without padding"),
        Criterion("padding", 2, "padded tokens do not count", tag="padding"),
        Criterion("large", 1, "logits near 1000", tag="large"),
        Criterion("empty", 1, "0 where no token has a target", tag="empty"),
        Criterion("gradient", 2, "gradient of the logits", tag="gradient", part="gradient"),
    ),
    misconceptions=(
        Misconception(
            "not_shifted",
            "The logits of a token are compared with that token itself: the model would learn "
            "to copy its input.",
            "decoder#shifted-targets",
            "huggingface/transformers#27517",
        ),
        Misconception(
            "shifted_twice",
            "The logits of a token are compared with the token after the next.",
            "decoder#shifted-targets",
            "huggingface/transformers#37830",
        ),
        Misconception(
            "shifted_back",
            "The logits of a token are compared with the token before it.",
            "decoder#shifted-targets",
            "our own: the two slices exchanged",
        ),
        Misconception(
            "wraps_around",
            "The logits of the last token are compared with the first token of the sequence.",
            "decoder#shifted-targets",
            "our own: torch.roll in place of slices",
        ),
        Misconception(
            "across_rows",
            "The shift was made after flattening: the last token of a sequence is to predict "
            "the first one of the next.",
            "decoder#shifted-targets",
            "our own: view(-1, V) before the slice",
        ),
        Misconception(
            "padding_counted",
            "Padded targets count like real ones.",
            "decoder#loss",
            "our own: is_padding is not used",
        ),
        Misconception(
            "polarity",
            "The padded targets count and the real ones do not.",
            "decoder#loss",
            "pytorch/pytorch#27968",
        ),
        Misconception(
            "padding_of_inputs",
            "A pair counts if its input is real; whether its target is real was not asked.",
            "decoder#loss",
            "our own: the mask sliced as the logits are",
        ),
        Misconception(
            "id_0_ignored",
            "Targets with the id 0 do not count: 0 is taken for padding.",
            "decoder#loss",
            "neuralmagic/deepsparse#1141",
        ),
        Misconception(
            "mean_of_sequences",
            "The mean is taken in every sequence first, so a token of a short sequence counts "
            "more.",
            "decoder#loss",
            "huggingface/transformers#24725",
        ),
        Misconception(
            "divided_by_all",
            "The sum over real targets is divided by the number of all targets, padded ones "
            "included.",
            "decoder#loss",
            "our own: mean() of losses that were set to 0",
        ),
        Misconception(
            "divided_by_sequences",
            "The sum is divided by the number of sequences.",
            "decoder#loss",
            "our own: the mean over the batch alone",
        ),
        Misconception(
            "sum", "The losses are summed, not averaged.", "decoder#loss", "our own: no mean"
        ),
        Misconception(
            "softmax_twice",
            "The logits went through softmax before the cross-entropy, which applies it again.",
            "decoder#loss",
            "our own: F.cross_entropy of probabilities",
        ),
        Misconception(
            "log_of_softmax",
            "The probabilities are computed first and their logarithm is taken afterwards: one "
            "that is too small for a float has the loss infinity.",
            "sequences#log-softmax",
            "karpathy/neuraltalk#2",
        ),
        Misconception(
            "bits",
            "The loss is in bits: the logarithm has the base 2.",
            "decoder#loss",
            "our own: log2",
        ),
        Misconception(
            "no_gradient",
            "The loss is cut off from the logits: it has the right value and no gradient, so "
            "nothing can be trained with it.",
            "decoder#loss",
            "our own: item() or torch.no_grad()",
        ),
        Misconception(
            "nan_without_targets",
            "Where no token has a target, the loss is 0 divided by 0.",
            "decoder#loss",
            "pytorch/pytorch#75181",
        ),
    ),
    options={
        "parts": {"output": "the loss", "gradient": "the gradient"},
        "axes": {"the gradient": ("batch row", "time step", "token id")},
    },
    version=2,
)
