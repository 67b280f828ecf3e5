"""How the platforms name what they export, and what follows from it: who, when, which file.

A name in an export has a part that the platform wrote and a part that the student chose: a
student may call a file like another student's submission. The platform's part comes first, so
patterns are read from the left. In front of Canvas's numbers is the student's name, which may
hold numbers too: a name that can be read in two ways is settled by the roster, or by nobody.

==========  ==========================================================================
Platform    Form
==========  ==========================================================================
Canvas      ``lovelaceada_LATE_4711_90210_attention-1.ipynb``: sortable name in lower case
            without spaces, ``LATE`` (``late`` in older versions), user, attachment, file;
            ``-1`` where a file of that name was there before. ``anon_Ab3dE_90210_...``
            where students are anonymous. No time.
Moodle      ``Ada Lovelace_1234567_assignsubmission_file/attention.ipynb`` (older versions:
            ``..._file_/``), or in one folder
            ``Ada Lovelace_1234567_assignsubmission_file_attention.ipynb``. The number is the
            participant's, in this assignment alone. No time; the grading worksheet has one.
Blackboard  ``Attention_ada_attempt_2026-01-31-13-45-00_attention.ipynb``, and a note
            ``Attention_ada_attempt_2026-01-31-13-45-00.txt`` with name, time and original
            names.
Gradescope  ``submission_1234/attention.ipynb``, and ``submission_metadata.yml`` with the
            submitters and the time of each.
generic     ``ada/attention.ipynb``, ``ada/attention/attention.ipynb``, ``ada.zip``,
            ``ada.ipynb`` or ``ada_attention.ipynb``. No time.
==========  ==========================================================================

References
----------
Canvas: ``lib/content_zipper.rb`` and ``Attachment.make_unique_filename`` in
``instructure/canvas-lms``. Moodle: ``mod/assign/classes/downloader.php`` in ``moodle/moodle``.
Blackboard: "Download assignment submissions" in its help for instructors; the form of the names
is also the example in nbgrader's "Exchanging assignment files manually". Gradescope: the
archive of "Export Submissions", which is not documented; the fields are those that its users'
programs read.
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field

from seqlib.grading.collect.archives import RefusedError, junk
from seqlib.grading.collect.names import composed, folded, related, squeezed

PLATFORMS = ("canvas", "moodle", "blackboard", "gradescope", "generic")
MAX_NOTE = 1_000_000
MAX_METADATA = 64_000_000
METADATA = "submission_metadata.yml"
_IDS = re.compile(r"(?=_(\d+)_(\d+)_)")
_LATE = re.compile(r"_(?:LATE|late)$")
_ANONYMOUS = re.compile(
    r"(?:(?:LATE|late)_)?anon_(?P<user>\w+?)_(?P<attachment>\d+)_(?P<file>.+)"
)
_TYPED = re.compile(
    r"(?:(?P<name>.*?)(?P<late>_LATE|_late)?_)?(?P<user>\d+|anon_[A-Za-z0-9]+)"
    r"_(?:text|link)\.html"
)
_MOODLE = re.compile(
    r"(?P<name>[^_]*)_(?P<user>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?",
    re.DOTALL,
)
_BLACKBOARD = re.compile(
    r"(?P<stem>.+?)_attempt_(?P<time>\d{4}(?:-\d\d){5})(?:(?P<note>\.txt)|_(?P<file>.+))",
    re.DOTALL,
)
_GRADESCOPE = re.compile(r"submission_\w+")
# From the eighth upload of one name on, Canvas adds a UUID in place of a number.
_AGAIN = re.compile(
    r"(?P<stem>.+?)-(?:\d+|[0-9a-f-]{36})(?P<ending>\.[A-Za-z0-9.]+)", re.DOTALL
)
# What programs and platforms add to the name of a file where there is one of that name.
_COPY = re.compile(r"(?i:-Copy| ?\(|-)(\d{0,9})\)?")
_NOTEBOOK = (".ipynb", ".ipynb.txt", ".ipynb.json")


@dataclass
class HandIn:
    """One submission of one student, as a platform gives it.

    Attributes
    ----------
    platform : str
        Which.
    key : str
        What the platform calls the student.
    name : str
        The student's name as far as the platform shows it.
    where : str
        Where it lies, for the report.
    files : list of tuple
        ``(name, member, order)``: the file's name without what the platform added, and a
        number that grows with the time of the upload, or 0.
    time : str
        When it was made, as the platform writes it; empty if it does not.
    late : bool
        Whether the platform marks it as late.
    order : int
        Grows with the time of the submission, or 0 if that is not known.
    also : tuple of str
        What else the platform calls the student.
    others : list of HandIn
        Other ways to read the same names, the less likely after the more likely.
    """

    platform: str
    key: str
    name: str
    where: str
    files: list = field(default_factory=list)
    time: str = ""
    late: bool = False
    order: int = 0
    also: tuple[str, ...] = ()
    others: list = field(default_factory=list)


@dataclass
class Reading:
    """What an export was found to hold.

    Attributes
    ----------
    platform : str
        By which it was read.
    hand_ins : list of HandIn
        One for each student and attempt.
    unmatched : list of tuple
        ``(where, reason)`` of files that belong to nobody.
    stray : list of tuple
        ``(where, reason)`` of files that no student handed in as work.
    """

    platform: str
    hand_ins: list = field(default_factory=list)
    unmatched: list = field(default_factory=list)
    stray: list = field(default_factory=list)


def read_export(export, assignment, platform="auto", roster=None):
    """Find out who handed in what.

    Parameters
    ----------
    export : seqlib.grading.collect.archives.Export
        What was downloaded.
    assignment : str
        Name of the assignment.
    platform : str, default="auto"
        One of ``PLATFORMS``, or ``"auto"``: that whose form the most names have.
    roster : seqlib.grading.collect.roster.Roster, optional
        The class.

    Returns
    -------
    Reading
    """
    members, stray = [], []
    for member in export.members:
        who = junk(member.parts)
        if who:
            stray.append((member.where, f"left by {who}"))
        else:
            members.append(member)
    members = _without_wrappers(members, assignment, roster)
    if platform == "auto":
        platform = recognise(members)
    reading = Reading(platform, stray=stray)
    _READERS[platform](members, reading, export, assignment, roster)
    return reading


def recognise(members):
    """Return the platform whose form the most names at the top of an export have."""
    tops = Counter(member.parts[0] for member in members)
    files = {member.parts[0] for member in members if len(member.parts) == 1}
    if METADATA in files and any(_GRADESCOPE.fullmatch(top) for top in tops):
        return "gradescope"
    counts = {
        "moodle": sum(bool(_MOODLE.fullmatch(top)) for top in tops),
        "blackboard": sum(bool(_BLACKBOARD.fullmatch(top)) for top in files),
        "canvas": sum(bool(_canvas(top)) for top in files),
    }
    best = max(counts, key=counts.get)  # the first of equals, whose form is the narrowest
    return best if counts[best] and 2 * counts[best] >= len(tops) else "generic"


def _without_wrappers(members, assignment, roster):
    """Leave out folders around the whole export, such as an archive's own name."""
    while True:
        tops = {member.parts[0] for member in members}
        if len(tops) != 1 or any(len(member.parts) == 1 for member in members):
            return members
        (top,) = tops
        if _MOODLE.fullmatch(top) or _GRADESCOPE.fullmatch(top):
            return members
        if roster is not None and roster.find("generic", top, "")[0] is not None:
            return members
        inside = {member.parts[1] for member in members}
        if any(_stem(name) == folded(assignment) for name in inside):
            return members  # the folder of the one student in it
        members = [member.below(1) for member in members]


