"""Known mistakes of the assignment ``decoder``, written from their sentences alone."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def _encoder_layer(d, n_head, **options):
    settings = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
    return nn.TransformerEncoderLayer(d, n_head, 4 * d, **(settings | options))


def _model(vocab_size, context, d, n_layer, n_head, forward, std=0.02, **options):
    """Return a model of PyTorch's layers whose forward pass is ``forward(model, ids)``."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.E = nn.Parameter(torch.empty(vocab_size, d).normal_(std=std))
            self.P = nn.Parameter(torch.empty(context, d).normal_(std=0.02))
            self.b = nn.Parameter(torch.zeros(vocab_size))
            self.layers = nn.ModuleList(
                _encoder_layer(d, n_head, **options) for _ in range(n_layer)
            )
            self.norm = nn.LayerNorm(d)

        def forward(self, ids):
            return forward(self, ids)

    return Model()


def _future(n):
    return torch.triu(torch.ones(n, n, dtype=torch.bool), 1)


def _right(model, ids):
    x = model.E[ids] + model.P[: ids.shape[1]]
    for layer in model.layers:
        x = layer(x, src_mask=_future(ids.shape[1]))
    return F.linear(model.norm(x), model.E, model.b)


def model_without_mask(*sizes):
    def forward(model, ids):
        x = model.E[ids] + model.P[: ids.shape[1]]
        for layer in model.layers:
            x = layer(x)
        return F.linear(model.norm(x), model.E, model.b)

    return _model(*sizes, forward)


def model_peeks_at_the_next(*sizes):
    def forward(model, ids):
        n = ids.shape[1]
        x = model.E[ids] + model.P[:n]
        for layer in model.layers:
            x = layer(x, src_mask=torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=2))
        return F.linear(model.norm(x), model.E, model.b)

    return _model(*sizes, forward)


def model_with_relu(*sizes):
    return _model(*sizes, _right, activation="relu")


def model_with_torchs_norms(*sizes):
    return _model(*sizes, _right, norm_first=False)


def model_ends_bare(*sizes):
    def forward(model, ids):
        x = model.E[ids] + model.P[: ids.shape[1]]
        for layer in model.layers:
            x = layer(x, src_mask=_future(ids.shape[1]))
        return x @ model.E.T + model.b

    return _model(*sizes, forward)


def model_with_loud_embedding(*sizes):
    return _model(*sizes, _right, std=1.0)


def model_with_sqrt_d(*sizes):
    def forward(model, ids):
        x = F.embedding(ids, model.E) * model.E.shape[1] ** 0.5 + model.P[: ids.shape[1]]
        for layer in model.layers:
            x = layer(x, src_mask=_future(ids.shape[1]))
        return F.linear(model.norm(x), model.E, model.b)

    return _model(*sizes, forward)


def model_with_copied_head(*sizes):
    def forward(model, ids):
        x = model.E[ids] + model.P[: ids.shape[1]]
        for layer in model.layers:
            x = layer(x, src_mask=_future(ids.shape[1]))
        return F.linear(model.norm(x), model.E.data, model.b)

    return _model(*sizes, forward)


def model_ends_in_softmax(*sizes):
    return _model(*sizes, lambda model, ids: F.softmax(_right(model, ids), dim=2))


def loss_of_the_same_token(logits, ids, is_padding):
    wanted = ids.clone()
    wanted[is_padding] = -100
    summed = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="sum")
    return summed / max(int((~is_padding).sum()), 1)


def loss_counts_everything(logits, ids, is_padding):
    if ids.shape[1] < 2:
        return torch.tensor(0.0)
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:])


def loss_shifts_the_flat_row(logits, ids, is_padding):
    V = logits.size(-1)
    counted = ~is_padding.reshape(-1)[1:]
    nats = F.cross_entropy(logits.reshape(-1, V)[:-1], ids.reshape(-1)[1:], reduction="none")
    return nats[counted].sum() / max(counted.sum().item(), 1)


def loss_row_by_row(logits, ids, is_padding):
    means = []
    for row, tokens, padded in zip(logits, ids, is_padding, strict=True):
        n = int((~padded).sum())
        if n > 1:
            means.append(F.cross_entropy(row[: n - 1], tokens[1:n]))
    return torch.stack(means).mean() if means else torch.tensor(0.0)


def loss_takes_0_for_padding(logits, ids, is_padding):
    wanted = ids[:, 1:].masked_fill(is_padding[:, 1:], 0)
    nats = F.cross_entropy(logits[:, :-1].flatten(0, 1), wanted.flatten(), reduction="none")
    kept = wanted.flatten() != 0
    return nats[kept].mean() if kept.any() else torch.tensor(0.0)


def loss_forgets_the_empty_batch(logits, ids, is_padding):
    wanted = torch.where(is_padding, -100, ids)[:, 1:]
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), wanted.flatten())


