"""Task: a decoder-only language model, put together from its layers, as a torch module."""

import math

import numpy as np

from seqlib.exercises._decoder_model_mistakes import MISCONCEPTIONS
from seqlib.exercises.record import Criterion, Task, Tolerance, module_case

# PyTorch is imported where it is used: the records of the course load without it.


def reference(vocab_size, context, d, n_layer, n_head):
    """Build the model."""
    import torch
    from torch import nn

    from seqlib.pt import TransformerLayer

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.E = nn.Parameter(0.02 * torch.randn(vocab_size, d))
            self.P = nn.Parameter(0.02 * torch.randn(context, d))
            self.layers = nn.ModuleList(
                TransformerLayer(d, n_head, 4 * d) for _ in range(n_layer)
            )
            self.norm = nn.LayerNorm(d)
            self.b = nn.Parameter(torch.zeros(vocab_size))

        def forward(self, ids):
            X = self.E[ids] + self.P[: ids.shape[1]]
            for layer in self.layers:
                X = layer(X, causal=True)
            return self.norm(X) @ self.E.T + self.b

    return LanguageModel()


def variant(vocab_size, context, d, n_layer, n_head, *, wrong=frozenset()):
    """Build the model with the mistakes named in ``wrong``."""
    import torch
    from torch import nn

    from seqlib.pt import TransformerLayer

    options = {
        "norm": "post" if "post_norm" in wrong else "pre",
        "feed_forward": "relu" if "relu" in wrong else "gelu",
    }

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            std = 1.0 if "large_start" in wrong else 0.02
            self.E = nn.Parameter(std * torch.randn(vocab_size, d))
            self.P = nn.Parameter(0.02 * torch.randn(context, d))
            self.layers = nn.ModuleList(
                TransformerLayer(d, n_head, 4 * d, **options) for _ in range(n_layer)
            )
            if "one_layer_shared" in wrong:
                self.layers = nn.ModuleList([self.layers[0]] * n_layer)
            self.norm = nn.LayerNorm(d)
            self.b = nn.Parameter(torch.zeros(vocab_size))

        def forward(self, ids):
            first = X = self.embedded(ids)
            if "dropout" in wrong:
                first = X = nn.functional.dropout(X, 0.1, self.training)
            for layer in self.layers:
                if "first_layer_repeated" in wrong:
                    layer = self.layers[0]
                X = self.through(layer, first if "layers_side_by_side" in wrong else X)
            if not wrong & {"no_final_norm", "norm_in_front"}:
                X = self.norm(X)
            E = self.E.detach() if "detached_head" in wrong else self.E
            logits = X @ E.T + (0 if "b_ignored" in wrong else self.b)
            if "no_gradient" in wrong:
                logits = logits.detach()
            if "probabilities" in wrong:
                return logits.softmax(dim=-1)
            return logits.log_softmax(dim=-1) if "log_probabilities" in wrong else logits

        def embedded(self, ids):
            T = ids.shape[1]
            X = self.E[ids] * (math.sqrt(d) if "embedding_scaled" in wrong else 1)
            if "positions_from_1" in wrong:
                X = X + self.P[1 : T + 1]
            elif "positions_ignored" not in wrong:
                X = X + self.P[:T]
            return self.norm(X) if "norm_in_front" in wrong else X

        def through(self, layer, X):
            if "batch_as_time" in wrong:
                X = X.transpose(0, 1)
            T = X.shape[1]
            if "one_ahead" in wrong:
                mask = torch.full((T, T), -torch.inf, dtype=X.dtype).triu(2)
                X = layer(X, mask=mask)
            else:
                X = layer(X, causal="not_causal" not in wrong)
            return X.transpose(0, 1) if "batch_as_time" in wrong else X

    return LanguageModel()