# Canvas


def _canvas(name):
    """Return the ways to read a name: ``(name, late, user, attachment, file)``."""
    match = _ANONYMOUS.fullmatch(name)
    if match:
        late = name[:4] in ("LATE", "late")
        return [("", late, f"anon_{match['user']}", int(match["attachment"]), match["file"])]
    ways = []
    for match in _IDS.finditer(name):
        # A name without a letter or digit leaves nothing of itself.
        person, late = _LATE.subn("", name[: match.start()])
        user, attachment = match.groups()
        file = name[match.start() + len(user) + len(attachment) + 3 :]
        if file:
            ways.append((person, bool(late), user, int(attachment), file))
    return ways


def _read_canvas(members, reading, export, assignment, roster):
    groups = {}
    for member in members:
        typed = _TYPED.fullmatch(member.name)
        ways = _canvas(member.name) if len(member.parts) == 1 else []
        if typed and ways:
            reason = f"it may be typed text of user {typed['user']}, or a file of another"
            reading.unmatched.append((member.where, reason))
        elif typed:
            key = (typed["user"], typed["name"] or "", False)
            group = groups.setdefault(key, _hand_in("canvas", key, member))
            group.late |= bool(typed["late"])
            reading.stray.append((member.where, "text typed into the platform"))
        elif not ways:
            reading.unmatched.append((member.where, "its name is not of Canvas's form"))
        else:
            name, late, user, attachment, file = ways[0]
            # A file that may be read in several ways must not take others along.
            key = (user, name, member.name if len(ways) > 1 else False)
            group = groups.setdefault(key, _hand_in("canvas", key, member))
            _add_upload(group, member, late, attachment, file)
            for name, late, user, attachment, file in ways[1:]:
                other = _hand_in("canvas", (user, name), member)
                _add_upload(other, member, late, attachment, file)
                group.others.append(other)
    reading.hand_ins += _joined(groups.values(), reading, roster)


