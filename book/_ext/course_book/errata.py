"""The page of errata: what the notes print, what is right, and the section that treats it."""

from collections import Counter

from course_book import data, sections
from course_book.data import GapError
from course_book.gaps import raise_gaps
from course_book.markdown import Generated

PAGE = "book/errata"
FILE = "errata.toml"
KINDS = {
    "wrong": "wrong as it stands",
    "imprecise": "true with a condition that is not given",
    "missing": "something that is needed is not said",
    "notation": "two conventions, or one letter for two things",
    "misprint": "a slip of the pen",
}


def entry(erratum):
    """Return one erratum as MyST: a heading of its own, and what the table holds."""
    page, _, section = erratum.section.partition("#")
    name = erratum.name.lower()
    title = sections.heading(erratum.section)
    # The role would show the formula of a heading as its source.
    link = f"[{title}]({page}-{section})" if "$" in title else f"{{ref}}`{page}-{section}`"
    return "\n".join(
        [
            f"(errata-{name})=",
            f"### {erratum.name}: {erratum.title}",
            "",
            f":Notes: section {erratum.part}, {erratum.notes}",
            f":Printed: {erratum.printed}",
            f":Right: {erratum.right}",
            f":Kind: {KINDS[erratum.kind]}",
            f":See: {{doc}}`/book/{page}`, {link}",
            "",
        ]
    )


def kinds_table(errata):
    """Return the table of the kinds with their numbers."""
    found = Counter(erratum.kind for erratum in errata)
    lines = ["| Kind | What it means | Errata |", "|---|---|---|"]
    lines += [f"| {kind} | {meaning} | {found[kind]} |" for kind, meaning in KINDS.items()]
    return "\n".join([*lines, f"| all | | {len(errata)} |"])


def errata_gaps(errata, shown=None, known=None):
    """Return what is wrong with the table, and with the parts that the page shows.

    ``shown`` holds the sections of the notes in the order of the page, ``known`` the labels
    of the book's sections.
    """
    known = sections.known() if known is None else known
    found = [
        f"erratum {erratum.name}: no page has the section {erratum.section}"
        for erratum in errata
        if "#" not in erratum.section or erratum.section not in known
    ]
    found += [
        f"erratum {erratum.name}: kind must be one of {', '.join(KINDS)}"
        for erratum in errata
        if erratum.kind not in KINDS
    ]
    if shown is not None:
        found += [
            f"errata of section {part}: shown {shown.count(part)} times, must be once"
            for part in sorted({erratum.part for erratum in errata})
            if shown.count(part) != 1
        ]
    return found


class ErrataKinds(Generated):
    """How many errata there are of each kind."""

    depends_on = FILE

    def text(self):
        """Return the table."""
        return kinds_table(data.errata())


class Errata(Generated):
    """The errata of one section of the notes."""

    required_arguments = 1
    depends_on = FILE
    headings = True

    def text(self):
        """Return an entry for each, and note that the page shows this section."""
        part = int(self.arguments[0])
        found = [erratum for erratum in data.errata() if erratum.part == part]
        if not found:
            raise GapError(f"{{errata}} {part}: book/data/{FILE} has none of this section")
        self.env.metadata[self.env.docname].setdefault("errata", []).append(part)
        return "\n".join(entry(erratum) for erratum in found)


def _check_sections(_app):
    raise_gaps(errata_gaps(data.errata()))


def _check_page(_app, env):
    raise_gaps(errata_gaps(data.errata(), env.metadata[PAGE].get("errata", [])))


def setup(app):
    """Register the directives, and the checks of the table and of the page."""
    app.add_directive("errata-kinds", ErrataKinds)
    app.add_directive("errata", Errata)
    app.connect("builder-inited", _check_sections)
    app.connect("env-check-consistency", _check_page)
