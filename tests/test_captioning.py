"""Captions of shapes: the data, the models, the scores, and what the record shows."""

import json

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.data import Scene
from seqlib.experiments import captioning, load, weights
from seqlib.experiments.captioning_models import Captioner, Encoder, write

SMALL = {
    **captioning.INPUTS,
    "training": 60,
    "validation": 20,
    "fresh": 20,
    "held_out": 20,
    "channels": 8,
    "embedding": 4,
    "hidden": 8,
    "inner": 4,
    "batch": 16,
    "steps": 40,
}
KINDS = tuple(captioning.NAMES)
RECORD = load("captioning")
SCENE = Scene((("red", "circle"), ("blue", "square")), "left of", ((16, 8), (17, 24)), (4, 3))


@pytest.fixture(scope="module")
def pictures():
    return captioning.draw(SMALL, 0)


def small(kind, seed=0):
    torch.manual_seed(seed)
    return captioning.build(kind, SMALL).eval()


# ---------------------------------------------------------------- data


def test_parts_keep_the_triples_apart(pictures):
    held_out = {tuple(triple) for triple in captioning.INPUTS["triples"]}
    for part, (images, shown) in pictures.items():
        assert len(images) == len(shown) == SMALL[part]
        assert images.dtype == torch.float32
        triples = {scene.triple for scene in shown}
        assert triples <= held_out if part == "held_out" else not triples & held_out
    first = [pictures[part][0][0] for part in ("training", "validation", "fresh")]
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[1], first[2])


def test_decoder_reads_the_caption_behind_the_beginning():
    other = Scene((("red", "square"), ("red", "circle")), "above", ((6, 8), (22, 9)), (4, 3))
    written, targets = captioning.caption_ids([SCENE, other])
    assert captioning.text_of(targets[0].tolist()) == SCENE.caption
    assert captioning.text_of(targets[1].tolist()[:8]) == other.caption
    assert (written[:, 0] == captioning.BEGIN).all()
    assert_array_equal(written[0, 1:], targets[0, :-1])
    assert targets[1, -1] == captioning.IGNORED
    assert (targets == captioning.END).sum(dim=1).tolist() == [1, 1]


def test_blanks_are_filled_with_what_is_shown():
    (row,) = captioning.blank_ids([SCENE]).tolist()
    words = [blank[i] for blank, i in zip(captioning.BLANKS, row, strict=True)]
    assert words == ["red", "circle", "left of", "blue", "square"]


def test_batches_keep_pictures_and_captions_together(pictures):
    images, shown = pictures["training"]
    _, targets = captioning.caption_ids(shown)
    stream = captioning.batches((images, targets), 30, np.random.default_rng(0))
    drawn = [next(stream) for _ in range(4)]
    for some, rows in drawn:
        for image, row in zip(some, rows, strict=True):
            (at,) = (images == image).all(dim=(1, 2, 3)).nonzero()[:1]
            assert torch.equal(targets[at[0]], row)
    assert not torch.equal(drawn[0][1], drawn[1][1])


# ---------------------------------------------------------------- models


def test_a_cell_sees_what_surrounds_it():
    torch.manual_seed(0)
    encoder = Encoder(8)
    image = torch.rand(1, 32, 32, 3)
    before = encoder(image)
    for row, column in ((0, 0), (13, 22), (31, 31)):
        changed = image.clone()
        changed[0, row, column] += 1.0
        moved = (encoder(changed) != before).any(dim=-1).reshape(8, 8).nonzero()
        assert len(moved)
        # The window of cell i spans the 15 pixels from 4 i - 7 to 4 i + 7.
        distance = (4 * moved - torch.tensor([row, column])).abs().max()
        assert distance <= 7


def test_cells_know_their_place():
    torch.manual_seed(0)
    cells = Encoder(8)(torch.zeros(1, 32, 32, 3))[0]
    inner = cells.reshape(8, 8, -1)[2:6, 2:6]  # away from the border, all see nothing
    assert len(inner.flatten(0, 1).unique(dim=0)) > 8


