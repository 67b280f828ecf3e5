"""Parameters of trained models as plain numbers, small enough to be committed.

A row of a matrix is written as whole numbers from -127 to 127 and one scale: its largest entry
divided by 127. If the script has a ``STEP``, all its parameters are whole multiples of it, and
these are written. ``python -m seqlib.experiments.weights translation`` trains the model that a
page shows and writes ``weights/translation.json``.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

import torch

from seqlib.experiments.record import origin_of, read, save

__all__ = ["load_into", "pack", "unpack", "write"]

FOLDER = Path(__file__).parent / "weights"
LARGEST = 127
SHOWN = ("captioning", "speech", "translation")  # scripts whose model a page shows


def pack(tensor, step=None):
    """Return the shape, the scales of the rows or the step, and the entries as whole numbers.

    ``pack(torch.tensor([[0.5, -1.0]]))`` has the scale 1/127 and the entries 64 and -127; with
    the step 0.01 the entries are 50 and -100, and nothing is lost.
    """
    rows = tensor.detach().reshape(len(tensor), -1).double()
    if step is not None:
        entries = (rows / step).round().int().flatten().tolist()
        return {"shape": list(tensor.shape), "step": step, "entries": entries}
    scales = rows.abs().amax(dim=1) / LARGEST
    scales = torch.where(scales > 0, scales, 1.0)  # a row of zeros
    # Rounded first, so that the entries fit the scale that the file holds.
    scales = torch.tensor([float(f"{scale:.5g}") for scale in scales.tolist()]).double()
    entries = (rows / scales[:, None]).round().clamp(-LARGEST, LARGEST).int()
    return {
        "shape": list(tensor.shape),
        "scales": [float(f"{scale:.5g}") for scale in scales.tolist()],
        "entries": entries.flatten().tolist(),
    }


def unpack(packed):
    """Return the tensor that :func:`pack` was given, up to half a scale."""
    rows = torch.tensor(packed["entries"]).double().reshape(packed["shape"][0], -1)
    if "step" in packed:
        rows = rows * packed["step"]
    else:
        rows = rows * torch.tensor(packed["scales"]).double()[:, None]
    return rows.reshape(packed["shape"]).float()


def write(name, model, inputs, seed, folder=FOLDER, step=None):
    """Write the parameters of a model, with what they come from."""
    parameters = {key: pack(tensor, step) for key, tensor in model.state_dict().items()}
    origin = origin_of(name, inputs, ("numpy", "torch"), seed=seed)
    record = {**origin, "parameters": parameters}
    save(folder / f"{name}.json", json.dumps(record, separators=(",", ":")))


def load_into(name, model, folder=FOLDER):
    """Give a model of the right shape the committed parameters, and return it for use.

    Raises
    ------
    ValueError
        If there is no such file.
    """
    parameters = read(name, folder, "model")["parameters"]
    model.load_state_dict({key: unpack(packed) for key, packed in parameters.items()})
    return model.eval()


def main(arguments):
    """Train the shown model of each script with its first seed, and write it."""
    parser = argparse.ArgumentParser(
        prog="python -m seqlib.experiments.weights",
        description="Train the models that pages show, and write their parameters.",
    )
    parser.add_argument("name", nargs="+", choices=SHOWN)
    for name in parser.parse_args(arguments).name:
        script = importlib.import_module(f"seqlib.experiments.{name}")
        seed = script.SEEDS[0]
        model = script.shown_model(script.INPUTS, seed)
        write(name, model, script.INPUTS, seed, step=getattr(script, "STEP", None))


if __name__ == "__main__":
    main(sys.argv[1:])
