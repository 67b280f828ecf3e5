"""Grading on a real Dask cluster: the scores of one machine, whatever happens to the others."""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import dask_tools
import pytest
import tiny_course
import yaml
from dask_tools import cluster, copy_grader, free_port, reluctant_grader, slow_grader
from test_dask_copies import kept
from tiny_course import solved, submit, tiny_grader

from seqlib.grading.batch import grade_class
from seqlib.grading.course import Course
from seqlib.grading.distributed import coordinator
from seqlib.grading.gradebook.writer import Writer, open_gradebook
from seqlib.grading.pool import Failure
from seqlib.grading.records import Store, all_submissions
from seqlib.grading.secret import course_secret

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    # Dask leaves its sockets to the collector when a scheduler is killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ANSWERS = (
    {},
    {"double": "def double(x):\n    return 2 * x + 1"},
    {"add": "def add(x, y):\n    return x - y"},
    {
        "double": "def double(x):\n    raise ValueError(x)",
        "add": "def add(x, y):\n    return 1",
    },
)
SCORES = (80.0, 40.0, 40.0, 0.0)


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    (tmp_path / "course").mkdir()
    return tiny_course.make_course(tmp_path / "course")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Yield a cluster of two workers, one of them under a nanny as Dask has it by default."""
    with cluster(tmp_path_factory.mktemp("cluster"), workers=1) as running:
        running.start_worker(nanny=True)
        yield running


def fill(course, number):
    """Submit a class, and return the scores that it deserves."""
    for i in range(number):
        submit(course, f"s{i:03}", solved(**ANSWERS[i % len(ANSWERS)]))
    return {f"s{i:03}": SCORES[i % len(SCORES)] for i in range(number)}


def run(course, address, *, make_grader=copy_grader, **options):
    options = {"trust_students": True, "dask": address, "make_grader": make_grader} | options
    return grade_class(course, "tiny", **options)


def scores(outcome):
    return {student: record["score"] for student, record in outcome.records.items()}


def in_gradebook(course):
    with open_gradebook(course) as gradebook:
        found = gradebook.assignment_submissions("tiny")
        assert len({s.student.id for s in found}) == len(found)
        return {s.student.id: s.score for s in found}


@pytest.fixture
def applied(monkeypatch):
    """Return how often the record of each student was written to the gradebook."""
    apply, counted = Writer.apply, Counter()

    def count(writer, record, **options):
        counted[record["student"]] += 1
        return apply(writer, record, **options)

    monkeypatch.setattr(Writer, "apply", count)
    return counted


def began(folder):
    """Return how often each student's submission was begun."""
    return Counter(path.name.split("-")[1] for path in Path(folder).glob("began-*"))


def of_local_workers(course, folder):
    """Return the records of the same class, graded by two local workers."""
    local = Course(folder)
    shutil.copytree(
        course.root,
        folder,
        ignore=lambda path, _: (
            []
            if path != str(course.grading)
            else ["records", "autograded", "gradebook.db", "nbgrader.log"]
        ),
    )
    grade_class(
        local,
        "tiny",
        trust_students=True,
        workers=2,
        make_grader=functools.partial(tiny_grader, folder),
    )
    return kept(local), in_gradebook(local)


def test_a_cluster_gives_the_records_and_scores_of_local_workers(course, shared, tmp_path):
    deserved = fill(course, 8)
    submit(course, "s100", b"<html>")
    deserved["s100"] = 0.0
    seen = []
    outcome = run(course, shared.address, on_result=lambda student, _: seen.append(student))
    assert scores(outcome) == deserved == in_gradebook(course)
    assert outcome.failures == {}
    assert sorted(seen) == sorted(deserved)
    assert (kept(course), in_gradebook(course)) == of_local_workers(course, tmp_path / "local")
    again = run(course, shared.address)
    assert all(record["reused"] for record in again.records.values())
    forced = run(course, shared.address, force=True, students=["s001", "s100"])
    assert [record["reused"] for record in forced.records.values()] == [False, False]
    assert scores(forced) == {"s001": 40.0, "s100": 0.0}


