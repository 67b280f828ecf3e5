"""The gradebook of Canvas.

As ``lib/gradebook_exporter.rb`` and ``_importer.rb`` of instructure/canvas-lms have it:
``Student, ID, SIS User ID, SIS Login ID, Section``, ``Title (id)`` for each assignment, and a
row ``Points Possible``. Students are found by the three ids in this order, then by name.
Every further column would become a new assignment, so there is no place for a note.
``N/A`` is not assigned to a student, ``EX`` is excused.
"""

import re

from seqlib.grading.export.marks import points_text
from seqlib.grading.export.platform import (
    Platform,
    checked,
    csv_bytes,
    is_called,
    number,
    one_each,
    only,
    shown,
)

_TITLE = re.compile(r"(?P<title>.*\S)\s*\((?P<id>\d+)\)\s*", re.DOTALL)
_NO_STUDENT = re.compile(r"\s*(?:Muted|Manual Posting.*)?\s*", re.IGNORECASE)


class Canvas(Platform):
    """The gradebook of Canvas."""

    name = "canvas"
    file = "canvas.csv"
    people = ("Student",)
    ids = ("ID", "SIS User ID", "SIS Login ID", "Integration ID")
    _others = (*ids, "Student", "LastName", "FirstName", "Section", "Root Account")

    def blank(self, marks, columns):
        """Return a gradebook with a row of points; students by their login id."""
        points = {mark.assignment: mark.max_score for mark in marks}
        titles = [columns.get(name, name) for name in points]
        header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles]
        possible = ["    Points Possible", "", "", "", "", *map(points_text, points.values())]
        lines = [header, possible]
        for mark in one_each(marks):
            name = ", ".join(part for part in (mark.last_name, mark.first_name) if part)
            ids = [checked(mark.known_as(self.name), mark), "", checked(mark.student, mark)]
            lines.append([shown(name or mark.student), *ids, "", *("" for _ in titles)])
        return csv_bytes(lines)

    def column(self, sheet, assignment, wanted):
        """Return the column that is called as the assignment, with or without its number."""
        found = []
        for place, header in enumerate(sheet.header):
            if header in self._others:
                continue
            match = _TITLE.fullmatch(header)
            titles = {header, match["title"]} if match else {header}
            if is_called(titles, assignment, wanted):
                found.append(place)
        return only(sheet, found, assignment)

    def points(self, sheet, column, row):
        """Return what the row of points has."""
        for place in range(1, min(len(sheet), 4)):  # behind it, only students
            if "Points Possible" in sheet.value(place, 0):
                text = sheet.value(place, column)
                if "read only" in text:
                    raise ValueError(
                        f"column must take marks, got {sheet.header[column]!r}, which Canvas "
                        "computes"
                    )
                return number(text)
        return None

    def students(self, sheet):
        """Return the rows that are neither of points nor of posting."""
        return [
            row
            for row in super().students(sheet)
            if "Points Possible" not in sheet.value(row, 0)
            and not all(
                _NO_STUDENT.fullmatch(sheet.value(row, place))
                for place in range(len(sheet.header))
            )
        ]

    def refusal(self, sheet, column, row, text):
        """Leave excused students, and those without the assignment, alone."""
        old = sheet.value(row, column).strip().upper()
        says = {"EX": "excused in Canvas", "N/A": "not assigned to this student in Canvas"}
        return says.get(old, "")
