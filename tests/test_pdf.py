"""The book as one document: links that stay inside, nothing folded; and how it is set up."""

import re
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from course_site import __main__ as command
from course_site import buttons, lite, pdf, pdf_document, pins

PAGE = """<!doctype html><html><head>
<link rel="stylesheet" href="../_static/a.css"><link rel="icon" href="x.svg">
<script>window.MathJax = {{}}</script><script src="../_static/mathjax/tex-chtml.js"></script>
<script src="../_static/other.js"></script></head><body><button>Menu</button>
<article class="bd-article"><section id="start"><h1>{title}<a class="headerlink"
href="#start">#</a></h1><p class="course-run">Run it.</p>{body}
</section></article></body></html>"""
FIRST = """<p>To <a href="second.html#there">there</a>, <a href="second.html">the second</a>,
<a href="#section">below</a>, <a href="https://example.org/">outside</a> and
<a href="../_sources/book/first.ipynb">the notebook</a>.</p>
<section id="section"><span id="old"></span><h2>A <em>section</em></h2>
<div class="sd-tab-set"><input checked id="tab-0" type="radio"><label class="sd-tab-label"
for="tab-0">NumPy</label><div class="sd-tab-content">of NumPy</div><input id="tab-1"
type="radio"><label class="sd-tab-label" for="tab-1">PyTorch</label><div
class="sd-tab-content">of PyTorch</div></div>
<div class="cell tag_hide-input"><details class="above-input"><summary>Show</summary>plot()
</details><div class="cell_output"><img alt="A plot" src="../_images/p.png"></div></div>
<div class="cell tag_hide-input"><details class="above-input"><summary>Show</summary>assert 1
</details></div>
<details class="sd-dropdown"><summary><span class="sd-summary-text">Hint</span></summary>
<div class="sd-summary-content"><p>think</p></div></details>
<div class="exercise admonition" id="one"><p class="admonition-title">Exercise 1</p></div>
<div class="solution dropdown admonition" id="book/first-solution-1"><p
class="admonition-title">Solution to <a href="#one">Exercise 1</a></p>
<section id="solution-content"><p>It is 1.</p>
</section></div>
<div class="exercise admonition" id="two"><p class="admonition-title">Exercise 2</p></div>
<div class="solution dropdown admonition" id="book/first-solution-3"><p
class="admonition-title">Solution to <a href="#two">Exercise 2</a></p>
<section id="solution-content"><p>It is 2.</p>
</section></div>
<div class="selftest"><ol><li><p>Which?</p><details class="selftest-choice"><summary>A. this
</summary><div>Right.</div></details></li></ol><div class="selftest-key"><p>A.</p></div></div>
</section>"""
SECOND = """<section id="section"><h2>Its section</h2><p id="there">Back to
<a href="first.html#old">the first</a>.</p><audio aria-label="A tone" src="data:x"></audio>
</section>"""
TOC = """format: jb-book
root: book/first
parts:
  - caption: The part
    chapters:
      - file: book/second
"""


