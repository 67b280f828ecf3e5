"""A Dask cluster beside local workers: ``python -m benchmarks.grading_cluster [--n 200]``.

The same submissions are graded by two local workers and by a cluster of two Dask workers on
this machine, which is up before; everything else of the command counts. Both are run twice in
turn, and the quicker run of each counts, since what else the machine does only makes a run
slower. The CPU time of all processes, those of the cluster included, depends less on that. A
second class says by how much the memory of the coordinator grows.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import grading_courses as courses
from benchmarks.grading_runs import free_cores, grade, scores

ROUNDS = 2
CORES = 1.6  # that must be free where the two are compared


def rows(n=200, many=1000):
    """Return ``(name, value, target, sense)`` for each figure that has a target."""
    sys.path.append(str(courses.ROOT / "tests"))
    from dask_tools import cluster

    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        cluster(Path(folder) / "cluster") as running,
    ):
        folder = Path(folder)
        return [*_times(folder, running, n), _memory(folder, running.address, many)]


def _times(folder, running, n):
    free = free_cores()
    clocks, cpus, points = {"local": [], "cluster": []}, {"local": [], "cluster": []}, {}
    for number in range(ROUNDS):
        for kind, dask in (("local", None), ("cluster", running.address)):
            root = folder / f"{kind}-{number}"
            name, environment = courses.attention(root, n)
            before = _cpu(running)
            cost = grade(root, name, environment, workers=2, dask=dask)
            clocks[kind].append(cost.clock)
            cpus[kind].append(cost.cpu + (_cpu(running) - before if dask else 0.0))
            points[kind] = scores(root, name)
            assert len(points[kind]) == n, f"{kind}: {len(points[kind])} of {n}"
            shutil.rmtree(root)
    assert points["cluster"] == points["local"]
    wanted = "at most" if free >= CORES else f"({free:.1f} cores free: not compared with)"
    what = f"of {n} submissions of attention, 2 Dask workers / 2 local workers"
    ratios = [min(times["cluster"]) / min(times["local"]) for times in (clocks, cpus)]
    return [
        (f"clock {what}", ratios[0], 1.15, wanted),
        (f"CPU time {what}", ratios[1], 1.15, "at most"),
    ]


def _cpu(running):
    """Return the CPU seconds of a cluster's processes and of theirs that have ended."""
    total = 0
    for process in (running.scheduler, *running.workers):
        stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, stat[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def _memory(folder, address, many):
    root = folder / "many"
    name, environment = courses.attention(root, many)
    cost = grade(root, name, environment, dask=address)
    assert len(scores(root, name)) == many
    return (
        f"MiB that the coordinator grows while a cluster grades {many} submissions",
        cost.grown_since_first,
        400,
        "at most",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare a Dask cluster with local workers.")
    parser.add_argument("--n", type=int, default=200, help="submissions of the comparison")
    parser.add_argument("--many", type=int, default=1000, help="submissions of the large class")
    options = parser.parse_args()
    for name, value, target, sense in rows(options.n, options.many):
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
