"""Task: read more tokens with a cache of keys and values, as without one."""

import math

import numpy as np

from seqlib.exercises.properties import inputs_unmodified
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import AsTensor


def reference(ids, cache, E, P, layers):
    """Return the logits of the new tokens and the cache with them in it."""
    import torch

    n = ids.shape[1]
    s = 0 if cache is None else cache[0][0].shape[1]
    X = E[ids] + P[s : s + n]
    later = torch.ones(n, s + n, dtype=torch.bool).triu(s + 1)
    grown = []
    for i, (W_q, W_k, W_v) in enumerate(layers):
        K, V = X @ W_k, X @ W_v
        if cache is not None:
            K, V = torch.cat([cache[i][0], K], dim=1), torch.cat([cache[i][1], V], dim=1)
        grown.append((K, V))
        scores = (X @ W_q) @ K.transpose(1, 2) / math.sqrt(W_q.shape[1])
        X = X + scores.masked_fill(later, -torch.inf).softmax(dim=-1) @ V
    return X @ E.T, grown


def variant(ids, cache, E, P, layers, *, wrong=frozenset()):
    """Return logits and cache with the mistakes named in ``wrong``."""
    import torch

    n = ids.shape[1]
    s = 0 if cache is None else cache[0][0].shape[1]
    X = E[ids] + P[_places(s, n, wrong)]
    mask = _mask(s, n, wrong)
    grown = []
    for i, (W_q, W_k, W_v) in enumerate(layers):
        new = X @ W_k, X @ (W_k if "values_are_keys" in wrong else W_v)
        both = new
        if cache is not None and "cache_ignored" not in wrong:
            past = cache[0 if "first_layer_for_all" in wrong else i]
            if "projected_again" in wrong:
                past = past[0] @ W_k, past[1] @ W_v
            order = -1 if "new_in_front" in wrong else 1
            both = tuple(
                torch.cat([a, b][::order], dim=1) for a, b in zip(past, new, strict=True)
            )
        grown.append(_kept(cache, i, new, both, wrong))
        K, V = both
        if "cached_keys_alone" in wrong and cache is not None:
            V = V[:, -n:]
            K = K[:, -n:]
        scores = (X @ W_q) @ K.transpose(1, 2)
        if "no_scale" not in wrong:
            scores = scores / math.sqrt(W_q.shape[1])
        S = scores.shape[-1]
        weights = (scores + mask[:, -S:].to(scores)).softmax(dim=-1)
        X = weights @ V + (0 if "no_residual" in wrong else X)
    if "last_logits_alone" in wrong:
        X = X[:, -1:]
    return X @ E.T, grown


def _places(s, n, wrong):
    """Return the positions of the new tokens."""
    if "positions_from_0" in wrong:
        return slice(0, n)
    if "one_position_for_all" in wrong:
        return slice(s, s + 1)
    if "positions_one_late" in wrong:
        return slice(s + 1, s + n + 1) if s else slice(0, n)
    return slice(s, s + n)


def _mask(s, n, wrong):
    """Return what is added to the scores, 0 or -inf, of shape (n, s + n)."""
    import torch

    if "no_mask" in wrong or ("no_mask_with_cache" in wrong and s > 0):
        return torch.zeros(n, s + n)
    if "new_in_front" in wrong:
        blocked = torch.ones(n, n, dtype=torch.bool).triu(1)
        blocked = torch.cat([blocked, torch.zeros(n, s, dtype=torch.bool)], dim=1)
    elif "mask_not_shifted" in wrong:
        blocked = torch.ones(n, s + n, dtype=torch.bool).triu(1)
    else:
        blocked = torch.ones(n, s + n, dtype=torch.bool).triu(s + 1)
    return torch.zeros(n, s + n).masked_fill(blocked, -torch.inf)


def _kept(cache, i, new, both, wrong):
    """Return what a layer puts into the new cache."""
    if "new_alone_kept" in wrong:
        return new
    if "old_cache_returned" in wrong and cache is not None:
        return cache[i]
    return both[::-1] if "exchanged" in wrong else both


def cases(rng):
    """Draw tokens, caches and weights for one run."""
    return [
        _case(rng, (2, 5), 0, (7, 3), 1, "2 sequences of 5 tokens, no cache, one layer, d=3"),
        _case(rng, (1, 3), 0, (5, 4), 2, "3 tokens, no cache, 2 layers, d=4"),
        _case(rng, (3, 1), 0, (11, 2), 1, "3 sequences of 1 token, no cache, d=2"),
        _case(rng, (2, 1), 5, (7, 3), 1, "1 token after 5, one layer, d=3", "one"),
        _case(rng, (3, 1), 3, (5, 4), 2, "1 token after 3, 2 layers, d=4", "one"),
        _case(rng, (2, 3), 5, (7, 4), 1, "3 tokens after 5, one layer, d=4", "several"),
        _case(rng, (1, 5), 2, (11, 3), 2, "5 tokens after 2, 2 layers, d=3", "several"),
        _case(rng, (3, 2), 7, (5, 2), 3, "2 tokens after 7, 3 layers, d=2", "several"),
    ]


def _case(rng, shape, s, sizes, n_layer, label, tag="base"):
    args = _arguments(rng, shape, s, sizes, n_layer)
    return Case(tuple(_tensors(args)), label=label, tag=tag)


