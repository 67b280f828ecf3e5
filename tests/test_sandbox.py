"""Submissions in the sandbox: cells, subjects, faults and their cost, and what is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc

import numpy as np
import pytest
from sandbox_tools import LIMITS, assert_gone, call, open_sandbox

import seqlib
from seqlib.grading import processes
from seqlib.grading.errors import SandboxError, SandboxUnavailable
from seqlib.grading.sandbox import Sandbox
from seqlib.grading.student_build import write_student_build
from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply
from seqlib.subject.values import Handle, Seed

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return write_student_build(["seqlib.np.softmax"], tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module", params=["best", "landlock"])
def sandbox(request):
    with open_sandbox(request.param, limits=LIMITS, plots=False) as sandbox:
        yield sandbox


@pytest.fixture
def submission(sandbox, build):
    """Return a submission, and assert at the end that nothing of it lives on."""
    with sandbox.open(build) as submission:
        yield submission
        running = submission.process_numbers()
    if running:
        assert_gone(running)


def run(submission, source):
    return submission.run_cell(textwrap.dedent(source))


# What cells put out.


def test_outputs_have_the_form_of_nbformat(submission):
    result = run(submission, "import sys\nprint('a')\nprint('b', file=sys.stderr)\n[1, 2]")
    assert result.ok
    assert result.fault is None
    assert result.outputs == [
        {"output_type": "stream", "name": "stdout", "text": "a\n"},
        {"output_type": "stream", "name": "stderr", "text": "b\n"},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "[1, 2]"},
            "metadata": {},
            "execution_count": 1,
        },
    ]


def test_an_error_is_an_output_and_the_next_cell_runs(submission):
    result = run(submission, "x = 1\nx / 0")
    assert not result.ok
    assert result.fault is None
    (output,) = result.outputs
    assert (output["output_type"], output["ename"]) == ("error", "ZeroDivisionError")
    assert output["evalue"] == "division by zero"
    assert any("x / 0" in line for line in output["traceback"])
    assert run(submission, "x").outputs[0]["data"] == {"text/plain": "1"}


def test_only_text_is_kept_of_rich_outputs(submission):
    result = run(
        submission,
        """
        from IPython.display import HTML, Javascript, SVG, display
        display(HTML("<script>alert(1)</script>"))
        class Rich:
            def _repr_html_(self): return "<b>bold</b>"
            def _repr_svg_(self): return "<svg/>"
            def __repr__(self): return "plain\\x1b[31m\\x00text"
        Rich()
        """,
    )
    assert result.ok
    assert [set(output["data"]) for output in result.outputs] == [{"text/plain"}] * 2
    assert result.outputs[1]["data"]["text/plain"] == "plaintext"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("!ls", ""),
        ("%pip install something", ""),
        ("input('your name?')", "EOFError"),
        ("exit()", ""),
        ("quit()", ""),
        ("raise SystemExit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("%timeit -n1 -r1 1", "loop"),
        ("import asyncio\nawait asyncio.sleep(0.01)", ""),
        ("def f(:", "SyntaxError"),
        ("%debug", ""),
        ("import this", "Zen"),
        ("help(len)", "Return the number of items"),
    ],
)
def test_magics_and_ways_to_leave_do_no_harm(submission, source, shown):
    run(submission, "x = 5")
    result = submission.run_cell(source)
    assert result.fault is None
    assert shown in str(result.outputs)
    assert run(submission, "x").outputs[0]["data"] == {"text/plain": "5"}


def test_output_is_cut(submission):
    result = run(submission, "for _ in range(300):\n    print('x' * 100_000)")
    assert result.ok
    assert LIMITS.output <= len(str(result.outputs)) < 2 * LIMITS.output
    assert "the rest was left out" in result.outputs[-1]["text"]
    assert run(submission, "print('more')\n1").ok


def test_a_cell_writes_and_reads_its_folder(submission):
    result = run(submission, "open('a.txt', 'w').write('é')\nopen('a.txt').read()")
    assert result.outputs[-1]["data"]["text/plain"] == "'é'"


def test_check_and_grants_are_the_student_build(submission):
    result = run(
        submission,
        """
        from seqlib import check
        from seqlib.np import softmax
        import numpy as np
        check("made_up.f", softmax), softmax(np.zeros(2)).tolist()
        """,
    )
    assert "made_up.f: judged by the grader" in result.outputs[0]["text"]
    assert result.outputs[1]["data"]["text/plain"] == "(0.0, [0.5, 0.5])"
    assert (
        "is not available" in run(submission, "from seqlib.np import gelu").outputs[0]["evalue"]
    )


# Subjects.


def test_a_subject_is_judged_at_its_place_in_the_notebook(submission):
    run(submission, "k = 2\ndef f(x): return k * x")
    with submission.subject("f") as subject:
        assert call(subject, 3).value == 6
    run(submission, "k = 5")
    with submission.subject("f") as subject:
        assert call(subject, 3).value == 15
    with submission.subject("lambda x: f(x) + 1") as subject:
        assert call(subject, 3).value == 16


def test_what_a_task_changes_is_undone(submission):
    run(submission, "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)")
    with submission.subject("f") as first, submission.subject("f") as second:
        assert [call(first, 0).value for _ in range(2)] == [1, 2]
        assert call(second, 0).value == 1
        with first.fresh() as fresh:
            assert call(fresh, 0).value == 1
        assert call(first, 0).value == 3
    assert run(submission, "seen").outputs[0]["data"]["text/plain"] == "[]"


def test_a_subject_belongs_to_a_state(submission):
    run(submission, "def f(): return 1")
    subject = submission.subject("f")
    run(submission, "def f(): return 2")
    with pytest.raises(RuntimeError, match="cells were run"):
        call(subject)
    with pytest.raises(RuntimeError, match="cells were run"):
        subject.fresh()


def test_a_name_that_is_missing(submission):
    with submission.subject("attention") as subject:
        reply = call(subject)
        assert reply.error == "NameError: name 'attention' is not defined"
        assert reply.fault is None


def test_a_function_of_the_judge_is_called_while_a_request_is_open(submission):
    run(submission, "def f(g, n):\n    return [g(i, k=i + 1) for i in range(n)]")
    received = []

    def g(i, k):
        received.append((i, k))
        return np.full(2, i * k)

    with submission.subject("f") as subject:
        reply = call(subject, Handle(g), 3)
        assert np.array_equal(reply.value, [[0, 0], [2, 2], [6, 6]])
        assert received == [(0, 1), (1, 2), (2, 3)]
        with_ids = call(subject, Handle(lambda i, k: 1), 0)
        assert with_ids.value == []


def test_what_the_judges_function_raises_is_raised_in_the_students_code(submission):
    run(
        submission,
        """
        def f(g):
            try:
                return g()
            except ValueError as error:
                return str(error)
        """,
    )

    def refuse():
        raise ValueError("x must be positive, got -1")

    class OwnError(Exception):
        pass

    def fail():
        raise OwnError("secret path")

    with submission.subject("f") as subject:
        assert call(subject, Handle(refuse)).value == "x must be positive, got -1"
        assert call(subject, Handle(fail)).error == "RuntimeError: OwnError: secret path"


def test_what_is_sent_to_the_judges_function_is_limited(submission):
    run(submission, "import numpy as np\ndef f(g, n):\n    return g(np.zeros((n, 1)))")
    sizes = []
    with submission.subject("f") as subject:
        small = call(subject, Handle(lambda x: sizes.append(x.size)), LIMITS.ask_numbers)
        large = call(subject, Handle(lambda x: sizes.append(x.size)), LIMITS.ask_numbers + 1)
    assert small.ok
    assert "may hold 2048 numbers" in large.error
    assert sizes == [LIMITS.ask_numbers]


# The same request gives the same reply here and in the sandbox.

SOURCE = """import sys, warnings
import numpy as np
calls = []
offset = 1.0

