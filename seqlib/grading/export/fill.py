"""Marks in a file that a learning platform takes back.

The platform's own download is the best start (a template): it has the ids by which the platform
finds its students and columns again. Only cells of marks, and of notes on them, are filled; all
other bytes stay. Without a template a file is made first, and filled in the same way.
"""

import re
from dataclasses import dataclass, field

from seqlib.grading.collect.names import related, shown
from seqlib.grading.export.blackboard import Blackboard
from seqlib.grading.export.canvas import Canvas
from seqlib.grading.export.marks import points_text
from seqlib.grading.export.moodle import Moodle
from seqlib.grading.export.platform import same
from seqlib.grading.export.sheet import Sheet
from seqlib.grading.tables import safe

NOTE_COLUMNS = ("assignment", "student_id", "score", "exported", "note")
SHOWN = 10  # names in one sentence
_NOTE = re.compile(r"\s*Not final: [^.]*\.")  # as ``Mark.note`` is
_FORMULA = re.compile(r"\s*(?:[=+@]|-(?!\s*$|[\d.,]+$))|[\t\r]")


@dataclass
class Exported:
    """A file for a platform, and what is to be said about it.

    Attributes
    ----------
    data : bytes
        The file.
    written : list of tuple
        Mark and the text of its cell.
    open : list of tuple
        Marks that are not final: the mark, whether it was exported, and the note.
    unmatched : list of str
        Students with a mark for whom the template has no row.
    remarks : list of str
        Sentences about the file.
    """

    data: bytes = b""
    written: list = field(default_factory=list)
    open: list = field(default_factory=list)
    unmatched: list = field(default_factory=list)
    remarks: list = field(default_factory=list)

    def notes(self):
        """Return the rows of the table of notes; empty if there is nothing to say."""
        for mark, exported, note in self.open:
            yield {
                "assignment": mark.assignment,
                "student_id": mark.student,
                "score": mark.score,
                "exported": "yes" if exported else "no",
                "note": note,
            }


PLATFORMS = {platform.name: platform for platform in (Canvas(), Moodle(), Blackboard())}


def export_marks(
    marks,
    platform,
    *,
    template=None,
    columns=None,
    match=None,
    provisional=False,
    rescale=False,
):
    """Return the file with some marks that a platform takes.

    Parameters
    ----------
    marks : list of seqlib.grading.export.marks.Mark
        From :func:`seqlib.grading.export.marks.collect_marks`. One without a score leaves its
        cell as it is.
    platform : str
        A name in ``PLATFORMS``.
    template : bytes, optional
        What was downloaded from the platform; a file is made if None.
    columns : dict, optional
        ``{assignment: name of its column}`` where that is not called as the assignment.
    match : str, optional
        The column by which students are found; the one that finds most of them if None.
    provisional : bool, default=False
        Whether marks that are not final are exported too.
    rescale : bool, default=False
        Whether marks are converted where a column has other points than the assignment.

    Returns
    -------
    Exported

    Raises
    ------
    ValueError
        If the platform has no such file, a name does not fit, students or columns cannot be
        told apart, or points differ.
    """
    if platform not in PLATFORMS:
        raise ValueError(f"platform must be one of {', '.join(PLATFORMS)}, got {platform!r}")
    rules, columns = PLATFORMS[platform], dict(columns or {})
    if not marks:
        raise ValueError("marks must hold a student of the gradebook, got none")
    unknown = sorted(set(columns) - {mark.assignment for mark in marks})
    if unknown:
        raise ValueError(f"column must be of an exported assignment, got {', '.join(unknown)}")
    done = Exported()
    marks = _with_points(marks, columns, done)
    rules.check(marks)
    made = template is None
    sheet = Sheet(rules.blank(marks, columns) if made else template)
    places = _places(rules, sheet, marks, columns, done)
    # A file that was made has the ids that are known, whatever they are.
    rows = _match(rules, sheet, marks, match, done, asked=made or match is not None)
    note_column = rules.note_column(sheet)
    for mark in marks:
        if mark.assignment not in places:
            continue
        notes = [mark.note] if mark.open else []
        row = rows.get(mark.student)
        if mark.score is None or (mark.open and not provisional):
            if mark.open:
                done.open.append((mark, False, mark.note))
            continue
        if row is None:
            done.unmatched.append(mark.student)
            continue
        column = places[mark.assignment]
        text = _text(rules, sheet, mark, column, row, rescale)
        # A column that was chosen by hand is what it was chosen for.
        chance = "" if made or match is not None else _chance(rules, sheet, mark, row)
        refused = chance or rules.refusal(sheet, column, row, text)
        if refused:
            done.open.append((mark, False, " ".join([*notes, f"Not exported: {refused}."])))
            continue
        sheet.fill(row, column, text)
        done.written.append((mark, text))
        if notes:
            done.open.append((mark, True, mark.note))
        if note_column is not None:
            _put_note(sheet, row, note_column, mark.note)
    done.data = sheet.data()
    done.unmatched = sorted(set(done.unmatched))
    if not made:
        _formulas(rules, sheet, done)
    return done


def _with_points(marks, columns, done):
    """Leave out assignments without points: none of their cells has been released yet.

    A platform would make a column of 0 points for each of those that are only planned.
    """
    kept = [mark for mark in marks if mark.max_score > 0]
    empty = {mark.assignment for mark in marks} - {mark.assignment for mark in kept}
    asked = empty.intersection(columns)
    if asked or not kept:
        raise ValueError(
            f"points of {some(asked or empty)} must be above 0, got 0 in the gradebook; "
            "release and grade it first"
        )
    if empty:
        done.remarks.append(f"No points in the gradebook, and so no column, for {some(empty)}.")
    return kept


