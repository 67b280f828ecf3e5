"""Landlock: a process gives up the file system, the network and signals, all but a list.

Raw system calls, because the package on PyPI knows neither network nor signal rules.
The kernel's interface has versions ("ABI"): 1 covers files, 2 and 3 renaming and truncating,
4 TCP, 5 device ioctl, 6 signals and abstract sockets. Landlock covers no ``stat``, ``chmod``,
``chown`` or ``utime``: existence and size of any file stay readable, and the rest is denied by
seccomp.
"""

import ctypes
import os
import stat

from . import syscalls

_EXECUTE, _WRITE, _READ, _READ_FOLDER = 1, 2, 4, 8
_REMOVE_FOLDER, _REMOVE_FILE, _MAKE_FOLDER, _MAKE_FILE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_READING = _EXECUTE | _READ | _READ_FOLDER  # dlopen maps what it may execute
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_SCOPES = 3  # abstract sockets, signals


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


_newest = 6  # the newest version that we make use of


def abi():
    """Return the version of Landlock that the kernel offers, 0 for none, 6 at most."""
    if not syscalls.supported():
        return 0
    try:
        return min(syscalls.call("landlock_create_ruleset", ctypes.c_void_p(), 0, 1), _newest)
    except OSError:
        return 0


def pretend(version):
    """Use no more than a version, as on an older kernel."""
    global _newest
    _newest = version


class Rules:
    """Which files stay reachable. Opened in the fork server, applied in a child.

    Parameters
    ----------
    readable : iterable of str
        Files and folders that may be read, with all beneath.
    listable : iterable of str
        Folders whose names may be listed, with all beneath.
    devices : iterable of str
        Files that may be read and written.
    """

    def __init__(self, readable, listable, devices):
        self.abi = abi()
        self._entries = [(_READING, _open(path)) for path in readable]
        self._entries += [(_READ_FOLDER, _open(path)) for path in listable]
        self._entries += [(_READ | _WRITE, _open(path)) for path in devices]

    def apply(self, *, readable=(), writable=()):
        """Restrict this process for good to the rules and these further folders."""
        files = (1 << 13) - 1
        for version, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
            files |= right if self.abi >= version else 0
        writing = _READING & ~_EXECUTE | _WRITE | _TRUNCATE | _REFER
        writing |= _REMOVE_FILE | _REMOVE_FOLDER | _MAKE_FILE | _MAKE_FOLDER
        ruleset = _create(self.abi, files)
        entries = self._entries + [(_READING, _open(path)) for path in readable]
        entries += [(writing, _open(path)) for path in writable]
        for access, descriptor in entries:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                access &= _ON_FILES
            rule = _Beneath(access & files, descriptor)
            syscalls.call("landlock_add_rule", ruleset, 1, ctypes.byref(rule), 0)
        _restrict(ruleset)


def keep_signals_inside():
    """Forbid this process and its children to signal any process outside of them.

    Returns
    -------
    bool
        Whether that holds, by attempt.
    """
    if abi() < 6:
        return False
    _restrict(_create(6, 0))
    return all(not _can_signal(pid) for pid in {1, os.getppid()})


def _can_signal(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _create(version, files):
    attributes = _Ruleset(
        files,
        3 if files and version >= 4 else 0,  # bind and connect TCP
        _SCOPES if version >= 6 else 0,
    )
    size = 8 if version < 4 else 16 if version < 6 else 24
    return syscalls.call("landlock_create_ruleset", ctypes.byref(attributes), size, 0)


def _restrict(ruleset):
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.call("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)


def _open(path):
    return os.open(path, os.O_PATH | os.O_CLOEXEC)
