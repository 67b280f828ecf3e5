"""The sandbox with PyTorch loaded, and with figures."""

import base64
from dataclasses import replace

import numpy as np
import pytest
import torch
from sandbox_tools import LIMITS, call, open_sandbox, run
from test_sandbox import equal

from seqlib.subject.inprocess import InProcess
from seqlib.subject.subject import Reply
from seqlib.subject.values import AsTensor, Seed

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


@pytest.fixture(scope="module", params=["best", "landlock"])
def sandbox(request):
    # Nothing here is to be stopped for its time, so none is short on a busy machine.
    limits = replace(LIMITS.for_torch(), output=200_000, call=20.0, cell=20.0)
    with open_sandbox(request.param, torch=True, limits=limits) as sandbox:
        yield sandbox


SOURCE = """import numpy as np
import torch
from torch import nn

class Affine(nn.Module):
    def __init__(self, n_in, n_out, *, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_out, n_in))
        self.bias = nn.Parameter(torch.ones(n_out)) if bias else None
    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias

class TwoOutputs(nn.Module):
    def forward(self, x, ids):
        return x[ids], (2 * x).sum()

class Frozen(Affine):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)

class Broken(nn.Module):
    def forward(self, x):
        return x.reshape(7, 7)

def scaled(x, *, by):
    assert isinstance(x, torch.Tensor)
    return by * x

def half(x):
    return {"half": x.half(), "bf16": x.bfloat16(), "int": x.long(), "bool": x > 0}

def sparse():
    return torch.eye(3).to_sparse()

def parameter():
    return nn.Parameter(torch.ones(2, 0))

def gradient(x):
    (x**2).sum().backward()
    return x.grad

def square(x):
    return (x**2).sum()

def item(x):
    return square(x).item()

def refused(q):
    return torch.nn.functional.scaled_dot_product_attention(q, q, q)
"""
X = np.linspace(-1, 1, 6).reshape(2, 3)
W = np.arange(12.0).reshape(4, 3)
MODULE = {
    "do": "module",
    "args": [3, 4],
    "kwargs": {},
    "state": {"weight": W, "bias": np.arange(4.0)},
    "inputs": [X],
    "cotangent": np.ones((2, 4)),
    "mode": "train",
}
DIFFERENTIATED = {"do": "differentiate", "args": [AsTensor(X, requires_grad=True)]}
REQUESTS = {
    "module, forward and backward": ("Affine", MODULE),
    "module, forward": ("Affine", MODULE | {"cotangent": None, "mode": "eval"}),
    "module without a gradient": ("Frozen", MODULE),
    "module in float32": (
        "Affine",
        MODULE | {"state": {k: v.astype("f4") for k, v in MODULE["state"].items()}},
    ),
    "module without bias": (
        "Affine",
        MODULE | {"kwargs": {"bias": False}, "state": {"weight": W}},
    ),
    "module with other parameters": ("Affine", MODULE | {"state": {"weight": W, "b": X}}),
    "module that fails": (
        "Broken",
        {"do": "module", "args": [], "kwargs": {}, "state": None, "inputs": [X]},
    ),
    "module with two outputs": (
        "TwoOutputs",
        {
            "do": "module",
            "args": [],
            "kwargs": {},
            "state": None,
            "inputs": [X, np.array([1, 0, 1])],
            "cotangent": [np.ones((3, 3)), None],
        },
    ),
    "not a module": ("scaled", MODULE | {"args": [X], "kwargs": {"by": 1}}),
    "tensor": ("scaled", {"do": "call", "args": [AsTensor(X)], "kwargs": {"by": 2.0}}),
    "tensor in float32": (
        "scaled",
        {"do": "call", "args": [AsTensor(X.astype("f4"))], "kwargs": {"by": AsTensor(X)}},
    ),
    "dtypes": ("half", {"do": "call", "args": [AsTensor(X)]}),
    "sparse": ("sparse", {"do": "call"}),
    "empty parameter": ("parameter", {"do": "call"}),
    "gradient": ("gradient", {"do": "call", "args": [AsTensor(X, requires_grad=True)]}),
    "differentiated": ("square", DIFFERENTIATED),
    "not differentiable": ("item", DIFFERENTIATED),
    "refused": (
        "refused",
        {
            "do": "call",
            "args": [AsTensor(X[None])],
            "refuse": ["torch.nn.functional.scaled_dot_product_attention"],
        },
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_both_subjects_give_the_same_reply(submission, name):
    expression, request = REQUESTS[name]
    space = {}
    exec(compile(SOURCE, "<cell>", "exec"), space)
    ours = InProcess(space[expression]).perform(request)
    assert submission.run_cell(SOURCE).ok
    with submission.subject(expression) as subject:
        theirs = subject.perform(request)
    for field in Reply.__dataclass_fields__:
        assert equal(getattr(ours, field), getattr(theirs, field)), field


def test_a_training_cell_and_its_model_as_a_subject(submission):
    cell = run(
        submission,
        """
        import torch
        torch.manual_seed(0)
        lstm = torch.nn.LSTM(4, 8, batch_first=True)
        optimiser = torch.optim.Adam(lstm.parameters(), lr=1e-2)
        x = torch.randn(3, 5, 4)
        losses = []
        for _ in range(5):
            loss = (lstm(x)[0] ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        losses[-1] < losses[0]
        """,
    )
    assert cell.ok
    assert cell.outputs[-1]["data"]["text/plain"] == "True"
    with submission.subject("lambda x: lstm(x)[0]") as subject:
        reply = call(subject, AsTensor(np.zeros((2, 3, 4), np.float32)))
    assert reply.value.shape == (2, 3, 8)


def test_unseeded_numbers_are_the_same_for_every_submission(sandbox, student_build):
    def draw():
        with sandbox.open(student_build) as submission:
            submission.run_cell("import numpy as np, random, torch")
            submission.run_cell("numbers = torch.rand(2).tolist(), np.random.rand(2).tolist()")
            with submission.subject("lambda: random.random()") as subject:
                drawn = call(subject).value
            cell = "numbers, random.random(), {'a', 'b', 'c'}"
            return drawn, submission.run_cell(cell).outputs[-1]["data"]["text/plain"]

    first, second = draw(), draw()
    assert first == second
    assert str(first[0]) in first[1]  # the task drew in the notebook's state, and undid it


def test_threads_started_before_the_fork(submission):
    """OpenMP in a fork of a process with threads waits for ever, unless it may start none."""
    run(
        submission,
        """
        import torch
        torch.set_num_threads(4)
        a = torch.randn(300, 300)
        (a @ a).sum()
        w = torch.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        def f(x):
            v = torch.ones(3, requires_grad=True)
            (v * x).sum().backward()
            return (a @ a).shape, v.grad
        """,
    )
    with submission.subject("f") as subject:
        reply = subject.perform({"do": "call", "args": [2.0], "seconds": 5.0})
    assert np.array_equal(reply.value[1], [2, 2, 2])


@pytest.mark.parametrize(
    "options", ["num_workers=2", "num_workers=2, persistent_workers=True, prefetch_factor=4"]
)
def test_a_data_loader_uses_no_processes(submission, options):
    cell = run(
        submission,
        f"""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.arange(6.0))
        [batch[0].tolist() for batch in DataLoader(data, batch_size=4, {options})]
        """,
    )
    assert cell.ok, cell.outputs
    assert "[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0]]" in cell.outputs[-1]["data"]["text/plain"]


def test_weights_are_saved_and_loaded(submission):
    cell = run(
        submission,
        """
        import torch
        layer = torch.nn.Linear(3, 2)
        torch.save(layer.state_dict(), "weights.pt")
        torch.load("weights.pt", weights_only=True).keys()
        """,
    )
    assert cell.ok, cell.outputs
    assert "weight" in cell.outputs[-1]["data"]["text/plain"]


def test_too_much_memory_is_an_error_or_a_fault(submission):
    run(submission, "import torch\ndef f(n): return torch.ones(n, dtype=torch.float64).sum()")
    with submission.subject("f") as subject:
        assert "alloc" in call(subject, 10**12).error
        assert call(subject, 10).value == 10


def test_a_generator_and_torch_do_not_disturb_each_other(submission):
    run(submission, "import torch\ndef f(rng): return rng.standard_normal(2), torch.ones(2)")
    with submission.subject("f") as subject:
        drawn, ones = call(subject, Seed(1)).value
    assert np.array_equal(drawn, np.random.default_rng(1).standard_normal(2))
    assert np.array_equal(ones, torch.ones(2))


@pytest.mark.parametrize("magic", ["", "%matplotlib inline"])
@pytest.mark.parametrize("end", ["plt.show()", ""])
def test_a_figure_is_a_png(submission, magic, end):
    source = (
        f"{magic}\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 3])"
    )
    cell = submission.run_cell(f"{source}\n{end}")
    assert cell.ok, cell.outputs
    pictures = [
        o["data"]["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})
    ]
    assert len(pictures) == 1
    assert base64.b64decode(pictures[0]).startswith(b"\x89PNG")
    assert all(set(o.get("data", {})) <= {"text/plain", "image/png"} for o in cell.outputs)
