"""The processes of one submission, from the judge's side."""

import contextlib
import io
import itertools
import os
import secrets
import select
import shutil
import signal
import socket
import time

from .connection import LOOK, Connection, Watch
from .errors import Fault, SandboxError
from .inside import codec, processes

_LONGEST = 1000  # characters of a path within the folder of a submission
_END = 5.0  # seconds for everything to be gone after the order to end


class Spawned:
    """A supervisor S, the student's process P below it, and the connection to P.

    Parameters
    ----------
    pid, descriptor : int
        S, and a descriptor that becomes readable when it has ended.
    connection : socket
        To P.
    status : int
        End of a pipe on which S says how P ended, or why it could not be locked in.
    home : Path or None
        The folder that P may write, where that is on our disk; None where it is in memory,
        which the kernel limits.
    shared : int
        Anonymous bytes of the fork server.
    limits : Limits
        What they may use.
    """

    def __init__(self, pid, descriptor, connection, status, home, shared, limits):
        self.pid = pid
        self._descriptor, self._status = descriptor, status
        self._connection = Connection(connection)
        self._home, self._shared, self._limits = home, shared, limits
        self._disk = None if home is None else os.stat(home).st_dev
        self._result = None
        self._tasks = {}  # process number -> Connection
        self._leaving = []  # the same of tasks that were told to end
        self._looked, self._used = time.monotonic(), processes.Usage(0, 0.0)

    def start(self, seconds):
        """Wait until P is locked in.

        Raises
        ------
        Fault
            If it is not.
        """
        if self._ask(None, self.watch(seconds)) != {"ready": True}:
            raise Fault("protocol", "the process did not report that it is ready")

    def watch(self, seconds, deadline=None):
        """Return the limits of an operation that may take ``seconds`` of CPU."""
        end = time.monotonic() + self._limits.patience * seconds
        return Watch(seconds, min(end, deadline or end), self._look)

    def run_cell(self, source, watch):
        """Run a cell in P and return its unchecked result.

        Raises
        ------
        Fault
            If a limit is reached. The folder is looked at once more at the end, so that what a
            quick cell leaves in it is held against this cell and not against a later one.
        """
        result = self._ask({"do": "cell", "source": source}, watch)
        self._check_folder()
        return result

    def open_task(self, watch):
        """Fork a process for a task.

        Returns
        -------
        int
            Its process number as P sees it.
        """
        self._end_leaving()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._connection.send({"do": "task"}, watch, theirs.fileno())
            answer = self._connection.read(watch, self._limits.answer)
            number = answer.get("pid") if type(answer) is dict else None
            if type(number) is not int or not 0 < number < 2**31 or number in self._tasks:
                raise Fault("protocol", "the process did not say which process it forked")
        except Fault:
            ours.close()
            raise
        self._tasks[number] = Connection(ours)
        return number

    def connection(self, number=None):
        """Return the connection to the process of a task, or to P."""
        return self._connection if number is None else self._tasks[number]

    def leave_task(self, number):
        """Tell the process of a task to end; it is killed if it lives when the next begins."""
        connection = self._tasks.pop(number)
        connection.finish()
        self._leaving.append((number, connection))

    def end_task(self, number, watch):
        """Kill the process of a task, if it still runs, and return how it ended."""
        self._tasks.pop(number).close()
        self._kill_task(number)
        answer = self._ask({"do": "end", "pid": number}, watch)
        return answer.get("status") if type(answer) is dict else None

    def _kill_task(self, number):
        student = processes.children(self.pid)
        for pid in [child for parent in student for child in processes.children(parent)]:
            if processes.number_inside(pid) == number:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _end_leaving(self):
        while self._leaving:
            number, connection = self._leaving.pop()
            if not connection.ended:
                self._kill_task(number)
            connection.close()

    def process_numbers(self):
        """Return the processes of the submission with the time when each started."""
        found = {pid: processes.started(pid) for pid in processes.tree(self.pid)}
        return {pid: start for pid, start in found.items() if start is not None}

    def how_it_ended(self):
        """Return why P is gone, as a phrase: ``"signal SIGSEGV"``, ``"exit code 0"``.

        Raises
        ------
        SandboxError
            If S does not say it: then S was ended, which no submission can do.
        """
        if self._result is None and select.select([self._status], [], [], _END)[0]:
            data = os.read(self._status, 1 << 16)
            # The first message counts: P says why it could not be locked in, S how P ended.
            self._result = codec.read_frame(io.BytesIO(data).read) if data else {}
        if not self._result:
            raise SandboxError("the supervisor of a submission has ended")
        if "failed" in self._result:
            return self._result["failed"]
        return describe_status(self._result["status"])

    def close(self):
        """End all processes; return when none is left."""
        leaving = (connection for _, connection in self._leaving)
        for connection in (self._connection, *self._tasks.values(), *leaving):
            connection.close()
        for order in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._descriptor, order)
            if select.select([self._descriptor], [], [], _END)[0]:
                break
        os.close(self._descriptor)
        os.close(self._status)
        if self._home is not None:
            remove_folder(self._home)

    def _ask(self, command, watch):
        if command is not None:
            self._connection.send(command, watch)
        return self._connection.read(watch, self._limits.answer)

    def _look(self):
        """Return what the processes use, looked at every 0.1 s however short the calls are."""
        if time.monotonic() - self._looked < LOOK:
            return self._used
        self._used = used = processes.usage(self.pid, self._shared)
        self._looked = time.monotonic()
        if used.memory > self._limits.memory and self._really_exceeds():
            raise Fault("memory", f"more than {self._limits.memory >> 20} MiB of memory")
        self._check_folder()
        return used

    def _check_folder(self):
        if self._home is not None and (
            _too_full(self._home, self._limits, processes.nameless_files(self.pid, self._disk))
        ):
            raise Fault("memory", f"more than {self._limits.folder >> 20} MiB of files")

    def _really_exceeds(self):
        """Whether the memory exceeds the limit when what is shared counts once."""
        exact = processes.proportional_usage(self.pid)
        return exact is None or exact > self._limits.memory