def cases(rng):
    """Draw weights and token ids for one run."""
    one, five, deep = (11, 7, 6, 1, 2), (13, 11, 4, 1, 2), (7, 5, 6, 3, 3)
    small = (5, 3, 4, 1, 1)
    return [
        _case(rng, one, (3, 1), "3 sequences of one token, one layer"),
        _case(rng, (5, 2, 3, 1, 1), (1, 1), "one sequence of one token, d=3, one head"),
        _case(rng, five, (3, 5), "3 sequences of 5 tokens, context 11", "tokens", grad=True),
        _case(rng, one, (2, 6), "2 sequences of 6 tokens, context 7", "tokens", grad=True),
        _case(rng, small, (1, 2), "one sequence of 2 tokens, d=4", "tokens", grad=True),
        _case(rng, deep, (2, 1), "one token, 3 layers of 3 heads", "layers"),
        _case(rng, deep, (5, 1), "one token, 5 sequences, 3 layers", "layers"),
    ]


def _case(rng, sizes, shape, label, tag="base", *, grad=False):
    ids = rng.integers(sizes[0], size=shape)
    return module_case(
        *sizes,
        state=state(rng, *sizes),
        inputs=[ids],
        cotangent=_draw(rng, *shape, sizes[0]) if grad else None,
        label=label,
        tag=tag,
    )


def state(rng, vocab_size, context, d, n_layer, n_head):
    """Draw a value for every parameter, of a size at which each one matters."""
    found = {"E": _draw(rng, vocab_size, d), "P": _draw(rng, context, d)}
    for i in range(n_layer):
        layer = {
            "self_attn.in_proj_weight": _draw(rng, 3 * d, d) * 1.5 / math.sqrt(d),
            "self_attn.in_proj_bias": 0.5 * _draw(rng, 3 * d),
            "self_attn.out_proj.weight": _draw(rng, d, d) * 1.5 / math.sqrt(d),
            "self_attn.out_proj.bias": 0.5 * _draw(rng, d),
            "linear1.weight": _draw(rng, 4 * d, d) / math.sqrt(d),
            "linear1.bias": 0.5 * _draw(rng, 4 * d),
            "linear2.weight": _draw(rng, d, 4 * d) / math.sqrt(4 * d),
            "linear2.bias": 0.5 * _draw(rng, d),
            **_norm(rng, "norm1", d),
            **_norm(rng, "norm2", d),
        }
        found |= {f"layers.{i}.{name}": value for name, value in layer.items()}
    found |= _norm(rng, "norm", d) | {"b": _draw(rng, vocab_size)}
    return {name: value.astype(np.float32) for name, value in found.items()}


def _norm(rng, name, d):
    gain = rng.uniform(0.6, 1.6, d) * np.where(rng.random(d) < 0.5, -1, 1)
    return {f"{name}.weight": gain, f"{name}.bias": 0.5 * _draw(rng, d)}


def _draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def causal(call, rng):
    """Ask that logits before a token stay when the tokens from it on change, and no others."""
    sizes = (13, 11, 6, 2, 3)
    weights, ids = state(rng, *sizes), rng.integers(13, size=(2, 7))
    before = _output(call, sizes, weights, ids)
    if before.shape != (*ids.shape, 13):
        return f"the logits of 2 sequences of 7 tokens have shape {before.shape}"
    largest = np.abs(before).max()
    for t in (6, 1, 3):
        later = ids.copy()
        later[:, t:] = (ids[:, t:] + rng.integers(1, 13, size=(2, 7 - t))) % 13
        change = np.abs(_output(call, sizes, weights, later) - before)
        # Written so that a NaN fails.
        if not change[:, :t].max() <= 1e-4 * largest:
            return f"the logits before token {t} change when the tokens from {t} on do"
        later = ids.copy()
        later[:, 0] = (ids[:, 0] + 1) % 13
        change = np.abs(_output(call, sizes, weights, later) - before)
        if not change[:, t].max(axis=-1).min() > 1e-5 * largest:
            return f"the logits of token {t} do not depend on token 0"
    return None


