"""The sandbox: a fork server, and submissions that run in it.

::

    with Sandbox() as sandbox, sandbox.open(build) as submission:
        submission.run_cell("def double(x): return 2 * x")
        subject = submission.subject("double")
        subject.perform({"do": "call", "args": [3]}).value  # 6
"""

import contextlib
import os
from pathlib import Path

from .errors import Fault, SandboxError, SandboxUnavailable
from .inside import syscalls
from .inside.limits import Limits
from .levels import layers_of
from .probe import hole
from .server import ForkServer
from .spawned import Spawned
from .submission import Submission

_LOCKING = 10.0  # CPU seconds for a process to be locked in


class Sandbox:
    """A fork server with NumPy, IPython and, if asked for, PyTorch loaded. One per worker.

    Parameters
    ----------
    torch : bool
        Whether submissions need PyTorch. Without it they can import it, slowly.
    plots : bool
        Whether to load matplotlib, if it is installed.
    level : str, set of str, or None
        A level or a set of layers of :mod:`seqlib.grading.sandbox.levels`; None for the best
        that the machine offers.
    limits : Limits, optional
        Limits of each submission.
    refuse : sequence of str
        Names of library functions that tasks will refuse, which is quicker if known here.
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

    def __init__(
        self,
        *,
        torch=False,
        plots=True,
        level=None,
        limits=None,
        refuse=(),
        landlock_abi=6,
    ):
        self.level = level
        self.layers = None if level is None else layers_of(level)
        _check_machine(self.layers)
        self.limits = limits or (Limits().for_torch() if torch else Limits())
        self._options = {"torch": torch, "plots": plots, "landlock": landlock_abi}
        self._options["refuse"] = sorted(refuse)
        self._count = 0
        self._server = ForkServer(self._options)
        try:
            if level is None:
                self._choose_level()
        except BaseException:
            self.close()
            raise

    @property
    def info(self):
        """What the fork server said of itself: ``pid``, ``threads``, ``landlock``."""
        return self._server.info

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
        self._server.close()

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
        if not self._server.alive:
            self._replace_server()
        try:
            spawned = self._spawn(build)
        except OSError:
            self._replace_server()
            try:
                spawned = self._spawn(build)
            except OSError as error:
                raise SandboxError(f"the fork server failed: {error}") from error
        return self._locked_in(spawned)

    def _locked_in(self, spawned):
        """Wait until a submission's process is locked in and return it."""
        try:
            spawned.start(_LOCKING)
        except Fault as fault:
            with contextlib.closing(spawned):
                reason = spawned.how_it_ended() if fault.kind == "crash" else fault
            raise SandboxError(f"a process could not be locked in: {reason}") from None
        return spawned

    def _spawn(self, build):
        self._count += 1
        home = None
        if "namespaces" not in self.layers:
            home = self._server.folder / f"home-{self._count}"
            home.mkdir(mode=0o700)
        order = {
            "layers": sorted(self.layers),
            "limits": self.limits.as_dict(),
            "build": str(build),
            "home": str(home),
            "user": self._user(),
            "filter": self._filter(),
        }
        return Spawned(*self._server.order(order), home, self._server.shared, self.limits)

    def _replace_server(self):
        self._server.close()
        self._server = ForkServer(self._options)

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


def _check_machine(layers):
    if syscalls.SYSTEM != "Linux":
        raise SandboxUnavailable(f"the sandbox needs Linux, this is {syscalls.SYSTEM}")
    if layers != layers_of("none") and not syscalls.supported():
        raise SandboxUnavailable(
            f"the sandbox knows x86-64 and aarch64, this machine is {syscalls.MACHINE}"
        )
