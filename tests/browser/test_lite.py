"""The notebooks in the browser, from the built site alone: a student's way from link to grade.

Covered here: the notebook program in Chromium with the course's own Python and the official
NumPy, for one assignment by hand and for all of them, and all offered chapters, in the
interpreter. Not covered: Firefox and Safari, which these tests cannot drive; a browser without
the feature that they lack is imitated by switching it off in Chromium.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from course_book import data
from watching import SITE, opened

from seqlib.exercises import ASSIGNMENTS, PRACTICE

LITE = SITE / "lite"
pytestmark = pytest.mark.skipif(
    not LITE.is_dir(), reason="`make site` built no notebooks for the browser, and said why"
)
ASSIGNMENT = "attention"
TASK = "simple_self_attention"
WRONG = """\
def simple_self_attention(X):
    scores = X @ np.swapaxes(X, -1, -2)
    A = np.exp(scores - scores.max(axis=-2, keepdims=True))
    A = A / A.sum(axis=-2, keepdims=True)
    return A @ X, A
"""


def solution(name):
    """Return the instructor's notebook of an assignment."""
    path = data.ROOT / "solutions" / name / f"{name}.ipynb"
    return nbformat.read(path, as_version=4)


def sources(notebook):
    """Return the code cells of a notebook, id to source."""
    return {c["id"]: c["source"] for c in notebook["cells"] if c["cell_type"] == "code"}


# ---------------------------------------------------------------- the notebook program

CHOOSE = """async ([id]) => {
  const notebook = jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = notebook.widgets.findIndex(cell => cell.model.id === id);
  notebook.deselectAll();
  await notebook.scrollToItem(notebook.activeCellIndex);
  await jupyterapp.commands.execute("notebook:enter-edit-mode");
  notebook.activeCell.editor.focus();
}"""
SOURCE = """() =>
  jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.getSource()"""
ACTIVE = "() => jupyterapp.shell.currentWidget.content.activeCell.model.id"
RUN = """async ([id]) => {
  const notebook = jupyterapp.shell.currentWidget.content;
  await jupyterapp.commands.execute("notebook:run-cell");
  const cell = notebook.widgets.find(cell => cell.model.id === id);
  return cell.model.outputs.toJSON();
}"""
READY = """() => window.jupyterapp
  && jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === "idle"
"""


class Notebook:
    """A notebook in JupyterLite, used through its editor."""

    def __init__(self, page):
        self.page = page
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        assert page.locator(".jp-Dialog").count() == 0
        page.wait_for_function(READY)

    def write(self, cell, source):
        """Replace what stands in a cell, by the keyboard; return what stands there then."""
        self.page.evaluate(CHOOSE, [cell])
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source)
        return self.page.evaluate(SOURCE)

    def run(self, cell):
        """Run a cell; return the text that it prints, and its result or error."""
        self.page.evaluate(CHOOSE, [cell])
        outputs = self.page.evaluate(RUN, [cell])
        printed = "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")
        errors = [o for o in outputs if o["output_type"] == "error"]
        results = [o["data"]["text/plain"] for o in outputs if "data" in o]
        return printed, "".join(results) or (errors[0]["ename"] if errors else "")