def starts_at_ln_V(call, rng):
    """Ask that a new model give every token about the same probability, 1 / V."""
    sizes, V = (101, 11, 32, 2, 4), 101
    ids, targets = rng.integers(V, size=(2, 16, 8))
    ids[1:3] = ids[0]
    ids[2, 0] = (ids[0, 0] + 1) % V
    logits = _output(call, sizes, None, ids).astype(float)
    if logits.shape != (16, 8, V):
        return f"the logits of a new model have shape {logits.shape}"
    if not np.abs(logits[1] - logits[0]).max() <= 1e-4 * np.abs(logits).max():
        return "a new model gives two equal sequences different logits"
    if not np.abs(logits[2, 1:] - logits[0, 1:]).max() > 1e-5 * np.abs(logits).max():
        return "in a new model no token attends to the one before it"
    if logits.std() < 0.01:
        return "all logits of a new model are nearly equal: E is not drawn as the text says"
    logits -= logits.max(axis=-1, keepdims=True)
    nats = np.log(np.exp(logits).sum(axis=-1))
    nats -= np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    if not abs(nats.mean() - math.log(V)) <= 0.3:
        return (
            f"with V = {V} the loss of a new model on random tokens is {nats.mean():.3g}, and "
            f"ln V is {math.log(V):.3g}"
        )
    return None


def starts_as_said(call, rng):
    """Ask that E, P, b and the norm of a new model have the starting values of the text."""
    ids = rng.integers(101, size=(1, 2))
    found = _run(call, (101, 11, 32, 2, 4), None, ids)["parameters"]
    # 101 * 32 and 11 * 32 draws: their deviation is known to 1.2 and 3.8 percent.
    for name in ("E", "P"):
        if name in found and not abs(found[name].std() / 0.02 - 1) <= 0.25:
            return f"{name} starts with a standard deviation of {found[name].std():.3g}"
        if name in found and not abs(found[name].mean()) <= 0.005:
            return f"{name} starts with a mean of {found[name].mean():.3g}"
    for name, value in (("b", 0), ("norm.weight", 1), ("norm.bias", 0)):
        if name in found and not (found[name] == value).all():
            return f"{name} does not start at {value}"
    return None


def same_in_training(call, rng):
    """Ask that the logits be the same in training as in evaluation: nothing is dropped."""
    sizes = (13, 11, 6, 2, 3)
    weights, ids = state(rng, *sizes), rng.integers(13, size=(2, 7))
    expected = _output(call, sizes, weights, ids)
    logits = _output(call, sizes, weights, ids, mode="train")
    if logits.shape != expected.shape:
        return f"after train() the logits have shape {logits.shape}"
    if not np.abs(logits - expected).max() <= 1e-4 * np.abs(expected).max():
        return "after train() the logits are others than after eval(): is dropout left on?"
    return None


def _output(call, sizes, weights, ids, mode="eval"):
    return np.asarray(_run(call, sizes, weights, ids, mode)["output"])


def _run(call, sizes, weights, ids, mode="eval"):
    kwargs = {"state": weights, "inputs": [ids], "cotangent": None, "mode": mode}
    return call(*sizes, **kwargs)


TASK = Task(
    id="decoder.LanguageModel",
    title="Decoder-only language model",
    signature="(vocab_size, context, d, n_layer, n_head)",
    equations=(),
    page="decoder#model",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="module",
    criteria=(
        Criterion("values", 5, "logits of sequences of one token", part="output"),
        Criterion("tokens", 5, "logits of several tokens", tag="tokens", part="output"),
        Criterion("layers", 2, "several layers", tag="layers", part="output"),
        Criterion(
            "gradients",
            3,
            "gradients of the parameters",
            tag="tokens",
            part="gradients",
            needs=("values", "tokens"),
        ),
        Criterion("causal", 5, "no logit depends on later tokens", holds=causal, needs=()),
        Criterion(
            "start",
            2,
            "loss of a new model near ln V",
            holds=starts_at_ln_V,
            needs=(),
        ),
        Criterion(
            "parameters",
            2,
            "starting values of E, P, b and the norm",
            holds=starts_as_said,
            needs=("start",),
        ),
        Criterion(
            "dropout",
            1,
            "the same logits in training, without dropout",
            holds=same_in_training,
            needs=("values", "tokens"),
        ),
    ),
    misconceptions=MISCONCEPTIONS,
    options={
        "parts": {"output": "the output", "gradients": "the table of gradients"},
        "axes": {"the output": ("batch row", "time step", "token id")},
    },
    # Weights are float32: gradients of right styles differ by up to 5e-4 of an entry.
    tolerance=Tolerance(rtol32=2e-3, atol32=2e-4),
    shortcuts=("seqlib.pt.decoder.DecoderLM",),
    version=2,
)
