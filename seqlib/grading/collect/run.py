"""Collecting: from what a learning platform exports to the folders that are graded.

Who a submission is of and when it was made comes from the platform: from the part of a name
that the platform writes, from its note or list beside the files, or from the roster. What a
submission says about itself is not asked: neither a file ``timestamp.txt`` in it, nor the time
of a file in an archive, which is what the clock of the student's machine said.
"""

import contextlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from seqlib.grading.collect.archives import (
    Budget,
    RefusedError,
    is_archive,
    junk,
    open_export,
    unpack,
)
from seqlib.grading.collect.names import checked_id, folded, related, safe_file_name, slug
from seqlib.grading.collect.platforms import (
    PLATFORMS,
    is_notebook,
    looks_like_notebook,
    original_name,
    read_export,
    recognise,
)
from seqlib.grading.collect.roster import read_roster
from seqlib.grading.collect.store import TIMESTAMP, Shelf, Work
from seqlib.grading.collect.times import find_zone, read_time
from seqlib.grading.notebook.intake import MAX_NOTEBOOKS

# Endings under which a notebook may hide; what else has no such name is not opened.
_DOUBTFUL = ("", ".json", ".txt", ".html")
# Ways to find somebody in a roster that hold only while nobody else is found.
WEAK = {"name": "the name", "number": "a number"}
_HOW = {
    "name": "found by the name alone, since no id fits",
    "number": "found by a number that no full name confirms",
}


@dataclass
class Report:
    """What a run of :func:`collect` came to.

    Attributes
    ----------
    assignment, platform : str
        What was collected, and by whose form of names.
    collected, replaced, retimed, unchanged, older : list of str
        Ids of students, by what became of their folder: new; an older submission replaced; the
        same work, now with a time or a later one; as before; the one that lay there is newer.
    missing : list of str
        In the roster, and without a submission after this run.
    without_notebook : list of str
        Handed something in, but nothing that could be graded.
    late : list of str
        Marked as late by the platform.
    without_time : list of str
        Collected without a time of submission, so late penalties do not see them.
    doubled : dict
        ``{id: [where, ...]}`` of students with several submissions, the newest last.
    unmatched : list of dict
        ``where`` and ``reason`` of submissions and files that belong to nobody.
    refused : list of dict
        The same of files that were not read.
    stray : list of dict
        The same of files that are nobody's work, such as PDFs and what programs left.
    notes : list of str
        Sentences about single students, and about times.
    """

    assignment: str
    platform: str = ""
    collected: list = field(default_factory=list)
    replaced: list = field(default_factory=list)
    retimed: list = field(default_factory=list)
    unchanged: list = field(default_factory=list)
    older: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    without_notebook: list = field(default_factory=list)
    late: list = field(default_factory=list)
    without_time: list = field(default_factory=list)
    doubled: dict = field(default_factory=dict)
    unmatched: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    stray: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def complete(self):
        """Whether everything that was handed in has found its place."""
        return not (self.unmatched or self.refused or self.without_notebook)

    def to_dict(self):
        """Return it for JSON."""
        return asdict(self) | {"complete": self.complete}


def collect(course, exports, name, *, roster=None, platform="auto", timezone=None):
    """Put the submissions of exports into ``grading/submitted``.

    A second run with the same exports changes nothing. A newer submission replaces an older
    one, which is kept in ``grading/collected``; records and grades are left alone.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where to.
    exports : sequence of path
        Folders and zip archives as downloaded.
    name : str
        The assignment, released.
    roster : path, optional
        Table of the class: who is missing, which ids, and times where the exports have none.
    platform : str, default="auto"
        One of ``PLATFORMS``, or ``"auto"``: told from the names.
    timezone : str, optional
        The platform's time zone, such as ``Europe/Berlin``, for times that name none.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If an argument is wrong, or a file given by the instructor cannot be read. Nothing has
        been written then.

    References
    ----------
    nbgrader's documentation, "Exchanging assignment files manually", on
    ``submitted/STUDENT/ASSIGNMENT`` and ``timestamp.txt``.
    """
    if platform not in ("auto", *PLATFORMS):
        raise ValueError(f"platform must be auto or one of {PLATFORMS}, got {platform!r}")
    course.release(name)
    people = None if roster is None else read_roster(roster)
    zone = None if timezone is None else find_zone(timezone)
    report = Report(name)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open_export(path)) for path in _different(exports)]
        readings = [read_export(export, name, platform, people) for export in opened]
        found = {reading.platform for reading in readings}
        if len(found) != 1:
            each = ", ".join(
                f"{e.name} ({r.platform})" for e, r in zip(opened, readings, strict=True)
            )
            raise ValueError(
                f"exports must be of one platform, got {each}; collect them one by one, or say "
                "--platform"
            )
        report.platform = found.pop()
        for export, reading in zip(opened, readings, strict=True):
            _add(report.refused, export.refused)
            _add(report.unmatched, reading.unmatched)
            _add(report.stray, reading.stray)
        shelf = stack.enter_context(Shelf(course, name))
        hand_ins = [hand_in for reading in readings for hand_in in reading.hand_ins]
        _collect(hand_ins, shelf, people, zone, report)
    if people is not None:
        present = set(course.students(name)) | set(report.without_notebook)
        report.missing = [p.id for p in people.people if p.id not in present]
    for students in (report.collected, report.late, report.without_time):
        students.sort()
    return report


