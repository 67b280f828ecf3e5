"""Extensions: who may hand in later, from a table that an instructor keeps.

As CSV, with the columns that are used::

    student,assignment,until,days,hours
    ada,attention,2026-03-05T23:59,,
    ben,attention,,2,
    grace,,,,12

or the same as TOML::

    [[extension]]
    student = "ada"
    assignment = "attention"
    until = 2026-03-05T23:59:00

Without an assignment a row is for all of them. ``until`` is a time in the zone of the policy,
unless it has an offset of its own; a date is its end. ``days`` are those of the calendar and
``hours`` hours, both from the due date that all have.
"""

import functools
import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from seqlib.grading.tables import numbered_rows

FIELDS = ("student", "assignment", "until", "days", "hours")
KINDS = ("until", "days", "hours")
MOST_DAYS = 3660


@dataclass(frozen=True)
class Extension:
    """How much later one student may hand in.

    Attributes
    ----------
    until : datetime or None
        In UTC, without a zone.
    days, hours : float
        Further days of the calendar, and hours.
    """

    until: datetime | None = None
    days: int = 0
    hours: float = 0.0

    def due(self, general, zone):
        """Return the due date, in UTC without a zone, from the one that all have."""
        if self.until is not None:
            return self.until
        local = general.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
        # Without days, the time stays that which it is, also in the hour that comes twice.
        later = to_utc(local + timedelta(days=self.days), zone) if self.days else general
        return later + timedelta(hours=self.hours)


def to_utc(local, zone):
    """Return a local time in UTC, without a zone.

    In autumn an hour comes twice and in spring one is left out; the later meaning is taken, as
    nobody should lose points for the change of a clock.
    """
    return max(
        local.replace(tzinfo=zone, fold=fold).astimezone(UTC).replace(tzinfo=None)
        for fold in (0, 1)
    )


def read_extensions(path, zone):
    """Return the extensions of a file.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.toml``, in UTF-8.
    zone : datetime.tzinfo
        Of times without an offset.

    Returns
    -------
    dict
        ``{(student, assignment): Extension}``; the assignment is empty where all are meant.

    Raises
    ------
    ValueError
        If the file is missing or a row is wrong; the message names the row and the value.
    """
    path = Path(path)
    try:
        changed = path.stat()
    except OSError as error:
        raise ValueError(
            f"LatePolicy.extensions must be a file, got {path}: {error.strerror}"
        ) from error
    # nbgrader makes a plug-in for each submission; the file is read once.
    return _read(path, zone, changed.st_mtime_ns, changed.st_size)


@functools.lru_cache(maxsize=4)
def _read(path, zone, changed, size):
    if path.suffix not in (".csv", ".toml"):
        raise ValueError(f"LatePolicy.extensions must end in .csv or .toml, got {path.name}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} must be a text in UTF-8: {error}") from error
    read = _csv_rows if path.suffix == ".csv" else _toml_rows
    found, where = {}, {}
    for place, row in read(text, path.name):
        key, extension = _extension(row, zone, place)
        if key in found:
            whom = " for ".join(part for part in key if part)
            raise ValueError(f"{place} must be the only one of {whom}, got also {where[key]}")
        found[key], where[key] = extension, place
    return found


def _csv_rows(text, name):
    try:
        rows = list(numbered_rows(text))
    except ValueError as error:
        raise ValueError(f"{name}, {error}") from error
    header = [column.strip() for column in rows[0][1]] if rows else []
    unknown = [column for column in header if column not in FIELDS]
    if "student" not in header or unknown or len(set(header)) < len(header):
        raise ValueError(
            f"{name} must have columns of {', '.join(FIELDS)}, got {', '.join(header)}"
        )
    for line, row in rows[1:]:
        place = f"{name}, line {line}"
        if len(row) != len(header):
            raise ValueError(f"{place} must have {len(header)} cells, got {len(row)}")
        yield place, dict(zip(header, (cell.strip() for cell in row), strict=True))


def _toml_rows(text, name):
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name} must be TOML: {error}") from error
    rows = content.pop("extension", [])
    if content or not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        other = ", ".join(content) or "something else"
        raise ValueError(f"{name} must have tables [[extension]] alone, got {other}")
    for number, row in enumerate(rows, start=1):
        place = f"{name}, extension {number}"
        unknown = [field for field in row if field not in FIELDS]
        if unknown:
            raise ValueError(f"{place} must have {', '.join(FIELDS)}, got {', '.join(unknown)}")
        yield place, row


def _extension(row, zone, place):
    student, assignment = row.get("student", ""), row.get("assignment", "")
    for field, value in (("student", student), ("assignment", assignment)):
        if not isinstance(value, str):
            raise ValueError(f"{field} must be a text, got {value!r} in {place}")
    if not student:
        raise ValueError(f"student must be named, got none in {place}")
    given = [kind for kind in KINDS if row.get(kind) not in (None, "")]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise ValueError(f"extension must be one of {', '.join(KINDS)}, got {got} in {place}")
    (kind,) = given
    value = row[kind]
    if kind == "until":
        extension = Extension(until=_until(value, zone, place))
    else:
        number = _number(value, kind, place)
        extension = Extension(days=int(number)) if kind == "days" else Extension(hours=number)
    return (student, assignment), extension


def _until(value, zone, place):
    if isinstance(value, str):
        try:
            # A date has no time in any of the forms of ISO 8601, and is its end.
            only_date = not any(mark in value for mark in ("T", "t", " ", ":"))
            value = date.fromisoformat(value) if only_date else datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(
                f"until must be a time as 2026-03-05T23:59, got {value!r} in {place}"
            ) from error
    try:
        if isinstance(value, datetime):
            if value.tzinfo is None:
                return to_utc(value, zone)
            return value.astimezone(UTC).replace(tzinfo=None)
        if isinstance(value, date):
            midnight = datetime(value.year, value.month, value.day)
            return to_utc(midnight + timedelta(days=1), zone)
    except OverflowError as error:  # no zone has such a time
        raise ValueError(
            f"until must be within the years 2 to 9998, got {value.isoformat()!r} in {place}"
        ) from error
    raise ValueError(f"until must be a time as 2026-03-05T23:59, got {value!r} in {place}")


def _number(value, kind, place):
    try:
        number = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    most = MOST_DAYS if kind == "days" else 24 * MOST_DAYS
    whole = kind != "days" or number.is_integer()
    if not (0 < number <= most and whole):
        rule = "a whole number" if kind == "days" else "a number"
        raise ValueError(
            f"{kind} must be {rule} above 0 and at most {most}, got {value!r} in {place}"
        )
    return number
