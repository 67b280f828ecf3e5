"""What goes wrong in a submission costs the cell or the request, and no more."""

import signal
import textwrap
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sandbox_tools import LIMITS, call, run

pytestmark = pytest.mark.sandbox


DEADLY = {
    "os._exit": ("import os; os._exit(3)", "crash", "exit code 3"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "crash", "signal SIGSEGV"),
    "abort": ("import os; os.abort()", "crash", "signal SIG"),
    "endless loop": ("while True: pass", "timeout", "within"),
    "loop that catches all": (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "timeout",
        "within",
    ),
    "sleep": ("import time; time.sleep(1000)", "timeout", "within"),
    "loop in C": ("sum(range(10**12))", "timeout", "within"),
    "closed connection": ("import os; os.closerange(3, 128)", "crash", ""),
}


@pytest.mark.parametrize("name", DEADLY)
def test_a_deadly_cell_is_left_out(submission, name):
    source, fault, phrase = DEADLY[name]
    run(submission, "x = 1\nprint('once')")
    result = submission.run_cell(source)
    assert not result.ok
    assert result.fault == fault
    assert result.outputs[-1]["output_type"] == "error"
    assert phrase in result.outputs[-1]["evalue"]
    after = run(submission, "x += 1\nx")
    assert after.ok
    assert after.outputs[0]["data"]["text/plain"] == "2"


@pytest.mark.parametrize("name", DEADLY)
def test_a_deadly_call_costs_one_request(submission, name):
    source, fault, phrase = DEADLY[name]
    body = textwrap.indent(source, "        ")
    run(submission, f"def f(deadly):\n    if deadly:\n{body}\n    return 'fine'")
    with submission.subject("f") as subject:
        assert call(subject, False).value == "fine"
        reply = call(subject, True)
        assert reply.fault == fault
        assert phrase in reply.error
        assert reply.value is None
        assert call(subject, False).value == "fine"
    assert run(submission, "f(False)").ok


def test_a_stopped_process_costs_one_request(submission):
    run(
        submission,
        "import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGSTOP)\ndef g(): return 1",
    )
    with submission.subject("f") as subject:
        assert call(subject).fault == "timeout"
    with submission.subject("g") as subject:
        assert call(subject).value == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_task_that_attacks_the_notebooks_process(submission, number):
    run(
        submission,
        f"import os\nx = 4\ndef f():\n    os.kill(os.getppid(), {int(number)})\n    return x",
    )
    with submission.subject("f") as subject:
        assert call(subject).value in (4, None)
    with submission.subject("lambda: x") as subject:
        assert call(subject).value == 4


def test_a_task_makes_no_processes(submission):
    run(submission, "import os\ndef f(): return os.fork()")
    with submission.subject("f") as subject:
        assert "Resource temporarily unavailable" in call(subject).error


def test_after_too_many_deadly_cells_the_submission_is_given_up(submission):
    for _ in range(LIMITS.skipped):
        assert run(submission, "import os; os._exit(0)").fault == "crash"
    assert submission.given_up is None
    assert run(submission, "1").ok
    run(submission, "os._exit(0)") if run(submission, "import os").ok else None
    assert "more than 3 cells" in submission.given_up
    result = run(submission, "print(1)")
    assert (result.ok, result.fault) == (False, "stopped")
    reply = call(submission.subject("f"))
    assert reply.fault == "stopped"
    assert "more than 3 cells" in reply.error


def test_time_of_the_whole_submission(sandbox, student_build, monkeypatch):
    monkeypatch.setattr(sandbox, "limits", replace(LIMITS, submission=0.5, patience=1.0))
    with sandbox.open(student_build) as submission:
        run(submission, "import time\ndef f(): return 1")
        assert run(submission, "time.sleep(1)").fault == "timeout"
        assert run(submission, "1").fault == "stopped"
        assert call(submission.subject("f")).fault == "stopped"
        assert "0.5 s altogether" in submission.given_up


