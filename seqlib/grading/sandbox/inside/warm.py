"""Warming up: what notebooks do is done a few times in the fork server, before it forks.

Python rewrites the code of a function while it is called the first dozen times, and some
modules are imported at the first use only. Whatever happened before a fork is not done again
in each of them, and the pages that it wrote stay shared.
"""

import socket
import sys
import warnings

import numpy as np

from ....subject.driver import Session
from ....subject.values import Handle, Seed
from . import child, codec
from .shell import Output, begin, run_cell

ROUNDS = 12
_CELLS = (
    '''\
import numpy as np

def _softmax(x, axis=-1):
    """Return weights."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

class _Layer:
    def __init__(self, width):
        self.weight = np.ones((width, width))

    def __call__(self, x, mask=None):
        scores = x @ np.swapaxes(x, -1, -2) / np.sqrt(x.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        return _softmax(scores) @ x @ self.weight
''',
    "_x = np.arange(6.0).reshape(2, 3)\nprint(np.round(_Layer(3)(_x), 3), _x.shape)",
    "_x = np.concatenate([_x, np.zeros((1, 3))])\n_x.mean()",
    "for _i in range(3):\n    print(f'{_i}: {float(_x[_i].sum()):.3f}')",
)
_FAILING = "def _f(x):\n    return 1 / x\n_f(0)"


def warm_up(shell):
    """Run cells in a shell and answer requests as a task does, then forget them."""
    try:
        _run_cells(shell)
        _answer_requests()
    finally:
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    shell.reset(new_session=True)
    shell.execution_count = 1
    shell.output = Output(0)


def _run_cells(shell):
    begin(shell, 1_000_000)
    for _ in range(ROUNDS):
        for source in _CELLS:
            result = run_cell(shell, source)
            if not result["ok"]:
                raise RuntimeError(f"a cell failed while warming up: {result['outputs']}")
            codec.frame(result)
    for _ in range(2):
        run_cell(shell, _FAILING)
        shell.run_cell(_CELLS[1])  # the way of cells with magics


def _answer_requests():
    def function(x, y, rng=None, scale=1.0, model=None):
        """Do some of what solutions do."""
        warnings.warn("no matter", RuntimeWarning, stacklevel=1)
        z = model(x) if rng is None else rng.standard_normal(x.shape)
        return z @ np.swapaxes(y, -1, -2) * scale, [x.sum(axis=0), {"n": y.shape[0]}]

    x = np.arange(6.0).reshape(2, 3)
    requests = [
        {"do": "call", "args": [x, x, None], "kwargs": {"model": Handle(None, 0)}},
        {"do": "call", "args": [x, x], "kwargs": {"rng": Seed(0), "scale": 0.5}},
        {"do": "call", "args": [x], "kwargs": {}},  # fails
    ]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = child.Channel(theirs.detach())
        session = Session(function, lambda number, args, kwargs: args[0])
        for _ in range(ROUNDS):
            for request in requests:
                about = {"refuse": ["numpy.fft.fft"], "seconds": 5.0, "globals": {}}
                ours.sendall(codec.frame({"number": 0, "request": request | about}))
                child.answer(channel, session, channel.read(), codec.MAX_BYTES)
                ours.recv(1 << 16)
