"""Chromium on the built site, which is served from a sub-path without access to other hosts.

``make site`` builds the site, ``make slow`` runs these tests. Chromium is that of the system.
"""

import functools
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from watching import CHROMIUM, FLAGS, SITE, Server, opened


def pytest_collection_modifyitems(items):
    """All tests of this folder are slow, and need a browser and the built site."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"))


@pytest.fixture(scope="session")
def address():
    """Serve the site; return its address, which ends in a slash."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE} is not there; run `make site` first")
    handler = functools.partial(Server, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/course/"
        server.shutdown()
        thread.join()


@pytest.fixture
def instead():
    """Return a dict of addresses and the content that the server sends in their place."""
    yield Server.instead
    Server.instead.clear()


@pytest.fixture(scope="session")
def chromium():
    """Start Chromium once."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, address):
    """Return a page of a fresh browser context, watched."""
    with opened(chromium, address, accept_downloads=True) as page:
        yield page