def test_what_is_sent_once_is_sent_once_and_leaves_nothing(course, shared):
    fill(course, 6)
    before = shared.logs().count("Starting Worker plugin seqlib-grade-")
    run(course, shared.address)
    logs = shared.logs()
    assert logs.count("Starting Worker plugin seqlib-grade-") == before + len(shared.workers)
    assert logs.count("Removing Worker plugin seqlib-grade-") == before + len(shared.workers)
    # Nothing of the course is left in the folders of the workers.
    left = {path.name for path in (shared.folder / "dask").rglob("*")}
    assert "secret" not in left
    assert not [name for name in left if name.startswith("seqlib-")]
    # No name of a student is shown by the scheduler.
    assert "s000" not in logs


def dying_grader(course, **options):
    return _dying(course, options)


class _dying:
    def __init__(self, course, options):
        self._inner = copy_grader(course, **options)

    def __enter__(self):
        grader = self._inner.__enter__()
        grade = grader.grade

        def die(student, **how):
            if student == "s001":
                os._exit(9)
            if student == "s002":
                raise RuntimeError("the sandbox failed")
            return grade(student, **how)

        grader.grade = die
        return grader

    def __exit__(self, *exc):
        return self._inner.__exit__(*exc)


def test_a_submission_that_breaks_its_process_costs_no_other(course, shared):
    deserved = fill(course, 6)
    run(course, shared.address, students=["s001"])
    outcome = run(course, shared.address, make_grader=dying_grader)
    assert outcome.failures == {
        "s001": "the worker process ended (exit code 9)",
        "s002": "RuntimeError: the sandbox failed",
    }
    assert scores(outcome) == {
        s: score for s, score in deserved.items() if s not in ("s001", "s002")
    }
    assert in_gradebook(course)["s001"] == deserved["s001"]
    assert Store(course.records, "tiny", "s002").failure() == outcome.failures["s002"]
    assert all(worker.poll() is None for worker in shared.workers)
    assert scores(run(course, shared.address)) == deserved == in_gradebook(course)


def hanging_grader(course, **options):
    return slow_grader(course, folder=course.root, seconds=600, **options)


def test_a_submission_that_hangs_is_ended(course, shared):
    fill(course, 1)
    course_secret(course.grading)
    options = {"trust_students": True, "attempts": 2, "seconds": 3.0}
    jobs = [("s000", False)]
    start = time.monotonic()
    found = dict(
        coordinator.run_jobs(
            course,
            "tiny",
            jobs,
            address=shared.address,
            make_grader=hanging_grader,
            **options,
        )
    )
    assert found == {("s000", False): Failure("no result after 3 s")}
    assert time.monotonic() - start < 60


def test_leaving_the_run_ends_what_it_started(course, shared, tmp_path):
    fill(course, 8)
    make_grader = functools.partial(slow_grader, folder=tmp_path, seconds=1.0)

    def stop(student, _):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(course, shared.address, make_grader=make_grader, on_result=stop)
    assert len(all_submissions(course.records, "tiny")) == len(in_gradebook(course)) == 1
    assert_gone(tmp_path)
    assert set(scores(run(course, shared.address)).values()) == set(SCORES)