def _different(paths):
    """Return the paths, each once: an export given twice is no second submission."""
    unique = {}
    for path in paths:
        unique.setdefault(Path(path).resolve(), Path(path))
    if not unique:
        raise ValueError("exports must be folders or zip archives, got none")
    return unique.values()


def _add(listed, found):
    listed += [{"where": where, "reason": reason} for where, reason in found]


def _collect(hand_ins, shelf, people, zone, report):
    by_student, times = _assigned(hand_ins, shelf, people, report)
    unread = assumed = 0
    for student, found in by_student.items():
        works, empty = [], []
        for hand_in in found:
            files = _contents(hand_in, report)
            text = hand_in.time or times.get(student, "")
            time, guessed = read_time(text, zone)
            unread += bool(text and time is None)
            if not files:
                empty.append(hand_in.where)
                continue
            assumed += guessed
            key = f"{hand_in.platform}:{hand_in.key}"
            work = Work(
                key, files, time, text, guessed, hand_in.order, hand_in.late, hand_in.where
            )
            # Exports of different days have much in common.
            if all((w.digest, w.time) != (work.digest, work.time) for w in works):
                works.append(work)
        if not works:
            if student not in shelf.students:
                report.without_notebook.append(student)
            continue
        if empty:
            report.notes.append(
                f"{student}: no notebook in {', '.join(empty)}; another was taken"
            )
        for before in {shelf.student_of(work.key) for work in works} - {None, student}:
            shelf.retire(before, student)
            report.notes.append(
                f"{student}: collected as {before} in an earlier run; that folder was kept "
                f"aside, and records of {before} are left as they are"
            )
        state, work, notes = shelf.place(student, works)
        getattr(report, state).append(student)
        report.notes += [f"{student}: {note}" for note in notes]
        if len(works) > 1:
            report.doubled[student] = [w.where for w in works if w is not work] + [work.where]
        current = shelf.students[student]["current"]
        if current["late"]:
            report.late.append(student)
        if not current["time"]:
            report.without_time.append(student)
    if assumed:
        report.notes.append(
            f"{assumed} times name no zone that is known and were read as UTC; say --timezone"
        )
    if unread:
        report.notes.append(f"{unread} times were not understood and are not used")


# Who is who


def _assigned(hand_ins, shelf, people, report):
    """Return ``{student: hand-ins}`` and ``{student: time from the roster}``."""
    find = _by_roster if people is not None else _by_platform
    found = find(hand_ins, shelf, people, report)
    by_student, times, spelled = {}, {}, {}
    for student, hand_in, time in found:
        # Some file systems do not tell ada from Ada.
        first = spelled.setdefault(folded(student), student)
        if first != student:
            reason = f"the id {student} differs from {first} by nothing but case"
            _add(report.unmatched, [(hand_in.where, reason)])
            continue
        by_student.setdefault(student, []).append(hand_in)
        times[student] = time
    return dict(sorted(by_student.items())), times


def _by_roster(hand_ins, shelf, people, report):
    found = []
    for hand_in in hand_ins:
        person, how = people.find(hand_in.platform, hand_in.key, hand_in.name)
        for key in hand_in.also if person is None or how in WEAK else ():
            other, why = people.find(hand_in.platform, key, hand_in.name)
            if other is not None and why not in WEAK:
                person, how = other, why
        if person is None:
            _add(report.unmatched, [(hand_in.where, how)])
            continue
        found.append((person, hand_in, how))
    users, weakly = {}, {how: set() for how in WEAK}
    for person, hand_in, _ in found:
        users.setdefault(person.id, set()).add(hand_in.key)
    for person, hand_in, how in found:
        before = shelf.key_of(person.id)
        known = before is not None and before.partition(":")[0] == hand_in.platform
        if how in WEAK and (
            len(users[person.id]) > 1
            or (known and before != f"{hand_in.platform}:{hand_in.key}")
        ):
            # A name is no proof where another user is, or may be, the same person.
            reason = (
                f"only {WEAK[how]} fits {person.id} of the roster, and so does another user; "
                "give the platform's ids in the roster"
            )
            _add(report.unmatched, [(hand_in.where, reason)])
        else:
            if how in WEAK:
                weakly[how].add(person.id)
            elif not related(person.name, hand_in.name):
                report.notes.append(
                    f"{person.id}: {person.name} in the roster, and {hand_in.name} here"
                )
            yield person.id, hand_in, person.time
    for how, ids in weakly.items():
        if ids:
            names = ", ".join(sorted(ids))
            report.notes.append(f"{_HOW[how]}: {names}")