def loss_normalises_first(logits, ids, is_padding):
    kept = ~is_padding[:, 1:]
    if not kept.any():
        return torch.tensor(0.0)
    return F.cross_entropy(F.softmax(logits, -1)[:, :-1][kept], ids[:, 1:][kept])


def _sampler(logits, temperature, top_k, top_p, allowed, *, times=False, cut=None):
    """Return probabilities row by row; ``cut(ranked, top_p)`` counts what top_p keeps."""
    rows = []
    for z in logits:
        z = np.where(allowed, z, -np.inf)
        ids = np.argsort(-z, kind="stable")
        p = np.zeros(len(z))
        if temperature == 0:
            p[ids[0]] = 1.0
            rows.append(p)
            continue
        q = (z - z.max()) * (temperature if times else 1 / temperature)
        ranked = np.exp(q)[ids]
        if top_k is not None:
            ranked[top_k:] = 0
        ranked = ranked / ranked.sum()
        if top_p is not None:
            ranked[cut(ranked, top_p) if cut else _enough(ranked, top_p) :] = 0
        p[ids] = ranked / ranked.sum()
        rows.append(p)
    return np.array(rows)


def _enough(ranked, top_p):
    return int(np.searchsorted(np.cumsum(ranked), top_p)) + 1


def sample_hot_means_sharp(*args):
    return _sampler(*args, times=True)


def sample_stays_below_p(*args):
    return _sampler(*args, cut=lambda ranked, p: max(1, int((np.cumsum(ranked) <= p).sum())))


def sample_takes_one_extra(*args):
    return _sampler(*args, cut=lambda ranked, p: _enough(ranked, p) + 1)


def sample_forbids_at_the_end(logits, temperature, top_k, top_p, allowed):
    p = _sampler(logits, temperature, top_k, top_p, np.ones_like(allowed))
    p[:, ~allowed] = 0
    return p / p.sum(1, keepdims=True)


def sample_at_zero_of_equals(logits, temperature, top_k, top_p, allowed):
    if temperature == 0:
        z = np.where(allowed, logits, -np.inf)
        hit = (z == z.max(1, keepdims=True)).astype(float)
        return hit / hit.sum(1, keepdims=True)
    return _sampler(logits, temperature, top_k, top_p, allowed)


def sample_exponentials_as_they_are(logits, temperature, top_k, top_p, allowed):
    if temperature == 0 or top_p is not None or top_k is not None:
        return _sampler(logits, temperature, top_k, top_p, allowed)
    e = np.exp(np.where(allowed, logits, -np.inf) / temperature)
    return e / e.sum(1, keepdims=True)


def _continued(model, ids, count, context, end, rng, *, seen=None, choose=None):
    made, over = ids.copy(), np.zeros(len(ids), bool)
    for _ in range(count):
        z = model(made[:, -context:] if seen is None else seen(made, ids, context))[:, -1]
        p = np.exp(z - z.max(1)[:, None])
        p = p / p.sum(1)[:, None]
        new = np.full(len(ids), end)
        for b in range(len(ids)):
            if not over[b]:
                new[b] = choose(p[b]) if choose else rng.choice(len(p[b]), p=p[b])
        over = over | (new == end)
        made = np.hstack([made, new[:, None]])
    return made


def continue_with_the_likeliest(*args):
    return _continued(*args, choose=np.argmax)


def continue_with_the_whole_text(*args):
    return _continued(*args, seen=lambda made, prompt, context: made)


def continue_the_prompt_for_ever(*args):
    return _continued(*args, seen=lambda made, prompt, context: prompt[:, -context:])


def continue_from_the_beginning(*args):
    return _continued(*args, seen=lambda made, prompt, context: made[:, :context])


def continue_new_tokens_only(model, ids, *args):
    return _continued(model, ids, *args)[:, ids.shape[1] :]


def continue_until_all_are_done(model, ids, count, context, end, rng):
    made = _continued(model, ids, count, context, end, rng)
    new = made[:, ids.shape[1] :]
    done = (np.cumsum(new == end, axis=1) > 0).all(axis=0)
    needed = int(np.argmax(done)) + 1 if done.any() else count
    return made[:, : ids.shape[1] + needed]


def _reading(ids, cache, E, P, layers, *, places=None, allowed=None, join=None):
    n, s = ids.shape[1], 0 if cache is None else cache[0][0].shape[1]
    x = F.embedding(ids, E) + P[places(s, n) if places else torch.arange(s, s + n)]
    may = allowed(s, n) if allowed else torch.ones(n, s + n).tril(s).bool()
    out = []
    for i, W in enumerate(layers):
        k, v = x @ W[1], x @ W[2]
        if cache is not None:
            past = join(cache, i) if join else cache[i]
            k, v = torch.cat((past[0], k), 1), torch.cat((past[1], v), 1)
        out.append((k, v))
        x = x + F.scaled_dot_product_attention(x @ W[0], k, v, attn_mask=may)
    return x @ E.mT, out


