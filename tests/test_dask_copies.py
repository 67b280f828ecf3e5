"""What travels between the machines of a cluster: copies that are graded as the originals."""

import json
import os
import pickle
import shutil

import pytest
import tiny_course
from tiny_course import as_bytes, solved, submit

from seqlib.grading.distributed import copies as copies
from seqlib.grading.distributed.copies import copy_grader, difference, fingerprint, pack, unpack
from seqlib.grading.records import Store
from seqlib.grading.secret import course_secret

TIMES = ("seconds", "graded_at")


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    (tmp_path / "course").mkdir()
    course = tiny_course.make_course(tmp_path / "course")
    course_secret(course.grading)
    return course


def make_grader(course):
    return tiny_course.tiny_grader(course.root, fleeting=course.fleeting)


@pytest.fixture
def grade(course, tmp_path):
    """Return a function that grades a copy of a submission in another folder."""
    material = copies.material(course, "tiny", make_grader)
    (tmp_path / "elsewhere").mkdir()
    with copy_grader(material, tmp_path / "elsewhere") as grade:
        yield lambda student, force=False: grade(pack(course, "tiny", student, force))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def kept(course):
    """Return all records of a course but for times."""
    found = {}
    for path in sorted(course.records.rglob("*")):
        if path.suffix == ".json":
            record = json.loads(path.read_text())
            found[path.relative_to(course.records)] = without_times(record)
        elif path.is_file():
            found[path.relative_to(course.records)] = path.read_text()
    return found


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return value


def submissions(course):
    """Submit in every way in which work arrives."""
    data = as_bytes(solved())
    submit(course, "s001", solved())
    submit(course, "s002", solved(double="def double(x):\n    return 2 * x + 1"))
    submit(course, "s003", data[: data.index(b'"Add them."')])
    submit(course, "s004", b"<html>")
    submit(course, "s005", solved(), name="kopie – ü.ipynb")
    submit(course, "s005", b"", name="numpy.py")
    submit(course, "s006", tiny_course.released(), name="old.ipynb")
    submit(course, "s006", solved(), name="deep/er/new.ipynb")
    submit(course, "s007", data, name="tiny.json")
    folder = course.submission("s008", "tiny")
    folder.mkdir(parents=True)
    (folder / "notebook").mkdir()
    (folder / "notebook" / "tiny.ipynb").write_bytes(data)
    shutil.make_archive(str(folder / "all"), "zip", folder / "notebook")
    shutil.rmtree(folder / "notebook")
    course.submission("s009", "tiny").mkdir(parents=True)
    course.submission("s010", "tiny").mkdir(parents=True)
    (course.submission("s010", "tiny") / "tiny.ipynb").symlink_to(
        course.submission("s001", "tiny") / "tiny.ipynb"
    )
    return course.students("tiny")


def test_a_copy_gives_the_records_of_the_original(course, grade):
    students = submissions(course)
    found = {}
    for student in students:
        graded = grade(student)
        found[student] = unpack(course, "tiny", student, graded)
    of_copies = kept(course)
    shutil.rmtree(course.records)
    with make_grader(course) as grader:
        expected = {student: grader.grade(student) for student in students}
    assert without_times(found) == without_times(expected)
    assert of_copies == kept(course)
    assert len({record["score"] for record in found.values()}) > 2


def test_what_has_been_graded_is_not_graded_again(course, grade):
    submit(course, "s001", solved())
    unpack(course, "tiny", "s001", grade("s001"))
    before = kept(course)
    again = grade("s001")
    assert again.record["reused"]
    assert again.files == {}
    unpack(course, "tiny", "s001", again)
    assert kept(course) == before
    forced = grade("s001", force=True)
    assert not forced.record["reused"]
    assert forced.files


def test_a_task_that_has_a_record_is_not_judged_again(course, grade):
    submit(course, "s001", solved())
    unpack(course, "tiny", "s001", grade("s001"))
    store = Store(course.records, "tiny", "s001")
    # As after a run that was killed before its last step.
    (store.folder / "submission.json").unlink()
    assert len(grade("s001").files) > 2
    unpack(course, "tiny", "s001", grade("s001"))
    digest = store.submission()["submission"]
    record = json.loads((store.folder / "submission.json").read_text())
    record["basis"]["judge"] = 0
    (store.folder / "submission.json").write_text(json.dumps(record))
    names = set(grade("s001").files)
    assert names == {"submission.json", f"{digest[:16]}/notebook.ipynb"}


