"""What lies in an export: a folder or a zip archive, read file by file within limits.

Nothing is unpacked to the disk. A name in an archive decides at most what a file is called,
never where it goes, and still an archive with a name that leads out of it is refused that
file: it was made to do harm, and whoever reads the report should know.
"""

import contextlib
import functools
import io
import os
import re
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from seqlib.grading.collect.names import composed, shown
from seqlib.grading.notebook.reading import MAX_BYTES

MAX_MEMBERS = 200_000  # of an export: thirty thousand students with a few files each
MAX_PARTS = 20  # folders within folders
MAX_PATH = 1000  # characters
# Of what one student handed in:
MAX_FILES = 2000
MAX_TOTAL = 200_000_000  # bytes, unpacked
MAX_ARCHIVE = 100_000_000  # bytes of an archive in it, packed
MAX_NESTING = 3  # archives in archives
# Notebooks shrink to a tenth or so; deflate cannot do more than 1,032 to 1.
MAX_RATIO = 200
FREE = 1_000_000  # bytes for which the ratio does not matter
_ENTRY = b"PK\x01\x02"
_UTF8 = 0x800
_ENCRYPTED = 0x1


class RefusedError(Exception):
    """A file is not read; the message says why and goes with its name."""


@dataclass(frozen=True)
class Member:
    """A file in an export.

    Attributes
    ----------
    parts : tuple of str
        Its path within the export, in normal form C.
    where : str
        The same for the report: with the names of the archives that it lies in.
    size : int
        Bytes that it claims to have, unpacked.
    spelled : tuple of str
        Its path as it is written there, in any normal form.
    read : callable
        ``read(most)`` returns its content, or raises :class:`RefusedError` if that has more
        than ``most`` bytes or cannot be read.
    """

    parts: tuple[str, ...]
    where: str
    size: int
    spelled: tuple[str, ...]
    read: Callable[[int], bytes] = field(repr=False, compare=False)

    @property
    def name(self):
        """Last part of the path."""
        return self.parts[-1]

    def below(self, depth):
        """Return the same file seen from a folder ``depth`` levels further in."""
        return Member(
            self.parts[depth:], self.where, self.size, self.spelled[depth:], self.read
        )


@dataclass
class Export:
    """What an instructor downloaded.

    Attributes
    ----------
    name : str
        Of the file or folder.
    members : list of Member
        What can be read, in the order of the paths.
    refused : list of tuple
        ``(where, reason)`` of what cannot.
    """

    name: str
    members: list
    refused: list