def at_home(cells):
    """Run cells in turn in this machine's Python; return what each prints."""
    code = f"""
import contextlib, io, json
printed, space = [], {{}}
for cell in json.loads({json.dumps(cells)!r}):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(cell, "cell", "exec"), space)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def student(chromium, address, tmp_path_factory):
    """Go a student's way once: link, wrong and right answer, download."""
    folder = tmp_path_factory.mktemp("student")
    right = sources(solution(ASSIGNMENT))
    marks = {c.id: c.metadata.get("nbgrader", {}) for c in solution(ASSIGNMENT).cells}
    tasks = {name for name, mark in marks.items() if mark.get("solution")}
    found = {"folder": folder}
    with opened(chromium, address, accept_downloads=True) as page:
        page.goto(f"{address}book/students.html")
        page.locator(f'td a[href$="?path={ASSIGNMENT}.ipynb"]').click()
        notebook = Notebook(page)
        test = f"test_{TASK}"
        found["first"] = notebook.run("setup")
        found["locked"] = notebook.write(test, "check = None"), right[test]
        found["untouched"] = notebook.run(TASK), notebook.run(test)
        notebook.write(TASK, WRONG)
        notebook.run(TASK)
        found["wrong"] = notebook.run(test)
        found["all"] = []
        for cell, source in right.items():
            if cell in tasks:
                notebook.write(cell, source)
            found["all"].append(notebook.run(cell))
        with page.expect_download() as download:
            page.evaluate("() => jupyterapp.commands.execute('docmanager:download')")
        found["name"] = download.value.suggested_filename
        download.value.save_as(folder / found["name"])
        found["errors"], found["foreign"] = page.watch.errors, page.watch.foreign
    setup = right["setup"]
    found["at home, wrong"] = at_home([setup, WRONG, right[test]])[-1]
    found["at home, all"] = at_home(list(right.values()))
    return found


def test_the_first_cell_runs_with_the_library_of_the_site(student):
    printed, result = student["first"]
    assert "Error" not in printed + result


def test_a_test_cell_cannot_be_changed(student):
    shown, released = student["locked"]
    assert shown == released


def test_an_empty_answer_gets_nothing(student):
    (_, defined), (printed, points) = student["untouched"]
    assert defined == ""
    assert f"{ASSIGNMENT}.{TASK}: 0 of" in printed
    assert points == "0.0"


def test_a_wrong_answer_is_diagnosed_as_at_home(student):
    printed, _ = student["wrong"]
    assert "Likely mistake" in printed
    assert printed == student["at home, wrong"]


def test_right_answers_get_all_points_as_at_home(student):
    printed = [text for text, _ in student["all"]]
    assert printed == student["at home, all"]
    assert f"{ASSIGNMENT} so far: 90 of 100 points" in "".join(printed)


def test_no_other_host_was_asked(student):
    assert student["foreign"] == []
    assert student["errors"] == []


def test_the_download_has_every_cell_and_key_of_the_release(student):
    assert student["name"] == f"{ASSIGNMENT}.ipynb"
    path = data.ROOT / "assignments" / ASSIGNMENT / student["name"]
    released = nbformat.read(path, as_version=4).cells
    sent = nbformat.read(student["folder"] / student["name"], as_version=4).cells
    assert [c["id"] for c in sent] == [c["id"] for c in released]
    for mine, theirs in zip(sent, released, strict=True):
        assert mine.metadata.get("nbgrader") == theirs.metadata.get("nbgrader")
        if theirs.metadata.get("nbgrader", {}).get("locked"):
            assert mine.source == theirs.source


def test_plain_nbgrader_accepts_the_download_and_gives_all_points(student, tmp_path):
    """With its own commands and settings, none of the course's."""
    source = tmp_path / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    nbformat.write(solution(ASSIGNMENT), source / f"{ASSIGNMENT}.ipynb")
    sent = tmp_path / "submitted" / "ada" / ASSIGNMENT
    sent.mkdir(parents=True)
    (sent / student["name"]).write_bytes((student["folder"] / student["name"]).read_bytes())
    # nbgrader calls the program alembic of its own environment.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in ("generate_assignment", "autograde"):
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", command, ASSIGNMENT],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    code = f"""
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(book.find_submission("{ASSIGNMENT}", "ada").score)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert float(done.stdout) == 90, done.stderr


def test_a_browser_without_stack_switching_runs_cells_too(page, address, instead):
    """Safari and Firefox have no ``WebAssembly.Suspending``; here it is taken away."""
    gone = b"delete WebAssembly.Suspending; delete WebAssembly.promising;\n"
    for name in ("pyodide.js", "pyodide.mjs"):
        original = (LITE / "static" / "pyodide" / name).read_bytes()
        instead[f"/course/lite/static/pyodide/{name}"] = gone + original
    page.goto(f"{address}lite/notebooks/index.html?path=setup.ipynb")
    notebook = Notebook(page)
    page.evaluate("() => jupyterapp.commands.execute('notebook:insert-cell-below')")
    cell = page.evaluate(ACTIVE)
    lines = ["import js, asyncio, seqlib, numpy", "await asyncio.sleep(0.01)"]
    lines.append("print(hasattr(js.WebAssembly, 'Suspending'), numpy.ones(2).sum())")
    notebook.write(cell, "\n".join(lines))
    assert notebook.run(cell)[0] == "False 2.0\n"
    assert page.watch.foreign == []


