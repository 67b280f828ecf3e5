"""Starting the fork server from the judge's side, and giving it orders."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import seqlib

from .errors import SandboxError
from .inside import codec, processes
from .inside.visible import package_folders
from .spawned import remove_folder

_NAME = "_sandbox"  # of the package that holds the copies
_COPIES = ("subject", "grading/sandbox/inside")
# The module random would take a new seed in every fork, where a task needs the present state.
# The copies get built-in functions of their own: a notebook that replaces builtins.max must not
# change what the code around it does.
_START = f"""
import builtins, gc, json, os, sys

gc.disable()  # until all is imported, which stays
from importlib.machinery import FileFinder, SourceFileLoader

os.register_at_fork = lambda **_: None
import random

code, packages, options = json.loads(sys.argv[1])
own = dict(vars(builtins))

class Loader(SourceFileLoader):
    def exec_module(self, module):
        vars(module)["__builtins__"] = own
        super().exec_module(module)

def find(folder):
    if folder.startswith(code):
        return FileFinder(folder, (Loader, [".py"]))
    raise ImportError(folder)

sys.path_hooks.insert(0, find)
sys.path.extend(packages)
sys.path.insert(0, code)
from {_NAME}.grading.sandbox.inside import forks
forks.keep_hooks()
from {_NAME}.grading.sandbox.inside.zygote import main
sys.path.remove(code)
main(options)
"""
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
_PATIENCE = 300.0  # seconds for the fork server to start, with torch on a very busy machine


class Answer(NamedTuple):
    """What came of an order.

    Attributes
    ----------
    pid, descriptor : int
        The supervisor, and a descriptor that becomes readable when it has ended.
    connection : socket
        To the student's process.
    status : int
        End of a pipe on which the supervisor says how that process ended.
    """

    pid: int
    descriptor: int
    connection: socket.socket
    status: int


class ForkServer:
    """A fork server and its folder.

    Parameters
    ----------
    options : dict
        ``torch``, ``plots`` and ``landlock`` of
        :class:`seqlib.grading.sandbox.inside.zygote.Server`.

    Attributes
    ----------
    folder : Path
        Holds the copies of our modules, and what the submissions may write.
    info : dict
        What it said of itself: ``pid``, ``threads``, ``landlock`` (the version).
    shared : int
        Its anonymous bytes, which every submission shares at first.

    Raises
    ------
    SandboxError
        If it does not start.
    """

    def __init__(self, options):
        self._process = None
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._make_folder()
        try:
            with theirs:
                self._start(options, theirs)
            self._greet()
        except BaseException:
            self.close()
            raise

    @property
    def alive(self):
        """Whether it runs."""
        return self._process.poll() is None

    def order(self, order):
        """Have a submission forked.

        Parameters
        ----------
        order : dict
            As :func:`seqlib.grading.sandbox.inside.child.supervise` takes it.

        Returns
        -------
        Answer

        Raises
        ------
        OSError
            If there is no answer.
        """
        ours, theirs = socket.socketpair()
        status, status_end = os.pipe()
        try:
            socket.send_fds(self._control, [codec.frame(order)], [theirs.fileno(), status_end])
            message, (descriptor,), _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        except (OSError, ValueError) as error:
            ours.close()
            os.close(status)
            raise OSError(f"no answer to an order ({error})") from None
        finally:
            theirs.close()
            os.close(status_end)
        pid = codec.decode(message[codec.HEADER.size :])["pid"]
        return Answer(pid, descriptor, ours, status)

    def close(self):
        """End it with all that it has forked, and remove its folder."""
        self._control.close()
        if self._process is not None:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        remove_folder(self.folder)

    def _make_folder(self):
        """Make a folder with the copies and an empty one over which trees are mounted."""
        self.folder = Path(tempfile.mkdtemp(prefix="sandbox-"))
        self.folder.chmod(0o755)
        (self.folder / "root").mkdir()
        (self.folder / "start").mkdir(mode=0o700)
        source = Path(seqlib.__file__).resolve().parent
        target = self.folder / "code" / _NAME
        for name in _COPIES:
            shutil.copytree(source / name, target / name, ignore=_only_source)
        for package in (target, target / "grading", target / "grading" / "sandbox"):
            (package / "__init__.py").touch()

    def _start(self, options, theirs):
        packages = package_folders(sys.path)
        options = options | {
            "control": theirs.fileno(),
            "package": str(Path(seqlib.__file__).resolve().parent),
            "packages": packages,
            "folder": str(self.folder),
        }
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-s", "-S", "-B", "-c", _START),
                    json.dumps([str(self.folder / "code"), packages, options]),
                ],
                env=self._environment(),
                cwd=self.folder / "start",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _greet(self):
        """Wait until it is ready."""
        self._control.settimeout(_PATIENCE)
        try:
            hello = self._control.recv(1 << 16)
        except OSError:
            hello = b""
        if not hello:
            log = (self.folder / "log").read_text(errors="replace").strip()
            reason = log.rpartition("\n")[2] or "no answer"
            raise SandboxError(f"the fork server did not start: {reason}")
        self.info = codec.decode(hello[codec.HEADER.size :])
        self.shared = processes.anonymous_memory(self.info["pid"])

    def _environment(self):
        """Return all that the fork server gets of the environment: nothing of ours."""
        home = str(self.folder / "start")
        environment = {"HOME": home, "IPYTHONDIR": home, "MPLCONFIGDIR": home}
        environment |= {f"{name}_NUM_THREADS": "1" for name in _THREADS}
        return environment | {
            "OMP_THREAD_LIMIT": "1",  # else a fork of a process with threads hangs in OpenMP
            "PYTHONHASHSEED": "0",  # sets in the same order for every submission
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
        }


def _only_source(folder, names):
    return [name for name in names if not name.endswith(".py")]