def assert_gone(folder):
    """Assert that the processes that graded have ended, or end soon."""
    numbers = {int(path.name.split("-")[2]) for path in folder.glob("began-*")}
    assert numbers
    wait_for(lambda: not any(Path(f"/proc/{number}").exists() for number in numbers))


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_killed_in_the_middle_costs_no_submission(course, applied, tmp_path):
    """Each submission is graded exactly once: one result, one record, one entry."""
    deserved = fill(course, 16)
    notes = tmp_path / "notes"
    notes.mkdir()
    make_grader = functools.partial(slow_grader, folder=notes, seconds=0.5)
    seen = Counter()
    with cluster(tmp_path / "cluster") as running:

        def kill(student, _):
            seen[student] += 1
            if len(seen) == 4:
                running.kill(running.workers[0])

        outcome = run(course, running.address, make_grader=make_grader, on_result=kill)
    assert scores(outcome) == deserved == in_gradebook(course)
    assert outcome.failures == {}
    once = Counter(dict.fromkeys(deserved, 1))
    assert seen == once
    assert applied == once
    assert not any(record["reused"] for record in outcome.records.values())
    # It was killed in the middle: what it had begun was begun again elsewhere.
    assert set(began(notes)) == set(deserved)
    assert 1 <= began(notes).total() - len(deserved) <= coordinator.JOBS_PER_THREAD
    assert_gone(notes)
    assert (kept(course), in_gradebook(course)) == of_local_workers(course, tmp_path / "local")


def test_a_run_goes_on_when_the_scheduler_is_started_again(course, applied, tmp_path):
    deserved = fill(course, 12)
    make_grader = functools.partial(slow_grader, folder=tmp_path, seconds=0.5)
    seen = Counter()
    with cluster(tmp_path / "cluster") as running:

        def restart():
            time.sleep(3)
            running.start_scheduler()
            for _ in range(2):
                running.start_worker()

        def kill(student, _):
            seen[student] += 1
            if len(seen) == 3:
                running.kill(running.scheduler)
                threading.Thread(target=restart).start()

        outcome = run(course, running.address, make_grader=make_grader, on_result=kill)
    assert scores(outcome) == deserved == in_gradebook(course)
    assert outcome.failures == {}
    assert seen == applied == Counter(dict.fromkeys(deserved, 1))


def test_a_run_without_scheduler_ends_and_another_one_goes_on(course, monkeypatch, tmp_path):
    deserved = fill(course, 8)
    monkeypatch.setattr(
        coordinator, "run_jobs", functools.partial(coordinator.run_jobs, patience=3.0)
    )
    make_grader = functools.partial(slow_grader, folder=tmp_path, seconds=0.5)

    def kill(*_):
        if running.scheduler.poll() is None:
            running.kill(running.scheduler)

    with (
        cluster(tmp_path / "cluster") as running,
        pytest.raises(RuntimeError, match=r"went away .* the same command goes on"),
    ):
        run(course, running.address, make_grader=make_grader, on_result=kill)
    graded = all_submissions(course.records, "tiny")
    assert 1 <= len(graded) < len(deserved)
    with cluster(tmp_path / "another") as running:
        outcome = run(course, running.address)
    assert {s for s, record in outcome.records.items() if record["reused"]} == set(graded)
    assert scores(outcome) == deserved == in_gradebook(course)


def test_a_run_without_workers_waits_for_one_and_then_ends(course, monkeypatch, tmp_path):
    deserved = fill(course, 6)
    make_grader = functools.partial(slow_grader, folder=tmp_path, seconds=0.2)
    with cluster(tmp_path / "cluster", workers=1) as running:
        killed = []

        def kill(*_):
            if not killed:
                killed.append(running.kill(running.workers[0]))
                threading.Timer(2.0, running.start_worker).start()

        outcome = run(course, running.address, make_grader=make_grader, on_result=kill)
        assert scores(outcome) == deserved
        monkeypatch.setattr(
            coordinator, "run_jobs", functools.partial(coordinator.run_jobs, patience=3.0)
        )
        with pytest.raises(RuntimeError, match="has had no worker for 3 s"):
            run(
                course,
                running.address,
                make_grader=make_grader,
                force=True,
                on_result=lambda *_: running.workers and running.kill(running.workers[0]),
            )


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_workers_without_their_scheduler_end_when_told_to(course, tmp_path, stop):
    """They close for want of a scheduler, and are told to end in the middle of it."""
    fill(course, 8)
    notes = tmp_path / "notes"
    notes.mkdir()
    make_grader = functools.partial(reluctant_grader, folder=notes, seconds=1.0, ending=2.0)
    left, ended = set(), []

    def interrupt(*_):
        left.update(running.descendants())
        running.scheduler.send_signal(stop)
        wait_for(lambda: running.logs().count("Stopping worker") == 2)
        for worker in running.workers:
            worker.terminate()
        ended.extend(worker.wait(8) for worker in running.workers)
        raise KeyboardInterrupt

    with cluster(tmp_path / "cluster") as running, pytest.raises(KeyboardInterrupt):
        run(course, running.address, make_grader=make_grader, on_result=interrupt)
    assert len(ended) == 2
    assert left
    wait_for(lambda: not any(Path(f"/proc/{number}").exists() for number in left))
    assert_gone(notes)
    # The copy of the course has gone too, with its secret.
    assert not list((tmp_path / "cluster").rglob("secret"))


