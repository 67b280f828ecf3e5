"""The built book in _build/html: everything local, every link leads somewhere.

`make test` builds it first; alone: `make book`.
"""

import functools
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from course_book import data
from course_book import sections as book_sections

from seqlib.exercises import ASSIGNMENTS
from seqlib.judge import result

SITE = data.ROOT / "_build" / "html"
PAGES = [f"book/{path.stem}.html" for path in sorted((data.ROOT / "book").glob("*.md"))]


@functools.cache
def soup(page):
    """Parse a page, once for all tests: none of them changes it."""
    path = SITE / page
    assert path.is_file(), f"{path} is not there; run `make book` first"
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@functools.cache
def anchors(page):
    """Return the ids that a link to the page can lead to."""
    return {tag["id"] for tag in soup(page).select("[id]")}


def loaded(page):
    """Return the addresses that a browser asks for when it opens the page."""
    html = soup(page)
    found = [tag["src"] for tag in html.select("[src]")]
    found += [tag["href"] for tag in html.select("link[href]")]
    return found + [tag["srcset"] for tag in html.select("[srcset]")]


def foreign(address):
    return bool(urlsplit(address).netloc)


def test_the_first_page_is_the_index():
    assert "book/intro.html" in (SITE / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_no_page_loads_anything_from_another_host(page):
    addresses = loaded(page)
    assert len(addresses) > 10
    assert [address for address in addresses if foreign(address)] == []


def test_style_sheets_load_nothing_from_another_host():
    sheets = list(SITE.rglob("*.css"))
    assert len(sheets) > 5
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        used = re.findall(r"url\(\s*['\"]?([^'\")]+)", text) + re.findall(
            r"@import\s+\S+", text
        )
        assert [address for address in used if "//" in address.split(",")[0]] == [], sheet.name


def test_the_check_on_hosts_sees_a_foreign_one():
    assert foreign("https://cdn.example.org/x.js")
    assert foreign("//cdn.example.org/x.js")
    assert not foreign("../_static/x.js?digest=1")
    assert not foreign("data:image/png;base64,x")


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_loads_is_there(page):
    for address in loaded(page):
        if not address.startswith("data:"):
            path = (SITE / page).parent / unquote(urlsplit(address).path)
            assert path.resolve().is_file(), address


@pytest.mark.parametrize("page", ["book/attention.html", "book/equations.html"])
def test_mathjax_comes_from_the_site(page):
    scripts = [address for address in loaded(page) if "mathjax" in address.lower()]
    assert len(scripts) == 1
    assert scripts[0].startswith("../_static/mathjax/tex-chtml.js")


@pytest.mark.parametrize("page", PAGES)
def test_links_inside_the_book_lead_somewhere(page):
    checked = 0
    for link in soup(page).select("a[href]"):
        parts = urlsplit(link["href"])
        if parts.scheme or parts.netloc or parts.path.startswith("javascript"):
            continue
        target = (SITE / page).parent / unquote(parts.path) if parts.path else SITE / page
        assert target.resolve().is_file(), link["href"]
        if parts.fragment and target.suffix == ".html":
            other = target.resolve().relative_to(SITE).as_posix()
            assert unquote(parts.fragment) in anchors(other), link["href"]
        checked += 1
    assert checked > 10


def test_every_section_that_a_task_names_has_the_anchor_that_a_diagnosis_shows():
    labels = set().union(*map(book_sections.used, ASSIGNMENTS)) - set(book_sections.pending())
    assert len(labels) > 100
    for label in labels:
        page, _, anchor = result.address(label).partition("#")
        assert not anchor or anchor in anchors(f"book/{page}"), label


@pytest.mark.parametrize("page", PAGES)
def test_every_image_says_what_is_seen(page):
    for image in soup(page).select("article img"):
        text = image.get("alt", "")
        assert len(text) > 10, image
        assert text != image["src"]


@pytest.mark.parametrize("row", data.equations(), ids=lambda row: row.label)
def test_each_equation_shows_the_number_of_the_notes(row):
    """In its chapter, and on the page of equations."""
    for page, anchor in [
        (f"book/{row.page}.html", f"equation-{row.label}"),
        ("book/equations.html", f"copy-of-{row.label}"),
    ]:
        block = soup(page).find(id=anchor)
        assert block is not None, f"{page} has no {anchor}"
        number = block.find(class_="eqno") or block.find_next(class_="eqno")
        assert number.get_text().startswith(f"({row.number})")


def test_verdicts_in_the_table_are_those_of_the_cells():
    html = soup("book/claims.html")
    rows = [
        [cell.get_text(strip=True) for cell in row.select("td")]
        for row in html.select("tbody tr")
    ]
    shown = {cells[0]: cells[2] for cells in rows}
    verdict = r"^(C\d+): (confirmed|qualified|refuted)$"
    printed = dict(re.findall(verdict, html.get_text(), re.M))
    pending = {c.name: "pending" for c in data.claims() if c.pending is not None}
    assert shown == printed | pending
    assert not printed.keys() & pending.keys()
    assert list(shown) == [claim.name for claim in data.claims()]


@pytest.mark.parametrize("page", PAGES)
def test_pages_with_cells_download_as_notebooks(page):
    source = data.ROOT / Path(page).with_suffix(".md")
    has_cells = "```{code-cell}" in source.read_text(encoding="utf-8")
    links = [link["href"] for link in soup(page).select("a.btn-download-notebook-button")]
    assert len(links) == has_cells
    if has_cells:
        assert ((SITE / page).parent / links[0]).resolve().is_file()
