"""The book as PDF, as `make site` has printed it, against the pages that it is made of."""

import contextlib
import html
import multiprocessing
import re
import unicodedata
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import pypdfium2
import pytest
from bs4 import BeautifulSoup
from course_book import data
from course_site import pdf, pdf_document, pins
from pypdf import PdfReader
from watching import SITE

MADE = SITE / "downloads" / pdf.NAME
NAMES = [n for part in pdf_document.parts(data.ROOT / "_toc.yml") for n in part.chapters]
CONTROLS = ("Show code cell", "Click to show", "Run in your browser", "Copy to clipboard")


def squeezed(text):
    """Return text without blanks and accents: a line of a PDF breaks anywhere."""
    letters = unicodedata.normalize("NFD", text)
    return "".join(c for c in letters if not c.isspace() and not unicodedata.combining(c))


def page_of(name):
    """Return the built page of a chapter, parsed."""
    text = (SITE / "book" / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").select_one("article.bd-article")


class Printed:
    """The PDF: the text of each page, the targets of links, the outline."""

    def __init__(self, path):
        self.reader = PdfReader(path)
        self.size = path.stat().st_size
        # pypdf would take two minutes to read the texts, and PDFium seconds.
        with contextlib.closing(pypdfium2.PdfDocument(path)) as document:
            self.texts = [page.get_textpage().get_text_bounded() for page in document]
        self.targets, _ = pdf.pages_of(path)

    def outline(self, entries=None, level=0):
        """Return the entries of the outline: level, title and page."""
        found = []
        for entry in self.reader.outline if entries is None else entries:
            if isinstance(entry, list):
                found += self.outline(entry, level + 1)
            else:
                number = self.reader.get_destination_page_number(entry) + 1
                found.append((level, entry.title, number))
        return found

    def chapter(self, name):
        """Return the text of the pages of a chapter, up to the next one."""
        first = self.targets[name]
        later = [self.targets[n] for n in (*NAMES, pdf_document.SOLUTIONS)]
        after = min(number for number in later if number > first)
        return "\n".join(self.texts[first - 1 : after - 1])


@pytest.fixture(scope="module")
def printed():
    """Read the PDF once."""
    if not MADE.is_file():
        pytest.fail(f"{MADE} is not there; run `make site` first")
    return Printed(MADE)


@pytest.fixture(scope="module")
def chapters():
    """Read the built pages once."""
    return {name: page_of(name) for name in NAMES}


def test_it_is_a_book_of_some_hundred_pages_that_can_be_sent(printed):
    print(f"\n{len(printed.texts)} pages, {printed.size / 1e6:.1f} MB")
    assert 200 < len(printed.texts) < 1500
    assert printed.size < 25e6
    empty = [i for i, text in enumerate(printed.texts, 1) if not text.strip()]
    assert empty == []


def test_every_page_of_the_site_leads_to_it(chapters):
    for name in chapters:
        text = (SITE / "book" / f"{name}.html").read_text(encoding="utf-8")
        assert f'href="../downloads/{pdf.NAME}"' in text, name


def test_every_chapter_begins_with_its_title_where_the_outline_says(printed, chapters):
    outline = {(title, number) for _, title, number in printed.outline()}
    for name, article in chapters.items():
        title = " ".join(article.h1.get_text().rstrip("#¶").split())
        number = printed.targets[name]
        assert (title, number) in outline, name
        assert squeezed(title) in squeezed(printed.texts[number - 1]), name


def test_the_contents_say_the_page_on_which_each_chapter_begins(printed, chapters):
    last = printed.targets[NAMES[0]] - 1
    contents = " ".join(printed.texts[1:last])
    for name, article in chapters.items():
        title = squeezed(article.h1.get_text().rstrip("#¶"))
        assert f"{title}{printed.targets[name]}" in squeezed(contents), name
    numbers = [printed.targets[name] for name in NAMES]
    assert numbers == sorted(numbers)


def test_the_number_at_the_foot_is_the_number_of_the_page(printed):
    for number in (*range(2, len(printed.texts), 29), len(printed.texts)):
        assert str(number) in printed.texts[number - 1].split(), number
    assert "1" not in printed.texts[0].split()


def test_every_link_inside_leads_to_a_page(printed):
    inside, outside, lost = 0, 0, []
    for page in printed.reader.pages:
        for reference in page.get("/Annots", ()):
            link = reference.get_object()
            if link.get("/Subtype") != "/Link":
                continue
            action = link.get("/A", {})
            if "/URI" in action:
                outside += 1
                if not action["/URI"].startswith(("http://", "https://")):
                    lost.append(action["/URI"])
                continue
            inside += 1
            target = link.get("/Dest", action.get("/D"))
            if isinstance(target, str) and not printed.targets.get(
                pdf_document.unquote(target.removeprefix("/"))
            ):
                lost.append(target)
    assert lost == []
    assert inside > 2000
    assert outside > 5


def numbered(article):
    """Return the numbers of a page: equations, figures and exercises."""
    captions = [c.get_text().strip() for c in article.select("figcaption .caption-number")]
    return {
        "equations": [e.get_text().strip("#¶ ") for e in article.select(".eqno")],
        "figures": captions,
        "exercises": [
            re.search(r"Exercise \d+", e.get_text())[0]
            for e in article.select("div.exercise > .admonition-title")
        ],
    }


def test_equations_figures_and_exercises_have_the_numbers_of_the_pages(printed, chapters):
    counts = Counter()
    for name, article in chapters.items():
        text = squeezed(printed.chapter(name))
        for kind, numbers in numbered(article).items():
            counts[kind] += len(numbers)
            for number in numbers:
                assert squeezed(number) in text, f"{name}: {kind} {number}"
    assert min(counts[kind] for kind in ("equations", "exercises")) > 50
    assert counts["figures"] > 10


def test_every_exercise_has_its_solution_at_the_end_and_says_the_page(printed, chapters):
    end = squeezed("".join(printed.texts[printed.targets[pdf_document.SOLUTIONS] - 1 :]))
    solved = 0
    for name, article in chapters.items():
        text = squeezed(printed.chapter(name))
        assert "Solutionto" not in text
        for solution in article.select("div.solution"):
            solved += 1
            number = printed.targets[f"{name}--{solution['id']}"]
            assert f"Solution:page{number}" in text, solution["id"]
            title = solution.select_one(".admonition-title").find(string=re.compile("Exercise"))
            assert squeezed("Solution to" + re.search(r"Exercise \d+", title)[0]) in end
    assert solved > 50


def test_every_figure_of_the_pages_is_in_it(printed, chapters):
    """A picture that does not load stops the print; words in pictures are read here."""
    documents, _ = pdf.document(data.ROOT, SITE, "1")
    pictures = re.findall(r'<img\b[^>]*?\balt="([^"]*)"', documents)
    wanted = Counter(i["alt"] for article in chapters.values() for i in article.select("img"))
    found = Counter(map(html.unescape, pictures))
    assert sum(wanted.values()) > 50
    assert wanted - found == Counter()
    read = 0
    for name, article in chapters.items():
        text = squeezed(printed.chapter(name))
        for image in article.select('img[src$=".svg"]'):
            drawing = (SITE / "book" / image["src"]).read_text(encoding="utf-8")
            words = re.findall(r"<text[^>]*>([^<]+)</text>", drawing)
            read += bool(words)
            for word in words:
                assert squeezed(html.unescape(word)) in text, f"{name}: {image['src']}"
    assert read > 4


def test_no_formula_is_left_as_source_and_no_reference_is_open(printed):
    for number, text in enumerate(printed.texts, 1):
        for sign in (r"\(", r"\[", "??", "{eq}", "{ref}", "mjx-"):
            assert sign not in text, f"page {number}: {sign}"


def test_nothing_is_a_control(printed):
    assert "/AcroForm" not in printed.reader.trailer["/Root"]
    for number, text in enumerate(printed.texts, 1):
        for words in CONTROLS:
            assert words not in text, f"page {number}: {words}"


def test_folded_code_is_left_out(printed, chapters):
    """D09 of the collected cases: what a page hides is not printed by the way."""
    folded = [
        (name, squeezed(code.get_text()))
        for name, article in chapters.items()
        for code in article.select("details.above-input pre")
    ]
    assert len(folded) > 20
    for name, code in folded:
        assert code[:200] not in squeezed(printed.chapter(name)), name


# ---------------------------------------------------------------- what is refused

FILES, FIGURES = "all files of the pages must be there", "all figures must be there"
FRAME = '<!doctype html><html lang="en"><body><h1 id="a">A</h1>{}</body></html>'


@pytest.fixture(scope="module")
def make():
    """Make a PDF in a process of its own: only one Playwright may run in each.

    The other tests of this folder keep theirs until the last of them.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        yield lambda *args: pool.submit(pdf.make, *args).result()


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ('<img src="../missing.svg" alt="x">', FILES),
        ('<img src="data:image/png;base64,AAAA" alt="x">', FIGURES),
        (
            '<img src="http://example.org/x.png" alt="x">',
            "all files of the pages must be there",
        ),
        (r'<span class="math">\(x\)</span>', "all formulas must be typeset"),
        (
            '<script src="../_static/mathjax/tex-chtml.js"></script>'
            r'<p class="math">\(\frac{1}\)</p>',
            "all formulas must be right",
        ),
        (
            '<script src="../_static/mathjax/tex-chtml.js"></script>'
            r'<p class="math">\(\nosuchmacro{1}\)</p>',
            "all formulas must be right",
        ),
    ],
)
def test_a_fault_is_refused_and_leaves_nothing(make, body, rule, tmp_path):
    target = tmp_path / "book.pdf"
    with pytest.raises(pins.SiteError, match=rule):
        make(FRAME.format(body), SITE, target)
    assert list(tmp_path.iterdir()) == []


def test_wide_formulas_and_tables_are_made_to_fit(make, tmp_path):
    row = "".join(f"<td>word{i}</td>" for i in range(40))
    terms = " + ".join(f"x_{{{i}}}" for i in range(60))
    style = Path(pdf.__file__).with_name("pdf.css").read_text(encoding="utf-8")
    body = (
        f"<style>{style}</style>"
        '<script src="../_static/mathjax/tex-chtml.js"></script>'
        f'<div><table class="table"><tr>{row}</tr></table></div>'
        rf'<div class="math">\[{terms} = y\]</div>'
    )
    target = tmp_path / "book.pdf"
    assert make(FRAME.format(body), SITE, target) == 1
    boxes = []

    def see(text, page, at, _font, _size):
        if text.strip():
            boxes.append(page[0] * at[4] + page[2] * at[5] + page[4])

    page = PdfReader(target).pages[0]
    page.extract_text(visitor_text=see)
    assert len(boxes) > 40
    assert min(boxes) > 50  # 18 mm of 595 points
    assert max(boxes) < 545


def test_page_numbers_are_those_of_the_targets(make, tmp_path):
    place = '<p><a href="#far">at <span data-page-of="far">0000</span></a></p>'
    style = 'style="break-before: page"'
    body = f'{place}<p {style} id="near">x</p><p id="far" {style}>y</p>'
    body += '<div hidden><a href="#near"></a></div>'
    target = tmp_path / "book.pdf"
    outline = [(0, "First", "near"), (1, "Below", "far"), (0, "Again", "near")]
    assert make(FRAME.format(body), SITE, target, outline) == 3
    made = Printed(target)
    assert made.targets == {"near": 2, "far": 3}
    assert "at 3" in made.texts[0]
    assert made.outline() == [(0, "First", 2), (1, "Below", 3), (0, "Again", 2)]
    assert made.reader.trailer["/Root"]["/Lang"] == "en"


def test_pages_are_in_the_order_of_the_book(printed):
    starts = [printed.targets[name] for name in NAMES]
    assert all(a < b for a, b in pairwise(starts))
