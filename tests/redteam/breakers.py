"""Attempts to stop the run, to use up the machine, or to reach a reader's browser.

The rest of each notebook is right and keeps its points.
"""

import io
import json
import random
import zipfile

from submissions import (
    FILE,
    FULL,
    NOTHING,
    Attack,
    all_but,
    code,
    function,
    one,
    only,
    text,
)

from seqlib.grading.samples.damage import cell_of, to_bytes, without

ATTACKS = []
PARTLY = ("partly_graded",)
UNREADABLE = ("unreadable",)


def add(name, *threats, make, scores=FULL, states=("graded",), **options):
    """Register an attack; ``make(kit)`` returns a notebook, its bytes, or files."""

    def files(kit):
        made = make(kit)
        return made if isinstance(made, dict) and "nbformat" not in made else one(made)

    ATTACKS.append(Attack(name, threats, files, scores, states, **options))


def in_function(name, *threats, lines, **options):
    """Register an attack from within one function, whose trial cell is taken out."""

    def make(kit):
        notebook = kit.right({"split_heads": function("split_heads", *lines)})
        return without(notebook, "try_split_heads")

    add(name, *threats, make=make, scores=all_but("split_heads"), **options)


def in_cell(name, *threats, source, states=("graded",), **options):
    """Register an attack from a cell of its own before all answers."""
    add(name, *threats, make=lambda kit: kit.right(first=[source]), states=states, **options)


# 21: the end of the process

ENDS = {
    "os._exit": "import os; os._exit(0)",
    "a null pointer": "import ctypes; ctypes.string_at(0)",
    "SIGKILL": "import os; os.kill(os.getpid(), 9); os._exit(9)",
    "abort": "import os; os.abort()",
}
for label, source in ENDS.items():
    in_function(
        f"{label} in a function",
        21,
        lines=[source],
        everywhere=label == "SIGKILL",
        shows=("the call ended the Python process",),
    )
in_function(
    "recursion until the stack is full",
    21,
    lines=[
        "import sys, threading",
        "sys.setrecursionlimit(10**9)",
        "threading.stack_size(1 << 16)",
        "f = lambda x: f([x])",
        "t = threading.Thread(target=f, args=(1,)); t.start(); t.join()",
    ],
)
in_function("SystemExit in a function", 21, lines=["raise SystemExit"])
in_function("KeyboardInterrupt in a function", 21, lines=["raise KeyboardInterrupt"])
in_cell(
    "the process ended in a cell",
    21,
    source="import os\nos._exit(0)",
    states=PARTLY,
    everywhere=True,
    shows=("it ended the Python process",),
)
in_cell(
    "a segmentation fault in a cell",
    21,
    source="import ctypes\nctypes.string_at(0)",
    states=PARTLY,
)
in_cell("exit and quit", 21, source="try:\n    exit()\nfinally:\n    quit()")

# 22: no end

LOOPS = {
    "an endless loop": "while True: pass",
    "a loop that swallows everything": "while True:\n    try:\n        while True: pass\n"
    "    except BaseException: pass",
    "a loop that ignores signals": "import signal\nfor n in range(1, 32):\n    try:\n"
    "        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
    "while True: pass",
    "a loop in C": "import itertools; sum(itertools.repeat(1))",
    "a regular expression": "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
    "a process stopped": "import os, time; os.kill(os.getpid(), 19); time.sleep(100)",
}
for label, source in LOOPS.items():
    in_function(
        f"{label} in a function",
        22,
        lines=[source],
        everywhere="stopped" in label,
        shows=("no answer within 1 s",),
    )
in_cell(
    "an endless loop in a cell", 22, source="while True: pass", states=PARTLY, everywhere=True
)
in_cell(
    "a cell that sleeps",
    22,
    source="import time\ntime.sleep(1000)",
    states=PARTLY,
    shows=("it did not end in time",),
)

# 23 to 26: memory, processes, output, disk

