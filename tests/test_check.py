"""The student's command, as a notebook and as nbgrader see it."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import fixtures_exercises
import numpy as np
import pytest
from fixtures_exercises import TASKS, values

import seqlib
import seqlib.exercises
from seqlib.judge import check as check_module
from seqlib.judge.check import check
from seqlib.judge.seeds import generator, local_seed

TESTS = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def fixtures(monkeypatch):
    """Let the fixture exercises be an assignment of the course."""
    monkeypatch.setattr(seqlib.exercises, "ASSIGNMENTS", ("attention", "fixtures"))
    monkeypatch.setitem(sys.modules, "seqlib.exercises.fixtures", fixtures_exercises)
    monkeypatch.delenv("SEQLIB_SEED", raising=False)
    monkeypatch.setattr(check_module, "_EARNED", {})


def right(x, *, width):
    return values.reference(x, width=width)


def test_points_are_returned_and_lines_printed(capsys):
    assert seqlib.check is check
    points = check("fixtures.smooth", right)
    assert type(points) is float
    assert points == 8.0
    assert capsys.readouterr().out.startswith(
        "fixtures.smooth: 8 of 8 points\n[ok] 4 of 4  means\n"
    )


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.kind)
def test_every_kind_of_task_can_be_checked(task, capsys):
    assert check(task.id, task.reference) == task.points
    assert check(task.id, lambda *args, **kwargs: None) == 0.0


def test_a_partly_right_answer_gets_part_of_the_points(capsys):
    assert (
        check("fixtures.smooth", lambda x, *, width: right(x, width=width).astype(float)) == 7
    )
    assert "Likely mistake: The result is always float64." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "check needs the function itself, smooth, got None"),
        (np.ones(3), "check needs the function itself, smooth, got a value of type ndarray"),
    ],
)
def test_what_is_no_function_gets_a_clear_line(value, line, capsys):
    points = check("fixtures.smooth", value)
    assert type(points) is float
    assert points == 0.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == ["fixtures.smooth: 0 of 8 points", line]


def test_the_last_line_sums_up_the_last_check_of_each_task(capsys):
    def last_line():
        return capsys.readouterr().out.splitlines()[-1]

    other = next(task for task in TASKS.values() if task.function != "smooth")
    check("fixtures.smooth", right)
    assert last_line() == "fixtures so far: 8 of 32 points"
    check(other.id, other.reference)
    assert last_line() == f"fixtures so far: {8 + other.points:g} of 32 points"
    check("fixtures.smooth", None)
    assert last_line() == f"fixtures so far: {other.points:g} of 32 points"


def test_points_of_other_assignments_and_of_written_work_are_not_counted(capsys):
    check("fixtures.smooth", right)
    check("attention.split_heads", lambda x, n_head: x)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "attention so far: 0 of 100 points; 10 are for what you write in words, which a "
        "person grades"
    )


@pytest.mark.parametrize("task_id", ["fixtures.smoth", "fixture.smooth", "smooth", ""])
def test_an_unknown_task_is_the_authors_mistake(task_id):
    with pytest.raises(ValueError, match=r"(task|assignment) must be one of .*, got"):
        check(task_id, right)


def exits(x, *, width):
    sys.exit(0)


def interrupts(x, *, width):
    raise KeyboardInterrupt


def recurses(x, *, width):
    return recurses(x, width=width)


def shouts(x, *, width):
    print("y" * 10**6)
    print("z" * 10**6, file=sys.stderr)
    os.write(2, b"on the descriptor\n")
    warnings.warn("warned", UserWarning, stacklevel=1)
    return right(x, width=width)


@pytest.mark.parametrize("function", [exits, interrupts, recurses])
def test_nothing_that_the_code_does_raises(function, capsys):
    assert check("fixtures.smooth", function) == 0.0
    assert "[--] 0 of 4  means: " in capsys.readouterr().out


def test_noise_of_the_code_does_not_reach_the_cell(capfd):
    """Anything on stderr would cost all points in nbgrader."""
    assert check("fixtures.smooth", shouts) == 8.0
    out, err = capfd.readouterr()
    assert err == ""
    assert len(out) < 1000


def test_an_interrupt_stops_the_check_at_once(capsys):
    calls = []

    def counts(x, *, width):
        calls.append(1)
        raise KeyboardInterrupt

    check("fixtures.smooth", counts)
    assert len(calls) == 1
    assert "not run, since the check was interrupted" in capsys.readouterr().out


def test_the_inputs_are_the_same_until_the_exercise_changes(capsys, monkeypatch):
    def inputs():
        seen = []

        def spy(x, *, width):
            seen.append(x.sum())
            return right(x, width=width)

        check("fixtures.smooth", spy)
        return seen

    first = inputs()
    assert inputs() == first
    monkeypatch.setenv("SEQLIB_SEED", "17")
    assert inputs() != first
    assert local_seed(TASKS["values"]) == 17
    monkeypatch.setenv("SEQLIB_SEED", "new")
    with pytest.raises(ValueError, match="SEQLIB_SEED must be a whole number, got 'new'"):
        check("fixtures.smooth", right)


def test_local_seeds_differ_between_tasks_and_versions():
    task = TASKS["values"]
    later = type(task)(**{**vars(task), "version": 2})
    assert len({local_seed(task), local_seed(later), local_seed(TASKS["text"])}) == 3
    assert local_seed(task) == local_seed(task)


def test_generators_for_two_purposes_are_independent():
    draws = [generator(3, purpose).random(4) for purpose in ("cases", "order", "cases")]
    np.testing.assert_array_equal(draws[0], draws[2])
    assert not np.isin(draws[0], draws[1]).any()


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=TESTS,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )


REGISTER = """
import sys
import fixtures_exercises
import seqlib.exercises
seqlib.exercises.ASSIGNMENTS = ("fixtures",)
sys.modules["seqlib.exercises.fixtures"] = fixtures_exercises
from fixtures_exercises import TASKS
from seqlib.judge.check import check
"""


def test_check_needs_neither_fork_nor_what_only_some_systems_have():
    """As on Windows and in the browser."""
    blocked = (
        "resource fcntl ctypes multiprocessing pwd grp termios torch nbgrader nbformat IPython"
    )
    code = f"""
