"""Small books, really built: what must make a build fail, and what must not run again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FRONT = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
PAGE = f"""{FRONT}
# Demo

```{{math}}
:label: eq-1
y = x
```

```{{code-cell}} ipython3
import numpy as np

from seqlib.np.activation import softmax

np.testing.assert_allclose(softmax(np.zeros(2)), [0.5, 0.5])
print("the cell ran to its end")
```

Equation {{eq}}`eq-1` and {{eq}}`own`.

```{{math}}
:label: own
z = y
```
"""
TOPICS = """
[[topic]]
slug = "demo"
title = "Demo"
notes = "section 0"
about = "nothing"
parts = ["page"]
"""
EQUATIONS = """
[eq-1]
number = "1"
notes = "section 0"
about = "Nothing happens"
page = "demo"
numpy = "activation.softmax"
pytorch = {none = "a demo"}
test = {none = "a demo"}
task = {none = "a demo"}
"""
INTRO = "# Demo book\n\nText.\n"
LEDGER = "# Equations\n\n```{equations}\n```\n"
CLAIMS = f"""{FRONT}
# Claims

```{{claims-table}}
```

(claims-c1)=
## C1

```{{claim}} C1
```

```{{code-cell}} ipython3
from seqlib.experiments.claims import verdict

assert verdict("C1", {{"one is positive": 1 > 0, "so is zero": 0 > 0}}) == "qualified, 1 of 2"
```
"""


@pytest.fixture
def book(tmp_path):
    """Write a book of four pages with a library of its own; the settings are the course's."""
    keep = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "book" / "_ext", tmp_path / "book" / "_ext", ignore=keep)
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "book" / "_static")
    for name in ("np", "experiments"):
        shutil.copytree(ROOT / "seqlib" / name, tmp_path / "seqlib" / name, ignore=keep)
    for path in (ROOT / "seqlib").glob("*.py"):
        shutil.copy(path, tmp_path / "seqlib")
    for name in ("_config.yml", "requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    pages = {"intro": INTRO, "demo": PAGE, "equations": LEDGER, "claims": CLAIMS}
    for name, text in pages.items():
        (tmp_path / "book" / f"{name}.md").write_text(text, encoding="utf-8")
    (tmp_path / "book" / "references.bib").write_text("", encoding="utf-8")
    (tmp_path / "book" / "data").mkdir()
    tables = {
        "topics": TOPICS,
        "equations": EQUATIONS,
        "claims": '[C1]\nnotes = "section 0"\nquote = "Numbers are positive."\npage = "demo"\n',
        "pending": "[sections]\n",
        "errata": "",
    }
    for name, text in tables.items():
        (tmp_path / "book" / "data" / f"{name}.toml").write_text(text, encoding="utf-8")
    files = "\n".join(f"  - file: book/{name}" for name in ("demo", "equations", "claims"))
    toc = f"format: jb-book\nroot: book/intro\nchapters:\n{files}\n"
    (tmp_path / "_toc.yml").write_text(toc, encoding="utf-8")
    return tmp_path


def build(book):
    """Build as `make book` does; return the exit status and what was printed."""
    program = "from jupyter_book.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "build", ".", "-W", "-n", "--keep-going"],
        cwd=book,
        env={**os.environ, "PYTHONPATH": str(book)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_unchanged_book_runs_no_cell_and_a_broken_library_fails_it(book):
    status, printed = build(book)
    assert status == 0, printed
    assert "executed demo.md in" in printed
    html = (book / "_build" / "html" / "book" / "demo.html").read_text(encoding="utf-8")
    assert "the cell ran to its end" in html
    assert '<span class="eqno">(1)' in html
    assert '<span class="eqno">(a)' in html

    ledger = (book / "_build" / "html" / "book" / "equations.html").read_text(encoding="utf-8")
    assert "y = x" in ledger
    assert 'href="demo.html#equation-eq-1"' in ledger
    claims = (book / "_build" / "html" / "book" / "claims.html").read_text(encoding="utf-8")
    assert ">qualified<" in claims

    status, printed = build(book)
    assert status == 0, printed
    assert "executed" not in printed

    softmax = book / "seqlib" / "np" / "activation.py"
    sound = softmax.read_text(encoding="utf-8")
    softmax.write_text(sound + "\n\ndef softmax(x, *, axis=-1):\n    return x\n", "utf-8")
    status, printed = build(book)
    assert status != 0
    assert "executed demo.md in" in printed
    assert "AssertionError" in printed

    softmax.write_text(sound, encoding="utf-8")
    status, printed = build(book)
    assert status == 0, printed


FAULTS = {
    "failing cells on two pages": [
        (
            "book/demo.md",
            "softmax(np.zeros(2))",
            "softmax(np.ones(3))",
            "Not equal to tolerance",
        ),
        ("book/claims.md", "1 > 0", "0 > 1", "2 page(s)"),
    ],
    "a cell that takes too long": [
        ("_config.yml", "timeout: 300", "timeout: 2", "2 seconds"),
        ("book/demo.md", 'print("the', 'import time; time.sleep(9); print("the', "1 page(s)"),
    ],
    "a cell that writes to stderr": [
        ("book/demo.md", 'print("the', 'import sys; sys.stderr.write("the', "stderr was found"),
    ],
    "labels of equations": [
        ("book/demo.md", ":label: eq-1", ":label: eq1", "eq-1: no page shows this equation"),
        ("book/demo.md", ":label: own", ":label: eq-2", "eq-2: on book/demo, but not in"),
    ],
    "claims without a cell": [
        ("book/claims.md", "```{claim} C1\n```\n", "", "C1: book/claims.md does not treat it"),
    ],
    "a verdict under another name": [
        ("book/claims.md", 'verdict("C1"', 'verdict("C2"', "No key 'C1' found in glue"),
    ],
    "an unknown reference and a heading too deep": [
        ("book/demo.md", "{eq}`own`", "{eq}`owl`", "equation not found: owl"),
        ("book/demo.md", "# Demo\n", "# Demo\n\n### Deep\n", "Non-consecutive header level"),
    ],
    "a quoted result that is not there": [
        ("book/demo.md", "{eq}`own`", "{result}`sqrt_dk:results.x`", "no key 'x'"),
    ],
    "a figure without a text": [
        ("book/demo.md", "{eq}`own`", "![](_static/favicon.svg)", "without alternative text"),
    ],
    "tables": [
        ("book/data/equations.toml", "activation.softmax", "activation.soft", "is not defined"),
        ("book/data/topics.toml", '"page"', '"page", "tests"', "no tests/test_demo.py"),
    ],
    "a section that is not missing": [
        ("book/data/pending.toml", "\n", '\n"demo#x" = "later"\n', "pending, but not missing"),
    ],
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_fails_the_build(book, kind):
    for path, old, new, _ in FAULTS[kind]:
        replace(book / path, old, new)
    status, printed = build(book)
    assert status != 0
    for *_, message in FAULTS[kind]:
        assert message in printed
