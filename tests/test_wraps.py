"""Formulas in the text keep the signs that touch them, and numbers their parts."""

import pytest
from course_book.wraps import CLASS, join_numbers, keep_together
from docutils import nodes
from docutils.utils import new_document


def paragraph(*parts):
    """Return a document with one paragraph; a part between dollars is a formula."""
    document = new_document("page")
    document += nodes.paragraph()
    for part in parts:
        formula = part.startswith("$")
        document[0] += nodes.math("", part.strip("$")) if formula else nodes.Text(part)
    return document


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        (("a ", "$x$", ", then"), ["x,"]),
        (("a (", "$x$", "), then"), ["(x),"]),
        (("the ", "$s$", "-th state"), ["s-th"]),
        (("a ", "$x$", " and ", "$y$", "."), ["y."]),
        (("(", "$x$", ", ", "$y$", ")"), ["(x,", "y)"]),
        (("$x$", "/", "$y$", "."), ["x/", "y."]),
        (("a ", "$x$", "\u2014then"), []),
        (("a ", "$0.3$", " % of"), ["0.3 %"]),
        (("a ", "$x$"), []),
        (("$x$",), []),
    ],
)
def test_the_signs_beside_a_formula_are_kept(parts, kept):
    document = paragraph(*parts)
    before = document.astext()
    keep_together(document)
    assert [n.astext() for n in document.findall(nodes.inline) if CLASS in n["classes"]] == kept
    assert document.astext() == before


def test_each_formula_stays_one():
    document = paragraph("($", "$x$", ") and ", "$y$", ".")
    keep_together(document)
    assert [n.astext() for n in document.findall(nodes.math)] == ["x", "y"]


def test_signs_in_another_node_stay_there():
    document = paragraph("a ", "$x$")
    document[0] += nodes.strong("", "b")
    keep_together(document)
    assert not list(document.findall(nodes.inline))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("chance is 50 %.", "chance is 50\u00a0%."),
        ("50 257 entries", "50\u00a0257 entries"),
        ("13 107 200", "13\u00a0107\u00a0200"),
        ("90 + 10", "90\u00a0+\u00a010"),
        ("5 seeds, 12 pages", "5 seeds, 12 pages"),
    ],
)
def test_a_number_keeps_its_parts(text, joined):
    document = paragraph(text)
    document += nodes.literal_block("", text)
    document[0] += nodes.literal("", text)
    join_numbers(document)
    assert document[0][0].astext() == joined
    assert document[0][1].astext() == document[1].astext() == text
