"""Drawn diagrams: committed files, colours, text that is legible and lies where it should."""

import re
from itertools import pairwise

import numpy as np
import pytest

from seqlib.experiments import style
from seqlib.experiments.diagrams import DIAGRAMS, FOLDER, __main__
from seqlib.experiments.diagrams.sheet import WORD, Sheet

ROOT = FOLDER.parents[1]
PHONE = 342  # pixels that a page of 390 leaves for a figure
PALETTE = {style.TEXT, style.PALE, style.DEEP, *style.COLORS, "#000000", "#ffffff"}


@pytest.fixture(params=DIAGRAMS)
def name(request):
    return request.param


def test_committed_file_is_what_the_code_draws(name, tmp_path):
    DIAGRAMS[name]().save(tmp_path / "drawn.svg")
    assert (tmp_path / "drawn.svg").read_bytes() == (FOLDER / f"{name}.svg").read_bytes()


def test_command_draws_every_diagram(tmp_path, monkeypatch):
    monkeypatch.setattr(__main__, "DIAGRAMS", {"one": lambda: Sheet(40, 40)})
    __main__.main(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]


def test_colours_are_those_of_the_palette(name):
    text = (FOLDER / f"{name}.svg").read_text()
    assert set(re.findall(r"#[0-9a-f]{6}\b", text)) <= PALETTE
    assert not re.search(r"(?:fill|stroke): (?!none|#)|<text|<image|rgb\(", text)
    assert 'id="DejaVuSans' in text  # glyphs are outlines


def box_of(text):
    """Return left, bottom, right and top of a text in pixels of its sheet."""
    found = text.get_window_extent(text.figure.canvas.get_renderer())
    return found.x0, found.y0, found.x1, found.y1


def drawn(name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    sheet = DIAGRAMS[name]()
    FigureCanvasAgg(sheet.figure)
    return sheet


def sides(node):
    return (
        node.x - node.width / 2,
        node.y - node.height / 2,
        node.x + node.width / 2,
        node.y + node.height / 2,
    )


def apart(one, two):
    return one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]


def test_text_lies_in_its_box_and_boxes_lie_apart(name):
    sheet = drawn(name)
    boxes = [sides(node) for node in sheet.nodes]
    for node, box in zip(sheet.nodes, boxes, strict=True):
        left, bottom, right, top = box_of(sheet.texts[node])
        assert box[0] + 1 <= left, node.text
        assert right <= box[2] - 1, node.text
        assert box[1] <= bottom, node.text
        assert top <= box[3], node.text
    labels = [box_of(label) for label in sheet.labels]
    for i, one in enumerate(boxes + labels):
        assert 0 <= one[0] <= one[2] <= sheet.width
        assert 0 <= one[1] <= one[3] <= sheet.height
        for two in (boxes + labels)[:i]:
            assert apart(one, two), (one, two)


def test_lines_run_between_boxes_and_beside_labels(name):
    sheet = drawn(name)
    labels = [box_of(label) for label in sheet.labels]
    boxes = [tuple(np.add(sides(node), (1, 1, -1, -1))) for node in sheet.nodes]
    for points in sheet.lines:
        assert np.min(points) >= 0
        assert (np.max(points, axis=0) <= (sheet.width, sheet.height)).all()
        for start, end in pairwise(points):
            for share in np.linspace(0, 1, 50):
                x, y = (1 - share) * np.array(start) + share * np.array(end)
                for box in boxes + labels:
                    assert not (box[0] < x < box[2] and box[1] < y < box[3]), (start, end, box)


def test_text_is_legible_on_a_phone(name):
    sheet = DIAGRAMS[name]()
    assert WORD * min(1, PHONE / sheet.width) >= 10
    assert min(t.get_fontsize() for t in [*sheet.labels, *sheet.texts.values()]) >= 0.75 * WORD


@pytest.mark.parametrize("color", [style.PALE, style.DEEP])
def test_text_in_boxes_stands_out(color):
    ink = "#000000" if color == style.PALE else "#ffffff"
    assert style.contrast(ink, color) >= 4.5


def test_pages_show_the_diagrams_with_a_text():
    shown = set()
    for page in sorted((ROOT / "book").glob("*.md")):
        for found, options in re.findall(
            r"```\{figure\} _static/([a-z0-9-]+)\.svg\n((?::.*\n)+)", page.read_text()
        ):
            assert re.search(r"^:alt: \S.{80,}$", options, re.MULTILINE), found
            assert re.search(rf"^:name: figure-{found}$", options, re.MULTILINE), found
            shown.add(found)
    assert shown <= set(DIAGRAMS)
    waiting = set() if (ROOT / "book" / "decoder.md").exists() else {"decoder-model"}
    assert set(DIAGRAMS) - shown == waiting
