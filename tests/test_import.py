"""What importing the package needs: nothing for ``seqlib``, NumPy for the NumPy half."""

import subprocess
import sys

import pytest

# Modules that Windows or a browser lacks, and those of the extras. ``os.fork`` is removed too.
BLOCKED = [
    "_ctypes",
    "ctypes",
    "fcntl",
    "grp",
    "nbgrader",
    "pwd",
    "resource",
    "termios",
    "torch",
]
BLOCK = f"""
import os, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED}:
            raise ImportError(f"{{name}} is blocked in this test")

for name in {BLOCKED}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
del os.fork
"""


def run_python(code):
    """Run code in a fresh interpreter with warnings as errors; return what it printed."""
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_import_seqlib_imports_nothing_else():
    """So it is quick; PyTorch alone would take seconds, NumPy a tenth of one."""
    code = """
import sys
before = set(sys.modules)
import seqlib
print(*(sys.modules.keys() - before))
"""
    assert run_python(code) == ["seqlib"]


@pytest.mark.parametrize(
    "statement",
    ["import seqlib", "import seqlib.np", "import seqlib.testing", "from seqlib import check"],
)
def test_import_needs_neither_the_extras_nor_posix(statement):
    """A browser and Windows lack these modules, and a student need not have the extras."""
    code = f"{BLOCK}\n{statement}\nprint(*(sys.modules.keys() & {BLOCKED}))"
    assert run_python(code) == []


def test_the_block_of_this_test_works():
    code = f"""{BLOCK}
import importlib
for name in {BLOCKED}:
    try:
        importlib.import_module(name)
    except ImportError:
        print(name)
print(hasattr(os, "fork"))"""
    assert run_python(code) == [*BLOCKED, "False"]


def test_import_of_the_pytorch_half_needs_no_nbgrader():
    code = "import sys\nimport seqlib.pt\nprint('nbgrader' in sys.modules)"
    assert run_python(code) == ["False"]