def _arguments(rng, shape, s, sizes, n_layer):
    import torch

    (V, d), (B, n) = sizes, shape
    E, P = rng.standard_normal((V, d)), rng.standard_normal((s + n + 2, d))
    layers = [tuple(rng.standard_normal((3, d, d)) / math.sqrt(d)) for _ in range(n_layer)]
    ids, cache = rng.integers(V, size=(B, n)), None
    if s > 0:
        read = rng.integers(V, size=(B, s))
        tensors = [torch.from_numpy(a) for a in (read, E, P)]
        weights = [tuple(map(torch.from_numpy, layer)) for layer in layers]
        _, made = reference(tensors[0], None, *tensors[1:], weights)
        cache = [(K.numpy(), V.numpy()) for K, V in made]
    return [ids, cache, E, P, layers]


def _tensors(value):
    if isinstance(value, list | tuple):
        return type(value)(map(_tensors, value))
    return AsTensor(value) if isinstance(value, np.ndarray) else value


def _inputs(rng):
    return _tensors(_arguments(rng, (2, 3), 5, (7, 4), 2))


TASK = Task(
    id="decoder.read_with_cache",
    title="Cache of keys and values",
    signature="(ids, cache, E, P, layers)",
    equations=(),
    page="decoder#cache",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 4, "logits without a cache", part=0),
        Criterion("one", 3, "logits of one more token", tag="one", part=0, needs=()),
        Criterion(
            "several", 4, "logits of several more tokens", tag="several", part=0, needs=()
        ),
        Criterion("cache", 1, "the cache that is begun", part=1, needs=()),
        Criterion("grown", 2, "the cache that has grown", tag="several", part=1, needs=()),
        Criterion(
            "inputs_unmodified",
            1,
            "the old cache stays as it is",
            holds=inputs_unmodified(_inputs),
            needs=("grown",),
        ),
    ),
    misconceptions=(
        Misconception(
            "mask_not_shifted",
            "The mask is not shifted by the length of the cache: query i sees the keys up to "
            "i, counted from the start of the cache.",
            "decoder#cache",
            "rasbt/LLMs-from-scratch#697",
        ),
        Misconception(
            "no_mask",
            "There is no mask: each of the new tokens sees all others, later ones too.",
            "decoder#causality",
            "QwenLM/Qwen#979",
        ),
        Misconception(
            "positions_from_0",
            "The new tokens get the positions from 0 on, whatever is in the cache.",
            "decoder#cache",
            "unslothai/unsloth#3699",
        ),
        Misconception(
            "one_position_for_all",
            "All new tokens get the position of the first of them.",
            "decoder#cache",
            "our own: written for one token",
        ),
        Misconception(
            "positions_one_late",
            "With a cache the positions are one too large.",
            "decoder#cache",
            "our own: the length after the token in place of the one before",
        ),
        Misconception(
            "cache_ignored",
            "The cache is not used.",
            "decoder#cache",
            "our own: the argument is not used",
        ),
        Misconception(
            "cached_keys_alone",
            "The cache grows, but the new tokens attend to each other only, not to the cached "
            "ones.",
            "decoder#cache",
            "our own: K and V of this call in place of the joined ones",
            also=("mask_over_cache",),
        ),
        Misconception(
            "new_in_front",
            "The new keys and values stand in front of the cached ones.",
            "decoder#cache",
            "our own: the arguments of cat exchanged",
        ),
        Misconception(
            "first_layer_for_all",
            "All layers use the cache of the first one.",
            "decoder#cache",
            "our own: one pair for the whole model",
        ),
        Misconception(
            "projected_again",
            "The cached keys and values are multiplied by W_k and W_v once more.",
            "decoder#cache",
            "our own: a cache of inputs was in mind",
        ),
        Misconception(
            "new_alone_kept",
            "The cache that comes back holds the new tokens only.",
            "decoder#cache",
            "our own: returned before joining",
        ),
        Misconception(
            "old_cache_returned",
            "The cache that comes back is the one that was passed.",
            "decoder#cache",
            "our own: the joined tensors are not stored",
        ),
        Misconception(
            "exchanged",
            "In the cache that comes back, keys and values are exchanged.",
            "decoder#cache",
            "our own: two tensors of the same shape",
        ),
        Misconception(
            "values_are_keys",
            "The values are made with W_k.",
            "decoder#cache",
            "our own: a line copied and not changed",
        ),
        Misconception(
            "no_scale",
            "The scores are not divided by the root of d.",
            "attention#scaling",
            "our own: the factor of (9) forgotten",
        ),
        Misconception(
            "no_residual",
            "The input of a layer is not added to its output.",
            "decoder#model",
            "our own: the residual connection forgotten",
        ),
        Misconception(
            "last_logits_alone",
            "Only the logits of the last token come back.",
            "decoder#cache",
            "our own: what generation needs",
        ),
        Misconception(
            "no_mask_with_cache",
            "With a cache there is no mask: where several tokens are new, each sees those "
            "after it.",
            "decoder#cache",
            "our own: right for one new token, which may see all",
        ),
    ),
    options={
        "parts": ("the logits", "the cache"),
        "axes": ("batch row", "time step", "feature"),
    },
)
