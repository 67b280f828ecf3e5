"""Worker processes: results for every job, whatever a job does to its worker."""

import contextlib
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from seqlib.grading.pool import Failure, WorkerProcess, run_jobs

ROOT = Path(__file__).resolve().parents[1]


def do(folder, job):
    kind, number = job
    mark = folder / f"{kind}-{number}"
    first = not mark.exists()
    mark.touch()
    match kind:
        case "raise":
            raise ValueError(f"job {number}")
        case "raise_once" if first:
            raise ValueError("once")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "die_once" if first:
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "meet":
            while not (folder / f"meet-{1 - number}").exists():
                time.sleep(0.01)
        case "pid":
            return os.getpid()
    return number**2


@contextlib.contextmanager
def worker(folder):
    (folder / f"began-{os.getpid()}").touch()
    yield functools.partial(do, folder)
    (folder / f"ended-{os.getpid()}").touch()


@contextlib.contextmanager
def broken_worker(error):
    raise error
    yield


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_gets_its_result(workers, tmp_path):
    jobs = [("square", i) for i in range(7)]
    found = dict(run_jobs(functools.partial(worker, tmp_path), jobs, workers=workers))
    assert found == {job: job[1] ** 2 for job in jobs}
    assert 1 <= len(list(tmp_path.glob("began-*"))) <= workers


def test_two_workers_work_at_the_same_time(tmp_path):
    jobs = [("meet", 0), ("meet", 1)]  # neither ends before the other has begun
    found = dict(
        run_jobs(functools.partial(worker, tmp_path), jobs, workers=2, attempts=1, seconds=60)
    )
    assert found == {("meet", 0): 0, ("meet", 1): 1}


def test_the_next_job_is_begun_before_the_result_of_the_last_is_used(tmp_path):
    running = run_jobs(functools.partial(worker, tmp_path), [("square", i) for i in range(2)])
    (_, first), _ = next(running)
    deadline = time.monotonic() + 30
    while not (tmp_path / f"square-{1 - first}").exists():
        assert time.monotonic() < deadline, "the worker waits for us"
        time.sleep(0.01)
    assert len(list(running)) == 1


@contextlib.contextmanager
def told_worker(told):
    yield lambda job: (told, job)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_start_while_what_they_are_told_is_found_out(workers):
    jobs = [1, 2, 3]
    found = dict(run_jobs(told_worker, jobs, workers=workers, meanwhile=lambda: "level"))
    assert found == {job: ("level", job) for job in jobs}


def test_workers_end_if_there_is_nothing_to_tell_them():
    def refuse():
        raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        run_jobs(told_worker, [1, 2, 3], workers=2, meanwhile=refuse)
    assert multiprocessing.active_children() == []


def test_a_process_that_is_started_anew_is_told_the_same(tmp_path):
    jobs = [("die_once", 1), ("square", 2)]
    make = functools.partial(told_and_done, tmp_path)
    assert dict(run_jobs(make, jobs, meanwhile=lambda: "level")) == {
        ("die_once", 1): ("level", 1),
        ("square", 2): ("level", 4),
    }


@contextlib.contextmanager
def told_and_done(folder, told):
    yield lambda job: (told, do(folder, job))


def test_a_job_that_fails_is_tried_again_and_then_reported(tmp_path):
    jobs = [("raise", 1), ("raise_once", 2), ("die", 3), ("die_once", 4), ("square", 5)]
    found = dict(run_jobs(functools.partial(worker, tmp_path), jobs, workers=2, attempts=2))
    assert found == {
        ("raise", 1): Failure("ValueError: job 1"),
        ("raise_once", 2): 4,
        ("die", 3): Failure("the worker process ended (signal SIGKILL)"),
        ("die_once", 4): 16,
        ("square", 5): 25,
    }