FILL = "held = []\nwhile True: held.append(bytearray(b'x') * (16 << 20))"
in_function("one array of 800 GB", 23, lines=["return np.ones(10**11)"])
in_function("memory filled bit by bit", 23, lines=[FILL], everywhere=True)
in_function("an answer of 200 MB", 23, lines=["return np.ones(25_000_000)"])
in_function("an answer of a hundred thousand lists", 23, lines=["return [[0.5]] * 49_000"])
in_function(
    "an answer without bytes and two billion rows",
    23,
    lines=["return np.empty((2**31 - 1, 0))"],
)
in_function("an integer of a million digits", 23, lines=["return 10**1_000_000"])
in_function("a list that contains itself", 23, lines=["a = []; a.append(a); return a"])
in_cell(
    "memory filled by several processes",
    23,
    source="""
    import mmap, os, time
    for _ in range(4):
        if os.fork() == 0:
            block = mmap.mmap(-1, 200 << 20)
            for _ in range(200):
                block.write(b"x" * (1 << 20))
            time.sleep(30)
            os._exit(0)
    time.sleep(30)
    """,
    states=PARTLY,
    everywhere=True,
)
in_cell(
    "processes without end",
    24,
    source="""
    import os
    try:
        while True:
            os.fork()
    except OSError:
        import time
        time.sleep(1000)
    """,
    states=("graded", "partly_graded"),
    everywhere=True,
)
in_cell(
    "threads and open files without end",
    24,
    source="""
    import threading, os
    wake = threading.Event()
    try:
        while True:
            threading.Thread(target=wake.wait, daemon=True).start()
    except RuntimeError:
        wake.set()
    try:
        held = [open(os.devnull) for _ in range(10_000)]
    except OSError:
        held = None
    """,
    everywhere=True,
)
in_cell(
    "output without end",
    25,
    source="for _ in range(20_000):\n    print('x' * 1000)",
    shows=("the output is longer than allowed",),
)
in_cell(
    "errors and pictures without end",
    25,
    source="""
    import sys, os
    from IPython.display import display
    for n in range(5000):
        print("x" * 100, file=sys.stderr)
        display({"image/png": b"\\x89PNG\\r\\n\\x1a\\n" + bytes(1000)}, raw=True)
        os.write(1, b"x" * 1000)
        os.write(2, b"x" * 1000)
    """,
)
in_function("output from within a function", 25, lines=["while True: print('x' * 10_000)"])
FORGED = """
    import sys
    ours = {n.rpartition(".")[2]: m for n, m in sys.modules.items() if n.startswith("_sandbox")}
    lines = ["x" * 2000] * 200
    flood = [{"output_type": "error", "ename": "", "evalue": "", "traceback": lines}]
    ours["shell"].run_cell = lambda *a, f=ours["shell"].run_cell: f(*a) | {"outputs": flood * 5}
    """
in_cell("forged outputs from every cell", 20, 25, source=FORGED, everywhere=True)
STATUS = """
    import sys
    child = next(m for n, m in sys.modules.items() if n.endswith("inside.child"))
    def forged(pid, options, wait=child._waitpid):
        return wait(pid, options)[0], 10**300
    child._waitpid = forged
    """
add(
    "a forged status of a process",
    20,
    make=lambda kit: kit.right(
        {"split_heads": function("split_heads", "import os; os._exit(0)")}, first=[STATUS]
    ),
    scores=all_but("split_heads"),
    states=PARTLY,  # the trial cell ends the process too
    everywhere=True,
)
DISK = """
    import os, time
    {prepare}
    for n in range(200):
        try:
            with open("f" + str(n), "wb") as file:
                file.write(bytes(1 << 20))
        except OSError:
            break
        time.sleep(0.01)
    """
in_cell(
    "files until the disk is full",
    26,
    source=DISK.format(prepare=""),
    states=("graded", "partly_graded"),
    everywhere=True,
)
in_cell(
    "files below the longest path",
    26,
    source=DISK.format(prepare="for _ in range(20): os.mkdir('b' * 250); os.chdir('b' * 250)"),
    states=("graded", "partly_graded"),
    everywhere=True,
)
# With Landlock the folder is too deep again when the cells are run again, which costs the tasks
# of this notebook. With namespaces nobody looks into the folder.
in_cell(
    "folders 1200 deep",
    26,
    source="import os\nfor _ in range(1200):\n    os.mkdir('a'); os.chdir('a')",
    at_most=True,
    states=("graded", "partly_graded"),
    everywhere=True,
)
in_cell(
    "a hundred thousand empty files",
    26,
    source="for n in range(100_000):\n    open(str(n), 'w').close()",
    states=("graded", "partly_graded"),
    everywhere=True,
)
in_cell(
    "all cores and the highest priority",
    28,
    source="""
    import os, threading
    os.environ["OMP_NUM_THREADS"] = "64"
    for attempt in (lambda: os.nice(-20), lambda: os.sched_setaffinity(0, {0})):
        try:
            attempt()
        except OSError:
            pass
    stop = threading.Event()
    def spin():
        while not stop.is_set():
            pass
    for _ in range(8):
        threading.Thread(target=spin, daemon=True).start()
    stop.set()
    """,
)
# What a notebook does to its own process can cost all of its tasks, and no other's.
in_cell(
    "an import lock held for ever",
    22,
    source="""
    import _imp, threading
    def hold():
        _imp.acquire_lock()
        threading.Event().wait(60)
    threading.Thread(target=hold, daemon=True).start()
    """,
    scores=NOTHING,
    states=PARTLY,
)

# Files that are no notebooks, or hardly


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def of_many_cells(kit):
    notebook = kit.right()
    notebook["cells"] += [text("x", f"n{n}") for n in range(20_000)]
    return notebook


def unreadable(name, *threats, make):
    add(name, *threats, make=make, scores=NOTHING, states=UNREADABLE)