def test_every_link_to_a_notebook_leads_to_one():
    pages = sorted((SITE / "book").glob("*.html"))
    found = set()
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for start, name in re.findall(r'href="([^"?]*lite/[^"?]*)\?path=([^"]*)"', text):
            assert (path.parent / start).resolve() == LITE / "notebooks" / "index.html"
            assert (LITE / "files" / name).is_file(), f"{path.name}: {name}"
            found.add(name)
    offered = {p.relative_to(LITE / "files").as_posix() for p in LITE.rglob("files/**/*.ipynb")}
    assert found == offered
    assert len(found) > 20


# ---------------------------------------------------------------- the interpreter alone

PAGE = b"""<!doctype html><link rel="icon" href="data:,"><script type="module">
import { loadPyodide } from "./static/pyodide/pyodide.mjs";
window.start = async packages => {
  window.python = await loadPyodide({ env: { MPLBACKEND: "agg" }, packages });
};
window.run = cells => {
  const space = python.globals.get("dict")(), printed = [], failed = [];
  for (const [id, source] of cells) {
    const lines = [];
    python.setStdout({ batched: line => lines.push(line) });
    try { python.runPython(source, { globals: space }); }
    catch (error) { failed.push([id, String(error).slice(-600)]); }
    printed.push(lines.join("\\n"));
  }
  space.destroy();
  return { printed, failed };
};
</script>"""
PACKAGES = ["numpy", "seqlib-course", "pydoc-data", "matplotlib", "ipython"]
NAMES = [name for name in (*PRACTICE, *ASSIGNMENTS) if name != "decoder"]
CHAPTERS = sorted(path.stem for path in (LITE / "files" / "book").glob("*.ipynb"))


@pytest.fixture(scope="module")
def python(chromium, address):
    """Start the site's Python in a bare page; return the page."""
    from watching import Server

    Server.instead["/course/lite/bare.html"] = PAGE
    with opened(chromium, address) as page:
        page.goto(f"{address}lite/bare.html")
        page.wait_for_function("() => window.start")
        page.evaluate("packages => start(packages)", PACKAGES)
        yield page
    Server.instead.clear()


def test_numpy_is_the_official_wheel_and_lies_in_the_site(python):
    lock = json.loads((LITE / "static/pyodide/pyodide-lock.json").read_text(encoding="utf-8"))
    wheel = lock["packages"]["numpy"]["file_name"]
    assert any(url.endswith(f"/lite/static/pyodide/{wheel}") for url in python.watch.asked)
    assert all("://" not in entry["file_name"] for entry in lock["packages"].values())
    version = python.evaluate("() => python.runPython('import numpy; numpy.__version__')")
    assert version == lock["packages"]["numpy"]["version"]
    assert python.watch.foreign == []


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_of_an_assignment_gets_all_points(name, python):
    cells = list(sources(solution(name)).items())
    done = python.evaluate("cells => run(cells)", cells)
    assert done["failed"] == []
    printed = "\n".join(done["printed"])
    if name in ASSIGNMENTS:
        assert f"{name} so far: 90 of 100 points" in printed
    assert "[--]" not in printed or name == "setup"


def test_there_are_chapters():
    assert len(CHAPTERS) > 15


@pytest.mark.parametrize("name", CHAPTERS)
def test_all_cells_of_a_chapter_run(name, python):
    notebook = nbformat.read(LITE / "files" / "book" / f"{name}.ipynb", as_version=4)
    done = python.evaluate("cells => run(cells)", list(sources(notebook).items()))
    assert done["failed"] == []
    assert python.watch.foreign == []
