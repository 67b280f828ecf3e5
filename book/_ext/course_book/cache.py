"""An execution cache that a changed library empties, filled by several kernels at once.

The cache of MyST-NB recognises a page by its cells alone: after a change in ``seqlib`` it
would show the outputs of the old library. Here its folder carries a hash of all that a cell
can depend on besides the page. The hash is also a setting of the Sphinx environment, so that
a change makes Sphinx read the pages again.
"""

import hashlib
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from sphinx.errors import SphinxError
from sphinx.util import logging

from course_book import data

LOGGER = logging.getLogger(__name__)
WATCHED = ("seqlib", "book/data", "requirements.txt", "constraints.txt", "pyproject.toml")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
KEPT = 3  # caches of earlier states, so that switching back and forth stays quick


def state_hash(root=data.ROOT, watched=WATCHED):
    """Return a hash of the library, the data, the requirements and the Python version."""
    digest = hashlib.sha256(sys.version.encode())
    for name in watched:
        path = root / name
        for file in sorted(path.rglob("*") if path.is_dir() else [path]):
            if file.is_file() and "__pycache__" not in file.parts:
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:16]


def _name_cache(app, config):
    config.course_state = state_hash()
    config.course_extension = state_hash(watched=["book/_ext"])
    folder = Path(app.outdir).parent / ".execution_cache"
    config.nb_execution_cache_path = str(folder / config.course_state)
    (folder / config.course_state).mkdir(parents=True, exist_ok=True)
    os.utime(folder / config.course_state)
    for old in sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old)


class PageError(SphinxError):
    """A cell of a page raised an error or ran out of time."""

    category = "Cells that failed"


def _execute_missing(app, env, docnames):
    """Execute the pages that are not in the cache; MyST-NB then finds each of them there.

    All pages are tried, and the failures of all are reported together.
    """
    if app.config.nb_execution_mode != "cache":
        return
    cache = get_cache(env.mystnb_config.execution_cache_path)
    missing = [page for name in docnames if (page := _uncached(env, name, cache))]
    if not missing:
        return
    workers = os.cpu_count() or 1
    LOGGER.info("executing %d pages, %d at a time", len(missing), workers)
    failures = []
    with ThreadPoolExecutor(workers) as pool:
        jobs = {pool.submit(_execute, path, nb, env): (path, nb) for path, nb in missing}
        for job in as_completed(jobs):
            path, notebook = jobs[job]
            result = job.result()
            LOGGER.info("executed %s in %.1f s", Path(path).name, result.time)
            if result.err is None:
                join_streams(notebook)
                bundle = CacheBundleIn(notebook, path, data={"execution_seconds": result.time})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            else:
                failures.append(f"{path}\n{ANSI.sub('', str(result.err))}")
    if failures:
        raise PageError(f"{len(failures)} page(s)\n\n" + "\n\n".join(failures))


def join_streams(notebook):
    """Make one output of neighbouring pieces of the same stream, in place.

    A kernel sends what a cell prints in pieces that end anywhere. MyST-NB would merge them
    with a line break at each end, so that an empty line appeared or not by chance.
    """
    for cell in notebook.cells:
        joined = []
        for output in cell.get("outputs", []):
            stream = output.get("name") if output["output_type"] == "stream" else None
            if stream and joined and joined[-1].get("name") == stream:
                joined[-1]["text"] += output["text"]
            else:
                joined.append(output)
        if joined:
            cell["outputs"] = joined


def _uncached(env, name, cache):
    """Return path and notebook of a page that must be executed, else None."""
    path = env.doc2path(name)
    text = Path(path).read_text(encoding="utf-8")
    reader = create_nb_reader(path, env.myst_config, env.mystnb_config, text)
    if reader is None:
        return None
    notebook = reader.read(text)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return None
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return path, notebook
    return None


def _execute(path, notebook, env):
    return single_nb_execution(
        notebook,
        cwd=str(Path(path).parent),
        timeout=env.mystnb_config.execution_timeout,
        allow_errors=False,
        extra_arguments=["--log-level=ERROR"],  # a kernel warns of its own transport
    )


def setup(app):
    """Name the cache before MyST-NB reads the setting, and fill it before pages are read."""
    app.add_config_value("course_state", "", "env")
    app.add_config_value("course_extension", "", "env")  # pages are read again, not run again
    app.connect("config-inited", _name_cache, priority=100)
    app.connect("env-before-read-docs", _execute_missing)
