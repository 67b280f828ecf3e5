r"""Captions of rendered shapes: a decoder that looks, the same one blind, and a classifier.

A picture shows two coloured shapes, and its one right caption names both and how they lie to
each other, :func:`seqlib.data.scenes`. Three kinds are trained on the same pictures:

``attention``
    three convolutions and a GRU that attends to an 8 x 8 grid of their outputs at every word,
``blind``
    the same decoder with a grid of zeros: what is known without looking,
``template``
    the same convolutions and five softmaxes that fill the blanks of the sentence.

Every kind has the same tuning: each of its two learning rates is tried for the first
``trial`` updates, and the one with the lower loss on validation pictures goes on.

Captions are measured on ``fresh`` pictures, and on ``held_out`` ones, whose triples of first
colour, first shape and relation occur in no training picture. A caption counts if it is right
as a whole.
"""

import numpy as np
import torch
import torch.nn.functional as F

from seqlib.data import scenes
from seqlib.data.shapes import COLOURS, RELATIONS, SHAPES
from seqlib.experiments.captioning_models import CELLS, Captioner, Classifier, write
from seqlib.experiments.trial import Training, choose, compare
from seqlib.experiments.weights import load_into

INPUTS = {
    "training": 8000,
    "validation": 300,
    "fresh": 1000,
    "held_out": 1000,
    "triples": [
        ["red", "circle", "above"],
        ["blue", "square", "left of"],
        ["green", "triangle", "above"],
        ["yellow", "circle", "left of"],
    ],
    "channels": 32,
    "embedding": 16,
    "hidden": 64,
    "inner": 32,
    "dropout": 0.3,
    "batch": 64,
    "rates": {
        "blind": [0.005, 0.01],
        "template": [0.0025, 0.005],
        "attention": [0.005, 0.01],
    },
    "early": 10,
    "trial": 150,
    "steps": 1000,
    "parts": ["early", "full"],
}
REDUCED = {**INPUTS, "parts": ["early"]}
SEEDS = (0, 1, 2, 3, 4)
# Ten updates on another processor differ in the last digits of the loss.
TOLERANCE = {"rtol": 1e-3, "atol": 0.0}
PACKAGES = ("numpy", "torch")

NAMES = {
    "blind": "blind decoder",
    "template": "template classifier",
    "attention": "attention decoder",
}
GROUPS = ("fresh", "held_out")
IGNORED = -100
LONGEST = 12  # words that a decoder may write

WORDS = sorted({"a", *COLOURS, *SHAPES, *(word for r in RELATIONS for word in r.split())})
END, BEGIN = len(WORDS), len(WORDS) + 1
# What fills the blanks of "a . . . a . .", in order.
BLANKS = (tuple(COLOURS), SHAPES, RELATIONS, tuple(COLOURS), SHAPES)


def run(inputs, seed):
    """Return what each kind of model learns.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``.
    seed : int
        Seed of the pictures, of the parameters and of the batches.

    Returns
    -------
    dict
        As :func:`seqlib.experiments.trial.compare`, and for each kind what :func:`measure`
        returns.
    """
    pictures = draw(inputs, seed)
    return compare(
        inputs,
        *tuning(inputs, seed, pictures),
        lambda kind, model: measure(kind, model, pictures),
    )


def tuning(inputs, seed, pictures):
    """Return how a training starts, and the loss that its rate is chosen by."""
    return (
        lambda kind, rate: start(kind, rate, inputs, seed, pictures),
        lambda kind, model: validation_loss(kind, model, pictures["validation"]),
    )


def draw(inputs, seed):
    """Return pictures and scenes of each part: training, validation, fresh and held_out."""
    rng = np.random.default_rng([seed, 9])
    found = {}
    for part in ("training", "validation", "fresh", "held_out"):
        images, shown = scenes(
            inputs[part], rng, held_out=inputs["triples"], test=part == "held_out"
        )
        found[part] = torch.from_numpy(images), shown
    return found


