"""A page's notebook runs on a reader's machine: in an empty folder, after the line shown.

The line installs the course's package and ``torch matplotlib jupyterlab``. Here the package is
unpacked from the wheel that `make wheel` builds, and whatever the line does not bring is
blocked. Some pages run; of all pages the imports are read.
"""

import ast
import json
import shutil
import subprocess
import sys
import zipfile

import pytest
from course_book import data
from course_book.download import as_notebook
from course_site import buttons, contents, fetch

BROUGHT = {"numpy", "seqlib", "torch", "matplotlib", "IPython"}
# Of the packages here, those that the line does not bring and a page might lean on.
BLOCKED = ["click", "course_book", "course_site", "nbgrader", "num2words", "pooch", "regex"]
BLOCKED += ["rich", "scipy", "sphinx", "tiktoken", "tokenizers", "transformers"]
PAGES = contents.pages(data.ROOT)
RUN = f"""
import json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED}:
            raise ImportError(f"{{name}} is not brought by the line that the page shows")

sys.meta_path.insert(0, Blocked())
import seqlib
assert seqlib.__file__.startswith(sys.argv[1]), seqlib.__file__
space = {{}}
for cell in json.load(open(sys.argv[2], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), "cell", "exec"), space)
print("ran to its end")
"""


def test_the_line_that_is_shown_names_what_is_brought():
    assert {"torch", "matplotlib", "jupyterlab"} == set(buttons.EXTRAS.split())


@pytest.mark.parametrize("name", PAGES)
def test_a_page_imports_only_what_the_line_brings(name):
    found = set()
    for source in contents.code(PAGES[name]):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition(".")[0])
    assert found - set(sys.stdlib_module_names) <= BROUGHT


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Build the wheel from a copy of the sources and unpack it; return the folder."""
    folder = tmp_path_factory.mktemp("package")
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(data.ROOT / "seqlib", folder / "sources" / "seqlib", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(data.ROOT / name, folder / "sources")
    name, content = fetch.course_wheel(folder / "sources")
    (folder / name).write_bytes(content)
    with zipfile.ZipFile(folder / name) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conventions", "lstm", "masks", "multihead", "norm", "rnn"])
def test_a_downloaded_page_runs_in_an_empty_folder(name, package, tmp_path):
    (tmp_path / "page.ipynb").write_text(
        as_notebook(json.dumps(PAGES[name], default=dict)), encoding="utf-8"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(package), str(tmp_path / "page.ipynb")],
        cwd=empty,
        env={"PYTHONPATH": str(package), "MPLBACKEND": "agg", "HOME": str(empty)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("ran to its end\n"), done.stderr[-3000:]


@pytest.mark.slow
def test_equal_sources_give_an_equal_wheel(package):
    name, content = fetch.course_wheel(package.parent / "sources")
    assert (package.parent / name).read_bytes() == content
