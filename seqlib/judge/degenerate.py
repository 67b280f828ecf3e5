"""Answers that know nothing: every task must give each of them 0 points."""

import numpy as np

from seqlib.judge.kinds import Trusted
from seqlib.subject.values import Seed


def degenerate_answers(task):
    """Return functions of the right shape and nothing else.

    They call the reference, so they must be judged with what that calls not refused: as
    ``dataclasses.replace(task, shortcuts=())``.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        Its reference gives the shapes.

    Returns
    -------
    dict of str to callable
        ``"zeros"``, ``"ones"``, ``"noise"`` (of the right shape, different at every call),
        ``"constant"`` (one right answer for all calls), ``"first_argument"``, ``"nothing"``
        (None) and ``"raises"``. A text becomes an empty one. Of a module the output is
        replaced, and what was trained answers with an array like its first argument.
    """

    def nothing(*args, **kwargs):
        return None

    def raises(*args, **kwargs):
        raise NotImplementedError

    def first_argument(*args, **kwargs):
        return args[0] if args else next(iter(kwargs.values()), None)

    answers = {"nothing": nothing, "raises": raises, "first_argument": first_argument}
    if task.kind == "training":
        return answers | {
            name: _returning(_shaped(task, value))
            for name, value in (("zeros", np.zeros_like), ("ones", np.ones_like))
        }
    rng = np.random.default_rng(0)
    fillings = {
        "zeros": np.zeros_like,
        "ones": np.ones_like,
        "noise": lambda a: rng.standard_normal(a.shape).astype(a.dtype),
    }
    wrap = _module if task.kind == "module" else _function
    answers |= {name: wrap(task, fill) for name, fill in fillings.items()}
    if task.kind != "module":
        answers["constant"] = _constant(task)
    return answers


def _function(task, fill):
    def answer(*args, **kwargs):
        return _filled(_reference(task, args, kwargs), fill)

    return answer


def _reference(task, args, kwargs):
    """Call the reference; a random answer must not use up the generator that it is given."""
    args = [Seed(0) if isinstance(a, np.random.Generator) else a for a in args]
    request = {"do": "call", "args": args, "kwargs": kwargs}
    return Trusted(task.reference).perform(request).value


def _constant(task):
    first = []

    def answer(*args, **kwargs):
        if not first:
            first.append(_reference(task, args, kwargs))
        return first[0]

    return answer


def _filled(value, fill):
    """Replace every number and text of a plain value."""
    if isinstance(value, dict):
        return {key: _filled(part, fill) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_filled(part, fill) for part in value)
    if isinstance(value, str | bytes):
        return type(value)()
    if value is None:
        return None
    return fill(np.asarray(value))


def _module(task, fill):
    """Build the right module, and replace its output."""

    def build(*args, **kwargs):
        import torch

        module = task.reference(*args, **kwargs)
        right = module.forward

        def forward(*inputs):
            zero = [0 * p.sum() for p in module.parameters()]  # keeps a graph to go back
            return _replaced(torch, right(*inputs), fill, sum(zero))

        module.forward = forward
        return module

    return build


def _replaced(torch, output, fill, zero):
    if isinstance(output, tuple | list):
        return type(output)(_replaced(torch, part, fill, zero) for part in output)
    return torch.from_numpy(fill(output.detach().numpy())) + zero


def _shaped(task, fill):
    """Return a trained object that answers with an array like its first argument."""
    return lambda *args, **kwargs: fill(np.asarray(args[0], dtype=float))


def _returning(value):
    return lambda *args, **kwargs: value
