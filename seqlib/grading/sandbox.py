"""The sandbox: a fork server, and submissions that run in it.

::

    with Sandbox() as sandbox, sandbox.open(build) as submission:
        submission.run_cell("def double(x): return 2 * x")
        subject = submission.subject("double")
        subject.perform({"do": "call", "args": [3]}).value  # 6
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import seqlib

from . import codec, processes, syscalls
from .errors import Fault, SandboxError, SandboxUnavailable
from .levels import layers_of
from .limits import Limits
from .probe import hole
from .spawned import Spawned, remove_folder
from .submission import Submission
from .visible import package_folders

_NAME = "_sandbox"  # of the package that holds the copies
_COPIES = {
    "grading": (
        *("child", "codec", "landlock", "limits", "namespaces", "processes", "seccomp"),
        *("shell", "syscalls", "visible", "zygote"),
    ),
    "subject": ("driver", "guard", "modules", "reduction", "shortcuts", "values"),
}
_START = f"""
import json, sys
code, packages, options = json.loads(sys.argv[1])
sys.path.extend(packages)
sys.path.insert(0, code)
from {_NAME}.grading.zygote import main
sys.path.remove(code)
main(options)
"""
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
_LOCKING = 10.0  # CPU seconds for a process to be locked in
_PATIENCE = 60.0  # seconds for the fork server to start, with torch on a busy machine


class Sandbox:
    """A fork server with NumPy, IPython and, if asked for, PyTorch loaded. One per worker.

    Parameters
    ----------
    torch : bool
        Whether submissions need PyTorch. Without it they can import it, slowly.
    plots : bool
        Whether to load matplotlib, if it is installed.
    level : str, set of str, or None
        A level or a set of layers of :mod:`seqlib.grading.levels`; None for the best that
        the machine offers.
    limits : Limits, optional
        Limits of each submission.
    landlock_abi : int
        Newest version of Landlock to use: tests play an older kernel with it.

    Attributes
    ----------
    level : str or frozenset of str
        What was chosen.

    Raises
    ------
    SandboxError
        If the fork server does not start.
    """

    def __init__(self, *, torch=False, plots=True, level=None, limits=None, landlock_abi=6):
        self.level = level
        self.layers = None if level is None else layers_of(level)
        _check_machine(self.layers)
        self.limits = limits or (Limits().for_torch() if torch else Limits())
        self._options = {"torch": torch, "plots": plots, "landlock": landlock_abi}
        self._server = None
        self._count = 0
        self._folder = Path(tempfile.mkdtemp(prefix="sandbox-"))
        try:
            self._prepare_folder()
            self._start()
            if level is None:
                self._choose_level()
        except BaseException:
            self.close()
            raise

    def open(self, build):
        """Start a submission.

        Parameters
        ----------
        build : str or Path
            Folder of the student build: the ``seqlib`` that the submission can import.

        Returns
        -------
        Submission

        Raises
        ------
        SandboxError
            If its process could not be locked in.
        """
        return Submission(self, Path(build).resolve())

    def close(self):
        """End the fork server with all submissions, and remove its folder."""
        self._stop()
        remove_folder(self._folder)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def spawn(self, build):
        """Fork the processes of a submission.

        Returns
        -------
        Spawned

        Raises
        ------
        SandboxError
            If the fork server fails twice.
        """
        for attempt in (1, 2):
            if self._server is None or self._server.poll() is not None:
                self._stop()
                self._start()
            try:
                return self._locked_in(self._spawn(build))
            except OSError as error:
                self._stop()
                if attempt == 2:
                    raise SandboxError(f"the fork server failed: {error}") from error
        raise AssertionError("unreachable")

    def _locked_in(self, spawned):
        """Wait until a submission's process is locked in and return it."""
        try:
            spawned.start(_LOCKING)
        except Fault as fault:
            reason = spawned.how_it_ended() if fault.kind == "crash" else fault
            spawned.close()
            raise SandboxError(f"a process could not be locked in: {reason}") from None
        return spawned

    def _spawn(self, build):
        self._count += 1
        home = self._folder / f"home-{self._count}"
        home.mkdir(mode=0o700)
        ours, theirs = socket.socketpair()
        status, status_end = os.pipe()
        order = {
            "layers": sorted(self.layers),
            "limits": self.limits.as_dict(),
            "build": str(build),
            "home": str(home),
            "user": self._user(),
            "filter": self._filter(),
        }
        try:
            socket.send_fds(self._control, [codec.frame(order)], [theirs.fileno(), status_end])
            answer, (descriptor,), _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        except (OSError, ValueError) as error:
            ours.close()
            os.close(status)
            raise OSError(f"no answer to an order ({error})") from None
        finally:
            theirs.close()
            os.close(status_end)
        pid = codec.decode(answer[codec.HEADER.size :])["pid"]
        return Spawned(pid, descriptor, ours, status, home, self.shared, self.limits)

    def _user(self):
        """Return a user that nobody is, for submissions when the judge is root."""
        return 64000 + os.getpid() % 1000

    def _filter(self):
        """Choose the filter of system calls that makes up for what other layers lack."""
        if "namespaces" in self.layers:
            return "namespaces"
        scoped = "landlock" in self.layers and self.info["landlock"] >= 6
        return "landlock" if scoped else "signals"

    def _choose_level(self):
        """Take the best level that works, by attempt."""
        reasons = []
        for self.level in ("namespaces", "landlock"):
            self.layers = layers_of(self.level)
            reason = hole(self)
            if reason is None:
                return
            reasons.append(f"{self.level}: {reason}")
        raise SandboxUnavailable("no isolation level works here: " + "; ".join(reasons))

    def _prepare_folder(self):
        """Make the folder of the copies and the empty one over which trees are mounted."""
        self._folder.chmod(0o755)
        (self._folder / "root").mkdir()
        (self._folder / "start").mkdir(mode=0o700)
        source = Path(seqlib.__file__).resolve().parent
        for part, names in _COPIES.items():
            target = self._folder / "code" / _NAME / part
            target.mkdir(parents=True)
            (target / "__init__.py").touch()
            for name in names:
                shutil.copy(source / part / f"{name}.py", target)
        (self._folder / "code" / _NAME / "__init__.py").touch()

    def _start(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        packages = package_folders(sys.path)
        options = self._options | {
            "control": theirs.fileno(),
            "package": str(Path(seqlib.__file__).resolve().parent),
            "packages": packages,
            "folder": str(self._folder),
        }
        log = self._folder / "log"
        with theirs, log.open("wb") as errors:
            self._server = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-s", "-S", "-B", "-c", _START),
                    json.dumps([str(self._folder / "code"), packages, options]),
                ],
                env=self._environment(),
                cwd=self._folder / "start",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control = ours
        ours.settimeout(_PATIENCE)
        try:
            hello = ours.recv(1 << 16)
        except OSError:
            hello = b""
        if not hello:
            message = log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise SandboxError(f"the fork server did not start: {message or 'no answer'}")
        self.info = codec.decode(hello[codec.HEADER.size :])
        self.shared = processes.anonymous_memory(self.info["pid"])

    def _environment(self):
        """Return all that the fork server gets of the environment: nothing of ours."""
        home = str(self._folder / "start")
        environment = {"HOME": home, "IPYTHONDIR": home, "MPLCONFIGDIR": home}
        environment |= {f"{name}_NUM_THREADS": "1" for name in _THREADS}
        return environment | {
            "OMP_THREAD_LIMIT": "1",  # else a fork of a process with threads hangs in OpenMP
            "PYTHONHASHSEED": "0",  # sets in the same order for every submission
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
        }

    def _stop(self):
        """Close the connection; the fork server then ends all that it has forked."""
        if self._server is None:
            return
        self._control.close()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._server = None


def _check_machine(layers):
    if syscalls.SYSTEM != "Linux":
        raise SandboxUnavailable(f"the sandbox needs Linux, this is {syscalls.SYSTEM}")
    if layers != layers_of("none") and not syscalls.supported():
        raise SandboxUnavailable(
            f"the sandbox knows x86-64 and aarch64, this machine is {syscalls.MACHINE}"
        )
