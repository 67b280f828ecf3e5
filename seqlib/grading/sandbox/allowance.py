"""How much memory the judge's own functions may take while student code calls them."""

import contextlib
import os
import resource

_PAGE = os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def memory_allowance(more):
    """Let this process take some bytes more than it has; beyond that, ``MemoryError``.

    Parameters
    ----------
    more : int
        Bytes of address space. What a function takes and gives back counts once.
    """
    before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", "rb") as file:
        limit = int(file.read().split()[0]) * _PAGE + more
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
