"""What a submission may use: time, memory, processes, files and output."""

from dataclasses import asdict, dataclass, replace

from ....subject.timelimit import PATIENCE

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Limits of one submission.

    Time limits count CPU seconds of all its processes, so that the same code gets the same
    answer on a busy machine; ``patience`` times as many seconds may pass on the clock, which
    ends code that waits. With ``call = 5`` and ``patience = 3`` an endless loop is stopped
    after 5 s of computing, a ``sleep(1000)`` after 15 s.

    Attributes
    ----------
    call, cell, submission : float
        CPU seconds of one call, one cell, and everything together.
    patience : float
        Seconds on the clock for each CPU second.
    memory : int
        Bytes of all processes together, beyond what they share with the fork server.
    address_space : int
        Bytes that one process may reserve (RLIMIT_AS).
    processes, files, file_size : int
        Processes and threads, open files of one process, bytes of one file.
    folder, folder_entries : int
        Bytes and entries of the folder that the submission may write.
    output, call_output : int
        Characters of output of the notebook and of one call.
    answer : int
        Bytes of one answer. It bounds the memory of the judge.
    ask_numbers : int
        Numbers in the arguments of one call to a function of the judge.
    asks : int
        Such calls in one request.
    skipped : int
        Cells that may end or block the process before the rest is given up.
    restarts : int
        How often the process may be started again for other reasons.
    """

    call: float = 5.0
    cell: float = 30.0
    submission: float = 120.0
    patience: float = PATIENCE
    memory: int = 1536 * MIB
    address_space: int = 2048 * MIB
    processes: int = 24
    files: int = 128
    file_size: int = 16 * MIB
    folder: int = 32 * MIB
    folder_entries: int = 2000
    output: int = 200_000
    call_output: int = 5_000
    answer: int = 8 * MIB
    ask_numbers: int = 2048
    asks: int = 10_000
    skipped: int = 3
    restarts: int = 3

    def for_torch(self):
        """Return the limits of a submission that uses PyTorch, which reserves 0.7 GiB."""
        return replace(
            self,
            memory=max(self.memory, 3072 * MIB),
            address_space=max(self.address_space, 4096 * MIB),
        )

    def as_dict(self):
        """Return the limits as a plain value."""
        return asdict(self)


def apply(limits):
    """Set the resource limits of this process, for it and its children.

    A limit that is already lower stays.
    """
    import resource  # not on Windows

    for name, value in (
        ("CORE", 0),
        ("AS", limits.address_space),
        ("CPU", int(limits.submission) + 1),
        ("NPROC", limits.processes),
        ("NOFILE", limits.files),
        ("FSIZE", limits.file_size),
        ("STACK", 64 * MIB),
        ("MEMLOCK", 0),
        ("MSGQUEUE", 0),
        ("RTPRIO", 0),
        ("SIGPENDING", 256),
    ):
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(which, (value, value))