def _by_platform(hand_ins, shelf, people, report):
    """Use what the platform calls a student; for Moodle the name, which holds elsewhere too."""
    namesakes, owners = {}, {}
    if any(hand_in.platform == "moodle" for hand_in in hand_ins):
        report.notes.append(
            "students are told by the names that Moodle shows, which people may share or "
            "change; give Moodle's grading worksheet as --roster"
        )
    for hand_in in hand_ins:
        namesakes.setdefault(slug(hand_in.name), set()).add(hand_in.key)
    for hand_in in hand_ins:
        key = f"{hand_in.platform}:{hand_in.key}"
        if hand_in.platform == "gradescope" and not hand_in.also:
            reason = "the list has neither number nor address of its student; give a roster"
            _add(report.unmatched, [(hand_in.where, reason)])
            continue
        student = shelf.student_of(key)
        if student is None and hand_in.platform == "moodle":
            student = slug(hand_in.name)
            taken = shelf.key_of(student) not in (None, key)
            if len(namesakes[student]) > 1 or taken or not student:
                student = f"{student}-{hand_in.key}".strip("-")
                report.notes.append(
                    f"{student}: has a namesake, so the number of this one assignment was added"
                )
        try:
            student = checked_id(student or hand_in.key)
        except ValueError as error:
            _add(report.unmatched, [(hand_in.where, f"its student has no usable id: {error}")])
            continue
        # A student's name may be what a namesake's has become with the number, and one number
        # of students may have been given to two accounts of Gradescope.
        earlier = shelf.key_of(student) if hand_in.platform == "moodle" else None
        owner = owners.setdefault(student, (earlier or key, hand_in.also))
        if owner == (key, hand_in.also):
            yield student, hand_in, ""
        else:
            user = " or ".join(owner[1]) or owner[0].partition(":")[2]
            reason = f"the id {student} would be that of user {user} too; give a roster"
            _add(report.unmatched, [(hand_in.where, reason)])


# What was handed in


def _contents(hand_in, report):
    """Return ``{name: content}`` of what may be graded in a submission."""
    budget, found = Budget(), []
    for name, member, order in hand_in.files:
        if not is_archive(name):
            found.append((name, member, order))
            continue
        try:
            inner, refused = unpack(member, budget)
        except RefusedError as error:
            _add(report.refused, [(member.where, str(error))])
            continue
        _add(report.refused, refused)
        several = len({m.parts[0] for m in inner}) > 1
        if hand_in.platform == "generic" and several and recognise(inner) != "generic":
            # A folder with an export in it was given, or a student made one up.
            reason = f"it is like an export of {recognise(inner)}; give that itself"
            _add(report.refused, [(member.where, reason)])
            continue
        found += [(m.name, m, order) for m in inner]
    expected = f"{report.assignment}.ipynb"
    taken = []
    for name, member, order in found:
        who = junk(member.parts)
        if who:
            _add(report.stray, [(member.where, f"left by {who}")])
        elif folded(name) == TIMESTAMP:
            _add(report.stray, [(member.where, "a time that the student wrote is not used")])
        else:
            content = _notebook(name, member, budget, report)
            if content is not None:
                name = original_name(hand_in.platform, name, expected)
                taken.append((order, name, member, content))
    # Newer uploads first: of two files of one name the newer keeps it.
    taken.sort(key=lambda upload: -upload[0])
    files = {}
    for _, name, member, content in taken:
        if len(files) >= MAX_NOTEBOOKS:
            _add(report.refused, [(member.where, f"more than {MAX_NOTEBOOKS} notebooks")])
            continue
        if content in files.values():
            continue
        files[_free_name(safe_file_name(name), files)] = content
    return files


def _notebook(name, member, budget, report):
    """Return the content of a file if it is one that grading reads; else say why not."""
    _, dot, ending = name.rpartition(".")
    ending = f".{ending}".lower() if dot else ""
    if not is_notebook(name) and ending not in _DOUBTFUL:
        _add(report.stray, [(member.where, "no notebook")])
        return None
    try:
        content = budget.read(member)
    except RefusedError as error:
        _add(report.refused, [(member.where, str(error))])
        return None
    if is_notebook(name) or looks_like_notebook(content):
        return content
    _add(report.stray, [(member.where, "no notebook")])
    return None


def _free_name(name, taken):
    lower = {folded(other) for other in taken}
    stem, dot, ending = name.partition(".ipynb")
    if not dot:
        # A notebook under another name, as platforms store what they cannot show.
        stem, dot = name, "" if name.lower().endswith((".json", ".txt", ".html")) else ".ipynb"
    number, free = 1, f"{stem}{dot}{ending}"
    while folded(free) in lower:
        number += 1
        free = f"{stem} ({number}){dot}{ending}"
    return free
