"""Compare running times on a machine that does other things too."""

import statistics
import time


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
