"""The errata of the notes: how many there are, and where each leads."""

import dataclasses
import re

import pytest
from course_book import data, errata, sections

FOUND = data.errata()
PAGE = (data.ROOT / "book" / "errata.md").read_text(encoding="utf-8")


def test_there_are_at_least_39_each_with_a_section_that_exists():
    assert len(FOUND) >= 39
    assert len({erratum.title for erratum in FOUND}) == len(FOUND)
    known = sections.known()
    assert [erratum.name for erratum in FOUND if erratum.section not in known] == []
    assert {f"E{i}" for i in range(1, len(FOUND) + 1)} == {erratum.name for erratum in FOUND}


def test_every_entry_says_everything():
    for erratum in FOUND:
        for field in ("notes", "title", "printed", "right"):
            value = getattr(erratum, field)
            assert value.strip(), f"{erratum.name}: {field} is empty"
            assert "\n" not in value
        assert 1 <= erratum.part <= 10


def test_the_page_shows_every_section_once():
    shown = [int(part) for part in re.findall(r"^```\{errata\} (\d+)$", PAGE, re.M)]
    assert errata.errata_gaps(FOUND, shown) == []
    assert shown == sorted(shown)
    assert errata.errata_gaps(FOUND, shown[1:]) == [
        "errata of section 1: shown 0 times, must be once"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"section": "masks#bothh"}, "no page has the section masks#bothh"),
        ({"section": "masks"}, "no page has the section masks"),
        ({"kind": "ugly"}, "kind must be one of wrong, imprecise, missing, notation, misprint"),
    ],
)
def test_a_gap_is_found(change, message):
    broken = dataclasses.replace(FOUND[0], **change)
    assert errata.errata_gaps([broken]) == [f"erratum {broken.name}: {message}"]


def test_an_entry_links_to_its_section():
    erratum = next(erratum for erratum in FOUND if erratum.name == "E6")
    text = errata.entry(erratum)
    assert text.startswith("(errata-e6)=\n### E6: ")
    assert "{doc}`/book/gradients`, {ref}`gradients-exploding`" in text
    assert erratum.right in text


def test_a_formula_in_the_heading_of_a_section_stays_one():
    erratum = next(erratum for erratum in FOUND if erratum.name == "E16")
    assert "[Why the scores are divided by $\\sqrt{d_k}$](attention-scaling)" in errata.entry(
        erratum
    )


def test_kinds_add_up():
    table = errata.kinds_table(FOUND).splitlines()
    counts = [int(line.rstrip(" |").rpartition("|")[2]) for line in table[2:]]
    assert sum(counts[:-1]) == counts[-1] == len(FOUND)


def test_what_is_computed_names_errata_that_exist():
    names = {erratum.name for erratum in FOUND}
    mentioned = set(re.findall(r"\bE\d+\b", PAGE))
    assert len(mentioned) > 12
    assert mentioned <= names
