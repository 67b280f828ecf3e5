"""What the files of all platforms have in common.

Formulas: a spreadsheet runs a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a
carriage return. Names are only shown, so they get an apostrophe in front. Ids are compared, so
one that begins like a formula is refused. The cells of a template are the platform's and stay.
"""

import csv
import io
import re
import unicodedata

from seqlib.grading.tables import safe


class Platform:
    """What the files of a platform have in common; the subclasses say what differs."""

    name = ""
    file = ""
    ids = ()  # columns with ids, as they are tried
    people = ()  # columns with names

    def blank(self, marks, columns):
        """Return a file with the students of some marks, and no mark in it."""
        raise NotImplementedError

    def column(self, sheet, assignment, wanted):
        """Return the column of an assignment, None if there is none."""
        raise NotImplementedError

    def points(self, sheet, column, row):
        """Return the points of a column as the file has them, None if it does not say."""
        raise NotImplementedError

    def students(self, sheet):
        """Return the rows of students."""
        return [row for row in range(1, len(sheet)) if not sheet.is_blank(row)]

    def key(self, column, value):
        """Return what an id column says of a row."""
        return value

    def names(self, column, mark, asked):
        """Return what an id column may call a student; ``asked`` if it was chosen by hand."""
        return (mark.student, mark.known_as(self.name), mark.platform_id, mark.email)

    def person(self, sheet, row):
        """Return the name in a row; empty if the file has no names."""
        places = [sheet.header.index(name) for name in self.people if name in sheet.header]
        return ", ".join(filter(None, (sheet.value(row, place) for place in places)))

    def refusal(self, sheet, column, row, text):
        """Say why a cell takes no mark; empty if it takes one."""
        return ""

    def note_column(self, sheet):
        """Return the column for a note on a mark, None if there is none."""
        return None

    def check(self, marks):
        """Refuse marks that one file cannot hold."""


def is_called(titles, assignment, wanted):
    """Say whether a column of these titles is the wanted one, or called as the assignment."""
    if wanted is not None:
        return wanted in titles
    names = {same(name) for name in _names(assignment)}
    return any(same(title) in names for title in titles)


def _names(assignment):
    """Return the name of an assignment and, where it is one of this course, its title."""
    from seqlib.exercises import get_assignment

    try:
        return {assignment, get_assignment(assignment).title}
    except ValueError:
        return {assignment}


def only(sheet, places, assignment):
    """Return the one column of an assignment, None if there is none; refuse several."""
    if len(places) > 1:
        titles = ", ".join(sheet.header[place] for place in places)
        raise ValueError(
            f"column of {assignment} must be one, got {titles}; say which is meant with "
            "--column NAME=COLUMN"
        )
    return places[0] if places else None


def find(sheet, name):
    """Return the column of a name in lower case, None if there is none."""
    return next((i for i, h in enumerate(sheet.header) if h.lower() == name), None)


def number(text):
    """Return a number with a decimal point or comma, None if there is none."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def same(text):
    """Return a text in the form in which ids and titles are compared."""
    return unicodedata.normalize("NFC", text).strip().casefold()


def one_each(marks):
    """Return one mark of each student."""
    return {mark.student: mark for mark in marks}.values()


def shown(text):
    """Return a name as a cell: in one line, and no formula."""
    return safe(" ".join(text.split()))


def checked(key, mark):
    """Return an id as it is; refuse one that a spreadsheet would run."""
    if safe(key) != key or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", key):
        raise ValueError(
            "id must not begin like a formula of a spreadsheet or hold control characters, got "
            f"{key!r} of student {mark.student!r}; give the platform's own file with --template"
        )
    return key


def csv_bytes(lines, *, quoting=csv.QUOTE_MINIMAL, encoding="utf-8"):
    """Return a CSV file (RFC 4180)."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n", quoting=quoting).writerows(lines)
    return file.getvalue().encode(encoding, "replace")
