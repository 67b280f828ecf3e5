"""Attacks on what the judge reads from the sandbox: statuses, numbers, outputs, files, dicts.

The student's process is the far side of every message, and code in a cell can replace whatever
that process runs. Nothing that it says may end the judge, or cost it minutes or gigabytes.
"""

import json
import os
import resource
import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sandbox_tools import LIMITS, call, open_sandbox, run

from seqlib.grading.sandbox.inside import codec
from seqlib.grading.sandbox.inside.limits import MIB
from seqlib.grading.sandbox.outputs import clean_outputs
from seqlib.grading.sandbox.spawned import describe_status, remove_folder
from seqlib.subject.values import Handle

pytestmark = pytest.mark.sandbox

# A cell that gets hold of the modules which serve the student's process.
MODULES = """
import sys
ours = {n.rpartition(".")[2]: m for n, m in sys.modules.items() if n.startswith("_sandbox.")}
child, shell, codec = ours["child"], ours["shell"], ours["codec"]
"""


def tampered(submission, source):
    assert run(submission, MODULES).ok
    run(submission, source)


STATUSES = [10**30, -1, "text", None, [1], 2**16]


@pytest.mark.parametrize("status", STATUSES, ids=repr)
def test_a_forged_status_is_only_a_text(submission, status):
    tampered(
        submission,
        f"""
        def forged(pid, options, wait=child._waitpid):
            return wait(pid, options)[0], {status!r}
        child._waitpid = forged
        def f():
            import os
            os._exit(0)
        """,
    )
    with submission.subject("f") as subject:
        reply = call(subject)
    assert reply.fault == "crash"
    assert reply.error.startswith("the call ended the Python process (")


def test_statuses_that_are_none():
    assert {describe_status(s) for s in (10**30, -1, 2**16, None, True)} == {
        "for a reason that is not known"
    }
    assert describe_status(9) == "signal SIGKILL"
    assert describe_status(3 << 8) == "exit code 3"


NUMBERS = ["-(2 ** (8 * 500))", "2 ** 62", "0", "-1", "True", "'1'", "[]"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_forged_process_number_is_refused(submission, number):
    tampered(
        submission,
        f"""
        def send(self, value, limit=None, original=child.Channel.send):
            if type(value) is dict and "pid" in value:
                value = {{"pid": {number}}}
            original(self, value)
        child.Channel.send = send
        def f():
            return 1
        """,
    )
    with submission.subject("f") as subject:
        reply = call(subject)
        assert reply.fault is not None
    # One process is started again after another, until the submission is given up.
    assert submission.given_up is not None


OUTPUTS = {
    "kind": [{"output_type": np.zeros(2)}],
    "name": [{"output_type": "stream", "name": np.zeros(2), "text": "x"}],
    "text": [{"output_type": "stream", "name": "stdout", "text": np.zeros(2)}],
    "data": [{"output_type": "display_data", "data": {"text/plain": {}, "image/png": 1}}],
    "count": [{"output_type": "execute_result", "data": {}, "execution_count": 10**500}],
    "traceback": [{"output_type": "error", "ename": 1, "evalue": b"", "traceback": "x"}],
    "page": [{"output_type": "display_data", "data": {"text/html": "<script>"}}],
    "picture": [{"output_type": "display_data", "data": {"image/png": "PHNjcmlwdD4="}}],
    "no output": [1, None, "x", [], {}],
    "no list": "x",
}


@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS)
def test_forged_outputs_come_out_sound(outputs):
    cleaned = clean_outputs(outputs, 1000)
    text = json.dumps(cleaned)
    assert "script" not in text
    assert "image/png" not in text
    assert all(o["output_type"] in ("stream", "error", "display_data") for o in cleaned) or (
        cleaned[0]["output_type"] == "execute_result"
    )


