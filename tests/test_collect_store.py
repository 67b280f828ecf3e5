"""Newer submissions replace older ones, nothing is lost, and a killed run is made good."""

import json
import signal
import subprocess
import sys
import time
from datetime import datetime

import exports_made as made
import pytest
import tiny_course

from seqlib.grading.collect import store
from seqlib.grading.collect.run import collect
from seqlib.grading.collect.store import Shelf
from seqlib.grading.records import Key, Store

DAYS = [datetime(2026, 1, day, 12, 0) for day in (10, 20, 30)]


@pytest.fixture
def course(tmp_path):
    root = tmp_path / "course"
    root.mkdir()
    return tiny_course.make_course(root)


@pytest.fixture
def bring(course, tmp_path):
    """Collect a submission of the one student, of a day, on a platform."""
    count = iter(range(1000))

    def collect_one(content, time=None, *, form="blackboard", attachment=0, **options):
        (student,) = made.people(1)
        upload = made.Upload(student, [("tiny.ipynb", content)], attachment=attachment)
        upload.time = time or upload.time
        make = {
            "blackboard": made.blackboard_files,
            "canvas": made.canvas_files,
            "moodle": made.moodle_files,
        }[form]
        if form != "blackboard":
            options["roster"] = made.roster(
                tmp_path / "roster.csv",
                [student],
                submitted_at=lambda s: time.isoformat() if time else "",
            )
        export = made.write_zip(tmp_path / f"{next(count)}.zip", make([upload]))
        report = collect(course, [export], "tiny", timezone="UTC", **options)
        states = ("collected", "replaced", "retimed", "unchanged", "older")
        (state,) = (s for s in states if getattr(report, s))
        return state, report

    return collect_one


def there(course, student="s0001"):
    folder = course.submission(student, "tiny")
    time = folder / "timestamp.txt"
    return (
        (folder / "tiny.ipynb").read_bytes(),
        time.read_text()[:10] if time.exists() else None,
    )


def kept(course, student="s0001"):
    folder = course.grading / "collected" / "tiny" / student
    return sorted(path.read_bytes() for path in folder.glob("*/tiny.ipynb"))


def test_a_newer_submission_replaces_an_older_one_in_either_order(course, bring):
    assert bring(b"2", DAYS[1])[0] == "collected"
    assert bring(b"1", DAYS[0])[0] == "older"
    assert there(course) == (b"2", "2026-01-20")
    assert bring(b"3", DAYS[2])[0] == "replaced"
    assert there(course) == (b"3", "2026-01-30")
    assert kept(course) == [b"1", b"2"]
    assert bring(b"2", DAYS[1])[0] == "older"
    assert bring(b"3", DAYS[2])[0] == "unchanged"
    assert kept(course) == [b"1", b"2"]
    index = json.loads((course.grading / "collected" / "tiny" / "index.json").read_text())
    times = [old["time"][:10] for old in index["students"]["s0001"]["history"]]
    assert sorted(times) == ["2026-01-10", "2026-01-20"]


def test_the_same_work_handed_in_later_has_the_later_time(course, bring):
    bring(b"1", DAYS[0])
    assert bring(b"1", DAYS[2])[0] == "retimed"
    assert there(course) == (b"1", "2026-01-30")
    assert bring(b"1", DAYS[0])[0] == "unchanged"
    assert there(course) == (b"1", "2026-01-30")


def test_canvas_numbers_tell_the_order_where_no_time_does(course, bring):
    bring(b"2", form="canvas", attachment=200)
    assert bring(b"1", form="canvas", attachment=100)[0] == "older"
    assert bring(b"3", form="canvas", attachment=300)[0] == "replaced"
    assert there(course) == (b"3", None)


def test_without_any_order_the_later_run_counts_once(course, bring):
    assert bring(b"1", form="moodle")[0] == "collected"
    state, report = bring(b"2", form="moodle")
    assert state == "replaced"
    assert "no time tells which is newer" in report.notes[-1]
    # What was replaced does not come back with the old export.
    assert bring(b"1", form="moodle")[0] == "older"
    assert bring(b"2", form="moodle")[0] == "unchanged"
    assert there(course) == (b"2", None)
    assert kept(course) == [b"1"]


def test_a_run_that_knows_less_takes_nothing_away(course, bring):
    bring(b"1", form="canvas", attachment=5)
    assert there(course) == (b"1", None)
    assert bring(b"1", DAYS[1], form="canvas", attachment=5)[0] == "retimed"
    assert there(course) == (b"1", "2026-01-20")
    state, report = bring(b"1", form="canvas", attachment=5)
    assert state == "unchanged"
    assert report.without_time == []
    assert there(course) == (b"1", "2026-01-20")


