"""Cells of plain Python take a shorter way through IPython, with the same results."""

import json
import subprocess
import sys

import pytest

CELLS = [
    *(
        "x = 1",
        "x",
        "x;",
        "x = 2\nx + 1",
        "print(x)\nx",
        "x = 9  # c\n\n\n",
        "x\n\n",
        "_",
        "__",
    ),
    *("Out[2]", "In[1]", "_i1", "_ih[-2:]", "len(In), len(Out)", "__name__", "None", '"doc"'),
    *("1 / 0", "x", "x = 5\n1 / 0\nx = 6", "x", "return 3", "x = 7\nreturn 3", "x"),
    *("def f():\n    raise ValueError('a')", "f()", "assert x == 0, 'no'", "del x\nx", "x = ("),
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('b')",
    "import traceback\ntry:\n    f()\nexcept ValueError:\n    print(traceback.format_exc())",
    "import inspect\ninspect.getsource(f)",
    "raise ExceptionGroup('a', [ValueError(1)])",
    *("raise KeyboardInterrupt", "raise SystemExit(1)", "exit()", "get_ipython() is None"),
    *("await g()", "import asyncio\nasync def g():\n    return 4", "await g()"),
    *("%pwd", "?x", "x = %pwd", "  y = 1\n  y", "In [1]: 5", "", " ", "# only"),
    *("import warnings\nwarnings.warn('a')", "import warnings\nwarnings.warn('a')"),
    "from __future__ import annotations\ndef h(a: nope): pass\nh.__annotations__",
    "def k(a: int): pass\nk.__annotations__",
    *("for i in range(2):\n    i", "if True:\n    5", "display(3)", "y: int", "lambda: 0"),
    "class A:\n    def _repr_html_(self): return '<b>'\n    def __repr__(self): return 'A'",
    "A()",
    *("print(1, end='')", "import sys\nsys.stdout.write('a')", "globals()['z'] = 3\nz"),
    *("z = 3\rz", "\ufeffz = 4", "a = 1\x00b", "yield 3", "nonlocal z"),
]
_BOTH = """
import json, sys
from seqlib.grading.sandbox.inside.shell import begin, make_shell, run_cell

cells, plain = json.load(sys.stdin), sys.argv[1] == "plain"
shell = make_shell()
begin(shell, 10**6)
ways = []
short = shell.run_plain
shell.run_plain = lambda source: ways.append(short(source) if plain else None) or ways[-1]
results = [run_cell(shell, source) | {"seconds": 0} for source in cells]
names = sorted(shell.user_ns)
json.dump([results, ways, names], sys.__stdout__)
"""


def run(cells, way):
    done = subprocess.run(
        [sys.executable, "-c", _BOTH, way],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_short_way_gives_what_ipython_gives():
    long, _, names = run(CELLS, "ipython")
    short, ways, same = run(CELLS, "plain")
    for source, one, other in zip(CELLS, long, short, strict=True):
        assert one == other, source
    assert names == same
    taken = {source for source, way in zip(CELLS, ways, strict=True) if way is not None}
    assert {"x", "1 / 0", "y: int", "raise KeyboardInterrupt"} <= taken
    assert not taken & {"await g()", "%pwd", "return 3", "In [1]: 5", "x = (", "", "?x"}


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("get_ipython().ast_transformers.append(T())", "2"),
        ("get_ipython().input_transformers_cleanup.append(add_one)", "2"),
        ("get_ipython().events.register('post_run_cell', lambda r: print('after'))", "1after"),
        ("get_ipython().events.register('post_execute', lambda: print('after'))", "1after"),
        ("get_ipython().events.register('pre_execute', lambda: print('before'))", "before1"),
    ],
)
def test_what_a_notebook_adds_to_ipython_has_its_effect(source, shown):
    define = """
import ast
class T(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.Constant(2) if node.value == 1 else node
def add_one(lines):
    return [line.replace("1", "2") for line in lines]
"""
    results, _, _ = run([define, source, "print(1, end='')"], "plain")
    texts = [o["text"] for o in results[-1]["outputs"] if o["output_type"] == "stream"]
    assert "".join(texts).replace("\n", "") == shown
