"""Whether this machine isolates students' code well enough to run it."""

_MESSAGE = (
    "this machine cannot keep students' code away from its files, network and processes; "
    "`seqlib doctor` says what is missing. Grade on a Linux machine or in a container that "
    "allows namespaces or Landlock, or, if you know every student's code, run it unprotected "
    "with --trust-students"
)


class IsolationError(RuntimeError):
    """The machine offers too little; the message says what to do."""


def probe():
    """Return the best isolation level that this machine offers, None if it offers none."""
    from seqlib.grading.sandbox.box import Sandbox, SandboxUnavailable

    try:
        with Sandbox(plots=False) as sandbox:
            return sandbox.level
    except SandboxUnavailable:
        return None


def require_isolation(level=None):
    """Return an isolation level that protects files, network, processes and memory.

    Parameters
    ----------
    level : str, optional
        The level asked for; the best that the machine offers if None.

    Raises
    ------
    IsolationError
        If it protects less.
    """
    try:
        from seqlib.grading.sandbox.box import Sandbox, SandboxUnavailable
        from seqlib.grading.sandbox.levels import layers_of
        from seqlib.grading.sandbox.probe import hole
    except ImportError as error:  # not Linux
        raise IsolationError(f"{_MESSAGE} ({error})") from error
    if level is None:
        level = probe()
        if level is None:
            raise IsolationError(_MESSAGE)
        return level
    if not layers_of(level) & {"namespaces", "landlock"}:
        raise IsolationError(f"level {level!r} is not enough: {_MESSAGE}")
    try:
        with Sandbox(level=level, plots=False) as sandbox:
            found = hole(sandbox)
    except SandboxUnavailable as error:
        found = str(error)
    if found:
        raise IsolationError(f"level {level!r} does not work here ({found}): {_MESSAGE}")
    return level
