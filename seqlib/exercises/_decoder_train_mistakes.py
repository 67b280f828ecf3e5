"""The known mistakes in training a language model, and how each shows in what was trained."""

import numpy as np

from seqlib.exercises._decoder_corpus import vocabulary
from seqlib.exercises.record import Misconception
from seqlib.subject.values import AsTensor

_LEAST = -100.0  # a token with less beside the best one is never predicted

# Signs by which the trained object itself gives a mistake away. Each takes a function from ids
# (B, T) to logits, and fresh ids, and says whether the sign is there.


def sees_later_tokens(predict, ids):
    """Whether logits change when later tokens do."""
    ids, t = ids[:8, :-1], ids.shape[1] // 2
    later = ids.copy()
    later[:, t:] = np.roll(ids[:, t:], 1, axis=0)
    before, after = (_centred(predict, x)[:, :t] for x in (ids, later))
    return bool(np.abs(after - before).max() > 1e-3 * np.abs(before).max()) and not (
        changes_by_itself(predict, ids)
    )


def changes_by_itself(predict, ids):
    """Whether the same ids give other logits when they are passed once more."""
    one, other = (_centred(predict, ids[:8, :-1]) for _ in range(2))
    return bool(np.abs(one - other).max() > 1e-3 * np.abs(one).max())


def gives_probabilities(predict, ids):
    """Whether the outputs are probabilities."""
    p = logits_of(predict, ids[:8, :-1])
    return bool(p.min() >= 0 and np.abs(p.sum(axis=-1) - 1).max() < 1e-3)


def repeats_its_input(predict, ids):
    """Whether the most probable next token is nearly always the token itself."""
    best = logits_of(predict, ids[:64, :-1]).argmax(axis=-1)
    return bool((best == ids[:64, :-1]).mean() > 0.9)


def skips_a_token(predict, ids):
    """Whether the token after the next is predicted far better than the next one."""
    best = logits_of(predict, ids[:64, :-1]).argmax(axis=-1)
    after, following = best[:, :-1] == ids[:64, 2:], best[:, :-1] == ids[:64, 1:-1]
    return bool(after.mean() > following.mean() + 0.2)


def sees_one_token(predict, ids):
    """Whether earlier tokens have no influence at all."""
    ids, t = ids[:8, :-1], ids.shape[1] // 2
    earlier = ids.copy()
    earlier[:, :t] = np.roll(ids[:, :t], 1, axis=0)
    before, after = (_centred(predict, x)[:, t:] for x in (ids, earlier))
    return bool(np.abs(after - before).max() <= 1e-5 * np.abs(before).max())


def logits_of(predict, ids):
    """Return the logits that a model gives for ids.

    Raises
    ------
    ValueError
        If there is not one for each token of the vocabulary, or the largest is not finite.
    """
    logits, shape = np.asarray(predict(AsTensor(ids)), float), (*ids.shape, len(vocabulary()))
    if logits.shape != shape:
        raise ValueError(f"logits must have shape {shape}, got {logits.shape}")
    if not np.isfinite(logits.max(axis=-1)).all():
        raise ValueError("logits must be finite, got NaN or infinity")
    return logits


def _centred(predict, ids):
    """Return logits less the largest: what is added to all of them changes nothing."""
    logits = logits_of(predict, ids)
    return np.maximum(logits - logits.max(axis=-1, keepdims=True), _LEAST)


def _on_fresh_ids(sign):
    return lambda predict, rng, case: sign(predict, case.hidden.windows(64, rng))


SYMPTOMS = {
    "training_mode": _on_fresh_ids(changes_by_itself),
    "sees_the_future": _on_fresh_ids(sees_later_tokens),
    "probabilities": _on_fresh_ids(gives_probabilities),
    "not_shifted": _on_fresh_ids(repeats_its_input),
    "shifted_twice": _on_fresh_ids(skips_a_token),
    "no_context": _on_fresh_ids(sees_one_token),
}


# Wrong solutions. They train for as long as their mistake needs to show.


def sees_the_future(windows, vocab_size):
    """Train a model without a causal mask."""
    return _trained(windows, vocab_size, steps=200, causal=False)


def not_shifted(windows, vocab_size):
    """Train a model on its own inputs as targets."""
    return _trained(windows, vocab_size, steps=60, shift=0)


def shifted_twice(windows, vocab_size):
    """Train a model on the tokens after the next."""
    return _trained(windows, vocab_size, steps=200, shift=2)


def probabilities(windows, vocab_size):
    """Train a model that ends in softmax."""
    return _trained(windows, vocab_size, steps=60, softmax=True)


def training_mode(windows, vocab_size):
    """Train a model with dropout and leave that on."""
    return _trained(windows, vocab_size, steps=60, dropout=0.5)


def no_context(windows, vocab_size):
    """Train a model on windows that were cut into single tokens."""
    return _trained(windows, vocab_size, steps=60, mixing=False)


def _trained(
    windows, vocab_size, *, steps, causal=True, shift=1, softmax=False, dropout=0.0, mixing=True
):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    windows = torch.as_tensor(windows)
    d, context = 32, windows.shape[-1]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.E, self.P = nn.Embedding(vocab_size, d), nn.Embedding(context, d)
            self.qkv = nn.Linear(d, 3 * d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
            self.drop, self.norm = nn.Dropout(dropout), nn.LayerNorm(d)
            self.head = nn.Linear(d, vocab_size)

        def forward(self, ids):
            n = ids.shape[1]
            X = self.E(ids) + (self.P.weight[:n] if mixing else 0)
            if mixing:
                q, k, v = self.qkv(X).chunk(3, dim=-1)
                X = X + F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            logits = self.head(self.norm(X + self.drop(self.mlp(self.norm(X)))))
            return logits.softmax(dim=-1) if softmax else logits

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for batch in windows[:steps]:
        inputs, targets = batch[:, : context - max(shift, 1)], batch[:, shift:]
        targets = targets[:, : inputs.shape[1]]
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


MISCONCEPTIONS = (
    Misconception(
        "sees_the_future",
        "The model sees the future: what it gives for a token depends on later tokens, so its "
        "loss is no loss of prediction.",
        "decoder#causality",
        "rasbt/LLMs-from-scratch#1061",
        sees_the_future,
    ),
    Misconception(
        "not_shifted",
        "The model repeats its input: it was trained with every token as its own target.",
        "decoder#shifted-targets",
        "huggingface/transformers#27517",
        not_shifted,
    ),
    Misconception(
        "shifted_twice",
        "The model predicts the token after the next: the targets were shifted twice.",
        "decoder#shifted-targets",
        "huggingface/transformers#37830",
        shifted_twice,
    ),
    Misconception(
        "probabilities",
        "The model returns probabilities, to which the loss applies softmax once more.",
        "decoder#loss",
        "our own: F.cross_entropy of probabilities",
        probabilities,
    ),
    Misconception(
        "training_mode",
        "The same tokens give different logits in two calls: the dropout of the model is still "
        "on.",
        "decoder#training",
        "our own: eval() forgotten",
        training_mode,
    ),
    Misconception(
        "no_context",
        "What the model gives for a token depends on that token alone: no token attends to "
        "earlier ones.",
        "decoder#model",
        "our own: the attention left out, or its mask turned round",
        no_context,
    ),
)
