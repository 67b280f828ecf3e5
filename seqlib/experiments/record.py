"""Result files: what was computed, from which inputs and seeds, with which versions."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent / "results"


def load(name, folder=FOLDER):
    """Return the committed record of one script.

    Returns
    -------
    dict
        ``inputs``, ``seeds``, ``versions``, ``by_seed`` (one nested dict of numbers a seed),
        ``results`` (the same dict, averaged over the seeds).

    Raises
    ------
    ValueError
        If there is no such file.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none"
        raise ValueError(f"name must be that of a committed result ({there}), got {name!r}")
    return json.loads(path.read_text(encoding="utf-8"))


def write(name, inputs, by_seed, packages=("numpy",), folder=FOLDER):
    """Write the record of one script; ``by_seed`` maps each seed to its results."""
    record = {
        "script": f"seqlib.experiments.{name}",
        "inputs": inputs,
        "seeds": list(by_seed),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
        "results": average(list(by_seed.values())),
        "by_seed": list(by_seed.values()),
    }
    folder.mkdir(exist_ok=True)
    text = json.dumps(round_numbers(record), indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def average(trees):
    """Return the mean of nested dicts with equal keys, number by number.

    >>> average([{"a": {"b": 1.0}}, {"a": {"b": 3.0}}])
    {'a': {'b': 2.0}}
    """
    first = trees[0]
    if isinstance(first, dict):
        return {key: average([tree[key] for tree in trees]) for key in first}
    return sum(trees) / len(trees)


def leaves(tree, path=""):
    """Yield ``(path, number)`` for every number of a nested dict.

    >>> list(leaves({"a": {"b": 1.0}, "c": 2.0}))
    [('a.b', 1.0), ('c', 2.0)]
    """
    for key, value in tree.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict):
            yield from leaves(value, name)
        else:
            yield name, value


def round_numbers(tree):
    """Return a tree with floats cut to ten significant digits, so that files stay short."""
    if isinstance(tree, dict):
        return {key: round_numbers(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [round_numbers(value) for value in tree]
    return float(f"{tree:.10g}") if isinstance(tree, float) else tree
