"""What the book needs beyond Jupyter Book, one idea a module.

``data``       the topic, equation and claim tables, read from ``book/data``
``cache``      an execution cache that a changed library empties, filled in parallel
``numbering``  equations that carry the numbers of the lecture notes
``ledger``     the page of equations, and the gaps that fail the build
``claims``     the page of claims, its verdicts taken from executed cells
``errata``     what the notes get wrong, each with the section that treats it
``kill_matrix``  what every known mistake costs and how it is named, beside the records
``results``    the role that quotes a committed result file
``sections``   labels such as ``attention#scaling``, and the page that each leads to
``figures``    refuses a figure without a text that says what is seen
``selftest``   questions with choices, each with its explanation
``interactive``  figures that the reader moves, with static forms
``wraps``      punctuation that stays on the line of the formula before it
``download``   offers every page with cells as a notebook
``readme``     the topic table of README.md and of the first page
``notebooks``  the tables of notebooks and of questions in words, from the records
``changelog``  what each version of an exercise and of the judge changed
``gaps``       the checks of all tables, ``markdown`` the base of the generated directives
"""

from course_book import (
    cache,
    changelog,
    claims,
    download,
    errata,
    figures,
    interactive,
    kill_matrix,
    ledger,
    notebooks,
    numbering,
    readme,
    results,
    sections,
    selftest,
    wraps,
)


def setup(app):
    """Register every part; called by Sphinx."""
    for part in (
        cache,
        numbering,
        ledger,
        claims,
        errata,
        kill_matrix,
        results,
        sections,
        figures,
        selftest,
        interactive,
        download,
        readme,
        notebooks,
        changelog,
        wraps,
    ):
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
