"""Training that can be continued, so that learning rates are tried before one is chosen."""

import torch

from seqlib.experiments.training import make_update, seeded

__all__ = ["Training", "choose", "compare"]


class Training:
    """A model, its optimiser and its batches: AdamW, a tenth of warm-up, then a line to 0.

    Parameters
    ----------
    make : callable
        Returns a fresh model, drawn with torch's generator.
    batches : iterator
        Yields what ``loss`` takes, drawn with a generator of its own.
    loss : callable
        ``loss(model, *batch)`` returns a tensor with one number.
    rate : float
        Largest learning rate.
    steps : int
        Number of updates of the whole training, which fixes the rate of every update.
    seed : int
        Seed of the parameters and of the dropout.
    weight_decay : float, default=0.01
        AdamW's decay, of all parameters.
    """

    def __init__(self, make, batches, loss, *, rate, steps, seed, weight_decay=0.01):
        self.batches, self.loss, self.rate, self.steps, self.done = (
            batches,
            loss,
            rate,
            steps,
            0,
        )
        with seeded(seed):
            self.model = make()
            self.state = torch.get_rng_state()  # goes on with the dropout
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=rate, weight_decay=weight_decay, fused=True
        )

    def go_on_to(self, step):
        """Make updates until there are so many, and leave the model in evaluation mode.

        Stopping on the way changes nothing: the numbers are those of one run.
        """
        warm = self.steps // 10
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.state)
            for s in range(self.done, step):
                factor = min((s + 1) / warm, (self.steps - s) / (self.steps - warm))
                loss = self.loss(self.model, *next(self.batches))
                make_update(self.model, self.optimizer, loss, rate=self.rate * factor)
            self.state = torch.get_rng_state()
        self.done = step
        self.model.eval()
        return self


def choose(kind, inputs, start, loss):
    """Try every rate of a kind, finish the best training, and return it with the losses.

    Parameters
    ----------
    kind : str
        The kind of model.
    inputs : dict
        ``rates`` of each kind, and ``trial``, the number of updates of a trial.
    start : callable
        ``start(kind, rate)`` returns a fresh :class:`Training`.
    loss : callable
        ``loss(kind, model)`` returns the loss to compare, on data kept for this.

    Returns
    -------
    training : Training
        The finished one, whose loss after the trial was the lowest.
    losses : dict of str to float
        The losses after the trial, by rate.
    """
    tried = [start(kind, rate).go_on_to(inputs["trial"]) for rate in inputs["rates"][kind]]
    losses = {str(t.rate): loss(kind, t.model) for t in tried}
    best = min(tried, key=lambda t: losses[str(t.rate)])
    return best.go_on_to(best.steps), losses


def compare(inputs, start, loss, measure):
    """Return what each kind of model learns, all with the same tuning.

    Parameters
    ----------
    inputs : dict
        As in :func:`choose`, and ``parts``: with ``"early"`` each kind makes ``early`` updates
        with its first rate, with ``"full"`` it is trained with the better one.
    start, loss : callable
        As in :func:`choose`.
    measure : callable
        ``measure(kind, model)`` returns a dict of what a finished model does.

    Returns
    -------
    dict
        ``early[kind]``, the loss after the early updates, and for each kind a dict with
        ``parameters``, the chosen ``rate``, the losses of the ``trial`` by rate, and what is
        measured.
    """
    found = {}
    if "early" in inputs["parts"]:
        found["early"] = {
            kind: loss(kind, start(kind, rates[0]).go_on_to(inputs["early"]).model)
            for kind, rates in inputs["rates"].items()
        }
    if "full" in inputs["parts"]:
        for kind in inputs["rates"]:
            training, losses = choose(kind, inputs, start, loss)
            found[kind] = {
                "parameters": sum(p.numel() for p in training.model.parameters()),
                "rate": training.rate,
                "trial": losses,
                **measure(kind, training.model),
            }
    return found