def test_a_time_in_the_wrong_zone_is_put_right_and_stays_right(course, tmp_path):
    (student,) = made.people(1)
    upload = made.Upload(student, [("tiny.ipynb", b"1")], time=DAYS[0])
    files = made.blackboard_files([upload], notes=False)
    export = made.write_zip(tmp_path / "b.zip", files)

    def clock(**options):
        report = collect(course, [export], "tiny", **options)
        path = course.submission("s0001", "tiny") / "timestamp.txt"
        return path.read_text()[11:16], report.retimed

    assert clock() == ("12:00", [])
    assert clock(timezone="Europe/Berlin") == ("11:00", ["s0001"])
    assert clock() == ("11:00", [])  # a run that knows less
    assert clock(timezone="America/New_York") == ("17:00", ["s0001"])
    assert clock(timezone="Europe/Berlin") == ("11:00", ["s0001"])
    # Another submission within the hours that a zone may make is not newer for that alone.
    upload.files, upload.time = [("tiny.ipynb", b"2")], DAYS[0].replace(hour=13)
    export = made.write_zip(tmp_path / "b2.zip", made.blackboard_files([upload], notes=False))
    report = collect(course, [export], "tiny")
    assert "no time tells which is newer" in report.notes[0]


def test_what_a_person_put_or_changed_is_kept(course, bring):
    tiny_course.submit(course, "s0001", b"by hand")
    (course.submission("s0001", "tiny") / "data.csv").write_bytes(b"1,2")
    state, report = bring(b"1", DAYS[0])
    assert state == "replaced"
    assert "something else lay in its folder and was kept aside" in report.notes[0]
    assert kept(course) == [b"by hand"]
    # A change by hand stays until there is a newer submission.
    tiny_course.submit(course, "s0001", b"mended")
    state, report = bring(b"1", DAYS[0])
    assert state == "unchanged"
    assert "changed by hand" in report.notes[0]
    assert there(course)[0] == b"mended"
    state, report = bring(b"2", DAYS[1])
    assert state == "replaced"
    assert there(course) == (b"2", "2026-01-20")
    assert kept(course) == [b"by hand", b"mended"]
    assert list((course.grading / "collected").rglob("data.csv"))


def test_work_that_was_put_there_by_hand_before_is_taken_on(course, bring):
    tiny_course.submit(course, "s0001", b"1")
    assert bring(b"1", DAYS[0])[0] == "retimed"
    assert there(course) == (b"1", "2026-01-10")
    assert kept(course) == []
    assert bring(b"1", DAYS[0])[0] == "unchanged"


def test_what_jupyter_leaves_in_a_folder_is_no_change(course, bring):
    bring(b"1", DAYS[0])
    left = course.submission("s0001", "tiny") / ".ipynb_checkpoints"
    left.mkdir()
    (left / "tiny-checkpoint.ipynb").write_bytes(b"1")
    state, report = bring(b"1", DAYS[0])
    assert (state, report.notes) == ("unchanged", [])


def test_a_folder_that_was_deleted_comes_back(course, bring):
    import shutil

    bring(b"1", DAYS[0])
    shutil.rmtree(course.submission("s0001", "tiny"))
    assert bring(b"1", DAYS[0])[0] == "collected"
    assert there(course) == (b"1", "2026-01-10")


def test_what_is_older_than_a_deleted_folder_is_not_taken_in_silence(course, bring):
    import shutil

    bring(b"2", DAYS[1])
    shutil.rmtree(course.submission("s0001", "tiny"))
    state, report = bring(b"1", DAYS[0])
    assert state == "older"
    assert "collect the newer export again" in report.notes[-1]
    assert bring(b"2", DAYS[1])[0] == "collected"
    assert there(course) == (b"2", "2026-01-20")


def test_records_of_a_graded_submission_are_never_touched(course, bring):
    bring(b"1", DAYS[0])
    store = Store(course.records, "tiny", "s0001")
    digest = "ab" * 32
    key = Key("tiny.add", 1, 1, "trusted")
    store.save_submission(digest, "{}", {"student": "s0001"}, {key: {"score": 40.0}})
    before = {p: p.read_bytes() for p in course.records.rglob("*") if p.is_file()}
    bring(b"2", DAYS[1])
    bring(b"3", DAYS[2], form="canvas")
    assert {p: p.read_bytes() for p in course.records.rglob("*") if p.is_file()} == before
    assert store.task(digest, key)["score"] == 40.0
    assert kept(course) == [b"1", b"2"]


def test_another_id_for_the_same_user_moves_the_folder_aside(course, tmp_path):
    students = made.people(2)
    uploads = [made.Upload(s, [("tiny.ipynb", s.id.encode())]) for s in students]
    export = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    collect(course, [export], "tiny")
    assert course.students("tiny") == [s.canvas for s in students]
    roster = made.roster(tmp_path / "r.csv", students)
    report = collect(course, [export], "tiny", roster=roster)
    assert course.students("tiny") == ["s0001", "s0002"]
    assert f"s0001: collected as {students[0].canvas} in an earlier run" in report.notes[0]
    assert kept(course, students[0].canvas) == [b"s0001"]
    # A run without the roster knows the ids by now.
    assert collect(course, [export], "tiny").unchanged == ["s0001", "s0002"]
    assert course.students("tiny") == ["s0001", "s0002"]


# Runs that end early


