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
        ``"protocol"`` (bytes that are no reply), ``"unsupported"`` (a value that is not
        plain), ``"interrupted"`` (Ctrl-C, or a notebook's time limit) or ``"stopped"`` (not
        asked, because the whole submission had been given up); else None.
        ``error`` then holds the sentence for the student.
    warnings : tuple of str
        The first few different warnings, ``"RuntimeWarning: divide by zero ..."``.
    """

    value: object = None
    error: str | None = None
    where: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    stdout: str = ""
    fault: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def ok(self):
        """Whether a value came back."""
        return self.error is None and self.fault is None


def reply_from(fields):
    """Make a ``Reply`` of the dict that ``Session.perform`` returned.

    Raises
    ------
    TypeError
        If a field is missing, unknown or of another type: the far side is not trusted.
    """
    if type(fields) is not dict or set(fields) != set(_FIELDS):
        raise TypeError("a reply must be a dict with the fields of Reply")
    for name, kinds in _FIELDS.items():
        value = fields[name]
        if kinds is list:
            good = type(value) is list and all(type(text) is str for text in value)
        else:
            good = kinds is object or isinstance(value, kinds)
        if not good:
            raise TypeError(f"field {name} of a reply must not be a {type(value).__name__}")
    return Reply(**{k: tuple(v) if _FIELDS[k] is list else v for k, v in fields.items()})


_FIELDS = {
    "value": object,
    "error": str | None,
    "where": list,
    "modified": list,
    "stdout": str,
    "fault": str | None,
    "warnings": list,
}


class Subject(Protocol):
    """Code under judgement.

    ``request`` is a dict of plain values that names what to do:

    ``{"do": "call", "args": [...], "kwargs": {...}}``
        Call the student's function.
    ``{"do": "differentiate", "args", "kwargs"}``
        Call it with a tensor first that requires a gradient, and go back to that: a dict of
        ``"output"`` and ``"gradient"`` (see ``seqlib.subject.modules``).
    ``{"do": "module", "args", "kwargs", "state", "inputs", "cotangent", "mode"}``
        Build a ``torch.nn.Module`` with the student's class, load the weights, run it forward
        and, if a cotangent is given, backward: a dict of ``"output"``, ``"gradients"`` by
        parameter name and ``"input_gradients"`` (see ``seqlib.subject.modules``).
    ``{"do": "keep", "name": "model", "args", "kwargs"}``
        Call the student's function and keep the object that it returns (a trained model);
        the value of the reply is None.
    ``{"do": "use", "name": "model", "method": None, "args", "kwargs"}``
        Call that object, or a method of it.

    Three entries may go with each: ``"refuse"`` (names of library functions that raise
    meanwhile), ``"globals"`` (values that stand in for globals of the student's code
    meanwhile) and ``"seconds"`` (limit for this request; a subject that can stop the code
    replies with the fault ``"timeout"``).

    Arguments may contain :class:`~seqlib.subject.values.Seed` (a generator is made from it),
    :class:`~seqlib.subject.values.AsTensor` (a tensor is made from it) and
    :class:`~seqlib.subject.values.Handle` (a function that stays with the judge; the
    student's code calls it and gets a plain value).

    A subject behind a wire may have a method ``announce(requests)`` too, which says what will
    be asked next and in which order.
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
