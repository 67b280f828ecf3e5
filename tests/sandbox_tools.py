"""What the tests of the sandbox share."""

import textwrap

import pytest

from seqlib.grading.sandbox.box import Sandbox
from seqlib.grading.sandbox.errors import SandboxUnavailable
from seqlib.grading.sandbox.inside.limits import MIB, Limits
from seqlib.grading.sandbox.inside.processes import still_there
from seqlib.grading.sandbox.probe import hole

# Small, so that hostile code is stopped soon; CPU seconds, so that a busy machine is no matter.
LIMITS = Limits(
    call=0.5,
    cell=0.5,
    submission=60.0,
    patience=4.0,
    memory=256 * MIB,
    address_space=1024 * MIB,
    file_size=MIB,
    output=20_000,
)


def open_sandbox(level, **options):
    """Return a sandbox at ``"best"`` or another level; skip if the machine lacks it."""
    try:
        sandbox = Sandbox(level=None if level == "best" else level, **options)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    reason = None if level in ("best", "none") else hole(sandbox)
    if reason is not None:
        sandbox.close()
        pytest.skip(f"this machine does not offer the level {level}: {reason}")
    return sandbox


def run(submission, source):
    """Run an indented cell."""
    return submission.run_cell(textwrap.dedent(source))


def call(subject, *args, **kwargs):
    """Call the subject's function."""
    return subject.perform({"do": "call", "args": list(args), "kwargs": kwargs})


def assert_gone(processes):
    """Assert that none of the processes lives on."""
    assert processes
    assert still_there(processes, seconds=5.0) == {}
