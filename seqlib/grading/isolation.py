"""Whether this machine isolates students' code well enough to run it."""


class IsolationError(RuntimeError):
    """The machine offers too little; the message says what to do."""


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
    from seqlib.grading.levels import layers_of
    from seqlib.grading.probe import best_level

    chosen = best_level() if level is None else level
    if chosen is None or not layers_of(chosen) & {"namespaces", "landlock"}:
        raise IsolationError(
            "this machine cannot keep students' code away from its files, network and "
            "processes; `seqlib doctor` says what is missing. Grade on a Linux machine or in "
            "a container that allows namespaces or Landlock, or, if you know every student's "
            "code, run it unprotected with --trust-students"
        )
    return chosen
