"""Attacks with files: a folder may hold anything, and ends in one of the states."""

import copy
import io
import json
import os
import random
import struct
import tempfile
import time
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_course
from tiny_course import as_bytes, cell_of, extra, released, solved

from seqlib.grading.gradebook.writer import Writer
from seqlib.grading.notebook import intake, present
from seqlib.grading.notebook.intake import find_files, take_in
from seqlib.grading.notebook.reading import read_cells
from seqlib.grading.notebook.repair import repair

RELEASE = released()
SOLVED = as_bytes(solved())


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a submission, in which a link or a wrong mode may lie."""
    (tmp_path / "submitted").mkdir()
    return tmp_path / "submitted"


def taken(folder):
    return take_in(folder, "tiny", RELEASE)


def is_solved(found):
    return not found.unreadable and all(
        cell_of(found.notebook, key)["source"] == tiny_course.RIGHT[key]
        for key in ("double", "add")
    )


# Which files are looked at


def test_no_number_of_notebooks_displaces_the_expected_one(folder):
    for number in range(15):
        (folder / f"{number}.ipynb").write_bytes(b"{}")
    (folder / "tiny.ipynb").write_bytes(SOLVED)
    found = taken(folder)
    assert is_solved(found)
    assert found.file == "tiny.ipynb"


def test_no_number_of_files_displaces_the_expected_one(folder):
    for number in range(intake.MAX_FILES + 20):
        (folder / f"data{number:04}.csv").touch()
    (folder / "tiny.ipynb").write_bytes(SOLVED)
    assert is_solved(taken(folder))


def test_folders_and_links_named_like_notebooks(folder, tmp_path):
    (tmp_path / "other.ipynb").write_bytes(SOLVED)
    (folder / "tiny.ipynb").mkdir()
    (folder / "a.ipynb").symlink_to(tmp_path / "other.ipynb")
    (folder / "b").symlink_to(tmp_path)
    os.mkfifo(folder / "c.ipynb")
    assert taken(folder).unreadable == 'There is no notebook; "tiny.ipynb" was expected.'
    (folder / "tiny.ipynb" / "tiny.ipynb").write_bytes(SOLVED)
    assert is_solved(taken(folder))


def test_a_link_in_place_of_the_expected_file_is_not_followed(folder, tmp_path):
    (tmp_path / "of-a-friend.ipynb").write_bytes(SOLVED)
    (folder / "tiny.ipynb").symlink_to(tmp_path / "of-a-friend.ipynb")
    assert taken(folder).unreadable
    (folder / "tiny.ipynb").unlink()
    os.link(
        tmp_path / "of-a-friend.ipynb", folder / "tiny.ipynb"
    )  # that is a file of one's own
    assert is_solved(taken(folder))


@pytest.fixture
def closed():
    """Return a folder that a user without rights owns, and act as this user if we are root."""
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        folder = Path(root) / "submitted"
        folder.mkdir()

        def close(path):
            path.chmod(0o000)
            if os.geteuid() == 0:
                for part in [folder, *folder.rglob("*")]:
                    os.chown(part, 65534, 65534)
                os.seteuid(65534)

        yield folder, close
        if os.getuid() == 0:
            os.seteuid(0)
        for path in folder.rglob("*"):
            path.chmod(0o700)


def test_a_folder_that_may_not_be_read_is_no_obstacle(closed):
    folder, close = closed
    (folder / "tiny.ipynb").write_bytes(SOLVED)
    (folder / "inner").mkdir()
    close(folder / "inner")
    assert is_solved(taken(folder))


@pytest.mark.parametrize("where", ["tiny.ipynb", "inner"])
def test_work_that_may_not_be_read_is_no_zero(closed, where):
    """The instructor is told; it is not the student's doing, so it is not graded."""
    folder, close = closed
    path = folder / "tiny.ipynb" if where == "tiny.ipynb" else folder / "inner" / "tiny.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(SOLVED)
    close(folder / where)
    with pytest.raises(PermissionError, match=where):
        taken(folder)


