"""The class report: its numbers, its links, and that nothing in it runs."""

import csv
import dataclasses
import html.parser
import io
import re

import pytest
import tiny_course
from tiny_course import submit

from seqlib.grading.grader import Grader
from seqlib.grading.records import Store
from seqlib.grading.report import class_data, discrimination, link, write_report
from seqlib.grading.tables import safe, write_csv

HOSTILE = "<script>alert(1)</script>"


def entry(score, *, names=(), kind="mistake", seconds=0.5):
    diagnosis = {
        "kind": kind,
        "names": list(names),
        "says": [f"{name} was done." for name in names],
        "pages": ["tiny#double" for _ in names],
    }
    return {
        "score": score,
        "points": 40.0,
        "seconds": seconds,
        "failed": [] if score == 40 else ["values"],
        "diagnosis": diagnosis if names else None,
        "key": None,
    }


def record(student, double, add, *, state="graded", **fields):
    return {
        "student": student,
        "state": state,
        "unreadable": "",
        "mends": [],
        "left_out": [],
        "tasks": {"tiny.double": double, "tiny.add": add},
        "score": double["score"] + add["score"],
        "seconds": 1.0,
        "graded_at": "2026-03-01T12:00:00+00:00",
    } | fields


@pytest.fixture
def submissions():
    """Return five students: scores 80, 40, 40, 0 and 0."""
    return {
        "s001": record("s001", entry(40.0), entry(40.0)),
        "s002": record("s002", entry(0.0, names=["one_more"]), entry(40.0)),
        "s003": record("s003", entry(40.0), entry(0.0, names=["zero", "one_more"])),
        "s004": record("s004", entry(0.0, names=["one_more"], seconds=2.5), entry(0.0)),
        "s005": record("s005", entry(0.0, names=["a", "b"], kind="either"), entry(0.0)),
    }


def test_the_numbers_of_a_class(submissions):
    data = class_data(tiny_course.ASSIGNMENT, submissions, {})
    assert (data["mean"], data["median"], data["points"]) == (32.0, 40.0, 80.0)
    assert data["states"] == {"graded": 5}
    double, add = data["tasks"]
    assert (double["difficulty"], double["full"], double["nothing"]) == (0.4, 2, 3)
    assert (double["median_seconds"], double["max_seconds"]) == (0.5, 2.5)
    assert double["criteria"] == [{"name": "values", "says": "the values", "failed": 3}]
    # Shares (1, 0, 1, 0, 0) and rests (40, 40, 0, 0, 0), centred (.6, -.4, .6, -.4, -.4) and
    # (24, 24, -16, -16, -16): 8 / sqrt(1.2 * 1920) = 1 / 6.
    assert double["discrimination"] == pytest.approx(1 / 6)
    assert add["discrimination"] == pytest.approx(1 / 6)


def test_mistakes_are_counted_most_frequent_first(submissions):
    data = class_data(tiny_course.ASSIGNMENT, submissions, {})
    found = [(m["task"], m["name"], m["students"]) for m in data["mistakes"]]
    # One of several mistakes that cannot be told apart counts for none of them.
    assert found == [
        ("tiny.double", "one_more", ["s002", "s004"]),
        ("tiny.add", "one_more", ["s003"]),
        ("tiny.add", "zero", ["s003"]),
    ]


def test_who_could_not_be_graded_is_there_too(submissions):
    failed = {"s002": "the sandbox failed", "s009": "the sandbox failed"}
    data = class_data(tiny_course.ASSIGNMENT, submissions, failed)
    assert data["states"] == {"graded": 4, "infrastructure_error": 2}
    students = {student["student"]: student for student in data["students"]}
    assert students["s002"]["score"] == 40.0  # the earlier grade stays
    assert students["s009"]["score"] is None
    assert students["s009"]["remarks"] == ["Could not be graded: the sandbox failed"]


@pytest.mark.parametrize(
    ("shares", "rest", "expected"),
    [
        # Centred (-.6, -.6, .4, .4, .4) and (-20, -10, 0, 10, 20): 30 / sqrt(1.2 * 1000).
        ([0, 0, 1, 1, 1], [10, 20, 30, 40, 50], 0.8660254),
        ([1, 1, 0, 0, 0], [10, 20, 30, 40, 50], -0.8660254),
        ([1, 1, 1, 1, 1], [10, 20, 30, 40, 50], None),
        ([0, 0, 1, 1, 1], [10, 10, 10, 10, 10], None),
        ([0, 0, 1, 1], [10, 20, 30, 40], None),
        ([], [], None),
    ],
)
def test_discrimination(shares, rest, expected):
    found = discrimination(shares, rest)
    assert found == (None if expected is None else pytest.approx(expected))


