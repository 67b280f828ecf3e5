"""The hash that names the execution cache, and the outputs that are kept in it."""

import pytest
from course_book import cache
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


@pytest.fixture
def small_root(tmp_path):
    for name, content in [
        ("seqlib/np/a.py", "A = 1\n"),
        ("seqlib/experiments/results/r.json", "{}\n"),
        ("book/data/topics.toml", "\n"),
        ("requirements.txt", "numpy==1\n"),
        ("constraints.txt", "numpy==1\n"),
        ("pyproject.toml", "\n"),
        ("book/page.md", "# Page\n"),
    ]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "seqlib/np/a.py",
        "seqlib/experiments/results/r.json",
        "book/data/topics.toml",
        "requirements.txt",
        "constraints.txt",
    ],
)
def test_hash_changes_with_library_data_and_requirements(small_root, name):
    before = cache.state_hash(small_root)
    (small_root / name).write_text("changed\n", encoding="utf-8")
    assert cache.state_hash(small_root) != before


def test_hash_sees_new_and_renamed_files(small_root):
    before = cache.state_hash(small_root)
    (small_root / "seqlib" / "np" / "a.py").rename(small_root / "seqlib" / "np" / "b.py")
    renamed = cache.state_hash(small_root)
    (small_root / "seqlib" / "np" / "c.py").write_text("", encoding="utf-8")
    assert len({before, renamed, cache.state_hash(small_root)}) == 3


def test_hash_ignores_pages_and_compiled_files(small_root):
    before = cache.state_hash(small_root)
    (small_root / "book" / "page.md").write_text("# Other\n", encoding="utf-8")
    compiled = small_root / "seqlib" / "np" / "__pycache__" / "a.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"x")
    assert cache.state_hash(small_root) == before


def printed(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def test_pieces_of_a_stream_are_joined_as_they_were_printed():
    figure = new_output("display_data", {"text/plain": "figure"})
    cell = new_code_cell(
        outputs=[
            printed("a\nb"),
            printed("\nc\n"),
            figure,
            printed("d\n"),
            printed("e", "stderr"),
        ]
    )
    notebook = new_notebook(cells=[new_markdown_cell("text"), new_code_cell(), cell])
    cache.join_streams(notebook)
    assert [output.get("text") for output in cell.outputs] == ["a\nb\nc\n", None, "d\n", "e"]
    assert [output.get("name") for output in cell.outputs] == [
        "stdout",
        None,
        "stdout",
        "stderr",
    ]
    assert notebook.cells[1].outputs == []
