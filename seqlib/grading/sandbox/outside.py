"""What hostile code would like to reach, set up so that reaching it is seen and harmless."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import seqlib

_LONGEST = 100  # characters of a socket's path; the kernel takes 107


class Outside:
    """What hostile code would like to reach: files, servers, a process, a secret.

    Parameters
    ----------
    folder : Path
        Where the files lie; any user may enter it.

    Attributes
    ----------
    facts : dict
        What the attempts need to know.
    """

    def __init__(self, folder):
        folder.chmod(0o755)
        self._open = contextlib.ExitStack()
        self._secret = folder / "outside" / "secret"
        self._secret.parent.mkdir()
        self._secret.write_text("a grade")
        self._sockets = {}

    def __enter__(self):
        token = secrets.token_hex(16)
        os.environ["SEQLIB_DOCTOR"] = token
        self._open.callback(os.environ.pop, "SEQLIB_DOCTOR", None)
        victim = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        self._open.callback(victim.wait)
        self._open.callback(victim.kill)
        path = self._secret.parent / "socket"
        if len(os.fsencode(path)) > _LONGEST:
            short = Path(self._open.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
            short.chmod(0o755)
            path = short / "socket"
        tcp = self._listen("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        udp = self._listen("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        abstract = self._listen("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{token}")
        self._listen("Unix", socket.AF_UNIX, socket.SOCK_STREAM, str(path))
        package = Path(seqlib.__file__).resolve().parent
        self.facts = {
            "package": str(package),
            "source": str(package.parent),
            "secret": str(self._secret),
            "token": token,
            "judge": os.getpid(),
            "victim": victim.pid,
            "python": sys.executable,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract.getsockname().decode(),
            "path": str(path),
        }
        self._before = self._state()
        return self

    def __exit__(self, *exc):
        self._open.close()

    def changes(self):
        """Return what is not as it was, by name."""
        after = self._state()
        return [name for name in after if after[name] != self._before[name]]

    def _listen(self, name, family, kind, address):
        server = self._open.enter_context(socket.socket(family, kind))
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.setblocking(False)
        self._sockets[name] = server
        return server

    def _state(self):
        status = self._secret.stat()
        state = {
            "the file": (self._secret.read_text(), status.st_mode, status.st_mtime_ns),
            "the folder": sorted(os.listdir(self._secret.parent)),
        }
        for name, server in self._sockets.items():
            reached = False
            with contextlib.suppress(BlockingIOError):
                if server.type == socket.SOCK_STREAM:
                    server.accept()[0].close()
                else:
                    server.recv(100)
                reached = True
            state[f"the {name} server"] = reached
        return state
