"""Right answers to the assignment ``rnn``, in styles that have little in common."""

import itertools
import math

import numpy as np
import torch


def loops_losses(Z, y):
    losses = np.zeros(y.shape, dtype=Z.dtype)
    for at in np.ndindex(y.shape):
        row = [float(z) for z in Z[at]]
        top = max(row)
        losses[at] = top + math.log(sum(math.exp(z - top) for z in row)) - row[y[at]]
    return losses


def difference_losses(Z, y):
    """Add up the exponentials of the differences to the target's logit, largest first."""
    chosen = np.take_along_axis(Z, y[..., None], axis=-1)
    gap = Z - chosen
    top = gap.max(-1)
    return top + np.log(np.exp(gap - top[..., None]).sum(-1))


def reduced_losses(Z, y):
    flat, targets = Z.reshape(-1, Z.shape[-1]), y.ravel()
    picked = flat[np.arange(len(flat)), targets]
    return (np.logaddexp.reduce(flat, axis=1) - picked).reshape(y.shape)


def one_hot_losses(Z, y):
    chosen = np.eye(Z.shape[-1], dtype=Z.dtype)[y]
    shifted = Z - np.max(Z, -1, keepdims=True)
    return np.log(np.exp(shifted).sum(-1)) - np.einsum("...v,...v->...", shifted, chosen)


def torch_losses(Z, y):
    Z, y = torch.from_numpy(Z), torch.from_numpy(y)
    return torch.logsumexp(Z, dim=-1) - Z.gather(-1, y[..., None])[..., 0]


def loops_masked(Z, y, ignored=-100):
    everything, means = [], []
    for logits, targets in zip(Z, y, strict=True):
        own = [
            np.logaddexp.reduce(z) - z[target]
            for z, target in zip(logits, targets, strict=True)
            if target != ignored
        ]
        everything += own
        if own:
            means.append(sum(own) / len(own))
    if not everything:
        return 0, 0
    return sum(everything) / len(everything), sum(means) / len(means)


def where_masked(Z, y, ignored=-100):
    """Make everything at ignored positions harmless first, and weigh it with 0."""
    counted = y != ignored
    Z = np.where(counted[..., None], Z, 0)
    shifted = Z - Z.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_p, np.where(counted, y, 0)[..., None], -1)[..., 0]
    losses = losses * counted
    n = counted.sum(1)
    own = losses.sum(1) / np.maximum(n, 1)
    return np.array([losses.sum() / max(n.sum(), 1), own.sum() / max((n > 0).sum(), 1)])


def torch_masked(Z, y, ignored=-100):
    Z, y = torch.from_numpy(Z), torch.from_numpy(y)
    rows, steps = torch.nonzero(y != ignored, as_tuple=True)
    if len(rows) == 0:
        return [0.0, 0.0]
    picked = Z[rows, steps]
    losses = picked.logsumexp(-1) - picked[torch.arange(len(rows)), y[rows, steps]]
    means = [losses[rows == b].mean() for b in rows.unique()]
    return losses.mean(), torch.stack(means).mean()


def average_perplexity(losses, counts):
    losses = np.where(counts == 0, 0, losses)
    nats = np.average(losses, weights=counts)
    return np.exp(nats), np.log2(np.e) * nats


def loops_perplexity(losses, counts):
    total = tokens = 0
    for loss, count in zip(losses, counts, strict=True):
        if count:
            total += float(loss) * int(count)
            tokens += int(count)
    perplexity = math.exp(total / tokens)
    return perplexity, math.log2(perplexity)


def dot_perplexity(losses, counts):
    nats = np.nan_to_num(losses) @ counts / counts.sum()
    bits = nats / math.log(2)
    return [2**bits, bits]


