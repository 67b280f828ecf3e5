"""Reading of notebook files that may be damaged.

:func:`read_cells` takes the bytes of a file and returns its cells, whatever can be saved of
them, with one sentence for each thing that was mended.
Outputs are not read: what a submission claims to have printed plays no part in grading.
"""

import json
import re
from dataclasses import dataclass

from seqlib.grading.notebook.versions import carried

MAX_BYTES = 20_000_000
MAX_CELLS = 1000
# Each JSON object or list costs the reader about 100 bytes beyond its text.
MAX_CONTAINERS = 500_000
MAX_SOURCE = 500_000
# Attempts to find the next cell behind an unreadable one; each scans at most the whole text.
MAX_RESYNCS = 50

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif")
CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CELLS = re.compile(r'"cells"\s*:\s*\[')
_CELL = re.compile(r'\{\s*"(?:cell_type|id|attachments|execution_count|metadata|source)"\s*:')
_SEPARATOR = re.compile(r"[\s,]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


class UnreadableError(ValueError):
    """Nothing can be saved; the message is a sentence for the student."""


@dataclass(frozen=True)
class Cells:
    """What could be read from a notebook file.

    Attributes
    ----------
    cells : list of dict
        ``cell_type`` ("code", "markdown" or "raw"), ``source`` (str), ``metadata`` (dict),
        ``id`` (str or None) and ``attachments`` (dict).
    mends : tuple of str
        One sentence for each thing that was mended.
    partial : bool
        Whether some of the work in the file was lost.
    versions : dict or None
        What it was released with, as :func:`seqlib.grading.notebook.versions.carried` reads it.
    """

    cells: list
    mends: tuple[str, ...] = ()
    partial: bool = False
    versions: dict | None = None


def read_cells(data):
    """Return the cells of a notebook file.

    Parameters
    ----------
    data : bytes
        The file.

    Returns
    -------
    Cells
        Cells, mends, and whether something was lost.

    Raises
    ------
    UnreadableError
        If no cell can be read, or the file exceeds a limit.
    """
    if len(data) > MAX_BYTES:
        size = len(data) / 1e6
        raise UnreadableError(
            f"The file has {size:.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read."
        )
    if not data.strip(b"\x00 \t\r\n"):
        raise UnreadableError("The file is empty.")
    if data.startswith(b"PK\x03\x04"):
        raise UnreadableError("The file is a ZIP archive, not a notebook.")
    text, mends = _decode(data)
    raw, more, partial, metadata = _parse(text)
    if len(raw) > MAX_CELLS:
        more = [*more, f"Only the first {MAX_CELLS} of {len(raw)} cells were read."]
        raw, partial = raw[:MAX_CELLS], True
    cells = [_cell(entry) for entry in raw if isinstance(entry, dict)]
    if len(cells) < len(raw):
        more = [*more, f"{len(raw) - len(cells)} entries that are no cells were dropped."]
    for cell in cells:
        if len(cell["source"]) > MAX_SOURCE:
            more = [*more, f"A cell of {len(cell['source'])} characters was left out."]
            cell["source"], partial = "", True
    return Cells(cells, (*mends, *more), partial, carried(metadata))


def _decode(data):
    mends = []
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace")
        mends.append("The file was in UTF-16 and was read as such.")
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("cp1252", errors="replace")
            mends.append("The file was not in UTF-8; it was read as Windows-1252.")
    if text.startswith("\ufeff"):
        text = text[1:]
        mends.append("A byte-order mark at the start of the file was removed.")
    if "\x00" in text:
        text = text.replace("\x00", "")
        mends.append("Zero bytes were removed from the file.")
    return text, mends


def _parse(text):
    """Return the raw cells, mends, whether something was lost, and the metadata."""
    if text.count("{") + text.count("[") > MAX_CONTAINERS:
        raise UnreadableError("The file has too many parts to be a notebook.")
    found, notebook = _load(text)
    if found:
        old = isinstance(notebook, dict) and "worksheets" in notebook
        mends = ["The file was in notebook format 3 and was read as such."] if old else []
        return _cells_of(notebook), mends, False, _metadata_of(notebook)
    for side, name in (("ours", "first"), ("theirs", "second")):
        resolved = _resolve_conflicts(text, side)
        found, notebook = (False, None) if resolved is None else _load(resolved)
        if found:
            mend = f"Marks of an unfinished merge were removed; the {name} version was kept."
            return _cells_of(notebook), [mend], False, _metadata_of(notebook)
    return *_salvage(text), None


def _load(text):
    """Return whether the text is JSON, and its value."""
    try:
        return True, json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return False, None


def _cells_of(notebook):
    """Cells of a notebook of format 4, or of the worksheets of format 3."""
    if isinstance(notebook, dict):
        cells = notebook.get("cells")
        if isinstance(cells, list):
            return cells
        sheets = notebook.get("worksheets")
        if isinstance(sheets, list):
            found = [s.get("cells") for s in sheets if isinstance(s, dict)]
            return [cell for cells in found if isinstance(cells, list) for cell in cells]
    raise UnreadableError("The file holds no cells, so it is not a notebook.")


def _metadata_of(notebook):
    return notebook.get("metadata") if isinstance(notebook, dict) else None


def _resolve_conflicts(text, side):
    """Keep one side of each conflict that git marked; None if there is no mark."""
    if not re.search(r"^<{7}(?: |$)", text, re.MULTILINE):
        return None
    kept, state = [], "both"
    for line in text.splitlines(keepends=True):
        mark = line.rstrip()
        if re.match(r"<{7}(?: |$)", mark):
            state = "ours"
        elif state == "ours" and re.match(r"\|{7}(?: |$)", mark):
            state = "base"
        elif state in ("ours", "base") and mark == "=======":
            state = "theirs"
        elif state == "theirs" and re.match(r">{7}(?: |$)", mark):
            state = "both"
        elif state in ("both", side):
            kept.append(line)
    return "".join(kept)


def _salvage(text):
    """Read cell by cell what is no valid JSON as a whole."""
    start = _CELLS.search(text)
    if start is None:
        if re.match(r"\s*<(?:!doctype|html|head|body|\?xml|!--)", text, re.IGNORECASE):
            raise UnreadableError(
                "The file is a web page, not a notebook: download the .ipynb file itself."
            )
        raise UnreadableError("The file is not a notebook.")
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    cells, lost, position, ended = [], 0, start.end(), False
    while lost <= MAX_RESYNCS:
        position = _SEPARATOR.match(text, position).end()
        if text.startswith("]", position):
            ended = True
            break
        try:
            cell, position = decoder.raw_decode(text, position)
            cells.append(cell)
            continue
        except (ValueError, RecursionError):
            following = _CELL.search(text, position + 1)
        if following is None:
            break
        lost += 1
        position = following.start()
    if not cells:
        raise UnreadableError("The file is damaged and holds no complete cell.")
    mends = []
    if lost:
        mends.append("A damaged part in the middle of the file was left out.")
    if not ended:
        mends.append(f"The file breaks off; its {len(cells)} complete cells were kept.")
    if not mends:
        mends.append("The file was damaged after its last cell; all cells were kept.")
    return cells, mends, bool(lost) or not ended


def _cell(raw):
    """Bring one raw cell of format 3 or 4 into the form that :class:`Cells` describes."""
    kind = raw.get("cell_type")
    source = _text(raw.get("source", raw.get("input", "")))
    if kind == "heading":
        level = raw.get("level")
        level = level if type(level) is int and 1 <= level <= 6 else 1
        source = "#" * level + " " + source
    kinds = {"code": "code", "markdown": "markdown", "heading": "markdown"}
    identity = raw.get("id")
    metadata = raw.get("metadata")
    return {
        "cell_type": kinds.get(kind, "raw") if isinstance(kind, str) else "raw",
        "source": source,
        "metadata": metadata if isinstance(metadata, dict) else {},
        "id": identity if isinstance(identity, str) and CELL_ID.fullmatch(identity) else None,
        "attachments": _attachments(raw.get("attachments")),
    }


def _text(value):
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    if not isinstance(value, str):
        return ""
    # JSON can name half of a surrogate pair, which no file can hold.
    return value.encode("utf-8", errors="replace").decode("utf-8")


def _attachments(raw):
    """Keep images; everything else could carry a script."""
    kept = {}
    for name, bundle in raw.items() if isinstance(raw, dict) else ():
        images = {
            kind: data
            for kind, data in (bundle.items() if isinstance(bundle, dict) else ())
            if kind in IMAGE_TYPES and isinstance(data, str) and _BASE64.fullmatch(data)
        }
        if images and re.fullmatch(r"[\w. -]{1,100}", name):
            kept[name] = images
    return kept


def to_lines(notebook):
    """Return a notebook as the text of a file with a line for each cell.

    To lay out everything, as :func:`to_json` does, takes several times as long, for each
    submission of a class.
    """
    cells = ",\n".join(map(_line, notebook["cells"]))
    rest = _line({key: value for key, value in notebook.items() if key != "cells"})
    return f'{{"cells": [\n{cells}\n],\n{rest[1:]}\n'


def _line(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def to_json(notebook):
    """Return a notebook as the text of a file, the same for equal notebooks."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
