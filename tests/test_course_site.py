"""What goes around the book: pinned files, the browser's Python, its notebooks, the archive."""

import hashlib
import io
import json
import zipfile
from base64 import b64encode

import nbformat
import pytest
from course_book import data
from course_site import __main__ as command
from course_site import (
    buttons,
    citations,
    contents,
    fetch,
    icons,
    lite,
    mathjax,
    offline,
    pack,
    pins,
    runtime,
)

from seqlib.exercises import ASSIGNMENTS, PRACTICE

# ---------------------------------------------------------------- pinned files


def test_every_pin_has_a_hash():
    wanted = pins.read()
    assert wanted["pyodide"]["integrity"].startswith("sha512-")
    for pin in (wanted["bundle"], *wanted["wheel"]):
        assert len(bytes.fromhex(pin["sha256"])) == 32
        assert "==" in pin["requirement"]


def test_a_changed_file_is_refused():
    pins.check_sha256("x", b"x", hashlib.sha256(b"x").hexdigest())
    with pytest.raises(pins.SiteError, match="x must have the SHA-256"):
        pins.check_sha256("x", b"y", hashlib.sha256(b"x").hexdigest())
    right = "sha512-" + b64encode(hashlib.sha512(b"x").digest()).decode()
    pins.check_integrity("x", b"x", right)
    with pytest.raises(pins.SiteError, match="x must have the integrity"):
        pins.check_integrity("x", b"y", right)


@pytest.fixture
def wanted():
    """Two official files with their hashes."""
    content = {"a.whl": b"first", "b.whl": b"second"}
    return content, {name: hashlib.sha256(c).hexdigest() for name, c in content.items()}


def test_official_files_come_from_the_given_folder(tmp_path, wanted):
    content, hashes = wanted
    for name, text in content.items():
        (tmp_path / name).write_bytes(text)
    assert fetch.official_files(hashes, {}, tmp_path / "cache", tmp_path) == content


def test_a_file_of_the_given_folder_with_another_hash_is_refused(tmp_path, wanted):
    _, hashes = wanted
    (tmp_path / "a.whl").write_bytes(b"not the first")
    with pytest.raises(pins.SiteError, match=r"a\.whl must have the SHA-256"):
        fetch.official_files(hashes, {}, tmp_path / "cache", tmp_path)


def test_what_is_taken_from_the_bundle_is_kept_and_checked(tmp_path, wanted, monkeypatch):
    content, hashes = wanted
    bundle = {"folder": "inside", "sha256": "0" * 64}

    def wheel(_pin, cache):
        cache.mkdir(exist_ok=True)
        with zipfile.ZipFile(cache / "bundle.whl", "w") as archive:
            for name, text in content.items():
                archive.writestr(f"inside/{name}", text)
        return "bundle.whl", b""

    monkeypatch.setattr(fetch, "wheel", wheel)
    assert fetch.official_files(hashes, bundle, tmp_path) == content
    monkeypatch.delattr(fetch, "wheel")  # the second time from the cache
    assert fetch.official_files(hashes, bundle, tmp_path) == content
    (tmp_path / "official" / "a.whl").write_bytes(b"changed")
    with pytest.raises(pins.SiteError):
        fetch.official_files(hashes, bundle, tmp_path)


def test_a_file_that_the_bundle_lacks_is_named(tmp_path, wanted, monkeypatch):
    _, hashes = wanted

    def wheel(_pin, cache):
        zipfile.ZipFile(cache / "bundle.whl", "w").close()
        return "bundle.whl", b""

    monkeypatch.setattr(fetch, "wheel", wheel)
    with pytest.raises(pins.Missing, match=r"a\.whl of Pyodide; give its folder"):
        fetch.official_files(hashes, {"folder": "inside"}, tmp_path)


def test_without_npm_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch.shutil, "which", lambda _: None)
    with pytest.raises(pins.Missing, match="npm"):
        fetch.npm_files(pins.read()["pyodide"], tmp_path)


