"""How much memory the judge's own functions may take while student code calls them."""

import contextlib
import os
import resource

_PAGE = os.sysconf("SC_PAGE_SIZE")
# What the library of NumPy's matrix products sets aside for a thread when it is first used;
# without it, it ends the process.
_FOR_A_THREAD = 1 << 26


@contextlib.contextmanager
def memory_allowance(more):
    """Let this process take some bytes more than it has; beyond that, ``MemoryError``.

    Parameters
    ----------
    more : int
        Bytes of address space, beside what threads of NumPy may need. What a function takes
        and gives back counts once.
    """
    before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", "rb") as file:
        limit = int(file.read().split()[0]) * _PAGE + more + _threads() * _FOR_A_THREAD
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _threads():
    wanted = os.environ.get("OPENBLAS_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else os.cpu_count() or 1
