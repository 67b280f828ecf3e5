"""No reference can be found from inside, and each layer stops what it is there to stop."""

import inspect
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sandbox_tools import LIMITS, call, open_sandbox

import seqlib
from seqlib.grading.sandbox import attempts
from seqlib.grading.sandbox.inside import landlock, visible
from seqlib.grading.sandbox.levels import LAYERS
from seqlib.grading.sandbox.outside import Outside

pytestmark = pytest.mark.sandbox
PACKAGE = Path(seqlib.__file__).resolve().parent


# The search for the reference.

# The marker is a line of the reference's source. The search gets it coded, so that the search
# does not find itself.
SEARCH = """
import base64, gc, importlib, os, pkgutil, sys, types

def find(code):
    marker = base64.b64decode(code).decode()
    found = []
    for name, module in list(sys.modules.items()):
        if name.startswith(("seqlib.exercises", "seqlib.judge", "seqlib.grading", "seqlib.pt")):
            found.append(f"module {name}")
        if "seqlib" in str(getattr(module, "__file__", "")) and not name.startswith("seqlib"):
            found.append(f"module {name} of {module.__file__}")
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType):
            own = thing.__module__ or ""
            constants = [c for c in thing.__code__.co_consts if isinstance(c, str)]
            if any(marker in text for text in [thing.__doc__ or "", *constants]):
                found.append(f"function {own}.{thing.__qualname__}")
            if own.startswith("seqlib.") and thing.__name__ in REFERENCES:
                found.append(f"reference {own}.{thing.__qualname__}")
        elif isinstance(thing, (dict, list, tuple)) and thing is not found:
            values = thing.values() if isinstance(thing, dict) else thing
            if any(type(v) is str and marker in v and v is not marker for v in list(values)):
                found.append(f"text in a {type(thing).__name__}")
    return found

def search(code):
    found = find(code)
    marker = base64.b64decode(code)
    folders = [p for p in sys.path if p] + ["/proc", "/", "/home", "/course", os.getcwd()]
    for folder in folders:
        for root, names, files in os.walk(folder):
            if "site-packages" in root and not any(k in root for k in ("seqlib", "__editable")):
                files = [f for f in files if "seqlib" in f or "__editable" in f]
            names[:] = [n for n in names if "seqlib" in root + n or root.count(os.sep) < 6]
            for name in files:
                path = os.path.join(root, name)
                if not name.endswith((".py", ".pyc", ".pth", ".ipynb", ".txt")):
                    continue
                try:
                    with open(path, "rb") as file:
                        if marker in file.read():
                            found.append(path)
                except OSError:
                    pass
    for module in pkgutil.iter_modules():
        if "seqlib" in module.name and module.module_finder.path not in BUILD:
            spec = module.module_finder.find_spec(module.name)
            try:  # its name may be listed
                with open(spec.origin) as file:
                    found += [f"installed {spec.origin}"] if file.read() else []
            except (OSError, AttributeError):
                pass
    return found
"""


def coded(text):
    import base64

    return base64.b64encode(text.encode()).decode()


def test_a_search_finds_no_reference(sandbox, student_build):
    from seqlib.np import attention

    marker = attention.scaled_dot_product_attention.__doc__.strip().splitlines()[0]
    assert marker in inspect.getsource(attention)
    granted = seqlib.np.softmax.__doc__.strip().splitlines()[0]
    names = [n for n, v in vars(attention).items() if inspect.isfunction(v)]
    names = sorted(n for n in names if getattr(attention, n).__module__ == attention.__name__)
    with sandbox.open(student_build) as submission:
        submission.run_cell("import seqlib, seqlib.np, os\nimport numpy as np")
        submission.run_cell(
            f"REFERENCES = {names!r}\n"
            "BUILD = [os.path.dirname(os.path.dirname(seqlib.__file__))]"
        )
        assert submission.run_cell(SEARCH).ok
        with submission.subject("search") as subject:
            reply = subject.perform({"do": "call", "args": [coded(marker)], "seconds": 30.0})
            assert reply.error is None
            assert reply.value == []
            # The search itself works: it finds what the assignment grants.
            reply = subject.perform({"do": "call", "args": [coded(granted)], "seconds": 30.0})
            assert any(
                "function seqlib.np.activation.softmax" in place for place in reply.value
            )
            assert any(place.endswith("np/activation.py") for place in reply.value)


