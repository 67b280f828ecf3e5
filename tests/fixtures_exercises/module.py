"""Kind ``module``: a gain with an offset per channel, as a torch module.

PyTorch is imported where it is needed, so that the other kinds can be tested without it.
"""

import functools

import numpy as np

from seqlib.exercises.record import Criterion, Misconception, Task, module_case


@functools.cache
def gain_class():
    import torch

    class Gain(torch.nn.Module):
        def __init__(self, channels, *, limit=None, wrong=frozenset()):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(channels))
            self.bias = torch.nn.Parameter(torch.zeros(channels))
            self.limit, self.wrong = limit, wrong

        def forward(self, x):
            weight = self.weight.detach() if "detached" in self.wrong else self.weight
            y = x * weight
            if "no_bias" not in self.wrong:
                y = y - self.bias if "minus" in self.wrong else y + self.bias
            if self.limit is not None and "unlimited" not in self.wrong:
                y = torch.clamp(y, -self.limit, self.limit)
            return y

    return Gain


def reference(channels, *, limit=None):
    """Build the module: y = x * weight + bias, cut at ``limit``."""
    return gain_class()(channels, limit=limit)


def variant(channels, *, limit=None, wrong=frozenset()):
    return gain_class()(channels, limit=limit, wrong=wrong)


def cases(rng):
    def case(batch, channels, tag="base", **options):
        def draw(*shape):
            return rng.standard_normal(shape).astype(np.float32)

        return module_case(
            channels,
            state={"weight": draw(channels), "bias": draw(channels)},
            inputs=[draw(batch, channels)],
            cotangent=draw(batch, channels),
            label=f"{channels} channels, {options}",
            tag=tag,
            **options,
        )

    return [case(5, 3), case(2, 7), case(7, 2, "limit", limit=0.5)]


TASK = Task(
    id="fixtures.Gain",
    title="Gain and offset",
    signature="(channels, *, limit=None)",
    equations=(),
    page="gain",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="module",
    criteria=(
        Criterion("values", 2, "output", part="output"),
        Criterion("gradients", 1, "gradients of the parameters", part="gradients"),
        Criterion("inputs", 1, "gradient of the input", part="input_gradients"),
        Criterion("limit", 1, "limit", tag="limit"),
    ),
    misconceptions=(
        Misconception("no_bias", "The offset is not used.", "gain", "ours"),
        Misconception("minus", "The offset is subtracted.", "gain", "ours"),
        Misconception("unlimited", "The limit is not used.", "gain", "ours"),
        Misconception("detached", "The gain is cut from the graph.", "gain", "ours"),
    ),
    options={"parts": {"output": "the output", "gradients": "the table of gradients"}},
)