def _places(rules, sheet, marks, columns, done):
    """Return ``{assignment: column}``."""
    names = list(dict.fromkeys(mark.assignment for mark in marks))
    found = {name: rules.column(sheet, name, columns.get(name)) for name in names}
    for place in found.values():
        twice = [other for other in names if found[other] == place is not None]
        if len(twice) > 1:
            raise ValueError(
                f"column must be of one assignment, got {sheet.header[place]!r} for "
                f"{some(twice)}; choose with --assignment or --column NAME=COLUMN"
            )
    missing = [name for name, place in found.items() if place is None]
    asked = [name for name in missing if name in columns]
    if asked or len(missing) == len(names):
        titles = [h for h in sheet.header if h]
        raise ValueError(
            f"{sheet.name} must have a column for {', '.join(asked or missing)}, got "
            f"{', '.join(titles)}; say which is meant with --column NAME=COLUMN"
        )
    if missing:
        done.remarks.append(f"No column, and so no mark, for {some(missing)}.")
    return {name: place for name, place in found.items() if place is not None}


def _match(rules, sheet, marks, wanted, done, *, asked):
    """Return ``{student: row}`` by the column of ids that finds most students.

    One column for the whole file: if each row could choose its own, one student's number in
    one column could be another's in the next.
    """
    present = [name for name in rules.ids if name in sheet.header]
    if wanted is not None:
        if wanted not in sheet.header:
            raise ValueError(f"match must be a column of {sheet.name}, got {wanted!r}")
        present = [wanted]
    best, by, owners_of = {}, None, {}
    for name in present:
        column, found, owners = sheet.header.index(name), {}, {}
        for mark in marks:
            for key in filter(None, rules.names(name, mark, asked)):
                owners.setdefault(same(key), set()).add(mark.student)
        for row in rules.students(sheet):
            key = same(rules.key(name, sheet.value(row, column)))
            for student in owners.get(key, ()):
                found.setdefault(student, []).append((row, key))
        if len(found) == len(best) and any(
            student in found and {r for r, _ in found[student]} != {r for r, _ in places}
            for student, places in best.items()
        ):
            raise ValueError(
                f"students must have one row each, got other rows by {by} than by {name}; "
                "say which column is meant with --match"
            )
        if len(found) > len(best):
            best, by, owners_of = found, name, owners
    if not best:
        example = sorted({mark.student for mark in marks})[:3]
        raise ValueError(
            f"{sheet.name} must name students of the gradebook ({', '.join(example)}, ...) in "
            f"one of the columns {', '.join(present) or ', '.join(rules.ids)}, got none"
        )
    for student, places in best.items():
        if len(places) > 1:
            lines = ", ".join(str(sheet.line(row)) for row, _ in places)
            raise ValueError(
                f"{by} must be in one row for each student, got {student} in {lines}"
            )
        shared = owners_of[places[0][1]]
        if len(shared) > 1:
            raise ValueError(
                f"{by} must tell students apart, got {places[0][1]!r} for {some(shared)}"
            )
    students = {mark.student for mark in marks}
    done.remarks.append(f"Matched by {by}: {len(best)} of {len(students)} students.")
    return {student: places[0][0] for student, places in best.items()}


def _chance(rules, sheet, mark, row):
    """Say why a row is not that of a student; empty if it may be.

    A student's id that is a number of a university's may be the number of somebody else in the
    column of another. The platform's own number for a student is no chance.
    """
    person, name = rules.person(sheet, row), f"{mark.last_name}, {mark.first_name}"
    by_number = mark.student.isdecimal() and mark.student != mark.known_as(rules.name)
    if not by_number or related(name, person):
        return ""
    return f"line {sheet.line(row)} has the number, and is of {shown(person)}"


def _text(rules, sheet, mark, column, row, rescale):
    """Return the text of a mark in the points of its column."""
    points, score = rules.points(sheet, column, row), mark.score
    if points is not None and points != mark.max_score:
        if not points > 0:
            raise ValueError(
                f"points of {sheet.header[column]!r} must be above 0, got {points:g}; set "
                f"{points_text(mark.max_score)} on the platform, and download the file again"
            )
        if not rescale:
            raise ValueError(
                f"points of {sheet.header[column]!r} must be {points_text(mark.max_score)} as "
                f"in the gradebook, got {points_text(points)}; change them on the platform, or "
                "convert the marks with --rescale"
            )
        score = score * points / mark.max_score
    return points_text(score)


def _put_note(sheet, row, column, note):
    """Put a note behind what a cell says, in place of one that an earlier export has left."""
    old = sheet.value(row, column)
    other = _NOTE.sub("", old) if _NOTE.search(old) else old
    text = safe(f"{other} {note}".strip()) if note else other
    if text != old:
        sheet.fill(row, column, text)


def _formulas(rules, sheet, done):
    rows = [
        row
        for row in rules.students(sheet)
        if any(_FORMULA.match(sheet.value(row, c)) for c in range(len(sheet.header)))
    ]
    if rows:
        lines = ", ".join(str(sheet.line(row)) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" * (len(rows) > SHOWN)
        done.remarks.append(
            f"The template has cells that begin like a formula, in line {lines}{more}; they "
            "are as the platform wrote them, so open the file in no spreadsheet."
        )


def some(names):
    """Return names for a sentence, sorted, the first ten of many."""
    names = sorted(names)
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
