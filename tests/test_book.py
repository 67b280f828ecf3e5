"""The book's tables, roles and checks, without building it; the built pages: test_site.py."""

import dataclasses
import itertools
import json
import re

import pytest
import yaml
from course_book import data, figures, gaps, ledger, numbering, readme, results
from course_book import sections as book_sections
from course_book.data import GapError, Nothing
from docutils import nodes
from docutils.utils import new_document

EQUATIONS = {row.label: row for row in data.equations()}
PAGES = sorted((data.ROOT / "book").glob("*.md"))


# ---------------------------------------------------------------- tables


def test_every_equation_of_the_notes_on_attention_has_a_row():
    numbered = {f"eq-{n}" for n in range(5, 16)}
    assert set(EQUATIONS) >= numbered | {"eq-mask-sum"}
    assert [EQUATIONS[f"eq-{n}"].number for n in range(5, 16)] == [str(n) for n in range(5, 16)]


def test_tables_have_no_gap():
    topics = data.topics()
    assignments = {topic.assignment for topic in topics if topic.assignment}
    assert gaps.topic_gaps(topics) == []
    assert gaps.equation_gaps(EQUATIONS.values()) == []
    assert gaps.task_gaps(EQUATIONS.values(), assignments) == []


# The places of the ledger that are empty; each gives its reason on the page of equations.
EMPTY = {
    "numpy": set(),
    "pytorch": {"eq-4"},
    "test": set(),
    "task": {"eq-5"},
}


@pytest.mark.parametrize("place", gaps.PLACES)
def test_equations_without_a_function_test_or_task(place):
    rows = EQUATIONS.values()
    assert {r.label for r in rows if isinstance(getattr(r, place), Nothing)} == EMPTY[place]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"page": "atention"}, "there is no page book/atention.md"),
        ({"numpy": ("attention.sdpa",)}, "seqlib.np.attention.sdpa is not defined"),
        ({"numpy": ("atention.softmax",)}, "seqlib.np.atention.softmax is not defined"),
        ({"pytorch": ("attention.sdpa",)}, "seqlib.pt.attention.sdpa is not defined"),
        (
            {"test": ("test_attention.py::test_x",)},
            "there is no test tests/test_attention.py::",
        ),
        ({"test": ("conftest.py::rng",)}, "there is no test tests/conftest.py::rng"),
        ({"task": ("attention.sdpa",)}, "there is no task attention.sdpa"),
        ({"task": ("attentoin.sdpa",)}, "there is no task attentoin.sdpa"),
        ({"task": Nothing("")}, "task is empty and gives no reason"),
        ({"numpy": ()}, "numpy is empty and gives no reason"),
        (
            {"task": ("attention.split_heads",)},
            "task attention.split_heads does not name this equation",
        ),
    ],
)
def test_a_gap_in_a_row_is_found(change, message):
    broken = dataclasses.replace(EQUATIONS["eq-9"], **change)
    found = gaps.equation_gaps([broken])
    assert len(found) == 1
    assert found[0].startswith(f"eq-9: {message}")


def test_a_task_missing_from_its_row_is_found():
    row = dataclasses.replace(EQUATIONS["eq-9"], task=Nothing("none"))
    found = gaps.task_gaps([row], ["attention"])
    assert any(
        line.startswith("eq-9: task attention.scaled_dot_product_attention ") for line in found
    )


def test_an_equation_that_no_page_or_another_page_shows_is_found():
    shown = {label: f"book/{row.page}" for label, row in EQUATIONS.items()}
    assert gaps.page_gaps(EQUATIONS.values(), shown) == []
    del shown["eq-5"]
    shown["eq-9"] = "book/masks"
    shown["eq-99"] = "book/masks"
    assert gaps.page_gaps(EQUATIONS.values(), shown) == [
        "eq-5: no page shows this equation, book/attention should",
        "eq-9: shown on book/masks, the ledger says book/attention",
        "eq-99: on book/masks, but not in book/data/equations.toml",
    ]


def test_gaps_are_reported_together():
    with pytest.raises(GapError, match=r"(?s)2 gap\(s\).*first.*second"):
        gaps.raise_gaps(["first", "second"])
    gaps.raise_gaps([])


def test_the_page_of_equations_says_where_each_one_lives():
    text = ledger.as_markdown([EQUATIONS[f"eq-{n}"] for n in (5, 9, 15)], data.topics())
    assert "### (9) Scaled dot-product attention" in text
    assert ":NumPy: `seqlib.np.attention.scaled_dot_product_attention`" in text
    assert ":Page: {doc}`/book/attention`, equation {eq}`eq-9`" in text
    assert ":Task: none: " in text
    assert text.index("## Attention") < text.index("(9)") < text.index("## Masks")


@pytest.mark.parametrize(("count", "mark"), [(1, "a"), (26, "z"), (27, "aa"), (703, "aaa")])
def test_own_equations_are_lettered(count, mark):
    assert numbering.letters(count) == mark


