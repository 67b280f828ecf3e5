"""Reading of damaged notebook files, and the choice among the files of a submission."""

import copy
import io
import json
import random
import zipfile
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_course import as_bytes, cell_of, extra, released, solved

from seqlib.grading.notebook import intake, reading
from seqlib.grading.notebook.intake import take_in
from seqlib.grading.notebook.reading import UnreadableError, read_cells, to_lines


def sources(cells):
    return [cell["source"] for cell in cells]


WHOLE = sources(solved()["cells"])
# Where the JSON of the last solution cell begins.
DATA = as_bytes(solved())


def test_a_sound_file_is_read_without_a_mend():
    read = read_cells(DATA)
    assert sources(read.cells) == WHOLE
    assert read.mends == ()
    assert not read.partial


@pytest.mark.parametrize(
    ("data", "mend"),
    [
        (b"\xef\xbb\xbf" + DATA, "A byte-order mark at the start of the file was removed."),
        (DATA + b"\x00\x00", "Zero bytes were removed from the file."),
        (DATA.decode().encode("utf-16"), "The file was in UTF-16 and was read as such."),
        (
            DATA.replace(b"adds a number", b"adds \xe4 number"),
            "The file was not in UTF-8; it was read as Windows-1252.",
        ),
        (DATA + b"garbage", "The file was damaged after its last cell; all cells were kept."),
    ],
)
def test_mends_that_lose_nothing(data, mend):
    read = read_cells(data)
    assert read.mends == (mend,)
    assert not read.partial
    assert [s.replace("ä", "a") for s in sources(read.cells)] == WHOLE


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "The file is empty."),
        (b"\x00" * 1000, "The file is empty."),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04rest", "ZIP archive"),
        (b"import numpy as np", "not a notebook"),
        (b"[]", "holds no cells"),
        (b'{"cells": 3}', "holds no cells"),
        (b'{"cells": [{"cell_type": "code", "sou', "no complete cell"),
        (b"[" * 600_000, "too many parts"),
        (b"[" * 100_000, "not a notebook"),
    ],
)
def test_files_that_hold_nothing(data, reason):
    with pytest.raises(UnreadableError, match=reason):
        read_cells(data)


def test_a_file_beyond_the_size_limit_is_refused():
    with pytest.raises(UnreadableError, match="at most 20 MB"):
        read_cells(b" " * (reading.MAX_BYTES + 1))


def test_a_truncated_file_keeps_its_complete_cells():
    # Cut within the fourth cell, the first answer.
    data = DATA[: DATA.index(b"return 2 * x")]
    read = read_cells(data)
    assert sources(read.cells) == WHOLE[:3]
    assert read.mends == ("The file breaks off; its 3 complete cells were kept.",)
    assert read.partial


def test_a_damaged_cell_does_not_take_the_following_ones_with_it():
    data = DATA.replace(b'"source": "Double it."', b'"source": "Double \x01it.', 1)
    read = read_cells(data)
    assert sources(read.cells) == WHOLE[:2] + WHOLE[3:]
    assert read.partial


def test_merge_marks_keep_the_first_version():
    theirs = b'    "source": "def add(x, y): return 0"'
    line = next(row for row in DATA.splitlines() if b"def add" in row)
    conflict = b"\n".join(
        [b"<<<<<<< HEAD", line, b"||||||| base", b"", b"=======", theirs, b">>>>>>> origin"]
    )
    read = read_cells(DATA.replace(line, conflict))
    assert sources(read.cells) == WHOLE
    assert read.mends == (
        "Marks of an unfinished merge were removed; the first version was kept.",
    )


def test_a_notebook_of_format_3_is_read():
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Title"], "metadata": {}},
        {
            "cell_type": "code",
            "input": ["x = 1\n", "y = 2"],
            "outputs": [],
            "language": "python",
        },
        {"cell_type": "html", "source": "<b>bold</b>"},
    ]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode()
    read = read_cells(data)
    assert sources(read.cells) == ["## Title", "x = 1\ny = 2", "<b>bold</b>"]
    assert read.mends == ("The file was in notebook format 3 and was read as such.",)
    assert [cell["cell_type"] for cell in read.cells] == ["markdown", "code", "raw"]


def test_a_graded_notebook_has_a_line_for_each_cell():
    cells = [{"id": "a", "source": "x = 'α\n\u2028'"}, {"source": "", "id": "b"}]
    notebook = {"cells": cells, "nbformat": 4, "metadata": {"kernelspec": {}}}
    text = to_lines(notebook)
    assert json.loads(text) == notebook
    assert [json.loads(row.rstrip(",")) for row in text.split("\n")[1:3]] == cells
    assert text == to_lines(dict(reversed(notebook.items())))
    assert json.loads(to_lines({"cells": [], "nbformat": 4})) == {"cells": [], "nbformat": 4}