def describe_status(status):
    """Return what a wait status says."""
    if type(status) is not int or not 0 <= status <= 0xFFFF:
        return "for a reason that is not known"
    if os.WIFSIGNALED(status):
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit code {os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else status}"


def remove_folder(folder):
    """Remove a folder whatever a submission has done to the modes of what lies in it.

    Folders in folders are moved up first: the path of one that lies deep is longer than the
    system takes, and more than a recursive function can follow.
    """
    number, token = itertools.count(), secrets.token_hex(8)
    progress = True
    while progress:
        progress = False
        for inner in _folders(folder):
            _make_accessible(inner)
            for deeper in _folders(inner):
                _make_accessible(deeper)
                with contextlib.suppress(OSError):
                    os.rename(deeper, os.path.join(folder, f"{token}-{next(number)}"))
            with contextlib.suppress(OSError):
                for entry in os.scandir(inner):
                    os.unlink(entry.path)
                os.rmdir(inner)
                progress = True
    shutil.rmtree(folder, ignore_errors=True)


def _folders(folder):
    """Return the paths of the folders in a folder; links are none."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _make_accessible(folder):
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)


def _too_full(folder, limits, nameless=0):
    """Whether what lies in a folder exceeds the limits; nothing is followed out of it.

    Files without a name have ``nameless`` bytes.

    A folder that cannot be read, or whose path is very long, is there to hide something or to
    make the looking slow.
    """
    size, entries = nameless, 0
    if size > limits.folder:
        return True
    waiting = [folder]
    for path in waiting:  # grows while it is walked
        if len(os.fspath(path)) > len(os.fspath(folder)) + _LONGEST:
            return True
        try:
            with os.scandir(path) as found:
                for entry in found:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        with contextlib.suppress(FileNotFoundError):
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if size > limits.folder or entries > limits.folder_entries:
                        return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False
