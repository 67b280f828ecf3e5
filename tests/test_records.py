"""Records of submissions, and the course's secret."""

import os
import stat

import pytest

from seqlib.grading import records
from seqlib.grading.course import Course, find_course
from seqlib.grading.records import (
    Key,
    Store,
    all_submissions,
    failures,
    write_atomically,
    write_together,
)
from seqlib.grading.secret import course_secret, seed

KEY = Key("tiny.double", 1, 1, "namespaces")
DIGEST = "0123456789abcdef" * 4


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path):
    secret = course_secret(tmp_path / "grading")
    assert len(secret) == 32
    assert course_secret(tmp_path / "grading") == secret
    file = tmp_path / "grading" / "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert course_secret(tmp_path / "another") != secret


@pytest.mark.parametrize("content", ["", "abc", "zz" * 32, "ab" * 31])
def test_a_damaged_secret_is_not_replaced(tmp_path, content):
    (tmp_path / "secret").write_text(content)
    with pytest.raises(ValueError, match="secret must have 64 hexadecimal digits"):
        course_secret(tmp_path)
    assert (tmp_path / "secret").read_text() == content


def test_the_seed_depends_on_all_that_it_is_made_of():
    base = seed(bytes(32), "s001", "tiny.double", 1)
    others = [
        seed(b"\1" * 32, "s001", "tiny.double", 1),
        seed(bytes(32), "s002", "tiny.double", 1),
        seed(bytes(32), "s001", "tiny.add", 1),
        seed(bytes(32), "s001", "tiny.double", 2),
    ]
    assert base == seed(bytes(32), "s001", "tiny.double", 1)
    assert len({base, *others}) == 5
    # By another hand: printf '["s001", "tiny.double", 1]' | openssl dgst -sha256 -mac hmac
    # -macopt hexkey:00...00 begins with these eight bytes; halved, they fit a signed int.
    assert base == 0xEEE91FF30C1F0F95 // 2


def test_a_name_that_is_no_text_has_a_seed_too():
    # A folder whose name is no UTF-8.
    assert seed(bytes(32), "\udcff", "tiny.double", 1) > 0


def test_a_task_record_is_found_only_under_its_key(tmp_path):
    store = Store(tmp_path, "tiny", "s001")
    store.save_task(DIGEST, KEY, {"points": 40.0})
    assert store.task(DIGEST, KEY)["points"] == 40.0
    assert store.task("f" * 64, KEY) is None
    for other in (
        Key("tiny.add", 1, 1, "namespaces"),
        Key("tiny.double", 2, 1, "namespaces"),
        Key("tiny.double", 1, 2, "namespaces"),
        Key("tiny.double", 1, 1, "landlock"),
    ):
        assert store.task(DIGEST, other) is None


def test_a_record_of_another_submission_with_the_same_short_name_is_not_taken(tmp_path):
    store = Store(tmp_path, "tiny", "s001")
    store.save_task(DIGEST, KEY, {"points": 40.0})
    assert store.task(DIGEST[:16] + "f" * 48, KEY) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 0}', "null"])
def test_a_record_that_is_no_record_counts_as_none(tmp_path, content):
    store = Store(tmp_path, "tiny", "s001")
    write_atomically(store.folder / records.SUBMISSION, content)
    assert store.submission() is None


def test_all_submissions_are_listed_by_student(tmp_path):
    assert all_submissions(tmp_path, "tiny") == {}
    for student in ("s002", "s001"):
        Store(tmp_path, "tiny", student).save_submission(DIGEST, "{}", {"state": "graded"})
    Store(tmp_path, "tiny", "s003").save_task(DIGEST, KEY, {})
    (tmp_path / "tiny" / ".DS_Store").write_bytes(b"\0")  # left by a desktop
    assert failures(tmp_path, "tiny") == {}
    found = all_submissions(tmp_path, "tiny")
    assert list(found) == ["s001", "s002"]
    assert found["s001"]["submission"] == DIGEST


def test_a_write_that_fails_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_submission_record_is_written_last(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        records, "write_together", lambda files, **_: written.append({p.name for p in files})
    )
    Store(tmp_path, "tiny", "s001").save_submission(DIGEST, "{}", {}, {KEY: {}})
    assert written == [{KEY.file, "notebook.ipynb"}, {"submission.json"}]


def test_files_take_their_names_only_when_all_are_on_the_disk(tmp_path, monkeypatch):
    done = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("sync"), sync(file))[1])
    monkeypatch.setattr(
        os, "replace", lambda old, new: (done.append("name"), replace(old, new))[1]
    )
    files = {tmp_path / "a" / "x": "one", tmp_path / "b" / "y": "two\n"}
    write_together(files)
    assert done == ["sync", "sync", "name", "name", "sync", "sync"]
    assert {path: path.read_text() for path in files} == files
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["x", "y"]


def test_what_is_removed_after_a_run_does_not_wait_for_the_disk(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", done.append)
    Store(tmp_path, "tiny", "s001", sync=False).save_submission(DIGEST, "{}", {}, {KEY: {}})
    assert done == []
    assert Store(tmp_path, "tiny", "s001").task(DIGEST, KEY) is not None
    Store(tmp_path, "tiny", "s001").save_submission(DIGEST, "{}", {}, {KEY: {}})
    assert len(done) > 3


def test_students_are_the_folders_with_a_submission(tmp_path):
    course = Course(tmp_path)
    assert course.students("tiny") == []
    for student in ("s002", "s001", ".hidden"):
        course.submission(student, "tiny").mkdir(parents=True)
    course.submission("s003", "other").mkdir(parents=True)
    assert course.students("tiny") == ["s001", "s002"]


def test_a_folder_without_configuration_is_no_course(tmp_path):
    with pytest.raises(ValueError, match=r"^course must be a folder with nbgrader_config\.py"):
        find_course(tmp_path)
    (tmp_path / "nbgrader_config.py").touch()
    assert find_course(tmp_path).root == tmp_path


def test_an_assignment_must_be_released_before_it_is_graded(tmp_path):
    with pytest.raises(ValueError, match="run `seqlib release tiny`"):
        Course(tmp_path).release("tiny")