def _hand_in(platform, key, member, **more):
    return HandIn(platform, key[0], key[1], member.where, **more)


def _add_upload(group, member, late, attachment, file):
    group.files.append((file, member, attachment))
    group.late |= late
    group.order = max(group.order, attachment)


def _joined(groups, reading, roster):
    """Decide what each name means, and join the files of one user."""
    chosen = {}
    for group in groups:
        best, reason = _meant(group, roster)
        if best is None:
            reading.unmatched.append((group.where, reason))
        else:
            chosen.setdefault(best.key, []).append((best, bool(group.others)))
    for same in chosen.values():
        names = {squeezed(group.name) for group, _ in same}
        sure = [group for group, doubtful in same if not doubtful]
        first = (sure or [group for group, _ in same])[0]
        for group, doubtful in same:
            if doubtful and len(names) > 1 and squeezed(group.name) != squeezed(first.name):
                reading.unmatched.append(
                    (
                        group.where,
                        f"it may be of user {group.key}, who has another name in other files",
                    )
                )
            elif group is not first:
                first.files += group.files
                first.late |= group.late
                first.order = max(first.order, group.order)
        yield first


def _meant(group, roster):
    """Return the reading of a name that fits the roster, or None and why there is none.

    Canvas takes from a student's name what is like its own numbers, but before it takes out
    spaces and signs. So a name may hold any numbers, as a file's name may, and from the left
    or the right, the first two numbers are not always those of the platform.
    """
    ways = [group, *group.others]
    if len(ways) == 1:
        return group, ""
    either = f"it may be of user {' or '.join(way.key for way in ways)}"
    if roster is None:
        return None, (
            f"{either}: a student's name or file has numbers like those of Canvas; give its "
            "gradebook as --roster"
        )
    fits = [(way, *roster.find("canvas", way.key, way.name)) for way in ways]
    users = {way.key for way in ways if roster.knows("canvas", way.key)}
    for way, person, how in fits:
        # With somebody's name and number for a name, one's own number is the upload's.
        own = str(way.order) in users - {way.key}
        known = person is not None and how in ("key", "id")
        if known and squeezed(way.name) in person.names and not own:
            return way, ""
    # One that is somebody's number and nobody's name is what a made-up name leads to. Where
    # two are in the class, a part of a name is no proof, since names and files are chosen.
    fits = [way for way, person, _ in fits if person and related(person.name, way.name)]
    if len(fits) == 1 and len(users) < 2:
        return fits[0], ""
    return None, f"{either}, and the roster does not tell which"


