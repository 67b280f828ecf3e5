"""Right answers to the assignment ``decoder``, in styles that have little in common."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def torch_layers_model(vocab_size, context, d, n_layer, n_head):
    """Build the model of PyTorch's own layers and a mask of booleans."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.E = nn.Parameter(torch.empty(vocab_size, d))
            self.P = nn.Parameter(torch.empty(context, d))
            for table in (self.E, self.P):
                nn.init.normal_(table, std=0.02)
            self.layers = nn.ModuleList()
            for _ in range(n_layer):
                self.layers.append(
                    nn.TransformerEncoderLayer(
                        d,
                        n_head,
                        dim_feedforward=4 * d,
                        dropout=0.0,
                        activation="gelu",
                        batch_first=True,
                        norm_first=True,
                    )
                )
            self.norm = nn.LayerNorm(d)
            self.b = nn.Parameter(torch.zeros(vocab_size))

        def forward(self, ids):
            n = ids.size(1)
            forbidden = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
            x = F.embedding(ids, self.E) + F.embedding(torch.arange(n), self.P)
            for layer in self.layers:
                x = layer(x, src_mask=forbidden)
            return F.linear(self.norm(x), self.E, self.b)

    return Model()


def written_layers_model(vocab_size, context, d, n_layer, n_head):
    """Write the layers out as functions of their parameters."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.in_proj_weight = nn.Parameter(0.02 * torch.randn(3 * d, d))
            self.in_proj_bias = nn.Parameter(torch.zeros(3 * d))
            self.out_proj = nn.Linear(d, d)

        def forward(self, x):
            B, n, _ = x.shape
            q, k, v = (
                part.reshape(B, n, n_head, d // n_head).transpose(1, 2)
                for part in (x @ self.in_proj_weight.T + self.in_proj_bias).split(d, dim=-1)
            )
            scores = q @ k.transpose(-1, -2) / math.sqrt(d // n_head)
            scores = scores + torch.full((n, n), -math.inf, dtype=x.dtype).triu(1)
            return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, n, d))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn = Attention()
            self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

        def forward(self, x):
            x = x + self.self_attn(self.norm1(x))
            return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*[Layer() for _ in range(n_layer)])
            self.norm = nn.LayerNorm(d)
            self.register_parameter("E", nn.Parameter(torch.randn(vocab_size, d) / 50))
            self.register_parameter("P", nn.Parameter(torch.randn(context, d) / 50))
            self.register_parameter("b", nn.Parameter(torch.zeros(vocab_size)))

        def forward(self, ids):
            one_hot = F.one_hot(ids, vocab_size).to(self.E.dtype)
            x = one_hot @ self.E + self.P[: ids.shape[-1]][None]
            return torch.einsum("btd,vd->btv", self.norm(self.layers(x)), self.E) + self.b

    return Model()


def float_mask_model(vocab_size, context, d, n_layer, n_head):
    """Use the library's layers with an additive mask that is made once."""
    from seqlib.pt import TransformerLayer

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.E = nn.Parameter(torch.randn(vocab_size, d).mul(0.02))
            self.P = nn.Parameter(torch.randn(context, d).mul(0.02))
            self.layers = nn.ModuleList(
                [TransformerLayer(d, n_head, 4 * d) for i in range(n_layer)]
            )
            self.norm = nn.LayerNorm(d)
            self.b = nn.Parameter(torch.zeros(vocab_size))
            mask = torch.full((context, context), float("-inf")).triu(1)
            self.register_buffer("mask", mask, persistent=False)

        def forward(self, ids):
            n = ids.shape[1]
            x = self.E[ids] + self.P[:n]
            for i in range(n_layer):
                x = self.layers[i](x, mask=self.mask[:n, :n])
            return self.norm(x).matmul(self.E.t()).add(self.b)

    return Model()


def loop_loss(logits, ids, is_padding):
    """Add up one pair after the other."""
    total, count = 0.0, 0
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1] - 1):
            if not is_padding[b, t + 1]:
                row = logits[b, t]
                total = total + torch.logsumexp(row, dim=0) - row[ids[b, t + 1]]
                count += 1
    return total / count if count else torch.tensor(0.0)


def selected_loss(logits, ids, is_padding):
    """Pick the pairs that count with a mask."""
    counted = ~is_padding[:, 1:]
    if not counted.any():
        return logits.sum() * 0
    return F.cross_entropy(logits[:, :-1][counted], ids[:, 1:][counted])


def one_hot_loss(logits, ids, is_padding):
    """Multiply log-probabilities with one-hot targets."""
    V, weight = logits.shape[-1], (~is_padding[:, 1:]).to(logits.dtype)
    wanted = F.one_hot(ids[:, 1:], V).to(logits.dtype)
    log_p = torch.log_softmax(logits, -1)[:, : ids.shape[1] - 1]
    nats = -torch.einsum("btv,btv,bt->", log_p, wanted, weight)
    return nats / torch.maximum(weight.sum(), torch.ones_like(nats))


