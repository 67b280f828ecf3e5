"""Worker processes that survive whatever happens to one job.

The order in which results come is not that of the jobs; nothing else depends on the number of
workers.
"""

import contextlib
import os
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing import connection, get_context

ATTEMPTS = 3
JOB_SECONDS = 1800.0
# One thread each: as many workers as cores are busy already.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Failure:
    """A job that failed every time; the message is of the last attempt."""

    message: str


def run_jobs(make_worker, jobs, *, workers=1, attempts=ATTEMPTS, seconds=JOB_SECONDS):
    """Do jobs in worker processes.

    Parameters
    ----------
    make_worker : callable
        ``make_worker()`` is called once in each process and returns a context manager, whose
        value is a function of one job. It and the jobs are pickled.
    jobs : iterable
        What the functions get.
    workers : int
        Number of processes; no more are started than there are jobs.
    attempts : int
        How often a job is tried that raises, ends its process, or hangs.
    seconds : float
        After which a job counts as hanging.

    Yields
    ------
    job, result
        The result may be a :class:`Failure`. If the loop over them is left early, by Ctrl-C
        for instance, all processes are ended.

    Raises
    ------
    ValueError
        If ``workers`` is less than 1.
    RuntimeError
        If a worker cannot start; the message says why.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    waiting = deque((job, 1) for job in jobs)
    pool = []
    try:
        while waiting or any(worker.busy for worker in pool):
            if waiting and len(pool) < workers and not any(w.idle for w in pool):
                pool.append(_Process(make_worker))
                continue
            for worker in pool:
                if worker.idle and waiting:
                    worker.give(*waiting.popleft())
            ready = connection.wait([w.pipe for w in pool], timeout=1.0)
            for worker in list(pool):
                if worker.pipe not in ready and not worker.overdue(seconds):
                    continue
                done = worker.take() if worker.pipe in ready else worker.give_up(seconds)
                if not worker.alive:
                    pool.remove(worker)
                if done is None:
                    continue
                job, attempt, outcome = done
                if isinstance(outcome, Failure) and attempt < attempts:
                    waiting.append((job, attempt + 1))
                else:
                    yield job, outcome
    finally:
        for worker in pool:
            worker.end()
        for worker in pool:
            worker.join()


class _Process:
    """A worker process as the parent sees it."""

    def __init__(self, make_worker):
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(make_worker, theirs), daemon=True)
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        try:
            self._process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()
        self._job, self._attempt, self._since = None, 0, 0.0
        self.alive, self.idle, self.busy = True, False, False

    def give(self, job, attempt):
        self._job, self._attempt, self._since = job, attempt, time.monotonic()
        self.idle, self.busy = False, True
        with contextlib.suppress(OSError):  # a dead worker is noticed when it is read from
            self.pipe.send(job)

    def take(self):
        """Return ``job, attempt, outcome`` if what is there is one, else None."""
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            self.end()
            self.join()
            message = f"the worker process ended ({_how(self._process.exitcode)})"
            if not self.busy:
                raise RuntimeError(f"a worker could not start: {message}") from None
            return self._finish(Failure(message))
        if kind == "cannot start":
            raise RuntimeError(f"a worker could not start: {value}")
        self.idle = True
        if kind == "ready":
            return None
        return self._finish(value if kind == "done" else Failure(value))

    def give_up(self, seconds):
        """End the process with its job, and return that as ``take`` does."""
        self.end()
        return self._finish(Failure(f"no result after {seconds:g} s"))

    def overdue(self, seconds):
        return self.busy and time.monotonic() - self._since > seconds

    def _finish(self, outcome):
        self.busy = False
        return self._job, self._attempt, outcome

    def end(self):
        self.alive = self.idle = False
        self.pipe.close()
        self._process.terminate()

    def join(self):
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(make_worker, pipe):
    """Do jobs until the parent closes the pipe or ends."""
    # Ctrl-C reaches every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The end of a worker must reach its sandbox, so it is not to be sudden.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        try:
            do = stack.enter_context(make_worker())
        except Exception as error:
            pipe.send(("cannot start", f"{type(error).__name__}: {error}"))
            return
        answer = ("ready", None)
        while True:
            try:
                pipe.send(answer)
                job = pipe.recv()
            except (EOFError, OSError):
                return
            try:
                answer = ("done", do(job))
            except Exception as error:
                answer = ("failed", f"{type(error).__name__}: {error}")


def _how(code):
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
