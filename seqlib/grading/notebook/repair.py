"""Rebuilding of a submitted notebook in the form that was released.

Every cell that the released notebook has is found again in the submission, by its id or, where
that is gone, by its content.
The result has the released order, types, metadata and locked text; from the submission it
takes the answers and the student's own cells, which stay behind the released cell that they
followed.
Each change is recorded as one sentence for the student.
"""

import copy
import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from seqlib.grading.notebook import mends
from seqlib.grading.notebook.mends import Mends

# Functions and classes defined at the left margin. A regular expression, since it also reads
# cells that are no valid Python, and because no input can exhaust it.
_DEFINITION = re.compile(r"^(?:async[ ]+def|def|class)[ ]+([A-Za-z_]\w*)", re.MULTILINE)
_GRADING_KEYS = ("grade", "grade_id", "locked", "points", "solution", "task")
ELSEWHERE = "# This cell was missing; its functions are defined elsewhere in the notebook."


@dataclass(frozen=True)
class Repaired:
    """A notebook in the released form.

    Attributes
    ----------
    notebook : dict
        Notebook of format 4.5 without outputs.
    mends : tuple of str
        One sentence for each thing that was mended.
    matched : int
        Released cells with an id of their own that were found; 0 for a foreign notebook.
    """

    notebook: dict
    mends: tuple[str, ...]
    matched: int


class Released:
    """One cell of the released notebook."""

    def __init__(self, cell):
        grading = cell["metadata"].get("nbgrader", {})
        self.cell = cell
        self.graded = "grade_id" in grading
        self.key = grading.get("grade_id", cell.get("id"))
        self.solution = grading.get("solution", False)
        self.locked = self.graded and not self.solution
        self.source = cell["source"]
        self.names = definitions(self.source)

    def work(self, cell):
        """Return how far a submitted cell is an answer: defined functions, changed lines."""
        defined = len(self.names & definitions(cell["source"]))
        return defined, edits(cell["source"], self.source)


def definitions(source):
    """Names of the functions and classes that a cell defines."""
    return set(_DEFINITION.findall(source))


def edits(source, released):
    """Lines of a source that the released text does not have."""
    return sum((Counter(_lines(source)) - Counter(_lines(released))).values())


def repair(cells, release):
    """Rebuild a submission in the form of the released notebook.

    Parameters
    ----------
    cells : list of dict
        Cells as :func:`seqlib.grading.notebook.reading.read_cells` returns them; not modified.
    release : dict
        The released notebook.

    Returns
    -------
    Repaired
        Notebook, mends and the number of released cells that were found.
    """
    return _Repair(cells, release).run()


