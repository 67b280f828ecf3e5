"""What may go wrong between the judge and a submission, and whose doing it is."""


class SandboxError(RuntimeError):
    """The sandbox itself failed: nothing is said about the submission; try again."""


class SandboxUnavailable(SandboxError):
    """The machine does not offer the level that was asked for, or any."""


class Fault(Exception):
    """The submission gave no answer.

    Attributes
    ----------
    kind : str
        ``"timeout"``, ``"crash"``, ``"memory"``, ``"protocol"`` or ``"stopped"``.
    """

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind
