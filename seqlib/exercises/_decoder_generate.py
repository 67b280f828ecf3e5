"""Task: the loop that continues prompts token by token, whatever the model is."""

import numpy as np

from seqlib.exercises.properties import inputs_unmodified
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import Handle, Seed


def reference(model, ids, max_new_tokens, context, end, rng):
    """Return the prompts and their continuations."""
    ids = np.array(ids)
    done = np.zeros(len(ids), bool)
    for _ in range(max_new_tokens):
        logits = np.asarray(model(ids[:, -context:]))[:, -1].astype(float)
        p = _softmax(logits)
        new = np.full((len(ids), 1), end)
        for b in np.flatnonzero(~done):
            new[b] = rng.choice(p.shape[1], p=p[b])
        done = done | (new[:, 0] == end)
        ids = np.concatenate([ids, new], axis=1)
    return ids


def variant(model, ids, max_new_tokens, context, end, rng, *, wrong=frozenset()):
    """Return the continuations with the mistakes named in ``wrong``."""
    prompt = ids = np.array(ids)
    B, T = ids.shape
    done = np.zeros(B, bool)
    if "end_in_prompt" in wrong:
        done = (ids == end).any(axis=1)
    for _ in range(max_new_tokens):
        logits = np.asarray(model(_window(ids, prompt, context, wrong))).astype(float)
        p = _softmax(logits[:, 0 if "first_position" in wrong else -1])
        new = _draws(p, done, end, rng, wrong)
        if "end_ignored" not in wrong:
            done = done | (new == end)
        if "one_end_for_all" in wrong:
            done = np.full(B, done.any())
        if "end_not_written" in wrong and done.all():
            break
        ids = np.concatenate([ids, new[:, None]], axis=1)
        if "end_stops_early" in wrong and done.all():
            break
    if "prompt_left_out" in wrong:
        return ids[:, T:]
    return ids[:, -context:] if "window_returned" in wrong else ids


def _window(ids, prompt, context, wrong):
    """Return what the model is given."""
    if "prompt_alone" in wrong:
        ids = prompt
    if "last_token_alone" in wrong:
        return ids[:, -1:]
    if "not_cropped" in wrong:
        return ids
    if "first_tokens_kept" in wrong:
        return ids[:, :context]
    if "one_token_less" in wrong:
        return ids[:, 1 - context :]
    return ids[:, -context:]


def _draws(p, done, end, rng, wrong):
    """Return the next token of every sequence."""
    B, V = p.shape
    new = np.full(B, end)
    if "best_token" in wrong:
        return np.where(done, end, p.argmax(axis=1))
    if "one_draw_for_all" in wrong:
        return np.where(done, end, rng.choice(V, p=p[0]))
    for b in range(B):
        if "ended_still_drawn" in wrong:
            draw = rng.choice(V, p=p[b])
            new[b] = end if done[b] else draw
        elif not done[b]:
            new[b] = rng.choice(V) if "uniform" in wrong else rng.choice(V, p=p[b])
    return new


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def small_model(rng, V, context, *, end=None, bias=0.0):
    """Return a causal model with positions of its own, as a handle.

    Its state after each token is h = tanh(A h + E[token] + P[position]), its logits are W h.
    ``bias`` is added to the logit of ``end``.
    """
    d = 8
    A, E = 0.9 * rng.standard_normal((d, d)) / np.sqrt(d), rng.standard_normal((V, d))
    P, W = rng.standard_normal((context, d)), 1.1 * rng.standard_normal((V, d))

    def model(ids):
        ids = np.asarray(ids)
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise ValueError(
                f"ids must be an array of integers of shape (B, T), got {ids.dtype} {ids.shape}"
            )
        if not 1 <= ids.shape[1] <= context:
            raise ValueError(
                f"ids must hold 1 to {context} tokens per sequence, got {ids.shape[1]}"
            )
        h, logits = np.zeros((len(ids), d)), np.empty((*ids.shape, V))
        for t in range(ids.shape[1]):
            h = np.tanh(h @ A + E[ids[:, t]] + P[t])
            logits[:, t] = h @ W.T
        if end is not None:
            logits[..., end] += bias
        return logits

    return Handle(model)


def cases(rng):
    """Draw models, prompts and seeds for one run."""
    return [
        _case(rng, (1, 3), 17, 23, "one prompt of 3 tokens, 17 new ones, context 23"),
        _case(rng, (2, 5), 13, 19, "2 prompts of 5 tokens, 13 new ones, context 19"),
        _case(rng, (1, 1), 11, 12, "one prompt of 1 token, 11 new ones, context 12"),
        _case(rng, (2, 3), 0, 7, "no new token", "none"),
        _case(rng, (1, 11), 0, 7, "no new token, a prompt longer than the context", "none"),
        _case(rng, (1, 3), 19, 7, "3 tokens, 19 new ones, context 7", "context"),
        _case(rng, (2, 11), 17, 5, "2 prompts of 11 tokens, 17 new ones, context 5", "context"),
        _case(rng, (3, 2), 17, 19, "3 prompts, end token drawn early", "end", bias=1.5),
        _case(rng, (5, 3), 13, 17, "5 prompts, end token drawn early", "end", bias=1.5),
        _case(rng, (3, 4), 17, 23, "3 prompts that begin with end", "end", bias=1.5, ends_at=0),
        _case(rng, (3, 4), 17, 23, "3 prompts that end in end", "end", bias=1.5, ends_at=-1),
        _case(rng, (3, 1), 17, 23, "3 prompts of end alone", "end", bias=1.5, ends_at=0),
    ]


