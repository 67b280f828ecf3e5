"""Collecting reads archives that were made to do harm, and takes none."""

import json
import os
import stat
import struct
import tracemalloc
import zipfile

import exports_made as made
import pytest
import tiny_course
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqlib.grading.collect import archives
from seqlib.grading.collect.archives import RefusedError, open_export
from seqlib.grading.collect.platforms import PLATFORMS
from seqlib.grading.collect.report import report_lines
from seqlib.grading.collect.run import collect

GOOD = tiny_course.as_bytes(tiny_course.solved())


@pytest.fixture
def course(tmp_path):
    root = tmp_path / "course"
    root.mkdir()
    return tiny_course.make_course(root)


def collected(course, tmp_path, files, name="all.zip", **options):
    """Collect an archive of these files, and return the report and what lies there."""
    report = collect(course, [made.write_zip(tmp_path / name, files)], "tiny", **options)
    found = (course.grading / "submitted").rglob("*.ipynb")
    return report, {path.parent.parent.name: path.read_bytes() for path in found}


def reasons(report):
    return {entry["where"]: entry["reason"] for entry in report.refused}


def outside(tmp_path):
    """Return all files that are neither the course's nor the export."""
    return [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and tmp_path / "course" not in path.parents and path.suffix != ".zip"
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../evil.ipynb", "its path leads out of the archive"),
        ("eve/../../../evil.ipynb", "its path leads out of the archive"),
        ("eve\\..\\..\\evil.ipynb", "its path leads out of the archive"),
        ("/etc/evil.ipynb", "its path is absolute"),
        ("C:\\evil.ipynb", "its path is absolute"),
        ("\\\\server\\share\\evil.ipynb", "its path is absolute"),
        ("eve/" * 30 + "evil.ipynb", "it lies more than 20 folders deep"),
        (f"{'_' * 60_000}/evil.ipynb", "its path is longer than 1000 characters"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_paths_out_of_the_archive_are_refused(course, tmp_path, name, reason, nested):
    bad = (made.entry(name), b"evil")
    files = [("ada/tiny.ipynb", GOOD)]
    files += [("eve/work.zip", made.zipped([bad]))] if nested else [bad]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert list(reasons(report).values()) == [reason]
    assert "evil.ipynb" in next(iter(reasons(report)))
    assert outside(tmp_path) == []


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (stat.S_IFLNK | 0o777, "it is a link"),
        (stat.S_IFIFO | 0o644, "it is neither a file nor a folder"),
        (stat.S_IFCHR | 0o644, "it is neither a file nor a folder"),
    ],
)
def test_links_and_devices_in_an_archive_are_refused(course, tmp_path, mode, reason):
    files = [
        ("ada/tiny.ipynb", GOOD),
        (made.entry("eve/tiny.ipynb", mode=mode), b"/etc/passwd"),
    ]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert reasons(report) == {"all.zip/eve/tiny.ipynb": reason}


def test_links_and_pipes_in_a_folder_are_not_followed(course, tmp_path):
    export = made.write_zip(tmp_path / "all", [("ada/tiny.ipynb", GOOD), ("eve/x.txt", b"")])
    secret = tmp_path / "secret.ipynb"
    secret.write_bytes(b"{}")
    os.symlink(secret, export / "eve" / "tiny.ipynb")
    os.symlink(tmp_path, export / "mal")
    os.symlink(export, export / "eve" / "loop")
    os.mkfifo(export / "eve" / "pipe.ipynb")
    report = collect(course, [export], "tiny")
    assert reasons(report) == {
        "all/eve/tiny.ipynb": "it is a link",
        "all/mal": "it is a link",
        "all/eve/loop": "it is a link",
        "all/eve/pipe.ipynb": "it is neither a file nor a folder",
    }
    assert report.collected == ["ada"]


def test_names_that_are_no_text_are_reported_and_harm_nobody(course, tmp_path):
    export = made.write_zip(tmp_path / "all", [("ada/tiny.ipynb", GOOD)])
    for folder, name in ((b"ev\xffe", b"tiny.ipynb"), (b"ada", b"t\xfe.ipynb")):
        place = os.path.join(os.fsencode(export), folder)
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, name), "wb") as file:
            file.write(b"{}")
    report = collect(course, [export], "tiny")
    assert sorted(p.name for p in course.submission("ada", "tiny").iterdir()) == [
        "t_.ipynb",
        "tiny.ipynb",
    ]
    (entry,) = report.unmatched
    assert entry["where"] == "all/ev?e/tiny.ipynb"
    json.dumps(report.to_dict(), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("nested", [False, True])
def test_a_file_without_a_name_is_refused_and_harms_nobody(course, tmp_path, nested):
    files = [("\0hidden.ipynb", b"2")]
    good = [("ada/tiny.ipynb", GOOD)]
    if nested:
        files = [("eve.zip", made.zipped([("x/tiny.ipynb", GOOD), *files]))]
    export = made.write_zip(tmp_path / "all.zip", [*files, *good])
    report = collect(course, [export], "tiny")
    assert "ada" in report.collected
    assert [entry["reason"] for entry in report.refused] == [
        "its path leads out of the archive"
    ]


def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(tmp_path):
    export = made.write_zip(tmp_path / "all", [("ada/tiny.ipynb", GOOD)])
    with open_export(export) as opened:
        (member,) = opened.members
        (export / "ada" / "tiny.ipynb").unlink()
        os.symlink("/etc/passwd", export / "ada" / "tiny.ipynb")
        with pytest.raises(RefusedError, match="it cannot be read"):
            member.read(10_000)


def test_an_encrypted_file_is_named_and_the_others_go_on(course, tmp_path):
    locked = made.encrypted(made.zipped([("tiny.ipynb", GOOD)]), "tiny.ipynb")
    files = [("ada/tiny.ipynb", GOOD), ("eve/work.zip", locked)]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert reasons(report) == {"all.zip/eve/work.zip/tiny.ipynb": "it is encrypted"}
    assert report.without_notebook == ["eve"]


# Too much


def test_a_notebook_of_blanks_is_refused_unread(course, tmp_path):
    files = [("ada/tiny.ipynb", GOOD), ("eve/tiny.ipynb", b" " * 15_000_000)]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert reasons(report) == {
        "all.zip/eve/tiny.ipynb": "it unpacks to more than 200 times its size, 15,000,000 bytes"
    }


def test_an_archive_that_lies_about_its_sizes_is_read_no_further(course, tmp_path):
    data = bytearray(made.zipped([("eve/tiny.ipynb", b" " * 50_000_000)]))
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<II", data, at + 20, 60_000, 900_000)  # packed and unpacked, as claimed
    path = tmp_path / "all.zip"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        report = collect(course, [path], "tiny")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "it is damaged" in reasons(report)["all.zip/eve/tiny.ipynb"]
    assert report.without_notebook == ["eve"]
    assert most < 20_000_000


def test_a_file_beyond_what_grading_reads_is_refused(course, tmp_path):
    big = os.urandom(1_000_000) * 21
    files = [("ada/tiny.ipynb", GOOD), ("eve/tiny.ipynb", big), ("eve/small.ipynb", GOOD)]
    report = collect(course, [made.write_zip(tmp_path / "all", files)], "tiny")
    assert reasons(report) == {"all/eve/tiny.ipynb": "it has more than 20,000,000 bytes"}
    assert report.collected == ["ada", "eve"]


def test_a_submission_has_a_limit_over_all_its_files(course, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL", 3_000_000)
    parts = [(f"part{n}.ipynb", os.urandom(1_000_000)) for n in range(4)]
    report, found = collected(
        course,
        tmp_path,
        [("eve/work.zip", made.zipped(parts)), ("ada/tiny.ipynb", GOOD)],
    )
    assert found["ada"] == GOOD
    assert set(reasons(report).values()) == {
        "with it the submission would have more than 3,000,000 bytes"
    }


def test_archives_in_archives_end_somewhere(course, tmp_path):
    data = made.zipped([("tiny.ipynb", GOOD)])
    for _ in range(2):
        data = made.zipped([("inner.zip", data)])
    deeper = made.zipped([("inner.zip", data)])
    files = [("ada/work.zip", data), ("eve/work.zip", deeper)]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert reasons(report) == {
        "all.zip/eve/work.zip/inner.zip/inner.zip/inner.zip": (
            "it lies in more than 3 archives, one in another"
        )
    }


def test_many_small_archives_share_one_limit(course, tmp_path):
    # Ten archives of ten of a hundred files: no single one is large.
    leaf = made.zipped([(f"{n}.txt", b"x") for n in range(100)])
    middle = made.zipped([(f"{n}.zip", leaf) for n in range(10)])
    files = [
        ("eve/work.zip", made.zipped([(f"{n}.zip", middle) for n in range(10)])),
        ("ada/tiny.ipynb", GOOD),
    ]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert "the submission has more than 2000 files" in reasons(report).values()
    assert len(report.stray) < 2500


def test_an_archive_of_too_many_files_is_refused_as_a_whole(course, tmp_path):
    many = made.zipped([(f"{n}.txt", b"") for n in range(2001)])
    report, found = collected(
        course, tmp_path, [("eve/work.zip", many), ("ada/tiny.ipynb", GOOD)]
    )
    assert found == {"ada": GOOD}
    assert reasons(report) == {"all.zip/eve/work.zip": "it has more than 2000 files"}


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packers_without_a_limit_are_not_used(course, tmp_path, method):
    info = made.entry("eve/tiny.ipynb")
    info.compress_type = method
    report, found = collected(course, tmp_path, [("ada/tiny.ipynb", GOOD), (info, GOOD)])
    assert found == {"ada": GOOD}
    assert reasons(report) == {
        "all.zip/eve/tiny.ipynb": f"it is packed by method {method}, which is not read"
    }


def test_no_more_notebooks_than_grading_reads(course, tmp_path):
    files = [("ben/tiny.ipynb", GOOD)]
    files += [(f"ada/{n}.ipynb", GOOD + b" " * n) for n in range(12)]
    report = collect(course, [made.write_zip(tmp_path / "all.zip", files)], "tiny")
    assert len(list((course.submission("ada", "tiny")).iterdir())) == 10
    assert list(reasons(report).values()) == ["more than 10 notebooks"] * 2


# Damage


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.99])
def test_a_damaged_archive_of_a_student_stops_nobody(course, tmp_path, cut):
    data = made.zipped([("tiny.ipynb", GOOD)])
    files = [("ada/tiny.ipynb", GOOD), ("eve/work.zip", data[: int(cut * len(data))])]
    report, found = collected(course, tmp_path, files)
    assert found == {"ada": GOOD}
    assert "it is no sound zip archive" in reasons(report)["all.zip/eve/work.zip"]