class _Repair:
    def __init__(self, cells, release):
        self.cells = cells
        self.release = release
        self.known = [Released(cell) for cell in release["cells"]]
        self.mends = Mends()
        self.own = []  # the student's own cells in the result

    def run(self):
        claims = self.claim()
        winner, before, after, extras = self.attach(claims)
        self.report_order(winner)
        stubs = {i for i, key in enumerate(claims) if key and i not in winner.values()}
        kept = [c for i, c in enumerate(self.cells) if i not in stubs]
        defined = {name for cell in kept for name in definitions(cell["source"])}
        out = [self.keep(cell) for cell in extras[None]]
        for known in self.known:
            key = known.key
            if key in winner:
                cell = self.cells[winner[key]]
                self.report_changes(known, cell)
                out += [self.keep(c) for c in before[key]]
                out.append(self.rebuild(known, cell))
                if known.locked and edits(cell["source"], known.source):
                    out.append(self.keep(cell))
                out += [self.keep(c) for c in (*after[key], *extras[key])]
            elif known.graded:
                out.append(self.restore(known, defined))
        self.report_metadata(self.cells[i] for i, c in enumerate(claims) if c is None)
        _give_ids(self.own, {known.cell.get("id") for known in self.known})
        notebook = {
            "cells": out,
            "metadata": copy.deepcopy(self.release["metadata"]),
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        matched = sum(known.graded and known.key in winner for known in self.known)
        return Repaired(notebook, self.mends.sentences(), matched)

    def claim(self):
        """Return for each submitted cell the key of the released cell that it is, or None."""
        keys = {known.key for known in self.known}
        claims = []
        for cell in self.cells:
            own = (_grading(cell).get("grade_id"), cell["id"])
            claims.append(next((k for k in own if isinstance(k, str) and k in keys), None))
        for known in self.known:
            if known.key not in claims:
                self.claim_by_content(known, claims)
        for previous, known in zip(self.known, self.known[1:], strict=False):
            # An answer in words has no content to go by; it follows its question.
            written = known.solution and known.cell["cell_type"] == "markdown"
            if written and known.key not in claims and previous.key in claims:
                i = claims.index(previous.key) + 1
                if claims[i : i + 1] == [None] and self.cells[i]["cell_type"] == "markdown":
                    claims[i] = known.key
                    self.mends.add(*mends.BY_PLACE, known.key)
        return claims

    def claim_by_content(self, known, claims):
        for i, cell in enumerate(self.cells):
            if claims[i] is not None or not cell["source"].strip():
                continue
            same = not known.solution and _lines(cell["source"]) == _lines(known.source)
            if same or (known.solution and known.names & definitions(cell["source"])):
                claims[i] = known.key
                if known.graded:
                    self.mends.add(*mends.BY_CONTENT, known.key)
                return

    def attach(self, claims):
        """Choose one submitted cell for each released one, and a place for all others."""
        candidates = defaultdict(list)
        for i, key in enumerate(claims):
            if key is not None:
                candidates[key].append(i)
        released = {known.key: known for known in self.known}
        winner = {k: self.choose(released[k], found) for k, found in candidates.items()}
        before, after, extras = defaultdict(list), defaultdict(list), defaultdict(list)
        anchor = None
        for i, (cell, key) in enumerate(zip(self.cells, claims, strict=True)):
            if key is None:
                extras[anchor].append(cell)
                continue
            anchor = key
            known, chosen = released[key], self.cells[winner[key]]
            own_work = edits(cell["source"], known.source)
            if i != winner[key] and own_work and cell["source"] != chosen["source"]:
                # An answer that was not chosen must not redefine the one that was.
                (before if known.solution else after)[key].append(cell)
        for key, found in candidates.items():
            if len(found) > 1 and released[key].graded:
                self.mends.add(
                    *(mends.MANY_ANSWERS if released[key].solution else mends.COPIES), key
                )
        return winner, before, after, extras

    def choose(self, known, found):
        if known.solution:
            return max(found, key=lambda i: (*known.work(self.cells[i]), i))
        same = [i for i in found if _lines(self.cells[i]["source"]) == _lines(known.source)]
        return (same or found)[-1]

    def rebuild(self, known, cell):
        source = known.source if known.locked else cell["source"]
        built = {**copy.deepcopy(known.cell), "source": source}
        if built["cell_type"] == "markdown" and not known.locked and cell["attachments"]:
            built["attachments"] = cell["attachments"]
        return _blank(built)

    def restore(self, known, defined):
        built = {**copy.deepcopy(known.cell), "source": known.source}
        if known.solution and known.names & defined:
            # The empty answer would redefine what stands in another cell.
            built["source"] = ELSEWHERE
        self.mends.add(*mends.MISSING, known.key)
        return _blank(built)

    def keep(self, cell):
        """Return a student's own cell; none of its metadata take part."""
        built = {k: cell[k] for k in ("cell_type", "source", "id")} | {"metadata": {}}
        if cell["cell_type"] == "markdown" and cell["attachments"]:
            built["attachments"] = cell["attachments"]
        self.own.append(built)
        return _blank(built)

    def report_order(self, winner):
        places = [winner[known.key] for known in self.known if known.key in winner]
        if places != sorted(places):
            self.mends.add("Cells stood in another order; the released order was restored.")

    def report_changes(self, known, cell):
        kind, released = cell["cell_type"], known.cell["cell_type"]
        if kind != released:
            self.mends.add(
                f"The cell {{}} had been turned into {kind}; it is {released} again.",
                f"These cells had been turned into {kind}; they are {released} again: {{}}.",
                known.key,
            )
        if known.locked and _lines(cell["source"]) != _lines(known.source):
            kept = edits(cell["source"], known.source)
            self.mends.add(*(mends.CHANGED_AND_KEPT if kept else mends.CHANGED), known.key)
        given, right = _grading(cell), known.cell["metadata"].get("nbgrader", {})
        if any(given.get(key) != right.get(key) for key in _GRADING_KEYS):
            self.mends.add(*mends.GRADING_DATA, known.key)
        self.report_tags(known, cell)

    def report_metadata(self, cells):
        cells = list(cells)
        strange = sum(bool(_grading(cell)) for cell in cells)
        if strange:
            self.mends.add(f"Grading data of {strange} cells unknown here were removed.")
        tags = _shown({tag for cell in cells for tag in _tags(cell)})
        if tags:
            self.mends.add(f"Tags of ordinary cells were removed: {tags}.")

    def report_tags(self, known, cell):
        tags = _shown(set(_tags(cell)) - set(_tags(known.cell)))
        if tags:
            self.mends.add(
                f"Tags of cell {{}} were removed: {tags}.",
                f"Tags of these cells were removed ({tags}): {{}}.",
                known.key,
            )


def _lines(source):
    return [line.rstrip() for line in source.strip().splitlines() if line.strip()]


def _grading(cell):
    grading = cell["metadata"].get("nbgrader")
    return grading if isinstance(grading, dict) else {}


def _tags(cell):
    tags = cell["metadata"].get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _shown(tags):
    """Return some tags as text that is safe in a sentence."""
    kept = [
        "".join(c if c.isprintable() and c not in '"<>&{}' else "?" for c in tag[:40])
        for tag in sorted(tags)[:5]
    ]
    return ", ".join(f'"{tag}"' for tag in kept)


def _blank(cell):
    if cell["cell_type"] == "code":
        cell |= {"outputs": [], "execution_count": None}
    return cell


def _give_ids(cells, used):
    """Give a number to each cell that has no id of its own."""
    number = 0
    for cell in cells:
        if cell["id"] is None or cell["id"] in used:
            while f"own-{number}" in used:
                number += 1
            cell["id"] = f"own-{number}"
        used.add(cell["id"])