@pytest.fixture
def site(tmp_path):
    """Return a checkout with a built book of two pages."""
    pages = tmp_path / "html" / "book"
    pages.mkdir(parents=True)
    for name, title, body in [("first", "One", FIRST), ("second", 'The "two"', SECOND)]:
        text = PAGE.format(title=title, body=body)
        (pages / f"{name}.html").write_text(text, encoding="utf-8")
    (tmp_path / "_toc.yml").write_text(TOC, encoding="utf-8")
    (tmp_path / "_config.yml").write_text("title: A & B\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def document(site):
    """Return the document of the two pages, parsed."""
    return BeautifulSoup(pdf.document(site, site / "html", "1.2.3")[0], "html.parser")


def test_links_between_pages_become_links_inside_of_the_document(document):
    links = {a.get_text(): a["href"] for a in document.select("#first p a")}
    assert links["there"] == "#second--there"
    assert links["the second"] == "#second"
    assert links["below"] == "#first--section"
    assert links["outside"] == "https://example.org/"
    assert document.select_one("#second p a")["href"] == "#first--old"
    for link in document.select('a[href^="#"]'):
        assert document.find(id=link["href"][1:]) is not None


def test_a_link_to_what_is_not_in_the_book_is_plain_text(document):
    assert "the notebook" in document.select_one("#first p").get_text()
    assert not document.find_all("a", href=re.compile("ipynb"))


def test_ids_are_unique(document):
    ids = [element["id"] for element in document.find_all(id=True)]
    assert len(ids) == len(set(ids)) > 8


def test_nothing_is_folded_and_nothing_is_a_control(document):
    for name in ("details", "summary", "button", "input", "label", "audio"):
        assert document.find(name) is None
    text = document.select_one("#first").get_text()
    for shown in ("NumPy", "of NumPy", "PyTorch", "of PyTorch", "Hint", "think", "A. this"):
        assert shown in text
    for hidden in ("plot()", "Run it.", "#", "Right."):
        assert hidden not in text
    assert document.select_one("#first .cell_output img")["alt"] == "A plot"
    assert len(document.select("#first .cell")) == 1  # the other one had folded code alone
    assert "To be heard on the page: A tone." in document.select_one("#second").get_text()


def test_short_code_stays_on_a_page_and_all_code_is_as_it_was(site):
    def listing(lines):
        code = "<span></span>" + "\n".join(f'<span class="n">x &lt; {i}</span>' for i in lines)
        return f'<div class="highlight"><pre>{code}</pre></div>'

    short, long = listing(range(5)), listing(range(100, 100 + 2 * pdf_document.SHORT))
    change(site, "<p>To <a", f"{short}{long}<p>To <a")
    text, _ = pdf.document(site, site / "html", "1")
    assert short.replace('"highlight"', '"highlight short"') in text
    assert long in text
    assert pdf_document.ASIDE not in text


def test_solutions_and_answers_are_at_the_end_with_links_both_ways(document):
    assert "It is" not in document.select_one("#first").get_text()
    end = document.find(id="solutions--first")
    assert re.findall(r"It is \d", end.get_text()) == ["It is 1", "It is 2"]
    assert end.select_one(".selftest-key").get_text() == "A."
    for name in ("one", "two"):
        there = document.select_one(f"#first--{name} .turn-to a")["href"][1:]
        back = document.find(id=there).select_one(".admonition-title a")
        assert back["href"] == f"#first--{name}"
    assert document.find(id="solutions--second") is None


def test_the_contents_name_chapters_and_sections_each_with_a_place_for_its_page(document):
    entries = [
        (p["class"][0].removeprefix("entry-"), p.select_one(".entry-title").get_text().strip())
        for p in document.select(".book-contents p")
    ]
    assert entries == [
        ("chapter", "One"),
        ("section", "A section"),
        ("part", "The part"),
        ("chapter", 'The "two"'),
        ("section", "Its section"),
        ("part", "Solutions"),
    ]
    for link in document.select(".book-contents a"):
        assert link.select_one("[data-page-of]")["data-page-of"] == link["href"][1:]


def test_the_outline_names_every_heading_and_a_place_that_is_there(site, document):
    _, outline = pdf.document(site, site / "html", "1.2.3")
    assert [(level, title) for level, title, _ in outline] == [
        (0, "Contents"),
        (0, "One"),
        (1, "A section"),
        (0, "The part"),
        (1, 'The "two"'),
        (2, "Its section"),
        (0, "Solutions"),
        (1, "One"),
    ]
    for _, _, name in outline:
        assert document.find(id=name) is not None


def test_a_formula_in_an_outline_is_text():
    assert pdf_document.spoken(r"Why  \(\sqrt{d_k}\)") == "Why √d_k"
    assert pdf_document.spoken(r"It is \(\ln \lvert\mathcal V\rvert\)") == "It is ln |V|"


def test_headings_go_down_by_one_below_the_parts(document):
    assert [h.name for h in document.select("#first .level-1, #first .level-2")] == ["h2", "h3"]
    assert document.select_one("#part--the-part h1").get_text() == "The part"


def test_the_head_has_the_styles_and_mathjax_of_the_pages_alone(document):
    assert [link["href"] for link in document.select("link")] == ["../_static/a.css"]
    scripts = [s.get("src", s.get_text()) for s in document.select("script")]
    assert scripts[:2] == ["window.MathJax = {}", "../_static/mathjax/tex-chtml.js"]
    assert "enableMenu: false" in scripts[2]
    assert len(scripts) == 3
    assert document.title.get_text() == "A & B"
    assert r'content: "The \"two\""' in document.style.get_text()
    assert "Version 1.2.3" in document.select_one(".cover").get_text()


def change(site, old, new):
    path = site / "html" / "book" / "first.html"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_link_that_leads_nowhere_is_an_error(site):
    change(site, "second.html#there", "second.html#nowhere")
    with pytest.raises(pins.SiteError, match=r"lead to a place in it, got second--nowhere$"):
        pdf.document(site, site / "html", "1")


def test_a_page_that_is_not_built_is_an_error(site):
    (site / "html" / "book" / "second.html").unlink()
    with pytest.raises(pins.SiteError, match=r"second\.html is not there"):
        pdf.document(site, site / "html", "1")


def test_an_id_that_is_there_twice_is_an_error():
    with pytest.raises(pins.SiteError, match=r"must be unique, got x twice"):
        pdf_document.check_links('<p id="x"></p><p id="x"></p><p id="y"></p>')


# ---------------------------------------------------------------- the set-up


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(pdf, "find_spec", lambda _: True)
    monkeypatch.setattr(pdf.shutil, "which", lambda name: f"/bin/{name}")
    assert pdf.missing() is None
    monkeypatch.setattr(pdf.shutil, "which", lambda _: None)
    assert "Chromium" in pdf.missing()
    monkeypatch.setattr(pdf, "find_spec", lambda name: None if name == "pypdf" else name)
    assert "pypdf" in pdf.missing()


@pytest.fixture
def prepared(site, monkeypatch):
    """Return a function that prepares the checkout with or without a PDF."""
    monkeypatch.setattr(command, "ROOT", site)
    monkeypatch.setattr(command, "HTML", site / "html")

    def prepare(name):
        (site / ".site" / "part" / "tree" / "downloads").mkdir(parents=True)
        lite._finish(site / ".site", lite.Site(lite.key(site), "demo.whl", pdf=name))
        lite.lay_over(site, site / "html")
        return site

    return prepare


def test_without_chromium_no_pdf_is_made_and_one_line_says_why(prepared, monkeypatch, capsys):
    monkeypatch.setattr(pdf, "find_spec", lambda _: True)
    monkeypatch.setattr(pdf.shutil, "which", lambda _: None)
    site = prepared("")
    command.print_book()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1
    assert said[0].startswith("No book as PDF")
    assert "Chromium" in said[0]
    assert not list(site.rglob("*.pdf"))


def test_the_pdf_joins_the_downloads_of_the_site_and_of_the_next_book(
    prepared, monkeypatch, capsys
):
    def make(text, html_dir, target, outline):
        assert "It is 1." in text
        assert outline[1] == (0, "One", "first")
        target.write_bytes(b"%PDF of " + html_dir.name.encode())
        return 7

    monkeypatch.setattr(pdf, "make", make)
    site = prepared("book.pdf")
    command.print_book()
    assert "downloads/book.pdf, 7 pages" in capsys.readouterr().out
    made = site / "html" / "downloads" / "book.pdf"
    assert made.read_bytes() == b"%PDF of html"
    made.unlink()
    (site / "html" / "downloads" / "site.json").unlink()  # as in a book built from nothing
    lite.lay_over(site, site / "html")
    assert made.read_bytes() == b"%PDF of html"


def test_a_changed_table_of_contents_asks_for_a_new_pdf(prepared):
    site = prepared("book.pdf")
    assert lite.ready(site) is not None
    (site / "_toc.yml").write_text(TOC.replace("The part", "A part"), encoding="utf-8")
    assert lite.ready(site) is None
    with pytest.raises(pins.SiteError, match="must be prepared"):
        command.print_book()


def menu(site):
    """Return the buttons that a page with the theme's menu of downloads has then."""
    groups = [{"label": "download-buttons", "buttons": []}, {"label": "source-buttons"}]
    context = {"header_buttons": groups, "pathto": lambda target, _resource: f"../{target}"}
    buttons.offer_book(context, site)
    return groups[0]["buttons"]


def test_the_menu_of_downloads_has_the_book_where_it_was_made():
    (button,) = menu(lite.Site("key", "demo.whl", pdf="book.pdf"))
    assert button["url"] == "../downloads/book.pdf"
    assert menu(lite.Site("key", "demo.whl")) == []


@pytest.mark.parametrize(
    ("page", "name", "count"), [("a", "x.pdf", 1), ("b", "x.pdf", 0), ("a", "", 0)]
)
def test_the_first_page_links_to_the_book_where_it_was_made(page, name, count, monkeypatch):
    site = lite.Site("key", "demo.whl", pdf=name)
    monkeypatch.setattr(lite, "of", lambda _app: site)
    monkeypatch.setattr(buttons, "has_cells", lambda *_: False)
    config = SimpleNamespace(root_doc="book/a")
    app = SimpleNamespace(config=config, outdir="/none")
    context = {"body": "<h1>T</h1>", "pathto": lambda target, _resource: f"../{target}"}
    buttons._add(app, f"book/{page}", "", context, None)
    assert context["body"].count('<p class="course-run">') == count
    assert context["body"].count('href="../downloads/x.pdf"') == count
