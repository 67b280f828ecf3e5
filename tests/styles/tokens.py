"""Right answers to the assignment ``tokens``, in styles that have little in common."""

import collections
import heapq
import itertools
import math
import re

import numpy as np
import torch

# tokens.count_pairs


def counter_pairs(words, times):
    counts = collections.Counter()
    for word, n in zip(words, times, strict=True):
        counts.update({pair: n * c for pair, c in places_of(word).items()})
    return counts


def places_of(word):
    return collections.Counter(itertools.pairwise(word))


def array_pairs(words, times):
    """Count with np.unique over all places, each with its weight."""
    pairs = [(a, b) for word in words for a, b in itertools.pairwise(word)]
    weights = [n for word, n in zip(words, times, strict=True) for _ in word[1:]]
    if not pairs:
        return {}
    found, where = np.unique(np.array(pairs), axis=0, return_inverse=True)
    totals = np.bincount(where.ravel(), weights=weights)
    return {(int(a), int(b)): int(n) for (a, b), n in zip(found, totals, strict=True)}


def nested_pairs(words, times):
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    for i, word in enumerate(words):
        for j in range(len(word) - 1):
            counts[word[j]][word[j + 1]] += times[i]
    return {(a, b): n for a, row in counts.items() for b, n in row.items()}


# tokens.merge_pair


def stack_merge(ids, pair, new):
    """Compare each token with the last one of the result."""
    merged = []
    for token in ids:
        if merged and (merged[-1], token) == tuple(pair):
            merged[-1] = new
        else:
            merged.append(token)
    return merged


def deleting_merge(ids, pair, new):
    ids, i = list(ids), 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i : i + 2] = [new]
        i += 1
    return ids


def text_merge(ids, pair, new):
    """Let a regular expression find the places: one character for each token."""
    text = "".join(map(chr, ids))
    found = re.escape("".join(map(chr, pair)))
    return [ord(c) for c in re.sub(found, lambda _: chr(new), text, flags=re.DOTALL)]


def array_merge(ids, pair, new):
    ids = np.array(ids, dtype=int)
    here = np.append((ids[:-1] == pair[0]) & (ids[1:] == pair[1]), False)[: len(ids)]
    for i in range(1, len(ids)):
        here[i] &= not here[i - 1]
    second = np.append(False, here[:-1])[: len(ids)]
    return np.where(here, new, ids)[~second]


# tokens.train_bpe


def sorted_train(words, times, n_merges):
    """Sort all pairs by count and ids, and merge with a stack."""
    text = [(list(word.encode("utf-8")), n) for word, n in zip(words, times, strict=True)]
    merges = []
    for new in range(256, 256 + n_merges):
        counts = collections.Counter()
        for word, n in text:
            for pair in itertools.pairwise(word):
                counts[pair] += n
        ranking = sorted((-n, a, b) for (a, b), n in counts.items())
        if not ranking:
            break
        merges.append(ranking[0][1:])
        text = [(stack_merge(word, merges[-1], new), n) for word, n in text]
    return merges


def incremental_train(words, times, n_merges):
    """Correct the counts by what each merged word had before and has after."""
    text = [list(word.encode()) for word in words]
    counts = collections.Counter()
    for word, n in zip(text, times, strict=True):
        for pair in itertools.pairwise(word):
            counts[pair] += n
    merges = []
    while len(merges) < n_merges and any(counts.values()):
        most = max(counts.values())
        best = min(pair for pair, n in counts.items() if n == most)
        for i, n in enumerate(times):
            before, after = text[i], deleting_merge(text[i], best, 256 + len(merges))
            for pair in itertools.pairwise(before):
                counts[pair] -= n
            for pair in itertools.pairwise(after):
                counts[pair] += n
            text[i] = after
        merges.append(best)
    return merges


