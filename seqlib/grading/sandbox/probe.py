"""Whether an isolation level works on a machine: found by trying, not by reading settings."""

import inspect
import tempfile
from pathlib import Path

from . import attempts
from .errors import SandboxError
from .outside import Outside
from .student_build import write_student_build

# One quick attempt on each of files, network, processes and programs.
_QUICK = ("course_files", "other_files", "writing", "connecting", "signalling", "executing")


def hole(sandbox):
    """Return what is wrong with a sandbox's level on this machine, None if it works.

    Every step of locking in is made and a few attacks are tried: a kernel may accept a step
    without effect, or, as with user namespaces under AppArmor, refuse a later one.
    """
    try:
        return _hole(sandbox)
    except SandboxError as error:
        return str(error)


def _hole(sandbox):
    with tempfile.TemporaryDirectory() as folder, Outside(Path(folder)) as outside:
        build = write_student_build((), Path(folder) / "build")
        with sandbox.open(build) as submission:
            submission.run_cell(inspect.getsource(attempts))
            for name in _QUICK:
                with submission.subject(name) as subject:
                    reply = subject.perform({"do": "call", "args": [outside.facts]})
                if reply.value is not None or reply.fault is not None:
                    return f"{name}: {reply.value or reply.error}"
    return None
