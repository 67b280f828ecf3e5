"""The list of a class: who is in it, and under which names each platform knows them."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from seqlib.grading.collect.names import checked_id, folded, related, shown, slug, squeezed
from seqlib.grading.tables import numbered_rows

MAX_BYTES = 50_000_000
# Columns by meaning, as the platforms and nbgrader head them; compared by `folded`.
_COLUMNS = {
    "last": ("last_name", "last name", "surname"),
    "first": ("first_name", "first name", "given name"),
    "name": ("student", "full name", "name", "student name"),
    "time": ("submitted_at", "last modified (submission)", "submission time"),
}
# What a platform calls a person, best first: the first of these columns that is filled in
# every row is the student's id, so that it is the same for all assignments.
_IDS = (
    "id",
    "username",
    "student_id",
    "student id",
    "id number",
    "sid",
    "sis login id",
    "sis user id",
    "email",
    "email address",
)
_ADDRESSES = ("email", "email address", "e-mail")
_UNIVERSITY = ("sid", "student_id", "student id", "id number", "sis user id")
# In which of these columns each platform's own name for a person may stand. A number that is
# one person's in a column of one platform is somebody else's on another.
_KEYS = {
    "canvas": ("lms_user_id",),  # and ``id`` in the gradebook that it exports
    "moodle": ("lms_user_id",),  # and the number in ``identifier``
    "blackboard": ("lms_user_id", "username"),
    "gradescope": (*_UNIVERSITY, "sis login id", *_ADDRESSES),
    "generic": ("lms_user_id", "username", *_UNIVERSITY, "sis login id", *_ADDRESSES),
}
# These platforms give their own numbers, so that an id from one of the columns of others says
# nothing there. What a column ``id`` holds, only the instructor knows.
_NUMBERED = ("canvas", "moodle")
_MOODLE = "identifier"


@dataclass(frozen=True)
class Person:
    """A line of the list.

    Attributes
    ----------
    id : str
        Name of the folder.
    name : str
        ``Last, First`` or the full name, as far as it is known.
    keys : dict
        ``{platform: what it calls this person}``, the latter a set of texts by :func:`folded`.
    names : frozenset of str
        The full name in both orders, by :func:`squeezed`.
    time : str
        When the newest submission of this assignment was made, if the list says so.
    """

    id: str
    name: str
    keys: dict
    names: frozenset
    time: str = ""


class Roster:
    """Everybody in a class.

    Parameters
    ----------
    people : sequence of Person
        With different ids.
    column : str, default="id"
        From which the ids are.
    """

    def __init__(self, people, column="id"):
        self.people = list(people)
        self._by_id = {folded(person.id): person for person in self.people}
        self._foreign = () if column == "id" else _NUMBERED
        self._by_key, self._by_name = {}, {}
        for person in self.people:
            for platform, keys in person.keys.items():
                for key in keys:
                    self._by_key.setdefault((platform, key), []).append(person)
            for name in person.names:
                self._by_name.setdefault(name, []).append(person)

    def knows(self, platform, key):
        """Return whether somebody has a key or an id, whatever their name."""
        return bool(self._keyed(platform, key) or self._identified(platform, key))

    def _keyed(self, platform, key):
        return self._by_key.get((platform, folded(key)), [])

    def _identified(self, platform, key):
        """Return whose id a key equals, unless the platform's own name for them is known."""
        person = self._by_id.get(folded(key))
        if person is None or platform in self._foreign:
            return None
        return None if platform in _NUMBERED and person.keys[platform] else person

    def find(self, platform, key, name):
        """Return whom a platform means.

        A key counts in the columns of its own platform. One that only equals an id counts if
        the names agree in a part: the numbers of a platform and those of a university may be
        the same for two people.

        Parameters
        ----------
        platform : str
            One of ``seqlib.grading.collect.platforms.PLATFORMS``.
        key : str
            What the platform calls the person.
        name : str
            Name, as the platform shows it; may be empty.

        Returns
        -------
        person : Person or None
            Who it is.
        why : str
            How they were found, ``"key"``, ``"id"``, ``"number"`` (an id that no full name
            confirms, on a platform with numbers of its own) or ``"name"``; a reason if they
            were not.
        """
        found = self._keyed(platform, key)
        namesakes = self._by_name.get(squeezed(name), []) if squeezed(name) else []
        if len(found) == 1:
            # A table of another course or site gives the numbers to other people.
            if namesakes and not related(found[0].name, name):
                return None, (
                    f"{shown(key)} is {shown(found[0].name)} in the roster, and {shown(name)} "
                    "here, who is somebody else there"
                )
            return found[0], "key"
        if found:
            ids = ", ".join(person.id for person in found)
            return None, f"the roster has {shown(key)} more than once: {ids}"
        person = self._identified(platform, key)
        if person is not None:
            if related(person.name, name):
                sure = platform not in _NUMBERED or squeezed(name) in person.names
                return person, "id" if sure else "number"
            return None, (
                f"{shown(key)} is {shown(person.name)} in the roster, and {shown(name)} here"
            )
        if len(namesakes) == 1:
            return namesakes[0], "name"
        if namesakes:
            ids = ", ".join(person.id for person in namesakes)
            return None, f"the roster has {len(namesakes)} people of this name: {ids}"
        return None, "the roster has nobody of this id or name"


