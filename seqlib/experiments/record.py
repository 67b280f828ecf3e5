"""Result files: what was computed, from which inputs and seeds, with which versions."""

import hashlib
import json
import os
import platform
from contextlib import contextmanager
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
    return read(name, folder, "result")


def read(name, folder, what):
    """Return the content of ``folder/name.json``; the message calls it a committed ``what``."""
    path = folder / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none"
        raise ValueError(f"name must be that of a committed {what} ({there}), got {name!r}")
    return json.loads(path.read_text(encoding="utf-8"))


def compute(name, script, folder=FOLDER):
    """Run a script with all its seeds, write the record, and return how many seeds were there.

    Every seed that is finished is kept beside ``folder``, in ``_build``, until the record is
    written. So a call after an interruption runs the other seeds alone, unless the inputs, a
    version or the code have changed since.
    """
    packages = getattr(script, "PACKAGES", ("numpy",))
    kept = folder.parent / "_build" / f"{name}.json"
    origin = {**origin_of(name, script.INPUTS, packages), "code": _code()}
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    by_seed = found.get("by_seed", {})
    if by_seed and found["origin"] != origin:
        print(f"{name}: kept seeds have other inputs, versions or code; all run anew")
        by_seed = {}
    before = len(by_seed)
    for seed in script.SEEDS:
        if str(seed) not in by_seed:
            by_seed[str(seed)] = script.run(script.INPUTS, seed)
            save(kept, json.dumps({"origin": origin, "by_seed": by_seed}))
    by_seed = {seed: by_seed[str(seed)] for seed in script.SEEDS}
    write(name, script.INPUTS, by_seed, packages, folder)
    kept.unlink(missing_ok=True)  # another call may have done the same
    return before


def write(name, inputs, by_seed, packages=("numpy",), folder=FOLDER):
    """Write the record of one script; ``by_seed`` maps each seed to its results."""
    record = {
        **origin_of(name, inputs, packages, seeds=list(by_seed)),
        "results": average(list(by_seed.values())),
        "by_seed": list(by_seed.values()),
    }
    text = json.dumps(round_numbers(record), indent=1, ensure_ascii=False)
    save(folder / f"{name}.json", text)


def origin_of(name, inputs, packages, **seeds):
    """Return what a file says about where its numbers come from."""
    return {
        "script": f"seqlib.experiments.{name}",
        "inputs": inputs,
        **seeds,
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
    }


def _code():
    """Return a hash of the library without the grader, which no script uses."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "grading" not in path.relative_to(root).parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def save(path, text):
    """Write a line or more of text to a file, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(f"{text}\n".encode())


@contextmanager
def whole_file(path):
    """Open a file to write bytes; a kill at any moment leaves what was there, or all of it."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


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
