"""Filters of system calls: an allow-list for student code, as a BPF program.

A filter is a list of 8-byte instructions that the kernel runs before each system call of the
process and its children, for good. Ours allow some 160 calls that Python, NumPy, PyTorch and
matplotlib need, some of them with certain arguments only, and answer all others with EPERM:
no socket, exec, ptrace, mount, namespace, key, BPF or memory file.
"""

import ctypes
import struct

from . import syscalls

# What is on the list although some argument decides.
_WITH_ARGUMENTS = {
    *("clone", "clone3", "openat2", "socketpair", "ioctl", "prctl", "prlimit64", "fcntl"),
    *("fork", "vfork", "rt_sigaction"),
}
# For the sandbox itself, before the filter.
_OURS = {
    *("mount", "mount_setattr", "pivot_root", "umount2", "unshare", "capset"),
    *("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"),
}
_SIGNALS = {"kill", "tkill", "tgkill"}
# Landlock does not cover these, so where it is the only guard of files they are denied.
_METADATA = {"chmod", "fchmod", "fchmodat", "utime", "utimes", "utimensat", "truncate"}

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # x86-64 offers a second numbering above this bit

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOTTY, _ENOSYS, _EAGAIN = (_ERROR | n for n in (1, 25, 38, 11))

_SIGCHLD = 17
_CLONE_THREAD = 0x00010000
# New namespaces, a parent other than the caller, and tracing.
_CLONE_DENIED = 0x7E020080 | 0x00008000 | 0x00002000 | 0x00800000
_IOCTLS = (0x5401, 0x5413, 0x5421, 0x5450, 0x5451, 0x541B)  # is it a terminal; close, block
_PRCTLS = (15, 16, 3, 22, 38, 0x53564D41)  # names, dumpable?, a further filter, name of memory
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032, 1033, 1034)  # no F_SETOWN


def allow_list(*, signals=True, metadata=True, machine=None):
    """Return the filter that student code runs under.

    Parameters
    ----------
    signals : bool
        Whether processes may signal. Without a pid namespace or Landlock's scope a signal
        could reach the judge.
    metadata : bool
        Whether ``chmod``, ``utime`` and their kind are allowed.
    machine : str, optional
        ``"x86_64"`` or ``"aarch64"``; this machine if left out.

    Returns
    -------
    bytes
        A BPF program.
    """
    machine = machine or syscalls.MACHINE
    numbers = syscalls.NUMBERS[machine]
    left_out = (
        _OURS
        | _WITH_ARGUMENTS
        | (set() if signals else _SIGNALS)
        | (set() if metadata else _METADATA)
    )
    program = [
        _step(_LOAD, 4),
        _step(_IF_EQUAL, _AUDIT[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, 0),
    ]
    if machine == "x86_64":
        program += [_step(_IF_AT_LEAST, _X32, 0, 1), _step(_RETURN, _EPERM)]
    for name, number in numbers.items():
        if name not in left_out:
            program += _when(number, [_step(_RETURN, _ALLOW)])
    for name in ("fork", "vfork"):
        if name in numbers:
            program += _when(numbers[name], [_step(_RETURN, _ALLOW)])
    # The C library falls back to clone and openat where these do not exist; the arguments of
    # these lie in memory, where a filter cannot see them.
    for name in ("clone3", "openat2"):
        program += _when(numbers[name], [_step(_RETURN, _ENOSYS)])
    program += _when(
        numbers["clone"],
        [
            _argument(0),
            _step(_IF_ANY_BIT, _CLONE_DENIED, 0, 1),
            _step(_RETURN, _EPERM),
            _step(_RETURN, _ALLOW),
        ],
    )
    program += _when(
        numbers["socketpair"],  # AF_UNIX and SOCK_STREAM only: a pipe, as asyncio uses it
        [
            _argument(0),
            _step(_IF_EQUAL, 1, 0, 3),
            _argument(1),
            _step(_AND, 0xF),
            _step(_IF_EQUAL, 1, 1, 0),
            _step(_RETURN, _EPERM),
            _step(_RETURN, _ALLOW),
        ],
    )
    # Children whose end is ignored are collected by the kernel, and the time that they used is
    # counted nowhere.
    program += _when(
        numbers["rt_sigaction"],
        [
            _argument(0),
            _step(_IF_EQUAL, _SIGCHLD, 0, 1),
            _step(_RETURN, _EPERM),
            _step(_RETURN, _ALLOW),
        ],
    )
    program += _when(numbers["ioctl"], _one_of(1, _IOCTLS, _ENOTTY))
    program += _when(numbers["prctl"], _one_of(0, _PRCTLS, _EPERM))
    program += _when(numbers["fcntl"], _one_of(1, _FCNTLS, _EPERM))
    program += _when(numbers["prlimit64"], _one_of(0, (0,), _EPERM))
    return b"".join([*program, _step(_RETURN, _EPERM)])


def no_fork(*, machine=None):
    """Return the filter of a task's process: threads, but no further processes.

    Under it one limit on address space bounds the memory of the whole task.
    """
    numbers = syscalls.NUMBERS[machine or syscalls.MACHINE]
    program = [_step(_LOAD, 0)]
    program += _when(
        numbers["clone"],
        [
            _argument(0),
            _step(_IF_ANY_BIT, _CLONE_THREAD, 1, 0),
            _step(_RETURN, _EAGAIN),
            _step(_RETURN, _ALLOW),
        ],
    )
    for name in ("fork", "vfork"):
        if name in numbers:
            program += _when(numbers[name], [_step(_RETURN, _EAGAIN)])
    return b"".join([*program, _step(_RETURN, _ALLOW)])


class Filter:
    """A program ready to be loaded: made in the fork server, applied in a child."""

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    def __init__(self, program):
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._program = self._Program(len(program) // 8, ctypes.addressof(self._buffer))

    def apply(self):
        """Load the filter into this process, for good."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        syscalls.prctl(22, 2, ctypes.addressof(self._program))  # PR_SET_SECCOMP, by filter


def _step(code, constant, if_true=0, if_false=0):
    return struct.pack("<HBBI", code, if_true, if_false, constant)


def _argument(index):
    """Load the lower half of an argument."""
    return _step(_LOAD, 16 + 8 * index)


def _when(number, steps):
    """Run ``steps``, which end in a return, if the call has this number."""
    return [_step(_IF_EQUAL, number, 0, len(steps)), *steps]


def _one_of(index, allowed, otherwise):
    steps = [_argument(index)]
    for value in allowed:
        steps += [_step(_IF_EQUAL, value, 0, 1), _step(_RETURN, _ALLOW)]
    return [*steps, _step(_RETURN, otherwise)]
