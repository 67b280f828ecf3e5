"""What a judge found out about one task: criteria, diagnosis, notes, as data and as text."""

import math
import os
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class CriterionResult:
    """One line of the mark scheme with its outcome.

    Attributes
    ----------
    name, says : str
        As in the record of the task.
    points : float
        What it pays at most.
    passed : bool
        Whether it pays: it holds, and so do all criteria that it needs.
    message : str
        What differs, for the student; empty if it passed. Never a reference value.
    """

    name: str
    says: str
    points: float
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The mistake that explains a wrong answer.

    Attributes
    ----------
    kind : str
        ``"mistake"`` (one misconception, or several made together), ``"either"`` (one of
        several that these inputs do not tell apart), ``"partial"`` (made, but not the only
        mistake) or ``"property"`` (the property that fails; no misconception fits).
    names : tuple of str
        Misconceptions, or the criterion of the property.
    says : tuple of str
        One sentence for each.
    pages : tuple of str
        Labels of the sections that treat them, ``"attention#scaling"``.
    """

    kind: str
    names: tuple[str, ...]
    says: tuple[str, ...]
    pages: tuple[str, ...]


@dataclass(frozen=True)
class TaskResult:
    """All that is recorded about one judged task.

    Attributes
    ----------
    task : str
        Id of the task.
    version, judge_version : int
        Versions of the exercise and of the judge; a record of other versions is out of date.
    seed : int
        Seed of the inputs: the same seed gives the same result.
    criteria : tuple of CriterionResult
        In the order of the record.
    diagnosis : Diagnosis or None
        None if everything passed or nothing fits.
    notes : tuple of str
        What costs nothing but is worth knowing.
    score, points : float
        What was earned, of how much.
    """

    task: str
    version: int
    judge_version: int
    seed: int
    criteria: tuple[CriterionResult, ...]
    diagnosis: Diagnosis | None
    notes: tuple[str, ...]
    score: float
    points: float

    def to_dict(self):
        """Return the record as dicts, lists, strings and numbers, ready for JSON."""
        return _plain(asdict(self))

    @classmethod
    def from_dict(cls, record):
        """Return the result whose ``to_dict`` is ``record``."""
        record = dict(record)
        diagnosis = record["diagnosis"]
        if diagnosis is not None:
            diagnosis = {k: v if k == "kind" else tuple(v) for k, v in diagnosis.items()}
            record["diagnosis"] = Diagnosis(**diagnosis)
        record["criteria"] = tuple(CriterionResult(**c) for c in record["criteria"])
        record["notes"] = tuple(record["notes"])
        return cls(**record)

    def lines(self, *, diagnosis=True):
        """Return what the student reads: criteria, then the diagnosis, then notes.

        Parameters
        ----------
        diagnosis : bool, default=True
            Whether the named mistake is shown.
        """
        lines = [f"{self.task}: {number(self.score)} of {number(self.points)} points"]
        for c in self.criteria:
            mark = "[ok]" if c.passed else "[--]"
            earned = number(c.points if c.passed else 0)
            line = f"{mark} {earned} of {number(c.points)}  {c.says}"
            lines.append(line if c.passed else f"{line}: {c.message}")
        if diagnosis and self.diagnosis is not None:
            lines += _diagnosis_lines(self.diagnosis)
        return lines + [f"Note: {note}" for note in self.notes]


_OPENINGS = {
    "mistake": "Likely mistake:",
    "either": "One of these mistakes:",
    "partial": "One mistake, beside another one:",
    "property": "What does not hold:",
}


def _diagnosis_lines(diagnosis):
    opening = _OPENINGS[diagnosis.kind]
    if diagnosis.kind == "mistake" and len(diagnosis.names) > 1:
        opening = f"Likely these {len(diagnosis.names)} mistakes together:"
    sentences = [
        f"{says} See {address(page)}" if page else says
        for says, page in zip(diagnosis.says, diagnosis.pages, strict=True)
    ]
    if len(sentences) == 1:
        return [f"{opening} {sentences[0]}"]
    return [opening, *(f"  - {sentence}" for sentence in sentences)]


def address(page):
    """Return where a section of the book is: ``"attention.html#scaling"``.

    The environment variable ``SEQLIB_BOOK`` names the site in front of it.
    """
    name, _, section = page.partition("#")
    site = os.environ.get("SEQLIB_BOOK", "").rstrip("/")
    return (f"{site}/" if site else "") + f"{name}.html" + (f"#{section}" if section else "")


def number(points):
    """Write points without trailing zeros: ``"2"``, ``"2.5"``."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def total(criteria):
    """Return the points of the criteria that passed, a plain float."""
    return float(math.fsum(c.points for c in criteria if c.passed))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