# Moodle


def _read_moodle(members, reading, export, assignment, roster):
    groups = {}
    for member in members:
        match = _MOODLE.fullmatch(member.parts[0])
        if not match:
            reading.unmatched.append((member.where, "its name is not of Moodle's form"))
            continue
        key = (match["user"], match["name"].strip())
        group = groups.setdefault(key, _hand_in("moodle", key, member))
        if match["kind"] != "file":
            reading.stray.append((member.where, "text typed into the platform"))
        elif len(member.parts) > 1:
            group.files.append((member.name, member.below(1), 0))
        else:
            group.files.append((match["file"] or member.name, member, 0))
    reading.hand_ins += groups.values()


# Blackboard


def _read_blackboard(members, reading, export, assignment, roster):
    attempts, notes = {}, {}
    for member in members:
        match = _BLACKBOARD.fullmatch(member.name) if len(member.parts) == 1 else None
        if not match:
            reading.unmatched.append((member.where, "its name is not of Blackboard's form"))
            continue
        key = (match["stem"], match["time"])
        attempts.setdefault(key, [])
        if match["note"]:
            notes[key] = member
        else:
            attempts[key].append((match["file"], member))
    bare = {}
    for stem, time in attempts:
        if (stem, time) not in notes:
            bare.setdefault(_blackboard_user(stem, roster), set()).add(stem)
    for (stem, time), files in attempts.items():
        note = notes.get((stem, time))
        where = (note or files[0][1]).where
        try:
            about = _note(note, stem) if note else {}
        except RefusedError as error:
            reading.unmatched.append((where, str(error)))
            continue
        user = about.get("user") or _blackboard_user(stem, roster)
        if not note and len(bare[user]) > 1:
            reason = f"without its note it may be of {user} or of a longer name; give a roster"
            reading.unmatched.append((where, reason))
            continue
        names = about.get("files", {})
        reading.hand_ins.append(
            HandIn(
                "blackboard",
                user,
                about.get("name", ""),
                where,
                [(names.get(member.name, file), member, 0) for file, member in files],
                about.get("time") or time,
            )
        )


def _note(member, stem):
    """Return what the note beside an attempt says.

    The student's own text comes after the platform's lines, so a line counts only before it,
    and the list of files only after the last heading of that name.
    """
    try:
        text = member.read(MAX_NOTE).decode("utf-8-sig", errors="replace")
    except RefusedError as error:
        raise RefusedError(f"the note cannot be used: {error}") from error
    head, _, rest = text.partition("\nSubmission Field:")
    lines = [line.partition(":") for line in head.splitlines()]
    said = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    match = re.fullmatch(r"(.*)\(([^()]+)\)", said.get("Name", ""))
    if not match:
        raise RefusedError(
            "the note does not say whose it is: it has no line Name: Name (user)"
        )
    user = match[2].strip()
    if not folded(stem).endswith(f"_{folded(user)}"):
        raise RefusedError(f"the note names the user {user}, and its own name another one")
    files = {}
    listed = rest.rpartition("\nFiles:")[2].splitlines()
    for first, second in itertools.pairwise(listed):
        original = first.strip().removeprefix("Original filename:")
        renamed = second.strip().removeprefix("Filename:")
        if original != first.strip() and renamed != second.strip():
            files[renamed.strip()] = original.strip()
    time = said.get("Date Submitted", "")
    return {"user": user, "name": match[1].strip(), "time": time, "files": files}