def test_readme_has_the_generated_topic_table():
    text = (data.ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.with_table(text, data.topics()) == text, "run `make readme`"
    for topic in data.topics():
        assert f"**{topic.title}**" in text


def test_readme_without_marks_is_refused():
    with pytest.raises(GapError, match=r"^README\.md must hold the marks"):
        readme.with_table("# Title", data.topics())


# ---------------------------------------------------------------- quoted results


def test_result_is_quoted_with_its_format():
    found = json.loads((results.FOLDER / "sqrt_dk.json").read_text(encoding="utf-8"))
    median = found["results"]["raw"]["q"]["median"]["4"]
    shown, path = results.quote("sqrt_dk:results.raw.q.median.4:.2f")
    assert shown == f"{median:.2f}" == "0.44"
    assert path.name == "sqrt_dk.json"
    assert results.quote("sqrt_dk:inputs.draws")[0] == "2000"


def test_result_with_a_point_in_a_key_is_quoted(tmp_path):
    (tmp_path / "demo.json").write_text('{"a": {"0.01": {"0.5": 2.5}, "0": 1}}')
    assert results.quote("demo:a.0.01.0.5:.2f", tmp_path)[0] == "2.50"
    assert results.quote("demo:a.0", tmp_path)[0] == "1"
    with pytest.raises(GapError, match="no key '7' in demo"):
        results.quote("demo:a.7.01", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sqrt_dq:results", "there is no result file sqrt_dq.json"),
        ("sqrt_dk:results.raw.r", "no key 'r' in sqrt_dk.json; here is score, q"),
        ("sqrt_dk:inputs.draws.x", "no key 'x' in sqrt_dk.json; here is the value 2000"),
        ("sqrt_dk:inputs", "must name one number or text"),
        ("sqrt_dk:inputs.widths", "must name one number or text"),
    ],
)
def test_a_wrong_quotation_fails(text, message):
    with pytest.raises(GapError, match=re.escape(message)):
        results.quote(text)


# ---------------------------------------------------------------- sections


def test_sections_without_a_page_yet_are_listed():
    """book/data/pending.toml holds exactly the sections that tasks name and no page has."""
    assignments = {topic.assignment for topic in data.topics() if topic.assignment}
    used, known = set().union(*map(book_sections.used, assignments)), book_sections.known()
    assert "attention#scaling" in used & known
    assert set(book_sections.pending()) == used - known
    assert all(book_sections.pending().values())
    assert book_sections.section_gaps() == []


def test_a_section_that_leads_nowhere_is_found():
    found = book_sections.gaps_between(
        wanted={"a#new", "a#here"}, known={"a#here", "a#old"}, pending={"a#old": "why"}
    )
    assert found == [
        "section a#new: used by a task, but no page has it",
        "section a#old: listed as pending, but not missing",
    ]


def test_sections_and_paragraphs_get_the_anchor_that_a_diagnosis_shows():
    document = new_document("page")
    for kind, name in [
        (nodes.section, "demo-first"),
        (nodes.paragraph, "demo-second"),
        (nodes.section, "demo-third"),
        (nodes.section, "other"),
        (nodes.section, "third"),
    ]:
        element = kind("", ids=[name])
        document.append(element)
        document.ids[name] = element
    book_sections.short_anchors(document, "demo")
    # "third" is taken by another section, which keeps it.
    assert [element["ids"] for element in document.children] == [
        ["demo-first", "first"],
        ["demo-second", "second"],
        ["demo-third"],
        ["other"],
        ["third"],
    ]


def test_targets_are_read_from_the_sources(tmp_path):
    (tmp_path / "book" / "data").mkdir(parents=True)
    (tmp_path / "book" / "demo.md").write_text(
        "# Demo\n\n(demo-first)=\n## First\n\n(other-name)=\n## Second\n", encoding="utf-8"
    )
    assert book_sections.known(tmp_path) == {"demo", "demo#first"}


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("alt", "found"), [(None, 1), ("", 1), ("  ", 1), ("A falling line", 0)]
)
def test_a_figure_needs_a_text(alt, found):
    image = nodes.image(uri="x.svg", **({} if alt is None else {"alt": alt}))
    assert len(figures.images_without_text(nodes.section("", image))) == found


# ---------------------------------------------------------------- sources and settings


def test_every_page_is_in_the_table_of_contents():
    contents = yaml.safe_load((data.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [contents["root"]]
    files += [entry["file"] for part in contents["parts"] for entry in part["chapters"]]
    assert len(files) == len(set(files))
    assert sorted(files) == [f"book/{path.stem}" for path in PAGES]


def test_settings_that_make_failures_fatal():
    config = yaml.safe_load((data.ROOT / "_config.yml").read_text(encoding="utf-8"))
    sphinx = config["sphinx"]["config"]
    assert sphinx["nb_execution_raise_on_error"] is True
    assert sphinx["suppress_warnings"] == []
    assert config["only_build_toc_files"] is True
    assert config["execute"]["stderr_output"] == "error"
    assert 60 <= config["execute"]["timeout"] <= 300


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_headings_start_at_one_and_never_jump(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.M)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= sooner + 1 for sooner, later in itertools.pairwise(levels))
