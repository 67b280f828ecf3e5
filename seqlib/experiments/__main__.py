"""Rerun the scripts with all their seeds: ``python -m seqlib.experiments [name ...]``.

A call that was interrupted is continued by the same call: see :func:`record.compute`.
"""

import argparse
import importlib
import sys
import time

from seqlib.experiments import SCRIPTS
from seqlib.experiments.record import compute


def main(arguments):
    """Rerun the named scripts, all if none is named, and print how long each took."""
    parser = argparse.ArgumentParser(
        prog="python -m seqlib.experiments",
        description="Rerun the long computations with all their seeds, and write their "
        "records. The same call continues one that was interrupted.",
    )
    parser.add_argument("name", nargs="*", help=f"all if none is named: {', '.join(SCRIPTS)}")
    names = parser.parse_args(arguments).name
    unknown = sorted(set(names) - set(SCRIPTS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(SCRIPTS)}")
    total = 0.0
    for name in names or SCRIPTS:
        script = importlib.import_module(f"seqlib.experiments.{name}")
        start = time.perf_counter()
        before = compute(name, script)
        seconds = time.perf_counter() - start
        total += seconds
        kept = f", {before} of them from before" if before else ""
        print(f"{name:20} {len(script.SEEDS)} seeds  {seconds:8.1f} s{kept}", flush=True)
    print(f"{'total':20} {total:17.1f} s")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("interrupted; the same call goes on with the seeds that are missing")
