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
from multiprocessing import connection, get_context, resource_tracker

ATTEMPTS = 3
JOB_SECONDS = 1800.0
# One thread each: as many workers as cores are busy already.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MASKS = hasattr(signal, "pthread_sigmask")  # not on Windows


@dataclass(frozen=True)
class Failure:
    """A job that failed every time; the message is of the last attempt."""

    message: str


def run_jobs(
    make_worker, jobs, *, workers=1, attempts=ATTEMPTS, seconds=JOB_SECONDS, meanwhile=None
):
    """Do jobs in worker processes, which start at once.

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
    meanwhile : callable, optional
        ``meanwhile()`` is called while the processes import what they need, and returns what
        ``make_worker`` gets as its argument.

    Returns
    -------
    generator
        Of pairs ``job, result``. The result may be a :class:`Failure`. When it is closed, or
        the loop over it is left by an exception, all processes are ended.

    Raises
    ------
    ValueError
        If ``workers`` is less than 1.
    RuntimeError
        If a worker cannot start; the message says why.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    running = _run(make_worker, jobs, workers, attempts, seconds, meanwhile)
    next(running)
    return running


def _run(make_worker, jobs, workers, attempts, seconds, meanwhile):
    """Start the workers, yield None, then yield the results."""
    waiting = deque((job, 1) for job in jobs)
    pool = []
    try:
        while len(pool) < min(workers, len(waiting)):
            pool.append(WorkerProcess(make_worker, None))
        arguments = () if meanwhile is None else (meanwhile(),)
        for worker in pool:
            worker.begin(arguments)
            worker.give(*waiting.popleft())
        yield None
        while waiting or any(worker.busy for worker in pool):
            if waiting and len(pool) < workers and not any(w.idle for w in pool):
                pool.append(WorkerProcess(make_worker, arguments))
                continue
            _hand_out(pool, waiting)
            ready = connection.wait([w.pipe for w in pool], timeout=1.0)
            finished = []
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
                    finished.append((job, outcome))
            # Before the results are used, which takes a while too.
            _hand_out(pool, waiting)
            yield from finished
    finally:
        for worker in pool:
            worker.end()
        for worker in pool:
            worker.join()


def _hand_out(pool, waiting):
    for worker in pool:
        if worker.idle and waiting:
            worker.give(*waiting.popleft())


class WorkerProcess:
    """A worker process as the parent sees it.

    Parameters
    ----------
    make_worker : callable
        As :func:`run_jobs` takes it.
    arguments : tuple or None
        Of ``make_worker``; None if :meth:`begin` will give them.
    """

    def __init__(self, make_worker, arguments=()):
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(make_worker, theirs), daemon=True)
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        try:
            with _no_interrupt():
                self._process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()
        self._job, self._attempt, self._since = None, 0, 0.0
        self.alive, self.idle, self.busy = True, False, False
        self._ready = False
        if arguments is not None:
            self.begin(arguments)

    def begin(self, arguments):
        """Let the process make its worker, which it has waited for."""
        with contextlib.suppress(OSError):  # a dead worker is noticed when it is read from
            self.pipe.send(arguments)

    def give(self, job, attempt):
        """Send a job, which may be before the process is ready for it."""
        self._job, self._attempt, self._since = job, attempt, time.monotonic()
        self.idle, self.busy = False, True
        with contextlib.suppress(OSError):  # a dead worker is noticed when it is read from
            self.pipe.send(job)

    def do(self, job, seconds=JOB_SECONDS):
        """Return the result of one job, or a :class:`Failure`, when it is there.

        The process has ended after a failure if ``alive`` is false.

        Raises
        ------
        RuntimeError
            If the process cannot start.
        """
        self.give(job, 1)
        while True:
            left = max(self._since + seconds - time.monotonic(), 0.0)
            ready = connection.wait([self.pipe], timeout=left)
            done = self.take() if ready else self.give_up(seconds)
            if done is not None:
                return done[2]

    def take(self):
        """Return ``job, attempt, outcome`` if what is there is one, else None."""
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            self.end()
            self.join()
            message = f"the worker process ended ({_how(self._process.exitcode)})"
            if not self._ready:
                raise RuntimeError(f"a worker could not start: {message}") from None
            return self._finish(Failure(message))
        if kind == "cannot start":
            raise RuntimeError(f"a worker could not start: {value}")
        if kind == "ready":
            self._ready, self.idle = True, not self.busy
            return None
        self.idle = True
        return self._finish(value if kind == "done" else Failure(value))

    def give_up(self, seconds):
        """End the process with its job, and return that as ``take`` does."""
        self.end()
        return self._finish(Failure(f"no result after {seconds:g} s"))

    def overdue(self, seconds):
        """Whether the job has taken longer than some seconds."""
        return self.busy and time.monotonic() - self._since > seconds

    def _finish(self, outcome):
        self.busy = False
        return self._job, self._attempt, outcome

    def interrupt(self):
        """End the process while another thread waits for a job of it, which then fails."""
        self._process.terminate()

    def end(self):
        """Ask the process to end, by the end of its pipe if it waits for a job there."""
        self.alive = self.idle = False
        self.pipe.close()
        if self.busy or not self._ready:
            self._process.terminate()

    def join(self):
        """Wait until the process has ended, and end it by force if need be."""
        for stop in (self._process.terminate, self._process.kill):
            self._process.join(10)
            if not self._process.is_alive():
                return
            stop()
        self._process.join()


def _work(make_worker, pipe):
    """Do jobs until the parent closes the pipe or ends."""
    # Ctrl-C reaches every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _MASKS:  # a student's code in this process is interrupted at its time limit
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # The end of a worker must reach its sandbox, so it is not to be sudden.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stack:
        try:
            do = stack.enter_context(make_worker(*pipe.recv()))
        except EOFError:  # the run has ended before it began
            return
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


@contextlib.contextmanager
def _no_interrupt():
    """Let processes that are started now receive no Ctrl-C before they ignore it.

    Each would write a traceback in the middle of what it imports. The parent receives its own
    at the end of this context.
    """
    if not _MASKS:
        yield
        return
    resource_tracker.ensure_running()  # its start, with that of a process, unblocks Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(code):
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
