"""Requests through the in-process subject: what a student's code can do to its caller."""

import math
import os
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

from seqlib.subject import shortcuts
from seqlib.subject.inprocess import InProcess
from seqlib.subject.values import Handle, Seed


def call(function, *args, **kwargs):
    return InProcess(function).perform({"do": "call", "args": list(args), "kwargs": kwargs})


def test_a_call_returns_a_plain_value():
    reply = call(lambda x, *, scale: x * scale, np.arange(3.0), scale=2)
    assert reply.ok
    np.testing.assert_array_equal(reply.value, [0.0, 2.0, 4.0])
    assert reply.modified == ()


def test_arguments_are_fresh_and_writable_and_changes_are_reported():
    given = np.arange(3.0)
    given.flags.writeable = False

    def spoil(x, table, *, y):
        x += 1
        table["w"][0] = 7
        y[:] = 0
        return x

    reply = call(spoil, given, {"w": [1, 2]}, y=np.ones(2))
    assert reply.modified == ("0", "1", "y")
    np.testing.assert_array_equal(given, [0, 1, 2])


def test_a_view_of_an_argument_is_copied_before_anything_else_happens():
    kept = []

    def view(x):
        kept.append(x)
        return x[1:]

    reply = call(view, np.arange(3.0))
    kept[0][:] = -1
    np.testing.assert_array_equal(reply.value, [1.0, 2.0])


def test_nan_in_an_argument_is_not_a_change():
    assert call(np.sum, np.array([np.nan, -np.inf])).modified == ()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("heads must\n divide\x1b[31m"), "ValueError: heads must divide [31m"),
        (SystemExit(0), "SystemExit: 0"),
        (GeneratorExit(), "GeneratorExit"),
        (RuntimeError("x" * 10_000), "RuntimeError: " + "x" * 283 + "..."),
    ],
)
def test_any_exception_becomes_one_line(error, line):
    def fails(x):
        raise error

    reply = call(fails, 1)
    assert reply.error == line
    assert not reply.ok
    assert reply.where[-1].endswith("in fails")


def test_an_interrupt_and_lack_of_memory_are_faults():
    def interrupted():
        raise KeyboardInterrupt

    def greedy():
        raise MemoryError

    assert call(interrupted).fault == "interrupted"
    assert call(greedy).fault == "memory"


def test_an_exception_whose_text_fails_is_reported_by_its_name():
    class Spiteful(Exception):
        def __str__(self):
            raise SystemExit

    def fails():
        raise Spiteful

    assert call(fails).error == "Spiteful"


def test_endless_recursion_is_an_error_with_few_frames():
    def again(x):
        return again(x)

    reply = call(again, 1)
    assert reply.error.startswith("RecursionError")
    assert 1 <= len(reply.where) <= 4


def test_frames_of_libraries_are_left_out():
    def fails(x):
        return np.linalg.inv(x)

    reply = call(fails, np.zeros((2, 2)))
    assert reply.error == "LinAlgError: Singular matrix"
    assert [frame.split(" in ")[1] for frame in reply.where] == ["fails"]


def test_output_is_kept_apart_and_cut(capfd):
    def noisy():
        print("hello")
        print("x" * 2**20)
        print("on stderr", file=sys.stderr)
        os.write(2, b"on descriptor 2\n")
        return 1

    reply = call(noisy)
    assert reply.stdout.startswith("hello\nxxx")
    assert reply.stdout.endswith("[output cut]")
    assert len(reply.stdout) < 5000
    assert capfd.readouterr() == ("", "")


def test_streams_are_put_back_even_if_the_code_replaced_them():
    before = sys.stdin, sys.stdout, sys.stderr

    def replaces():
        sys.stdout = sys.stderr = None

    call(replaces)
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_input_does_not_wait_for_anybody():
    assert call(lambda: sys.stdin.readline() == "").value is True