def test_cells_beyond_the_limit_are_left_out():
    many = {"cells": [extra("x = 1")] * (reading.MAX_CELLS + 3)}
    read = read_cells(as_bytes(many))
    assert len(read.cells) == reading.MAX_CELLS
    assert read.mends == ("Only the first 1000 of 1003 cells were read.",)
    assert read.partial


@pytest.mark.parametrize(
    "broken",
    [
        {"source": 5},
        {"source": [1, None, "x"]},
        {"metadata": "none"},
        {"id": "not an id"},
        {"id": 7},
        {"cell_type": ["code"]},
        {"attachments": {"a.svg": {"image/svg+xml": "<svg/>"}}},
        {"attachments": {"a.png": {"image/png": "<script>"}}},
        {"attachments": {'"><script>.png': {"image/png": "aGk="}}},
        {"source": "\ud800"},
    ],
)
def test_cells_with_wrong_fields_come_out_sound(broken):
    cell = read_cells(as_bytes({"cells": [extra("y", id="mine") | broken]})).cells[0]
    assert isinstance(cell["source"], str)
    cell["source"].encode()
    assert isinstance(cell["metadata"], dict)
    assert cell["id"] in (None, "mine")
    assert cell["cell_type"] in ("code", "markdown", "raw")
    assert cell["attachments"] == {}


def test_images_of_an_answer_are_kept():
    data = {"plot.png": {"image/png": "aGk="}}
    read = read_cells(as_bytes({"cells": [extra("see", "markdown", attachments=data)]}))
    assert read.cells[0]["attachments"] == data


# The choice among files


@pytest.fixture
def folder(tmp_path):
    def fill(**files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else as_bytes(content))
        return tmp_path

    return fill


def test_the_expected_file_is_taken_as_it_is(folder):
    taken = take_in(folder(tiny_dot_ipynb=solved()), "tiny", released())
    assert taken.file == "tiny.ipynb"
    assert taken.mends == ()
    assert taken.notebook == solved()


@pytest.mark.parametrize("name", ["hw (1).ipynb", "tiny-Copy1.ipynb", "a/b/tiny.ipynb.txt"])
def test_a_renamed_file_is_found_by_its_cells(folder, name, tmp_path):
    folder(**{"other_dot_ipynb": {"cells": [extra("x")]}})
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(DATA)
    taken = take_in(tmp_path, "tiny", released())
    assert taken.file == name
    assert taken.mends == (f'There was no usable "tiny.ipynb"; "{name}" was graded.',)
    assert taken.notebook == solved()


def test_the_copy_with_work_is_preferred_to_the_untouched_file(folder):
    taken = take_in(
        folder(tiny_dot_ipynb=released(), tiny2_dot_ipynb=solved()), "tiny", released()
    )
    assert taken.file == "tiny2.ipynb"


def test_the_expected_file_with_some_work_is_preferred_to_a_copy_with_more(folder):
    part = solved(add=cell_of(released(), "add")["source"])
    taken = take_in(folder(tiny_dot_ipynb=part, a_dot_ipynb=solved()), "tiny", released())
    assert taken.file == "tiny.ipynb"
    assert taken.mends == ('Of several notebooks "tiny.ipynb" was graded.',)


def test_a_notebook_within_archives_is_found(folder, tmp_path):
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("work/tiny.ipynb", DATA)
        archive.writestr("__MACOSX/tiny.ipynb", b"junk")
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
    taken = take_in(folder(all_dot_zip=outer.getvalue()), "tiny", released())
    assert taken.file == "all.zip/inner.zip/work/tiny.ipynb"
    assert taken.notebook == solved()


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(folder):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny.ipynb", b" " * (reading.MAX_BYTES + 10))
    taken = take_in(folder(all_dot_zip=bomb.getvalue()), "tiny", released())
    assert "at most 20 MB" in taken.unreadable


def test_files_that_shadow_modules_are_named_and_ignored(folder):
    taken = take_in(
        folder(tiny_dot_ipynb=solved(), numpy_dot_py=b"raise SystemExit"), "tiny", released()
    )
    assert taken.mends == ('Files that Python could import or run play no part: "numpy.py".',)


def test_a_link_is_not_followed(folder, tmp_path):
    secret = tmp_path / "elsewhere.ipynb"
    secret.write_bytes(DATA)
    submission = tmp_path / "submission"
    submission.mkdir()
    (submission / "tiny.ipynb").symlink_to(secret)
    (submission / "folder").symlink_to(tmp_path)
    taken = take_in(submission, "tiny", released())
    assert taken.unreadable == 'There is no notebook; "tiny.ipynb" was expected.'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "The file is empty."),
        (b"<html></html>", "web page"),
        (as_bytes({"cells": [extra("x = 1")]}), "no cell of this assignment"),
    ],
)
def test_what_cannot_be_graded_is_blank_with_a_reason(folder, content, reason):
    taken = take_in(folder(tiny_dot_ipynb=content), "tiny", released())
    assert reason in taken.unreadable
    assert sources(taken.notebook["cells"]) == sources(released()["cells"])[1:]


