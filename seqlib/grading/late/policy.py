"""What a late submission costs: grace, a share for each day, a most, and extensions.

This is a plug-in of nbgrader's ``AssignLatePenalties``, so ``nbgrader autograde`` and ``seqlib
grade`` apply it alike. In ``nbgrader_config.py``::

    c.AssignLatePenalties.plugin_class = "seqlib.grading.late.policy.LatePolicy"
    c.LatePolicy.percent_per_day = 10
    c.LatePolicy.max_percent = 50
    c.LatePolicy.grace_minutes = 15
    c.LatePolicy.timezone = "Europe/Berlin"
    c.LatePolicy.extensions = "extensions.csv"

Days are those of the calendar in the zone: what is due at 18:00 is one day late until 18:00 of
the next day, also when that is 23 or 25 hours later.
"""

import difflib
from datetime import UTC, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Enum, Float, TraitError, Unicode

from seqlib.grading.late.extensions import read_extensions, to_utc

DAY = timedelta(days=1)


class LatePolicy(LateSubmissionPlugin):
    """A penalty that grows with each day that has begun.

    Raises
    ------
    ValueError
        If an option or the file of extensions is wrong; the message names it.
    """

    percent_per_day = Float(
        0.0, help="share of the score that each day costs which has begun, 0 to 100"
    ).tag(config=True)
    max_percent = Float(100.0, help="what it costs at most, 0 to 100").tag(config=True)
    grace_minutes = Float(
        0.0, help="so much later is in time; beyond it days count from the due date"
    ).tag(config=True)
    base = Enum(
        ("score", "points"),
        default_value="score",
        help="a share of what: the points that the work has got, or those of the notebook",
    ).tag(config=True)
    timezone = Unicode("UTC", help="zone of days and of times in the file").tag(config=True)
    extensions = Unicode(
        "", help="file of extensions, .csv or .toml, relative to the course's folder"
    ).tag(config=True)

    def __init__(self, **options):
        parent = options.get("parent")
        config = options.get("config") or getattr(parent, "config", None) or {}
        _check_names(type(self), config)
        try:
            super().__init__(**options)
        except TraitError as error:
            raise ValueError(f"LatePolicy: {error}") from error
        for name, most in (
            ("percent_per_day", 100),
            ("max_percent", 100),
            ("grace_minutes", 0),
        ):
            value = getattr(self, name)
            # Not a number is not between anything.
            if not 0 <= value <= (most or float("1e9")):
                rule = f"between 0 and {most}" if most else "0 or more"
                raise ValueError(f"LatePolicy.{name} must be {rule}, got {value:g}")
        if self.penalty_method != "none":
            raise ValueError(
                "LateSubmissionPlugin.penalty_method must be 'none' with LatePolicy, got "
                f"{self.penalty_method!r}"
            )
        self.zone = _zone(self.timezone)
        self.granted = {}
        if self.extensions:
            root = config.get("CourseDirectory", {}).get("root", "") if config else ""
            self.granted = read_extensions(Path(root or ".") / self.extensions, self.zone)

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        """Return the points to take off, None if the submission counts as in time.

        Parameters
        ----------
        student_id : str
            Whose.
        score : float
            Points that the notebook has got.
        total_seconds_late : float
            As nbgrader counts it: from the due date in the gradebook, extended as there.

        Returns
        -------
        float or None
        """
        submission, points = self._submission(student_id)
        due = self.due(student_id, submission)
        base = score if self.base == "score" else points
        return penalty(
            due,
            submission.timestamp,
            self.zone,
            grace=timedelta(minutes=self.grace_minutes),
            percent_per_day=self.percent_per_day,
            max_percent=self.max_percent,
            base=base,
        )

    def due(self, student_id, submission):
        """Return when a submission was due, in UTC: the latest of what was granted."""
        general = submission.assignment.duedate
        granted = [
            extension.due(general, self.zone)
            for name in ("", submission.assignment.name)
            if (extension := self.granted.get((student_id, name)))
        ]
        return max([submission.duedate, *granted])

    def _submission(self, student_id):
        parent = self.parent
        if getattr(parent, "gradebook", None) is None:
            raise ValueError("LatePolicy must be used by AssignLatePenalties, got no gradebook")
        names = (parent.assignment_id, student_id)
        notebook = parent.gradebook.find_submission_notebook(parent.notebook_id, *names)
        return parent.gradebook.find_submission(*names), notebook.max_score


def penalty(due, submitted, zone, *, grace, percent_per_day, max_percent, base):
    """Return the points to take off a submission, None if it counts as in time.

    Parameters
    ----------
    due, submitted : datetime
        In UTC, without a zone.
    zone : datetime.tzinfo
        Whose days are counted.
    grace : timedelta
        How much later is in time.
    percent_per_day, max_percent : float
        Share that each day costs which has begun, and all days together at most.
    base : float
        Points of which it is the share.
    """
    if submitted <= due + grace:
        return None
    percent = min(percent_per_day * days_begun(due, submitted, zone), max_percent)
    return base * percent / 100


def days_begun(due, submitted, zone):
    """Return how many days have begun after a due date.

    Parameters
    ----------
    due, submitted : datetime
        In UTC, without a zone.
    zone : datetime.tzinfo
        Whose calendar counts.

    Returns
    -------
    int
        0 in time, 1 up to the same time of the next day, and so on.
    """
    local = due.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
    # A day has 23 to 25 hours, so the number is no smaller than this.
    days = max(0, (submitted - due) // DAY - 1)
    while submitted > due and to_utc(local + days * DAY, zone) < submitted:
        days += 1
    return days if submitted > due else 0


def _zone(name):
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:  # unknown, or no name at all
        raise ValueError(
            f"LatePolicy.timezone must be a name as 'Europe/Berlin', got {name!r}"
        ) from error


def _check_names(kind, config):
    """Refuse an option that there is not: misspelt, it would be a penalty that is not taken."""
    known = kind.class_trait_names(config=True)
    sections = [k.__name__ for k in kind.__mro__ if issubclass(k, LatePolicy)]
    for name in [n for section in sections for n in config.get(section, {})] if config else ():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"LatePolicy must have options {', '.join(sorted(known))}, got {name!r}{hint}"
            )