def _blackboard_user(stem, roster):
    """Return the user of an attempt without a note: what comes after the assignment's name."""
    parts = stem.split("_")
    for first in range(1, len(parts) if roster is not None else 0):
        user = "_".join(parts[first:])
        if roster.find("blackboard", user, "")[0] is not None:
            return user
    return parts[-1]


# Gradescope


def _read_gradescope(members, reading, export, assignment, roster):
    about, groups = {}, {}
    for member in members:
        if member.parts == (METADATA,):
            about = _metadata(member)
        elif len(member.parts) > 1 and _GRADESCOPE.fullmatch(member.parts[0]):
            groups.setdefault(member.parts[0], []).append(member)
        else:
            reading.unmatched.append((member.where, "it lies in no folder of a submission"))
    if not about:
        raise ValueError(
            f"export of Gradescope must have {METADATA}, which says whose each folder is, "
            f"got none in {export.name}"
        )
    for folder in sorted({*groups, *about}):
        files = groups.get(folder, [])
        entry = about.get(folder)
        where = f"{export.name}/{folder}"
        entry = entry if isinstance(entry, dict) else {}
        submitters = [s for s in entry.get(":submitters") or [] if isinstance(s, dict)]
        if not submitters:
            reading.unmatched.append((where, f"{METADATA} does not say whose it is"))
        for submitter in submitters:
            name, sid, email = (_said(submitter, f":{key}") for key in ("name", "sid", "email"))
            reading.hand_ins.append(
                HandIn(
                    "gradescope",
                    # No id has a space, so that nobody can have taken this one for a name.
                    sid or email or f"name {name}",
                    name,
                    where,
                    [(member.name, member.below(1), 0) for member in files],
                    _said(entry, ":created_at"),
                    also=tuple(filter(None, (sid, email))),
                )
            )


def _said(mapping, key):
    value = mapping.get(key)
    value = value.strip() if isinstance(value, str) else ""
    return "" if value in ("~", "null") else value


def _metadata(member):
    import yaml

    # Every value as text, and no tag of Ruby's has a meaning: nothing is made but dicts.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        found = yaml.load(member.read(MAX_METADATA), Loader=loader)
    except (yaml.YAMLError, RefusedError, RecursionError, UnicodeError) as error:
        raise ValueError(
            f"{member.where} must be YAML as Gradescope writes it: {error}"
        ) from error
    return found if isinstance(found, dict) else {}


# Folders and files named after students


def _read_generic(members, reading, export, assignment, roster):
    whole = _without_ending(export.name)
    ways = {}  # how the name of each folder or file may be read: (student, number of a copy)
    for member in members:
        top = member.spelled[0]
        folder = len(member.parts) > 1
        ways[top] = [(top, 0)] if folder else _students_in(top, assignment, whole)
    plain = {folded(found[0][0]) for found in ways.values() if len(found) == 1}
    spellings = {}
    groups = {}
    for member in members:
        student, number, reason = _named(ways[member.spelled[0]], plain, roster)
        if reason:
            reading.unmatched.append((member.where, reason))
            continue
        key = composed(student)
        spellings.setdefault(key, set()).add(student)
        group = groups.setdefault(
            (key, number), HandIn("generic", key, "", member.where, order=number)
        )
        group.files.append((member.name, member.below(min(1, len(member.parts) - 1)), number))
    for (key, _), group in groups.items():
        if len(spellings[key]) > 1:
            reason = (
                f"{key} is written in {len(spellings[key])} ways that look the same (normal "
                "forms C and D of Unicode), which may be two students; rename one"
            )
            reading.unmatched.append((group.where, reason))
            continue
        # nbgrader's layout has all assignments of a student in one folder.
        own = [f for f in group.files if folded(f[1].parts[0]) == folded(assignment)]
        nested = [f for f in own if len(f[1].parts) > 1]
        if nested:
            group.files = nested
        if roster is not None and roster.find("generic", key, "")[0] is None:
            group.name = _as_name(key)
        reading.hand_ins.append(group)


