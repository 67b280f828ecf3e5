"""Grading on a Dask cluster: the coordinator, which hands jobs out and keeps what comes back.

The coordinator is the instructor's machine. It alone writes records and the gradebook; see
:mod:`seqlib.grading.distributed.copies` for what the workers get, and
:mod:`seqlib.grading.distributed.worker` for what they do with it.

Who can connect to a Dask scheduler can run programs on all machines of the cluster, this one
included: between them Dask sends pickles. So scheduler and workers are as trusted as this
machine. Students' code is not: it runs in the sandbox of a worker, and all that comes of it are
the values in the records, judged and written down there as on one machine.
"""

import contextlib
import functools
import logging
import queue
import re
import time
import uuid
from collections import deque

from seqlib.grading.distributed import copies as copies
from seqlib.grading.grader import Grader
from seqlib.grading.pool import ATTEMPTS, JOB_SECONDS, Failure
from seqlib.grading.sandbox.isolation import IsolationError

CONNECT_SECONDS = 15.0
# How long a run waits for a scheduler that went away, or for a worker when all of them did.
PATIENCE_SECONDS = 300.0
# Jobs that are out for each thread: one is graded while the next one travels.
JOBS_PER_THREAD = 2
MAX_BYTES_OUT = copies.MAX_JOB_BYTES
# How often one submission is sent again because the cluster lost it, which is not its doing.
LOSSES = 10
_LOOK_SECONDS = 2.0
_log = logging.getLogger(__name__)
# Above which Dask warns of a job's size, in the belief that it is a mistake.
_LARGE = "distributed.admin.large-graph-warning-threshold"
_ADDRESS = re.compile(r"(?:tcp|tls)://(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}")
_START = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"


def run_jobs(
    course,
    name,
    jobs,
    *,
    address,
    trust_students=False,
    level=None,
    make_grader=None,
    attempts=ATTEMPTS,
    seconds=JOB_SECONDS,
    patience=PATIENCE_SECONDS,
):
    """Grade submissions on a cluster, as :func:`seqlib.grading.pool.run_jobs` does here.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where everything lies on this machine. It must have a secret.
    name : str
        The assignment, released.
    jobs : iterable of (str, bool)
        Students, and whether to grade anew.
    address : str
        Of the scheduler: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
    trust_students, level
        As :func:`seqlib.grading.batch.grade_class` takes them; they are about the workers.
    make_grader : callable, optional
        ``make_grader(course)`` returns the grader of a copy of the course; for tests.
    attempts : int
        How often a submission is tried that cannot be graded.
    seconds : float
        After which a job counts as hanging.
    patience : float
        Seconds to wait for a scheduler or workers that went away.

    Returns
    -------
    generator
        Of pairs ``job, record or Failure``, each job once. The records have been written here.

    Raises
    ------
    ValueError
        If ``address`` is none, or nothing answers there.
    RuntimeError
        If the machines differ in seqlib or libraries, there are no workers, or they go away
        for longer than ``patience``.
    seqlib.grading.sandbox.isolation.IsolationError
        If a worker offers too little isolation.
    """
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            f"dask must be the address of a scheduler, tcp://HOST:PORT or tls://HOST:PORT, "
            f"got {address!r}; {_START}"
        )
    make_grader = make_grader or functools.partial(Grader, name=name)
    cluster = _Cluster(address, trust_students, level, patience, seconds)
    running = _run(cluster, course, name, jobs, make_grader, attempts)
    next(running)
    return running


def caution(address):
    """Return a sentence if others on the network can read and use a connection, or nothing."""
    host = address.rpartition(":")[0].partition("://")[2]
    if not _ADDRESS.fullmatch(address) or address.startswith("tls:"):
        return ""
    if re.fullmatch(r"localhost|127\.[\d.]+|\[::1\]", host):
        return ""
    return (
        f"{address} is neither encrypted nor protected: whoever reaches it can run programs on "
        "the machines of the cluster and on this one. Use tls:// in a network with others."
    )