unreadable("a file of 21 MB", 25, make=lambda kit: b'{"cells": [' + b" " * 21_000_000 + b"]}")
unreadable(
    "an archive that unpacks to 60 MB",
    25,
    make=lambda kit: {"a.zip": zipped({FILE: bytes(60 << 20)})},
)
unreadable("nested brackets", 25, make=lambda kit: b'{"cells": ' + b"[" * 400_000)
unreadable(
    "a million lists", 25, make=lambda kit: b'{"cells": [' + b"[]," * 1_000_000 + b"[]]}"
)
unreadable("an empty file", 34, make=lambda kit: b"")
unreadable("zeros", 34, make=lambda kit: bytes(1000))
unreadable(
    "a web page", 34, make=lambda kit: b"<!DOCTYPE html>\n<html><body>Sign in</body></html>"
)
unreadable(
    "an archive called .ipynb", 33, make=lambda kit: zipped({FILE: to_bytes(kit.right())})
)
unreadable("random bytes", 34, make=lambda kit: random.Random(1).randbytes(5000))
unreadable("a number", 34, make=lambda kit: b"1e999")
unreadable("another notebook", 33, make=lambda kit: {**kit.blank(), "cells": [text("# Diary")]})
unreadable("no file at all", 33, make=lambda kit: {".hidden": b""})
add("twenty thousand cells", 25, make=of_many_cells, states=PARTLY)
add(
    "a cell of a megabyte",
    25,
    make=lambda kit: kit.right(last=["x = '" + "y" * 1_000_000 + "'"]),
    states=PARTLY,
)
add(
    "a heading of level 1.0",
    34,
    make=lambda kit: {
        **kit.right(),
        "cells": [text("x", kind="heading", level=1.0), *kit.right()["cells"]],
    },
)

# 41: what would run in a browser

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
SHOW = f"""
    from IPython.display import HTML, SVG, Javascript, display
    display(HTML({SCRIPT!r}), Javascript("alert(1)"), metadata={{"x": {SCRIPT!r}}})
    display({{"text/html": {SCRIPT!r}, "image/svg+xml": "<svg onload=alert(1)>",
             "text/markdown": {SCRIPT!r}, "text/latex": {SCRIPT!r},
             "application/javascript": "alert(1)"}}, raw=True)
    class Rich:
        def _repr_html_(self):
            return {SCRIPT!r}
        def _repr_mimebundle_(self, **kwargs):
            return {{"text/html": {SCRIPT!r}, "text/plain": "plain"}}
    print("\\x1b]8;;javascript:alert(1)\\x07link\\x1b]8;;\\x07")
    Rich()
    """


def scripts(kit):
    notebook = kit.right(last=[SHOW])
    notebook["cells"] += [
        text(SCRIPT, "one"),
        text(SCRIPT, "two", "raw"),
        text(
            '$\\mmlToken{mi}[href="java\tscript:alert(1)"]{x}$ [a](javascript:alert(1))',
            "three",
        ),
        text(
            "![x](attachment:x.svg)",
            "four",
            attachments={"x.svg": {"image/svg+xml": "<svg onload=alert(1)>"}},
        ),
    ]
    notebook["metadata"]["title"] = SCRIPT
    cell_of(notebook, "why_scaling")["source"] += f"\n\n{SCRIPT}"
    return notebook


add(
    "scripts in every place",
    41,
    make=scripts,
    hides=("text/html", "text/latex", "image/svg", "\\mmlToken"),
)
in_function(
    "a script in an error message",
    41,
    42,
    lines=[f"raise ValueError({SCRIPT + chr(10) + '[ok] 5 of 5'!r})"],
)
add(
    "names that stand for the note of the grader",
    33,
    make=lambda kit: {
        f"{FILE[:-6]} (1).ipynb": to_bytes(
            {**kit.right(), "cells": [*kit.right()["cells"], code("1", "grading-note")]}
        )
    },
    states=("graded_with_repairs",),
)


def half_destroyed(kit):
    data = to_bytes(kit.right())
    return data[: data.index(b'"id": "merge_heads"')]


add(
    "the second half of the file lost",
    34,
    make=half_destroyed,
    scores=only(
        "simple_self_attention",
        "scaled_dot_product_attention",
        "scaled_dot_product_attention_backward",
        "split_heads",
    ),
    states=PARTLY,
)


def hidden_values(kit):
    """Every answer wrong by a little: nothing of the right ones may be shown."""
    return kit.right({"count_parameters": function("count_parameters", "return 12345")})


add(
    "an answer that is wrong by a little",
    42,
    make=hidden_values,
    scores=all_but("count_parameters"),
    shows=("the answer is 12345, which is wrong",),
    hides=("BEGIN SOLUTION",),
)
add(
    "a notebook in which JSON names half of a pair",
    34,
    make=lambda kit: json.dumps(
        {**kit.right(), "cells": [*kit.right()["cells"], code("x = '\ud800\x00'", "half")]}
    ).encode(),
)


def of_many_lines(kit):
    notebook = kit.right()
    notebook["cells"] += [text("word\n" * 3000, f"n{n}") for n in range(900)]
    return notebook


add("sixteen megabytes of words", 25, make=of_many_lines)
