"""JupyterLite with the course's notebooks and its own Python, laid over the built book.

``.site/tree`` is laid over the built book: ``lite`` is JupyterLite, ``downloads`` holds the
package and the release notebooks. ``.site/tree/site.json`` tells what it was built from. Once
that has changed, the book leaves it out, links and all, until ``make site`` builds it anew.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from course_book.cache import state_hash
from sphinx.util import logging

from course_site import contents, fetch, pdf, pins, runtime

LOGGER = logging.getLogger(__name__)
WATCHED = (
    *("seqlib", "assignments", "book", "_config.yml", "_toc.yml"),
    *("pyproject.toml", "README.md", "LICENSE"),
)
FOLDERS = ("lite", "downloads")
HEARTBEAT = "service-worker-heartbeat"
KERNEL = "@jupyterlite/pyodide-kernel-extension"
SETTINGS = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {
        "appName": "Notebooks of the course",
        "appUrl": "./tree",
        "faviconUrl": "./icon-120x120.png",
        "exposeAppInBrowser": True,  # for the tests
        "litePluginSettings": {
            f"{KERNEL}:kernel": {
                "loadPyodideOptions": {
                    # Every notebook needs these; so the first cell need not wait for them.
                    "packages": ["numpy", "seqlib-course", "pydoc-data"],
                    # Where it is on, the kernel needs a feature that not all browsers have.
                    "enableRunUntilComplete": False,
                }
            }
        },
    },
}


@dataclass(frozen=True)
class Site:
    """What ``.site/tree`` holds; the book as PDF joins it when the pages are built."""

    key: str
    wheel: str
    assignments: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    versions: str = ""
    pdf: str = ""


def key(root):
    """Return a hash of all that the tree is built from."""
    return state_hash(root, watched=[name for name in WATCHED if (root / name).exists()])


def ready(root, wanted=None):
    """Return what the tree holds, or None if it is not there or no longer fits.

    Parameters
    ----------
    root : Path
        The checkout.
    wanted : str, optional
        The key that it must have; by default that of the sources as they are now.
    """
    path = root / ".site" / "tree" / "site.json"
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    for name in ("assignments", "chapters"):
        found[name] = tuple(found[name])
    site = Site(**found)
    return site if site.key == (key(root) if wanted is None else wanted) else None


def prepare(root, wheels=None):
    """Build the tree, if it does not fit; return what it holds.

    Parameters
    ----------
    root : Path
        The checkout.
    wheels : Path, optional
        Folder with official wheels of Pyodide.

    Raises
    ------
    Missing
        If the browser's Python cannot be had. The tree then holds the downloads alone.
    """
    site = ready(root)
    book = "" if pdf.missing() else pdf.NAME
    if site is not None and site.chapters and site.pdf == book and wheels is None:
        return site
    work, part = root / ".site", root / ".site" / "part"
    shutil.rmtree(part, ignore_errors=True)
    current = key(root)
    wheel, content = fetch.course_wheel(root)
    _write_downloads(root, part / "tree" / "downloads", wheel, content)
    try:
        site = replace(_write_lite(root, part, current, {wheel: content}, wheels), pdf=book)
    except pins.Missing:
        shutil.rmtree(part / "tree" / "lite", ignore_errors=True)
        _finish(work, Site(current, wheel, pdf=book))
        raise
    _finish(work, site)
    return site


def _write_downloads(root, target, wheel, content):
    target.mkdir(parents=True)
    (target / wheel).write_bytes(content)
    for path in sorted((root / "assignments").glob("*/*.ipynb")):
        shutil.copy(path, target)


def _write_lite(root, part, current, wheel, wheels):
    if find_spec("jupyterlite_core") is None:
        raise pins.Missing("jupyterlite-core; pip install -r requirements.txt")
    cache = root / ".site" / "cache"
    wanted = pins.read()
    core = fetch.npm_files(wanted["pyodide"], cache)
    lock = json.loads(core["pyodide-lock.json"])
    names = runtime.closure(wanted["packages"]["official"], lock["packages"])
    entries = {name: lock["packages"][name] for name in names}
    files = fetch.official_files(
        {entry["file_name"]: entry["sha256"] for entry in entries.values()},
        wanted["bundle"],
        cache,
        wheels,
    )
    pure = dict(fetch.wheel(pin, cache) for pin in wanted["wheel"]) | wheel
    pure |= [fetch.help_pages()]
    runtime.assemble(
        part / "lite_dir" / "static" / "pyodide",
        core,
        {name: files[entry["file_name"]] for name, entry in entries.items()},
        pure,
    )
    offered, chapters = contents.write(root, part / "contents")
    _run_jupyterlite(part)
    beat_inside(part / "tree" / "lite")
    add_icon(part / "tree" / "lite")
    python = lock["info"]["python"].rpartition(".")[0]
    versions = f"Python {python} and NumPy {entries['numpy']['version']}"
    return Site(current, next(iter(wheel)), tuple(offered), tuple(chapters), versions)


def _run_jupyterlite(part):
    """Build ``tree/lite``; of the extensions of this environment, the kernel's alone."""
    from jupyterlite_pyodide_kernel.constants import PYODIDE_KERNEL_NPM_NAME

    extensions = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    settings = {
        "LiteBuildConfig": {
            "ignore_sys_prefix": ["federated_extensions"],
            "federated_extensions": [str(extensions / PYODIDE_KERNEL_NPM_NAME)],
            "apps": ["notebooks", "tree"],
            "contents": [str(part / "contents")],
            "output_dir": str(part / "tree" / "lite"),
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
        }
    }
    folder = part / "lite_dir"
    (folder / "jupyter_lite_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "jupyter-lite.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise pins.SiteError(f"JupyterLite could not be built:\n{done.stderr[-4000:]}")


def beat_inside(lite):
    """Make the notebooks ask for their heartbeat inside of the site.

    The program asks its service worker whether it is alive at ``/api/...``, from the root of
    the host, where a site under a sub-path has nothing; before the worker has started, that is
    a failed request. Here it is a file of the site.
    """
    (lite / "api").mkdir(exist_ok=True)
    (lite / "api" / HEARTBEAT).write_text("ok", encoding="utf-8")
    changed = 0
    for path in (lite / "build").glob("*.js"):
        text = path.read_text(encoding="utf-8")
        if f'fetch("/api/{HEARTBEAT}")' in text:
            changed += 1
            text = text.replace(f'fetch("/api/{HEARTBEAT}")', f'fetch("../api/{HEARTBEAT}")')
            path.write_text(text, encoding="utf-8")
    if not changed:
        raise pins.SiteError(
            "JupyterLite must ask for its heartbeat as the pinned version does"
        )


def add_icon(lite):
    """Name the icon in each page, or a browser asks for one at the root of the host."""
    link = '<link rel="icon" href="../icon-120x120.png">'
    for path in lite.glob("*/index.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("</head>", f"{link}</head>", 1), encoding="utf-8")


def _finish(work, site):
    """Put the new tree in the place of the old one."""
    part, tree = work / "part", work / "tree"
    text = json.dumps(asdict(site), indent=1)
    (part / "tree" / "site.json").write_text(text, encoding="utf-8")
    shutil.rmtree(tree, ignore_errors=True)
    (part / "tree").rename(tree)
    shutil.rmtree(part)


# ---------------------------------------------------------------- while the book is built


def of(app):
    """Return what the tree holds for the book that is built, or None."""
    return ready(Path(app.confdir), app.config.course_site)


def _note(app, config):
    """Make the tree a setting, so that pages are written anew when it comes or goes."""
    site = ready(Path(app.confdir))
    config.course_site = site.key if site else ""


def lay_over(root, outdir, wanted=None):
    """Lay the tree over the built book; take it away where it does not fit any more."""
    site = ready(root, wanted)
    mark = outdir / "downloads" / "site.json"
    tree = root / ".site" / "tree"
    if site and mark.is_file() and mark.read_bytes() == (tree / "site.json").read_bytes():
        return
    for name in FOLDERS:
        shutil.rmtree(outdir / name, ignore_errors=True)
        if site and (tree / name).is_dir():
            shutil.copytree(tree / name, outdir / name, copy_function=_link)
    if site:
        shutil.copy(tree / "site.json", mark)


def _link(source, target):
    """Copy without using space twice, where the file system can."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def add_download(root, outdir, name):
    """Give the built book a download that has joined the tree since."""
    target = outdir / "downloads" / name
    target.unlink(missing_ok=True)
    _link(root / ".site" / "tree" / "downloads" / name, target)


def _lay_over(app, exception):
    if exception is None and app.builder.format == "html":
        lay_over(Path(app.confdir), Path(app.outdir), app.config.course_site)


def setup(app):
    """Copy the tree after the book."""
    app.add_config_value("course_site", "", "html")
    app.connect("config-inited", _note, priority=100)
    app.connect("build-finished", _lay_over)
