"""Requests, replies and the protocol that both subjects follow."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Reply:
    """What came back from one request.

    Attributes
    ----------
    value : object
        A plain value (see ``seqlib.subject.values``), or None if the request failed.
    error : str or None
        ``"ValueError: heads must ..."`` if the student's code raised, else None.
    where : tuple of str
        Frames of the student's code, innermost last, ``"line 3 in attention"``.
    modified : tuple of str
        Arguments that the call changed in place, by position (``"0"``) or name.
    stdout : str
        What the call printed, cut to a few thousand characters.
    fault : str or None
        Why there is no answer at all: ``"timeout"``, ``"crash"``, ``"memory"``,
        ``"protocol"`` (bytes that are no reply) or ``"unsupported"`` (a value that is not
        plain); else None. ``error`` then holds the sentence for the student.
    """

    value: object = None
    error: str | None = None
    where: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    stdout: str = ""
    fault: str | None = None

    @property
    def ok(self):
        """Whether a value came back."""
        return self.error is None and self.fault is None


class Subject(Protocol):
    """Code under judgement.

    ``request`` is a dict of plain values that names what to do:

    ``{"do": "call", "args": [...], "kwargs": {...}}``
        Call the student's function.
    ``{"do": "module", "args", "kwargs", "state", "inputs", "cotangent", "mode"}``
        Build a ``torch.nn.Module`` with the student's class, load the weights, run it forward
        and, if a cotangent is given, backward: a dict of output, gradients by parameter
        name and gradients of the inputs.
    ``{"do": "keep", ...}``, ``{"do": "use", ...}``
        Build an object that stays with the student's code, and use it later (a trained model).

    Arguments may contain :class:`~seqlib.subject.values.Seed` (a generator is made from it)
    and :class:`~seqlib.subject.values.Handle` (a function that stays with the judge; the
    student's code calls it and gets a plain value).
    """

    def perform(self, request: dict) -> Reply:
        """Carry out one request."""
        ...

    def fresh(self) -> "Subject":
        """Return the same code in the state it had before any request."""
        ...

    def close(self) -> None:
        """End it."""
        ...