def test_too_much_memory(sandbox, student_build, monkeypatch):
    monkeypatch.setattr(sandbox, "limits", replace(LIMITS, cell=10.0, call=10.0))
    with sandbox.open(student_build) as submission:
        run(
            submission,
            "def fill():\n    x = bytearray(b'x') * (600 << 20)\n    while True: pass",
        )
        with submission.subject("fill") as subject:
            reply = call(subject)
            assert reply.fault == "memory"
            assert "256 MiB of memory" in reply.error
        assert run(submission, "1").ok
        result = run(submission, "fill()")
        assert result.fault == "memory"
        assert "more than 256 MiB of memory" in result.outputs[-1]["evalue"]
        with submission.subject("lambda: bytearray(10**12)") as subject:
            assert (call(subject).fault, call(subject).error) == ("memory", "MemoryError")


def test_many_short_calls_do_not_fill_the_disk(sandbox, student_build):
    """The folder is looked at every 0.1 s, or has a quota of its own."""
    with sandbox.open(student_build) as submission:
        run(
            submission,
            """
            import os, time
            def f(i):
                with open(f"file{i}", "wb") as file:
                    file.write(bytes(2**20 - 1))
                time.sleep(0.01)
            """,
        )
        with submission.subject("f") as subject:
            replies = [call(subject, i) for i in range(2 * (LIMITS.folder >> 20))]
    failed = [reply for reply in replies if not reply.ok]
    assert failed
    for reply in failed:
        assert "No space left" in reply.error or "32 MiB of files" in reply.error


def test_memory_that_forks_share_counts_once(submission):
    """A notebook may hold an array of 60 % of the limit: its tasks share it."""
    run(
        submission,
        f"""
        import numpy as np, time
        x = np.ones({int(0.6 * LIMITS.memory) // 8})
        def f():
            time.sleep(0.4)
            return float(x[0])
        """,
    )
    with submission.subject("f") as subject:
        assert call(subject).value == 1.0


# Answers that are none.

FORGED = {
    "a huge claim": "b'SEQ1' + (10 << 30).to_bytes(8, 'little')",
    "no frame": "b'GET / HTTP/1.1' * 10",
    "no value": "b'SEQ1' + (1).to_bytes(8, 'little') + b'?'",
    "deep nesting": "b'SEQ1' + (5 * 10**5).to_bytes(8, 'little') + b'l\\1\\0\\0\\0' * 10**5",
    "a value that is no reply": "b'SEQ1' + (1).to_bytes(8, 'little') + b'N'",
    "full marks": "frame({'score': 1.0, 'passed': True})",
    "a reply with a verdict": "frame({'reply': {'value': 1, 'score': 1.0}})",
    "a reply with wrong types": (
        "frame({'reply': {'value': 1, 'error': 3, 'where': [], 'modified': [], 'stdout': '',"
        " 'fault': None, 'warnings': []}})"
    ),
    "a reply and more": (
        "frame({'reply': {'value': 1, 'error': None, 'where': [], 'modified': [],"
        " 'stdout': '', 'fault': None, 'warnings': []}}) + b'S'"
    ),
    "a call of no function": "frame({'ask': 0, 'args': [], 'kwargs': {}})",
    "a call with bad arguments": "frame({'ask': 0, 'args': 3, 'kwargs': {}})",
}
FORGE = """
import os, struct, sys, time
frame = next(m.frame for n, m in sys.modules.items() if n.endswith("inside.codec"))

def f(forge):
    if not forge:
        return "fine"
    data = eval(forge)
    for number in range(3, 128):
        try:
            os.write(number, data)
        except OSError:
            pass
    time.sleep(0.3)
    return "forged"
"""


@pytest.mark.parametrize("name", FORGED)
def test_forged_answers_are_refused(submission, name):
    assert run(submission, FORGE).ok
    with submission.subject("f") as subject:
        reply = call(subject, FORGED[name])
        assert reply.fault == "protocol"
        assert reply.value is None
        assert "could not be read" in reply.error or "more came" in reply.error
        assert call(subject, "").value == "fine"