def test_cells_are_numbered_row_by_row():
    torch.manual_seed(0)
    encoder = Encoder(8)
    blank, lit = torch.zeros(1, 32, 32, 3), torch.zeros(1, 32, 32, 3)
    lit[0, 2, 28] = 1  # top right
    moved = (encoder(blank) != encoder(lit)).any(dim=-1)[0]
    assert moved[7]
    assert not moved[56:].any()


def test_blind_decoder_sees_nothing(pictures):
    images, shown = pictures["fresh"]
    written, _ = captioning.caption_ids(shown[:2])
    for kind, same in (("blind", True), ("attention", False)):
        model = small(kind)
        logits = [model.decode(written, model.encode(images[i : i + 2]))[0] for i in (0, 4)]
        assert torch.equal(*logits) == same


def test_decoder_sees_no_later_word(pictures):
    images, shown = pictures["fresh"]
    model = small("attention")
    written, _ = captioning.caption_ids(shown)
    memory = model.encode(images)
    later = written.clone()
    later[:, 4:] = (later[:, 4:] + 1) % captioning.END
    before, after = (model.decode(ids, memory)[0] for ids in (written, later))
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert (after[:, 4:] != before[:, 4:]).any()


def test_context_is_the_average_with_the_weights(pictures):
    model = small("attention")
    cells, first = model.encode(pictures["fresh"][0][:3])
    written, _ = captioning.caption_ids(pictures["fresh"][1][:3])
    logits, rows, _ = model.decode(written, (cells, first))
    assert_allclose(rows.sum(dim=-1).detach(), 1, rtol=1e-5)
    queries, _ = model.decoder(model.written(written), first)
    expected = model.head(torch.cat([queries, torch.einsum("bts,bsc->btc", rows, cells)], -1))
    torch.testing.assert_close(logits, expected)


def test_writing_is_greedy(pictures):
    model = small("attention", seed=2)
    images = pictures["fresh"][0]
    ids, rows = write(model, images, begin=captioning.BEGIN, end=captioning.END, longest=6)
    begin = torch.full((len(images), 1), captioning.BEGIN)
    logits, theirs, _ = model.decode(torch.cat([begin, ids[:, :-1]], 1), model.encode(images))
    assert_array_equal(ids, logits.argmax(dim=-1))
    torch.testing.assert_close(rows, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_training_lowers_the_loss(kind, pictures):
    training = captioning.start(kind, 0.01, SMALL, 0, pictures)
    before = captioning.validation_loss(kind, training.model.eval(), pictures["validation"])
    training.go_on_to(40)
    after = captioning.validation_loss(kind, training.model, pictures["validation"])
    assert after < before - (0.003 if kind == "template" else 0.3)


# ---------------------------------------------------------------- scores


def test_a_caption_is_right_as_a_whole(pictures, monkeypatch):
    _, shown = pictures["fresh"]
    texts = [scene.caption for scene in shown]
    texts[0] = texts[0].replace("a ", "the ", 1)
    texts[1] += " a"
    monkeypatch.setattr(captioning, "captions", lambda kind, model, images: (texts, None))
    monkeypatch.setattr(captioning, "words_right", lambda *args: 0.5)
    found = captioning.measure(
        "blind", None, {"fresh": (None, shown), "held_out": (None, shown)}
    )
    assert found["exact"]["fresh"] == found["exact"]["held_out"] == 1 - 2 / len(shown)


def test_words_count_up_to_the_end(pictures):
    _, shown = pictures["fresh"]

    class Parrot:
        """Predict "a" everywhere."""

        def encode(self, images):
            return None

        def decode(self, written, memory):
            logits = torch.zeros(*written.shape, captioning.END + 2)
            logits[..., captioning.WORDS.index("a")] = 1
            return logits, None, None

    places = sum(len(scene.caption.split()) + 1 for scene in shown)
    share = captioning.words_right("attention", Parrot(), None, shown)
    assert share == pytest.approx(2 * len(shown) / places)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((0, 0, 4, 4), {0: 1.0}),
        ((2, 4, 6, 8), {1: 0.5, 9: 0.5}),
        ((3, 3, 5, 5), {0: 1 / 16, 1: 1 / 16, 8: 1 / 16, 9: 1 / 16}),
    ],
)
def test_shares_of_a_box(box, expected):
    row = np.zeros(64)
    row[list(expected)] = list(expected.values())
    assert_allclose(captioning.box_shares(box), row)


