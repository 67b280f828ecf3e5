"""From a submission folder to the notebook that is graded.

Nothing in the folder is executed or changed, and of all its files only one notebook takes
part: a file ``numpy.py`` beside it has no effect.
"""

import hashlib
import io
import itertools
import os
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from seqlib.grading.notebook.reading import MAX_BYTES, UnreadableError, read_cells
from seqlib.grading.notebook.repair import Released, edits, repair
from seqlib.grading.notebook.versions import grading_note

MAX_FILES = 200
MAX_DEPTH = 4
# Each may have MAX_BYTES, and all are held at once.
MAX_NOTEBOOKS = 10
# The list of an archive's files is read as a whole.
MAX_ENTRIES = 5000
_ENTRY = b"PK\x01\x02"
# Names under which notebooks arrive.
NOTEBOOK = (".ipynb", ".ipynb.txt", ".ipynb.json")
TEXT = (".json", ".txt", ".html")
# Names beside a notebook that Python would import or run.
SHADOWING = (".py", ".pth", ".so", ".pyd")


@dataclass(frozen=True)
class Intake:
    """A submission, ready to be graded.

    Attributes
    ----------
    notebook : dict
        In the released form; the released notebook itself if nothing could be read.
    file : str
        Which file was taken, relative to the folder; empty if there was none.
    digest : str
        SHA-256 of that file in hexadecimal.
    mends : tuple of str
        One sentence for each thing that was mended or assumed.
    notes : tuple of str
        Sentences about what needed no mending: the versions of its tasks.
    partial : bool
        Whether some of the work in the file was lost.
    unreadable : str
        Why nothing could be read; empty if something could.
    """

    notebook: dict
    file: str = ""
    digest: str = hashlib.sha256(b"").hexdigest()
    mends: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    partial: bool = False
    unreadable: str = ""


def take_in(folder, name, release, assignment=None):
    """Read, choose and repair the notebook of a submission.

    The file called ``<name>.ipynb`` is taken if it is of this assignment and holds work; else
    the file with the most work among those that share cells with the released notebook.

    Parameters
    ----------
    folder : path
        One student's submission of one assignment.
    name : str
        Name of the released notebook, without ending.
    release : dict
        The released notebook.
    assignment : seqlib.exercises.record.Assignment, optional
        The installed tasks. If given, a sentence tells where the notebook was released with
        other versions of them.

    Returns
    -------
    Intake
        With ``unreadable`` set if no notebook of this assignment can be read.
    """
    expected = f"{name}.ipynb"
    best, problems = None, {}
    files, others = find_files(Path(folder), expected)
    for path, data in files:
        try:
            cells = read_cells(data)
        except UnreadableError as error:
            problems[path] = (str(error), data)
            continue
        repaired = repair(cells.cells, release)
        if not repaired.matched:
            problems[path] = ("The notebook has no cell of this assignment.", data)
            continue
        work = _work(repaired.notebook, release)
        rank = (work > 0, path == expected, repaired.matched, work)
        if best is None or rank > best[0]:
            best = (rank, path, data, cells, repaired)
    if best is None:
        return _unreadable(expected, problems, release)
    _, path, data, cells, repaired = best
    assumed = []
    if path != expected:
        assumed.append(f'There was no usable "{expected}"; "{_shown(path)}" was graded.')
    elif len(files) > len(problems) + 1:
        assumed.append(f'Of several notebooks "{expected}" was graded.')
    if others:
        names = ", ".join(f'"{_shown(other)}"' for other in others[:5])
        assumed.append(f"Files that Python could import or run play no part: {names}.")
    note = grading_note(cells.versions, assignment) if assignment else ""
    return Intake(
        notebook=repaired.notebook,
        file=path,
        digest=hashlib.sha256(data).hexdigest(),
        mends=(*assumed, *cells.mends, *repaired.mends),
        notes=(note,) if note else (),
        partial=cells.partial,
    )


def _work(notebook, release):
    """Lines of work in the answers."""
    released = {known.key: known for known in map(Released, release["cells"])}
    answers = (
        c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("solution")
    )
    return sum(
        edits(cell["source"], released[cell["metadata"]["nbgrader"]["grade_id"]].source)
        for cell in answers
    )


