"""Times of submission as the platforms write them."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# As the platforms write them in English; what is numeric and not ISO 8601 is read by nobody
# the same way.
_FORMATS = (
    "%Y-%m-%d-%H-%M-%S",  # Blackboard, in names of files
    "%A, %B %d, %Y %I:%M:%S %p",  # Blackboard, in the note, United States
    "%A, %d %B %Y %H:%M:%S",  # the same, United Kingdom
    "%A, %d %B %Y %I:%M:%S %p",
    "%A, %d %B %Y, %I:%M %p",  # Moodle's grading worksheet
    "%A, %B %d, %Y, %I:%M %p",
    "%A, %d %B %Y, %H:%M",
)
# The abbreviations that RFC 5322, section 4.3, gives a meaning; others have several.
_ZONES = {
    **{"UTC": 0, "UT": 0, "GMT": 0, "Z": 0},
    **{"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8},
}


def find_zone(name):
    """Return a time zone by its name in the IANA database, ``Europe/Berlin``.

    Raises
    ------
    ValueError
        If there is no zone of that name on this machine.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"timezone must be a name such as Europe/Berlin or UTC, got {name!r}"
        ) from error


def read_time(text, zone=None):
    """Read a time of submission.

    Parameters
    ----------
    text : str
        As a platform writes it.
    zone : tzinfo, optional
        The platform's zone, for times that name none or one by an abbreviation that is this
        zone's or has no fixed meaning. A time that exists twice, when clocks are set back, is
        the first one unless its abbreviation says otherwise.

    Returns
    -------
    time : datetime or None
        In UTC; None if the text is not understood.
    assumed : bool
        Whether no zone was known and UTC was taken.
    """
    text = " ".join(text.replace("o'clock", " ").split())
    if not text:
        return None, False
    naive, abbreviation = None, None
    match = re.fullmatch(r"(.*\d(?: [AP]M)?) ?([A-Z]{1,5})", text)
    if match and match[2] not in ("AM", "PM"):
        text, abbreviation = match[1], match[2]
    # Ruby writes a space before the offset and nine digits of a second.
    iso = re.sub(r" (?=[+-]\d\d:?\d\d$)", "", text)
    try:
        naive = datetime.fromisoformat(iso)
    except ValueError:
        for form in _FORMATS:
            try:
                naive = datetime.strptime(text, form)
                break
            except ValueError:
                continue
    if naive is None:
        return None, False
    if naive.tzinfo is not None:
        return _in_utc(naive), False
    for fold in (0, 1) if zone is not None and abbreviation else ():
        local = naive.replace(tzinfo=zone, fold=fold)
        if local.tzname() == abbreviation:
            return _in_utc(local), False
    if abbreviation in _ZONES:
        zone = timezone(timedelta(hours=_ZONES[abbreviation]))
    return _in_utc(naive.replace(tzinfo=zone or UTC)), zone is None


def _in_utc(time):
    try:
        return time.astimezone(UTC).replace(microsecond=0)
    except OverflowError:  # the year 1 or 9999
        return None
