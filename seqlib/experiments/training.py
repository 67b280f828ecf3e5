"""The training loop of the book: AdamW, warm-up and decay, clipping, checkpoints."""

import math
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib._check import check_positive, check_shape
from seqlib.experiments.checkpoint import History, Run

__all__ = [
    "History",
    "Recipe",
    "learning_rate",
    "make_update",
    "mean_nats",
    "next_token_loss",
    "parameter_groups",
    "seeded",
    "train",
]


@dataclass(frozen=True)
class Recipe:
    """Choices that fix a training run, apart from the model and the data.

    Parameters
    ----------
    steps : int
        Number of updates.
    lr : float, default=1e-3
        Largest learning rate, reached at the end of the warm-up.
    warmup : int, default=0
        Steps over which the learning rate grows from ``lr / warmup`` to ``lr``.
    final_lr : float, default=0.0
        Learning rate to which it falls afterwards, in a straight line.
    weight_decay : float, default=0.1
        Decay of the matrices; gains and biases have none.
    betas : tuple of two floats, default=(0.9, 0.99)
        AdamW's decay of the running means of the gradient and of its square.
    max_norm : float, default=1.0
        The gradient is scaled down to this joint norm where it is longer.
    validate_every : int, optional
        Steps from one validation to the next; there is always one after the last step.
    seed : int, default=0
        Seed of the batches and of the dropout.

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    steps: int
    lr: float = 1e-3
    warmup: int = 0
    final_lr: float = 0.0
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    max_norm: float = 1.0
    validate_every: int | None = None
    seed: int = 0

    def __post_init__(self):
        """Check every field once, here."""
        check_positive("steps", self.steps)
        if self.validate_every is not None:
            check_positive("validate_every", self.validate_every)
        for name in ("lr", "max_norm"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {value}")
        if not 0 <= self.warmup <= self.steps:
            raise ValueError(
                f"warmup must lie between 0 and steps = {self.steps}, got {self.warmup}"
            )
        if not 0 <= self.final_lr <= self.lr:
            raise ValueError(
                f"final_lr must lie between 0 and lr = {self.lr}, got {self.final_lr}"
            )
        if not 0 <= self.weight_decay < 1 / self.lr:
            raise ValueError(
                f"weight_decay must lie in [0, 1 / lr), got {self.weight_decay}; a larger one "
                "would turn the sign of every weight"
            )
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers in [0, 1), got {self.betas}")


def learning_rate(step, recipe):
    r"""Return the learning rate of one step: a straight line up, and a straight line down.

    .. math::

        \eta_s = \eta \, \frac{s + 1}{w} \ (s < w), \qquad
        \eta_s = \eta_{end} + (\eta - \eta_{end}) \, \frac{S - s}{S - w} \ (s \ge w)

    With S = 10 steps, w = 2 of warm-up and a largest rate of 8, steps 0 to 9 have the rates
    4, 8, 8, 7, 6, 5, 4, 3, 2, 1.

    Parameters
    ----------
    step : int
        Number of updates already made, s.
    recipe : Recipe
        Gives S, w and the two rates.

    Returns
    -------
    float
        The rate of the next update.
    """
    if step < recipe.warmup:
        return recipe.lr * (step + 1) / recipe.warmup
    left = (recipe.steps - step) / (recipe.steps - recipe.warmup)
    return recipe.final_lr + (recipe.lr - recipe.final_lr) * left


def parameter_groups(model, weight_decay):
    """Return AdamW's two groups: matrices decay, gains and biases do not.

    A gain of a norm is 1 at the start for a reason, and decay would pull it towards 0.
    """
    params = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in params if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in params if p.ndim < 2], "weight_decay": 0.0},
    ]


def next_token_loss(model, inputs, targets):
    """Return the mean cross-entropy over the targets that are not -100; 0 if none is.

    The fast form of :func:`seqlib.pt.cross_entropy`.
    """
    logits, targets = model(inputs).flatten(0, -2), targets.flatten()
    total = F.cross_entropy(logits, targets, reduction="sum")
    return total / (targets != -100).sum().clamp(min=1)


@torch.no_grad()
def mean_nats(model, ids, *, T, batch_size=64):
    """Return the mean negative log-probability of the tokens of a text.

    The text is read in windows of T tokens that do not overlap, and every position counts,
    also those of the shorter window at the end. So the first prediction of a window sees one
    token and the last sees T.

    Parameters
    ----------
    model : torch.nn.Module
        Maps ids of shape (B, T) to logits of shape (B, T, V).
    ids : ndarray of int of shape (n,)
        The text, at least two tokens: n - 1 tokens are predicted.
    T : int
        Length of a window.
    batch_size : int, default=64
        Windows that are read at a time.

    Returns
    -------
    float
        Nats per token.

    Raises
    ------
    ValueError
        If the text has fewer than two tokens.
    """
    check_shape("ids", ids, ("n",), fix="a text is one row of token ids")
    check_positive("T", T)
    if len(ids) < 2:
        raise ValueError(f"ids must hold at least 2 tokens, one to predict, got {len(ids)}")
    ids = torch.as_tensor(ids)
    inputs, targets = ids[:-1], ids[1:]
    whole = len(inputs) // T * T
    windows = [inputs[:whole].reshape(-1, T), targets[:whole].reshape(-1, T)]
    batches = list(zip(*[w.split(batch_size) for w in windows], strict=True)) if whole else []
    if whole < len(inputs):
        batches.append((inputs[None, whole:], targets[None, whole:]))
    total = sum(next_token_loss(model, x, y).item() * y.numel() for x, y in batches)
    return total / len(inputs)


def train(
    model,
    draw,
    recipe,
    *,
    loss=next_token_loss,
    validate=None,
    checkpoint=None,
    save_every=200,
    identity=None,
):
    """Train a model in place; continue from ``checkpoint`` where that file exists.

    Equal seeds, model parameters and data give equal results, bit by bit, on one machine with
    one number of threads, and a run that was killed and continued gives them too: a checkpoint
    holds all that the next step depends on, and it replaces the one before in one move of the
    file system, so that a kill at any moment leaves a whole file.

    Parameters
    ----------
    model : torch.nn.Module
        The model, on the CPU.
    draw : callable
        ``draw(rng)`` returns the arrays of one batch, drawn with a NumPy generator and with
        nothing else.
    recipe : Recipe
        How to train.
    loss : callable, default=next_token_loss
        ``loss(model, *batch)`` returns a tensor with one number.
    validate : callable, optional
        ``validate(model)`` returns a number; called without gradients and in evaluation mode.
    checkpoint : path, optional
        File to save to and to continue from.
    save_every : int, default=200
        Steps from one checkpoint to the next; there is always one after the last step.
    identity : dict, optional
        What else a checkpoint must agree in to be continued, such as the vocabulary: names
        and values that JSON can hold.

    Returns
    -------
    History
        Losses and validations of the whole run, those before the kill included.

    Raises
    ------
    ValueError
        If a loss or the norm of a gradient is not finite, or the checkpoint is not of this
        run.
    """
    check_positive("save_every", save_every)
    optimizer = torch.optim.AdamW(
        parameter_groups(model, recipe.weight_decay), betas=recipe.betas, fused=True
    )
    run = Run(model, optimizer, {**asdict(recipe), **(identity or {})})
    path = None if checkpoint is None else Path(checkpoint)
    with seeded(recipe.seed), _progress(recipe.steps) as show:
        run.rng = np.random.default_rng(recipe.seed)
        if path is not None and path.exists():
            run.load(path)
        model.train()
        for step in range(len(run.history.losses), recipe.steps):
            batch = [torch.as_tensor(array) for array in draw(run.rng)]
            value = make_update(
                model,
                optimizer,
                loss(model, *batch),
                rate=learning_rate(step, recipe),
                max_norm=recipe.max_norm,
            )
            run.history.losses.append(value)
            done = step + 1
            if validate is not None and _due(done, recipe.validate_every, recipe.steps):
                run.history.validation.append((done, _evaluate(model, validate)))
            if path is not None and _due(done, save_every, recipe.steps):
                run.save(path)
            show(done, run.history)
    model.eval()
    return run.history


@contextmanager
def seeded(seed):
    """Seed torch's generator for a block; behind it, it goes on as if nothing was drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def make_update(model, optimizer, loss, *, rate=None, max_norm=1.0):
    """Make one update with the gradient of a loss, and return the loss as a number.

    Parameters
    ----------
    model : torch.nn.Module
        The model, whose parameters are those of the optimiser.
    optimizer : torch.optim.Optimizer
        Adam or AdamW, which count the updates.
    loss : Tensor
        One number.
    rate : float, optional
        Learning rate; that of the update before if omitted.
    max_norm : float, default=1.0
        The gradient is scaled down to this joint norm where it is longer.

    Raises
    ------
    ValueError
        If the loss or the norm of the gradient is not finite; no parameter has changed then.
    """
    value = loss.item()
    if not math.isfinite(value):
        _refuse("loss", value, optimizer)
    if rate is not None:
        for group in optimizer.param_groups:
            group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm, foreach=True).item()
    if not math.isfinite(norm):
        _refuse("gradient", f"a norm of {norm}", optimizer)
    optimizer.step()
    return value


def _refuse(name, value, optimizer):
    step = max((int(state["step"]) for state in optimizer.state.values()), default=0)
    raise ValueError(
        f"{name} must be finite, got {value} at step {step}; lower lr, lengthen warmup, or "
        "look for a division by 0"
    )


def _due(done, every, last):
    return done == last or (every is not None and done % every == 0)


def _evaluate(model, validate):
    model.eval()
    # What validation draws must not change what training draws next.
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        value = float(validate(model))
    model.train()
    return value


@contextmanager
def _progress(total):
    """Yield a function that shows where a run is; it does nothing away from a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, history: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), "{task.description}")
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)

        def show(done, history):
            text = f"loss {history.losses[-1]:.3f}"
            if history.validation:
                text += f", validation {history.validation[-1][1]:.4f}"
            bar.update(task, completed=done, description=text)

        yield show
