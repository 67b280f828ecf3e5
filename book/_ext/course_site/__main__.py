"""``python -m course_site prepare|pdf|pack``: the steps of ``make site`` beside the book."""

import argparse
import sys
from pathlib import Path

from course_book.data import ROOT

import seqlib
from course_site import lite, pack, pdf, pins

HTML = ROOT / "_build" / "html"


def megabytes(size):
    """Return a size as text."""
    return f"{size / 1e6:.0f} MB"


def prepare(wheels):
    """Build what is laid over the book; say in one line what is missing."""
    try:
        site = lite.prepare(ROOT, wheels)
    except pins.Missing as missing:
        print(f"No notebooks in the browser, since this is missing: {missing}")
        return
    counts = f"{len(site.assignments)} assignments and {len(site.chapters)} chapters"
    print(f"In the browser: {counts}, with {site.versions}")


def print_book():
    """Print the book that is built, if the site was prepared for that."""
    site = lite.ready(ROOT)
    if site is None or not (HTML / "downloads").is_dir():
        raise pins.SiteError("the site must be prepared and the book built; say `make site`")
    if not site.pdf:
        reason = pdf.missing() or "a set-up that had it; say `make site` again"
        print(f"No book as PDF, since this is missing: {reason}")
        return
    target = ROOT / ".site" / "tree" / "downloads" / site.pdf
    text, outline = pdf.document(ROOT, HTML, seqlib.__version__)
    pages = pdf.make(text, HTML, target, outline)
    lite.add_download(ROOT, HTML, site.pdf)
    size = megabytes(target.stat().st_size)
    print(f"As a PDF      _build/html/downloads/{site.pdf}, {pages} pages, {size}")


def make_archive():
    """Write the archive; say how large the site is."""
    pack.name_icon(HTML / "index.html")
    size = pack.pack(HTML, HTML.with_name("site.zip"))
    files = [path.stat().st_size for path in HTML.rglob("*") if path.is_file()]
    print(f"The site      _build/html, {len(files)} files, {megabytes(sum(files))}")
    print(f"Without net   _build/site.zip, {megabytes(size)}; unpack it, then python serve.py")
    if not (HTML / "lite").is_dir():
        print("Notebooks that run in the browser are not part of it; the lines above say why.")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="course_site", description=__doc__)
    parser.add_argument("step", choices=["prepare", "pdf", "pack"])
    parser.add_argument("--wheels", type=Path, help="a folder with official wheels of Pyodide")
    given = parser.parse_args()
    if given.wheels is not None and not given.wheels.is_dir():
        sys.exit(f"error: WHEELS must name a folder, got {given.wheels}")
    try:
        if given.step == "prepare":
            prepare(given.wheels)
        else:
            {"pdf": print_book, "pack": make_archive}[given.step]()
    except pins.SiteError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