def test_an_answer_that_drips_is_cut_off(submission):
    run(
        submission,
        """
        import os, time
        def f():
            for number in range(3, 128):
                try:
                    os.write(number, b"SEQ1" + (1 << 20).to_bytes(8, "little"))
                    while True:
                        os.write(number, b"l")
                        time.sleep(0.05)
                except OSError:
                    pass
        """,
    )
    with submission.subject("f") as subject:
        assert call(subject).fault == "timeout"


def test_a_process_that_does_not_read_is_cut_off(submission):
    run(submission, "import os, signal\ndef f(*x): os.kill(os.getpid(), signal.SIGSTOP)")
    with submission.subject("f") as subject:
        assert call(subject, np.zeros(2**21)).fault == "timeout"


def test_code_that_replaces_our_functions_gains_nothing(submission):
    run(
        submission,
        """
        import os, sys, numpy as np
        for name, module in list(sys.modules.items()):
            if name.startswith("_sandbox"):
                for key, value in list(vars(module).items()):
                    if callable(value) and not key.startswith("__"):
                        try: setattr(module, key, lambda *a, **k: 1.0)
                        except Exception: pass
        os.fork = lambda: 4242
        np.allclose = np.array_equal = lambda *a, **k: True
        def f(): return 1
        """,
    )
    reply = call(submission.subject("f"))
    assert reply.value in (None, 1)


def test_a_late_answer_is_not_taken_for_the_next(submission):
    """A fault ends the process, so what it still had to say is lost with it."""
    run(submission, "import time\ndef f(wait):\n    time.sleep(wait)\n    return wait")
    with submission.subject("f") as subject:
        assert subject.perform({"do": "call", "args": [4], "seconds": 0.2}).fault == "timeout"
        assert call(subject, 0).value == 0


def test_the_limit_of_a_request_is_in_the_request(submission):
    run(submission, "def f():\n    n = 0\n    for i in range(2 * 10**7): n += 1\n    return n")
    with submission.subject("f") as subject:
        reply = subject.perform({"do": "call", "seconds": 0.1})
        assert reply.fault == "timeout"
        assert "0.1 s" in reply.error
        assert subject.perform({"do": "call", "seconds": 30.0}).value == 2 * 10**7


def test_a_large_answer_is_refused_with_a_sentence(submission):
    run(submission, "import numpy as np\ndef f(n): return np.zeros(n)")
    with submission.subject("f") as subject:
        reply = call(subject, 2**21)
        assert (reply.fault, reply.error) == ("unsupported", "the result takes more than 8 MiB")
        assert call(subject, 2**19).value.shape == (2**19,)


def test_answers_take_little_memory_of_the_judge(submission):
    run(submission, FORGE)
    forge = "b'SEQ1' + (32 << 20).to_bytes(8, 'little') + b'l' * (32 << 20)"
    tracemalloc.start()
    try:
        with submission.subject("f") as subject:
            assert call(subject, forge).fault == "protocol"
            large = "frame({'reply': [b'x' * (7 << 20)]})"
            assert call(subject, large).fault == "protocol"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMITS.answer


def test_replaced_builtins_change_nothing_outside_the_notebook(submission):
    """The code around the notebook has built-in functions of its own."""
    result = submission.run_cell(
        "import builtins\n"
        "def refuse(*args, **kwargs): raise RuntimeError('replaced')\n"
        "for name in ('max', 'min', 'abs', 'all', 'any', 'sum', 'sorted', 'round'):\n"
        "    setattr(builtins, name, refuse)\n"
        "def f(x): return 2 * x"
    )
    assert result.ok
    subject = submission.subject("f")
    reply = subject.perform({"do": "call", "args": [np.ones(3)]})
    subject.close()
    assert reply.error is None
    assert reply.value.tolist() == [2, 2, 2]
