"""Submissions in the sandbox: what their cells put out, and their functions as subjects."""

import numpy as np
import pytest
from sandbox_tools import LIMITS, call, run

import seqlib
from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply
from seqlib.subject.values import Handle, Seed

pytestmark = pytest.mark.sandbox


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


def test_garbage_is_collected(submission):
    assert run(submission, "import gc\ngc.isenabled()").outputs[0]["data"] == {
        "text/plain": "True"
    }


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


def test_what_libraries_want_done_at_a_fork_is_done_where_it_matters(submission):
    """A thread that held a lock of ``logging`` has ended in a fork, where the lock is free."""
    result = submission.run_cell(
        "import logging, os, threading, time\n"
        "handler = logging.StreamHandler()\n"
        "def hold():\n"
        "    with handler.lock:\n"
        "        time.sleep(60)\n"
        "def f():\n"
        "    return threading.active_count(), handler.lock.acquire(timeout=1)\n"
        "def g():\n"
        "    read, write = os.pipe()\n"
        "    if os.fork() == 0:\n"
        "        os.write(write, bytes(f()))\n"
        "        os._exit(0)\n"
        "    return list(os.read(read, 2))\n"
        "threading.Thread(target=hold, daemon=True).start()\n"
        "time.sleep(0.2)\n"
        "f(), g()"
    )
    assert result.outputs[0]["data"] == {"text/plain": "((2, False), [1, 1])"}
    with submission.subject("f") as subject:
        assert subject.perform({"do": "call"}).value == (1, True)
