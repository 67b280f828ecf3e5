"""The notebooks that are offered in the browser: the release copies, and the chapters.

The release copies lie at the root, since one in a folder downloads under a name that nbgrader
does not match; the chapters lie in the folder ``book``.
"""

import json
import shutil

import nbformat
from course_book.plain import plain
from myst_nb.core.read import read_myst_markdown_notebook

from course_site.offline import commented, kept_share
from seqlib.exercises import ASSIGNMENTS, PRACTICE

# A page is offered if at least this part of its code runs without PyTorch.
ENOUGH = 0.5
# Pages with cells that are not offered: ``claims`` weighs times against each other, which a
# browser measures too coarsely, and the others are no chapters.
NOT_OFFERED = ("claims", "kill_matrix", "students")
PYTORCH_ASSIGNMENTS = ("decoder",)
GREETING = """\
This notebook is the chapter *{title}*, and it runs in your browser: nothing is installed and \
nothing is sent anywhere. Choose *Run* and *Run All Cells*; the first run loads Python and \
takes a while.

What you change is kept in this browser alone. Download the notebook (*File*, *Download*) to \
keep it for sure.{torch}"""
TORCH = """

PyTorch does not run in a browser. The lines that need it are commented out here; the page of \
the book shows what they print."""


def assignments(root):
    """Return the release notebooks that run in a browser, name to path."""
    names = [n for n in (*PRACTICE, *ASSIGNMENTS) if n not in PYTORCH_ASSIGNMENTS]
    paths = {name: root / "assignments" / name / f"{name}.ipynb" for name in names}
    return {name: path for name, path in paths.items() if path.is_file()}


def pages(root):
    """Return the pages with cells, name to notebook, without outputs."""
    found = {}
    for path in sorted((root / "book").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "```{code-cell}" in text:
            found[path.stem] = read_myst_markdown_notebook(text)
    return found


def code(notebook):
    """Return the sources of the code cells."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def share(notebook):
    """Return which part of a page's code runs in a browser."""
    return kept_share(code(notebook))


def for_the_browser(notebook):
    """Return a chapter as a notebook of its own, without what needs PyTorch."""
    lost, cells, any_left_out = set(), [], False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            source, left_out = commented(cell.source, lost)
            any_left_out |= left_out
            cells.append(nbformat.v4.new_code_cell(source))
        else:
            text = plain(cell.source)
            if text:
                cells.append(nbformat.v4.new_markdown_cell(text))
    title = cells[0].source.partition("\n")[0].lstrip("# ")
    greeting = GREETING.format(title=title, torch=TORCH if any_left_out else "")
    cells.insert(0, nbformat.v4.new_markdown_cell(greeting))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same at every build
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.validate(made)
    return made


def write(root, target):
    """Write all offered notebooks into a folder; return the names of both kinds.

    Returns
    -------
    assignments, chapters : list of str
    """
    target.mkdir(parents=True)
    offered = assignments(root)
    for name, path in offered.items():
        shutil.copyfile(path, target / f"{name}.ipynb")
    (target / "book").mkdir()
    chapters = []
    for name, notebook in pages(root).items():
        if name not in NOT_OFFERED and share(notebook) >= ENOUGH:
            made = json.dumps(for_the_browser(notebook), indent=1, ensure_ascii=False)
            (target / "book" / f"{name}.ipynb").write_text(f"{made}\n", encoding="utf-8")
            chapters.append(name)
    return list(offered), chapters
