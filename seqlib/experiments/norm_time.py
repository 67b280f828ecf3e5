"""What LayerNorm and RMSNorm cost: operations counted, processor time measured.

Operations are counted by numbers that count, on which the library's own functions run. Times
are those of float32 arrays, as ratios of RMSNorm to LayerNorm, so that the speed of the machine
cancels; which of the two is faster still depends on the program that computes them. Without
repetitions ``run`` only counts, which is what a test computes again.
"""

import statistics
import time

import numpy as np

from seqlib.np.norm import layer_norm, rms_norm

INPUTS = {"tokens": 16, "width": 512, "rounds": 200}
REDUCED = {**INPUTS, "rounds": 0}
SEEDS = (0, 1, 2, 3, 4)
TOLERANCE = {"rtol": 0.0, "atol": 0.0}
PACKAGES = ("numpy", "torch")
CALLS = 20  # in one measurement, since a clock's ticks are longer than a call


def run(inputs, seed):
    """Return operations per token and, with repetitions, ratios of time.

    Parameters
    ----------
    inputs : dict
        ``tokens`` and ``width`` of the array, and ``rounds``.
    seed : int
        Seed of the array.

    Returns
    -------
    dict
        ``operations["layer_norm"|"rms_norm"]``, and ``ratio["numpy"|"pytorch"]``: the median
        over the rounds of the time of RMSNorm over that of LayerNorm.
    """
    width = inputs["width"]
    gain, shift = np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    found = {
        "operations": {
            "layer_norm": operations(layer_norm, gain, shift),
            "rms_norm": operations(rms_norm, gain),
        }
    }
    if inputs["rounds"]:
        shape = (inputs["tokens"], width)
        x = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
        found["ratio"] = {
            "numpy": ratio(
                lambda: rms_norm(x, gain), lambda: layer_norm(x, gain, shift), inputs["rounds"]
            ),
            "pytorch": _ratio_in_pytorch(x, gain, shift, inputs["rounds"]),
        }
    return found


def _ratio_in_pytorch(x, gain, shift, rounds):
    import torch

    x, gain, shift = map(torch.from_numpy, (x, gain, shift))
    return ratio(
        lambda: torch.nn.functional.rms_norm(x, gain.shape, gain),
        lambda: torch.nn.functional.layer_norm(x, gain.shape, gain, shift),
        rounds,
    )


def ratio(function, reference, rounds):
    """Return the median over rounds of the processor time of one function over another's."""
    return statistics.median(seconds(function) / seconds(reference) for _ in range(rounds))


def seconds(function):
    """Return the processor time of some calls."""
    start = time.process_time()
    for _ in range(CALLS):
        function()
    return time.process_time() - start


def operations(function, *parameters):
    """Return how many additions, products, quotients, powers and roots one token takes."""
    Counted.count = 0
    function(np.array([Counted(float(i)) for i in range(len(parameters[0]))]), *parameters)
    return Counted.count


class Counted:
    """A number that counts the operations in which such numbers take part."""

    count = 0

    def __init__(self, value):
        self.value = value

    def _counted(self, value):
        Counted.count += 1
        return Counted(value)

    def __add__(self, other):
        return self._counted(self.value + getattr(other, "value", other))

    def __sub__(self, other):
        return self._counted(self.value - getattr(other, "value", other))

    def __mul__(self, other):
        return self._counted(self.value * getattr(other, "value", other))

    def __truediv__(self, other):
        return self._counted(self.value / getattr(other, "value", other))

    def __rtruediv__(self, other):
        return self._counted(other / self.value)

    def __pow__(self, power):
        return self._counted(self.value**power)

    def sqrt(self):
        """Return the root; ``np.sqrt`` of an array of objects calls this."""
        return self._counted(self.value**0.5)
