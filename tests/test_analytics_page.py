"""The page of the analytics and its tables: complete, harmless, and what the command prints."""

import csv
import html.parser
import json
import re
import time
import tracemalloc
import urllib.parse

import pytest
import tiny_course
from analytics_class import diagnosis, register, save
from desk_tools import run

from seqlib.grading.analytics.page import MOST, tables, write_analytics

HOSTILE = "<script>alert(1)</script>"
TABLES = ["help", "open", "mistakes", "mistakes_by_week", "weeks", "tasks", "scores", "groups"]


@pytest.fixture
def course(tmp_path, monkeypatch):
    register(monkeypatch)
    root = tmp_path / "a course"
    root.mkdir()
    return tiny_course.make_course(root)


@pytest.fixture
def class_of_50(course):
    """Save a class that has something for each part of the page."""
    for number in range(46):
        save(course, f"s{number:03}", 40.0 * (number % 2), time="2026-03-02 12:00:00 UTC")
        save(course, f"s{number:03}", add=20.0, name="second")
    wrong = {"message": f"the code raised E: {HOSTILE}", "found": diagnosis(HOSTILE)}
    for number in (46, 47):
        save(course, f"s{number:03}", 0.0, **wrong, time="2026-03-09 12:00:00 UTC")
        save(course, f"s{number:03}", 0.0, **wrong, name="second")
    save(course, '"><script>alert(2)<|script>', 0.0, 0.0)
    save(course, "s049", 0.0, 0.0, state="unreadable", unreadable=HOSTILE)
    return course


class Page(html.parser.HTMLParser):
    """Tags of a page with their attributes, and its text by tag."""

    VOID = ("meta", "rect", "line", "circle", "wbr")

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self):
        return " ".join("".join(text for tag, text in self.texts if tag != "style").split())


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def rows(paths, name):
    (path,) = (path for path in paths if path.name == f"{name}.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_nothing_on_the_page_runs_or_asks_for_anything(class_of_50):
    _, paths = write_analytics(class_of_50)
    text = paths[0].read_text()
    page = read(paths[0])
    assert page.open == []
    assert "<script" not in text.lower()
    assert page.text().count("alert(1)") >= 4
    assert "alert(2)" in page.text()
    names = {name for name, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "image", "use"}
    attributes = [pair for _, found in page.tags for pair in found.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name == "src"]
    assert not re.search(r"https?:|@import|url\(", text)
    assert "default-src 'none'" in text


def test_every_plot_is_said_in_words(class_of_50):
    page = read(write_analytics(class_of_50)[1][0])
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))
    plots = [found for name, found in page.tags if name == "svg"]
    assert len(plots) == 1 + 2 + 2
    for plot in plots:
        assert plot["role"] == "img"
        assert set(plot["aria-labelledby"].split()) <= set(ids)
    said = [text for tag, text in page.texts if tag == "desc"]
    assert said[0] == "2026-W10: 0 of 46; 2026-W11: 2 of 2"
    anchors = [found["href"][1:] for name, found in page.tags if name == "a"]
    assert {a for a in anchors if a in ids} >= {"help", "weeks", "tasks", "groups", "open"}


def test_bars_are_as_long_as_their_numbers(class_of_50):
    data, paths = write_analytics(class_of_50)
    widths = [
        float(found["width"])
        for name, found in read(paths[0]).tags
        if name == "rect" and found["class"] == "bar"
    ]
    # Two weeks first: 0 and 2 of at most 46.
    assert widths[:2] == pytest.approx([0, 190 * 2 / 46], abs=0.06)
    bins = data["assignments"][0]["distribution"]["bins"]
    assert bins == [1, 0, 0, 0, 0, 25, 0, 0, 0, 23]
    assert widths[2:12] == pytest.approx([190 * n / 25 for n in bins], abs=0.06)


def test_groups_are_called_a_hint_and_never_a_score(class_of_50):
    text = read(write_analytics(class_of_50)[1][0]).text()
    assert "A hint to a person, and never a score." in text
    assert "2 of 49 graded; 2 of 26 who lost points are in a group" in text


def test_links_lead_into_the_book_from_wherever_the_page_lies(class_of_50, tmp_path):
    built = class_of_50.root / "_build" / "html" / "book" / "tiny.html"
    for out in (None, tmp_path / "else where" / "deep", class_of_50.root):
        _, paths = write_analytics(class_of_50, out=out)
        links = {f["href"] for n, f in read(paths[0]).tags if n == "a" and f["href"][0] != "#"}
        (address,) = links
        path, _, section = address.partition("#")
        found = (paths[0].parent / urllib.parse.unquote(path)).resolve()
        assert (found, section) == (built.resolve(), "double")
    text = write_analytics(class_of_50, book="https://example.org/b/")[1][0].read_text()
    assert 'href="https://example.org/b/tiny.html#double"' in text