@contextlib.contextmanager
def open_export(path):
    """Open a folder or a zip archive.

    Parameters
    ----------
    path : path
        What was downloaded. Links in a folder are not followed.

    Yields
    ------
    Export

    Raises
    ------
    ValueError
        If there is no such folder or archive, or it has more than ``MAX_MEMBERS`` files.
    """
    path = Path(path)
    if path.is_dir():
        members, refused = _members_of_folder(path)
        yield Export(path.resolve().name, members, refused)
        return
    if not path.is_file():
        raise ValueError(f"export must be a folder or a zip archive, got {path}, which is none")
    with open(path, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:  # a damaged archive fails in many ways
            raise ValueError(
                f"export must be a folder or a zip archive, got {path}: {error}; "
                "download it again, or unpack it and give the folder"
            ) from error
        with archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise ValueError(f"export must have at most {MAX_MEMBERS} files, got {path}")
            members, refused = _members_of_zip(archive, path.name)
            yield Export(path.name, members, refused)


class Budget:
    """What may still be read of one student's submission."""

    def __init__(self):
        self.files, self.bytes = MAX_FILES, MAX_TOTAL

    def read(self, member, most=MAX_BYTES):
        """Return the content of a file, and take it from the budget.

        Raises
        ------
        RefusedError
            If it is too large, or too much has been read of this submission.
        """
        if member.size > self.bytes:
            raise RefusedError(
                f"with it the submission would have more than {MAX_TOTAL:,} bytes"
            )
        data = member.read(most)
        self.bytes -= len(data)
        return data


def unpack(member, budget, depth=1):
    """Return the files in an archive that a student handed in, those of archives in it too.

    Parameters
    ----------
    member : Member
        The archive.
    budget : Budget
        Of the submission.
    depth : int
        How many archives lead to this one, itself included.

    Returns
    -------
    members : list of Member
        In the order of the paths, without archives.
    refused : list of tuple
        ``(where, reason)``.

    Raises
    ------
    RefusedError
        If the archive as a whole cannot be read.
    """
    if depth > MAX_NESTING:
        raise RefusedError(f"it lies in more than {MAX_NESTING} archives, one in another")
    data = budget.read(member, MAX_ARCHIVE)
    # Python reads the whole list of an archive's files at once, whatever its length.
    if data.count(_ENTRY) > MAX_FILES:
        raise RefusedError(f"it has more than {MAX_FILES} files")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        found, refused = _members_of_zip(archive, member.where)
    except Exception as error:
        raise RefusedError(f"it is no sound zip archive: {error}") from error
    members = []
    for inner in found:
        budget.files -= 1
        if budget.files < 0:
            refused.append((inner.where, f"the submission has more than {MAX_FILES} files"))
            break
        if not is_archive(inner.name) or junk(inner.parts):
            members.append(inner)
            continue
        try:
            more, bad = unpack(inner, budget, depth + 1)
        except RefusedError as error:
            refused.append((inner.where, str(error)))
        else:
            members += more
            refused += bad
    return members, refused


def is_archive(name):
    """Return whether a file is opened as an archive."""
    return name.lower().endswith(".zip")


def junk(parts):
    """Return who left a file that no student wrote, or an empty text."""
    for part in parts:
        if part in ("__MACOSX", ".DS_Store") or part.startswith("._"):
            return "macOS"
        if part in (".ipynb_checkpoints", ".jupyter", "__pycache__"):
            return "Jupyter or Python"
        if part.lower() in ("thumbs.db", "desktop.ini"):
            return "Windows"
        if part.startswith("."):
            return "some program, hidden"
    return ""


# Folders


def _members_of_folder(root):
    members, refused = [], []
    pending = [(root, ())]
    while pending:
        folder, above = pending.pop()
        with os.scandir(folder) as entries:
            entries = sorted(entries, key=lambda entry: entry.name)
        for entry in entries:
            spelled = (*above, entry.name)
            parts = tuple(map(composed, spelled))
            where = shown("/".join((root.name, *parts)), 1000)
            if entry.is_symlink():
                refused.append((where, "it is a link"))
            elif entry.is_dir():
                if len(parts) >= MAX_PARTS:
                    refused.append((where, f"it lies more than {MAX_PARTS} folders deep"))
                else:
                    pending.append((Path(entry.path), spelled))
            elif entry.is_file():
                size = entry.stat(follow_symlinks=False).st_size
                read = functools.partial(_read_file, entry.path)
                members.append(Member(parts, where, size, spelled, read))
                if len(members) > MAX_MEMBERS:
                    raise ValueError(
                        f"export must have at most {MAX_MEMBERS} files, got {root}"
                    )
            else:
                refused.append((where, "it is neither a file nor a folder"))
    members.sort(key=lambda member: member.parts)
    return members, refused


def _read_file(path, most):
    # It may have become a link or a pipe since the folder was listed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RefusedError("it is no file")
            return _bounded(file.read(most + 1), most)
    except OSError as error:
        raise RefusedError(f"it cannot be read: {error.strerror}") from error


def _bounded(data, most):
    if len(data) > most:
        raise RefusedError(f"it has more than {most:,} bytes")
    return data


# Archives


def _members_of_zip(archive, where):
    members, refused = [], []
    for entry in archive.infolist():
        # ZipInfo.is_dir fails where there is no name.
        if entry.filename.endswith("/"):
            continue
        name = _name(entry)
        place = shown(f"{where}/{name}", 1000)
        spelled = tuple(part for part in name.split("/") if part not in ("", "."))
        parts = tuple(map(composed, spelled))
        reason = _why_not(entry, name, parts)
        if reason:
            refused.append((place, reason))
        else:
            read = functools.partial(_read_entry, archive, entry)
            members.append(Member(parts, place, entry.file_size, spelled, read))
    members.sort(key=lambda member: member.parts)
    return members, refused


def _name(entry):
    """Return the name of an entry.

    Names that are not marked as UTF-8 are read in an alphabet of 1981 by the standard. The
    archiver of macOS and older ones of Ruby, which Canvas uses, write UTF-8 without the mark.
    """
    name = entry.filename
    if not entry.flag_bits & _UTF8:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _why_not(entry, name, parts):
    """Return why an entry of an archive is not read; an empty text if it is."""
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "its path is absolute"
    if ".." in parts or not parts:
        return "its path leads out of the archive"
    if len(name) > MAX_PATH:
        return f"its path is longer than {MAX_PATH} characters"
    if len(parts) > MAX_PARTS:
        return f"it lies more than {MAX_PARTS} folders deep"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "it is a link"
    if kind not in (0, stat.S_IFREG):
        return "it is neither a file nor a folder"
    if entry.flag_bits & _ENCRYPTED:
        return "it is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # The other decompressors take no limit on what they make of a few bytes.
        return f"it is packed by method {entry.compress_type}, which is not read"
    if entry.file_size > FREE and entry.file_size > MAX_RATIO * entry.compress_size:
        return f"it unpacks to more than {MAX_RATIO} times its size, {entry.file_size:,} bytes"
    return ""


def _read_entry(archive, entry, most):
    if entry.file_size > most:
        raise RefusedError(f"it has more than {most:,} bytes")
    try:
        with archive.open(entry) as file:
            # Asked for more than it claims to have, the decompressor would make it first.
            return _bounded(file.read(min(most, entry.file_size) + 1), most)
    except RefusedError:
        raise
    except Exception as error:  # a damaged archive fails with whatever is raised
        raise RefusedError(f"it is damaged: {error}") from error