def caption_ids(shown):
    """Return what a decoder reads, and the targets: words, the end, and -100 behind it."""
    rows = [[*(WORDS.index(word) for word in s.caption.split()), END] for s in shown]
    longest = max(map(len, rows))
    targets = torch.tensor([row + [IGNORED] * (longest - len(row)) for row in rows])
    begin = torch.full((len(rows), 1), BEGIN)
    return torch.cat([begin, targets[:, :-1].clamp(min=0)], dim=1), targets


def blank_ids(shown):
    """Return which of its choices fills each blank, ``(n, 5)``."""
    filled = [(*s.objects[0], s.relation, *s.objects[1]) for s in shown]
    return torch.tensor(
        [[b.index(word) for b, word in zip(BLANKS, row, strict=True)] for row in filled]
    )


def build(kind, inputs):
    """Return a fresh model of a kind, drawn with torch's generator."""
    if kind == "template":
        return Classifier([len(blank) for blank in BLANKS], inputs)
    return Captioner(len(WORDS) + 2, inputs, sees=kind == "attention")


def start(kind, rate, inputs, seed, pictures):
    """Return a training of one kind that has made no update yet."""
    images, shown = pictures["training"]
    parts = (images, blank_ids(shown)) if kind == "template" else (images, *caption_ids(shown))
    return Training(
        lambda: build(kind, inputs),
        batches(parts, inputs["batch"], np.random.default_rng(seed)),
        blank_loss if kind == "template" else word_loss,
        rate=rate,
        steps=inputs["steps"],
        seed=seed,
    )


def batches(parts, size, rng):
    """Yield random rows of the same arrays without end."""
    while True:
        rows = torch.from_numpy(rng.integers(len(parts[0]), size=size))
        yield [part[rows] for part in parts]


def word_loss(model, images, written, targets):
    """Return the mean cross-entropy of words and ends."""
    logits, _, _ = model.decode(written, model.encode(images))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def blank_loss(model, images, targets):
    """Return the mean cross-entropy of the blanks."""
    losses = [F.cross_entropy(x, y) for x, y in zip(model(images), targets.T, strict=True)]
    return torch.stack(losses).mean()


def shown_model(inputs, seed):
    """Return the trained model that the chapter shows, the decoder with attention."""
    how = tuning(inputs, seed, draw(inputs, seed))
    return choose("attention", inputs, *how)[0].model


def load_model():
    """Return the committed model of the chapter, ready to write captions."""
    return load_into("captioning", build("attention", INPUTS))


@torch.no_grad()
def validation_loss(kind, model, part):
    """Return the loss of a kind on pictures that are not trained on."""
    images, shown = part
    if kind == "template":
        return blank_loss(model, images, blank_ids(shown)).item()
    return word_loss(model, images, *caption_ids(shown)).item()


def measure(kind, model, pictures):
    """Return what a trained model does.

    Parameters
    ----------
    kind : str
        Its kind.
    model : Captioner or Classifier
        In evaluation mode.
    pictures : dict
        As :func:`draw` returns.

    Returns
    -------
    dict
        ``exact[group]``, the share of right captions, and ``words[group]``, the share of right
        words. For a decoder the words are those that it predicts when it reads the right ones
        so far. With attention also ``looks[group]``, see :func:`looks`.
    """
    found = {"exact": {}, "words": {}}
    for group in GROUPS:
        images, shown = pictures[group]
        texts, weights = captions(kind, model, images)
        right = np.array([text == s.caption for text, s in zip(texts, shown, strict=True)])
        found["exact"][group] = float(right.mean())
        found["words"][group] = words_right(kind, model, images, shown)
        if kind == "attention":
            found.setdefault("looks", {})[group] = looks(shown, weights, right)
    return found