# ---------------------------------------------------------------- the browser's Python

INFO = {"python": "3.12.7"}


def wheel_of(name="demo_course", requires=(), module="demo.py"):
    """Return the bytes of a small wheel."""
    buffer = io.BytesIO()
    lines = [f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {r}" for r in requires)]
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(module, "")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines))
    return buffer.getvalue()


def test_a_wheel_is_described_for_the_python_of_the_browser():
    requires = ["numpy>=2", "torch; extra == 'torch'", "tomli; python_version < '3.11'"]
    content = wheel_of(requires=[*requires, "pexpect; sys_platform != 'emscripten'"])
    name, entry = runtime.described("demo_course-1.0-py3-none-any.whl", content, INFO)
    assert name == "demo-course"
    assert entry["depends"] == ["numpy"]
    assert entry["imports"] == ["demo"]
    assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_compiled_wheel_needs_the_lock():
    with pytest.raises(pins.SiteError, match="Python alone"):
        runtime.described("demo-1.0-cp312-cp312-linux_x86_64.whl", wheel_of(), INFO)


def core(**packages):
    entry = {"depends": [], "sha256": "", "imports": []}
    listed = {n: entry | {"file_name": f"{n}.whl"} | more for n, more in packages.items()}
    lock = {"info": INFO, "packages": listed}
    return dict.fromkeys(runtime.CORE, b"") | {"pyodide-lock.json": json.dumps(lock)}


def test_the_lock_names_what_is_in_the_folder_and_nothing_else(tmp_path):
    target = tmp_path / "pyodide"
    files = core(numpy={}, scipy={"depends": ["numpy"]})
    pure = {"demo-1.0-py3-none-any.whl": wheel_of("demo", ["numpy"])}
    runtime.assemble(target, files, {"numpy": b"wheel"}, pure)
    lock = json.loads((target / "pyodide-lock.json").read_text(encoding="utf-8"))
    assert set(lock["packages"]) == {"numpy", "demo"}
    for entry in lock["packages"].values():
        assert (target / entry["file_name"]).is_file()


def test_a_dependency_that_nobody_supplies_is_an_error(tmp_path):
    pure = {"demo-1.0-py3-none-any.whl": wheel_of("demo", ["scipy"])}
    with pytest.raises(pins.SiteError, match="must hold scipy"):
        runtime.assemble(tmp_path / "pyodide", core(numpy={}), {"numpy": b""}, pure)


def test_the_closure_follows_the_lock():
    packages = {"a": {"depends": ["b"]}, "b": {"depends": ["a", "c"]}, "c": {"depends": []}}
    assert runtime.closure(["a"], packages) == ["a", "b", "c"]


# ---------------------------------------------------------------- chapters without PyTorch


def left(*cells):
    """Return the lines that are kept of cells in turn."""
    lost, kept = set(), []
    for cell in cells:
        text, _ = offline.commented(cell, lost)
        kept.append([line for line in text.splitlines() if line and line[0] != "#"])
    return kept


def test_what_needs_pytorch_is_commented_out_and_the_rest_is_not():
    first = "import numpy as np\nimport torch\n\nx = np.ones(3)\nt = torch.tensor(x)"
    second = "print(x)\ny = t + 1\nprint(y,\n      x)"
    assert left(first, second) == [["import numpy as np", "x = np.ones(3)"], ["print(x)"]]
    text, changed = offline.commented(first, set())
    assert changed
    assert "# t = torch.tensor(x)" in text.splitlines()
    assert text.startswith("# PyTorch does not run in a browser")


def test_a_cell_without_pytorch_is_as_it_was():
    source = "x = 1  # torch\n\nprint('torch')"
    assert offline.commented(source, set()) == (source, False)


def test_a_name_that_is_set_anew_is_there_again():
    cells = ["import torch\nx = torch.ones(1)", "print(x)\nx = 2\nprint(x)"]
    assert left(*cells)[1] == ["x = 2", "print(x)"]