def loop_distribution(logits, temperature, top_k, top_p, allowed):
    """Fill one row after the other, from the best token on."""
    result = np.zeros(logits.shape, dtype=logits.dtype)
    for z, p in zip(logits, result, strict=True):
        ranked = sorted((i for i in range(len(z)) if allowed[i]), key=lambda i: (-z[i], i))
        if temperature == 0:
            p[ranked[0]] = 1
            continue
        ranked = ranked[:top_k]
        best = float(z[ranked[0]])
        weights = [math.exp((float(z[i]) - best) / temperature) for i in ranked]
        whole, reached = sum(weights), 0.0
        for n, w in enumerate(weights):
            reached += w / whole
            if top_p is not None and reached >= top_p:
                ranked, weights = ranked[: n + 1], weights[: n + 1]
                break
        for i, w in zip(ranked, weights, strict=True):
            p[i] = w / sum(weights)
    return result


def masked_distribution(logits, temperature, top_k, top_p, allowed):
    """Keep ids in their places and ask for the rank of each."""
    z = np.where(allowed[None, :], logits, -np.inf).astype(np.float64)
    V = z.shape[1]
    # How many tokens stand before token v: better ones, and equal ones with a lower id.
    better = (z[:, None, :] > z[:, :, None]).astype(bool)
    equal = (z[:, None, :] == z[:, :, None]) & (np.arange(V) < np.arange(V)[:, None])
    before = better | equal  # (B, v, u): u stands before v
    rank = before.sum(axis=-1)
    if temperature == 0:
        return (rank == 0).astype(float)
    p = np.exp((z - z.max(axis=1, keepdims=True)) / temperature)
    p = p * (rank < (V if top_k is None else top_k))
    p = p / p.sum(axis=1, keepdims=True)
    if top_p is not None:
        p = p * ((before * p[:, None, :]).sum(axis=-1) < top_p)
    return p / p.sum(axis=1, keepdims=True)


def torch_distribution(logits, temperature, top_k, top_p, allowed):
    z = torch.from_numpy(logits).masked_fill(~torch.from_numpy(allowed), -torch.inf)
    ranked, order = z.sort(dim=-1, descending=True, stable=True)
    if temperature == 0:
        return F.one_hot(order[:, 0], z.shape[1]).double()
    if top_k is not None:
        ranked[:, top_k:] = -torch.inf
    p = (ranked / temperature).softmax(-1)
    if top_p is not None:
        p = p.where(p.cumsum(-1) - p < top_p, 0.0)
    return torch.zeros_like(p).scatter(1, order, p / p.sum(-1, keepdim=True))


def list_generate(model, ids, max_new_tokens, context, end, rng):
    """Keep one list per sequence."""
    rows = [list(map(int, row)) for row in ids]
    ended = [False] * len(rows)
    for _ in range(max_new_tokens):
        logits = model(np.array([row[-context:] for row in rows]))
        for b, row in enumerate(rows):
            token = end
            if not ended[b]:
                z = np.asarray(logits[b][-1])
                p = np.exp(z - np.logaddexp.reduce(z))
                token = int(rng.choice(len(p), p=p / p.sum()))
            ended[b] = ended[b] or token == end
            row.append(token)
    return np.array(rows)


def growing_generate(model, ids, max_new_tokens, context, end, rng):
    """Append columns, and stop asking the model when all sequences have ended."""
    alive, made = np.ones(len(ids), bool), np.copy(ids)
    while made.shape[1] < ids.shape[1] + max_new_tokens:
        column = np.repeat(end, len(ids))
        if alive.any():
            z = model(made[:, -context:])[:, -1, :]
            e = np.exp(z - z.max(1, keepdims=True))
            p = e / e.sum(1, keepdims=True)
            column[alive] = [rng.choice(p.shape[1], p=row) for row in p[alive]]
            alive &= column != end
        made = np.column_stack([made, column])
    return made


def torch_generate(model, ids, max_new_tokens, context, end, rng):
    """Let PyTorch hold the tokens."""
    tokens = torch.from_numpy(ids)
    ended = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(max_new_tokens):
        start = max(tokens.shape[1] - context, 0)
        logits = torch.from_numpy(model(tokens[:, start:].numpy()))
        p = logits[:, -1].double().softmax(dim=-1).numpy()
        new = torch.tensor(
            [end if ended[b] else rng.choice(p.shape[1], p=p[b]) for b in range(len(p))]
        )
        ended |= new == end
        tokens = torch.cat((tokens, new[:, None]), dim=1)
    return tokens


