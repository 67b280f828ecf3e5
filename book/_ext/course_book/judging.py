"""Judge the known mistakes anew: ``python -m course_book.judging [assignment or task ...]``."""

import sys
import time

from course_book import data
from course_book.kill_matrix import FILE, all_tasks, judge_task, load, write
from seqlib.exercises import ASSIGNMENTS


def main(names):
    """Judge the mistakes of the named assignments and tasks, or of all, and write the file."""
    tasks = all_tasks()
    unknown = set(names) - set(ASSIGNMENTS) - tasks.keys()
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; name assignments or tasks")
    path = data.ROOT / "book" / "data" / FILE
    found = load()["tasks"] if path.is_file() else {}
    for name, task in tasks.items():
        if not names or name in names or name.partition(".")[0] in names:
            start = time.perf_counter()
            found[name] = judge_task(task)
            seconds = time.perf_counter() - start
            print(
                f"{name:50} {len(task.misconceptions):3} mistakes {seconds:7.1f} s", flush=True
            )
    write({name: found[name] for name in tasks if name in found})


if __name__ == "__main__":
    main(sys.argv[1:])