def _students_in(name, assignment, whole):
    """Return the ways to read a file's name as that of a student, the likelier first.

    Parameters
    ----------
    name : str
        Of the file, which may have the assignment's name in it.
    assignment : str
        The assignment.
    whole : str
        Whose a file is that has no more than the assignment's name.

    Returns
    -------
    list of tuple
        ``(student, number)``: the number of a copy, as programs and platforms add it to a
        file's name, or 0.
    """
    stem, pattern = _without_ending(name), re.escape(assignment)
    within = re.fullmatch(rf"(?is)(?:(.*?)[\s._-]+)?{pattern}([\s._(-].*)?", stem)
    if within:
        before, behind = (within[1] or "").strip(), within[2] or ""
        copy = _COPY.fullmatch(behind)
        if not behind:
            return [(before or whole, 0)]
        if before or copy:
            other = stem if before else behind.strip(" ._-")
            return [(before or whole, _number(copy)), (other, 0)]
        stem = behind
    stem = stem.strip(" ._-") if within else stem.strip()
    copy = re.fullmatch(rf"(?s)(.*\S){_COPY.pattern}", stem)
    return [(stem or whole, 0)] + ([(copy[1], _number(copy))] if copy else [])


def _number(copy):
    """Return the number of a copy; what is no copy has 0, and one without a number 1."""
    return int(copy[copy.lastindex] or 1) if copy else 0


def _named(ways, plain, roster):
    """Return which student a name means, the number of a copy, and why that is unknown."""
    if roster is not None:
        found = {}
        for student, number in ways:
            person, _ = roster.find("generic", student, _as_name(student))
            if person is not None:
                found.setdefault(person.id, (student, number))
        if len(found) == 1:
            return *found.popitem()[1], ""
        doubtful = len(found) > 1
    else:
        # Where the number is behind the assignment's name, or somebody has the name without
        # the number, it may be a second file of theirs.
        student, number = ways[-1]
        doubtful = len(ways) > 1 and (
            bool(ways[0][1]) or number == 0 or folded(student) in plain
        )
    if doubtful:
        either = " or ".join(student for student, _ in ways)
        return "", 0, f"it may be of {either}; rename it, or give a roster that has one of them"
    return *ways[0], ""


def _as_name(key):
    return key.replace("_", " ").replace(",", ", ")


def _without_ending(name):
    lower = name.lower()
    for ending in (*_NOTEBOOK, ".zip"):
        if lower.endswith(ending):
            return name[: -len(ending)]
    return name.rpartition(".")[0] or name


def _stem(name):
    """Return a file's name without its ending and the number of a copy, for comparison."""
    stem = _without_ending(name)
    return folded(re.sub(r"(?i:-Copy\d+| ?\(\d+\)|-\d+)$", "", stem))


def original_name(platform, name, expected):
    """Return a file's name without the number that Canvas adds to a second file of that name.

    >>> original_name("canvas", "attention-2.ipynb", "attention.ipynb")
    'attention.ipynb'
    """
    match = _AGAIN.fullmatch(name) if platform == "canvas" else None
    if match and folded(match["stem"] + match["ending"]) == folded(expected):
        return expected
    return name


def is_notebook(name):
    """Return whether a file has one of the names under which notebooks arrive."""
    return name.lower().endswith(_NOTEBOOK)


def looks_like_notebook(data):
    """Return whether a file without such a name has a notebook's content."""
    return data.lstrip()[:1] == b"{" and b'"cells"' in data and b'"nbformat"' in data


_READERS = {
    "canvas": _read_canvas,
    "moodle": _read_moodle,
    "blackboard": _read_blackboard,
    "gradescope": _read_gradescope,
    "generic": _read_generic,
}
