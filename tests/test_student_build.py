"""The student build holds exactly what an assignment grants."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest

import seqlib.np as snp
from seqlib.exercises.record import Assignment
from seqlib.grading.sandbox.inside.visible import package_folders
from seqlib.grading.sandbox.student_build import write_student_build

ASSIGNMENT = Assignment(
    name="made_up",
    title="Made up",
    tasks=(),
    grants=("seqlib.np.softmax", "seqlib.np.causal_mask", "seqlib.testing.check_backward"),
)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return write_student_build(ASSIGNMENT.grants, tmp_path_factory.mktemp("build"))


def run_with(build, source):
    """Return the lines that ``source`` prints where only the build is importable."""
    # -S: no .pth file, so that an editable installation is not found either.
    path = [str(build), *package_folders(sys.path)]
    start = f"import sys; sys.path[:0] = {path[:1]!r}; sys.path += {path[1:]!r}\n"
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-S", "-c", start + source],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def run(build):
    return lambda source: run_with(build, source)


def test_granted_functions_equal_the_library(run):
    lines = run(
        "import json, numpy as np, seqlib.np as snp\n"
        "from seqlib.np import softmax\n"
        "from seqlib.np.masks import causal_mask\n"
        "assert softmax is snp.softmax and causal_mask is snp.causal_mask\n"
        "x = np.array([[1.0, -2.0, 0.5], [-np.inf, 1e3, 1e3]])\n"
        "print(json.dumps([softmax(x, axis=0).tolist(), snp.softmax(x).tolist()]))\n"
        "print((snp.causal_mask(2, 3) == 0).tolist())"
    )
    x = np.array([[1.0, -2.0, 0.5], [-np.inf, 1e3, 1e3]])
    assert json.loads(lines[0]) == [snp.softmax(x, axis=0).tolist(), snp.softmax(x).tolist()]
    assert lines[1] == str((snp.causal_mask(2, 3) == 0).tolist())


def test_granted_functions_are_the_library_line_for_line(build):
    source = (build / "seqlib" / "np" / "activation.py").read_text()
    assert inspect.getsource(snp.softmax) in source


def test_granted_functions_report_bad_input_as_the_library_does(run):
    with pytest.raises(ValueError, match="x") as caught:
        snp.softmax(np.zeros((2, 0)))
    lines = run(
        "import numpy as np\n"
        "from seqlib.np import softmax\n"
        "try:\n    softmax(np.zeros((2, 0)))\n"
        "except ValueError as error:\n    print(error)"
    )
    assert lines == [str(caught.value)]


def test_helpers_across_modules_come_along(run):
    assert run(
        "from seqlib.testing import check_backward; print(check_backward.__module__)"
    ) == ["seqlib.testing"]


def test_no_other_function_is_in_the_build(build):
    """Neither the source nor the name of a public function that is not granted."""
    granted = {name.rpartition(".")[2] for name in ASSIGNMENT.grants}
    granted.add("to_additive")  # causal_mask calls it
    text = "".join(path.read_text() for path in build.rglob("*.py"))
    others = [
        (name, value)
        for name, value in vars(snp).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in granted
    ]
    assert len(others) > 10
    for name, value in others:
        assert f"def {name}(" not in text
        assert inspect.getsource(value) not in text
    assert "scaled_dot_product" not in text


REFUSED = [
    "from seqlib.np import gelu",
    "from seqlib.np.activation import gelu",
    "import seqlib.np as snp; snp.gelu",
    "import seqlib.pt",
    "from seqlib.exercises.attention import ASSIGNMENT",
    "import seqlib.judge.check",
    "from seqlib import exercises",
    "import seqlib; seqlib.exercises",
    "import importlib; importlib.import_module('seqlib.np.attention')",
]


@pytest.mark.parametrize("source", REFUSED)
def test_the_rest_is_refused_with_a_sentence(run, source):
    lines = run(
        f"try:\n    {source}\n"
        "except (ImportError, AttributeError) as error:\n    print(error)\n"
        "else:\n    print('it was there')"
    )
    assert len(lines) == 1
    assert "is not available in this assignment; available are" in lines[0]
    assert "seqlib.np.softmax" in lines[0]


def test_check_prints_one_line_and_returns_a_float(run):
    lines = run(
        "from seqlib import check\n"
        "score = check('made_up.task', len)\n"
        "print(type(score).__name__, score)"
    )
    assert lines == [
        "made_up.task: judged by the grader after this notebook has run",
        "float 0.0",
    ]


def test_a_package_is_found_as_an_attribute(run):
    assert run("import seqlib; print(seqlib.np.softmax.__name__)") == ["softmax"]


def test_without_grants_there_is_check_alone(tmp_path):
    build = write_student_build((), tmp_path / "empty")
    assert [p.name for p in build.rglob("*.py")] == ["__init__.py"]


def test_every_public_function_can_be_granted(tmp_path):
    """Whatever is granted comes with all that it needs, and runs from the build alone."""
    names = sorted(n for n, v in vars(snp).items() if inspect.isfunction(v))
    build = write_student_build([f"seqlib.np.{n}" for n in names], tmp_path / "all")
    for path in build.rglob("*.py"):
        compile(path.read_text(), path.name, "exec")
    lines = run_with(
        build, "import seqlib.np as snp\n" + "\n".join(f"snp.{n}; print({n!r})" for n in names)
    )
    assert lines == names


@pytest.mark.parametrize(
    "grant", ["numpy.linalg.norm", "seqlib.np.no_such_function", "seqlib.nowhere.f", "softmax"]
)
def test_bad_grants(tmp_path, grant):
    with pytest.raises(ValueError, match="a grant must name"):
        write_student_build([grant], tmp_path / "bad")
