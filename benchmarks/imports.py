"""Start-up time of the library: ``python -m benchmarks.imports``.

Each round starts one interpreter that imports NumPy and one that imports ``seqlib.np`` as well,
in turn; the median over rounds of the difference of their CPU times counts.
"""

import resource
import statistics
import subprocess
import sys


def rows():
    """Return ``(name, milliseconds, target, sense)``."""
    return [
        (
            "import seqlib.np beyond numpy, milliseconds",
            1e3 * beyond("import numpy", "import numpy, seqlib.np"),
            30.0,
            "at most",
        )
    ]


def beyond(reference, statement, rounds=21):
    """Return by how many CPU seconds one statement exceeds another in a new interpreter."""
    return statistics.median(
        cpu_seconds(statement) - cpu_seconds(reference) for _ in range(rounds)
    )


def cpu_seconds(statement):
    """Return the CPU time of a new interpreter that runs one statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return user + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    for name, value, target, sense in rows():
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
