"""The tables that the book, README and tests share: topics, equations, claims, errata."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from sphinx.errors import SphinxError

ROOT = Path(__file__).resolve().parents[3]


class GapError(SphinxError):
    """Something that the tables promise is not there."""

    category = "Gap in the book"


@dataclass(frozen=True)
class Topic:
    """One slug: the same name in ``book/``, ``seqlib/np``, ``seqlib/pt`` and ``tests/``."""

    slug: str
    title: str
    notes: str
    about: str
    parts: tuple[str, ...]
    assignment: str | None = None

    def path(self, part):
        """Return the path of one part, relative to the root."""
        return {
            "page": f"book/{self.slug}.md",
            "np": f"seqlib/np/{self.slug}.py",
            "pt": f"seqlib/pt/{self.slug}.py",
            "tests": f"tests/test_{self.slug}.py",
        }[part]


@dataclass(frozen=True)
class Nothing:
    """An empty place of a ledger, and why it is empty."""

    reason: str


@dataclass(frozen=True)
class Equation:
    """One equation of the notes, and where the course shows, computes, tests and asks it."""

    label: str
    number: str
    notes: str
    about: str
    page: str
    numpy: tuple[str, ...] | Nothing
    pytorch: tuple[str, ...] | Nothing
    test: tuple[str, ...] | Nothing
    task: tuple[str, ...] | Nothing


@dataclass(frozen=True)
class Claim:
    """One sentence of the notes that asserts something measurable.

    ``pending`` says why no cell weighs it yet; it is None where a cell does.
    """

    name: str
    notes: str
    quote: str
    page: str
    pending: str | None = None


@dataclass(frozen=True)
class Erratum:
    """One thing that the notes get wrong, leave out or leave open."""

    name: str
    part: int
    notes: str
    title: str
    kind: str
    printed: str
    right: str
    section: str


def _read(name, root):
    return tomllib.loads((root / "book" / "data" / name).read_text(encoding="utf-8"))


def _names(value):
    if isinstance(value, dict):
        return Nothing(value["none"])
    return (value,) if isinstance(value, str) else tuple(value)


def topics(root=ROOT):
    """Return the topics in the order of the book."""
    rows = _read("topics.toml", root)["topic"]
    return [Topic(**{**row, "parts": tuple(row["parts"])}) for row in rows]


def equations(root=ROOT):
    """Return the equations in the order of the notes."""
    places = ("numpy", "pytorch", "test", "task")
    return [
        Equation(label, **{k: _names(v) if k in places else v for k, v in row.items()})
        for label, row in _read("equations.toml", root).items()
    ]


def claims(root=ROOT):
    """Return the claims in the order of the notes."""
    return [Claim(name, **row) for name, row in _read("claims.toml", root).items()]


def errata(root=ROOT):
    """Return the errata in the order of the notes."""
    return [Erratum(name, **row) for name, row in _read("errata.toml", root).items()]
