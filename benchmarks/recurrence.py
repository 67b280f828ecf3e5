"""Recurrent layers against torch.nn with autograd: ``python -m benchmarks.recurrence``.

Forward pass and all gradients of one batch, T = 100, B = 32, D = H = 128. Every figure is a
ratio of process CPU time on one thread: all cases run once per round, in turn, and the median
over rounds counts. Before anything is timed, all cases are held to compute the same.
"""

import numpy as np
import torch

import seqlib.np as snp
from benchmarks.timing import interleave, processor, ratio

B, T, D, H = 32, 100, 128, 128
MODULES = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
WITH_VJP = {
    "float32": {"rnn": 0.75, "lstm": 1.30, "gru": 0.85},
    "float64": {"rnn": 0.85, "lstm": 0.90, "gru": 0.90},
}
PLAIN = 2.0


def rows(rounds=11):
    """Return ``(name, ratio, target, sense)`` for each figure that has a target."""
    torch.set_num_threads(1)
    return [
        row
        for dtype, targets in WITH_VJP.items()
        for name, target in targets.items()
        for row in layer_rows(name, dtype, target, rounds)
    ]


def layer_rows(name, dtype, target, rounds):
    """Compare one layer in both forms; a GRU also with PyTorch's place of the reset gate."""
    torch.manual_seed(0)
    module = MODULES[name](D, H, batch_first=True).to(getattr(torch, dtype))
    rng = np.random.default_rng(0)
    x, dy = (rng.standard_normal((B, T, n)).astype(dtype) for n in (D, H))
    h0 = np.zeros((B, H), dtype)
    states = [h0] * (2 if name == "lstm" else 1)
    if name == "gru":
        weights = snp.gru_from_torch(module.state_dict())
        variants = {"gru": {}, "gru, reset_after": {"reset_after": True}}
    else:
        weights = [p.detach().numpy() for p in module.parameters()]
        variants = {name: {}}
    cases = {"torch": torch_pass(module, x, dy)}
    for label, options in variants.items():
        cases[f"{label}, with_vjp"] = fast_pass(name, x, states, weights, dy, options)
        cases[f"{label}, plain"] = plain_pass(name, x, states, weights, dy, options)
    hold_equal(cases, variants, rtol=1e-3 if dtype == "float32" else 1e-9)
    times = interleave(cases, rounds)
    found = []
    for label in variants:
        peer = f"torch.nn.{MODULES[name].__name__} and autograd, {dtype}"
        for form, limit in (("with_vjp", target), ("plain", PLAIN)):
            value = ratio(times, f"{label}, {form}", "torch")
            what = f"{name}_with_vjp" if form == "with_vjp" else f"{name}, {name}_backward"
            suffix = label.removeprefix(name)
            found.append((f"{what}{suffix} / {peer}", value, limit, "at most"))
    return found


def torch_pass(module, x, dy):
    """Return a function that runs the module and returns y and the gradients."""
    x, dy = torch.tensor(x, requires_grad=True), torch.tensor(dy)

    def run():
        x.grad = None
        module.zero_grad()
        y, _ = module(x)
        y.backward(dy)
        return y.detach().numpy(), x.grad.numpy()

    return run


def fast_pass(name, x, states, weights, dy, options):
    """Return the same for ``f_with_vjp``."""
    f = getattr(snp, f"{name}_with_vjp")
    d_states = [np.zeros_like(state) for state in states]

    def run():
        (y, *_), vjp = f(x, *states, *weights, **options)
        return y, *vjp((dy, *d_states))

    return run


def plain_pass(name, x, states, weights, dy, options):
    """Return the same for ``f`` and then ``f_backward``, which runs the forward pass again."""
    f, f_backward = getattr(snp, name), getattr(snp, f"{name}_backward")
    d_states = [np.zeros_like(state) for state in states]

    def run():
        y, *_ = f(x, *states, *weights, **options)
        return y, *f_backward((dy, *d_states), x, *states, *weights, **options)

    return run


def hold_equal(cases, variants, rtol):
    """Compare both forms, and y and dx with PyTorch, which has no GRU of the notes' form."""
    results = {label: run() for label, run in cases.items()}
    for label in variants:
        plain, fast = results[f"{label}, plain"], results[f"{label}, with_vjp"]
        for ours, other in zip(plain, fast, strict=True):
            np.testing.assert_allclose(ours, other, rtol=rtol, atol=rtol)
        if label != "gru":
            for ours, theirs in zip(plain, results["torch"], strict=False):
                np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


if __name__ == "__main__":
    print(processor())
    for name, value, target, sense in rows():
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