def _unreadable(expected, problems, release):
    if expected in problems or problems:
        path = expected if expected in problems else min(problems)
        reason, data = problems[path]
        blank = repair([], release).notebook
        digest = hashlib.sha256(data).hexdigest()
        return Intake(blank, path, digest, unreadable=reason)
    reason = f'There is no notebook; "{expected}" was expected.'
    return Intake(repair([], release).notebook, unreadable=reason)


def find_files(folder, expected=""):
    """Return the possible notebooks of a folder with their bytes, and names that shadow.

    Links are not followed, hidden folders not entered. ZIP archives and text files are looked
    at only where there is no notebook. The file called ``expected`` comes first, so that no
    number of others displaces it.

    Raises
    ------
    PermissionError
        If a notebook may not be read, or a folder where no notebook was found elsewhere.
    """
    found = list_files(folder, expected)
    files = [(name, read_file(path)) for name, path in found.notebooks]
    for name, path in () if files else found.archives:
        files += _unzip(read_file(path), name)
    for name, path in () if files else found.texts:
        files.append((name, read_file(path)))
    if found.locked and not files:
        raise found.locked[0]
    return files[:MAX_NOTEBOOKS], found.others


@dataclass(frozen=True)
class Listing:
    """What lies in a folder, by the ending of its name; nothing has been read.

    Attributes
    ----------
    notebooks, archives, texts : list of (str, Path)
        The first ``MAX_NOTEBOOKS`` of each kind, with their names relative to the folder.
    others : list of str
        Names that shadow.
    locked : list of PermissionError
        Of the folders that may not be read.
    """

    notebooks: list
    archives: list
    texts: list
    others: list
    locked: list


def list_files(folder, expected=""):
    """Return the :class:`Listing` of a folder, as :func:`find_files` goes through it."""
    notebooks, archives, texts, others, locked = [], [], [], [], []
    first = [folder / expected] if expected and _is_file(folder / expected) else []
    for path in dict.fromkeys(itertools.chain(first, _walk(folder, locked))):
        name = path.relative_to(folder).as_posix()
        name = name.encode("utf-8", errors="replace").decode()
        lower = name.lower()
        if lower.endswith(NOTEBOOK):
            notebooks.append((name, path))
        elif lower.endswith(".zip"):
            archives.append((name, path))
        elif lower.endswith(SHADOWING):
            others.append(name)
        elif lower.endswith(TEXT) and lower != "timestamp.txt":
            texts.append((name, path))
    most = MAX_NOTEBOOKS
    return Listing(notebooks[:most], archives[:most], texts[:most], others, locked)


def _walk(folder, locked):
    """Regular files, in the order of their names, breadth first.

    The errors of folders that may not be read are added to ``locked``.
    """
    level, found = [folder], 0
    for _ in range(MAX_DEPTH):
        below = []
        for parent in level:
            try:
                names = sorted(os.listdir(parent))
            except PermissionError as error:
                locked.append(error)
                continue
            for name in names:
                path = parent / name
                mode = path.lstat().st_mode
                if stat.S_ISDIR(mode) and not name.startswith((".", "__")):
                    below.append(path)
                elif stat.S_ISREG(mode):
                    found += 1
                    if found > MAX_FILES:
                        return
                    yield path
        level = below


def _is_file(path):
    return os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode)


def read_file(path):
    """Return the bytes of a file, as many as a notebook may have and one more."""
    # One byte beyond the limit is enough for the reader to refuse it.
    with open(path, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _unzip(data, name, depth=2):
    """Notebooks in an archive; nothing is written, and each is read only up to the limit."""
    found = []
    if data.count(_ENTRY) > MAX_ENTRIES:
        return found
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist()[:MAX_FILES]:
                if len(found) >= MAX_NOTEBOOKS:
                    break
                parts = PurePosixPath(entry.filename).parts
                lower = entry.filename.lower()
                if any(part.startswith((".", "__")) for part in parts):
                    continue
                inner = lower.endswith(".zip") and depth > 1
                if not inner and not lower.endswith(NOTEBOOK):
                    continue
                with archive.open(entry) as file:
                    content = file.read(MAX_BYTES + 1)
                path = f"{name}/{entry.filename}"
                found += _unzip(content, path, depth - 1) if inner else [(path, content)]
    except Exception:  # a damaged archive fails with whatever its decompressors raise
        return found
    return found


def _shown(path):
    return "".join(c if c.isprintable() and c not in '"<>&' else "?" for c in path[-80:])