def test_the_tables_have_all_of_it(class_of_50, monkeypatch):
    monkeypatch.setattr("seqlib.grading.analytics.page.MOST", dict.fromkeys(MOST, 1))
    data, paths = write_analytics(class_of_50)
    assert [path.name for path in paths] == ["index.html", *(f"{t}.csv" for t in TABLES)]
    assert rows(paths, "help")[2] == {
        "student": "s046",
        "rule": "came back",
        "says": f"Made in tiny.double before, and again in second.double: {HOSTILE} was done.",
        "page": "tiny#double",
    }
    assert len(rows(paths, "help")) == sum(len(s["reasons"]) for s in data["help"]) == 5
    assert [row["share"] for row in rows(paths, "mistakes")] == [str(2 / 49), str(2 / 48)]
    assert [row["count"] for row in rows(paths, "mistakes_by_week")] == ["2"]
    assert [row["week"] for row in rows(paths, "weeks")] == ["2026-W10", "2026-W11", ""]
    assert [row["remark"] for row in rows(paths, "tasks")] == ["", "", "", ""]
    assert sum(int(row["count"]) for row in rows(paths, "scores")) == 49 + 48
    assert [row["students"] for row in rows(paths, "groups")] == ["s046 s047"] * 2
    assert [row["student"] for row in rows(paths, "open")] == ["s049"]
    assert "all are in help.csv" in read(paths[0]).text()


def test_a_table_starts_no_formula(course):
    save(course, "=1+1", 0.0, 0.0)
    assert rows(write_analytics(course)[1], "help")[0]["student"] == "'=1+1"


def test_a_table_for_each_list(course):
    save(course, "s1")
    assert list(tables(write_analytics(course)[0])) == TABLES


def test_a_class_of_one_has_a_page(course):
    save(course, "s1", 40.0, 0.0)
    page = read(write_analytics(course)[1][0])
    assert page.text().count("too few") >= 4
    assert "1 student." in page.text()
    assert "nan" not in page.text()


def test_a_class_without_a_score_has_a_page(course):
    save(course, "s1", 0.0, 0.0, state="unreadable")
    page = read(write_analytics(course)[1][0])
    assert "No mistake was recognised." in page.text()
    assert "the file could not be read" in page.text()


def test_a_second_run_writes_the_same(class_of_50):
    before = {p: p.read_bytes() for p in write_analytics(class_of_50)[1]}
    assert before == {p: p.read_bytes() for p in write_analytics(class_of_50)[1]}


# The command


def test_the_command_names_its_files(course, tmp_path):
    save(course, "s1")
    assert run(course, "analytics").splitlines()[:2] == [
        "grading/reports/analytics/index.html",
        "grading/reports/analytics/help.csv",
    ]
    out = tmp_path / "out"
    assert run(course, "analytics", "tiny", "--out", str(out)).splitlines()[0] == str(
        out / "index.html"
    )
    assert not list(course.root.rglob("*.db"))


def test_the_command_prints_json(course, tmp_path):
    save(course, "s1")
    (tmp_path / "roster.csv").write_text("id,first_name\ns1,Ada\ns2,Ben\n")
    data = json.loads(
        run(course, "analytics", "--json", "--roster", str(tmp_path / "roster.csv"))
    )
    assert data["students"] == 2
    assert data["help"][0]["student"] == "s2"
    assert (course.report("analytics") / "index.html").is_file()


def test_the_command_says_what_is_wrong(course, tmp_path):
    assert "run `seqlib grade NAME`" in run(course, "analytics", code=1)
    save(course, "s1")
    assert "got second; run `seqlib grade second`" in run(course, "analytics", "second", code=1)
    (tmp_path / "file").touch()
    said = run(course, "analytics", "--out", str(tmp_path / "file"), code=1)
    assert "out must be a folder, got the file" in said


# A large class


@pytest.mark.slow
def test_a_class_of_5000(course):
    for number in range(5000):
        lost = number % 3 == 0
        about = diagnosis("one_more") if number % 2 else None
        says = f"the code raised E: x{number % 600}" if lost else ""
        student, double = f"s{number:04}", 0.0 if lost else 40.0
        save(course, student, double, found=about, message=says)
    start = time.process_time()
    write_analytics(course)
    seconds = time.process_time() - start
    tracemalloc.start()
    _, paths = write_analytics(course)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A loop over pairs of students would take minutes.
    assert seconds < 15
    assert peak < 40e6
    assert paths[0].stat().st_size < 500_000
    # The numbers below 600 that 3 divides, each the rest of 8 or 9 students.
    assert len(rows(paths, "groups")) == 200
