"""Run a torch module, or a function of tensors, forward and back."""

import numpy as np
import torch

_FEW = 6  # names of parameters that a message shows


def run_module(module, *, state, inputs, cotangent, mode):
    """Load weights, run forward and, if a cotangent is given, backward.

    Parameters
    ----------
    module : torch.nn.Module
        What the student's class built. It is cast to the dtype of the weights.
    state : dict of str to ndarray, or None
        Value of every parameter. Buffers that it does not name keep their value. None leaves
        the module as it was built, and its parameters come back too.
    inputs : list
        Positional arguments of ``forward``; floating-point arrays become leaf tensors.
    cotangent : ndarray or list of ndarray or None
        dy for the output, or for each part of it (None for a part without).
    mode : {"eval", "train"}
        State of dropout and the like.

    Returns
    -------
    dict
        ``"output"``, and with a cotangent ``"gradients"`` (by parameter) and
        ``"input_gradients"`` (a list with None for inputs that are not floating point). An
        output without a gradient, as under ``torch.no_grad()``, comes alone. Without a state
        ``"parameters"`` by name, as they are after the forward pass.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"the class must build a torch.nn.Module, got {type(module).__name__}")
    if state is not None:
        _load(module, state)
    module.train(mode == "train")
    inputs = [_leaf(value) for value in inputs]
    with torch.enable_grad():
        output = module(*inputs)
        found = {"output": output}
        if state is None:
            found["parameters"] = dict(module.named_parameters())
        if cotangent is None:
            return found
        total = _inner(output, cotangent)
        if not total.requires_grad:
            return found
        total.backward()
    return found | {
        "gradients": {name: p.grad for name, p in module.named_parameters()},
        "input_gradients": [x.grad if isinstance(x, torch.Tensor) else None for x in inputs],
    }


def differentiate(function, args, kwargs):
    """Call a function, and go back from the sum of what it returns to its first argument.

    Parameters
    ----------
    function : callable
        The student's function.
    args : list
        Of which the first one is a leaf tensor that requires a gradient.
    kwargs : dict
        Further arguments.

    Returns
    -------
    dict
        ``"output"`` and ``"gradient"``. An output without a gradient comes alone.
    """
    with torch.enable_grad():
        output = function(*args, **kwargs)
        if not isinstance(output, torch.Tensor) or not output.requires_grad:
            return {"output": output}
        output.sum().backward()
    return {"output": output, "gradient": args[0].grad}


def _load(module, state):
    own = dict(module.named_parameters(remove_duplicate=False))
    buffers = dict(module.named_buffers())
    missing = [name for name in state if name not in own and name not in buffers]
    extra = [name for name in own if name not in state]
    if (missing or extra) and len(state) <= _FEW:
        raise ValueError(
            f"the module must have the parameters {', '.join(state)}, got {', '.join(own)}"
        )
    if missing or extra:
        lacking = f"lacks {', '.join(missing[:_FEW])}" if missing else ""
        besides = f"has {', '.join(extra[:_FEW])} besides" if extra else ""
        said = " and ".join(part for part in (lacking, besides) if part)
        raise ValueError(
            f"the module must have the {len(state)} parameters of the text: it {said}"
        )
    for name, value in state.items():
        target = own.get(name, buffers.get(name))
        if tuple(target.shape) != value.shape:
            raise ValueError(
                f"parameter {name} must have shape {value.shape}, got {tuple(target.shape)}"
            )
    floating = [value.dtype for value in state.values() if value.dtype.kind == "f"]
    if floating:
        module.to(torch.from_numpy(np.empty(0, floating[0])).dtype)
    values = {name: torch.from_numpy(np.array(value)) for name, value in state.items()}
    module.load_state_dict(values, strict=False)


def _leaf(value):
    if type(value) is np.ndarray:
        value = torch.from_numpy(value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        value.requires_grad_()
    return value


def _inner(output, cotangent):
    if isinstance(output, torch.Tensor):
        return (output * torch.from_numpy(np.array(cotangent)).to(output.dtype)).sum()
    if not isinstance(output, tuple | list) or len(output) != len(cotangent):
        parts = len(output) if isinstance(output, tuple | list) else 1
        raise ValueError(f"forward must return {len(cotangent)} parts, got {parts}")
    return sum(_inner(y, dy) for y, dy in zip(output, cotangent, strict=True) if dy is not None)
