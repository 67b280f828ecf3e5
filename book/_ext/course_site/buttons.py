"""How a page can be run: in the reader's browser, or at home. Every address is relative."""

import html
import re
from pathlib import Path

from course_book.download import has_cells

from course_site import lite
from course_site.contents import NOT_OFFERED

EXTRAS = "torch matplotlib jupyterlab"
PLACE = re.compile(r'<span class="run-notebook" data-name="(\w+)"></span>')
RUN = "Run in your browser"
WHOLE_BOOK = "The whole book as PDF"


def address(context, notebook):
    """Return the address of a notebook in JupyterLite, relative to the page."""
    start = context["pathto"]("lite/notebooks/index.html", 1)
    return f"{start}?path={notebook}"


def _link(target, text, **attributes):
    more = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items())
    return f'<a class="reference internal" href="{html.escape(target)}"{more}>{text}</a>'


def how_to_run(context, pagename, site):
    """Return the lines below the title of a page with cells."""
    name = pagename.rpartition("/")[2]
    parts = []
    if name in site.chapters:
        link = _link(address(context, f"book/{name}.ipynb"), RUN)
        parts.append(f"{link} ({site.versions}, without the lines for PyTorch).")
    elif site.chapters and name not in NOT_OFFERED:
        parts.append("Most of this page's code needs PyTorch, which does not run in a browser.")
    notebook = context["pathto"](f"_sources/{pagename}.ipynb", 1)
    wheel = context["pathto"](f"downloads/{site.wheel}", 1)
    command = f"pip install ./{site.wheel} {EXTRAS}"
    parts.append(
        f"On your own machine: put {_link(notebook, 'the notebook', download='')} and "
        f"{_link(wheel, 'the package', download='')} into a folder and say there "
        f'<code class="docutils literal notranslate">{html.escape(command)}</code>.'
    )
    return f'<p class="course-run">{" ".join(parts)}</p>'


def notebook_links(context, site, name):
    """Return the links beside a release notebook."""
    file = context["pathto"](f"downloads/{name}.ipynb", 1)
    links = [_link(file, "download", download="")]
    if name in site.assignments:
        links.insert(0, _link(address(context, f"{name}.ipynb"), RUN.lower()))
    return f'<span class="run-notebook">({", ".join(links)})</span>'


def offer_book(context, site):
    """Add the PDF of the book to the theme's menu of downloads."""
    for group in context.get("header_buttons", ()):
        if site.pdf and group.get("label") == "download-buttons":
            group["buttons"].append(
                {
                    "type": "link",
                    "url": context["pathto"](f"downloads/{site.pdf}", 1),
                    "text": "book.pdf",
                    "tooltip": WHOLE_BOOK,
                    "icon": "fas fa-book",
                    "label": "download-book-button",
                }
            )


def book_line(context, site):
    """Return the line below the title of the first page."""
    book = context["pathto"](f"downloads/{site.pdf}", 1)
    link = _link(book, "one PDF", download="")
    return f'<p class="course-run">To print, or to read without a network: {link}.</p>'


def _add(app, pagename, _template, context, _doctree):
    site, body = lite.of(app), context.get("body")
    if not body:
        return
    if site is None:
        context["body"] = PLACE.sub("", body)
        return
    offer_book(context, site)
    body = PLACE.sub(lambda m: " " + notebook_links(context, site, m[1]), body)
    made = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"
    name = pagename.rpartition("/")[2]
    if has_cells(app, pagename) and made.is_file() and name != "students":
        body = body.replace("</h1>", f"</h1>\n{how_to_run(context, pagename, site)}", 1)
        if name in site.chapters and "header_buttons" in context:
            context["header_buttons"].append(
                {
                    "type": "link",
                    "url": address(context, f"book/{name}.ipynb"),
                    "text": RUN,
                    "tooltip": RUN,
                    "icon": "fas fa-play",
                    "label": "run-in-browser",
                }
            )
    if site.pdf and pagename == app.config.root_doc:
        body = body.replace("</h1>", f"</h1>\n{book_line(context, site)}", 1)
    context["body"] = body


def setup(app):
    """Run after the theme has made its buttons."""
    app.connect("html-page-context", _add, priority=502)