FORGE = """
import numpy
def run_cell(interpreter, source):
    return {"ok": True, "outputs": OUTPUTS, "seconds": 0.0, "count": 1}
shell.run_cell = run_cell
"""
FLOOD = (
    '[{"output_type": "error", "ename": "", "evalue": "", "traceback": ["x" * 2000] * 50}] * 5'
)


def test_forged_outputs_of_many_cells_share_one_budget(submission):
    """Each cell alone kept to its limit, and a thousand of them filled the disk."""
    tampered(submission, FORGE.replace("OUTPUTS", FLOOD))
    kept = [submission.run_cell("pass").outputs for _ in range(40)]
    assert len(json.dumps(kept)) < 4 * submission.limits.output + 40_000
    assert len(json.dumps(kept[0])) > submission.limits.output / 2  # the forgery works


def test_forged_outputs_do_not_end_the_judge(submission):
    tampered(submission, FORGE.replace("OUTPUTS", '[{"output_type": numpy.ones(2)}]'))
    assert submission.run_cell("1").outputs == []


# Dicts and integers that take long to read


def encoded(keys):
    parts = [b"d", struct.pack("<I", len(keys))]
    for key in keys:
        size = key.bit_length() // 8 + 1
        parts += [
            b"i",
            struct.pack("<H", size),
            key.to_bytes(size, "little", signed=True),
            b"N",
        ]
    return b"".join(parts)


def test_keys_half_of_which_share_a_hash_are_refused():
    """A fourth of the parts of an answer cost 17 s, although half of the hashes differed."""
    colliding = [k * (2**61 - 1) for k in range(1, 10_001)]
    began = time.process_time()
    with pytest.raises(codec.CodecError, match="keys must differ, got 10000 with one hash"):
        codec.decode(encoded([*range(1, 10_001), *colliding]))
    assert time.process_time() - began < 1.0


def test_honest_keys_that_share_hashes_are_read():
    for keys in ([-1, -2], list(range(-2000, 2000))):
        assert list(codec.decode(encoded(keys))) == keys
    pairs = {(i, j): 0 for i in range(-3, 3) for j in range(-3, 3)}
    assert codec.decode(codec.frame(pairs)[codec.HEADER.size :]) == pairs


def test_an_integer_beyond_what_python_writes_is_refused():
    for integer in (10**5000, -(2 ** (8 * 65535 - 1))):
        size = (integer.bit_length() + 8) // 8
        body = b"i" + struct.pack("<H", min(size, 65535)) + b"\x80" * min(size, 65535)
        with pytest.raises(codec.CodecError, match="integer"):
            codec.decode(body)


# Files


@pytest.fixture
def landlock(sandbox):
    """Return the sandbox where the folder of a submission lies on the judge's disk."""
    if "landlock" not in sandbox.layers:
        pytest.skip("with namespaces the folder is in memory and has a quota of the kernel")
    return sandbox


DEEP = """
import os
for _ in range(1200):
    os.mkdir("a")
    os.chdir("a")
"""
HIDDEN = """
import os, time
for _ in range(20):
    os.mkdir("b" * 250)
    os.chdir("b" * 250)
written = 0
for n in range(60):
    with open(f"f{n}", "wb") as file:
        written += file.write(bytes(1 << 20))
    time.sleep(0.03)
"""
UNREADABLE = """
import os, time
os.mkdir("x", 0o300)
for n in range(60):
    with open(f"x/f{n}", "wb") as file:
        file.write(bytes(1 << 20))
    time.sleep(0.03)
"""


@pytest.mark.parametrize("source", [DEEP, HIDDEN, UNREADABLE], ids=["deep", "hidden", "closed"])
def test_no_depth_of_folders_hides_files_or_ends_the_judge(landlock, student_build, source):
    with landlock.open(student_build) as submission:
        home = submission._spawned._home
        cell = submission.run_cell(source)
        assert cell.fault == "memory"
        assert cell.outputs[0]["evalue"].endswith("more than 32 MiB of files.")
        assert submission.run_cell("1").ok
    assert not os.path.lexists(home)


