"""A course of one small assignment that needs PyTorch, and attacks on it.

Two functions of 4 points each: ``softmax`` of a tensor, and the module ``Affine``.
"""

import copy
import sys

import numpy as np
from submissions import Attack, code

import seqlib.exercises
from seqlib.exercises.record import Assignment, Case, Criterion, Task, module_case
from seqlib.grading.samples.damage import cell_of, to_bytes
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
    return code(source, key) | {"metadata": {"nbgrader": data}}


def lay_out(course):
    """Write the release, which serves as source too."""
    for path in (course.release_file(NAME), course.source(NAME)):
        path.parent.mkdir(parents=True)
        path.write_bytes(to_bytes(release()))


class Kit:
    """Parts of submissions; see ``submissions.Kit``."""

    def __init__(self, facts):
        self.facts = facts

    def notebook(self, cells=None, first=()):
        """Return a solved notebook with some answers replaced."""
        notebook = copy.deepcopy(release())
        for key, source in (RIGHT | (cells or {})).items():
            cell_of(notebook, key)["source"] = source
        notebook["cells"][1:1] = [code(s, f"own-{i}") for i, s in enumerate(first)]
        return notebook


ATTACKS = []


def add(name, *threats, cells=None, first=(), lost=(), **options):
    """Register an attack on answers that are right but for the cells given."""
    scores = FULL | dict.fromkeys(lost, 0.0)

    def files(kit):
        return {f"{NAME}.ipynb": to_bytes(kit.notebook(cells, first))}

    ATTACKS.append(Attack(name, threats, files, scores, **options))


def softmax(name, *threats, body, first=(), **options):
    """Register an attack by the function ``softmax``."""
    cells = {"softmax": f"def softmax(x):\n    {body}"}
    add(name, *threats, cells=cells, first=first, lost=("softmax",), **options)


add("the solution", 50)
for label, call in {
    "torch.softmax": "torch.softmax(x, -1)",
    "functional.softmax": "torch.nn.functional.softmax(x, -1)",
    "a method": "x.softmax(-1)",
    "a module": "torch.nn.Softmax(-1)(x)",
    "a module made before": "made(x)",
    "another name": "other(x, -1)",
    "a list": "held[0](x, dim=-1)",
}.items():
    softmax(
        f"the library's softmax by {label}",
        9,
        body=f"return {call}",
        first=[
            "from torch.nn.functional import softmax as other\nheld = [other]\n"
            "made = torch.nn.Softmax(-1)"
        ],
        shows=("is what this task asks you to write",),
    )
add(
    "the library's module with another name",
    9,
    cells={"Affine": "class Affine(torch.nn.Linear):\n    pass"},
    lost=("Affine",),
    shows=("torch.nn.Linear is what this task asks you to write",),
)
LYING = """
class Lying(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True
    def __eq__(self, other): return True
    def numpy(self): return np.zeros(0)
    @property
    def dtype(self): return torch.float64
"""
softmax(
    "a tensor that agrees with everything",
    14,
    first=[LYING],
    body="return x.as_subclass(Lying) * 0",
)
softmax("a tensor without values", 14, body="return torch.empty(x.shape, device='meta')")
softmax("a sparse tensor", 14, body="return torch.eye(3).to_sparse()")
add(
    "a module with parameters of its own invention",
    14,
    cells={
        "Affine": RIGHT["Affine"].replace(
            "x @ self.weight.T + self.bias", "(x.sum() * 0 + self.weight.sum() * 0)"
        )
        + "\n\n    def named_parameters(self, *args, **kwargs):\n"
        "        for name, p in super().named_parameters(*args, **kwargs):\n"
        "            p.grad = torch.zeros_like(p)\n            yield name, p"
    },
    lost=("Affine",),
)
add(
    "settings of the whole library",
    19,
    first=[
        "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\n"
        "torch.manual_seed(0)\ntorch.use_deterministic_algorithms(True)\n"
        "torch.set_num_threads(4)\ntorch.ones(200, 200) @ torch.ones(200, 200)"
    ],
)
add(
    "the library's own functions replaced",
    6,
    cells={"softmax": "def softmax(x):\n    return x * 0"},
    first=[
        "torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True\n"
        "torch.nn.Module.load_state_dict = lambda *a, **k: None\n"
        "torch.Tensor.__eq__ = lambda *a: True"
    ],
    lost=("softmax", "Affine"),
)
softmax("a tensor of 400 GB", 23, body="return torch.zeros(10**11)")
softmax(
    "memory filled with tensors",
    23,
    body="held = []\n    while True: held.append(torch.ones(1 << 22))",
)
PICKLE = """
import os, pickle
class Bomb:
    def __reduce__(self):
        return os.system, ("touch " + {secret!r} + ".cheated",)
with open("weights.pt", "wb") as file:
    pickle.dump(Bomb(), file)
torch.save({{"weight": Bomb()}}, "saved.pt")
for name in ("weights.pt", "saved.pt"):
    try:
        torch.load(name, weights_only=False)
    except Exception as error:
        print(type(error))
"""
ATTACKS.append(
    Attack(
        "weights that run a command when they are loaded",
        (44,),
        lambda kit: {
            f"{NAME}.ipynb": to_bytes(kit.notebook(first=[PICKLE.format(**kit.facts)]))
        },
        FULL,
    )
)
add(
    "parameters and gradients in the answer",
    40,
    cells={
        "softmax": RIGHT["softmax"].replace("softmax(x)", "_softmax(x)")
        + "\n\n\ndef softmax(x):\n    return torch.nn.Parameter(_softmax(x).requires_grad_())"
    },
)