def read_roster(path):
    """Read the list of a class.

    Parameters
    ----------
    path : path
        A table with a header, as CSV, with semicolons or with tabs, in UTF-8 or UTF-16. It may
        be the table of ``nbgrader db student import`` (``id``, ``first_name``, ``last_name``,
        ``email``, ``lms_user_id``), the gradebook exported from Canvas, Moodle's grading
        worksheet in English, or the grade table of Blackboard or Gradescope. A column
        ``submitted_at`` gives times of submission where the platform's files have none.

    Returns
    -------
    Roster

    Raises
    ------
    ValueError
        If it cannot be read, has no column that says who is who, or one id twice.

    References
    ----------
    nbgrader's documentation of ``nbgrader db student import``; MoodleDocs, "Offline grading
    in the assignment activity"; Canvas, "How do I import grades in the Gradebook?".
    """
    lines, rows = _rows(Path(path))
    header = set(rows[0]) if rows else set()
    canvas = {"student", "id"} <= header and any(h.startswith("sis ") for h in header)
    if canvas:
        # The second line holds points, the last one a student for tests.
        kept = [r["id"].isdigit() and r["student"] != "Student, Test" for r in rows]
        lines, rows = (list(itertools.compress(values, kept)) for values in (lines, rows))
    if not rows:
        raise ValueError(f"roster must have a line for each student, got none in {path}")
    people, seen = [], {}
    column, texts = _ids(rows, header)
    for line, row, text in zip(lines, rows, texts, strict=True):
        student = checked_id(text, f"id in line {line} of the roster")
        if folded(student) in seen:
            raise ValueError(
                f"roster must have each id once, got {student} in lines "
                f"{seen[folded(student)]} and {line}"
            )
        seen[folded(student)] = line
        people.append(_person(student, row, canvas))
    return Roster(people, column)


def _ids(rows, header):
    """Return a column and what is to become the id of each line."""
    for column in _IDS:
        if column in header and all(row[column] for row in rows):
            return column, [row[column] for row in rows]
    if _MOODLE in header:
        # A worksheet without numbers and addresses: names hold for other assignments too.
        names = [slug(_value(row, "name")) for row in rows]
        if all(names) and len(set(names)) == len(names):
            return "name", names
        return _MOODLE, [slug(row[_MOODLE]) for row in rows]
    raise ValueError(
        "roster must have a column id, filled in every line, or be exported by a platform; "
        f"got the columns {', '.join(sorted(shown(h) for h in header))}"
    )


def _person(student, row, canvas):
    last, first = _value(row, "last"), _value(row, "first")
    name = _value(row, "name")
    if last or first:
        name = ", ".join(part for part in (last, first) if part)
    before, comma, after = name.partition(",")
    orders = {name, f"{after} {before}" if comma else name}
    keys = {p: {row.get(column, "") for column in columns} for p, columns in _KEYS.items()}
    # Moodle heads folders with the number that its worksheet calls "Participant 123".
    keys["moodle"].add(re.search(r"\d*$", row.get(_MOODLE, ""))[0])
    if canvas:
        keys["canvas"].add(row["id"])
    return Person(
        student,
        name,
        {p: frozenset(folded(key) for key in own if key) for p, own in keys.items()},
        frozenset(squeezed(order) for order in orders if squeezed(order)),
        _value(row, "time").strip("-"),
    )


def _value(row, meaning):
    return next((row[c] for c in _COLUMNS[meaning] if row.get(c)), "")


def _rows(path):
    """Return lines by number, and each as a dict, the header in the form for comparison."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"roster must be a file, got {path}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ValueError(f"roster must have at most {MAX_BYTES:,} bytes, got more in {path}")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"roster must be in UTF-8 or UTF-16, got {path} with byte {data[error.start]:#04x} "
            f"at {error.start}; save it as CSV UTF-8"
        ) from error
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    try:
        table = list(numbered_rows(text, delimiter))
    except ValueError as error:
        raise ValueError(f"roster must be a table in CSV, got {path}: {error}") from error
    if not table:
        return [], []
    header = [folded(cell) for cell in table[0][1]]
    for cell in header:
        if cell and header.count(cell) > 1 and cell in _known():
            raise ValueError(f"roster must have the column {cell} once, got {path}")
    lines, rows = [], []
    for line, cells in table[1:]:
        if any(cell.strip() for cell in cells[len(header) :]):
            raise ValueError(
                f"roster must have at most {len(header)} cells in a line, as in its header; "
                f"got {len(cells)} in line {line}: a cell with a {delimiter!r} must be quoted"
            )
        cells = [cell.strip() for cell in cells] + [""] * (len(header) - len(cells))
        lines.append(line)
        rows.append(dict(zip(header, cells, strict=False)))
    return lines, rows


def _known():
    meant = {column for columns in _COLUMNS.values() for column in columns}
    keys = {column for columns in _KEYS.values() for column in columns}
    return meant | set(_IDS) | keys | {_MOODLE}