def test_functions_and_blocks_go_as_a_whole():
    cell = (
        "import torch\n\n\n@torch.no_grad()\ndef f(x):\n    return x\n\n\nfor i in range(2):\n"
    )
    cell += "    print(i)\n    f(i)\ng = 3"
    assert left(cell) == [["g = 3"]]


def test_local_names_are_not_those_of_the_page():
    cells = ["import torch\nfull = torch.ones(1)", "def f(full):\n    return full\nf(1)"]
    assert left(*cells)[1] == ["def f(full):", "    return full", "f(1)"]
    cells[1] = "[full for full in (1, 2)]\nfor full in (1, 2):\n    print(full)\nprint(full)"
    assert left(*cells)[1] == cells[1].splitlines()


def test_what_is_filled_with_pytorch_is_lost():
    cells = ["import torch\na, b, c = [], {}, 1\na.append(torch)\nb['x'] = torch"]
    assert left(*cells, "print(a)\nprint(b)\nprint(c)")[1] == ["print(c)"]


def test_modules_of_the_course_are_followed_to_what_they_import():
    assert offline.is_absent("seqlib.pt")
    assert offline.is_absent("seqlib.pt.norm")
    assert offline.is_absent("seqlib.experiments.depth")
    assert not offline.is_absent("seqlib.experiments")
    assert not offline.is_absent("seqlib.np.norm")
    cell = "from seqlib.experiments import depth, load\ndepth.plot(1)\nload"
    assert left(cell) == [["from seqlib.experiments import load", "load"]]


PAGES = contents.pages(data.ROOT)


def test_there_are_pages_with_cells():
    assert len(PAGES) > 15


OFFERED = [n for n in PAGES if contents.share(PAGES[n]) >= contents.ENOUGH]


def test_most_pages_are_offered_and_those_of_pytorch_are_not():
    assert {"rnn", "lstm", "gru", "attention", "masks", "norm", "tokens"} <= set(OFFERED)
    assert len(OFFERED) > 15
    assert "transformer" not in OFFERED


@pytest.mark.parametrize("name", OFFERED)
def test_an_offered_page_is_a_notebook_in_plain_markdown(name):
    notebook = contents.for_the_browser(PAGES[name])
    nbformat.validate(notebook)
    assert notebook.metadata["language_info"]["name"] == "python"
    code = [c.source for c in notebook.cells if c.cell_type == "code"]
    assert len(code) == sum(c.cell_type == "code" for c in PAGES[name].cells)
    for cell in code:
        compile(cell, name, "exec")
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    for sign in ("```{", ":::", "{eq}`", "{ref}`", "{cite", "{result}`", ":label:", ".md)"):
        assert sign not in prose
    assert prose.startswith("This notebook is the chapter *")


def test_all_notebooks_are_offered_but_that_of_pytorch(tmp_path):
    offered, chapters = contents.write(data.ROOT, tmp_path / "contents")
    assert set(offered) == {*PRACTICE, *ASSIGNMENTS} - {"decoder"}
    assert set(chapters) == set(OFFERED) - set(contents.NOT_OFFERED)
    for name in offered:  # at the root and unchanged, for nbgrader
        released = data.ROOT / "assignments" / name / f"{name}.ipynb"
        assert (tmp_path / "contents" / f"{name}.ipynb").read_bytes() == released.read_bytes()
        notebook = json.loads(released.read_text(encoding="utf-8"))
        assert notebook["metadata"]["language_info"]["name"] == "python"


# ---------------------------------------------------------------- links


class Book:
    """As much of a Sphinx application as the links ask for."""

    def __init__(self, root, key=""):
        self.confdir = root
        self.config = type("Config", (), {"course_site": key})


SITE = lite.Site("key", "demo-1.0.whl", ("rnn",), ("lstm",), "Python 3 and NumPy 2")