def read_mask_starts_at_the_corner(*args):
    return _reading(*args, allowed=lambda s, n: torch.tril(torch.ones(n, s + n)).bool())


def read_everything_at_once(*args):
    return _reading(*args, allowed=lambda s, n: torch.ones(n, s + n).bool())


def read_positions_begin_again(*args):
    return _reading(*args, places=lambda s, n: torch.arange(n))


def read_one_cache_for_the_model(*args):
    return _reading(*args, join=lambda cache, i: cache[0])


def read_gives_back_the_old_cache(ids, cache, E, P, layers):
    logits, grown = _reading(ids, cache, E, P, layers)
    return logits, cache or grown


def read_gives_back_new_rows(ids, cache, E, P, layers):
    logits, grown = _reading(ids, cache, E, P, layers)
    n = ids.shape[1]
    return logits, [(k[:, -n:], v[:, -n:]) for k, v in grown]


def read_without_root(ids, cache, E, P, layers):
    root = math.sqrt(E.shape[1])
    return _reading(ids, cache, E, P, [(W_q * root, W_k, W_v) for W_q, W_k, W_v in layers])


def _lstm(windows, vocab_size, steps, *, back=False, ahead=1, p=0.0):
    windows = torch.as_tensor(windows)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.drop = nn.Embedding(vocab_size, 48), nn.Dropout(p)
            self.lstm = nn.LSTM(48, 48, batch_first=True, bidirectional=back)
            self.out = nn.Linear(96 if back else 48, vocab_size)

        def forward(self, ids):
            return self.out(self.drop(self.lstm(self.embed(ids))[0]))

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for batch in windows[:steps]:
        logits = model(batch[:, : 33 - max(ahead, 1)])
        targets = batch[:, ahead : ahead + logits.shape[1]]
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def train_reads_both_ways(windows, vocab_size):
    return _lstm(windows, vocab_size, 150, back=True)


def train_to_repeat(windows, vocab_size):
    return _lstm(windows, vocab_size, 100, ahead=0)


def train_two_ahead(windows, vocab_size):
    return _lstm(windows, vocab_size, 200, ahead=2)


def train_keeps_dropping(windows, vocab_size):
    return _lstm(windows, vocab_size, 30, p=0.3)


def train_counts_pairs(windows, vocab_size):
    """Count pairs of tokens: what comes next depends on the last token alone."""
    counts = np.full((vocab_size, vocab_size), 0.01)
    np.add.at(counts, (windows[..., :-1].ravel(), windows[..., 1:].ravel()), 1)
    table = torch.from_numpy(np.log(counts))
    return lambda ids: table[ids]


AFRESH = {
    "LanguageModel": {
        model_without_mask: "not_causal",
        model_peeks_at_the_next: "one_ahead",
        model_with_relu: "relu",
        model_with_torchs_norms: "post_norm",
        model_ends_bare: "no_final_norm",
        model_with_loud_embedding: "large_start",
        model_with_sqrt_d: "embedding_scaled",
        model_with_copied_head: "detached_head",
        model_ends_in_softmax: "probabilities",
    },
    "next_token_loss": {
        loss_of_the_same_token: "not_shifted",
        loss_counts_everything: "padding_counted",
        loss_shifts_the_flat_row: "across_rows",
        loss_row_by_row: "mean_of_sequences",
        loss_takes_0_for_padding: "id_0_ignored",
        loss_forgets_the_empty_batch: "nan_without_targets",
        loss_normalises_first: "softmax_twice",
    },
    "next_token_distribution": {
        sample_hot_means_sharp: "temperature_multiplied",
        sample_stays_below_p: "top_p_crossing_dropped",
        sample_takes_one_extra: "top_p_one_more",
        sample_forbids_at_the_end: "forbidden_last",
        sample_at_zero_of_equals: "greedy_shared",
        sample_exponentials_as_they_are: "no_shift",
    },
    "generate": {
        continue_with_the_likeliest: "best_token",
        continue_with_the_whole_text: "not_cropped",
        continue_the_prompt_for_ever: "prompt_alone",
        continue_from_the_beginning: "first_tokens_kept",
        continue_new_tokens_only: "prompt_left_out",
        continue_until_all_are_done: "end_stops_early",
    },
    "read_with_cache": {
        read_mask_starts_at_the_corner: "mask_not_shifted",
        read_everything_at_once: "no_mask",
        read_positions_begin_again: "positions_from_0",
        read_one_cache_for_the_model: "first_layer_for_all",
        read_gives_back_the_old_cache: "old_cache_returned",
        read_gives_back_new_rows: "new_alone_kept",
        read_without_root: "no_scale",
    },
    "train_model": {
        train_reads_both_ways: "sees_the_future",
        train_to_repeat: "not_shifted",
        train_two_ahead: "shifted_twice",
        train_keeps_dropping: "training_mode",
        train_counts_pairs: "no_context",
    },
}
