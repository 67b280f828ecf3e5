"""The whole book as one PDF, printed by Chromium from the built pages.

``pdf_document`` makes one document of the pages. Chromium shows it from memory and from the
files of the site, without a server and without another host. It is printed twice or more: the
first print tells on which page each target lies, the next has these numbers in it. The outline
is added then, since Chromium makes one of a tagged PDF alone, which it prints much slower.
"""

import html
import mimetypes
import os
import re
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from course_site import pdf_document
from course_site.pins import SiteError

NAME = "recurrent-neural-networks-and-transformers.pdf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--disable-gpu", "--disable-background-networking", "--disable-component-update")
# No name of a host is a real one: every request is answered from the site's files.
ORIGIN = "http://book.invalid"
ADDRESS = f"{ORIGIN}/book/the-whole-book.html"
# A4 without its margins, in pixels of 1/96 inch; pdf.css sets the margins.
WIDTH, HEIGHT = 658, 971
PRINTS = 4  # the first finds the numbers of pages, the second shows them
PATIENCE = 900_000  # milliseconds; formulas are typeset in one, on a busy machine in minutes
_TYPESET = """async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
  return {
    broken: [...document.images].filter((i) => !i.naturalWidth).map((i) => i.src),
    faulty: [...document.querySelectorAll("mjx-merror, mjx-mtext[style*='color: red']")]
      .map((e) => e.closest("mjx-container").parentElement.outerHTML.slice(0, 200)),
    missing: [...document.querySelectorAll(".math")]
      .filter((e) => !e.querySelector("mjx-container")).map((e) => e.textContent),
  };
}"""
# What is wider than the paper is made smaller, since nobody can scroll it.
_FIT = """() => {
  for (const formula of document.querySelectorAll("div.math")) {
    const width = formula.scrollWidth;
    if (width > formula.clientWidth + 1)
      formula.style.fontSize = `${Math.max(50, Math.floor(99 * formula.clientWidth / width))}%`;
  }
  for (const table of document.querySelectorAll("table")) {
    const room = table.parentElement.clientWidth;
    if (table.scrollWidth > room + 1)
      table.style.zoom = Math.max(0.5, Math.floor(99 * room / table.scrollWidth) / 100);
  }
}"""
PLACE = re.compile(r'(data-page-of="([^"]*)">)[^<]*<')


