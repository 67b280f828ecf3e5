"""Compare running times on a machine that does other things too."""

import platform
import statistics
import time
from pathlib import Path

import numpy as np


def interleave(cases, rounds, *, warm=2):
    """Run every case once per round, in turn; return the process CPU times of each."""
    times = {name: [] for name in cases}
    for i in range(warm + rounds):
        for name, run in cases.items():
            before = time.process_time()
            run()
            if i >= warm:
                times[name].append(time.process_time() - before)
    return times


def ratio(times, name, reference):
    """Return the median over rounds of one case's time over another's."""
    return statistics.median(a / b for a, b in zip(times[name], times[reference], strict=True))


def processor():
    """Return the processor's name and the vector instructions that NumPy found in it.

    Ratios depend on them: libraries gain by wide instructions to different degrees.
    """
    name, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.exists():  # Linux, where the platform module knows the family alone
        lines = info.read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
        name = names[0] if names else name
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{name} ({', '.join(found) or 'baseline instructions'})"
