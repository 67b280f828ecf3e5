"""Serve the folder html beside this file to this computer alone; end with Ctrl+C."""

import contextlib
import functools
import http.server
import sys
from pathlib import Path


class Handler(http.server.SimpleHTTPRequestHandler):
    """The files with their types, which some systems do not know."""

    extensions_map = {  # noqa: RUF012, as its base class has it
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
        ".mjs": "text/javascript",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_):
        """Print nothing for each file."""


def make(folder, port):
    """Return a server for a folder."""
    handler = functools.partial(Handler, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


def main(port=8000):
    """Serve until Ctrl+C."""
    with make(Path(__file__).resolve().with_name("html"), port) as server:
        print(f"http://localhost:{server.server_port}/", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