def test_looks_counts_the_box_of_the_named_object():
    words = SCENE.caption.split()  # a red circle left of a blue square
    rows = torch.zeros(2, len(words) + 1, 64)
    first, second = (captioning.box_shares(box) for box in SCENE.boxes)
    inside = [int(np.flatnonzero(shares == 1)[0]) for shares in (first, second)]
    rows[0, 1, inside[0]] = 1  # "red" looks at the circle,
    rows[0, 2, inside[1]] = 1  # "circle" at the square,
    rows[0, 6, inside[1]] = 0.5  # "blue" half at the square
    rows[0, 7, inside[1]] = 1
    rows[1] = 1 / 64
    found = captioning.looks([SCENE, SCENE], rows, np.array([True, False]))
    areas = [(2 * r + 1) ** 2 / 1024 for r in SCENE.radii]
    expected = {"colour": 0.75, "shape": 0.5, "other": 0.25, "area": np.mean(areas)}
    assert found == pytest.approx(expected)
    even = captioning.looks([SCENE], rows[1:], np.array([True]))
    assert_allclose(list(even.values()), np.mean(areas))


# ---------------------------------------------------------------- committed parameters


def test_committed_model_is_small_and_writes_like_the_record():
    path = weights.FOLDER / "captioning.json"
    assert path.stat().st_size < 200 * 1024
    about = json.loads(path.read_text())
    assert about["inputs"] == captioning.INPUTS
    assert about["seed"] == captioning.SEEDS[0]
    model = captioning.load_model()
    assert isinstance(model, Captioner)
    parts = captioning.draw(captioning.INPUTS, about["seed"])
    for group in captioning.GROUPS:
        images, shown = parts[group]
        texts, _ = captioning.captions("attention", model, images[:400])
        share = np.mean([text == s.caption for text, s in zip(texts, shown, strict=False)])
        expected = RECORD["by_seed"][0]["attention"]["exact"][group]
        assert share == pytest.approx(expected, abs=0.03)


# ---------------------------------------------------------------- what the record shows


@pytest.mark.parametrize("seed", range(5))
def test_captions_are_right_and_on_held_out_triples_too(seed):
    exact = RECORD["by_seed"][seed]["attention"]["exact"]
    assert exact["fresh"] >= 0.95
    assert exact["held_out"] >= 0.95


@pytest.mark.parametrize("seed", range(5))
def test_a_blind_decoder_guesses(seed):
    blind = RECORD["by_seed"][seed]["blind"]
    assert blind["exact"]["fresh"] < 0.02
    assert blind["exact"]["held_out"] == 0
    assert blind["words"]["fresh"] > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_a_classifier_falls_behind_on_held_out_triples(seed):
    found = RECORD["by_seed"][seed]
    assert found["template"]["exact"]["fresh"] > 0.95
    assert (
        found["template"]["exact"]["held_out"] < found["attention"]["exact"]["held_out"] - 0.02
    )


@pytest.mark.parametrize("seed", range(5))
def test_attention_looks_at_what_it_names(seed):
    for found in RECORD["by_seed"][seed]["attention"]["looks"].values():
        for word in ("colour", "shape"):
            assert found[word] > 1.4 * found["area"]
            assert found[word] > 5 * found["other"]


def test_every_kind_had_the_same_tuning():
    for found in RECORD["by_seed"]:
        for kind in KINDS:
            trial = found[kind]["trial"]
            assert len(trial) == 2
            assert str(found[kind]["rate"]) == min(trial, key=trial.get)


def test_plot_shows_every_seed():
    left, right = captioning.plot(RECORD).axes
    drawn = {tuple(line.get_ydata()) for line in left.lines}
    assert drawn == {
        tuple(seed[kind]["exact"][group] for seed in RECORD["by_seed"])
        for kind in KINDS
        for group in captioning.GROUPS
    }
    assert len(right.lines) == 8
