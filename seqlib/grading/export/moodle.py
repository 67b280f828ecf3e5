"""The offline grading worksheet of one assignment in Moodle.

As ``mod/assign/gradingtable.php`` and ``mod/assign/feedback/offline`` of moodle/moodle have it:
``Identifier`` with ``Participant 123``, ``Grade`` and ``Last modified (grade)`` must be there.
An empty grade changes nothing, one above the maximum is skipped without a word, and an empty
comment deletes the one that is there.
"""

import re

from seqlib.grading.export.marks import points_text
from seqlib.grading.export.platform import (
    Platform,
    csv_bytes,
    find,
    number,
    one_each,
    shown,
)


class Moodle(Platform):
    """The offline grading worksheet of one assignment in Moodle."""

    name = "moodle"
    file = "moodle.csv"
    ids = ("Identifier", "ID number", "Username", "Email address")
    people = ("Full name",)

    def check(self, marks):
        """Refuse several assignments: a worksheet is of one."""
        names = sorted({mark.assignment for mark in marks})
        if len(names) > 1:
            raise ValueError(
                f"assignment must be one for a worksheet of Moodle, got {', '.join(names)}; "
                "choose with --assignment"
            )

    def blank(self, marks, columns):
        """Return a worksheet, for students whose id is their number in Moodle.

        There is no column of comments, since Moodle would take its empty cells as a wish to
        delete the comments that are there.
        """
        header = ["Identifier", "Full name", "Email address", "Status", "Grade"]
        header += ["Maximum Grade", "Grade can be changed", "Last modified (grade)"]
        lines = [header]
        for mark in one_each(marks):
            participant = mark.known_as(self.name)
            if not (participant.isascii() and participant.isdecimal()):
                raise ValueError(
                    "student must be known by the number of Moodle's participant, got "
                    f"{mark.student!r}; download the grading worksheet and give it with "
                    "--template"
                )
            name = f"{mark.first_name} {mark.last_name}".strip() or mark.student
            start = [f"Participant {participant}", shown(name), shown(mark.email), "", ""]
            lines.append([*start, points_text(mark.max_score), "Yes", "-"])
        return csv_bytes(lines)

    def column(self, sheet, assignment, wanted):
        """Return the column ``Grade``, of a worksheet that Moodle would take."""
        needed = ("Identifier", "Grade", "Last modified (grade)")
        missing = [name for name in needed if name not in sheet.header]
        if missing:
            raise ValueError(
                f"{sheet.name} must be a grading worksheet of Moodle in English, got no column "
                f"{', '.join(missing)}; it has {', '.join(sheet.header)}"
            )
        if "Scale" in sheet.header:
            raise ValueError(
                f"{sheet.name} must be of an assignment with points, got one with a scale"
            )
        return sheet.header.index("Grade")

    def points(self, sheet, column, row):
        """Return what the row has as its maximum."""
        place = find(sheet, "maximum grade")
        return None if place is None else number(sheet.value(row, place))

    def key(self, column, value):
        """Return the number of a participant."""
        if column != "Identifier":
            return value
        found = re.search(r"\d+\s*$", value)
        return found.group().strip() if found else ""

    def names(self, column, mark, asked):
        """Return the ids of a student; a participant's number only if it is known to be one.

        It holds for one assignment, so another number that is equal is so by chance.
        """
        if column != "Identifier" or asked:
            return super().names(column, mark, asked)
        platform, _, number = mark.source.partition(":")
        return (number,) if platform == self.name else ()

    def refusal(self, sheet, column, row, text):
        """Say what Moodle would skip without a word."""
        place = find(sheet, "grade can be changed")
        if place is not None and sheet.value(row, place).strip().lower() == "no":
            return "locked in Moodle"
        points = self.points(sheet, column, row)
        if points is not None and float(text) > points:
            return f"above the maximum of {points_text(points)}, which Moodle does not take"
        return ""

    def note_column(self, sheet):
        """Return the column of comments."""
        return find(sheet, "feedback comments")
