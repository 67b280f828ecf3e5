"""Isolation levels: sets of layers, each of which stops some of what code might try.

==========  ===================================================================================
namespaces  own file tree, process numbers, network, host name; no privileges
landlock    no file, TCP port or signal beyond a list, without namespaces
seccomp     no system call beyond a list
limits      memory, processes, open files, file size, CPU time of each process
==========  ===================================================================================

What the judge watches from outside (time, memory of all processes, size of every answer, the
end of every process) holds at each level.
"""

LAYERS = ("namespaces", "landlock", "seccomp", "limits")
LEVELS = {
    "namespaces": frozenset({"namespaces", "seccomp", "limits"}),
    "landlock": frozenset({"landlock", "seccomp", "limits"}),
    "none": frozenset({"limits"}),
}


def layers_of(level):
    """Return the layers of a level, or of a set of layers.

    Raises
    ------
    ValueError
        If it is neither a level nor a set of layers.
    """
    if isinstance(level, str) and level in LEVELS:
        return LEVELS[level]
    if not isinstance(level, str) and set(level) <= set(LAYERS):
        return frozenset(level)
    raise ValueError(f"level must be one of {', '.join(LEVELS)}, got {level!r}")