# ---------------------------------------------------------------- who may take part


def copy_of_the_library(folder, edit):
    """Write a copy of seqlib in which something is different, and return its search path."""
    shutil.copytree(
        ROOT / "seqlib",
        folder / "seqlib",
        ignore=shutil.ignore_patterns("__pycache__", "results", "weights"),
    )
    edit(folder / "seqlib")
    return folder


def another_judge(library):
    path = library / "judge" / "judge.py"
    path.write_text(path.read_text() + "\n# another version\n")


def no_grading(library):
    shutil.rmtree(library)
    library.mkdir()
    (library / "__init__.py").touch()


@pytest.mark.parametrize(
    ("edit", "where", "message"),
    [
        (another_judge, "worker", "tcp://127.0.0.1:.* must have what this .* got source "),
        (no_grading, "worker", "tcp://127.0.0.1:.* must have seqlib .* as this machine"),
        (another_judge, "scheduler", "the scheduler must have what this machine has"),
        (no_grading, "scheduler", "the scheduler must have seqlib .* as this machine"),
    ],
)
def test_another_version_of_the_library_is_named(course, tmp_path, edit, where, message):
    fill(course, 2)
    other = copy_of_the_library(tmp_path / "other", edit)
    with cluster(
        tmp_path / "cluster",
        workers=0,
        path=[other] if where == "scheduler" else [],
    ) as running:
        here = {"PYTHONPATH": os.pathsep.join([str(dask_tools.TESTS), str(ROOT)])}
        there = {"PYTHONPATH": os.pathsep.join([str(other), str(dask_tools.TESTS)])}
        running.start_worker(environment=here)
        if where == "worker":
            running.start_worker(environment=there)
        with pytest.raises(RuntimeError, match=message):
            run(course, running.address)
    assert all_submissions(course.records, "tiny") == {}


def test_a_worker_of_another_version_that_comes_late_grades_nothing(course, tmp_path):
    fill(course, 8)
    other = copy_of_the_library(tmp_path / "other", another_judge)
    there = {"PYTHONPATH": os.pathsep.join([str(other), str(dask_tools.TESTS)])}
    make_grader = functools.partial(slow_grader, folder=tmp_path, seconds=0.5)
    late = []
    with cluster(tmp_path / "cluster", workers=1) as running:

        def join(*_):
            if not late:
                late.append(running.start_worker(environment=there))

        with pytest.raises(RuntimeError, match=r"worker could not start: .* has source "):
            run(course, running.address, make_grader=make_grader, on_result=join)


@pytest.mark.parametrize("address", ["somewhere", "tcp://here", "http://here:80", "tcp://:1"])
def test_what_is_no_address_is_refused(course, address):
    fill(course, 1)
    with pytest.raises(
        ValueError, match=r"dask must be the address of a scheduler, tcp://HOST"
    ):
        run(course, address)


