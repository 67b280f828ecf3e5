"""Loading text: from Python, from files, and from a download that is pinned."""

import hashlib
import http.server
import re
import socket
import sys
import threading

import pytest

from seqlib.data import load_text
from seqlib.data.corpora import DOWNLOADS

TEXT = "To be, or not.\nä\n"


def test_topics_are_those_of_python():
    from pydoc_data.topics import topics

    text = load_text()
    assert text == load_text("topics")
    assert len(text) == sum(map(len, topics.values())) + len(topics) - 1
    assert all(topic in text for topic in topics.values())
    if sys.version_info[:3] == (3, 11, 7):
        assert len(text) == 465_048


def test_a_file_has_the_same_text_on_every_system(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert load_text(path) == load_text(str(path)) == TEXT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            r"^source must be a text file or one of topics, tinyshakespeare, got '.*t\.txt'$",
        ),
        (b"", r"^source must hold text, got the empty file '.*t\.txt'$"),
        (b"a\xe4", r"^source must be text in UTF-8, got .* byte 0xe4 at position 1; save it"),
    ],
)
def test_what_is_no_text_is_refused(content, message, tmp_path):
    path = tmp_path / "t.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_text(path)


def test_a_folder_is_no_text(tmp_path):
    with pytest.raises(ValueError, match=r"^source must be a text file or one of"):
        load_text(tmp_path)


@pytest.fixture
def server(tmp_path):
    """Serve a text on this machine; yield its address and the requests made."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(TEXT.encode())

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/text.txt", requests
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")


def offer(monkeypatch, url, content=TEXT):
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    monkeypatch.setitem(DOWNLOADS, "demo", {"url": url, "sha256": sha256})


def test_a_download_is_fetched_once(server, tmp_path, monkeypatch):
    url, requests = server
    offer(monkeypatch, url)
    assert load_text("demo", folder=tmp_path) == TEXT
    assert load_text("demo", folder=tmp_path) == TEXT
    assert requests == ["/text.txt"]


def test_a_download_of_other_bytes_is_refused(server, tmp_path, monkeypatch):
    offer(monkeypatch, server[0], TEXT + "x")
    with pytest.raises(
        ValueError, match=r"^source must have the SHA-256 \w{12}\.\.\., got other"
    ):
        load_text("demo", folder=tmp_path)
    assert not (tmp_path / "demo.txt").exists()


def test_without_a_network_the_message_says_what_to_do(tmp_path, monkeypatch):
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/text.txt"
        offer(monkeypatch, url)
        message = (
            rf"^source must be reachable, got ConnectionError .* save {re.escape(url)} yourself"
        )
        with pytest.raises(ValueError, match=message):
            load_text("demo", folder=tmp_path)


def test_without_pooch_the_message_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ValueError, match=r"^source must be a file where .* pooch is missing"):
        load_text("tinyshakespeare")


def test_downloads_are_pinned():
    assert "tinyshakespeare" in DOWNLOADS
    for entry in DOWNLOADS.values():
        assert re.fullmatch("[0-9a-f]{64}", entry["sha256"])
        assert entry["url"].startswith("https://")
