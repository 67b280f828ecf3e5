"""Streaming attention beside PyTorch's kernel: ``python -m benchmarks.attention``.

Ratios of process CPU time, one thread, float32, forward and backward: every case runs once per
round, in turn, and the median over rounds counts. The last row is memory, not time.
"""

import tracemalloc

import numpy as np
import torch
import torch.nn.functional as F

import seqlib.np as snp
from benchmarks.timing import interleave, ratio

SHAPE = (4, 8, 512, 64)  # B, N, T, K
LONG = (1, 8, 2048, 64)


def rows():
    """Return ``(name, ratio, target, sense)`` for each figure that has a target."""
    torch.set_num_threads(1)
    found = []
    for causal, target, target_plain in ((False, 1.25, 1.8), (True, 1.0, 2.5)):
        cases = cases_of(causal)
        hold_equal(cases)
        times = interleave(cases, 9)
        kind = "causal" if causal else "full"
        peer = "torch scaled_dot_product_attention + autograd"
        found += [
            (
                f"np.streaming_attention and backward, {kind} / {peer}",
                ratio(times, "streaming", "torch"),
                target,
                "at most",
            ),
            (
                f"np.scaled_dot_product_attention and backward, {kind} / {peer}",
                ratio(times, "plain", "torch"),
                target_plain,
                "at most",
            ),
        ]
    long, short = peak_mebibytes(LONG), peak_mebibytes((1, 8, 1024, 64))
    return [
        *found,
        (
            "MiB of np.streaming_attention and backward, T=2048, outputs included",
            long,
            40,
            "at most",
        ),
        ("growth of that memory from T=1024 to T=2048", long / short, 2.3, "at most"),
    ]


def cases_of(causal):
    """Return the same forward and backward pass in three forms."""
    arrays = draw(SHAPE)
    q, k, v, dy = arrays
    tensors = [torch.from_numpy(a).requires_grad_() for a in arrays[:3]]
    dy_t = torch.from_numpy(dy)
    mask = snp.causal_mask(SHAPE[2]).astype(np.float32) if causal else None

    def streaming():
        y = snp.streaming_attention(q, k, v, causal=causal)
        return y, *snp.streaming_attention_backward(dy, q, k, v, causal=causal)

    def plain():
        y = snp.scaled_dot_product_attention(q, k, v, mask=mask)
        return y, *snp.scaled_dot_product_attention_backward(dy, q, k, v, mask=mask)

    def peer():
        y = F.scaled_dot_product_attention(*tensors, is_causal=causal)
        grads = torch.autograd.grad(y, tensors, dy_t)
        return [t.detach().numpy() for t in (y, *grads)]

    return {"streaming": streaming, "plain": plain, "torch": peer}


def hold_equal(cases):
    """Compare output and gradients of all cases with PyTorch's."""
    expected = cases["torch"]()
    for name in ("streaming", "plain"):
        for ours, theirs in zip(cases[name](), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def peak_mebibytes(shape):
    """Return the most memory that forward and backward hold at one time."""
    q, k, v, dy = draw(shape)
    tracemalloc.start()
    kept = snp.streaming_attention(q, k, v), *snp.streaming_attention_backward(dy, q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return peak / 2**20


def draw(shape):
    """Return queries, keys, values and the gradient of the output."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(4)]


if __name__ == "__main__":
    for name, value, target, sense in rows():
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
