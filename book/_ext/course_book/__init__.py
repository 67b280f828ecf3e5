"""What the book needs beyond Jupyter Book, one idea a module.

``data``       the topic, equation and claim tables, read from ``book/data``
``cache``      an execution cache that a changed library empties, filled in parallel
``numbering``  equations that carry the numbers of the lecture notes
``ledger``     the page of equations, and the gaps that fail the build
``claims``     the page of claims, its verdicts taken from executed cells
``results``    the role that quotes a committed result file
``sections``   labels such as ``attention#scaling``, and the page that each leads to
``figures``    refuses a figure without a text that says what is seen
``download``   offers every page with cells as a notebook
``readme``     the topic table of README.md and of the first page
``gaps``       the checks of all tables, ``markdown`` the base of the generated directives
"""

from course_book import (
    cache,
    claims,
    download,
    figures,
    ledger,
    numbering,
    readme,
    results,
    sections,
)


def setup(app):
    """Register every part; called by Sphinx."""
    for part in (
        cache,
        numbering,
        ledger,
        claims,
        results,
        sections,
        figures,
        download,
        readme,
    ):
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