def string_train(words, times, n_merges):
    """Keep a token as a character, and the merges as rows of an array."""
    text = [word.encode().decode("latin-1") for word in words]
    merges = np.zeros((0, 2), int)
    for k in range(n_merges):
        counts = {}
        for word, n in zip(text, times, strict=True):
            for i in range(len(word) - 1):
                pair = word[i : i + 2]
                counts[pair] = counts.get(pair, 0) + n
        if not counts:
            break
        best = max(sorted(counts), key=counts.get)
        text = [word.replace(best, chr(256 + k)) for word in text]
        merges = np.vstack([merges, [ord(best[0]), ord(best[1])]])
    return list(merges)


# tokens.encode


def lowest_rank_encode(text, merges):
    ranks = {tuple(pair): k for k, pair in enumerate(merges)}
    ids = list(text.encode("utf-8"))
    while True:
        there = [p for p in itertools.pairwise(ids) if p in ranks]
        if not there:
            return ids
        first = min(there, key=ranks.__getitem__)
        ids = stack_merge(ids, first, 256 + ranks[first])


def heap_encode(text, merges):
    """Merge one place at a time, by rank and then by place, in a chain of neighbours."""
    makes = {tuple(pair): 256 + k for k, pair in enumerate(merges)}
    ids = dict(enumerate(text.encode()))
    after = {i: i + 1 for i in ids}
    heap = [(makes.get((ids[i], ids.get(i + 1)), math.inf), i) for i in ids]
    heapq.heapify(heap)
    while heap and heap[0][0] < math.inf:
        new, i = heapq.heappop(heap)
        j = after.get(i)
        if i not in ids or j not in ids or makes.get((ids[i], ids[j])) != new:
            continue
        ids[i], after[i] = new, after[j]
        del ids[j]
        before = [k for k in ids if after[k] == i]
        for k in (i, *before):
            pair = (ids[k], ids.get(after[k]))
            heapq.heappush(heap, (makes.get(pair, math.inf), k))
    return [ids[i] for i in sorted(ids)]


def replacing_encode(text, merges):
    word = text.encode().decode("latin-1")
    for k, (a, b) in enumerate(merges):
        word = word.replace(chr(a) + chr(b), chr(256 + k))
    return np.array([ord(c) for c in word], dtype=np.int64)


# tokens.decode


def expanding_decode(ids, merges):
    """Replace merged tokens by their halves until only bytes are left."""
    ids = list(ids)
    while any(i > 255 for i in ids):
        halves = ([i] if i < 256 else merges[i - 256] for i in ids)
        ids = list(itertools.chain.from_iterable(halves))
    return str(bytes(ids), "utf-8", "replace"), len(ids)


def recursive_decode(ids, merges):
    def piece(i):
        if i < 256:
            return bytes([i])
        return b"".join(piece(half) for half in merges[i - 256])

    data = bytearray()
    for i in ids:
        data += piece(i)
    return data.decode(errors="replace"), len(data)


def array_decode(ids, merges):
    table = {i: np.array([i], np.uint8) for i in range(256)}
    for a, b in merges:
        table[len(table)] = np.concatenate([table[a], table[b]])
    data = np.concatenate([np.zeros(0, np.uint8), *(table[i] for i in ids)])
    return data.tobytes().decode("utf-8", "replace"), data.size


# tokens.embed


def loops_embed(ids, E, pad):
    X = np.zeros((*ids.shape, E.shape[1]), E.dtype)
    for at in np.ndindex(ids.shape):
        if ids[at] != pad:
            X[at] = E[ids[at]]
    return X


def one_hot_embed(ids, E, pad):
    """Take the notes' product with one-hot vectors, whose row of padding is zero."""
    V = np.arange(len(E))
    return ((ids[..., None] == V) & (pad != V)).astype(E.dtype) @ E


def appended_embed(ids, E, pad):
    table = np.concatenate([E, np.zeros((1, E.shape[1]), E.dtype)])
    return table[np.where(ids == pad, -1, ids)]


def torch_embed(ids, E, pad):
    ids, E = torch.from_numpy(np.array(ids)), torch.from_numpy(np.array(E))
    X = E[ids.clamp(min=0)]
    return X * (ids != pad)[..., None]


