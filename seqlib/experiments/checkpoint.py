"""The state of a training run in one file that is always whole."""

import json
from dataclasses import asdict, dataclass, field

import torch

from seqlib._config import check_params
from seqlib.experiments.record import whole_file

__all__ = ["History", "Run"]


@dataclass
class History:
    """What a run leaves behind besides the model.

    Attributes
    ----------
    losses : list of float
        Training loss of every step, before its update.
    validation : list of (int, float)
        Number of updates, and what ``validate`` returned after them.
    """

    losses: list = field(default_factory=list)
    validation: list = field(default_factory=list)


class Run:
    """All that the next step depends on, and how it is written to a file and read back."""

    def __init__(self, model, optimizer, identity):
        self.model, self.optimizer = model, optimizer
        self.identity = json.loads(json.dumps(identity))  # tuples become lists, as in the file
        self.history = History()
        self.rng = None

    def save(self, path):
        """Write the state; a kill at any moment leaves the file before it, or this one."""
        state = {
            "identity": json.dumps(self.identity),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "numpy_rng": json.dumps(self.rng.bit_generator.state),
            "history": json.dumps(asdict(self.history)),
        }
        with whole_file(path) as file:
            torch.save(state, file)

    def load(self, path):
        """Take the state from a file, unless it is of a run with other settings."""
        try:
            state = torch.load(path, weights_only=True)
            identity = json.loads(state["identity"])
        except Exception as error:  # torch.load raises many kinds for a file of another kind
            raise ValueError(
                f"checkpoint must be a file that train wrote, got {path} "
                f"({type(error).__name__}); choose another name"
            ) from error
        for name in {**self.identity, **identity}:
            wanted, found = self.identity.get(name), identity.get(name)
            if wanted != found:
                raise ValueError(
                    f"checkpoint must be of a run with {name} = {_short(wanted)}, got "
                    f"{_short(found)} in {path}; use the same settings, or another file"
                )
        shapes = {name: tuple(p.shape) for name, p in self.model.state_dict().items()}
        check_params(state["model"], shapes, what="checkpoint")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["torch_rng"])
        self.rng.bit_generator.state = json.loads(state["numpy_rng"])
        history = json.loads(state["history"])
        pairs = [tuple(pair) for pair in history["validation"]]
        self.history = History(history["losses"], pairs)


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