def fused_read(ids, cache, E, P, layers):
    """Attend with PyTorch's function, under a mask of booleans."""
    n = ids.shape[1]
    s = cache[0][0].shape[1] if cache else 0
    allowed = torch.tril(torch.ones(s + n, s + n, dtype=torch.bool))[s:]
    x, kept = F.embedding(ids, E) + P[torch.arange(s, s + n)], []
    for number, (W_q, W_k, W_v) in enumerate(layers):
        pair = (x @ W_k, x @ W_v)
        if cache:
            pair = tuple(
                torch.cat(both, dim=-2) for both in zip(cache[number], pair, strict=True)
            )
        kept.append(pair)
        x = x + F.scaled_dot_product_attention(x @ W_q, *pair, attn_mask=allowed)
    return F.linear(x, E), kept


def one_by_one_read(ids, cache, E, P, layers):
    """Read one token at a time, so that no mask is needed."""
    logits = []
    for t in range(ids.shape[1]):
        s = cache[0][0].shape[1] if cache is not None else 0
        x, grown = E[ids[:, t : t + 1]] + P[s], []
        for i, (W_q, W_k, W_v) in enumerate(layers):
            past = ([], []) if cache is None else ([cache[i][0]], [cache[i][1]])
            K, V = torch.cat([*past[0], x @ W_k], 1), torch.cat([*past[1], x @ W_v], 1)
            grown.append([K, V])
            a = torch.softmax(x @ W_q @ K.mT * E.shape[1] ** -0.5, dim=-1)
            x = x + a @ V
        cache = grown
        logits.append(x @ E.T)
    return torch.cat(logits, dim=1), cache


def einsum_read(ids, cache, E, P, layers):
    """Fill new tensors in place, and write the products as sums over letters."""
    B, n = ids.shape
    s, d = (0 if cache is None else cache[0][0].shape[1]), E.shape[1]
    x, made = E[ids] + P[s : s + n], []
    for i, (W_q, W_k, W_v) in enumerate(layers):
        K, V = (torch.empty(B, s + n, d, dtype=x.dtype) for _ in range(2))
        if s:
            K[:, :s], V[:, :s] = cache[i]
        K[:, s:] = torch.einsum("bnd,de->bne", x, W_k)
        V[:, s:] = torch.einsum("bnd,de->bne", x, W_v)
        scores = torch.einsum("bnd,de,bse->bns", x, W_q, K) / math.sqrt(d)
        for j in range(n):
            scores[:, j, s + j + 1 :] = -torch.inf
        x = x + torch.einsum("bns,bse->bne", torch.softmax(scores, -1), V)
        made.append((K, V))
    return torch.einsum("bnd,vd->bnv", x, E), made


def own_model_training(windows, vocab_size):
    """Train a model of PyTorch's layers, with Adam and a learning rate that falls."""
    torch.manual_seed(1)
    data, d = torch.tensor(windows), 48

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(vocab_size, d), nn.Embedding(64, d)
            layer = nn.TransformerEncoderLayer(
                d, 4, 2 * d, dropout=0.0, batch_first=True, norm_first=True
            )
            self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(d, vocab_size)

        def forward(self, ids):
            n = ids.shape[1]
            mask = torch.full((n, n), -torch.inf).triu(1)
            x = self.token(ids) + self.place(torch.arange(n))
            return self.head(self.body(x, mask=mask))

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, batch in enumerate(data):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - step / len(data))
        loss = nn.CrossEntropyLoss()(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def library_model_training(windows, vocab_size):
    """Train the library's model with dropout and clipping, and return a function."""
    from seqlib.pt import DecoderConfig, DecoderLM

    torch.manual_seed(2)
    windows = torch.from_numpy(windows)
    config = DecoderConfig(
        vocab_size, 40, dim=48, n_layer=2, n_head=4, norm_type="rms", dropout=0.01
    )
    model = DecoderLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for batch in windows:
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, vocab_size), batch[:, 1:].reshape(-1))
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()

    def predict(ids):
        with torch.no_grad():
            return model(ids).log_softmax(dim=-1)

    return predict


def recurrent_training(windows, vocab_size):
    """Train an LSTM: the text asks for a model of the words, not for attention."""
    torch.manual_seed(3)
    windows = torch.as_tensor(windows)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocab_size, 96)
            self.lstm = nn.LSTM(96, 192, batch_first=True)
            self.out = nn.Linear(192, vocab_size)

        def forward(self, ids):
            return self.out(self.lstm(self.embed(ids))[0])

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    for step, batch in enumerate(windows):
        optimizer.param_groups[0]["lr"] = 6e-3 * (1 - 0.9 * step / len(windows))
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


STYLES = {
    "LanguageModel": [torch_layers_model, written_layers_model, float_mask_model],
    "next_token_loss": [loop_loss, selected_loss, one_hot_loss],
    "next_token_distribution": [loop_distribution, masked_distribution, torch_distribution],
    "generate": [list_generate, growing_generate, torch_generate],
    "read_with_cache": [fused_read, one_by_one_read, einsum_read],
    "train_model": [own_model_training, library_model_training, recurrent_training],
}
