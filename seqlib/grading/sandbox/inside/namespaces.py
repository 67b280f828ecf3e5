"""Namespaces: an own file tree, process numbers, network, host name and users.

:func:`enter` runs in the supervisor, whose next child is process 1 of the new tree;
:func:`drop_privileges` runs in that child.
"""

import contextlib
import ctypes
import os
import socket

from . import syscalls
from .visible import DEVICES

_MOUNTS, _HOST, _IPC, _USERS, _PROCESSES, _NETWORK = (
    *(0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000),
)
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC, _BIND, _RECURSIVE = 1, 2, 4, 8, 4096, 16384
_PRIVATE = 1 << 18
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

HOME = "/home/student"
BUILD = "/course/site-packages"


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "mode", "users"))


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def enter(root, *, shown, hidden, links, build, size, entries):
    """Move this process into new namespaces and an own file tree.

    Parameters
    ----------
    root : str
        An empty folder, over which the new tree is mounted.
    shown, hidden : list of str
        What is bound read-only at its own path, and what of that is covered.
    links : list of tuple of str
        Links to make at the root, with their targets.
    build : str
        Folder of the student build, bound at ``BUILD``.
    size, entries : int
        Bytes and entries of the writable folder ``/home/student``.

    Raises
    ------
    OSError
        If the kernel refuses a step.
    """
    user, group = os.geteuid(), os.getegid()
    spaces = _MOUNTS | _HOST | _IPC | _PROCESSES | _NETWORK
    # Root keeps the outer users, so that it can become a user without privileges below.
    syscalls.call("unshare", spaces | (0 if user == 0 else _USERS))
    if user != 0:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    socket.sethostname("sandbox")
    _mount("none", "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,nr_inodes=4000,mode=755")
    _make_home(root, size, entries)  # first: what is shown may lie in /tmp or in this home
    for path in shown:
        _bind(path, root + path)
    _bind(build, root + BUILD)
    for path in hidden:
        if os.path.isdir(path):
            flags = _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXEC
            _mount("tmpfs", root + path, "tmpfs", flags, "size=4k,nr_inodes=2,mode=000")
        else:
            _mount("/dev/null", root + path, None, _BIND)
    for path, target in links:
        if not os.path.lexists(root + path):
            os.symlink(target, root + path)
    for path in DEVICES:
        _touch(root + path)
        _mount(path, root + path, None, _BIND)
    os.mkdir(f"{root}/.outside")
    syscalls.call("pivot_root", root, f"{root}/.outside")
    os.chdir("/")
    syscalls.call("umount2", "/.outside", _DETACH)
    os.rmdir("/.outside")
    _read_only("/", 0)
    os.chdir(HOME)


def drop_privileges(user):
    """Give up, for good, all that a process inside the namespaces might still hold.

    Root becomes ``user`` in a user namespace of its own that maps nobody: its limit on
    processes then counts this sandbox alone, and no file belongs to it but its home's.
    """
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        syscalls.call("unshare", _USERS)
    drop_capabilities()


def drop_capabilities():
    """Empty all capability sets of this process."""
    for capability in range(64):
        try:
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, capability)
        except OSError:
            break
    with contextlib.suppress(OSError):  # a kernel older than ambient capabilities
        syscalls.prctl(syscalls.PR_CAP_AMBIENT, 4)  # clear all
    header = _CapabilityHeader(0x20080522, 0)
    syscalls.call("capset", ctypes.byref(header), (ctypes.c_uint32 * 6)())


def _make_home(root, size, entries):
    """Make the writable folder; ``/tmp`` and ``/dev/shm`` share its quota."""
    home = root + HOME
    os.makedirs(home)
    flags = _NO_SUID | _NO_DEVICES | _NO_EXEC
    _mount("tmpfs", home, "tmpfs", flags, f"size={size},nr_inodes={entries},mode=1777")
    for path, inside in (("/tmp", ".tmp"), ("/dev/shm", ".shm")):
        os.mkdir(f"{home}/{inside}")
        os.chmod(f"{home}/{inside}", 0o1777)
        os.makedirs(root + path, exist_ok=True)
        _mount(f"{home}/{inside}", root + path, None, _BIND)


def _bind(path, target):
    if os.path.isdir(path):
        os.makedirs(target, 0o755, exist_ok=True)
    else:
        _touch(target)
    _mount(path, target, None, _BIND | _RECURSIVE)
    _read_only(target, _AT_RECURSIVE)


def _touch(path):
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o644))


def _mount(source, target, kind, flags, options=None):
    null = ctypes.c_char_p()
    try:
        syscalls.call("mount", source, target, kind or null, flags, options or null)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} on {target}") from None


def _read_only(path, flags):
    attributes = _Attributes(_READ_ONLY | _NO_SUID | _NO_DEVICES)
    size = ctypes.sizeof(attributes)
    syscalls.call("mount_setattr", _AT_FDCWD, path, flags, ctypes.byref(attributes), size)
