"""The Grade Center of Blackboard.

As its help page "Work offline with grade data" has it: students are found by ``Username``,
columns by the number behind ``|`` in ``Title [Total Pts: 100 Score] |123``; a column without
one becomes a new one of text, which counts for nothing until its type is changed. Files are
tab-delimited, in UTF-16, or comma-delimited with every cell quoted, in UTF-8.
"""

import csv
import re

from seqlib.grading.export.marks import points_text
from seqlib.grading.export.platform import (
    Platform,
    checked,
    csv_bytes,
    find,
    is_called,
    number,
    one_each,
    only,
    shown,
)

_TITLE = re.compile(
    r"(?P<title>.*?)\s*\[Total Pts: (?:up to )?(?P<points>[\d.,]+)\s*(?P<kind>[^\]]*)\]"
    r"\s*(?:\|\s*(?P<id>\d+))?\s*",
    re.DOTALL,
)


class Blackboard(Platform):
    """The Grade Center of Blackboard."""

    name = "blackboard"
    file = "blackboard.csv"
    ids = ("Username", "Student ID")
    people = ("Last Name", "First Name")

    def blank(self, marks, columns):
        """Return a quoted, comma-delimited file in UTF-8; students by their user name."""
        points = {mark.assignment: mark.max_score for mark in marks}
        titles = [
            columns.get(name, f"{name} [Total Pts: {points_text(most)} Score]")
            for name, most in points.items()
        ]
        header = ["Last Name", "First Name", "Username", "Student ID"]
        lines = [[*header, "Last Access", "Availability", *titles]]
        for mark in one_each(marks):
            names = [shown(mark.last_name), shown(mark.first_name)]
            collected = mark.source.startswith(f"{self.name}:")
            user = mark.known_as(self.name) if collected else mark.student
            ids = [checked(user, mark), checked(mark.platform_id, mark)]
            lines.append([*names, *ids, "", "", *("" for _ in titles)])
        return csv_bytes(lines, quoting=csv.QUOTE_ALL, encoding="utf-8-sig")

    def column(self, sheet, assignment, wanted):
        """Return the column whose title is that of the assignment."""
        found = []
        for place, header in enumerate(sheet.header):
            match = _TITLE.fullmatch(header)
            if not match and header != wanted:
                continue
            titles = {header, match["title"]} if match else {header}
            if is_called(titles, assignment, wanted):
                if match and match["kind"] not in ("Score", ""):
                    raise ValueError(
                        f"column must be of scores, got {header!r}; set its primary display "
                        "to Score and download it again"
                    )
                found.append(place)
        return only(sheet, found, assignment)

    def points(self, sheet, column, row):
        """Return what the name of the column says."""
        match = _TITLE.fullmatch(sheet.header[column])
        return number(match["points"]) if match else None

    def note_column(self, sheet):
        """Return the column of notes for instructors."""
        return find(sheet, "grading notes")
