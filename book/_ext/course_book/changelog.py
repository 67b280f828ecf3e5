"""The changes of grading: ``book/data/changes.toml`` as a page, held against the records.

A record of a submission has the version of the exercise and of the judge, so a grader who
meets version 2 must be able to find out what it changed.
"""

import tomllib
from dataclasses import dataclass

from course_book.data import ROOT
from course_book.markdown import Generated

JUDGE = "judge"


@dataclass(frozen=True)
class Change:
    """One version of a task, or of the judge.

    Attributes
    ----------
    what : str
        Id of the task, or ``"judge"``.
    version : int
        Which it made.
    says : str
        What is different.
    scores : str
        Whose scores may differ, ``"none"`` if nobody's.
    retired : bool
        Whether the task is not given any more.
    """

    what: str
    version: int
    says: str
    scores: str
    retired: bool = False


def changes(root=ROOT):
    """Return all changes: those of the judge, then of the tasks, each in the file's order."""
    text = (root / "book" / "data" / "changes.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    return [Change(JUDGE, **row) for row in found.get("judge", ())] + [
        Change(row.pop("task"), **row) for row in found.get("task", ())
    ]


def change_gaps(changes, tasks, judge_version):
    """Return what the changes leave out or have too much, one sentence each.

    Parameters
    ----------
    changes : list of Change
        From :func:`changes`.
    tasks : dict
        ``{task id: exercise version}`` of all assignments.
    judge_version : int
        Of the judge.
    """
    here = {JUDGE: judge_version, **tasks}
    retired = {change.what for change in changes if change.retired}
    entries = [(change.what, change.version) for change in changes]
    needed = {(JUDGE, 1)} | {(w, v) for w, last in here.items() for v in range(2, last + 1)}
    gaps = [f"{w}: version {v} has no entry" for w, v in sorted(needed - set(entries))]
    for what, version in entries:
        if what in retired:
            if what in here:
                gaps.append(f"{what}: listed as retired, but it is a task")
        elif what not in here:
            gaps.append(f"{what}: there is no such task")
        elif not 1 <= version <= here[what]:
            gaps.append(f"{what}: version {version} has an entry, but the last is {here[what]}")
        if entries.count((what, version)) > 1:
            gaps.append(f"{what}: version {version} has more than one entry")
    return list(dict.fromkeys(gaps))


def as_markdown(changes):
    """Return the list of the page: the judge, then the tasks, the newest version first."""
    lines = []
    for change in sorted(changes, key=lambda c: (c.what != JUDGE, c.what, -c.version)):
        what = "The judge" if change.what == JUDGE else f"`{change.what}`"
        retired = ", the task is retired" if change.retired else ""
        lines += [
            f"- {what}, version {change.version}{retired}: {change.says}",
            f"  Scores that may differ: {change.scores}.",
        ]
    return "\n".join(lines)


class Changes(Generated):
    """The changes of grading on a page."""

    depends_on = "changes.toml"

    def text(self):
        """Return the list."""
        return as_markdown(changes())


def setup(app):
    """Register the directive."""
    app.add_directive("changes", Changes)