def identity(*args, **kwargs):
    return (*args, kwargs)

def changes(x, *, y):
    x += 1
    y["k"][0] = 7
    return x

def prints(x):
    print("shape", x.shape)
    print("err", file=sys.stderr)
    warnings.warn("careful")
    np.log(np.zeros(1))
    return x

def fails(x):
    def inner(x):
        raise ValueError(f"x must be 3, got {x}")
    return inner(x)

def leaves():
    raise SystemExit(2)

def draws(rng):
    return rng.standard_normal(3)

def maps(g, x):
    return [g(row, scale=2.0) for row in x]

def passes_on(g):
    return g(1)

def objects():
    return {1, 2}

def subclass():
    return np.matrix([[1, 2]], dtype=np.float32)

def nested():
    return {"a": [np.float32(1.5), (None, True)], 2: b"x", ("t", 1): np.zeros((0, 3), int)}

def remembers():
    calls.append(1)
    return len(calls)

def shifted(x):
    return x + offset

def uses_linalg(x):
    return np.linalg.norm(x)

class Counter:
    def __init__(self, start):
        self.n = start
    def __call__(self):
        self.n += 1
        return self.n
    def add(self, k, *, twice=False):
        self.n += k * (2 if twice else 1)
        return self.n
"""
ARRAY = np.arange(6.0).reshape(2, 3)


# As if it lay in the library, whose frames are not the student's.
JUDGES = {}
exec(
    compile("def explode(x): raise KeyError('no such thing')", seqlib.__file__, "exec"), JUDGES
)


REQUESTS = {
    "plain values": (
        "identity",
        [{"args": [None, True, -3, 2.5, "é", b"b", [1, (2,)], {"k": 1}], "kwargs": {"a": 1}}],
    ),
    "arrays": (
        "identity",
        [
            {"args": [ARRAY, np.float32(1) * ARRAY, np.zeros((0, 2), np.int8), np.array(True)]},
            {"args": [1j * ARRAY, ARRAY.T, np.array(3), np.float64(2.5)]},
        ],
    ),
    "arguments changed": ("changes", [{"args": [ARRAY], "kwargs": {"y": {"k": [1, 2]}}}] * 2),
    "output and warnings": ("prints", [{"args": [ARRAY]}]),
    "an error": ("fails", [{"args": [4]}, {"args": [[1]]}]),
    "wrong arguments": ("fails", [{"args": []}, {"kwargs": {"z": 1}}]),
    "SystemExit": ("leaves", [{}]),
    "a generator": ("draws", [{"args": [Seed(3)]}, {"args": [Seed(3)]}, {"args": [Seed(4)]}]),
    "a function": ("maps", [{"args": [Handle(lambda r, scale: r * scale), ARRAY]}]),
    "a function that fails": ("passes_on", [{"args": [Handle(JUDGES["explode"])]}]),
    "not plain": ("objects", [{}]),
    "a subclass": ("subclass", [{}]),
    "nested": ("nested", [{}]),
    "state": ("remembers", [{}, {}]),
    "globals": ("shifted", [{"args": [1.0], "globals": {"offset": 10.0}}, {"args": [1.0]}]),
    "refused": (
        "uses_linalg",
        [{"args": [ARRAY], "refuse": ["numpy.linalg.norm"]}, {"args": [ARRAY]}],
    ),
    "keep and use": (
        "Counter",
        [
            {"do": "keep", "name": "c", "args": [10]},
            {"do": "use", "name": "c"},
            {"do": "use", "name": "c", "method": "add", "args": [5], "kwargs": {"twice": True}},
            {"do": "use", "name": "c", "method": "missing"},
            {"do": "use", "name": "other"},
        ],
    ),
}


def equal(a, b):
    """Whether two plain values are the same to the last bit and type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return equal(list(a), list(b)) and equal(list(a.values()), list(b.values()))
    return a == b