# tokens.embed_backward


def loops_embed_backward(dX, ids, E, pad):
    dE = np.zeros(E.shape, dX.dtype)
    for at in np.ndindex(ids.shape):
        if ids[at] != pad:
            dE[ids[at]] += dX[at]
    return dE


def one_hot_embed_backward(dX, ids, E, pad):
    chosen = (ids[..., None] == np.arange(len(E))) & (ids != pad)[..., None]
    return np.einsum("nv,nd->vd", chosen.reshape(-1, len(E)), dX.reshape(-1, E.shape[1]))


def masked_embed_backward(dX, ids, E, pad):
    """Add up the gradients of one token after the other."""
    rows = [dX[ids == v].sum(axis=0) * (v != pad) for v in range(len(E))]
    return np.stack(rows)


def bincount_embed_backward(dX, ids, E, pad):
    kept = np.flatnonzero(ids.ravel() != pad)
    rows, columns = ids.ravel()[kept], dX.reshape(-1, E.shape[1])[kept].T
    return np.stack([np.bincount(rows, c, minlength=len(E)) for c in columns], axis=1)


def autograd_embed_backward(dX, ids, E, pad):
    table = torch.zeros(E.shape, dtype=torch.from_numpy(dX).dtype, requires_grad=True)
    kept = torch.from_numpy(np.array(ids != pad))
    rows = torch.from_numpy(np.where(ids == pad, 0, ids))
    (table[rows] * kept[..., None] * torch.from_numpy(dX)).sum().backward()
    return table.grad


# tokens.sinusoidal_positions


def loops_positions(T, d, offsets, base):
    P = np.zeros((len(offsets), T, d))
    for b, t, j in np.ndindex(P.shape):
        angle = (int(offsets[b]) + t) / base ** (2 * (j // 2) / d)
        P[b, t, j] = math.cos(angle) if j % 2 else math.sin(angle)
    return P


def exponential_positions(T, d, offsets, base):
    """Take the frequencies from an exponential, and the pairs from a stack."""
    w = np.exp(np.arange((d + 1) // 2) * (-2 * math.log(base) / d))
    angle = np.add.outer(offsets, np.arange(T))[..., None] * w
    pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return pairs.reshape(len(offsets), T, -1)[..., :d]


def complex_positions(T, d, offsets, base):
    """Read sine and cosine off a rotation in the complex plane."""
    z = np.exp(1j * np.multiply.outer(np.arange(T), base ** -(np.arange(0, d, 2) / d)))
    start = np.exp(1j * np.multiply.outer(offsets, base ** -(np.arange(0, d, 2) / d)))
    turned = start[:, None] * z
    P = np.empty((len(offsets), T, d))
    P[..., ::2], P[..., 1::2] = turned.imag, turned.real[..., : d // 2]
    return P


def shifted_sine_positions(T, d, offsets, base):
    """Take cosines as sines, a quarter of a turn ahead; in single precision."""
    j = np.arange(d)
    w = np.float32(base) ** (-(j - j % 2) / d).astype(np.float32)
    t = (offsets[:, None] + np.arange(T)).astype(np.float32)
    return np.sin(t[..., None] * w + (j % 2).astype(np.float32) * np.float32(np.pi / 2))


STYLES = {
    "count_pairs": [counter_pairs, array_pairs, nested_pairs],
    "merge_pair": [stack_merge, deleting_merge, text_merge, array_merge],
    "train_bpe": [sorted_train, incremental_train, string_train],
    "encode": [lowest_rank_encode, heap_encode, replacing_encode],
    "decode": [expanding_decode, recursive_decode, array_decode],
    "embed": [loops_embed, one_hot_embed, appended_embed, torch_embed],
    "embed_backward": [
        loops_embed_backward,
        one_hot_embed_backward,
        masked_embed_backward,
        bincount_embed_backward,
        autograd_embed_backward,
    ],
    "sinusoidal_positions": [
        loops_positions,
        exponential_positions,
        complex_positions,
        shifted_sine_positions,
    ],
}
