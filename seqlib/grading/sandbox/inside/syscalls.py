"""Numbers of system calls on x86-64 and aarch64, and calls by name through ctypes.

The kernel gives some protections no wrapper in the C library (Landlock, mount attributes), and
a seccomp filter compares numbers. Both need the table below; on another machine the levels that
need it are not offered.
Everything here is made at import time, in the fork server, because a child between fork and
its locks should do as little as it can.
"""

import ctypes
import os
import platform

MACHINE = platform.machine()
SYSTEM = platform.system()

# name = number on x86-64, number on aarch64
_BOTH = """
read=0,63  write=1,64  close=3,57  fstat=5,80  lseek=8,62  mmap=9,222  mprotect=10,226
munmap=11,215  brk=12,214  rt_sigaction=13,134  rt_sigprocmask=14,135  rt_sigreturn=15,139
pread64=17,67  pwrite64=18,68  readv=19,65  writev=20,66  sched_yield=24,124  mremap=25,216
msync=26,227  mincore=27,232  madvise=28,233  dup=32,23  nanosleep=35,101  getitimer=36,102
setitimer=38,103  getpid=39,172  sendto=44,206  recvfrom=45,207  recvmsg=47,212
shutdown=48,210  getsockname=51,204  getpeername=52,205  setsockopt=54,208
getsockopt=55,209  exit=60,93  wait4=61,260  uname=63,160  fcntl=72,25  flock=73,32
fsync=74,82  fdatasync=75,83  truncate=76,45  ftruncate=77,46  getcwd=79,17  chdir=80,49
fchdir=81,50  fchmod=91,52  umask=95,166  gettimeofday=96,169  getrlimit=97,163
getrusage=98,165  sysinfo=99,179  times=100,153  getuid=102,174  getgid=104,176
geteuid=107,175  getegid=108,177  setpgid=109,154  getppid=110,173  setsid=112,157
getgroups=115,158  getresuid=118,148  getresgid=120,150  getpgid=121,155  getsid=124,156
rt_sigpending=127,136  rt_sigtimedwait=128,137  rt_sigsuspend=130,133  sigaltstack=131,132
statfs=137,43  fstatfs=138,44  getpriority=140,141  setrlimit=160,164  gettid=186,178
futex=202,98  sched_getaffinity=204,123  getdents64=217,61  set_tid_address=218,96
restart_syscall=219,128  fadvise64=221,223  timer_create=222,107  timer_settime=223,110
timer_gettime=224,108  timer_getoverrun=225,109  timer_delete=226,111  clock_gettime=228,113
clock_getres=229,114  clock_nanosleep=230,115  exit_group=231,94  epoll_ctl=233,21
epoll_pwait=281,22  epoll_create1=291,20  mbind=237,235  get_mempolicy=239,236
set_mempolicy=238,237  waitid=247,95  openat=257,56  mkdirat=258,34  newfstatat=262,79
unlinkat=263,35  renameat=264,38  renameat2=316,276  linkat=265,37  symlinkat=266,36
readlinkat=267,78  fchmodat=268,53  faccessat=269,48  faccessat2=439,439  pselect6=270,72
ppoll=271,73  set_robust_list=273,99  fallocate=285,47  eventfd2=290,19
timerfd_create=283,85  timerfd_settime=286,86  timerfd_gettime=287,87  dup3=292,24
pipe2=293,59  preadv=295,69  pwritev=296,70  getcpu=309,168  getrandom=318,278
membarrier=324,283  copy_file_range=326,285  preadv2=327,286  pwritev2=328,287
statx=332,291  rseq=334,293  close_range=436,436  futex_waitv=449,449  utimensat=280,88
kill=62,129  tkill=200,130  tgkill=234,131  clone=56,220  clone3=435,435  openat2=437,437
socketpair=53,199  ioctl=16,29  prctl=157,167  prlimit64=302,261  mount=165,40
mount_setattr=442,442  pivot_root=155,41  umount2=166,39  unshare=272,97  capset=126,91
landlock_create_ruleset=444,444  landlock_add_rule=445,445  landlock_restrict_self=446,446
"""
# Calls that aarch64 replaced by newer ones before it began.
_X86_ONLY = """
open=2  stat=4  lstat=6  poll=7  access=21  pipe=22  select=23  dup2=33  pause=34  alarm=37
getdents=78  rename=82  mkdir=83  rmdir=84  creat=85  link=86  unlink=87  symlink=88
readlink=89  chmod=90  getpgrp=111  utime=132  arch_prctl=158  time=201  epoll_wait=232
epoll_create=213  utimes=235  eventfd=284  fork=57  vfork=58
"""


def _table():
    table = {"x86_64": {}, "aarch64": {}}
    for entry in (_BOTH + _X86_ONLY).split():
        name, _, numbers = entry.partition("=")
        for machine, number in zip(table, numbers.split(","), strict=False):
            table[machine][name] = int(number)
    return table


NUMBERS = _table()

if SYSTEM == "Linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long
    _libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47


def supported():
    """Whether this machine's numbers are known."""
    return SYSTEM == "Linux" and MACHINE in NUMBERS


def call(name, *arguments):
    """Make the system call ``name`` and return its result.

    Integers are passed as longs; strings as paths; ctypes objects as they are.

    Raises
    ------
    OSError
        With the call's name, if the kernel refuses.
    """
    converted = [
        ctypes.c_long(a)
        if isinstance(a, int)
        else ctypes.c_char_p(os.fsencode(a))
        if isinstance(a, str)
        else a
        for a in arguments
    ]
    result = _libc.syscall(ctypes.c_long(NUMBERS[MACHINE][name]), *converted)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option, *arguments):
    """Call ``prctl`` and return its result; raise OSError if the kernel refuses."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    result = _libc.prctl(option, *padded)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
    return result