def context_of(page):
    """Return a context of Sphinx; the book stands in a folder, so addresses go up once."""
    depth = page.count("/")
    return {"pathto": lambda target, _resource: "../" * depth + target}


def test_links_are_relative_and_know_what_is_offered():
    text = buttons.how_to_run(context_of("book/lstm"), "book/lstm", SITE)
    assert 'href="../lite/notebooks/index.html?path=book/lstm.ipynb"' in text
    assert 'href="../downloads/demo-1.0.whl"' in text
    assert "pip install ./demo-1.0.whl torch" in text
    text = buttons.how_to_run(context_of("book/decoder"), "book/decoder", SITE)
    assert "notebooks/index.html" not in text
    assert "does not run in a browser" in text
    text = buttons.notebook_links(context_of("book/students"), SITE, "rnn")
    assert 'href="../lite/notebooks/index.html?path=rnn.ipynb"' in text
    text = buttons.notebook_links(context_of("book/students"), SITE, "decoder")
    assert "notebooks/index.html" not in text
    assert 'href="../downloads/decoder.ipynb"' in text


def test_without_the_site_no_link_is_left(tmp_path):
    body = '<p><code>rnn</code><span class="run-notebook" data-name="rnn"></span></p>'
    context = {**context_of("book/students"), "body": body}
    buttons._add(Book(tmp_path), "book/students", "", context, None)
    assert context["body"] == "<p><code>rnn</code></p>"


def test_the_tree_counts_while_it_fits_its_sources(tmp_path):
    (tmp_path / "seqlib").mkdir()
    source = tmp_path / "seqlib" / "x.py"
    source.write_text("1\n")
    part = tmp_path / ".site" / "part" / "tree"
    part.mkdir(parents=True)
    site = lite.Site(lite.key(tmp_path), "demo-1.0.whl", ("rnn",), ("lstm",))
    lite._finish(tmp_path / ".site", site)
    assert lite.ready(tmp_path) == site
    source.write_text("2\n")
    assert lite.ready(tmp_path) is None


def test_the_tree_is_laid_over_the_book_and_taken_away(tmp_path):
    tree = tmp_path / ".site" / "part" / "tree"
    for name in lite.FOLDERS:
        (tree / name).mkdir(parents=True)
        (tree / name / "x").write_text(name)
    lite._finish(tmp_path / ".site", lite.Site(lite.key(tmp_path), "demo-1.0.whl"))
    html = tmp_path / "html"
    html.mkdir()
    lite.lay_over(tmp_path, html)
    assert (html / "lite" / "x").read_text() == "lite"
    (tmp_path / "seqlib").mkdir()
    (tmp_path / "seqlib" / "x.py").write_text("2\n")
    lite.lay_over(tmp_path, html)
    assert not (html / "lite").exists()
    assert not (html / "downloads").exists()


def test_without_npm_the_site_has_the_downloads_and_says_what_is_missing(
    tmp_path, monkeypatch, capsys
):
    release = tmp_path / "assignments" / "rnn" / "rnn.ipynb"
    release.parent.mkdir(parents=True)
    release.write_text("{}")
    monkeypatch.setattr(fetch, "course_wheel", lambda _root: ("demo-1.0.whl", b"wheel"))
    monkeypatch.setattr(fetch.shutil, "which", lambda _: None)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    command.prepare(None)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1
    assert said[0].startswith("No notebooks in the browser")
    assert "npm" in said[0]
    site = lite.ready(tmp_path)
    assert site.wheel == "demo-1.0.whl"
    assert site.chapters == site.assignments == ()
    tree = tmp_path / ".site" / "tree"
    assert (tree / "downloads" / "rnn.ipynb").is_file()
    assert not (tree / "lite").exists()
    text = buttons.how_to_run(context_of("book/lstm"), "book/lstm", site)
    assert "notebooks/index.html" not in text
    assert "demo-1.0.whl" in text


