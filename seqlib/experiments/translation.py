r"""Numbers in words from English to German and French: one vector, attention, Transformer.

One model writes both languages, character by character; what its decoder reads first names
the language. Three kinds are trained on the same numbers:

``vector``
    a bidirectional GRU that reads and a GRU that writes, joined by the last states,
``attention``
    the same with additive attention to all states,
``transformer``
    a Transformer layer that reads and one with cross-attention that writes.

Every kind has the same tuning: each of its two learning rates is tried for the first
``trial`` updates, and the one with the lower loss on validation numbers goes on. Of the two
weight decays that were tried, 0.01 and 0.3, each kind has the better one: the two with
attention on numbers that end in ten pairs held out for that, ``vector``, which is hardly
ever right on such pairs, by its loss on validation numbers.

Three sets of numbers are never trained on: ``unseen`` ones, all that end in one of ten
``pairs`` of tens and units, such as 24, and all that end in a pair ``above_69``, where French
counts in twenties. A translation is exact if every character and the end are right when the
model reads the right characters so far. Their share is the one that the model writes without
a mistake on its own, taking the likeliest character: up to its first mistake it reads the
same.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from seqlib.experiments import translation_data as data
from seqlib.experiments.translation_models import build, write
from seqlib.experiments.trial import Training, choose, compare
from seqlib.experiments.weights import load_into

INPUTS = {
    "training": 5000,
    "validation": 200,
    "unseen": 1000,
    "pairs": [[2, 4], [2, 9], [3, 6], [3, 8], [4, 3], [4, 7], [5, 3], [5, 8], [6, 5], [6, 9]],
    "above_69": [[7, 2], [8, 6], [9, 5]],
    "embedding": 32,
    "hidden": 64,
    "inner": 32,
    "dim": 64,
    "heads": 4,
    "layers": 1,
    "dropout": 0.1,
    "state_dropout": 0.2,
    "weight_decay": {"vector": 0.01, "attention": 0.3, "transformer": 0.3},
    "batch": 64,
    "short": [0.1, 0.2],
    "rates": {
        "vector": [0.005, 0.01],
        "attention": [0.005, 0.01],
        "transformer": [0.003, 0.006],
    },
    "early": 10,
    "trial": 300,
    "steps": 1800,
    "parts": ["early", "full"],
}
REDUCED = {**INPUTS, "parts": ["early"]}
SEEDS = (0, 1, 2, 3, 4)
# Ten updates on another processor differ in the last digits of the loss.
TOLERANCE = {"rtol": 1e-3, "atol": 0.0}
PACKAGES = ("numpy", "torch")

NAMES = {
    "vector": "GRUs, one vector",
    "attention": "GRUs, attention",
    "transformer": "Transformer",
}
GROUPS = ("unseen", "pairs", "above_69")
MAPPED = 324  # the number whose weights are kept
SORTED = 8  # batches that are drawn and sorted by length at a time


def run(inputs, seed):
    """Return what each kind of model learns.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the split, of the parameters and of the batches.

    Returns
    -------
    dict
        As :func:`seqlib.experiments.trial.compare`, and for each kind what :func:`measure`
        returns.
    """
    parts = data.split(inputs, seed)
    return compare(
        inputs, *tuning(inputs, seed, parts), lambda kind, model: measure(model, parts)
    )


def tuning(inputs, seed, parts):
    """Return how a training starts, and the loss that its rate is chosen by."""
    return (
        lambda kind, rate: start(kind, rate, inputs, seed, parts),
        lambda kind, model: validation_loss(model, parts["validation"]),
    )


def start(kind, rate, inputs, seed, parts):
    """Return a training of one kind that has made no update yet."""
    return Training(
        lambda: build(kind, len(data.WORDS), data.VOCABULARY, inputs),
        batches(parts["training"], inputs, np.random.default_rng(seed)),
        batch_loss,
        rate=rate,
        steps=inputs["steps"],
        seed=seed,
        weight_decay=inputs["weight_decay"][kind],
    )


def batch_loss(model, source, lengths, written, target):
    """Return the mean cross-entropy of the characters and ends of a batch."""
    logits, _, _ = model.decode(written, model.encode(source, lengths))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def shown_model(inputs, seed):
    """Return the trained model that the chapter shows, the one with attention."""
    how = tuning(inputs, seed, data.split(inputs, seed))
    return choose("attention", inputs, *how)[0].model


def load_model():
    """Return the committed model of the chapter, ready to translate."""
    model = build("attention", len(data.WORDS), data.VOCABULARY, INPUTS)
    return load_into("translation", model)


def translate(model, numbers, language):
    """Return what a model writes for numbers, and the weights ``(n, T, S)``.

    ``translate(model, [24], "de")`` is ``["vierundzwanzig"]`` and the weights of each
    character, its end included, on "twenty" and "four".
    """
    source, lengths, written, _ = data.batch(numbers, [language] * len(numbers))
    ids, weights = write(model, source, lengths, written[:, 0], end=data.END, longest=60)
    return [data.text_of(row) for row in ids], weights


def validation_loss(model, numbers):
    """Return nats per character of the translations of numbers into both languages."""
    total = count = 0
    for language in data.LANGUAGES:
        logits, _, target = forced(model, numbers, language)
        logits, target = logits.flatten(0, 1), target.flatten()
        total += F.cross_entropy(logits, target, reduction="sum").item()
        count += int((target != data.IGNORED).sum())
    return total / count


def batches(numbers, inputs, rng):
    """Yield batches of similar lengths without end.

    A number below 100 is drawn with the first probability of ``short``, one from 100 to 999
    with the second, since few of all numbers are as short; the language is drawn by halves.
    """
    size = np.searchsorted([100, 1000], numbers, side="right")
    short = inputs["short"]
    shares = np.array([*short, 1 - sum(short)]) / np.bincount(size, minlength=3)
    n, B = SORTED * inputs["batch"], inputs["batch"]
    while True:
        drawn = rng.choice(numbers, size=n, p=shares[size])
        languages = rng.choice(data.LANGUAGES, size=n)
        texts = map(data.number_words, drawn, languages)
        order = np.argsort([len(text) for text in texts], kind="stable")
        for start in rng.permutation(SORTED) * B:
            rows = order[start : start + B]
            yield data.batch(drawn[rows], languages[rows])


@torch.no_grad()
def forced(model, numbers, language):
    """Return logits, weights and targets when the model reads the right characters."""
    source, lengths, written, target = data.batch(numbers, [language] * len(numbers))
    logits, weights, _ = model.decode(written, model.encode(source, lengths))
    return logits, weights, target


def measure(model, parts):
    """Return what a trained model does.

    Parameters
    ----------
    model : Recurrent or Transformer
        In evaluation mode.
    parts : dict
        As :func:`seqlib.experiments.translation_data.split` returns.

    Returns
    -------
    dict
        The validation ``loss``, the share of exact translations as
        ``exact[group][language]``, and with attention ``aligned``, see :func:`aligned`, and
        ``map[i][j]``, the weights for one number.
    """
    found = {
        "loss": validation_loss(model, parts["validation"]),
        "exact": {
            group: {
                language: float(is_exact(model, parts[group], language).mean())
                for language in data.LANGUAGES
            }
            for group in GROUPS
        },
    }
    _, weights, _ = forced(model, [MAPPED], "de")
    if weights is not None:
        found["aligned"] = aligned(model, parts["pairs"])
        found["map"] = {
            str(i): {str(j): float(a) for j, a in enumerate(row)}
            for i, row in enumerate(weights[0])
        }
    return found


def is_exact(model, numbers, language):
    """Return for each number whether its translation has no mistake, as an array of bool."""
    right = []
    for part in np.array_split(numbers, math.ceil(len(numbers) / 100)):
        logits, _, target = forced(model, part, language)
        same = (logits.argmax(dim=-1) == target) | (target == data.IGNORED)
        right.append(same.all(dim=1).numpy())
    return np.concatenate(right)


def aligned(model, numbers):
    """Return how much weight lies on the English word that a German character comes from.

    Parameters
    ----------
    model : Recurrent or Transformer
        With attention, in evaluation mode.
    numbers : ndarray of int of shape (n,)
        Numbers that end in tens and units, so that German reverses their order.

    Returns
    -------
    dict
        Means over characters: ``mass``, the weight on the right word, over all pieces that
        have one; ``top``, the share where it is the largest weight; ``first`` and
        ``first_top``, the same for the first character of each piece alone, where the piece
        is chosen; ``reversed``, the mass over the characters of tens and units alone;
        ``in_order``, the mass of these on each other's word, where it would lie if German
        kept the order; ``uniform``, the mass that equal weights have.
    """
    _, weights, _ = forced(model, numbers, "de")
    names = ("mass", "top", "first", "first_top", "reversed", "in_order", "uniform")
    rows = {name: [] for name in names}
    for number, row in zip(numbers, weights.numpy(), strict=True):
        words, found, at = len(data.source_words(number)), data.pieces(number), 0
        for text, place in found:
            part = row[at : at + len(text)]
            at += len(text)
            if place is None:
                continue
            mass, top = list(part[:, place]), list(part.argmax(axis=1) == place)
            rows["mass"] += mass
            rows["top"] += top
            rows["first"].append(mass[0])
            rows["first_top"].append(top[0])
            rows["uniform"] += [1 / words] * len(text)
            if place >= words - 2:  # tens or units
                rows["reversed"] += mass
                rows["in_order"] += list(part[:, 2 * words - 3 - place])
    return {name: float(np.mean(values)) for name, values in rows.items()}


def wilson(share, n, z=1.96):
    r"""Return Wilson's 95 % interval of a probability, from the share in n trials.

    .. math::

        \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p)/n + z^2 / 4n^2}}{1 + z^2/n}

    With 995 of 1000 it is 0.988 to 0.998; with 1000 of 1000 it ends at 1, but does not shrink
    to a point.

    Parameters
    ----------
    share : float
        Share of successes, from 0 to 1.
    n : int
        Number of trials.
    z : float, default=1.96
        Quantile of the normal distribution.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Raises
    ------
    ValueError
        If the share is no share.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, got {share}; divide by n first")
    middle = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((middle + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    return max(low, 0.0), min(high, 1.0)  # rounding may pass the ends


def plot(record):
    """Draw the share of exact translations by kind and group; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    titles = ("unseen numbers", "unseen pairs below 70", "unseen pairs above 69")
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.9), sharey=True, layout="constrained")
    for axis, group, title in zip(axes, GROUPS, titles, strict=True):
        for language, color, mark, shift in (
            ("de", style.BLUE, "o", -0.12),
            ("fr", style.ORANGE, "s", 0.12),
        ):
            for x, kind in enumerate(NAMES):
                values = [seed[kind]["exact"][group][language] for seed in record["by_seed"]]
                label = {"de": "German", "fr": "French"}[language] if x == 0 else None
                axis.plot([x + shift] * len(values), values, mark, color=color, label=label)
        axis.set_xticks(range(len(NAMES)), ["vector", "attention", "Transf."])
        axis.set(xlim=(-0.5, len(NAMES) - 0.5), ylim=(-0.03, 1.03), title=title)
    axes[0].set_ylabel("share without a mistake")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