def test_warnings_are_recorded_and_never_raised():
    def warns():
        for i in range(20):
            warnings.warn(f"number {i}", DeprecationWarning, stacklevel=1)
        return np.log(np.zeros(1))

    reply = call(warns)  # pytest turns warnings into errors outside
    assert reply.ok
    assert reply.warnings == tuple(f"DeprecationWarning: number {i}" for i in range(5))


def test_strict_floating_point_settings_of_a_notebook_do_not_matter():
    with np.errstate(all="raise"):
        reply = call(lambda x: np.exp(x) / np.zeros(1), np.array([-1e9]))
    assert reply.ok
    assert reply.warnings == ("RuntimeWarning: invalid value encountered in divide",)


def test_a_seed_becomes_the_same_generator_each_time():
    draws = [call(lambda rng: rng.random(3), Seed(7)).value for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    np.testing.assert_array_equal(draws[0], np.random.default_rng(7).random(3))


def test_a_handle_calls_the_judge_with_plain_values():
    seen = []

    def model(ids, *, scale):
        seen.append((type(ids), scale))
        return ids * scale

    class Loud(np.ndarray):
        pass

    def student(model):
        return model(np.arange(3).view(Loud), scale=2) + 1

    reply = call(student, Handle(model))
    np.testing.assert_array_equal(reply.value, [1, 3, 5])
    assert seen == [(np.ndarray, 2)]


def test_an_error_of_the_judges_function_reaches_the_student():
    def model():
        raise ValueError("ids must be integers, got floats")

    def careful(model):
        try:
            return model()
        except ValueError as error:
            return str(error)

    assert call(careful, Handle(model)).value == "ids must be integers, got floats"
    assert call(lambda m: m(), Handle(model)).error == (
        "ValueError: ids must be integers, got floats"
    )


def test_an_object_is_kept_and_used_later():
    class Model:
        def __init__(self, slope):
            self.slope = slope

        def __call__(self, x):
            return self.slope * x

        def name(self):
            return "linear"

    subject = InProcess(Model)
    kept = subject.perform({"do": "keep", "name": "model", "args": [3]})
    assert kept.ok
    assert kept.value is None
    used = subject.perform({"do": "use", "name": "model", "args": [2]})
    assert used.value == 6
    named = subject.perform({"do": "use", "name": "model", "method": "name"})
    assert named.value == "linear"
    lost = subject.fresh().perform({"do": "use", "name": "model", "args": [2]})
    assert lost.error == "KeyError: 'model'"


helper = np.negative


def uses_helper(x):
    return helper(x) + 1


def test_a_global_of_the_student_is_replaced_for_one_request():
    request = {"do": "call", "args": [2.0], "globals": {"helper": Handle(lambda x: 10 * x)}}
    subject = InProcess(uses_helper)
    assert subject.perform(request).value == 21.0
    assert subject.perform({"do": "call", "args": [2.0]}).value == -1.0
    assert "fresh_name" not in globals()


shortcut = np.linalg.norm


@pytest.mark.parametrize(
    "code",
    [
        lambda x: np.linalg.norm(x),
        lambda x: shortcut(x),
        lambda x: vars(np.linalg)["norm"](x),
    ],
)
def test_a_library_function_is_refused_under_all_its_names(code):
    refused = {"do": "call", "args": [np.ones(4)], "refuse": ["numpy.linalg.norm"]}
    reply = InProcess(code).perform(refused)
    assert reply.error == (
        "LibraryShortcut: numpy.linalg.norm is what this task asks you to write; "
        "use simpler operations"
    )
    assert np.linalg.norm(np.ones(4)) == 2.0
    assert shortcut is np.linalg.norm


def test_a_function_is_refused_where_another_one_hides_its_module(monkeypatch):
    """As with ``from package.rnn import *``, where package.rnn is now the function rnn."""
    package, module = types.ModuleType("package"), types.ModuleType("package.rnn")
    exec("def rnn(x):\n    return x\n\ndef rnn_cell(x):\n    return x", vars(module))
    package.rnn, package.rnn_cell = module.rnn, module.rnn_cell
    monkeypatch.setitem(sys.modules, "package", package)
    monkeypatch.setitem(sys.modules, "package.rnn", module)
    for name in ("package.rnn.rnn_cell", "package.rnn_cell"):
        request = {"do": "call", "args": [1.0], "refuse": [name]}
        reply = InProcess(lambda x: package.rnn_cell(x)).perform(request)
        assert reply.error.startswith(f"LibraryShortcut: {name}")


def test_a_library_function_is_refused_in_a_notebooks_own_names():
    space = {"norm": np.linalg.norm}
    exec("f = lambda x: norm(x)", space)
    request = {"do": "call", "args": [np.ones(4)], "refuse": ["numpy.linalg.norm"]}
    reply = InProcess(space["f"]).perform(request)
    assert reply.error.startswith("LibraryShortcut: numpy.linalg.norm")
    assert space["norm"] is np.linalg.norm


def test_functions_that_were_looked_for_before_are_refused_wherever_they_are(monkeypatch):
    monkeypatch.setattr(shortcuts, "_prepared", shortcuts._Prepared())
    old, new = types.ModuleType("old_names"), types.ModuleType("new_names")
    old.kept = old.taken = old.other = math.hypot
    monkeypatch.setitem(sys.modules, "old_names", old)
    shortcuts.prepare(["math.hypot"])
    monkeypatch.setitem(sys.modules, "new_names", new)
    old.other, new.name, new.dist = abs, math.hypot, math.dist
    refused = shortcuts.Shortcuts(["math.hypot"])
    for _ in range(2):
        with refused.refused({"mine": math.hypot}):
            for function in (math.hypot, old.kept, old.taken, new.name):
                with pytest.raises(shortcuts.LibraryShortcut):
                    function(3, 4)
            assert old.other(-1) == math.dist([3], [4]) == 1
        assert old.kept(3, 4) == new.name(3, 4) == math.hypot(3, 4) == 5
    # Of a function that was not looked for, all modules are searched.
    with shortcuts.Shortcuts(["math.dist"]).refused({}):
        with pytest.raises(shortcuts.LibraryShortcut):
            new.dist([3], [4])
        assert old.kept(3, 4) == 5
    assert new.dist([3], [4]) == 1


def test_modules_that_were_searched_before_are_not_searched_again(monkeypatch):
    monkeypatch.setattr(shortcuts, "_prepared", shortcuts._Prepared())
    shortcuts.prepare(["math.hypot"])
    looked = []
    monkeypatch.setattr(shortcuts, "_places", lambda space, _: looked.append(space) or [])
    with shortcuts.Shortcuts(["math.hypot"]).refused({}):
        pass
    assert looked == [{}]
    with shortcuts.Shortcuts(["math.dist"]).refused({}):
        pass
    assert len(looked) > 100


def test_the_judges_own_functions_may_use_what_is_refused():
    request = {
        "do": "call",
        "args": [Handle(lambda: float(np.linalg.norm(np.ones(4))))],
        "refuse": ["numpy.linalg.norm"],
    }
    assert InProcess(lambda model: model()).perform(request).value == 2.0


def test_a_library_that_is_imported_during_the_call_is_refused_too():
    code = (
        "import sys\n"
        "from seqlib.subject.inprocess import InProcess\n"
        "def f(x):\n"
        "    import colorsys\n"
        "    return colorsys.rgb_to_yiq(0, 0, 0)\n"
        "assert 'colorsys' not in sys.modules\n"
        "request = {'do': 'call', 'args': [1], 'refuse': ['colorsys.rgb_to_yiq']}\n"
        "print(InProcess(f).perform(request).error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("LibraryShortcut: colorsys.rgb_to_yiq")
