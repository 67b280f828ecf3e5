"""The page on which an instructor grades, in a browser: nothing of a student runs there."""

import contextlib
import html
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import tiny_course
from tiny_course import as_bytes, extra, solved, submit

from seqlib.grading.gradebook.writer import Writer, open_gradebook

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
RUNS, RAN = "document.documentElement.setAttribute('data-ran', 'yes')", 'data-ran="yes"'
PATIENCE = 120.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]

ATTACKS = {
    "script": f"<script>{RUNS}</script>",
    "svg": f'<svg onload="{RUNS}"></svg>',
    "image": f'<img src="nothing" onerror="{RUNS}">',
}


def hostile(*, as_output):
    """Return a notebook with a mistake and scripts in text, raw cells and outputs."""
    notebook = solved(
        double="def double(x):\n    return 2 * x + 1",
        why="\n\n".join(["My answer.", *ATTACKS.values()]),
    )
    for name, source in ATTACKS.items():
        notebook["cells"] += [
            extra(source, "markdown", id=f"text-{name}"),
            extra(source, "raw", id=f"raw-{name}"),
            extra(f"from IPython.display import HTML\nHTML({source!r})", id=f"code-{name}"),
        ]
        if as_output:
            output = {"output_type": "display_data", "metadata": {}}
            output["data"] = {"text/html": source, "image/svg+xml": source}
            notebook["cells"][-1]["outputs"] = [output]
    return notebook


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    submit(course, "s001", hostile(as_output=False))
    with Writer(course, "tiny") as writer, tiny_course.tiny_grader(course.root) as grader:
        writer.apply(grader.grade("s001"))
    return course


@contextlib.contextmanager
def server(course, tmp_path):
    """Run a Jupyter server with formgrader, and yield its address."""
    pytest.importorskip("jupyter_server", reason="needs jupyter_server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path / "home"
    home.mkdir()
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                *(f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"),
                *("--ServerApp.port_retries=0", "--IdentityProvider.token="),
                "--ServerApp.jpserver_extensions={'nbgrader': True}",
            ],
            cwd=course.root,
            env=os.environ | {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/formgrader/api/assignments", process, tmp_path / "server.log")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def wait_for(address, process, log):
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE):
                return
        except urllib.error.HTTPError as error:
            pytest.skip(f"the server has no formgrader ({error})")
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.3)


def page(address, tmp_path):
    """Return what a page has become after its scripts have run."""
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", "--disable-dev-shm-usage", "--disable-quic"),
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={tmp_path / 'browser'}",
            *("--virtual-time-budget=20000", "--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def number_of(course):
    with open_gradebook(course) as gradebook:
        return gradebook.find_submission_notebook("tiny", "tiny", "s001").id


def test_a_graded_submission_shows_its_diagnosis_and_runs_no_script(course, tmp_path):
    with server(course, tmp_path) as address:
        found = page(f"{address}/formgrader/submissions/{number_of(course)}/", tmp_path)
        assert RAN not in found
        text = html.unescape(found)
        assert "tiny.double: 0 of 40 points" in text
        assert "tiny.add: 40 of 40 points" in text
        assert tiny_course.ASSIGNMENT.tasks[0].misconceptions[0].says in text
        assert "My answer." in text
        # The same notebook as it was handed in does run its scripts.
        path = course.autograded("s001", "tiny") / "tiny.ipynb"
        path.chmod(0o644)
        path.write_bytes(as_bytes(hostile(as_output=True)))
        found = page(f"{address}/formgrader/submissions/{number_of(course)}/", tmp_path)
        assert RAN in found