NAMES = [
    "tiny (1).ipynb",
    "TINY.IPYNB",
    "..ipynb",
    "a\nb.ipynb",
    "<script>alert(1)<|script>.ipynb",
    "![x](javascript:alert(1)).ipynb",
    "tıny\u202e\u200b.ipynb",
    "x" * 240 + ".ipynb",
    "tiny.ipynb.txt",
    b"\xff\xfe.ipynb".decode("utf-8", "surrogateescape"),
    "{}.ipynb",
    "%s%n.ipynb",
    "-rf.ipynb",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_name_is_taken_and_shown_harmlessly(folder, name):
    (folder / name).write_bytes(SOLVED)
    found = taken(folder)
    assert is_solved(found)
    json.dumps(found.file).encode()
    shown = present.note(found.mends or [found.unreadable])["source"]
    assert "<script" not in shown
    assert "javascript:" not in shown
    assert "\u202e" not in shown


# Archives


def zipped(files, **options):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


ARCHIVES = {
    "a folder within": {"work/tiny.ipynb": SOLVED},
    "an archive within": {"inner.zip": zipped({"tiny.ipynb": SOLVED})},
    "from the root": {"/etc/tiny.ipynb": SOLVED},
    "a link of a Mac beside it": {"__MACOSX/._tiny.ipynb": b"\0", "tiny.ipynb": SOLVED},
}


@pytest.mark.parametrize("files", ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_is_read_and_not_unpacked(folder, files):
    (folder / "tiny.zip").write_bytes(zipped(files))
    before = sorted(folder.parent.rglob("*"))
    assert is_solved(taken(folder))
    assert sorted(folder.parent.rglob("*")) == before


def test_an_archive_with_the_name_of_the_notebook_is_told(folder):
    (folder / "tiny.ipynb").write_bytes(zipped({"tiny.ipynb": SOLVED}))
    assert taken(folder).unreadable == "The file is a ZIP archive, not a notebook."


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_no_damaged_archive_ends_in_an_error(folder, method):
    """Each decompressor has errors of its own; those of LZMA were not expected."""
    data = zipped(
        {"tiny.ipynb": SOLVED, "b.zip": zipped({"c.ipynb": SOLVED})}, compression=method
    )
    draw = random.Random(method)
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 8)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        if draw.random() < 0.2:
            del damaged[draw.randrange(len(damaged)) :]
        (folder / "tiny.zip").write_bytes(damaged)
        taken(folder)


def test_bombs(folder):
    zeros = b"\0" * (30 << 20)
    files = {
        f"{n}.zip": zipped({f"{m}.ipynb": zeros for m in range(2)}, compression=8) for n in "ab"
    }
    (folder / "tiny.zip").write_bytes(zipped(files, compression=8))
    tracemalloc.start()
    assert taken(folder).unreadable.startswith("The file has ")
    assert tracemalloc.get_traced_memory()[1] < 6 * intake.MAX_BYTES
    tracemalloc.stop()


def test_an_archive_of_very_many_files_is_not_listed(folder):
    entry = zipped({"x": b""})
    at = entry.index(b"PK\x01\x02")
    head, end = entry[at : entry.index(b"PK\x05\x06")], entry[entry.index(b"PK\x05\x06") :]
    count = 100_000
    size = struct.pack("<HHHHII", 0, 0, count % 65536, count % 65536, len(head) * count, at)
    (folder / "tiny.zip").write_bytes(entry[:at] + head * count + end[:4] + size + b"\0\0")
    tracemalloc.start()
    assert taken(folder).unreadable
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


# Notebooks


def with_cell(**fields):
    notebook = solved()
    notebook["cells"].insert(1, extra("", id="mine") | fields)
    return notebook


CELLS = {
    "a heading of level 1.0": {"cell_type": "heading", "level": 1.0},
    "a heading of level true": {"cell_type": "heading", "level": True},
    "a heading of level 10**30": {"cell_type": "heading", "level": 10**30},
    "a heading of level []": {"cell_type": "heading", "level": []},
    "an unknown type": {"cell_type": "<script>"},
    "a type that is a list": {"cell_type": ["code"]},
    "source of lists in lists": {"source": [["x"], {"a": 1}, None, "1"]},
    "half of a surrogate pair": {"source": "'\ud800'"},
    "a zero character": {"source": "print('\x00')"},
    "metadata that is a list": {"metadata": [1]},
    "grading data that is a text": {"metadata": {"nbgrader": "all points"}},
    "a grade id that is a list": {"metadata": {"nbgrader": {"grade_id": ["double"]}}},
    "an id that is a dict": {"id": {}},
    "an id with an invisible character": {"id": "test-double\u200b"},
    "an id of another case": {"id": "TEST-DOUBLE"},
    "an id in full-width letters": {"id": "ｔest-double"},
    "tags that are numbers": {"metadata": {"tags": [1, None, {}]}},
    "a tag of a surrogate": {"metadata": {"tags": ["\ud800{}"]}},
    "attachments that are a list": {"cell_type": "markdown", "attachments": [1]},
    "an attachment that is a script": {
        "cell_type": "markdown",
        "attachments": {"a.svg": {"image/svg+xml": "<svg onload=alert(1)>"}},
    },
}


@pytest.mark.parametrize("fields", CELLS.values(), ids=CELLS)
def test_a_strange_cell_costs_the_others_nothing(folder, fields):
    (folder / "tiny.ipynb").write_bytes(json.dumps(with_cell(**fields)).encode())
    found = taken(folder)
    assert is_solved(found)
    ids = [cell["id"] for cell in found.notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert "svg" not in json.dumps(found.notebook)


def grading(key, **change):
    data = dict(cell_of(solved(), key)["metadata"]["nbgrader"])
    return {"nbgrader": data | change}


SMUGGLED = {
    "a test of another task": ("test-add", {"source": 'check("tiny.double", double)'}),
    "a test without a check": ("test-add", {"source": "40.0"}),
    "a test that is an answer": ("test-add", {"metadata": grading("test-add", solution=True)}),
    "a test of more points": ("test-add", {"metadata": grading("test-add", points=4000)}),
    "a test of no grade": ("test-add", {"metadata": grading("test-add", grade=False)}),
    "a test to be skipped": (
        "test-add",
        {"metadata": grading("test-add") | {"tags": ["skip-execution", "raises-exception"]}},
    ),
    "a test with the id of another": ("test-add", {"metadata": grading("test-double")}),
    "an old schema": ("test-add", {"metadata": grading("test-add", schema_version=0)}),
    "an answer that is a test": ("add", {"metadata": grading("add", grade=True, points=1000)}),
    "an answer with the id of a test": ("add", {"metadata": grading("test-add")}),
    "an answer with the id of the set-up": ("add", {"metadata": grading("setup")}),
    "another set-up": ("setup", {"source": "def check(task, function):\n    return 1e9"}),
    "an answer in words": ("add", {"cell_type": "markdown"}),
    "a test in words": ("test-add", {"cell_type": "markdown"}),
    "a test in raw": ("test-add", {"cell_type": "raw"}),
    "outputs of its own": (
        "test-add",
        {"outputs": [{"output_type": "execute_result", "data": {"text/plain": "40.0"}}]},
    ),
}


@pytest.mark.parametrize(("key", "fields"), SMUGGLED.values(), ids=SMUGGLED)
@pytest.mark.parametrize("keep_id", [True, False])
def test_nothing_is_smuggled_into_what_is_graded(key, fields, keep_id):
    """Every graded cell is the released one, whatever a submitted cell says of itself."""
    notebook = solved()
    cell = cell_of(notebook, key)
    cell |= copy.deepcopy(fields)
    if not keep_id:
        cell["id"] = "renamed"
    data = json.dumps(notebook).encode()
    built = repair(read_cells(data).cells, RELEASE).notebook
    for known in RELEASE["cells"]:
        if "nbgrader" not in known["metadata"]:
            continue
        found = [c for c in built["cells"] if c["metadata"].get("nbgrader") is not None]
        same = [c for c in found if c["metadata"] == known["metadata"]]
        assert len(same) == 1
        assert same[0]["cell_type"] == known["cell_type"]
        if not known["metadata"]["nbgrader"]["solution"]:
            assert same[0]["source"] == known["source"]
        assert same[0].get("outputs", []) == []
    graded = [c["metadata"]["nbgrader"]["grade_id"] for c in built["cells"] if c["metadata"]]
    assert graded == [c["id"] for c in RELEASE["cells"] if c["metadata"]]


def test_large_files_take_bounded_time_and_memory(folder):
    """A file within the limit, with a thousand cells of 19 kB, is read and mended."""
    notebook = solved()
    notebook["cells"] += [extra("x = 1  # 123456789\n" * 1000, id=f"c{n}") for n in range(980)]
    (folder / "tiny.ipynb").write_bytes(as_bytes(notebook))
    began = time.process_time()
    assert is_solved(taken(folder))
    assert time.process_time() - began < 20


# What a browser would do with it

TEX = [
    '$\\mmlToken{mi}[href="java\tscript:alert(1)"]{x}$',
    '$\\mmlToken{mi}[href="javascript:alert(1)"]{x}$',
    "$\\data{x}{y}$",
    "$\\href{java\tscript:alert(1)}{x}$",
    "$\\\\\\href{java\tscript:alert(1)}{x}$",
    "$\\let\\x\\href \\x{java\tscript:alert(1)}{x}$",
]


@pytest.mark.parametrize("source", TEX)
def test_no_formula_makes_a_link(source):
    """MathJax makes links of these; browsers drop tabs within the name of a scheme."""
    shown = present.markdown(source)
    for command in ("\\mmlToken", "\\href", "\\data"):
        assert command not in shown


def test_two_files_of_one_content_in_any_order(folder):
    for name in ("b.ipynb", "a.ipynb"):
        (folder / name).write_bytes(SOLVED)
    assert taken(folder).file == taken(folder).file == "a.ipynb"
    assert [name for name, _ in find_files(folder)[0]] == ["a.ipynb", "b.ipynb"]


def test_a_time_with_holes_is_not_copied(tmp_path, monkeypatch):
    """nbgrader's file with the time goes along with the graded notebook; this one has 1 TB."""
    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    tiny_course.submit(course, "s001", solved())
    path = course.submission("s001", "tiny") / "timestamp.txt"
    path.write_text("2026-03-01 12:00:00 UTC".ljust(200))
    assert Writer.timestamp(SimpleNamespace(course=course, name="tiny"), "s001") is not None
    os.truncate(path, 1 << 40)
    assert Writer.timestamp(SimpleNamespace(course=course, name="tiny"), "s001") is None
