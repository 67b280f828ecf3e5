"""What the tests of this folder share: the server of the site, and the watch over a page."""

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from course_book import data
from course_site import serve

SITE = data.ROOT / "_build" / "html"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name leads anywhere but to this machine, so a foreign request fails at once.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]
# The kernel's start takes seconds on a free machine and minutes on a busy one.
PATIENCE = 600_000


class Server(serve.Handler):
    """The site under the path ``/course/``; ``instead`` maps an address to other content."""

    instead = {}  # noqa: RUF012, one for all requests on purpose

    def do_GET(self):
        """Send a file of the site, or what stands in for it."""
        address = unquote(urlsplit(self.path).path)
        if address in self.instead:
            body = self.instead[address]
            self.send_response(200)
            self.send_header("Content-Type", self.guess_type(address))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def translate_path(self, path):
        """Answer from the sub-path alone, as a project's site on a shared host."""
        if not path.startswith("/course/"):
            return os.devnull + "/not-there"
        return super().translate_path(path.removeprefix("/course"))


@dataclass
class Watch:
    """What went wrong on a page, and which other hosts it asked."""

    own: str
    errors: list = field(default_factory=list)
    foreign: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def follow(self, context):
        """Take note of everything that the pages of a context do."""
        context.on("request", self._request)
        context.on("requestfailed", self._failed)
        context.on("response", self._response)
        context.on("console", self._console)
        context.on("weberror", lambda e: self.errors.append(str(e.error)))

    def _request(self, request):
        self.asked.append(request.url)
        if not request.url.startswith((self.own, "blob:", "data:")):
            self.foreign.append(request.url)

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # by leaving the page
            self.errors.append(f"failed {request.url}")

    def _response(self, response):
        if response.status >= 400:
            self.errors.append(f"{response.status} {response.url}")

    def _console(self, message):
        if message.type == "error":
            self.errors.append(f"{message.text} {message.location.get('url', '')}".strip())


@contextlib.contextmanager
def opened(chromium, address, **options):
    """Open a fresh browser context; its page has what is watched as ``watch``."""
    context = chromium.new_context(**options)
    context.set_default_timeout(PATIENCE)
    watch = Watch(address)
    watch.follow(context)
    page = context.new_page()
    page.watch = watch
    try:
        yield page
    finally:
        context.close()
