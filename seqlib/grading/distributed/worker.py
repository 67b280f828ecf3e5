"""What runs in a Dask worker.

A Dask worker has one or more threads, and each gets a process that grades, started as
:mod:`seqlib.grading.pool` starts those of one machine. So a submission that breaks its process
breaks no Dask worker, and one that hangs is ended.
"""

import asyncio
import functools
import multiprocessing
import shutil
import tempfile
import threading

from distributed import WorkerPlugin, get_worker
from distributed.worker import WORKER_ANY_RUNNING as RUNNING

from seqlib.grading.distributed.copies import copy_grader, fingerprint
from seqlib.grading.pool import JOB_SECONDS, Failure, WorkerProcess
from seqlib.grading.sandbox.isolation import require_isolation

# After which the processes end that wait for a job: their run was killed, or is elsewhere.
IDLE_SECONDS = 600.0
# How long, and how often, the tasks of a loop that ends get time for their own cleaning up.
CANCEL_SECONDS = 0.5
CANCELLATIONS = 6
_ENDED = Failure("the run has ended")


class Grading(WorkerPlugin):
    """Gives a Dask worker what it needs of the course, once, and the processes that grade.

    Parameters
    ----------
    name : str
        Name of the plugin, another one for each run.
    material : seqlib.grading.distributed.copies.Material
        Of the course.
    seconds : float
        After which a job counts as hanging.
    """

    def __init__(self, name, material, *, seconds=JOB_SECONDS):
        self.name = name
        self._material, self._seconds = material, seconds

    def setup(self, worker):
        """Prepare for jobs. Dask calls this once in each worker, also in a late one."""
        # Dask makes its workers daemons, which Python forbids to have children because it would
        # not end them. Ours end when their pipe does.
        multiprocessing.current_process().daemon = False
        # Dask removes this folder for a worker that was killed, when the next one starts.
        self._folder = tempfile.mkdtemp(prefix="seqlib-", dir=worker.local_directory)
        self._lock = threading.Lock()
        self._idle, self._busy, self._closed = [], set(), False
        self._alarm, self._run_ended = None, False
        self._guard = asyncio.ensure_future(self._wait_for_end(worker))

    async def teardown(self, worker):
        """End the processes. Dask calls this when a run or a worker ends."""
        if worker.status in RUNNING:
            self._run_ended = True
            self._guard.cancel()
        await asyncio.to_thread(self._end)

    async def _wait_for_end(self, worker):
        """End what is left when the event loop is ended before the worker is.

        On SIGTERM, Dask cancels every task of its loop once. If the worker was closing then,
        as it does when its scheduler goes away, the task that closes it is cancelled in the
        middle, here where it waits for our processes, and all others wait for the end of that
        task: for ever, with the processes. So they are cancelled again.
        """
        try:
            await worker.finished()
        except asyncio.CancelledError:
            if not self._run_ended:
                self._end()
                await _cancel_others()
            raise

    def _end(self):
        """End all processes, also those that grade, and remove the copy of the course."""
        with self._lock:
            self._closed = True
            busy = list(self._busy)
        for process in busy:
            process.interrupt()
        self._end_idle()
        for process in busy:
            process.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def grade(self, job):
        """Return the :class:`Graded` of a job, or a :class:`Failure`.

        Raises
        ------
        RuntimeError
            If no process can start.
        """
        with self._lock:
            if self._closed:
                return _ENDED
            if self._alarm is not None:
                self._alarm.cancel()
            # Started under the lock: that changes the environment for a moment.
            process = self._idle.pop() if self._idle else self._new_process()
            self._busy.add(process)
        try:
            return process.do(job, self._seconds)
        except RuntimeError:
            if self._closed:
                return _ENDED
            raise
        finally:
            self._give_back(process)

    def _new_process(self):
        return WorkerProcess(functools.partial(copy_grader, self._material, self._folder))

    def _give_back(self, process):
        with self._lock:
            self._busy.discard(process)
            keep = process.alive and not self._closed
            if keep:
                self._idle.append(process)
            if not self._busy and not self._closed:
                self._alarm = threading.Timer(IDLE_SECONDS, self._end_idle)
                self._alarm.daemon = True
                self._alarm.start()
        if not keep:
            process.end()
            process.join()

    def _end_idle(self):
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()
            processes, self._idle = self._idle, []
        for process in processes:
            process.end()
        for process in processes:
            process.join()


async def _cancel_others():
    """Cancel the tasks that wait although the event loop ends."""
    for _ in range(CANCELLATIONS):
        await asyncio.sleep(CANCEL_SECONDS)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if not others:
            return
        for task in others:
            task.cancel()


def grade(plugin, job):
    """Grade a job in the Dask worker that this is called in.

    Parameters
    ----------
    plugin : str
        Name of the plugin of the run.
    job : seqlib.grading.distributed.copies.Job
        The submission.

    Returns
    -------
    kind : str
        ``"done"``, ``"failed"``, ``"cannot start"``, or ``"lost"`` where the run has ended.
    value : Graded or str
        The result, or what is wrong.
    """
    worker = get_worker()
    found = worker.plugins.get(plugin)
    if found is None:
        return "lost", f"worker {worker.address} has no copy of the course"
    try:
        result = found.grade(job)
    except RuntimeError as error:
        return "cannot start", f"{error} (on {worker.address})"
    if isinstance(result, Failure):
        return "failed", result.message
    return "done", result


def describe(level, trust_students):
    """Return the fingerprint of a machine, and its isolation level as Grader takes it.

    Raises
    ------
    seqlib.grading.sandbox.isolation.IsolationError
        If it offers too little and students are not trusted.
    """
    return fingerprint(), None if trust_students else require_isolation(level)
