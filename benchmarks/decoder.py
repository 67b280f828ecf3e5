"""Training steps and generation of the decoder: ``python -m benchmarks.decoder``.

Every figure is a ratio of process CPU time on one thread, in float32: all cases run once per
round, in turn, and the median over rounds counts, so that a busy machine disturbs both sides
alike. Before anything is timed, the cases are held to compute the same.
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import seqlib.np as snp
import seqlib.pt as spt
from benchmarks.timing import interleave, ratio

B, T, V = 12, 64, 65
CONFIG = spt.DecoderConfig(V, T, dim=128, n_layer=4, n_head=4, bias=False)
LONG = spt.DecoderConfig(V, 256, dim=128, n_layer=4, n_head=4, feed_forward="gelu_tanh")


def rows():
    """Return ``(name, ratio, target, sense)`` for each figure that has a target."""
    return [*training_rows(), *generation_rows()]


def training_rows(rounds=15):
    """Compare one step of 12 x 64 tokens: loss, gradient, clipping to norm 1, AdamW."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ids, targets = np.random.default_rng(0).integers(0, V, (2, B, T))
    peer, model = EncoderDecoder(), spt.DecoderLM(CONFIG)
    peer.load(model)
    losses = {
        "peer": torch_step(peer, ids, targets),
        "torch": torch_step(model, ids, targets, fused=True),
        "numpy": numpy_step(model, ids, targets),
    }
    first = [step() for step in losses.values()]
    np.testing.assert_allclose(first, first[0], rtol=1e-4)
    times = interleave(losses | {"products": bare_products()}, rounds)
    encoder = "torch.nn.TransformerEncoder, causal mask"
    return [
        (f"step of pt.DecoderLM / {encoder}", ratio(times, "torch", "peer"), 0.92, "at most"),
        (
            "step of pt.DecoderLM / its bare matrix products",
            ratio(times, "torch", "products"),
            1.40,
            "at most",
        ),
        (
            f"step of np.decoder_lm_with_vjp / {encoder}",
            ratio(times, "numpy", "peer"),
            1.05,
            "at most",
        ),
    ]


def generation_rows(rounds=3):
    """Compare 255 greedy tokens at context 256 with and without the cache."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = spt.DecoderLM(LONG)
    for p in model.parameters():  # at the initial size a model repeats one token
        p.data *= 5
    params = {name: p.numpy() for name, p in model.state_dict().items()}
    found = []
    for backend, generator, start, target in (
        ("pt", lambda **o: spt.generate(model, **o), torch.zeros(1, 1, dtype=torch.long), 6),
        ("np", lambda **o: snp.generate((params, LONG), **o), np.zeros((1, 1), int), 13),
    ):
        options = {"ids": start, "max_new_tokens": 255, "temperature": 0}
        tokens = [np.asarray(generator(cache=cache, **options)) for cache in (True, False)]
        np.testing.assert_array_equal(*tokens)
        times = interleave(
            {
                cache: lambda c=cache, g=generator, o=options: g(cache=c, **o)
                for cache in (1, 0)
            },
            rounds,
            warm=0,
        )
        name = f"{backend}.generate without cache / with"
        found.append((name, ratio(times, 0, 1), target, "at least"))
    readers = {"pt": spt.CachedDecoder(model, 1), "np": snp.CachedDecoder(params, LONG, 1)}
    for backend, reader in readers.items():
        name = f"{backend}.generate, cost of token 250 / token 10"
        found.append((name, late_to_early(reader, backend), 1.5, "at most"))
    return found


class EncoderDecoder(nn.Module):
    """The decoder as one builds it from torch.nn alone."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(V, 128), nn.Embedding(T, 128)
        layer = nn.TransformerEncoderLayer(
            128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True, bias=False
        )
        self.encoder = nn.TransformerEncoder(
            layer, 4, norm=nn.LayerNorm(128, bias=False), enable_nested_tensor=False
        )
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(T))

    def load(self, model):
        """Take the parameters of our model, whose shifts of LayerNorm are still 0."""
        state = model.state_dict()
        self.embedding.weight.data = state["embedding.weight"].clone()
        self.positions.weight.data = state["positions.weight"].clone()
        self.encoder.load_state_dict({k: state[k].clone() for k in self.encoder.state_dict()})

    def forward(self, ids):
        """Return the logits."""
        x = self.embedding(ids) + self.positions.weight
        return F.linear(self.encoder(x, mask=self.mask, is_causal=True), self.embedding.weight)


def torch_step(model, ids, targets, *, fused=None):
    """Return a function that takes a step and returns the loss."""
    ids, targets = torch.tensor(ids), torch.tensor(targets).flatten()
    params = list(model.parameters())
    optimizer = torch.optim.AdamW(params, lr=1e-3, fused=fused)

    def step():
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0, foreach=fused)
        optimizer.step()
        return loss.item()

    return step


def numpy_step(model, ids, targets):
    """Return the same for the NumPy model."""
    params = {name: p.numpy().copy() for name, p in model.state_dict().items()}
    state, one = {}, np.float32(1)

    def step():
        nonlocal params, state
        logits, vjp = snp.decoder_lm_with_vjp(ids, params, CONFIG)
        loss = snp.cross_entropy(logits, targets)
        grads = vjp(snp.cross_entropy_backward(one, logits, targets))
        grads, _ = snp.clip_grad_norm(grads, max_norm=1.0)
        params, state = snp.adamw_step(params, grads, state, lr=1e-3)
        return float(loss)

    return step


def bare_products():
    """Return a function that multiplies the matrices of one step and does nothing else."""
    n, D, K, heads = B * T, 128, 32, B * 4
    maps = [(D, 3 * D), (D, D), (D, 4 * D), (4 * D, D)] * 4 + [(D, V)]
    linear = [
        (torch.randn(n, i), torch.randn(i, o), torch.randn(n, o)) for i, o in maps
    ]  # input, weight, gradient of the output
    q, p = torch.randn(heads, T, K), torch.randn(heads, T, T)

    def step():
        for x, weight, dy in linear:
            torch.mm(x, weight)
            torch.mm(dy, weight.T)
            torch.mm(x.T, dy)
        for _ in range(4):
            for _ in range(2):  # scores, and the gradient of the weights
                torch.bmm(q, q.transpose(1, 2))
            for _ in range(4):  # output, and the gradients of values, queries and keys
                torch.bmm(p, q)

    return step


def late_to_early(reader, backend, rounds=25):
    """Return the cost of tokens near 250 over that of tokens near 10."""
    token = np.zeros((1, 1), int) if backend == "np" else torch.zeros(1, 1, dtype=torch.long)
    cost = np.empty((rounds, 255))
    for row in cost:
        reader.restart()
        for t in range(255):
            before = time.process_time()
            reader.read(token).argmax(-1)
            row[t] = time.process_time() - before
    late, early = np.median(cost[:, 245:255], axis=1), np.median(cost[:, 5:15], axis=1)
    return float(np.median(late / early))


if __name__ == "__main__":
    for name, value, target, sense in rows():
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
