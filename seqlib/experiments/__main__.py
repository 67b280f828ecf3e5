"""Rerun the scripts: ``python -m seqlib.experiments [name ...]``."""

import importlib
import sys
import time

from seqlib.experiments import SCRIPTS
from seqlib.experiments.record import write


def main(names):
    """Rerun the named scripts, all if none is named, and print how long each took."""
    unknown = sorted(set(names) - set(SCRIPTS))
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(SCRIPTS)}")
    total = 0.0
    for name in names or SCRIPTS:
        script = importlib.import_module(f"seqlib.experiments.{name}")
        start = time.perf_counter()
        by_seed = {seed: script.run(script.INPUTS, seed) for seed in script.SEEDS}
        write(name, script.INPUTS, by_seed, getattr(script, "PACKAGES", ("numpy",)))
        seconds = time.perf_counter() - start
        total += seconds
        print(f"{name:20} {len(script.SEEDS)} seeds  {seconds:8.1f} s", flush=True)
    print(f"{'total':20} {total:17.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