@pytest.mark.parametrize("name", REQUESTS)
def test_both_subjects_give_the_same_reply(submission, name):
    expression, requests = REQUESTS[name]
    space = {}
    exec(compile(SOURCE, "<cell>", "exec"), space)
    here = InProcess(space[expression])
    assert submission.run_cell(SOURCE).ok
    with submission.subject(expression) as there:
        for request in requests:
            request = {"do": "call", **request}
            ours, theirs = here.perform(request), there.perform(request)
            for field in Reply.__dataclass_fields__:
                assert equal(getattr(ours, field), getattr(theirs, field)), field


# What goes wrong costs the cell or the request, no more.

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
    "memory": ("x = bytearray(b'x') * (600 << 20)\nwhile True: pass", "memory", "memory"),
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


def test_time_of_the_whole_submission(sandbox, build, monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(sandbox, "limits", replace(LIMITS, submission=0.5, patience=1.0))
    with sandbox.open(build) as submission:
        run(submission, "import time\ndef f(): return 1")
        assert run(submission, "time.sleep(1)").fault == "timeout"
        assert run(submission, "1").fault == "stopped"
        assert call(submission.subject("f")).fault == "stopped"
        assert "0.5 s altogether" in submission.given_up


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
frame = next(m.frame for n, m in sys.modules.items() if n.endswith("grading.codec"))

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


# What is left.


def test_processes_left_behind_end_with_the_submission(sandbox, build):
    with sandbox.open(build) as submission:
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


def test_a_storm_of_forks_ends_with_the_submission(sandbox, build):
    with sandbox.open(build) as submission:
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
from seqlib.grading.sandbox import Sandbox
with Sandbox(level=sys.argv[2], plots=False) as sandbox:
    submission = sandbox.open(sys.argv[1])
    submission.run_cell(
        "import os, time\\n"
        "if os.fork() == 0:\\n    os.setsid()\\n    time.sleep(1000)\\n"
    )
    print(sandbox._folder, flush=True)
    submission.run_cell("while True: pass")
"""


def test_nothing_is_left_when_the_judge_is_killed(sandbox, build):
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(build), sandbox.level],
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


def test_nothing_is_left_when_a_supervisor_is_killed(sandbox, build):
    submission = sandbox.open(build)
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


def test_a_fork_server_that_died_is_replaced(build):
    with open_sandbox("best", limits=LIMITS, plots=False) as sandbox:
        os.kill(sandbox.info["pid"], signal.SIGKILL)
        with sandbox.open(build) as submission:
            assert run(submission, "1").ok


def test_a_sandbox_that_cannot_start_is_no_verdict(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(SandboxError, match="did not start"):
        Sandbox(level="none")


def test_other_machines_are_refused(monkeypatch):
    monkeypatch.setattr("seqlib.grading.syscalls.MACHINE", "riscv64")
    with pytest.raises(SandboxUnavailable, match="this machine is riscv64"):
        Sandbox()
    monkeypatch.setattr("seqlib.grading.syscalls.SYSTEM", "Darwin")
    with pytest.raises(SandboxUnavailable, match="needs Linux"):
        Sandbox(level="none")


def test_unknown_levels_are_refused():
    with pytest.raises(ValueError, match="level must be one of namespaces, landlock, none"):
        Sandbox(level="docker")
