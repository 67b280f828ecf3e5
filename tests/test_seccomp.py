"""The filters of system calls, run by a small interpreter of BPF for both machines."""

import struct

import pytest

from seqlib.grading.sandbox.inside import seccomp, syscalls

ALLOW, DENY, KILL = 0x7FFF0000, 0x00050001, 0x80000000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def evaluate(program, number, arguments=(), machine="x86_64"):
    """Return what a filter answers to a system call."""
    data = struct.pack("<IIQ", number, AUDIT[machine], 0)
    data += b"".join(struct.pack("<Q", a) for a in (*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = list(struct.iter_unpack("<HBBI", program))
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code == 0x06:
            return constant
        else:
            holds = {
                0x15: accumulator == constant,
                0x35: accumulator >= constant,
                0x45: bool(accumulator & constant),
            }[code]
            at += if_true if holds else if_false


def test_numbers():
    x86, arm = syscalls.NUMBERS["x86_64"], syscalls.NUMBERS["aarch64"]
    assert (x86["read"], x86["openat"], x86["clone"], x86["exit_group"]) == (0, 257, 56, 231)
    assert (arm["read"], arm["openat"], arm["clone"], arm["exit_group"]) == (63, 56, 220, 94)
    assert set(arm) < set(x86)
    for numbers in (x86, arm):
        assert len(set(numbers.values())) == len(numbers)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_a_list_and_nothing_else(machine):
    numbers = syscalls.NUMBERS[machine]
    program = seccomp.allow_list(machine=machine)
    for name in ("read", "mmap", "openat", "futex", "kill", "exit_group", "fchmod"):
        assert evaluate(program, numbers[name], machine=machine) == ALLOW, name
    for name in ("mount", "unshare", "pivot_root", "landlock_restrict_self", "capset"):
        assert evaluate(program, numbers[name], machine=machine) == DENY, name
    allowed = sum(evaluate(program, n, machine=machine) == ALLOW for n in range(600))
    assert 100 < allowed < len(numbers)
    other = "aarch64" if machine == "x86_64" else "x86_64"
    assert evaluate(program, 0, machine=other) == KILL


FORBIDDEN = {  # x86-64
    **{"socket": 41, "connect": 42, "bind": 49, "sendmsg": 46, "execve": 59, "execveat": 322},
    **{"ptrace": 101, "process_vm_readv": 310, "pidfd_open": 434, "pidfd_getfd": 438},
    **{"setns": 308, "chroot": 161, "bpf": 321, "keyctl": 250, "perf_event_open": 298},
    **{"userfaultfd": 323, "io_uring_setup": 425, "memfd_create": 319, "shmget": 29},
    **{"mq_open": 240, "setuid": 105, "setresuid": 117, "chown": 92, "setxattr": 188},
    **{
        "seccomp": 317,
        "personality": 135,
        "kexec_load": 246,
        "init_module": 175,
        "reboot": 169,
    },
    **{"open_by_handle_at": 304, "mknod": 133, "rt_sigqueueinfo": 129, "setpriority": 141},
    "x32 read": 0x40000000,
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_dangerous_calls_are_not_on_the_list(name):
    assert evaluate(seccomp.allow_list(machine="x86_64"), FORBIDDEN[name]) == DENY


def test_arguments_decide():
    program, numbers = seccomp.allow_list(machine="x86_64"), syscalls.NUMBERS["x86_64"]

    def answer(name, *arguments):
        return evaluate(program, numbers[name], arguments)

    assert answer("clone", 0x3D0F00) == ALLOW  # a thread
    assert answer("clone", 17) == ALLOW  # a fork
    for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x8000):
        assert answer("clone", flag | 17) == DENY
    assert answer("clone3") == 0x00050000 | 38
    assert answer("socketpair", 1, 1 | 0x80000) == ALLOW
    assert answer("socketpair", 2, 1) == DENY
    assert answer("socketpair", 1, 2) == DENY
    assert answer("ioctl", 0, 0x5401) == ALLOW
    assert answer("ioctl", 0, 0x5412) != ALLOW  # typing into a terminal
    assert answer("fcntl", 0, 4) == ALLOW
    assert answer("fcntl", 0, 8) == DENY  # signals to another process
    assert answer("rt_sigaction", 2) == ALLOW
    assert answer("rt_sigaction", 17) == DENY  # children whose time nobody counts
    assert answer("prctl", 15) == ALLOW
    assert answer("prctl", 1) == DENY
    assert answer("prlimit64", 0) == ALLOW
    assert answer("prlimit64", 1234) == DENY


def test_filters_without_signals_and_metadata():
    numbers = syscalls.NUMBERS["x86_64"]
    program = seccomp.allow_list(machine="x86_64", signals=False, metadata=False)
    for name in ("kill", "tkill", "tgkill", "chmod", "utimensat", "truncate"):
        assert evaluate(program, numbers[name]) == DENY
    assert evaluate(program, numbers["read"]) == ALLOW


def test_a_task_may_start_threads_only():
    program, numbers = seccomp.no_fork(machine="x86_64"), syscalls.NUMBERS["x86_64"]
    assert evaluate(program, numbers["clone"], (0x3D0F00,)) == ALLOW
    for name in ("clone", "fork", "vfork"):
        assert evaluate(program, numbers[name], (17,)) == 0x00050000 | 11
    assert evaluate(program, numbers["read"]) == ALLOW
