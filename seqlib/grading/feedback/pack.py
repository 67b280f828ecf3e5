"""Feedback pages of a class, packed as a learning platform hands them to its students.

The pages are those of ``nbgrader generate_feedback``: the notebook as it was graded, with the
scores and comments of the gradebook; they ask no host for anything
(:mod:`seqlib.grading.feedback.page`). What a platform needs to find its students again comes
from how the submissions were collected:

* Canvas (``infer_comment_context_from_filename`` in ``app/models/abstract_assignment.rb`` of
  instructure/canvas-lms): the names of the files that were downloaded. It reads the numbers of
  user and upload from them, and shows the page to the student under the name of the upload.
* Moodle (``mod/assign/feedback/file/importziplib.php`` of moodle/moodle): folders
  ``Full Name_123_assignsubmission_file_``, in which the number counts.
* Blackboard, and without a platform: a folder for each student.
"""

import io
import logging
import re
import zipfile
from pathlib import Path

from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.log import get_logger

from seqlib.grading.export.fill import PLATFORMS, some
from seqlib.grading.export.marks import collect_marks, collected_from
from seqlib.grading.export.run import counted
from seqlib.grading.export.sheet import write_file
from seqlib.grading.feedback.page import FeedbackExporter
from seqlib.grading.late.penalties import update_penalties
from seqlib.grading.release import load_config

GENERIC = "generic"
TARGETS = (*PLATFORMS, GENERIC)
# The same pages give the same bytes, whenever they were made.
_TIME = (1980, 1, 1, 0, 0, 0)


def feedback(gradebook, course, name, to=GENERIC, *, out=None, students=(), provisional=False):
    """Write the feedback pages of an assignment, and an archive of them for a platform.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        Whose scores and comments. Penalties for late submissions are brought up to date.
    course : seqlib.grading.course.Course
        With graded notebooks of the assignment.
    name : str
        The assignment.
    to : str, default="generic"
        ``"canvas"``, ``"moodle"``, ``"blackboard"`` or ``"generic"``.
    out : path, optional
        The archive; ``feedback-NAME-PLATFORM.zip`` if None.
    students : collection of str, optional
        Only these.
    provisional : bool, default=False
        Whether students whose mark is not final get their page too.

    Returns
    -------
    list of str
        Sentences about what was written, the archive first.

    Raises
    ------
    ValueError
        If there is no such platform, assignment or student, or nobody's page can be packed.
        No archive is written then.
    """
    if to not in TARGETS:
        raise ValueError(f"platform must be one of {', '.join(TARGETS)}, got {to!r}")
    config = load_config(course)
    said = list(update_penalties(gradebook, config, (name,)))
    marks = collect_marks(gradebook, course, (name,), students)
    graded = [mark for mark in marks if _has_notebook(course, mark)]
    open_marks = [mark for mark in graded if mark.open and not provisional]
    chosen = [mark for mark in graded if provisional or not mark.open]
    if not chosen:
        why = "; ".join(f"{m.student}: {m.note}" for m in open_marks[:3]) or "none is graded"
        raise ValueError(f"{name} must have a student whose mark is final, got {why}")
    _generate(config, name, [m.student for m in chosen] if students or open_marks else None)
    entries, unknown, lost = {}, [], []
    origins = collected_from(course, name)
    for mark in chosen:
        page = course.grading / "feedback" / mark.student / name / f"{name}.html"
        place = _place(to, mark, origins.get(mark.student, {}), name)
        if place is None:
            unknown.append(mark.student)
        elif not page.is_file():
            lost.append(mark.student)
        else:
            entries[place] = page.read_bytes()
    if not entries:
        raise ValueError(
            f"students must be known to {to}, got {some(unknown or lost)}; collect their "
            f"submissions with `seqlib collect` from the download of {to}"
            if unknown
            else f"feedback must have been generated, got none for {some(lost)}"
        )
    path = Path(out or f"feedback-{name}-{to}.zip")
    write_file(path, _archive(entries))
    said = [str(path), *said, f"{counted(len(entries), 'page')} written."]
    for students_, why in (
        (unknown, f"Left out, since it is not known what {to} calls them"),
        (lost, "Left out, since no page could be generated"),
        ([m.student for m in open_marks], "Left out, since their mark is not final"),
    ):
        if students_:
            said.append(f"{why}: {some(students_)}.")
    return said


def _has_notebook(course, mark):
    return (
        course.autograded(mark.student, mark.assignment) / f"{mark.assignment}.ipynb"
    ).is_file()


def _generate(config, name, students):
    """Let nbgrader write the pages of some students, of all if None."""
    config.CourseDirectory.assignment_id = name
    if "exporter_class" not in config.GenerateFeedback:
        config.GenerateFeedback.exporter_class = FeedbackExporter
    log = get_logger()
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        for student in ["*"] if students is None else students:
            config.CourseDirectory.student_id = student
            directory = CourseDirectory(config=config)
            # Comments and scores may be newer than the page that is there.
            converter = GenerateFeedback(coursedir=directory, config=config, force=True)
            # Some of a class may have failed; whose page is missing is said by the caller.
            try:
                converter.start()
            except NbGraderException:
                continue
    finally:
        log.setLevel(before)


def _place(to, mark, origin, name):
    """Return the name of a page in the archive; None if the platform could not place it."""
    if to == "canvas":
        return _canvas(mark, origin, name)
    if to == "moodle":
        return _moodle(mark, origin, name)
    user = mark.known_as(to) if mark.source.startswith(f"{to}:") else mark.student
    return f"{_part(user)}/{name}.html"


def _canvas(mark, origin, name):
    user = mark.known_as("canvas") if mark.source.startswith("canvas:") else ""
    upload = origin.get("order") or 0
    if not user or not upload:
        return None
    file = _base(origin.get("where", ""))
    # It is as the platform wrote it unless it had to be shortened for a report. Canvas goes by
    # the first number, which may be one in the student's name.
    own = re.search(rf"(?:^|_){re.escape(user)}_\d+_.", file)
    first = re.search(r"(?:^|_)(\d+)(?=_)", file)
    if not own or "..." in file or (user.isdecimal() and first[1] != user):
        file = f"student_{user}_{upload}_{name}"
    stem = file.removesuffix(".ipynb")
    return f"{_part(stem)}.html"


def _moodle(mark, origin, name):
    number = mark.known_as("moodle")
    if not (number.isascii() and number.isdecimal()):
        return None
    parts = re.split("/", origin.get("where", ""))
    own = (re.fullmatch(rf"([^_]*)_{number}_assignsubmission_.*", part) for part in parts)
    found = next((match[1] for match in own if match), "")
    person = found or f"{mark.first_name} {mark.last_name}".strip() or mark.student
    # Moodle takes the name apart at each underscore, and needs the number behind the first.
    return f"{_part(person.replace('_', ' '))}_{number}_assignsubmission_file_/{name}.html"


def _base(where):
    return where.rpartition("/")[2]


def _part(text):
    """Return a text as one part of a path, on every system that may open the archive."""
    text = "".join(c if c.isprintable() and c not in '<>:"/\\|?*' else " " for c in text)
    return text.strip(" .") or "student"


def _archive(entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, page in sorted(entries.items()):
            about = zipfile.ZipInfo(place, _TIME)
            about.external_attr = 0o644 << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, page)
    return file.getvalue()