def test_a_job_that_hangs_is_ended(tmp_path):
    jobs = [("hang", 1), ("square", 2)]
    found = dict(
        run_jobs(functools.partial(worker, tmp_path), jobs, workers=1, attempts=1, seconds=2.0)
    )
    assert found == {("hang", 1): Failure("no result after 2 s"), ("square", 2): 4}


def test_leaving_the_loop_ends_all_workers_in_good_order(tmp_path):
    jobs = [("pid", i) for i in range(50)] + [("hang", 50)]
    running = run_jobs(functools.partial(worker, tmp_path), jobs, workers=2)
    _, pid = next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    began = {p.name.removeprefix("began-") for p in tmp_path.glob("began-*")}
    for number in began:
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)


IMPORTING = """
import contextlib, multiprocessing, os, pathlib, time

if multiprocessing.current_process().name != "MainProcess":
    pathlib.Path(__file__).with_name(f"importing-{os.getpid()}").touch()
    time.sleep(60)


@contextlib.contextmanager
def worker():
    yield abs
"""
INTERRUPTED = """
import os, pathlib, signal, time

from importing import worker
from seqlib.grading.pool import run_jobs

if __name__ == "__main__":
    # A shell that starts something in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    running = run_jobs(worker, [1, 2], workers=2)
    while len(list(pathlib.Path(__file__).parent.glob("importing-*"))) < 2:
        time.sleep(0.01)
    try:
        os.killpg(0, signal.SIGINT)
        next(running)
    except KeyboardInterrupt:
        time.sleep(0.5)
        running.close()
        print("ended")
"""


@pytest.mark.skipif(os.name != "posix", reason="processes of a terminal")
def test_ctrl_c_while_workers_start_is_the_parents_alone(tmp_path):
    (tmp_path / "importing.py").write_text(IMPORTING)
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    ended = subprocess.run(
        [sys.executable, tmp_path / "interrupted.py"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.stdout, ended.stderr) == ("ended\n", "")
    for mark in tmp_path.glob("importing-*"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(mark.name.rpartition("-")[2]), 0)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(4), "the worker process ended .exit code 4."),
        (OSError("full"), "OSError: full"),
    ],
)
def test_a_worker_that_cannot_start_stops_the_run(error, message):
    with pytest.raises(RuntimeError, match=f"a worker could not start: {message}"):
        list(run_jobs(functools.partial(broken_worker, error), [1, 2]))


def test_workers_do_not_inherit_changed_thread_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    list(run_jobs(functools.partial(worker, tmp_path), [("square", 1)]))
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_at_least_one_worker_is_needed():
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        next(run_jobs(worker, [1], workers=0))


def test_a_process_does_one_job_after_the_other_and_ends_with_one_that_breaks_it(tmp_path):
    process = WorkerProcess(functools.partial(worker, tmp_path))
    try:
        assert process.do(("square", 3)) == 9
        assert process.do(("raise", 1)) == Failure("ValueError: job 1")
        assert process.do(("square", 4)) == 16
        assert process.alive
        assert process.do(("hang", 5), 1.0) == Failure("no result after 1 s")
        assert not process.alive
    finally:
        process.end()
        process.join()


def test_a_process_is_interrupted_from_another_thread(tmp_path):
    process = WorkerProcess(functools.partial(worker, tmp_path))
    try:
        assert process.do(("square", 3)) == 9
        timer = threading.Timer(0.5, process.interrupt)
        timer.start()
        start = time.monotonic()
        assert process.do(("hang", 1)) == Failure("the worker process ended (exit code 1)")
        assert time.monotonic() - start < 30
        timer.join()
    finally:
        process.end()
        process.join()


def test_a_process_that_cannot_start_says_so(tmp_path):
    process = WorkerProcess(functools.partial(broken_worker, OSError("full")))
    try:
        with pytest.raises(RuntimeError, match="a worker could not start: OSError: full"):
            process.do(("square", 1))
    finally:
        process.end()
        process.join()