CODE = """
import os, signal, sys
from seqlib.grading.collect import store
from seqlib.grading.collect.run import collect
from seqlib.grading.course import Course
real, calls = os.{what}, 0
def killed(*arguments, **options):
    global calls
    if "grading" in str(arguments[0]) and "__pycache__" not in str(arguments[0]):
        calls += 1
        if calls == {after}:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)
os.{what} = killed
collect(Course(__import__("pathlib").Path(sys.argv[1])), [sys.argv[2]], "tiny")
"""


@pytest.mark.parametrize(("what", "after"), [("rename", 1), ("rename", 4), ("replace", 1)])
def test_a_killed_run_is_made_good_by_the_next_one(course, tmp_path, what, after):
    students = made.people(6)
    exports = []
    for day, moment in enumerate(DAYS[:2]):
        uploads = [made.Upload(s, [("tiny.ipynb", f"{s.id} {day}".encode())]) for s in students]
        for upload in uploads:
            upload.time = moment
        exports.append(made.write_zip(tmp_path / f"{day}.zip", made.blackboard_files(uploads)))
    collect(course, [exports[0]], "tiny")
    code = CODE.format(what=what, after=after)
    arguments = [sys.executable, "-c", code, str(course.root), str(exports[1])]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for student in students:
        folder = course.submission(student.id, "tiny")
        if folder.exists():  # whole, old or new
            content, date = there(course, student.id)
            day = int(content.decode().split()[1])
            assert content == f"{student.id} {day}".encode()
            assert date == f"{DAYS[day]:%Y-%m-%d}"
    report = collect(course, [exports[1]], "tiny")
    assert len(report.replaced + report.collected + report.retimed + report.unchanged) == 6
    for student in students:
        assert there(course, student.id) == (f"{student.id} 1".encode(), "2026-01-20")
        assert f"{student.id} 0".encode() in kept(course, student.id)
    assert collect(course, [exports[1]], "tiny").unchanged == [s.id for s in students]
    left = [p for p in course.grading.rglob("*.tmp") if "submitted" in p.parts]
    assert left == []


def test_two_runs_at_once_are_refused(course, bring):
    with (
        Shelf(course, "tiny"),
        pytest.raises(ValueError, match="must be collected by one run at a time"),
    ):
        bring(b"1")
    assert bring(b"1")[0] == "collected"


def test_a_damaged_list_of_earlier_runs_is_named(course, bring):
    bring(b"1", DAYS[0])
    path = course.grading / "collected" / "tiny" / "index.json"
    entry = '{"current": {"key": "canvas:1"}, "history": []}'
    for damage in (
        *("{", "[]", '{"format": 0}', '{"format": 1}', '{"format": 1, "students": []}'),
        '{"format": 1, "students": {"s0001": {}}}',
        f'{{"format": 1, "students": {{"s0001": {entry}}}}}',
    ):
        path.write_text(damage)
        with pytest.raises(ValueError, match="list of earlier runs must be of format 1"):
            bring(b"2", DAYS[1])
    path.unlink()
    assert bring(b"2", DAYS[1])[0] == "replaced"
    assert kept(course) == [b"1"]


def test_what_was_decided_is_written_even_if_a_later_student_fails(
    course, tmp_path, monkeypatch
):
    students = made.people(3)
    uploads = [made.Upload(s, [("tiny.ipynb", s.id.encode())]) for s in students]
    export = made.write_zip(tmp_path / "b.zip", made.blackboard_files(uploads))
    real = Shelf.place

    def place(shelf, student, works):
        if student == "s0003":
            raise KeyboardInterrupt
        return real(shelf, student, works)

    monkeypatch.setattr(Shelf, "place", place)
    with pytest.raises(KeyboardInterrupt):
        collect(course, [export], "tiny")
    monkeypatch.undo()
    assert course.students("tiny") == ["s0001", "s0002"]
    report = collect(course, [export], "tiny")
    assert (report.unchanged, report.collected) == (["s0001", "s0002"], ["s0003"])


def test_submissions_may_be_written_one_by_one(course, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MOST_WAITING", 1)
    students = made.people(20)
    uploads = [made.Upload(s, [("tiny.ipynb", s.id.encode())]) for s in students]
    export = made.write_zip(tmp_path / "b.zip", made.blackboard_files(uploads))
    assert collect(course, [export], "tiny").collected == [s.id for s in students]
    assert there(course, "s0020") == (b"s0020", "2026-01-31")


def test_a_thousand_files_take_less_than_ten_seconds(course, tmp_path):
    students = made.people(1000)
    base = tiny_course.as_bytes(tiny_course.solved()) + b" " * 40_000
    uploads = [made.Upload(s, [("tiny.ipynb", base + s.id.encode())]) for s in students]
    export = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    roster = made.roster(tmp_path / "r.csv", students)
    # Of the processor, since the machine of a test does other things too. On an idle one the
    # clock shows about as much; waiting for a disk is what the difference to ten is for.
    start = time.process_time()
    report = collect(course, [export], "tiny", roster=roster)
    seconds = time.process_time() - start
    assert len(report.collected) == len(course.students("tiny")) == 1000
    assert seconds < 5
