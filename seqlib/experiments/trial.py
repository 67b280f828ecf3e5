"""Training that can be continued, so that learning rates are tried before one is chosen."""

import torch
from torch import nn

__all__ = ["Training", "choose"]


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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
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
                self.optimizer.param_groups[0]["lr"] = self.rate * factor
                loss = self.loss(self.model, *next(self.batches))
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
            self.state = torch.get_rng_state()
        self.done = step
        self.model.eval()
        return self


def choose(rates, start, measure, trial):
    """Try every rate for the first updates, finish the best, and return it with the losses.

    Parameters
    ----------
    rates : list of float
        The rates.
    start : callable
        ``start(rate)`` returns a fresh :class:`Training`.
    measure : callable
        ``measure(model)`` returns the loss to compare, on data kept for this.
    trial : int
        Number of updates of a trial.

    Returns
    -------
    training : Training
        The finished one, whose loss after the trial was the lowest.
    losses : dict of str to float
        The losses after the trial, by rate.
    """
    tried = [start(rate).go_on_to(trial) for rate in rates]
    losses = {str(t.rate): measure(t.model) for t in tried}
    best = min(tried, key=lambda t: losses[str(t.rate)])
    return best.go_on_to(best.steps), losses
