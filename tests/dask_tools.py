"""A Dask cluster of processes of their own, as an instructor starts one, and graders for it."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tiny_course import tiny_grader

TESTS = Path(__file__).resolve().parent
PATIENCE = 60.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A scheduler and workers on loopback, each of which can be killed and started again."""

    def __init__(self, folder, *, protocol="tcp", environment=None, path=()):
        self.folder, self.protocol = Path(folder), protocol
        self.address = f"{protocol}://127.0.0.1:{free_port()}"
        paths = [*map(str, path), str(TESTS), os.environ.get("PYTHONPATH", "")]
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": "1",
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",  # as the book says
            **(environment or {}),
        }
        self.scheduler, self.workers = None, []

    def start_scheduler(self):
        port = self.address.rpartition(":")[2]
        self.scheduler = self._start(
            "dask_scheduler",
            *("--host", "127.0.0.1", "--port", port, "--no-dashboard"),
            *("--protocol", self.protocol),
            *("--idle-timeout", "15m"),  # if it is left behind by tests that were killed
        )
        self._wait(self.scheduler, "Scheduler at:")

    def start_worker(self, *, nanny=False, threads=1, environment=None):
        worker = self._start(
            "dask_worker",
            self.address,
            *("--nthreads", str(threads), "--no-dashboard", "--death-timeout", str(PATIENCE)),
            "--nanny" if nanny else "--no-nanny",
            *("--local-directory", str(self.folder / "dask")),
            environment=environment,
        )
        self.workers.append(worker)
        self._wait(worker, "Registered to:")
        return worker

    def _start(self, module, *arguments, environment=None):
        log = self.folder / f"{module}-{time.monotonic_ns()}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
                env=self._environment | (environment or {}),
                cwd=self.folder,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process.log = log
        return process

    def _wait(self, process, line):
        deadline = time.monotonic() + PATIENCE
        while not re.search(line, process.log.read_text()):
            assert process.poll() is None, process.log.read_text()
            assert time.monotonic() < deadline, process.log.read_text()
            time.sleep(0.05)

    def kill(self, process):
        """End a process as the lack of memory or of power does."""
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process in self.workers:
            self.workers.remove(process)

    def descendants(self):
        """Return the numbers of all processes that descend from the workers."""
        found, pending = set(), [worker.pid for worker in self.workers]
        while pending:
            # A thread that starts a process is its parent.
            for path in Path(f"/proc/{pending.pop()}/task").glob("*/children"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    children = set(map(int, path.read_text().split()))
                    pending += children
                    found |= children
        return found

    def logs(self):
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def close(self):
        for process in (*self.workers, self.scheduler):
            if process is None or process.poll() is not None:
                continue
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def cluster(folder, *, workers=2, **options):
    """Yield a running cluster."""
    folder.mkdir(parents=True, exist_ok=True)
    running = Cluster(folder, **options)
    try:
        running.start_scheduler()
        for _ in range(workers):
            running.start_worker()
        yield running
    finally:
        running.close()


@contextlib.contextmanager
def copy_grader(course, *, trust_students, level):
    """Give a Dask worker a grader of its copy of the tiny course."""
    assert trust_students
    assert level is None
    with tiny_grader(course.root, fleeting=course.fleeting) as grader:
        yield grader


@contextlib.contextmanager
def slow_grader(course, *, folder, seconds, **options):
    """The same, which notes in a folder when it begins and ends, and takes its time."""
    with copy_grader(course, **options) as grader:
        grade = grader.grade

        def slow(student, **how):
            note = f"{student}-{os.getpid()}-{time.monotonic_ns()}"
            (Path(folder) / f"began-{note}").touch()
            time.sleep(seconds)
            record = grade(student, **how)
            (Path(folder) / f"ended-{note}").touch()
            return record

        grader.grade = slow
        yield grader


@contextlib.contextmanager
def reluctant_grader(course, *, ending, **options):
    """The same, whose process takes its time to end too, as one with a large sandbox does."""
    with slow_grader(course, **options) as grader:
        try:
            yield grader
        finally:
            time.sleep(ending)