def test_an_address_where_nothing_answers_is_named(course, monkeypatch):
    fill(course, 1)
    monkeypatch.setattr(coordinator, "CONNECT_SECONDS", 1.0)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(ValueError, match=rf"scheduler that answers, got '{address}'"):
        run(course, address)


def test_a_scheduler_without_workers_is_named(course, monkeypatch, tmp_path):
    fill(course, 1)
    monkeypatch.setattr(coordinator, "CONNECT_SECONDS", 1.0)
    with (
        cluster(tmp_path, workers=0) as running,
        pytest.raises(RuntimeError, match="has no workers; start some with `dask worker tcp"),
    ):
        run(course, running.address)


def test_workers_of_a_cluster_are_not_counted_here(course):
    fill(course, 1)
    with pytest.raises(ValueError, match=r"workers must be left out .* got 2"):
        run(course, "tcp://127.0.0.1:1", workers=2)


def test_the_missing_package_is_named(course, monkeypatch):
    fill(course, 1)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RuntimeError, match=r'pip install "seqlib-course\[desk\]"'):
        run(course, "tcp://127.0.0.1:1")


# ---------------------------------------------------------------- the command


@pytest.mark.sandbox
def test_the_command_grades_a_class_in_the_sandboxes_of_a_cluster(shared, tmp_path):
    """The records of --dask and --workers are the same, made by students' code in a sandbox."""
    roots = {}
    for kind in ("cluster", "local"):
        roots[kind] = root = tmp_path / kind
        root.mkdir()
        shutil.copy(ROOT / "nbgrader_config.py", root)
        for folder in ("solutions", "assignments"):
            shutil.copytree(ROOT / folder / "attention", root / folder / "attention")
        course = Course(root)
        for student, source in {"s1": course.source, "s2": course.release_file}.items():
            folder = course.submission(student, "attention")
            folder.mkdir(parents=True)
            shutil.copy(source("attention"), folder)
        (course.grading / "secret").write_text("33" * 32 + "\n")
    how = {"cluster": ["--dask", shared.address], "local": ["--workers", "2"]}
    for kind, root in roots.items():
        command = [sys.executable, "-m", "seqlib.cli", "grade", "attention", "--json"]
        done = subprocess.run([*command, *how[kind]], cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["records"]
        assert {s: r["score"] for s, r in found.items()} == {"s1": 90.0, "s2": 0.0}
    assert kept(Course(roots["cluster"])) == kept(Course(roots["local"]))


# ---------------------------------------------------------------- who may connect


def certificates(folder):
    """Make an authority and a certificate of it for all machines, and return their paths."""
    found = {name: str(folder / name) for name in ("ca.pem", "ca.key", "one.pem", "one.key")}
    ca, ca_key, one, one_key = found.values()
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run(
        [*new, "-subj", "/CN=course", "-keyout", ca_key, "-out", ca],
        check=True,
        capture_output=True,
    )
    signed = ["-CA", ca, "-CAkey", ca_key, "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*new, "-subj", "/CN=machine", *signed, "-keyout", one_key, "-out", one],
        check=True,
        capture_output=True,
    )
    return ca, one, one_key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_with_tls_only_machines_of_the_authority_take_part(course, tmp_path, monkeypatch):
    import dask

    pytest.importorskip("distributed")  # whose settings must be there before some change
    deserved = fill(course, 2)
    ca, one, key = certificates(tmp_path)
    settings = settings_of_the_book(ca, one, key)
    (tmp_path / "course.yaml").write_text(settings)
    ours = yaml.safe_load(settings)["distributed"]["comm"]
    (tmp_path / "stranger").mkdir()
    another = settings_of_the_book(ca, *certificates(tmp_path / "stranger")[1:])
    theirs = yaml.safe_load(another)["distributed"]["comm"]

    def use(comm):
        """Set what the coordinator reads, which a file of its own would say."""
        tls = comm["tls"]
        return dask.config.set(
            {
                "distributed.comm.require-encryption": comm["require-encryption"],
                "distributed.comm.tls.ca-file": tls["ca-file"],
                "distributed.comm.tls.client.cert": tls["client"]["cert"],
                "distributed.comm.tls.client.key": tls["client"]["key"],
            }
        )

    environment = {"DASK_CONFIG": str(tmp_path / "course.yaml")}
    monkeypatch.setattr(coordinator, "CONNECT_SECONDS", 10.0)
    with cluster(
        tmp_path / "cluster", protocol="tls", environment=environment, workers=1
    ) as running:
        with use(ours):
            assert scores(run(course, running.address)) == deserved
        monkeypatch.setattr(coordinator, "CONNECT_SECONDS", 2.0)
        plain = running.address.replace("tls", "tcp")
        refused = pytest.raises(ValueError, match="must be the address of a scheduler that")
        with use(theirs), refused:
            run(course, running.address, force=True)
        with use(ours | {"require-encryption": False}), refused:
            run(course, plain, force=True)
        with refused:  # no certificate at all
            run(course, running.address, force=True)


def settings_of_the_book(ca, cert, key):
    """Return the settings on the page for instructors, with these files."""
    page = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    block = page.partition("```yaml\n")[2].partition("```")[0]
    for name, path in {"ca.pem": ca, "machine.pem": cert, "machine.key": key}.items():
        assert f"/path/to/{name}" in block
        block = block.replace(f"/path/to/{name}", path)
    return block


@pytest.mark.parametrize(
    ("address", "open_to_others"),
    [
        ("tcp://10.0.0.7:8786", True),
        ("tcp://grading.example.org:8786", True),
        ("tls://10.0.0.7:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("nothing of the kind", False),
    ],
)
def test_a_connection_that_others_can_use_is_pointed_out(address, open_to_others):
    assert bool(coordinator.caution(address)) == open_to_others


# ---------------------------------------------------------------- a large class


def memory():
    """Return the MiB of this process that are in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@contextlib.contextmanager
def quick_grader(course, **options):
    """Record a submission as the grader does, without running it."""
    with copy_grader(course, **options) as grader:
        first = []

        def as_the_first(student, taken, store, force):
            if not first:
                first.append(run(student, taken, store, force))
            done, judging = first[0]
            judging._student, judging._taken, judging._store = student, taken, store
            return done, judging

        run, grader._run = grader._run, as_the_first
        yield grader


def test_a_thousand_submissions_take_little_memory_of_the_coordinator(
    course, shared, monkeypatch
):
    """At most 400 MiB, and never more jobs out than the workers need to be busy."""
    number, text = 1000, "x = '" + "o" * 100_000 + "'"
    data = solved()
    data["cells"].append(tiny_course.extra(text))
    data = tiny_course.as_bytes(data)
    for i in range(number):
        submit(course, f"s{i:04}", data)
    submit_job, out = coordinator._Cluster.submit, []

    def count(cluster, packed):
        key = submit_job(cluster, packed)
        out.append(len(cluster._futures))
        return key

    monkeypatch.setattr(coordinator._Cluster, "submit", count)
    sizes = [memory()]
    outcome = run(
        course,
        shared.address,
        make_grader=quick_grader,
        on_result=lambda *_: sizes.append(memory()),
    )
    assert outcome.failures == {}
    assert len(outcome.records) == number == len(in_gradebook(course))
    print(f"{max(sizes) - sizes[0]:.0f} MiB for {number * len(data) / 2**20:.0f} MiB")
    assert max(sizes) - sizes[0] < 400
    assert max(out) == coordinator.JOBS_PER_THREAD * len(shared.workers)
    # What one submission leaves is its record, not its notebook.
    half = len(sizes) // 2
    assert max(sizes[half:]) - max(sizes[:half]) < 60
