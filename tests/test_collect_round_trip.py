"""A class of sixty, from a platform's export through grading back into the platform's file."""

import csv
import functools
import io
from datetime import datetime

import exports_made as made
import pytest
import tiny_course
from test_collect import FORMS, odd_class

from seqlib.grading.batch import grade_class
from seqlib.grading.collect.run import collect
from seqlib.grading.export.run import export
from seqlib.grading.gradebook.writer import open_gradebook, register

pytestmark = [
    pytest.mark.slow,  # half a minute each: fifty-eight notebooks are graded
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    root = tmp_path / "course"
    root.mkdir()
    course = tiny_course.make_course(root)
    register(course, "tiny")
    return course


def strict(data, encoding):
    """Parse a table that must be rectangular, correctly quoted and decoded without a loss."""
    text = data.decode(encoding)
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len({len(row) for row in rows}) == 1
    head, *body = rows
    assert len(set(head)) == len(head)
    return [dict(zip(head, row, strict=True)) for row in body]


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
def test_sixty_students_there_and_back(course, tmp_path, platform):
    students, uploads, expected = odd_class()
    late = students[11]
    for upload in uploads:
        upload.late = upload.student is late
        upload.time = datetime(2026, 1, 31, 12, 45)
    download = FORMS[platform](tmp_path, uploads)
    if platform == "canvas":
        template = made.canvas_gradebook(tmp_path / "template.csv", students)
        ids, column, key = {s.id: s.canvas for s in students}, "Tiny (771)", "ID"
        names = {s.id: s.canvas for s in students}
    else:
        template = made.moodle_worksheet(tmp_path / "template.csv", students, uploads)
        ids, column, key = {s.id: s.id for s in students}, "Grade", "Identifier"
        names = {s.id: f"Participant {s.participant}" for s in students}
    report = collect(course, [download], "tiny", roster=template, timezone="Europe/Berlin")
    assert report.collected == sorted(ids[student] for student in expected)
    assert report.missing == [ids["s0060"]]
    assert report.late == ([late.canvas] if platform == "canvas" else [])
    outcome = grade_class(
        course,
        "tiny",
        workers=2,
        trust_students=True,
        make_grader=functools.partial(tiny_course.tiny_grader, course.root),
    )
    assert outcome.failures == {}
    assert {r["score"] for r in outcome.records.values()} == {80.0}
    # Who renamed the file reads that in the record; what the platform renamed is no mend.
    mended = {s for s, r in outcome.records.items() if r["mends"]}
    assert mended == {ids[s] for s, files in expected.items() if "tiny.ipynb" not in files}
    out = tmp_path / "back.csv"
    with open_gradebook(course) as gradebook:
        export(gradebook, course, platform, out=out, template=template, provisional=True)
    before = strict(template.read_bytes(), "utf-8-sig")
    after = strict(out.read_bytes(), "utf-8-sig")
    # Moodle has a column for the note that the question in words is not graded yet.
    free = {column, "Feedback comments"}
    kept = [{k: v for k, v in row.items() if k not in free} for row in after]
    assert kept == [{k: v for k, v in row.items() if k not in free} for row in before]
    marks = {row[key]: row[column] for row in after}
    for student in students:
        mark = marks[names[student.id]]
        assert (mark and float(mark)) == (80.0 if student.id in expected else "")
    # The platform's next export after the marks have gone back: nothing to do.
    again = collect(course, [download], "tiny", roster=out, timezone="Europe/Berlin")
    assert again.unchanged == report.collected