def loops_batches(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    X, Y = np.zeros((2, K, B, T), dtype=int)
    for k, b, t in itertools.product(range(K), range(B), range(T)):
        at = (b * K + k) * T + t
        X[k, b, t], Y[k, b, t] = ids[at], ids[at + 1]
    return X, Y


def slices_batches(ids, B, T):
    steps = (len(ids) - 1) // (B * T) * T
    parts = [ids[b * steps : (b + 1) * steps + 1] for b in range(B)]
    starts = range(0, steps, T)
    X = [[part[s : s + T].tolist() for part in parts] for s in starts]
    Y = [[part[s + 1 : s + T + 1].tolist() for part in parts] for s in starts]
    return X, Y


def strides_batches(ids, B, T):
    K = (len(ids) - 1) // (B * T)
    pairs = np.lib.stride_tricks.sliding_window_view(ids, T + 1)[::T][: B * K]
    windows = pairs.reshape(B, K, T + 1).transpose(1, 0, 2)
    return windows[..., :-1], windows[..., 1:]


def joined_step(h, x, W, b):
    return np.tanh(np.concatenate((h, x), axis=-1) @ W.T + b)


def blocks_step(h, x, W, b):
    m = h.shape[-1]
    a = np.einsum("ij,...j->...i", W[:, :m], h) + np.einsum("ij,...j->...i", W[:, m:], x)
    return np.tanh(b + a)


def loops_step(h, x, W, b):
    m = h.shape[-1]
    new = np.empty_like(h)
    for at in np.ndindex(h.shape[:-1]):
        joined = [*h[at], *x[at]]
        for i in range(m):
            a = b[i] + sum(w * v for w, v in zip(W[i], joined, strict=True))
            new[(*at, i)] = 1 - 2 / (math.exp(2 * a) + 1)
    return new


def masked_forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
    B, T, _ = x.shape
    valid = np.ones((B, T), bool) if lengths is None else np.arange(T) < lengths[:, None]
    projected = np.einsum("btd,md->btm", x, W_xh) + b_h  # all steps at once
    h, states = h_0, []
    for t in range(T):
        new = np.tanh(projected[:, t] + h @ W_hh.T)
        h = np.where(valid[:, t, None], new, h)
        states.append(h)
    return np.stack(states, axis=1) * valid[..., None], h


def single_forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
    """Run each sequence alone, in the columns of the notes, as long as it is."""
    B, T, _ = x.shape
    H = np.zeros((B, T, len(b_h)), dtype=x.dtype)
    last = np.array(h_0)
    for n in range(B):
        for t in range(T if lengths is None else lengths[n]):
            last[n] = np.tanh(W_hh @ last[n] + W_xh @ x[n, t] + b_h)
            H[n, t] = last[n]
    return H, last


def gathered_forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
    """Run over everything, padding included; pick the last valid states afterwards."""
    B, T, _ = x.shape
    lengths = [T] * B if lengths is None else [int(length) for length in lengths]
    W = np.hstack([W_hh, W_xh])
    states = [h_0]
    for t in range(T):
        states.append(np.tanh(np.hstack([states[-1], x[:, t]]) @ W.T + b_h))
    all_states = np.stack(states, axis=1)  # (B, T + 1, m), h_0 first
    last = np.stack([all_states[n, length] for n, length in enumerate(lengths)])
    H = all_states[:, 1:].copy()
    for n, length in enumerate(lengths):
        H[n, length:] = 0
    return H, last


def torch_forward(x, h_0, W_hh, W_xh, b_h, lengths=None):
    x, h, W_hh, W_xh, b_h = map(torch.from_numpy, (x, h_0, W_hh, W_xh, b_h))
    outputs = []
    for t in range(x.shape[1]):
        new = torch.tanh(h @ W_hh.T + x[:, t] @ W_xh.T + b_h)
        valid = torch.ones(len(h), 1) if lengths is None else torch.tensor(t < lengths)[:, None]
        h = torch.where(valid.bool(), new, h)
        outputs.append(torch.where(valid.bool(), new, 0.0))
    return torch.stack(outputs, dim=1), h


def slices_reverse(x, lengths):
    y = x.copy()
    for n, length in enumerate(lengths):
        y[n, :length] = np.flip(x[n, :length], axis=0)
    return y


def lists_reverse(x, lengths):
    result = []
    for sequence, length in zip(x.tolist(), lengths.tolist(), strict=True):
        result.append([*reversed(sequence[:length]), *sequence[length:]])
    return result


def places_reverse(x, lengths):
    B, T, _ = x.shape
    t = np.arange(T)[None, :].repeat(B, axis=0)
    mirrored = lengths[:, None] - 1 - t
    t = np.where(mirrored >= 0, mirrored, t)
    return x[np.arange(B)[:, None], t]


STYLES = {
    "token_losses": [
        loops_losses,
        difference_losses,
        reduced_losses,
        one_hot_losses,
        torch_losses,
    ],
    "masked_cross_entropy": [loops_masked, where_masked, torch_masked],
    "corpus_perplexity": [average_perplexity, loops_perplexity, dot_perplexity],
    "next_token_batches": [loops_batches, slices_batches, strides_batches],
    "rnn_step": [joined_step, blocks_step, loops_step],
    "rnn_forward": [masked_forward, single_forward, gathered_forward, torch_forward],
    "reverse_sequences": [slices_reverse, lists_reverse, places_reverse],
}
