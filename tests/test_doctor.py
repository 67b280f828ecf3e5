"""The doctor finds every protection in place, and each hole when the level is lowered."""

import os

import pytest
from sandbox_tools import open_sandbox

from seqlib.grading.sandbox import attempts, doctor
from seqlib.grading.sandbox.doctor import ESSENTIAL, essential_holes, run_doctor
from seqlib.grading.sandbox.isolation import probe
from seqlib.grading.sandbox.levels import LEVELS, layers_of
from seqlib.grading.sandbox.outside import Outside
from seqlib.grading.sandbox.probe import hole

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

# What the judge does from outside holds at every level.
FROM_OUTSIDE = {
    *("references in memory", "open descriptors", "environment"),
    *("memory of one process", "memory of all processes", "size of all files"),
    *("time of a loop", "time of a stopped process", "output", "forged answers"),
    "processes left behind",
}


@pytest.fixture(scope="module")
def best():
    with open_sandbox("best", plots=False) as sandbox:
        return sandbox.level


@pytest.fixture
def landlock():
    open_sandbox("landlock", plots=False).close()


def holes(findings):
    assert len(findings) == len(doctor._TRIED) + 1
    assert all(f.tried and f.detail for f in findings)
    return {f.protection for f in findings if not f.holds}


def test_every_protection_holds_at_the_best_level(best):
    found = run_doctor()
    known = {"names and sizes of other files"} if best == "landlock" else set()
    assert holes(found) == known
    assert essential_holes(found) == []


def test_landlock_leaves_names_and_sizes_readable(landlock):
    found = run_doctor("landlock")
    assert holes(found) == {"names and sizes of other files"}
    assert essential_holes(found) == []


def test_without_layers_each_attempt_succeeds_and_is_reported(best):
    """Every attempt is a real one: with nothing to stop it, it does what it says."""
    found = run_doctor(())
    everything = {protection for protection, *_ in doctor._TRIED} | {"everything outside"}
    assert holes(found) == everything - FROM_OUTSIDE
    assert {f.protection for f in essential_holes(found)} == ESSENTIAL - FROM_OUTSIDE


def test_a_lower_level_reports_its_holes(best):
    found = run_doctor("none")
    by_name = {f.protection: f for f in found}
    for name in ("course files", "other files", "writing outside", "network", "other programs"):
        assert not by_name[name].holds
    assert by_name["size of a file"].holds
    assert by_name["number of threads"].holds
    assert "/etc/passwd" in by_name["other files"].detail
    assert "the TCP server" in by_name["everything outside"].detail
    assert essential_holes(found)


def test_every_attempt_is_made():
    defined = {
        n
        for n, v in vars(attempts).items()
        if getattr(v, "__module__", "") == attempts.__name__
    }
    assert defined == {name for _, name, _ in doctor._TRIED}


def test_the_probe_finds_a_level_that_is_no_level(best):
    """A level that locks in without an error but stops nothing is not taken."""
    assert probe() == best
    with open_sandbox("none", plots=False) as sandbox:
        assert "course_files: read" in hole(sandbox)


def test_levels():
    assert list(LEVELS) == ["namespaces", "landlock", "none"]
    assert layers_of({"seccomp"}) == {"seccomp"}
    with pytest.raises(ValueError, match="level must be one of"):
        layers_of({"seccomp", "magic"})


def test_the_doctor_leaves_nothing_in_the_environment(best):
    assert "SEQLIB_DOCTOR" not in os.environ


def test_a_long_path_of_temporary_files_is_no_obstacle(tmp_path):
    """The path of a Unix socket has 107 characters at most."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    with Outside(folder) as outside:
        assert outside.facts
    assert list(folder.glob("*/socket")) == []