def _case(rng, shape, max_new_tokens, context, label, tag="base", *, bias=None, ends_at=None):
    V, end = 11, 7
    while True:
        # Without a bias the end token is not drawn.
        model = small_model(rng, V, context, end=end, bias=-99.0 if bias is None else bias)
        ids = rng.choice(np.delete(np.arange(V), end), size=shape)
        if ends_at is not None:  # as where the end of one text stands before the next
            ids[:, ends_at] = end
        args = (model, ids, max_new_tokens, context, end)
        seed = int(rng.integers(2**31))
        if tag != "end" or _ends_apart(args, seed):
            return Case((*args, Seed(seed)), label=label, tag=tag)


def _ends_apart(args, seed):
    """Whether the sequences end at different times, one of them well before the last step."""
    model, ids, count, context, end = args
    made = reference(model.function, ids, count, context, end, np.random.default_rng(seed))
    lengths = (made[:, ids.shape[1] :] != end).sum(axis=1)
    return 2 <= lengths.min() <= 4 < lengths.max() < count - 2


def _inputs(rng):
    case = _case(rng, (2, 3), 5, 11, "")
    return list(case.args)


TASK = Task(
    id="decoder.generate",
    title="Generation",
    signature="(model, ids, max_new_tokens, context, end, rng)",
    equations=(),
    page="decoder#generation",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="sampling",
    criteria=(
        Criterion("values", 4, "continuations that fit into the context"),
        Criterion("context", 2, "sequences longer than the context", tag="context"),
        Criterion("end", 2, "sequences that end", tag="end"),
        Criterion("none", 1, "no new token", tag="none"),
        Criterion(
            "inputs_unmodified",
            1,
            "the prompts stay as they are",
            holds=inputs_unmodified(_inputs),
        ),
    ),
    misconceptions=(
        Misconception(
            "first_position",
            "The next token is drawn from the logits of the first position.",
            "decoder#generation",
            "our own: index 0 in place of -1",
        ),
        Misconception(
            "prompt_alone",
            "The model gets the prompt alone in every step, without what was drawn.",
            "decoder#generation",
            "our own: the loop does not hand on what it has appended",
        ),
        Misconception(
            "last_token_alone",
            "The model gets the last token alone, as if it kept a cache.",
            "decoder#cache",
            "our own: generation with a cache, without the cache",
        ),
        Misconception(
            "not_cropped",
            "The model gets more tokens than its context.",
            "decoder#context",
            "huggingface/transformers#530",
        ),
        Misconception(
            "first_tokens_kept",
            "Beyond the context the model gets the first tokens, not the last ones.",
            "decoder#context",
            "openai/gpt-2#121",
        ),
        Misconception(
            "one_token_less",
            "The model gets one token less than its context can hold.",
            "decoder#context",
            "our own: room left for the new token",
        ),
        Misconception(
            "window_returned",
            "The result is what the model has last seen: earlier tokens are lost.",
            "decoder#context",
            "our own: ids overwritten by their last tokens",
        ),
        Misconception(
            "prompt_left_out",
            "The result has the new tokens only.",
            "decoder#generation",
            "our own: a list of the draws",
        ),
        Misconception(
            "best_token",
            "The most probable token is taken, not drawn.",
            "decoder#generation",
            "our own: argmax in place of a draw",
        ),
        Misconception(
            "uniform",
            "All tokens are equally probable in the draw: p is not passed to it.",
            "decoder#generation",
            "our own: rng.choice(V)",
        ),
        Misconception(
            "one_draw_for_all",
            "One token is drawn for all sequences, from the distribution of the first one.",
            "decoder#generation",
            "our own: written for one prompt",
        ),
        Misconception(
            "end_ignored",
            "A sequence goes on after its end token.",
            "decoder#generation",
            "our own: the argument is not used",
        ),
        Misconception(
            "one_end_for_all",
            "All sequences end where the first of them ends.",
            "decoder#generation",
            "our own: any() in place of one flag per sequence",
        ),
        Misconception(
            "ended_still_drawn",
            "A token is drawn for sequences that have ended too, and thrown away; so the other "
            "sequences get other draws.",
            "decoder#generation",
            "our own: one loop over all rows",
        ),
        Misconception(
            "end_stops_early",
            "The result breaks off when all sequences have ended, before max_new_tokens.",
            "decoder#generation",
            "our own: break without filling up",
        ),
        Misconception(
            "end_not_written",
            "When the last sequence ends, its end token is not written.",
            "decoder#generation",
            "our own: break before the token is appended",
        ),
        Misconception(
            "end_in_prompt",
            "A sequence whose prompt contains the end token is taken for ended before a token "
            "is drawn.",
            "decoder#generation",
            "our own: ids == end for the prompt and the new tokens alike",
        ),
    ),
    options={"axes": ("batch row", "time step")},
    version=2,
)
