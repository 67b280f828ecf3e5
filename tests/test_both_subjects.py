"""Every kind of task through both subjects: the records are equal field by field."""

import textwrap

import numpy as np
import pytest
from fixtures_exercises import TASKS

from seqlib.grading.sandbox.box import Sandbox
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

pytestmark = pytest.mark.sandbox

STUDENTS = {
    "values": {
        "right": """
            def f(x, *, width):
                return np.stack([x[:, max(t - width + 1, 0) : t + 1].mean(axis=1)
                                 for t in range(x.shape[1])], axis=1)
        """,
        "mistake": """
            def f(x, *, width):
                return np.stack([x[:, max(t - width + 1, 0) : t + 1].sum(axis=1)
                                 for t in range(x.shape[1])], axis=1)
        """,
        "in place": """
            def f(x, *, width):
                x += 1
                print("shifted")
                return x
        """,
        "raises": """
            def helper(x):
                return x[99]

            def f(x, *, width):
                return helper(x)
        """,
        "remembers": """
            memory = {}
            def f(x, *, width):
                return memory.setdefault(x.shape, x + len(memory))
        """,
        "a set": "f = lambda x, *, width: {1}",
        "many axes": "f = lambda x, *, width: np.zeros((1,) * 33)",
        "warns": "f = lambda x, *, width: np.log(0 * x)",
        "exits": "import sys\nf = lambda x, *, width: sys.exit(0)",
    },
    "backward": {
        "wrong forward": """
            def squares(x, w):
                return x @ w

            def f(dy, x, w):
                dw = np.zeros_like(w)
                for i in np.ndindex(*w.shape):
                    one = np.zeros_like(w)
                    one[i] = 1.0
                    dw[i] = (dy * squares(x, one)).sum()
                return 2 * x * (dy @ w.T), dw
        """,
        "mistake": "f = lambda dy, x, w: (x * (dy @ w.T), (x * x).T @ dy)",
    },
    "sampling": {
        "right": """
            def f(weights, count, rng):
                p = weights / weights.sum()
                return [rng.choice(len(p), p=p) for _ in range(count)]
        """,
        "mistake": """
            def f(weights, count, rng):
                p = weights / weights.sum()
                return [rng.choice(len(p), p=p) + 1 for _ in range(count)]
        """,
    },
    "text": {
        "right": """
            import re

            def f(text):
                runs = [m.group() for m in re.finditer(r"(.)\\1*", text)]
                counts = {letter: text.count(letter) for letter in text}
                return "".join(f"{len(run)}{run[0]}" for run in runs), counts
        """,
        "wrong": "f = lambda text: (text.upper(), {})",
        "half a pair": "f = lambda text: (text + '\\ud800', {'\\udfff': 1})",
    },
    "module": {
        "right": """
            import torch

            class f(torch.nn.Module):
                def __init__(self, channels, *, limit=None):
                    super().__init__()
                    self.weight = torch.nn.Parameter(torch.ones(channels))
                    self.bias = torch.nn.Parameter(torch.zeros(channels))
                    self.limit = limit

                def forward(self, x):
                    y = x * self.weight + self.bias
                    return y if self.limit is None else y.clamp(-self.limit, self.limit)
        """,
        "mistake": """
            import torch

            class f(torch.nn.Module):
                def __init__(self, channels, *, limit=None):
                    super().__init__()
                    self.weight = torch.nn.Parameter(torch.ones(channels))
                    self.bias = torch.nn.Parameter(torch.zeros(channels))

                def forward(self, x):
                    return x * self.weight + self.bias
        """,
    },
    "student_test": {
        "right": "f = lambda sort, rng: sort([3, 2, 2, 1]) != [1, 2, 2, 3]",
        "many calls": "f = lambda sort, rng: any(sort([1]) != [1] for _ in range(99))",
        "weak": """
            def f(sort, rng):
                numbers = rng.permutation(11).tolist()
                return sort([*numbers, 99])[:2] != [0, 1]
        """,
    },
    "training": {
        "right": """
            def f(s, rng):
                slope = s[:-1] @ s[1:] / (s[:-1] @ s[:-1])
                return lambda s: slope * s
        """,
        "sees the answer": "f = lambda s, rng: lambda s: np.append(s[1:], 0)",
        "other shape": "f = lambda s, rng: lambda s: s[1:]",
    },
}
CODE = [(kind, name) for kind, students in STUDENTS.items() for name in students]


@pytest.fixture(scope="module")
def submissions(tmp_path_factory):
    """Return a function that runs a cell in a new submission."""
    build = tmp_path_factory.mktemp("build")
    opened = []
    with Sandbox(torch=True, plots=False) as sandbox:

        def run(cell):
            opened.append(sandbox.open(build))
            opened[-1].run_cell(cell)
            return opened[-1]

        yield run
        for submission in opened:
            submission.close()


@pytest.mark.parametrize(("kind", "name"), CODE)
def test_both_subjects_give_the_same_record(kind, name, submissions):
    task = TASKS[kind]
    cell = "import numpy as np\n" + textwrap.dedent(STUDENTS[kind][name])
    space = {"np": np}
    exec(compile(cell, "<cell>", "exec"), space)
    here = judge(task, InProcess(space["f"]), 11)
    subject = submissions(cell).subject("f")
    there = judge(task, subject, 11)
    subject.close()
    assert there.to_dict() == here.to_dict()
    assert (here.score == here.points) == (name in ("right", "wrong forward"))
