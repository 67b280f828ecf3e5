"""Scripts with all their seeds from one call: what is finished outlives an interruption."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from seqlib.experiments import __main__ as command
from seqlib.experiments import load, record


def script(*, stop=None, inputs=None):
    """Return a script that notes the seeds that it ran, and is interrupted before ``stop``."""
    ran = []

    def run(inputs, seed):
        if seed == stop:
            raise KeyboardInterrupt
        ran.append(seed)
        return {"a": {"1": seed + inputs["n"] / 3}}

    return SimpleNamespace(
        INPUTS=inputs or {"n": 2}, SEEDS=(3, 7, 9), PACKAGES=("numpy",), run=run, ran=ran
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "results"


def interrupted(folder, stop=9):
    with pytest.raises(KeyboardInterrupt):
        record.compute("demo", script(stop=stop), folder)


def files(folder):
    return sorted(p.name for p in folder.parent.rglob("*") if p.is_file())


def test_finished_seeds_are_kept_and_the_record_is_the_same(folder, tmp_path):
    interrupted(folder)
    assert not (folder / "demo.json").exists()
    rest = script()
    assert record.compute("demo", rest, folder) == 2
    assert rest.ran == [9]
    whole = tmp_path / "whole" / "results"
    assert record.compute("demo", script(), whole) == 0
    assert (folder / "demo.json").read_bytes() == (whole / "demo.json").read_bytes()
    assert [row["a"]["1"] for row in load("demo", folder)["by_seed"]] == pytest.approx(
        [3 + 2 / 3, 7 + 2 / 3, 9 + 2 / 3], rel=1e-9
    )
    assert files(whole) == ["demo.json"]


def test_a_record_is_that_of_write(folder, tmp_path):
    record.compute("demo", script(), folder)
    by_seed = {seed: {"a": {"1": seed + 2 / 3}} for seed in (3, 7, 9)}
    record.write("demo", {"n": 2}, by_seed, folder=tmp_path)
    assert (folder / "demo.json").read_bytes() == (tmp_path / "demo.json").read_bytes()


def test_a_finished_script_runs_anew(folder, capsys):
    record.compute("demo", script(), folder)
    again = script()
    assert record.compute("demo", again, folder) == 0
    assert again.ran == [3, 7, 9]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("changed", ["inputs", "code", "version"])
def test_seeds_of_another_state_are_not_taken(changed, folder, monkeypatch, capsys):
    interrupted(folder)
    again = script(inputs={"n": 5} if changed == "inputs" else None)
    if changed == "code":
        monkeypatch.setattr(record, "_code", lambda: "other")
    if changed == "version":
        monkeypatch.setattr(record, "version", lambda package: "0.0")
    assert record.compute("demo", again, folder) == 0
    assert again.ran == [3, 7, 9]
    assert capsys.readouterr().out.startswith("demo: kept seeds have other inputs, versions or")


def test_the_code_is_that_of_the_library_without_the_grader(tmp_path, monkeypatch):
    for name in ("np/a.py", "grading/b.py", "experiments/record.py"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text("A = 1\n")
    monkeypatch.setattr(record, "__file__", str(tmp_path / "experiments" / "record.py"))
    before = record._code()
    (tmp_path / "grading" / "b.py").write_text("A = 2\n")
    assert record._code() == before
    (tmp_path / "np" / "a.py").write_text("A = 2\n")
    assert record._code() != before


KILLED = """
import os, signal
from pathlib import Path
from types import SimpleNamespace
from seqlib.experiments import record

def run(inputs, seed):
    if seed == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return {{"a": {{"1": seed + 2 / 3}}}}

script = SimpleNamespace(INPUTS={{"n": 2}}, SEEDS=(3, 7, 9), PACKAGES=("numpy",), run=run)
record.compute("demo", script, Path({folder!r}))
"""


def test_a_killed_call_leaves_its_seeds(folder):
    process = subprocess.run([sys.executable, "-c", KILLED.format(folder=str(folder))])
    assert process.returncode == -signal.SIGKILL
    rest = script()
    assert record.compute("demo", rest, folder) == 1
    assert rest.ran == [7, 9]
    assert files(folder) == ["demo.json"]


def test_a_write_that_fails_leaves_the_record_and_the_seeds(folder, monkeypatch):
    record.compute("demo", script(), folder)
    before = (folder / "demo.json").read_bytes()
    replace = os.replace

    def fails(part, path):
        if path.parent == folder:
            raise OSError("no space left")
        replace(part, path)

    monkeypatch.setattr(record.os, "replace", fails)
    with pytest.raises(OSError, match="no space"):
        record.compute("demo", script(inputs={"n": 4}), folder)
    monkeypatch.undo()
    assert (folder / "demo.json").read_bytes() == before
    rest = script(inputs={"n": 4})
    assert record.compute("demo", rest, folder) == 3
    assert rest.ran == []
    assert json.loads((folder / "demo.json").read_text())["inputs"] == {"n": 4}


def test_a_call_that_ends_within_another_one_does_not_disturb_it(folder):
    """The one that ends last finds nothing kept any more."""
    other = script()

    def run(inputs, seed):
        if seed == 9:
            record.compute("demo", other, folder)
        return script().run(inputs, seed)

    first = SimpleNamespace(INPUTS={"n": 2}, SEEDS=(3, 7, 9), PACKAGES=("numpy",), run=run)
    assert record.compute("demo", first, folder) == 0
    assert other.ran == [9]
    assert files(folder) == ["demo.json"]


@pytest.mark.parametrize(("before", "note"), [(0, ""), (2, ", 2 of them from before")])
def test_the_command_says_what_was_there(before, note, monkeypatch, capsys):
    asked = []

    def compute(name, script):
        asked.append((name, script.__name__))
        return before

    monkeypatch.setattr(command, "compute", compute)
    command.main(["speech"])
    assert asked == [("speech", "seqlib.experiments.speech")]
    first, _ = capsys.readouterr().out.splitlines()
    assert first.split(" s", 1)[0].startswith("speech")
    assert first.endswith(f" s{note}")