WHEEL = """
import sys
sys.path[:0] = {path!r}
sys.path.insert(0, {tests!r})
from pathlib import Path
import seqlib
assert seqlib.__file__ == {file!r}, seqlib.__file__
from seqlib.grading.sandbox import attempts
from seqlib.grading.sandbox.box import Sandbox
from seqlib.grading.sandbox.student_build import write_student_build
import inspect
facts = {{"package": {package!r}, "source": {source!r}}}
build = write_student_build((), {build!r})
with Sandbox(level={level!r}, plots=False) as sandbox, sandbox.open(build) as submission:
    submission.run_cell(inspect.getsource(attempts))
    for name in ("course_files", "finders"):
        with submission.subject(name) as subject:
            reply = subject.perform({{"do": "call", "args": [facts]}})
            print(name, reply.value, reply.error)
"""


def test_a_wheel_installation_is_out_of_reach(sandbox, tmp_path):
    """The package lies in site-packages, beside what the sandbox shows."""
    site = tmp_path / "site-packages"
    shutil.copytree(PACKAGE, site / "seqlib", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "seqlib_course-0.1.0.dist-info").mkdir()
    (site / "other_package.py").write_text("x = 1")
    source = WHEEL.format(
        path=[str(site), *visible.package_folders(sys.path)],
        tests=str(Path(__file__).parent),
        file=str(site / "seqlib" / "__init__.py"),
        package=str(site / "seqlib"),
        source=str(site),
        build=str(tmp_path / "build"),
        level=sandbox.level,
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    files, finders = done.stdout.splitlines()
    assert files.startswith("course_files None ")
    assert "Error" in files
    assert finders.startswith("finders None ")
    assert "Error" in finders


def test_what_belongs_to_the_course_is_hidden(tmp_path):
    site = tmp_path / "lib" / "python3" / "site-packages"
    for name in ("seqlib/np", "seqlib_course-0.1.0.dist-info", "numpy", "__pycache__", "other"):
        (site / name).mkdir(parents=True)
    for name in (
        *("__editable__.seqlib_course-0.1.0.pth", "__editable___seqlib_course_finder.py"),
        *("__pycache__/__editable___seqlib_course_finder.pyc", "__pycache__/six.pyc", "six.py"),
        "numpy/core.py",
    ):
        (site / name).touch()
    shown = [str(tmp_path / "lib")]
    hidden = visible.course_files(str(site / "seqlib"), shown)
    assert [os.path.relpath(path, site) for path in hidden] == [
        "__editable__.seqlib_course-0.1.0.pth",
        "__editable___seqlib_course_finder.py",
        "__pycache__/__editable___seqlib_course_finder.pyc",
        "seqlib",
        "seqlib_course-0.1.0.dist-info",
    ]
    readable, split = visible.without(shown, set(hidden))
    assert sorted(os.path.relpath(path, site) for path in readable) == [
        *("__pycache__/six.pyc", "numpy", "other", "six.py"),
    ]
    assert [os.path.relpath(path, tmp_path) for path in split] == [
        *("lib", "lib/python3", "lib/python3/site-packages"),
        "lib/python3/site-packages/__pycache__",
    ]


# Each attempt succeeds when every layer that stops it is off, and fails with one of them alone.

STOPPED_BY = {
    "course_files": ("namespaces", "landlock"),
    "finders": ("namespaces", "landlock"),
    "other_files": ("namespaces", "landlock"),
    "file_names": ("namespaces",),
    "writing": ("namespaces",),  # Landlock leaves the mode and the time of a file open
    "processes": ("namespaces", "landlock"),
    "connecting": ("namespaces", "seccomp"),  # Landlock leaves UDP open
    "signalling": ("namespaces", "landlock", "seccomp"),
    "tracing": ("namespaces", "landlock", "seccomp"),
    "executing": ("namespaces", "landlock", "seccomp"),
    "many_threads": ("limits",),
    "one_large_file": ("limits",),
    "privileges": (),  # by seccomp and limits together
}


@pytest.mark.parametrize("layer", ["none", *LAYERS])
def test_each_layer_stops_what_it_is_for(sandbox, student_build, tmp_path, layer, monkeypatch):
    if sandbox.level == "landlock" and layer == "namespaces":
        layer = "landlock"  # where there are no namespaces
    monkeypatch.setattr(sandbox, "layers", frozenset() if layer == "none" else {layer})
    achieved = {}
    for name in STOPPED_BY:
        folder = tmp_path / name
        folder.mkdir()
        with Outside(folder) as outside, sandbox.open(student_build) as submission:
            facts = outside.facts | {
                "processes": LIMITS.processes,
                "files": LIMITS.files,
                "file_size": LIMITS.file_size,
            }
            submission.run_cell(inspect.getsource(attempts))
            with submission.subject(name) as subject:
                reply = subject.perform({"do": "call", "args": [facts], "seconds": 10.0})
            executed = reply.fault == "crash" and "exit code 0" in reply.error
            achieved[name] = reply.value is not None or executed
    if os.geteuid() == 0 and layer == "limits":
        achieved.pop("many_threads")  # the kernel exempts root from the limit
    assert achieved == {name: layer not in STOPPED_BY[name] for name in achieved}


# Machines that offer less.


def without_namespaces(source):
    """Return a script that runs ``source`` where no namespace can be made."""
    return textwrap.dedent(
        """
        import sys
        sys.path.insert(0, {tests!r})
        from seqlib.grading.sandbox.inside import seccomp, syscalls
        program = [seccomp._step(seccomp._LOAD, 0)]
        for name in ("unshare", "mount", "pivot_root"):
            number = syscalls.NUMBERS[syscalls.MACHINE][name]
            program += seccomp._when(number, [seccomp._step(seccomp._RETURN, 0x00050001)])
        program.append(seccomp._step(seccomp._RETURN, seccomp._ALLOW))
        seccomp.Filter(b"".join(program)).apply()
        """
    ).format(tests=str(Path(__file__).parent)) + textwrap.dedent(source)


def test_without_namespaces_the_next_level_is_chosen(student_build):
    with open_sandbox("landlock", plots=False):
        pass
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            without_namespaces(
                """
                from seqlib.grading.sandbox.isolation import probe
                from seqlib.grading.sandbox.errors import SandboxUnavailable
                from seqlib.grading.sandbox.box import Sandbox
                print(probe())
                try:
                    Sandbox(plots=False, landlock_abi=0)
                except SandboxUnavailable as error:
                    print(error)
                """
            ),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    level, refusal = done.stdout.splitlines()
    assert level == "landlock"
    assert refusal.startswith("no isolation level works here: namespaces: ")
    assert "unshare: Operation not permitted" in refusal
    assert "the kernel offers no Landlock" in refusal


@pytest.mark.parametrize("version", [1, 3, 5])
def test_older_versions_of_landlock(student_build, tmp_path, version):
    """Signals are then denied by the filter, and the judge ends tasks itself."""
    if landlock.abi() < version:
        pytest.skip(f"this kernel has Landlock {landlock.abi()}, older than {version}")
    with (
        open_sandbox("landlock", limits=LIMITS, plots=False, landlock_abi=version) as sandbox,
        sandbox.open(student_build) as submission,
    ):
        submission.run_cell("import os\ndef f(n):\n    while n: pass\n    return 5")
        with submission.subject("f") as subject:
            assert call(subject, 1).fault == "timeout"
            assert call(subject, 0).value == 5
        assert submission.run_cell("os.kill(os.getppid(), 0)").outputs[0]["ename"] == (
            "PermissionError"
        )
        assert np.array_equal(submission.run_cell("1").outputs[0]["execution_count"], 3)


@pytest.mark.parametrize("level", ["best", "landlock"])
def test_packages_may_lie_where_the_sandbox_has_its_own_folders(
    level, student_build, tmp_path, monkeypatch
):
    """An environment in /tmp, as pytest's folders are, or in a home of the same name."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "lies_in_tmp.py").write_text("x = 41\n")
    monkeypatch.syspath_prepend(str(site))
    with (
        open_sandbox(level, limits=LIMITS, plots=False) as sandbox,
        sandbox.open(student_build) as submission,
    ):
        result = submission.run_cell("import lies_in_tmp\nlies_in_tmp.x + 1")
    assert result.ok, result.outputs
    assert result.outputs[0]["data"]["text/plain"] == "42"
