"""The glossary: each term once with its place, and symbols that the code really has."""

import inspect
import re

from course_book import data, sections

import seqlib.np as snp

PAGE = (data.ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
SYMBOLS = PAGE[: PAGE.index("(glossary-collisions)=")]
BLOCK = re.search(r"```\{glossary\}\n:sorted:\n\n(.*?)\n```", PAGE, re.S)[1]
ENTRIES = [entry.splitlines() for entry in BLOCK.split("\n\n")]
KNOWN = sections.known()


def test_each_term_is_defined_once_and_in_order():
    terms = [lines[0].lower() for lines in ENTRIES]
    assert len(terms) > 85
    assert terms == sorted(set(terms))


def test_each_definition_ends_with_a_section_that_exists():
    for term, *lines in ENTRIES:
        assert len(lines) == 1, term
        match = re.fullmatch(
            r"  .{15,}\. See \{ref\}`[^`<]+ <([a-z0-9_]+)-([a-z0-9-]+)>`\.", lines[0]
        )
        assert match, f"{term}: {lines[0]}"
        assert f"{match[1]}#{match[2]}" in KNOWN, term


def test_every_chapter_has_terms():
    cited = set(re.findall(r"<([a-z0-9]+)-", BLOCK))
    chapters = {topic.slug for topic in data.topics() if "page" in topic.parts}
    assert chapters - cited == set()


def rows(text):
    """Return the cells of all rows of all tables but their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if "Meaning" not in row]


def names_of_the_code():
    """Return parameter names of the library and the letters of its axes."""
    functions = [f for f in vars(snp).values() if inspect.isfunction(f)]
    names = {name for f in functions for name in inspect.signature(f).parameters}
    conventions = (data.ROOT / "book" / "conventions.md").read_text(encoding="utf-8")
    return names | set(re.findall(r"^\| `([A-Z])` \|", conventions, re.M))


def test_every_name_in_code_is_one():
    found = [name for row in rows(SYMBOLS) for name in re.findall(r"`([^`]+)`", row[2])]
    assert len(found) > 40
    assert set(found) - names_of_the_code() == set()


def test_every_row_says_what_the_symbol_means():
    for row in rows(SYMBOLS):
        assert len(row) == 4, row
        assert row[1]
        assert row[3]
    assert len(rows(SYMBOLS)) > 50


def test_every_symbol_of_the_errata_is_among_the_collisions():
    """E14 lists letters with several meanings; each has its row."""
    printed = next(e for e in data.errata() if e.name == "E14").printed
    letters = set(re.findall(r"\$([^$]+)\$", printed)) - {"h", "T", "n"}
    heads = {row[0] for row in rows(PAGE[PAGE.index("(glossary-collisions)=") :])}
    text = " ".join(heads)
    assert {letter for letter in letters if f"${letter}$" not in text} == set()