def browser():
    """Return the path of Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def missing():
    """Return what this machine lacks for the PDF, or None."""
    for package in ("playwright", "pypdf"):
        if find_spec(package) is None:
            return f"{package}; pip install -r requirements.txt"
    return None if browser() else "Chromium or Chrome, which prints the book"


def cover(title, version, licence="Text and figures CC BY 4.0, code MIT"):
    """Return the first page as HTML."""
    return (
        f'<h1 class="cover-title">{html.escape(title)}</h1>'
        "<p>The book of the course</p>"
        '<img src="../_static/attention.svg" alt="Three tables of five tokens by five: scores, '
        'a mask, and the weights of the softmax">'
        f'<p class="cover-foot">Version {html.escape(version)}. {html.escape(licence)}.</p>'
        f'<div class="about">{pdf_document.ABOUT}</div>'
    )


def document(root, html_dir, version):
    """Return the book as one HTML document, and the entries of its outline.

    Parameters
    ----------
    root : Path
        The checkout, with ``_config.yml`` and ``_toc.yml``.
    html_dir : Path
        The built site.
    version : str
        Version of the course's package, for the first page.
    """
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    title = settings["title"]
    style = Path(__file__).with_name("pdf.css").read_text(encoding="utf-8")
    book = pdf_document.Book(html_dir, root / "_toc.yml", title)
    return book.document(style, cover(title, version)), book.outline()


def pages_of(path):
    """Return the pages of the targets of a PDF, name to number, and how many pages it has."""
    from pypdf import PdfReader

    reader = PdfReader(path)
    numbers = {page.indirect_reference.idnum: i for i, page in enumerate(reader.pages, 1)}
    found = {}
    for name, target in reader.named_destinations.items():
        place = target.get("/Page")
        found[unquote(name.removeprefix("/"))] = numbers.get(getattr(place, "idnum", None))
    return found, len(reader.pages)


def add_outline(path, outline, pages):
    """Append an outline to a PDF, and that it is in English.

    Parameters
    ----------
    path : Path
    outline : list of (int, str, str)
        Level, title, and name of the place.
    pages : dict
        Number of the page of each place.
    """
    from pypdf import PdfWriter
    from pypdf.generic import NameObject, TextStringObject

    writer = PdfWriter(path, incremental=True)
    above = []
    for level, title, name in outline:
        del above[level:]
        parent = above[-1] if above else None
        number = pages[name] - 1
        above.append(writer.add_outline_item(title=title, page_number=number, parent=parent))
    writer.page_mode = "/UseOutlines"
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    writer.write(path)


def make(text, html_dir, target, outline=()):
    """Print a document that is made of the site's pages; return its number of pages.

    Parameters
    ----------
    text : str
        The document, as if it were a page in the folder ``book`` of the site.
    html_dir : Path
        The site, with style sheets, MathJax and figures.
    target : Path
        The PDF, which is replaced when all of it is written.
    outline : list of (int, str, str)
        Level, title, and id of the place, each of which a link leads to.

    Raises
    ------
    SiteError
        If a figure or a file is missing, a formula is wrong, or the numbers of pages move what
        they count.
    """
    from playwright.sync_api import sync_playwright

    numbers = {}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        made = Path(scratch) / "book.pdf"
        chromium = playwright.chromium.launch(executable_path=browser(), args=list(FLAGS))
        for _ in range(PRINTS):
            _print(chromium, with_numbers(text, numbers), html_dir, made)
            found, count = pages_of(made)
            moved = [name for name in found if found[name] != numbers.get(name)]
            numbers = found
            if not moved:
                break
        chromium.close()
        _refuse("the numbers of pages must not move what they count", moved)
        add_outline(made, outline, numbers)
        part = target.with_name(f".{target.name}.part")
        shutil.copyfile(made, part)
        os.replace(part, target)
    return count


def with_numbers(text, numbers):
    """Return a document in which each place for the number of a page has it, where known."""
    return PLACE.sub(lambda m: f"{m[1]}{numbers.get(html.unescape(m[2]), '0000')}<", text)


def _print(chromium, text, html_dir, path):
    """Print a document, each time from a new page: a second print of one breaks elsewhere."""
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.set_default_timeout(PATIENCE)
    lost = _serve(page, text, html_dir)
    page.emulate_media(media="print", color_scheme="light")
    page.goto(ADDRESS, wait_until="load")
    state = page.evaluate(_TYPESET)
    _refuse("all files of the pages must be there", lost)
    _refuse("all figures must be there", state["broken"])
    _refuse("all formulas must be right", state["faulty"])
    _refuse("all formulas must be typeset", state["missing"])
    page.evaluate(_FIT)
    page.pdf(path=path, prefer_css_page_size=True, print_background=True, tagged=False)
    page.close()


def _refuse(rule, faults):
    if faults:
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise SiteError(f"{rule}, got {', '.join(map(str, faults[:5]))}{more}")


def _serve(page, text, html_dir):
    """Answer the page's requests from the site; return a list that takes what is not there."""
    lost = []

    def answer(route):
        address = urlsplit(route.request.url)
        path = html_dir / unquote(address.path).lstrip("/")
        if route.request.url == ADDRESS:
            route.fulfill(body=text, content_type="text/html; charset=utf-8")
        elif route.request.url.startswith(ORIGIN) and path.is_file():
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            route.fulfill(path=path, content_type=kind)
        else:
            lost.append(route.request.url)
            route.abort()

    page.route("**/*", answer)
    return lost
