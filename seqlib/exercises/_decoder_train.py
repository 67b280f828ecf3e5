"""Task: train a language model within a budget of tokens, to a loss on fresh text."""

import numpy as np

from seqlib.exercises._decoder_corpus import Language, T, vocabulary
from seqlib.exercises._decoder_train_mistakes import (
    MISCONCEPTIONS,
    SYMPTOMS,
    logits_of,
    sees_later_tokens,
)
from seqlib.exercises.record import Case, Criterion, Task

STEPS, BATCH = 1600, 10  # 512,000 tokens to predict, each once
FRESH = 512  # windows of the fresh sample
HIDDEN = 2048  # windows of which one token is predicted, with nothing after it to be seen
_SURE = 5  # standard errors

# From seqlib/experiments/results/decoder_threshold.json, in nats per token; a test computes
# them once more.
ENTROPY = 0.651  # what no model can save, on the mean over languages
STANDARD_ERROR = 0.00532  # of the mean cost of 512 windows under the grammar
PAIRS = 1.662  # the best of ten models that counted pairs
BEST_COUNTS = 0.985  # the best of all models that counted groups, however long
THRESHOLD = 0.942  # the worst of ten reference runs, and three standard deviations


def reference(windows, vocab_size):
    """Return a trained model: a callable from ids to logits."""
    import torch
    from torch.nn import functional as F

    from seqlib.pt import DecoderConfig, DecoderLM

    windows = torch.as_tensor(windows)
    config = DecoderConfig(vocab_size, windows.shape[-1] - 1, dim=48, n_layer=2, n_head=4)
    model = DecoderLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step, batch in enumerate(windows):
        optimizer.param_groups[0]["lr"] = 4e-3 * min(1.0, (step + 1) / 50)
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def evaluate(predict, rng, case):
    """Return the loss on fresh text of the case's language, in nats per token.

    What the drawn text costs under the grammar is subtracted and its expected cost is added,
    so that a text that happens to be hard does not count against the model.
    """
    ids, cost = case.hidden.windows_with_cost(FRESH, rng)
    found = nats_of(predict, ids)
    more = found - cost
    loss = ENTROPY + float(more.mean())
    if loss < ENTROPY - 3 * STANDARD_ERROR:
        return loss
    unseen = _more_where_nothing_follows(predict, rng, case.hidden)
    error = unseen.std() / np.sqrt(len(unseen)) + more.mean(axis=1).std() / np.sqrt(len(more))
    if sees_later_tokens(predict, ids) or unseen.mean() - more.mean() > _SURE * error:
        raise ValueError(
            "the logits of a token must not depend on later tokens, got other ones when the "
            "later tokens were exchanged: the loss means nothing"
        )
    return loss


def nats_of(predict, ids):
    """Return the negative log-probability of every token after the first."""
    return _nats_of(predict, ids[:, :-1], ids[:, 1:])


def _nats_of(predict, inputs, targets):
    found = []
    for at in range(0, len(inputs), 64):
        logits = logits_of(predict, inputs[at : at + 64])
        logits = logits - logits.max(axis=-1, keepdims=True)
        target = np.take_along_axis(logits, targets[at : at + 64, :, None], axis=-1)[..., 0]
        found.append(np.log(np.exp(logits).sum(axis=-1)) - target)
    return np.concatenate(found)


def _more_where_nothing_follows(predict, rng, language):
    """Return by how much the costs of some tokens exceed those under the grammar.

    In each window one token is predicted. What stands there and after it comes from another
    text, and the window is shown once, so that nothing has ever been seen of the answer.
    """
    ids, cost = language.windows_with_cost(HIDDEN, rng)
    other, at = language.windows(HIDDEN, rng), rng.integers(T, size=(HIDDEN, 1))
    inputs = np.where(np.arange(T) > at, other[:, :-1], ids[:, :-1])
    nats = _nats_of(predict, inputs, ids[:, 1:])
    return np.take_along_axis(nats - cost, at, axis=1)[:, 0]


def cases(rng):
    """Draw the language of one run, and its text."""
    language = Language(rng)
    ids = language.windows(STEPS * BATCH, rng).reshape(STEPS, BATCH, T + 1)
    label = f"{STEPS} batches of {BATCH} windows of {T} + 1 tokens"
    return [Case((ids, len(vocabulary())), label=label, hidden=language)]


_LOW = ENTROPY - 3 * STANDARD_ERROR

TASK = Task(
    id="decoder.train_model",
    title="Training within a budget of tokens",
    signature="(windows, vocab_size)",
    equations=(),
    page="decoder#training",
    reference=reference,
    cases=cases,
    kind="training",
    criteria=(
        Criterion("values", 4, "a smaller loss than counted pairs of words"),
        Criterion("counts", 5, "a smaller loss than the best n-gram model"),
        Criterion("good", 6, "as good as ten runs of a plain recipe"),
    ),
    misconceptions=MISCONCEPTIONS,
    options={
        "evaluate": evaluate,
        "bounds": {
            "values": (_LOW, PAIRS),
            "counts": (_LOW, BEST_COUNTS),
            "good": (_LOW, THRESHOLD),
        },
        "below": "sees_the_future",
        "symptoms": SYMPTOMS,
    },
    seconds=300.0,
    version=3,
)