def test_only_a_few_notebooks_are_looked_at(tmp_path):
    for i in range(30):
        (tmp_path / f"{i:02}.ipynb").write_bytes(as_bytes(released()))
    files, _ = intake.find_files(tmp_path)
    assert len(files) == intake.MAX_NOTEBOOKS


def test_the_submission_is_not_changed(folder):
    path = folder(tiny_dot_ipynb=DATA[:2000], x_dot_ipynb=DATA)
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.iterdir()}
    take_in(path, "tiny", released())
    assert {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.iterdir()} == before


@st.composite
def mutated_files(draw):
    data = bytearray(DATA)
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = start + draw(st.integers(0, 400))
        piece = draw(st.sampled_from([b"", b"\x00", b'"', b"\\", b"{", b"]", b"\xff", b"\n<<"]))
        match draw(st.sampled_from(["cut", "replace", "repeat", "end"])):
            case "cut":
                del data[start:end]
            case "replace":
                data[start:end] = piece
            case "repeat":
                data[start:start] = data[start:end]
            case "end":
                del data[start:]
    return bytes(data)


@given(mutated_files())
def test_no_mutated_file_ends_in_an_error(data):
    try:
        read = read_cells(data)
    except UnreadableError as error:
        assert str(error).endswith(".")  # noqa: PT017
        return
    for cell in read.cells:
        assert isinstance(cell["source"], str)


def mutate(choice):
    """Return the file of a notebook that something has happened to."""
    notebook = solved()
    for _ in range(choice.randint(0, 3)):
        cells = notebook["cells"]
        cell = choice.choice(cells)
        strange = [None, 7, -1.5, "", "x" * 1000, [], {}, ["a", 1], {"a": {}}, True, "\ud800"]
        match choice.choice(["field", "metadata", "grading", "cell", "top", "delete", "copy"]):
            case "field":
                cell[choice.choice([*cell, "attachments", "extra"])] = choice.choice(strange)
            case "metadata":
                cell["metadata"] = {
                    choice.choice(["tags", "nbgrader", "x"]): choice.choice(strange)
                }
            case "grading":
                data = {
                    "nbgrader": {choice.choice(["grade_id", "points"]): choice.choice(strange)}
                }
                cell["metadata"] = data
            case "cell":
                cells[choice.randrange(len(cells))] = choice.choice(strange)
                notebook["cells"] = [c for c in cells if isinstance(c, dict)] or [extra("x")]
            case "top":
                notebook[choice.choice(["metadata", "nbformat", "x"])] = choice.choice(strange)
            case "delete":
                cells.remove(cell)
                cells or cells.append(extra("x"))
            case "copy":
                cells.insert(choice.randrange(len(cells) + 1), copy.deepcopy(cell))
        for field in ("cell_type", "id", "metadata", "source"):
            if choice.random() < 0.05:
                choice.choice(notebook["cells"]).pop(field, None)
        notebook["cells"] = [c | {"metadata": c.get("metadata")} for c in notebook["cells"]]
    data = bytearray(json.dumps(notebook, indent=1).encode())
    for _ in range(choice.choice([0, 0, 0, 1, 2, 5])):
        i = choice.randrange(len(data) + 1)
        j = min(len(data), i + choice.choice([1, 2, 10, 300, len(data)]))
        data[i:j] = choice.choice(
            [b"", b"\x00", b'"', b"\\", b"}", b"[", b"\xff\xfe", bytes(data[i:j]) * 2]
        )
    return bytes(data)


@pytest.mark.slow
def test_two_thousand_mutated_notebooks_each_come_to_something(tmp_path):
    choice, release = random.Random(20260405), released()
    keys = [cell["id"] for cell in release["cells"][1:]]
    path, states = tmp_path / "tiny.ipynb", Counter()
    for _ in range(2000):
        path.write_bytes(mutate(choice))
        taken = take_in(tmp_path, "tiny", release)
        states[bool(taken.unreadable), taken.partial, bool(taken.mends)] += 1
        graded = [c["id"] for c in taken.notebook["cells"] if "nbgrader" in c["metadata"]]
        assert graded == keys
        notebook_as_text = reading.to_json(taken.notebook)
        assert notebook_as_text.encode()
    # All ends are reached: sound, mended, in part, unreadable.
    assert len(states) >= 4, states