def test_a_task_of_no_points_is_reported(submissions):
    double, add = tiny_course.ASSIGNMENT.tasks
    criterion = dataclasses.replace(add.criteria[0], points=0.0)
    tasks = (double, dataclasses.replace(add, criteria=(criterion,)))
    assignment = dataclasses.replace(tiny_course.ASSIGNMENT, tasks=tasks)
    for record in submissions.values():
        record["tasks"]["tiny.add"] |= {"score": 0.0, "points": 0.0}
    found = class_data(assignment, submissions, {})["tasks"][1]
    assert (found["points"], found["difficulty"], found["discrimination"]) == (0.0, 1.0, None)


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("attention#scaling", "book/attention.html#scaling"),
        ("attention", "book/attention.html"),
        ("", ""),
    ],
)
def test_links_into_the_book(page, address):
    assert link("book", page) == address


class Page(html.parser.HTMLParser):
    """Tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    return tiny_course.make_course(tmp_path)


def save(course, submissions):
    for student, entry in submissions.items():
        Store(course.records, "tiny", student).save_submission("0" * 64, "{}", entry)


def test_the_page_needs_nothing_else_and_runs_nothing(course, submissions):
    submissions["s001"]["mends"] = [HOSTILE]
    submissions["s002"]["left_out"] = [HOSTILE]
    submissions["s003"] |= {"state": "unreadable", "unreadable": HOSTILE}
    submissions[HOSTILE.replace("/", "|")] = record("x", entry(0.0), entry(0.0))
    diagnosis = submissions["s004"]["tasks"]["tiny.double"]["diagnosis"]
    diagnosis |= {"says": [HOSTILE], "pages": ['"><script>alert(2)</script>']}
    save(course, submissions)
    path = write_report(course, "tiny")[0]
    text = path.read_text()
    page = Page(text)
    assert text.count("<script") == 0
    assert page.text.count("alert(1)") >= 5
    assert not any(
        name in ("script", "link", "img", "iframe", "object") for name, _ in page.tags
    )
    assert not any("src" in attributes for _, attributes in page.tags)
    assert not re.search(r"https?:|@import|url\(", text)
    assert "default-src 'none'" in text
    links = [a["href"] for name, a in page.tags if name == "a"]
    assert "../../../_build/html/book/tiny.html#double" in links


def test_every_student_is_in_the_page_with_score_and_diagnosis(course, submissions):
    save(course, submissions)
    Store(course.records, "tiny", "s006").save_failure("the sandbox failed")
    paths = write_report(course, "tiny", book="https://example.org/book/")
    text = paths[0].read_text()
    for student in (*submissions, "s006"):
        assert f'<th scope="row">{student}</th>' in text
    assert 'href="https://example.org/book/tiny.html#double"' in text
    assert "one_more was done." in text
    assert "infrastructure error" in text
    rows = list(csv.DictReader(io.StringIO(paths[1].read_text())))
    assert [(row["student"], row["score"], row["tiny.add"]) for row in rows] == [
        ("s001", "80.0", "40.0"),
        ("s002", "40.0", "40.0"),
        ("s003", "40.0", "0.0"),
        ("s004", "0.0", "0.0"),
        ("s005", "0.0", "0.0"),
        ("s006", "", ""),
    ]
    assert rows[2]["diagnosis"] == "tiny.add: zero, one_more"


def test_a_graded_submission_is_reported(course):
    submit(course, "s001", tiny_course.solved(double="def double(x):\n    return 2 * x + 1"))
    with Grader(course, "tiny", trust_students=True) as grader:
        grader.grade("s001")
    paths = write_report(course, "tiny")
    assert "One was added." in paths[0].read_text()
    (mistake,) = csv.DictReader(io.StringIO(paths[3].read_text()))
    assert (mistake["name"], mistake["count"], mistake["students"]) == ("one_more", "1", "s001")


def test_a_report_makes_no_gradebook(course, submissions):
    save(course, submissions)
    write_report(course, "tiny")
    assert not list(course.root.rglob("*.db"))


def test_without_a_graded_submission_there_is_no_report(course):
    with pytest.raises(ValueError, match="run `seqlib grade tiny`"):
        write_report(course, "tiny")


# CSV


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("  @sum", "'  @sum"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("\t=1", "'\t=1"),
        (-1.5, -1.5),
        (0, 0),
        (None, ""),
        ("", ""),
        ("Ada", "Ada"),
    ],
)
def test_text_never_starts_a_formula(value, cell):
    assert safe(value) == cell


def test_commas_quotes_and_line_breaks_stay_in_their_cell():
    rows = [{"name": 'Smith, "J"\nb', "score": 1.5}, {"name": "é"}]
    file = io.StringIO(newline="")
    write_csv(rows, ["name", "score"], file)
    file.seek(0)
    assert list(csv.reader(file)) == [
        ["name", "score"],
        ['Smith, "J"\nb', "1.5"],
        ["é", ""],
    ]
