"""An assignment that needs PyTorch, of two functions of 4 points each.

The functions are ``softmax`` of a tensor and the module ``Affine``. Nothing of the tests is
imported here: ``benchmarks/grading.py`` grades a class of this assignment too.
"""

import sys

import numpy as np

import seqlib.exercises
from seqlib.exercises.record import Assignment, Case, Criterion, Task, module_case
from seqlib.subject.values import AsTensor

NAME = "tinytorch"
FULL = {"softmax": 4.0, "Affine": 4.0}
RIGHT = {
    "softmax": "def softmax(x):\n    e = torch.exp(x - x.max(dim=-1, keepdim=True).values)\n"
    "    return e / e.sum(dim=-1, keepdim=True)",
    "Affine": "class Affine(torch.nn.Module):\n    def __init__(self, n_in, n_out):\n"
    "        super().__init__()\n"
    "        self.weight = torch.nn.Parameter(torch.randn(n_out, n_in))\n"
    "        self.bias = torch.nn.Parameter(torch.zeros(n_out))\n\n"
    "    def forward(self, x):\n        return x @ self.weight.T + self.bias",
}


def _softmax(x):
    e = np.exp(x.detach().numpy() - x.detach().numpy().max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _affine(n_in, n_out):
    import torch

    return torch.nn.Linear(n_in, n_out)


def _tensors(rng):
    shapes = ((3,), (2, 5), (1, 1), (2, 3, 7))
    return [Case((AsTensor(rng.standard_normal(s)),), label=f"shape {s}") for s in shapes]


def _modules(rng):
    def case(batch, n_in, n_out):
        def draw(*shape):
            return rng.standard_normal(shape).astype(np.float32)

        state = {"weight": draw(n_out, n_in), "bias": draw(n_out)}
        return module_case(
            n_in, n_out, state=state, inputs=[draw(batch, n_in)], cotangent=draw(batch, n_out)
        )

    return [case(5, 3, 2), case(1, 7, 3)]


ASSIGNMENT = Assignment(
    name=NAME,
    title="Tiny torch",
    torch=True,
    tasks=(
        Task(
            id=f"{NAME}.softmax",
            title="Softmax",
            signature="(x)",
            equations=(),
            page="",
            reference=_softmax,
            cases=_tensors,
            criteria=(Criterion("values", 4.0, "the values"),),
            shortcuts=(
                *("torch.softmax", "torch.nn.functional.softmax", "torch.nn.Softmax"),
                *("torch.Tensor.softmax", "torch.nn.functional.gumbel_softmax"),
            ),
        ),
        Task(
            id=f"{NAME}.Affine",
            title="Affine map",
            signature="(n_in, n_out)",
            equations=(),
            page="",
            reference=_affine,
            cases=_modules,
            kind="module",
            criteria=(
                Criterion("values", 2.0, "output", part="output"),
                Criterion("gradients", 2.0, "gradients", part="gradients"),
            ),
            shortcuts=("torch.nn.Linear", "torch.nn.functional.linear"),
        ),
    ),
)


def register():
    """Make the assignment known to ``seqlib.exercises`` of this process."""
    sys.modules[f"seqlib.exercises.{NAME}"] = sys.modules[__name__]
    seqlib.exercises.ASSIGNMENTS = (*seqlib.exercises.ASSIGNMENTS, NAME)


def release():
    """Return the students' notebook."""
    cells = [_cell("setup", "import numpy as np\nimport torch\nfrom seqlib import check")]
    for name in FULL:
        cells.append(_cell(name, "raise NotImplementedError()", solution=True, locked=False))
        check = f'check("{NAME}.{name}", {name})'
        cells.append(_cell(f"test_{name}", check, grade=True, points=4))
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell(key, source, **grading):
    data = {"grade": False, "solution": False, "locked": True, "task": False} | grading
    data |= {"schema_version": 3, "grade_id": key}
    return {
        "cell_type": "code",
        "id": key,
        "metadata": {"nbgrader": data},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }
