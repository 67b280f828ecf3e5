"""Attacks on a course of one small assignment that needs PyTorch."""

import copy

from submissions import Attack, code
from tinytorch import FULL, NAME, RIGHT, register, release

from seqlib.grading.samples.damage import cell_of, to_bytes

__all__ = ["ATTACKS", "NAME", "Kit", "lay_out", "register"]


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