import os, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked.split()!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Block())
def no_fork(*args):
    raise OSError("no fork")
os.fork = no_fork
{REGISTER}
points = [check(t.id, t.reference) for k, t in TASKS.items() if k != "module"]
print(points)
"""
    run = run_python(code)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.splitlines()[-1] == "[8.0, 5.0, 3.0, 4.0, 4.0, 3.0]"


def test_the_judge_imports_neither_torch_nor_what_is_judged():
    code = (
        "import sys, seqlib.judge.check, seqlib.judge.matrix, seqlib.judge.degenerate\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('torch', 'nbgrader')\n"
        "       or m.startswith(('seqlib.np', 'seqlib.pt', 'seqlib.grading'))])"
    )
    assert run_python(code).stdout == "[]\n"


def test_subject_needs_numpy_alone():
    """The sandbox loads it under another name, where nothing else of seqlib is."""
    code = """
import importlib, pathlib, shutil, sys, tempfile
import seqlib.subject
source = pathlib.Path(seqlib.subject.__file__).parent
for name in [m for m in sys.modules if m.partition(".")[0] == "seqlib"]:
    del sys.modules[name]
with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(source, pathlib.Path(folder, "elsewhere"))
    sys.path.insert(0, folder)
    for file in source.glob("*.py"):
        if file.stem != "modules":
            importlib.import_module("elsewhere." + file.stem)
    from elsewhere.inprocess import InProcess
    print(InProcess(len).perform({"do": "call", "args": ["abc"]}).value)
print([m for m in sys.modules if m.partition(".")[0] in ("seqlib", "torch")])
"""
    run = run_python(code)
    assert run.stdout == "3\n[]\n", run.stderr


@pytest.mark.parametrize("ctrl_c", ["heeded", "ignored"])
def test_code_that_does_not_end_is_stopped_on_a_students_machine(ctrl_c):
    """Ctrl-C is ignored where a shell has started the program in the background."""
    handler = {"heeded": "default_int_handler", "ignored": "SIG_IGN"}[ctrl_c]
    code = f"""{REGISTER}
import dataclasses, signal, time
signal.signal(signal.SIGINT, signal.{handler})
task = dataclasses.replace(TASKS["values"], seconds=0.2)
short = dataclasses.replace(fixtures_exercises.ASSIGNMENT, tasks=(task,))
fixtures_exercises.ASSIGNMENT = short
def loops(x, *, width):
    while True:
        pass
def sleeps(x, *, width):
    time.sleep(100)
def stubborn(x, *, width):
    for swallowed in range(10**9):
        try:
            time.sleep(100)
        except BaseException:
            if swallowed:
                raise
print(check(task.id, loops), check(task.id, sleeps), check(task.id, stubborn))
assert signal.getsignal(signal.SIGINT) is signal.{handler}
"""
    run = run_python(code)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "0.0 0.0 0.0"
    assert run.stdout.count("no answer within 0.2 s; is there a loop that does not end?") >= 3


def test_a_limit_counts_computing_and_not_what_others_do_meanwhile():
    """Code that is halted or waits has three times as long, like on the grader's machine."""
    code = """
import time
from seqlib.subject.inprocess import InProcess
def waits(seconds):
    time.sleep(seconds)
    return "waited"
def computes(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "computed"
for function, seconds in ((waits, 1.5), (computes, 1.5), (computes, 0.5)):
    reply = InProcess(function).perform({"do": "call", "args": [seconds], "seconds": 1.0})
    print(reply.value, reply.fault)
"""
    run = run_python(code)
    assert run.stderr == ""
    assert run.stdout.splitlines() == ["waited None", "None timeout", "computed None"]


def test_the_report_can_be_printed_in_any_encoding():
    code = f"{REGISTER}\nprint(check('fixtures.run_lengths', lambda text: ('é' + text, {{}})))"
    run = run_python(code, PYTHONIOENCODING="ascii")
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("0.0\n")