def test_another_submission_takes_no_record_of_the_older_one(course, grade):
    submit(course, "s001", solved())
    unpack(course, "tiny", "s001", grade("s001"))
    submit(course, "s001", solved(add="def add(x, y):\n    return x - y"))
    record = unpack(course, "tiny", "s001", grade("s001"))
    assert not record["reused"]
    assert record["score"] == 40.0
    assert Store(course.records, "tiny", "s001").submission()["score"] == 40.0


def test_no_job_carries_what_is_sent_once(course):
    submit(course, "s001", solved())
    sent = pickle.dumps(pack(course, "tiny", "s001", False))
    assert course_secret(course.grading) not in sent
    assert course_secret(course.grading).hex().encode() not in sent
    assert course.release_file("tiny").read_bytes() not in sent
    assert len(sent) < 2 * len(as_bytes(solved())) + 500


def test_a_submission_too_large_to_send_is_named(course, monkeypatch):
    submit(course, "s001", solved())
    monkeypatch.setattr(copies, "MAX_JOB_BYTES", 100)
    with pytest.raises(ValueError, match=r"(?s)submission must have at most .*--only s001"):
        pack(course, "tiny", "s001", False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_locked_folder_is_no_empty_submission(course, grade):
    folder = course.submission("s001", "tiny") / "locked"
    folder.mkdir(parents=True)
    folder.chmod(0)
    with pytest.raises(PermissionError):
        grade("s001")


def test_a_locked_folder_is_told_of_to_the_machine_that_grades(course, grade, monkeypatch):
    submit(course, "s001", b"a note", name="note.txt.pdf")
    job = copies.Job("s001", False, (), "locked: Permission denied", ())
    monkeypatch.setattr(f"{__name__}.pack", lambda *_: job)
    with pytest.raises(PermissionError, match="Permission denied"):
        grade("s001")


@pytest.mark.parametrize(
    "name",
    [
        "../../secret",
        "/etc/passwd",
        "failure.json",
        "0123456789abcdef/../../x.json",
        "0123456789abcdef/.hidden",
        "0123456789abcdef/a/b.json",
        "0123456789abcdef/",
    ],
)
def test_a_result_writes_nothing_but_records(course, name):
    record = {"student": "s001", "assignment": "tiny"}
    before = sorted(course.root.rglob("*"))
    with pytest.raises(ValueError, match="result must have the names of records"):
        unpack(course, "tiny", "s001", copies.Graded(record, {name: "x"}))
    assert sorted(course.root.rglob("*")) == before


@pytest.mark.parametrize("field", ["student", "assignment"])
def test_a_result_of_another_job_is_refused(course, field):
    record = {"student": "s001", "assignment": "tiny"} | {field: "other"}
    with pytest.raises(ValueError, match="result must be of s001 in tiny, got one of"):
        unpack(course, "tiny", "s001", copies.Graded(record, {}))


def test_only_the_instructors_machine_waits_for_its_disk(course, grade, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", done.append)
    (student, *_) = submissions(course)
    graded = grade(student)
    assert done == []
    unpack(course, "tiny", student, graded)
    assert len(done) > 3


def test_the_secret_is_readable_by_the_owner_alone(course, tmp_path):
    modes = []

    def look(course):
        modes.append((course.grading / "secret").stat().st_mode & 0o777)
        return make_grader(course)

    with copy_grader(copies.material(course, "tiny", look), tmp_path):
        assert modes == [0o600]


def test_a_machine_that_differs_is_refused(course, tmp_path):
    material = copies.material(course, "tiny", make_grader)
    material.fingerprint["numpy"] = "1.0"
    here = fingerprint()["numpy"]
    with (
        pytest.raises(RuntimeError, match=rf"it has numpy {here} in place of 1\.0"),
        copy_grader(material, tmp_path),
    ):
        pass


def test_differences_name_what_differs():
    here = fingerprint()
    assert difference(here, fingerprint()) == ""
    there = here | {"source": "0" * 12}
    assert difference(here, there) == f"source {'0' * 12} in place of {here['source']}"
    assert difference(here, {}).count("None in place of") == len(here)
