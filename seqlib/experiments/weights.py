"""Parameters of trained models as plain numbers, small enough to be committed.

A row of a matrix is written as whole numbers from -127 to 127 and one scale: its largest entry
divided by 127. ``python -m seqlib.experiments.weights translation`` trains the model that a
page shows and writes ``weights/translation.json``.
"""

import importlib
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import torch

__all__ = ["load_into", "pack", "unpack", "write"]

FOLDER = Path(__file__).parent / "weights"
LARGEST = 127


def pack(tensor):
    """Return the shape, the scales of the rows, and their entries as whole numbers.

    ``pack(torch.tensor([[0.5, -1.0]]))`` has the scale 1/127 and the entries 64 and -127.
    """
    rows = tensor.detach().reshape(len(tensor), -1).double()
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
    rows = rows * torch.tensor(packed["scales"]).double()[:, None]
    return rows.reshape(packed["shape"]).float()


def write(name, model, inputs, seed, folder=FOLDER):
    """Write the parameters of a model, with what they come from."""
    record = {
        "script": f"seqlib.experiments.{name}",
        "inputs": inputs,
        "seed": seed,
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "torch")},
        },
        "parameters": {key: pack(tensor) for key, tensor in model.state_dict().items()},
    }
    folder.mkdir(exist_ok=True)
    text = json.dumps(record, separators=(",", ":"))
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def load_into(name, model, folder=FOLDER):
    """Give a model of the right shape the committed parameters, and return it for use.

    Raises
    ------
    ValueError
        If there is no such file.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none"
        raise ValueError(f"name must be that of a committed model ({there}), got {name!r}")
    parameters = json.loads(path.read_text(encoding="utf-8"))["parameters"]
    model.load_state_dict({key: unpack(packed) for key, packed in parameters.items()})
    return model.eval()


def main(names):
    """Train the shown model of each script with its first seed, and write it."""
    for name in names:
        script = importlib.import_module(f"seqlib.experiments.{name}")
        seed = script.SEEDS[0]
        write(name, script.shown_model(script.INPUTS, seed), script.INPUTS, seed)


if __name__ == "__main__":
    main(sys.argv[1:])