def test_the_heartbeat_is_a_file_of_the_site(tmp_path):
    (tmp_path / "build").mkdir()
    script = tmp_path / "build" / "1.js"
    script.write_text('await fetch("/api/service-worker-heartbeat")', encoding="utf-8")
    lite.beat_inside(tmp_path)
    assert (
        script.read_text(encoding="utf-8") == 'await fetch("../api/service-worker-heartbeat")'
    )
    assert (tmp_path / "api" / "service-worker-heartbeat").read_text() == "ok"
    with pytest.raises(pins.SiteError):
        lite.beat_inside(tmp_path)


# ---------------------------------------------------------------- MathJax, archive


def test_mathjax_keeps_what_pages_load(tmp_path):
    kept = ["tex-chtml.js", "a11y/sre.js", "sre/mathmaps/en.json"]
    kept += ["output/chtml/fonts/woff-v2/x.woff", "input/tex/extensions/ams.js"]
    gone = ["tex-svg.js", "sre/mathmaps/de.json", "input/mml/extensions/x.js", "core.js"]
    for name in kept + gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    mathjax.trim(tmp_path)
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert left == set(kept)
    assert not (tmp_path / "input" / "mml").exists()


def test_the_first_page_gets_the_icon_once(tmp_path):
    page = tmp_path / "index.html"
    page.write_text("<meta>", encoding="utf-8")
    pack.name_icon(page)
    pack.name_icon(page)
    assert page.read_text(encoding="utf-8").count('rel="icon"') == 1


def test_the_archive_has_the_site_and_a_server(tmp_path):
    html = tmp_path / "html"
    (html / "book").mkdir(parents=True)
    (html / "index.html").write_text("first")
    (html / "book" / "x.html").write_text("second")
    size = pack.pack(html, tmp_path / "site.zip")
    assert size == (tmp_path / "site.zip").stat().st_size
    with zipfile.ZipFile(tmp_path / "site.zip") as archive:
        assert sorted(archive.namelist()) == [
            "site/README.txt",
            "site/html/book/x.html",
            "site/html/index.html",
            "site/serve.py",
        ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["html", "site.zip"]


# ---------------------------------------------------------------- icons

DRAWINGS = (
    'a={sun:[512,512,[9728],"f185","M1z"],"circle-half-stroke":[512,512,["adjust"],"f042",'
    '"M2z"],github:[496,512,[],"f09b","M3z"],two:[1,1,[],"e000",["M4z","M5z"]]};f(a)'
)


def test_icons_that_no_page_shows_are_cut_out():
    script = icons.cut(DRAWINGS, {"sun", "adjust", "solid"})
    assert script == (
        'a={sun:[512,512,[9728],"f185","M1z"],"circle-half-stroke":[512,512,["adjust"],"f042",'
        '"M2z"],};f(a)'
    )
    assert icons.cut(DRAWINGS, {"two"}) == 'a={two:[1,1,[],"e000",["M4z","M5z"]]};f(a)'


def test_a_script_without_the_icons_is_no_script_of_icons():
    with pytest.raises(ValueError, match=r"drawings of moon, got none"):
        icons.cut("a={};f(a)", {"moon"})


def test_icons_are_those_of_pages_and_scripts(tmp_path):
    for name, text in {
        "book/a.html": '<i class="fa-solid fa-list"></i><i class="fas fa-file-pdf"></i>',
        "_static/b.js": 'x = "fa-xmark"',
        "lite/c.html": '<i class="fa fa-gear"></i>',
        str(icons.SCRIPT): "fa-bluetooth",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert icons.shown(tmp_path) == {"solid", "list", "file-pdf", "xmark"}


def test_sources_are_items_of_their_list():
    page = '<div role="list"><div class="citation" id="a" role="doc-biblioentry">A</div></div>'
    mended = '<div role="list"><div class="citation" id="a" role="listitem">A</div></div>'
    assert citations.as_items(page) == mended