UNLINKED = """
import os, time
held = []
for n in range(60):
    held.append(open(f"f{n}", "wb"))
    os.unlink(f"f{n}")
    held[-1].write(bytes(1 << 20))
    held[-1].flush()
    time.sleep(0.03)
"""


MAPPED = """
import ctypes, os, time
map_ = ctypes.CDLL(None).mmap
map_.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
map_.restype = ctypes.c_void_p
for n in range(60):
    with open(f"f{n}", "w+b") as file:
        os.unlink(f"f{n}")
        file.write(bytes(1 << 20))
        file.flush()
        assert map_(None, 1 << 20, 1, 1, file.fileno(), 0)  # to be read, shared
    time.sleep(0.03)
"""


@pytest.mark.parametrize("source", [UNLINKED, MAPPED], ids=["open", "mapped"])
def test_files_without_a_name_count(landlock, student_build, source):
    """128 open files of 16 MiB in 24 processes: 48 GiB of the judge's disk."""
    with landlock.open(student_build) as submission:
        assert submission.run_cell(source).fault == "memory"
        assert submission.run_cell("import tempfile\ntempfile.TemporaryFile().write(b'1')").ok


def test_a_folder_is_removed_however_deep_and_whatever_its_modes(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    here = os.getcwd()
    os.chdir(top)
    try:
        for _ in range(40):
            os.mkdir("b" * 250)
            os.chdir("b" * 250)
        Path("file").write_text("x")
        os.symlink(outside, "link")
        os.mkdir("closed", 0o300)
        os.chmod(".", 0o500)
    finally:
        os.chdir(here)
    (top / "link").symlink_to(outside)
    remove_folder(top)
    assert not top.exists()
    assert (outside / "kept").read_text() == "kept"


# Frames


FRAMES = {
    "a score": b'SEQ1{"score": 90.0}',
    "10 GB announced": b"SEQ1" + struct.pack("<Q", 10 << 30),
    "pickle": b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system",
    "half a frame": b"SEQ",
    "two answers": codec.frame({"reply": 1}) * 2,
    "no reply": codec.frame({"score": 90.0}),
    "a reply with more fields": codec.frame({"reply": {"value": 6, "score": 90.0}}),
    "a call that is none": codec.frame({"ask": 99, "args": [], "kwargs": {}}),
    "calls without end": codec.frame({"ask": 0, "args": [], "kwargs": {}}) * 3,
}


@pytest.mark.parametrize("data", FRAMES.values(), ids=FRAMES)
def test_a_forged_frame_is_no_answer(submission, data):
    run(
        submission,
        f"""
        import os
        def f(x):
            for n in range(3, 128):
                try:
                    os.write(n, {data!r})
                except OSError:
                    pass
            return 2 * x
        """,
    )
    with submission.subject("f") as subject:
        reply = call(subject, 3)
    assert reply.fault in ("protocol", "timeout")
    assert reply.value is None


def test_a_reply_prepared_for_the_next_request_is_only_an_answer(submission):
    """It may be taken for the answer to that request, which any function could give."""
    tampered(
        submission,
        """
        def f(x):
            return 2 * x
        def late(self, value, limit=None, original=child.Channel.send):
            original(self, value)
            if "reply" in value:
                import threading
                threading.Timer(0.05, original, (self, value)).start()
        child.Channel.send = late
        """,
    )
    with submission.subject("f") as subject:
        assert call(subject, 3).value == 6
        time.sleep(0.2)
        second = call(subject, 4)
        assert second.fault == "protocol" or second.value in (6, 8)


@pytest.fixture
def patient(sandbox, student_build, monkeypatch):
    """Return a submission that may compute long, where another limit is what counts."""
    monkeypatch.setattr(sandbox, "limits", replace(LIMITS, cell=20.0, call=20.0))
    with sandbox.open(student_build) as submission:
        yield submission


def test_the_limit_of_an_answer_bounds_what_is_read(patient):
    tampered(
        patient,
        """
        import numpy as np
        def f():
            return np.zeros(3 << 20)
        child._answer.__globals__["_answer"] = lambda channel, reply, limit: channel.send(
            {"reply": reply}
        )
        """,
    )
    with patient.subject("f") as subject:
        reply = call(subject)
    assert patient.limits.answer == 8 * MIB
    assert reply.fault == "protocol"
    assert "at most" in reply.error


def test_forged_names_of_changed_arguments_are_dropped(submission):
    tampered(
        submission,
        """
        def f(x, y):
            return 1
        perform = child.Session.perform
        child.Session.perform = lambda self, request: perform(self, request) | {
            "modified": ["full marks were given by mistake", "1", "y", "9", "1"]
        }
        """,
    )
    with submission.subject("f") as subject:
        assert call(subject, np.ones(2), np.ones(2)).modified == ("1",)


# Functions of the judge that student code may call


@pytest.mark.parametrize(
    ("size", "says"),
    [(10**7, "larger than 32 MiB"), (10**8, "would take more than 256 MiB")],
)
def test_a_function_of_the_judge_cannot_be_made_to_fill_its_memory(size, says, submission):
    """Of what a function gets, it may make much more: a product of (n, 0) and (0, n), say."""
    run(submission, f"def f(zeros):\n    return zeros({size}).sum()")
    before = resource.getrlimit(resource.RLIMIT_AS)
    with submission.subject("f") as subject:
        Path("/proc/self/clear_refs").write_text("5")  # the highest size from here on
        start = resident("VmRSS")
        reply = call(subject, Handle(np.ones))
        assert says in reply.error
        assert resident("VmHWM") - start <= 300 * MIB
        assert resource.getrlimit(resource.RLIMIT_AS) == before
        held = np.ones(10**8 // 2)  # no limit of what the judge takes otherwise
        assert held.size
        assert call(subject, Handle(lambda count: np.ones(3))).value == 3.0


def resident(which):
    """Return the bytes of memory that this process has, or had at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(which))


# Memory that is not a process's own

SHARED = """
import mmap, os, time
for _ in range(3):
    if os.fork() == 0:
        block = mmap.mmap(-1, 150 << 20, flags=FLAGS)
        for _ in range(150):
            block.write(b"x" * (1 << 20))
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""


@pytest.mark.parametrize("flags", ["MAP_SHARED", "MAP_PRIVATE"])
def test_memory_of_several_processes_counts_shared_or_not(patient, flags):
    """Shared memory counted nowhere: 24 processes could fill 2 GiB each."""
    assert patient.limits.memory == 256 * MIB
    source = SHARED.replace("FLAGS", f"mmap.{flags} | mmap.MAP_ANONYMOUS")
    cell = patient.run_cell(source)
    assert cell.fault == "memory"
    assert "more than 256 MiB" in cell.outputs[0]["evalue"]


def test_memory_in_place_of_the_fork_servers_counts(student_build):
    """A fork shares all memory at first; what it overwrites is its own."""
    limits = replace(LIMITS, memory=160 * MIB, processes=40, cell=3.0)
    source = """
    import gc, os, time
    held = [bytearray(b"x") * (1 << 20) for _ in range(60)]
    for _ in range(16):
        if os.fork() == 0:
            for block in held:
                block[:] = b"y" * len(block)
            time.sleep(60)
            os._exit(0)
    time.sleep(60)
    """
    with open_sandbox("best", limits=limits, plots=False) as sandbox:
        with sandbox.open(student_build) as submission:
            assert run(submission, source).fault == "memory"
        with sandbox.open(student_build) as submission:
            idle = source.replace('block[:] = b"y" * len(block)', "pass").replace("60", "0.5")
            assert run(submission, idle).fault is None  # shared by all, it counts once
