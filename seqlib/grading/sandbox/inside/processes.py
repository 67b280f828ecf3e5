"""Processes of a submission, as /proc shows them: who is there, what they use, ending them."""

import contextlib
import os
import signal
import stat
import time
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Usage(NamedTuple):
    """What a tree of processes uses.

    Attributes
    ----------
    memory : int
        Bytes that no file backs, three processes counted beyond what the fork server has.
    seconds : float
        CPU seconds, those of processes that have ended and were waited for included.
    """

    memory: int
    seconds: float


def children(pid):
    """Return the process numbers of the children of ``pid``, none if it has ended."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{pid}/task/{thread}/children") as file,
            ):
                found += map(int, file.read().split())
    return found


def tree(pid):
    """Return ``pid`` and all its descendants."""
    found = [pid]
    for parent in found:  # grows while it is walked
        found += children(parent)
    return found


def anonymous_memory(pid):
    """Return the bytes of a process that no file on a disk backs, 0 if it has ended.

    Memory that it shares with its forks (``MAP_SHARED``) and what was swapped out count too.
    """
    with contextlib.suppress(OSError):
        return _bytes(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:"))
    return 0


def _bytes(path, names):
    """Return the sum of some lines ``name: number kB`` of a file of /proc."""
    with open(path) as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith(names))


def cpu_seconds(pid):
    """Return the CPU seconds of a process and of its children that were waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICK


def proportional_memory(pid):
    """Return the same bytes, but shared ones divided by how many share them.

    Exact, but ten times as slow as :func:`anonymous_memory`. 0 if the process has ended, None
    if that cannot be read.
    """
    try:
        return _bytes(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
    except ProcessLookupError:
        return 0
    except OSError:
        return None if started(pid) else 0


def proportional_usage(pid):
    """Return the anonymous bytes of ``pid`` and its descendants, None if one cannot be read.

    What a process shares with its forks counts once.
    """
    parts = [proportional_memory(process) for process in tree(pid)]
    return None if None in parts else sum(parts)


def usage(pid, shared):
    """Return the ``Usage`` of ``pid`` and its descendants.

    What a process shares with its forks counts in each of them. The memory is an upper bound,
    but for what the first three processes have in place of the fork server's.

    Parameters
    ----------
    pid : int
        The supervisor.
    shared : int
        Anonymous bytes of the fork server, which every process shares at first.
    """
    memory, seconds = [], 0.0
    for process in tree(pid):
        memory.append(anonymous_memory(process))
        seconds += cpu_seconds(process)
    return Usage(max(0, sum(memory) - shared * min(len(memory), 3)), seconds)


def nameless_files(pid, device):
    """Return the bytes that files without a name take on a disk, held open by some processes.

    They lie in no folder, and take their place until the last process lets them go. Of one
    that is mapped and closed, the length of the mapping counts.

    Parameters
    ----------
    pid : int
        Of the supervisor, whose descendants count too.
    device : int
        The disk, as ``st_dev``.
    """
    sizes = {}
    for process in tree(pid):
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    file = os.stat(f"/proc/{process}/fd/{number}")
                    if file.st_nlink == 0 and stat.S_ISREG(file.st_mode):
                        sizes[file.st_dev, file.st_ino] = file.st_blocks * 512
        with contextlib.suppress(OSError), open(f"/proc/{process}/maps") as file:
            for line in file:
                if line.endswith("(deleted)\n"):
                    _add_mapping(line, sizes)
    return sum(size for (where, _), size in sizes.items() if where == device)


def _add_mapping(line, sizes):
    ends, _, _, device, inode, *_ = line.split()
    first, last = (int(end, 16) for end in ends.split("-"))
    major, minor = (int(part, 16) for part in device.split(":"))
    sizes.setdefault((os.makedev(major, minor), int(inode)), last - first)


def started(pid):
    """Return when a process started, in clock ticks; None if it has ended.

    Together with the process number it names a process for good.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return None


def still_there(known, seconds=0.0):
    """Return those of some processes that live on after some seconds at most.

    Parameters
    ----------
    known : dict of int to int or None
        Process numbers with their :func:`started`; None is of one that had ended already.
    seconds : float
        How long to wait for them to end.
    """
    end = time.monotonic() + seconds
    known = {pid: start for pid, start in known.items() if start is not None}
    while left := {pid: start for pid, start in known.items() if started(pid) == start}:
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return left


def number_inside(pid):
    """Return the process number that ``pid`` has in its own namespace, None if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return None


def end_descendants(confined=False):
    """Kill and reap the children of this process until none is left.

    What a killed child leaves behind becomes a child of this process, which must be a
    subreaper, and is killed in the next round.

    Parameters
    ----------
    confined : bool
        Whether a signal to all processes reaches only our own.
    """
    while True:
        for pid in ([-1] if confined else []) + children(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return