def test_damage_inside_is_found_by_the_checksum(course, tmp_path):
    data = bytearray(made.zipped([("tiny.ipynb", GOOD)]))
    data[60] ^= 0xFF
    report, found = collected(
        course, tmp_path, [("eve/work.zip", bytes(data)), ("ada/tiny.ipynb", GOOD)]
    )
    assert found == {"ada": GOOD}
    assert "it is damaged" in reasons(report)["all.zip/eve/work.zip/tiny.ipynb"]


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK\x03\x04 cut off"])
def test_an_export_that_is_no_archive_is_named(course, tmp_path, content):
    path = tmp_path / "all.zip"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"export must be a folder or a zip archive, got .*all"
    ):
        collect(course, [path], "tiny")
    assert not (course.grading / "submitted").exists()


def test_two_files_of_one_name_are_both_kept(course, tmp_path):
    files = [("ada/a/tiny.ipynb", b"1"), ("ada/b/Tiny.ipynb", b"2"), ("ada/c/tiny.ipynb", b"1")]
    files += [("ben/tiny.ipynb", GOOD)]
    collect(course, [made.write_zip(tmp_path / "all.zip", files)], "tiny")
    folder = course.submission("ada", "tiny")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        "tiny.ipynb": b"1",
        "Tiny (2).ipynb": b"2",
    }


def test_names_that_some_systems_refuse_are_changed(course, tmp_path):
    files = [
        ("ben/tiny.ipynb", GOOD),
        ("ada/con.ipynb", b"1"),
        ('ada/a:b*c?"<>|.ipynb', b"2"),
        (f"ada/{'x' * 300}.ipynb", b"3"),
        ("ada/new\nline\x00.ipynb", b"4"),
    ]
    collect(course, [made.write_zip(tmp_path / "all.zip", files)], "tiny")
    names = sorted(path.name for path in course.submission("ada", "tiny").iterdir())
    assert names[:2] == ["_con.ipynb", "a_b_c_____.ipynb"]
    assert "x" * 114 + ".ipynb" in names
    assert all(len(name) <= 120 and name.isprintable() for name in names)


# Whatever comes

PIECES = [
    "..",
    "/",
    "_",
    "LATE",
    "12",
    "345",
    "ada",
    "anon",
    "_assignsubmission_file",
    "é",
    "_attempt_2026-01-31-13-45-00",
    ".txt",
    ".ipynb",
    ".zip",
    "submission_1",
    "\\",
    "C:",
    "tiny",
    "\x1b[2J",
    "\u202e",
    "*",
    "[",
    "submission_metadata.yml",
    "__MACOSX",
    ".",
]
EMPTY = b"PK\x05\x06" + b"\0" * 18
ARCHIVE = made.zipped([("tiny.ipynb", GOOD)])
CONTENTS = st.sampled_from([b"", GOOD, EMPTY, ARCHIVE, b"Name: A (ada)\n"])
NAMES = st.lists(st.sampled_from([*PIECES, " ", "Kim Lee"]), min_size=1, max_size=9)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.dictionaries(NAMES.map("".join), CONTENTS, min_size=1, max_size=6),
    platform=st.sampled_from(["auto", *PLATFORMS]),
    with_roster=st.booleans(),
)
def test_no_export_breaks_a_run_or_leaves_the_course(
    tmp_path_factory, files, platform, with_roster
):
    root = tmp_path_factory.mktemp("any")
    (root / "course").mkdir()
    course = tiny_course.make_course(root / "course")
    roster = made.roster(root / "r.csv", made.people(3)) if with_roster else None
    export = made.write_zip(root / "all.zip", [(n, c) for n, c in files.items() if n])
    before = {path for path in root.rglob("*") if path.is_file()}
    said = ""
    try:
        report = collect(course, [export], "tiny", platform=platform, roster=roster)
    except ValueError as error:
        said = str(error)
    if said:
        assert platform in ("gradescope", "auto")
        assert "submission_metadata.yml" in said
        return
    for path in {path for path in root.rglob("*") if path.is_file()} - before:
        assert course.grading in path.parents
        assert len(path.relative_to(course.grading).parts) <= 4
        assert path.name.isprintable()
    assert sorted(course.students("tiny")) == sorted(report.collected)
    assert all(line.isprintable() for line in report_lines(report))
    again = collect(course, [export], "tiny", platform=platform, roster=roster)
    assert again.unchanged == report.collected
