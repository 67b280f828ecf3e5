"""Export as a whole: from the gradebook to a file, a table of notes, and what is said of both.

``seqlib export`` and the plug-ins of ``nbgrader export`` both do this and nothing else.
"""

import io
from pathlib import Path

from seqlib.grading.export.fill import NOTE_COLUMNS, PLATFORMS, SHOWN, export_marks, some
from seqlib.grading.export.marks import COLUMNS, collect_marks, rows
from seqlib.grading.export.sheet import write_file
from seqlib.grading.late.penalties import update_penalties
from seqlib.grading.release import load_config
from seqlib.grading.tables import write_csv

GENERIC = "generic"
TARGETS = (*PLATFORMS, GENERIC)


def export(
    gradebook,
    course,
    to=GENERIC,
    *,
    out=None,
    template=None,
    assignments=(),
    students=(),
    config=None,
    **options,
):
    """Write the marks of a gradebook to a file.

    Penalties for late submissions are brought up to date before.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        Whose marks.
    course : seqlib.grading.course.Course
        Whose records say what is not final.
    to : str, default="generic"
        ``"canvas"``, ``"moodle"``, ``"blackboard"`` or ``"generic"``.
    out : path, optional
        The file; if None ``canvas.csv`` and the like, or ``grades.csv``.
    template : path, optional
        The platform's own file, which is filled. Not for ``"generic"``.
    assignments, students : collection of str, optional
        Only these.
    config : traitlets.config.Config, optional
        nbgrader's; that of the course if None.
    **options
        As of :func:`seqlib.grading.export.fill.export_marks`. Not for ``"generic"``.

    Returns
    -------
    list of str
        Sentences about what was written, the names of the files first.

    Raises
    ------
    ValueError
        If something of this does not fit. Nothing is written then.
    """
    if to not in TARGETS:
        raise ValueError(f"platform must be one of {', '.join(TARGETS)}, got {to!r}")
    config = load_config(course) if config is None else config
    before = update_penalties(gradebook, config, assignments)
    marks = collect_marks(gradebook, course, assignments, students)
    if to == GENERIC:
        given = [n for n, value in {"template": template, **options}.items() if value]
        if given:
            raise ValueError(
                f"{given[0]} must go with {', '.join(PLATFORMS)}, got the platform {to!r}"
            )
        path = Path(out or "grades.csv")
        write_file(path, _table(rows(marks), COLUMNS))
        return [str(path), *before]
    path = Path(out or PLATFORMS[to].file)
    if template is not None and path.exists() and path.samefile(template):
        raise ValueError(f"out must be another file than the template, got {path}")
    notes = path.with_name(f"{path.stem}-notes.csv")
    if template is not None and notes.exists() and notes.samefile(template):
        raise ValueError(
            f"out must have a place for its notes beside it, got {path}, whose notes would "
            f"replace the template {notes.name}"
        )
    data = None if template is None else Path(template).read_bytes()
    done = export_marks(marks, to, template=data, **options)
    write_file(path, done.data)
    written = len(done.written)
    said = [str(path), *before, *done.remarks, f"{counted(written, 'mark')} written."]
    if done.open:
        write_file(notes, _table(done.notes(), NOTE_COLUMNS))
        out_of = sum(exported for _, exported, _ in done.open)
        said.insert(1, str(notes))
        if out_of:
            said.append(f"Not final: {out_of} of them; {notes.name} says why.")
        if len(done.open) > out_of:
            left = counted(len(done.open) - out_of, "mark")
            said.append(f"{left} left out as not final or not taken:")
            said += _listed([n for n in done.open if not n[1]])
    else:
        notes.unlink(missing_ok=True)  # of an earlier run
    if done.unmatched:
        said.append(f"No row in the template for {some(done.unmatched)}.")
    return said


def _listed(notes):
    lines = [f"  {mark.student}, {mark.assignment}: {note}" for mark, _, note in notes]
    more = len(lines) - SHOWN
    return lines[:SHOWN] + ([f"  and {more} more"] if more > 0 else [])


def counted(number, thing):
    """Return a number of things in words, ``"1 mark"`` or ``"2 marks"``."""
    return f"{number} {thing}" + "s" * (number != 1)


def _table(lines, columns):
    file = io.StringIO(newline="")
    write_csv(lines, columns, file)
    return file.getvalue().encode("utf-8", "replace")