def _run(cluster, course, name, jobs, make_grader, attempts):
    """Connect, yield None, then yield the results."""
    waiting = deque((job, 1, 0) for job in jobs)
    out = {}  # key -> job, attempt, losses, number of bytes
    with contextlib.closing(cluster):
        cluster.connect(course, name, make_grader)
        yield None
        while waiting or out:
            while waiting and cluster.has_room([entry[3] for entry in out.values()]):
                job, attempt, losses = waiting.popleft()
                try:
                    packed = copies.pack(course, name, *job)
                except (OSError, ValueError) as error:
                    yield job, Failure(f"{type(error).__name__}: {error}")
                    continue
                out[cluster.submit(packed)] = job, attempt, losses, packed.size
            key, kind, value = cluster.next()
            if key not in out:  # nothing yet, or what another connection was asked for
                continue
            job, attempt, losses, _ = out.pop(key)
            if kind == "cannot start":
                raise RuntimeError(value)
            if kind == "done":
                try:
                    yield job, copies.unpack(course, name, job[0], value)
                    continue
                except (OSError, ValueError) as error:
                    kind, value = "failed", f"{type(error).__name__}: {error}"
            if kind == "lost" and losses < LOSSES:
                waiting.appendleft((job, attempt, losses + 1))
            elif kind == "failed" and attempt < attempts:
                waiting.append((job, attempt + 1, losses))
            else:
                yield job, Failure(value)