@torch.no_grad()
def captions(kind, model, images):
    """Return the captions of pictures, and a decoder's weights ``(n, T, 64)``."""
    if kind == "template":
        chosen = torch.stack([logits.argmax(dim=-1) for logits in model(images)], dim=1)
        rows = [[b[i] for b, i in zip(BLANKS, row, strict=True)] for row in chosen.tolist()]
        return ["a {} {} {} a {} {}".format(*row) for row in rows], None
    ids, weights = write(model, images, begin=BEGIN, end=END, longest=LONGEST)
    return [text_of(row) for row in ids.tolist()], weights


def text_of(ids):
    """Return the caption up to the end, or all of it if there is none."""
    ids = ids[: ids.index(END)] if END in ids else ids
    return " ".join([*WORDS, "?", "?"][i] for i in ids)


@torch.no_grad()
def words_right(kind, model, images, shown):
    """Return the share of right words, or of right blanks."""
    if kind == "template":
        targets = blank_ids(shown)
        chosen = torch.stack([logits.argmax(dim=-1) for logits in model(images)], dim=1)
    else:
        written, targets = caption_ids(shown)
        chosen = model.decode(written, model.encode(images))[0].argmax(dim=-1)
    return float((chosen == targets)[targets != IGNORED].double().mean())


def box_shares(box, size=32):
    """Return which share of each of the 64 cells lies in a box (top, left, bottom, right)."""
    top, left, bottom, right = box
    inside = np.zeros((size, size))
    inside[top:bottom, left:right] = 1
    step = size // CELLS
    return inside.reshape(CELLS, step, CELLS, step).mean(axis=(1, 3)).ravel()


def looks(shown, weights, right):
    """Return how much weight lies in the box of the object that a word names.

    The weight of a cell counts as spread evenly over its pixels.

    Parameters
    ----------
    shown : list of Scene
        What the pictures show.
    weights : Tensor of shape (n, T, 64)
        Weights of the cells at every word.
    right : ndarray of bool of shape (n,)
        Which captions are right; the others have no word to compare.

    Returns
    -------
    dict
        Means over both objects of all right captions: ``colour`` and ``shape``, the weight in
        the object's box at these words; ``other``, the weight in the other object's box at
        both; ``area``, the box's share of the picture, which equal weights would give.
    """
    rows = {name: [] for name in ("colour", "shape", "other", "area")}
    for scene, row, is_right in zip(shown, weights.numpy(), right, strict=True):
        if not is_right:
            continue
        shares = [box_shares(box) for box in scene.boxes]
        words = scene.caption.split()
        at = [i for i, word in enumerate(words) if word == "a"]
        for place, own, other in zip(at, shares, shares[::-1], strict=True):
            rows["colour"].append(row[place + 1] @ own)
            rows["shape"].append(row[place + 2] @ own)
            rows["other"].append((row[place + 1] + row[place + 2]) @ other / 2)
            rows["area"].append(own.mean())
    return {name: float(np.mean(values)) for name, values in rows.items()}


def plot(record):
    """Draw the share of right captions, and where attention looks; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.1), layout="constrained")
    look = (("fresh", style.BLUE, "o", -0.12), ("held_out", style.ORANGE, "s", 0.12))
    titles = {"fresh": "triples of the training", "held_out": "held-out triples"}
    for group, color, mark, shift in look:
        for x, kind in enumerate(NAMES):
            values = [seed[kind]["exact"][group] for seed in record["by_seed"]]
            label = titles[group] if x == 0 else None
            left.plot([x + shift] * len(values), values, mark, color=color, label=label)
        for x, name in enumerate(("colour", "shape", "other", "area")):
            values = [seed["attention"]["looks"][group][name] for seed in record["by_seed"]]
            right.plot([x + shift] * len(values), values, mark, color=color)
    left.set_xticks(range(len(NAMES)), [name.replace(" ", "\n") for name in NAMES.values()])
    left.set(xlim=(-0.5, len(NAMES) - 0.5), ylim=(-0.03, 1.03))
    left.set_ylabel("share of right captions")
    names = ["own box,\ncolour", "own box,\nshape", "other\nbox", "area\nof a box"]
    right.set_xticks(range(len(names)), names)
    right.set(ylim=(0, None), ylabel="share of the weight")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
