"""Nothing of a submission lives on, however it or the judge ends."""

import os
import signal
import subprocess
import sys
import time

import pytest
from sandbox_tools import LIMITS, assert_gone, open_sandbox, run

from seqlib.grading.sandbox.box import Sandbox
from seqlib.grading.sandbox.errors import SandboxError, SandboxUnavailable
from seqlib.grading.sandbox.inside import processes

pytestmark = pytest.mark.sandbox


def test_processes_left_behind_end_with_the_submission(sandbox, student_build):
    with sandbox.open(student_build) as submission:
        result = run(
            submission,
            """
            import os, signal, time
            for _ in range(3):
                if os.fork() == 0:
                    os.setsid()
                    for n in range(1, 32):
                        try: signal.signal(n, signal.SIG_IGN)
                        except (OSError, ValueError): pass
                    if os.fork() == 0:
                        time.sleep(1000)
                    os._exit(0)
            time.sleep(0.2)
            """,
        )
        assert result.ok
        running = submission.process_numbers()
    assert len(running) >= 5
    assert_gone(running)


def test_a_storm_of_forks_ends_with_the_submission(sandbox, student_build):
    with sandbox.open(student_build) as submission:
        submission.run_cell(
            "import os, time\n"
            "end = time.time() + 1\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    while time.time() < 1e12:\n"
            "        try:\n"
            "            if os.fork(): os._exit(0)\n"
            "        except OSError: pass\n"
        )
        time.sleep(0.3)
        running = submission.process_numbers()
    assert_gone(running)
    time.sleep(0.2)
    assert processes.children(sandbox.info["pid"]) == []


JUDGE = """
import sys
from seqlib.grading.sandbox.box import Sandbox
with Sandbox(level=sys.argv[2], plots=False) as sandbox:
    submission = sandbox.open(sys.argv[1])
    submission.run_cell(
        "import os, time\\n"
        "if os.fork() == 0:\\n    os.setsid()\\n    time.sleep(1000)\\n"
    )
    print(sandbox._server.folder, flush=True)
    submission.run_cell("while True: pass")
"""


def test_nothing_is_left_when_the_judge_is_killed(sandbox, student_build):
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(student_build), sandbox.level],
        stdout=subprocess.PIPE,
        text=True,
    )
    with judge:
        folder = judge.stdout.readline().strip()
        time.sleep(0.3)
        tree = {pid: processes.started(pid) for pid in processes.tree(judge.pid)}
        assert len(tree) >= 5  # judge, fork server, S, P, the daemon
        del tree[judge.pid]
        judge.kill()
        judge.wait()
    assert_gone(tree)
    end = time.monotonic() + 5
    while os.path.exists(folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(folder)


def test_nothing_is_left_when_a_supervisor_is_killed(sandbox, student_build):
    submission = sandbox.open(student_build)
    run(
        submission, "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)"
    )
    running = submission.process_numbers()
    assert len(running) == 3
    os.kill(min(running, key=running.get), signal.SIGKILL)
    assert_gone(running)
    with pytest.raises(SandboxError, match="supervisor"):  # no fault of the submission
        run(submission, "1")
    assert run(submission, "1").ok
    submission.close()


def test_a_fork_server_that_died_is_replaced(student_build):
    with open_sandbox("best", limits=LIMITS, plots=False) as sandbox:
        os.kill(sandbox.info["pid"], signal.SIGKILL)
        with sandbox.open(student_build) as submission:
            assert run(submission, "1").ok


def test_a_fork_server_that_does_not_answer_is_replaced(student_build, monkeypatch):
    with open_sandbox("best", limits=LIMITS, plots=False) as sandbox:
        first = sandbox.info["pid"]
        answers = iter([OSError("timed out")])
        spawn = sandbox._spawn

        def fail_once(build):
            for error in answers:
                raise error
            return spawn(build)

        monkeypatch.setattr(sandbox, "_spawn", fail_once)
        with sandbox.open(student_build) as submission:
            assert run(submission, "1").ok
        assert sandbox.info["pid"] != first
        assert processes.started(first) is None


def test_a_sandbox_that_cannot_start_is_no_verdict(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(SandboxError, match="did not start"):
        Sandbox(level="none")


def test_other_machines_are_refused(monkeypatch):
    monkeypatch.setattr("seqlib.grading.sandbox.inside.syscalls.MACHINE", "riscv64")
    with pytest.raises(SandboxUnavailable, match="this machine is riscv64"):
        Sandbox()
    monkeypatch.setattr("seqlib.grading.sandbox.inside.syscalls.SYSTEM", "Darwin")
    with pytest.raises(SandboxUnavailable, match="needs Linux"):
        Sandbox(level="none")


def test_unknown_levels_are_refused():
    with pytest.raises(ValueError, match="level must be one of namespaces, landlock, none"):
        Sandbox(level="docker")


def test_a_process_that_had_ended_when_it_was_looked_at_is_not_still_there():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert processes.started(process.pid) is None
    assert processes.still_there({process.pid: None}) == {}
    own = {os.getpid(): processes.started(os.getpid())}
    assert processes.still_there(own) == own