class _Cluster:
    """The connection to a scheduler, made anew when that went away."""

    def __init__(self, address, trust_students, level, patience, seconds):
        self._distributed, self._dask = _library()
        self._address, self._patience, self._seconds = address, patience, seconds
        self._trust, self._level = trust_students, level
        self._client = self._plugin = self._scheduler = None
        self._threads = 0
        self._futures = {}
        self._finished = queue.SimpleQueue()
        self._looked = self._seen = 0.0

    def connect(self, course, name, make_grader):
        """Connect for the first time: find a common isolation level, send what is needed."""
        self._open(CONNECT_SECONDS)
        found = self._described(self._level)
        if not self._trust:
            levels = {level for _, level in found.values()}
            if len(levels) > 1:
                offered = ", ".join(f"{w}: {level}" for w, (_, level) in sorted(found.items()))
                raise IsolationError(
                    f"workers must offer the same isolation level, got {offered}; "
                    "name one that all of them offer with --level"
                )
            self._level = levels.pop()
        options = {"trust_students": self._trust, "level": self._level}
        make_grader = functools.partial(make_grader, **options)
        self._material = copies.material(course, name, make_grader)
        self._send_material()

    def has_room(self, sizes):
        """Whether to hand out another job, given the sizes of those that are out."""
        if not sizes:
            return True
        return len(sizes) < JOBS_PER_THREAD * self._threads and sum(sizes) < MAX_BYTES_OUT

    def submit(self, packed):
        """Hand a job out, and return the key under which its result will come."""
        from seqlib.grading.distributed.worker import grade

        # Keys that say nothing of students: they are shown on the scheduler's dashboard.
        key = f"seqlib-grade-{uuid.uuid4().hex}"
        try:
            with self._dask.config.set({_LARGE: copies.MAX_JOB_BYTES * 2}):
                future = self._client.submit(
                    grade, self._plugin.name, packed, key=key, pure=False
                )
        except Exception as error:
            self._finished.put((key, "lost", f"{type(error).__name__}: {error}"))
            return key
        self._futures[key] = future
        future.add_done_callback(self._note)
        return key

    def _note(self, future):
        """Put the result of a job among what is finished; called in a thread of Dask."""
        if future.status == "cancelled":
            self._finished.put((future.key, "lost", "the cluster lost it"))
        else:
            self._finished.put((future.key, "", future))

    def next(self):
        """Return key, kind and value of the next result; the key is None if there is none yet.

        The kind is one of :func:`seqlib.grading.distributed.worker.grade`, or ``"lost"``.

        Raises
        ------
        RuntimeError
            If the scheduler, or all workers, went away for too long.
        """
        try:
            key, kind, value = self._finished.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            key, kind, value = None, "", None
        known = self._futures.pop(key, None)
        if kind == "" and known is not None:
            kind, value = self._result(value)
        # What is finished on a connection that has gone is lost, which has been noted.
        self._look(at_once=kind == "lost")
        return (key, kind, value) if kind else (None, "", None)

    def _result(self, future):
        try:
            return future.result(timeout=self._patience)
        except (self._distributed.CancelledError, OSError, TimeoutError) as error:
            return "lost", f"{type(error).__name__}: {error}"
        except Exception as error:
            return "failed", f"{type(error).__name__}: {error}"

    def _look(self, *, at_once=False):
        """See now and then whether the scheduler is the same, and how many workers it has."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS and not at_once:
            return
        self._looked = now
        try:
            info = self._client.scheduler_info(n_workers=0)
        except Exception:
            info = None
        if info is None or self._client.status != "running" or info["id"] != self._scheduler:
            self._reconnect()
            return
        had, self._threads = self._threads, info["total_threads"]
        if self._threads:
            self._seen = now
        elif had:
            _log.warning("All workers went away; waiting up to %g s for one.", self._patience)
        elif now - self._seen > self._patience:
            raise RuntimeError(
                f"the scheduler at {self._address} has had no worker for {self._patience:g} s; "
                f"{_GOES_ON}"
            )

    def _open(self, seconds):
        """Connect to the scheduler and wait until it has a worker."""
        deadline = time.monotonic() + seconds
        try:
            self._client = self._distributed.Client(
                self._address, timeout=seconds, set_as_default=False
            )
        except (
            OSError,
            TypeError,
            ValueError,
        ) as error:  # TypeError: TLS without a certificate
            raise ValueError(
                f"dask must be the address of a scheduler that answers, got {self._address!r}: "
                f"{error}; {_START}"
            ) from error
        try:
            left = max(deadline - time.monotonic(), 1.0)
            self._client.wait_for_workers(1, timeout=left)
        except TimeoutError as error:
            raise RuntimeError(
                f"the scheduler at {self._address} has no workers; start some with "
                f"`dask worker {self._address}`"
            ) from error
        info = self._client.scheduler_info(n_workers=0)
        self._scheduler, self._threads = info["id"], info["total_threads"]
        self._looked = self._seen = time.monotonic()

    def _described(self, level):
        """Return ``{worker: (fingerprint, level)}``; all machines must have our versions."""
        from seqlib.grading.distributed.worker import describe

        client, here = self._client, copies.fingerprint()
        try:
            there = {"the scheduler": client.run_on_scheduler(copies.fingerprint)}
        except Exception as error:
            there = {"the scheduler": error}
        found = client.run(describe, level, self._trust, on_error="return")
        there |= found
        for machine, value in there.items():
            if isinstance(value, IsolationError | ValueError):
                raise type(value)(f"{machine}: {value}") from value
            if isinstance(value, Exception):
                raise RuntimeError(
                    f"{machine} must have seqlib {here['seqlib']} as this machine, got "
                    f"{type(value).__name__}: {value}; install the same package there"
                ) from value
            theirs = value if machine not in found else value[0]
            differs = copies.difference(here, theirs)
            if differs:
                raise RuntimeError(
                    f"{machine} must have what this machine has, got {differs}; "
                    "install the same packages there"
                )
        return found

    def _send_material(self):
        from seqlib.grading.distributed.worker import Grading

        name = f"seqlib-grade-{uuid.uuid4().hex}"
        self._plugin = Grading(name, self._material, seconds=self._seconds)
        self._client.register_plugin(self._plugin, name=name)

    def _reconnect(self):
        """Wait for the scheduler to come back; all jobs that are out are lost."""
        futures, self._futures = self._futures, {}
        for key in futures:
            self._finished.put((key, "lost", "the connection was lost"))
        self._close_client()
        _log.warning(
            "The scheduler at %s went away; waiting up to %g s for it.",
            self._address,
            self._patience,
        )
        try:
            self._open(self._patience)
        except (ValueError, RuntimeError) as error:
            raise RuntimeError(
                f"the scheduler at {self._address} went away and did not come back with a "
                f"worker within {self._patience:g} s; {_GOES_ON}"
            ) from error
        self._described(self._level)
        self._send_material()

    def close(self):
        """Give up the jobs that are out, and let the workers forget the course."""
        if self._client is None:
            return
        futures, self._futures = self._futures, {}
        with contextlib.suppress(Exception):
            if self._client.status == "running":
                self._client.cancel(list(futures.values()), force=True)
                if self._plugin is not None:
                    self._client.unregister_worker_plugin(self._plugin.name)
        self._close_client()

    def _close_client(self):
        client, self._client = self._client, None
        with contextlib.suppress(Exception):
            client.close(timeout=5)


_GOES_ON = "the same command goes on where this one stopped"


def _library():
    """Return the package ``distributed``, without its messages about lost connections."""
    try:
        import dask.config
        import distributed
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise RuntimeError(
            "--dask needs the package distributed, which is not installed: "
            'pip install "seqlib-course[desk]"'
        ) from error
    for name in ("distributed.client", "distributed.core", "distributed.batched"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed, dask
