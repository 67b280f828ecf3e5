"""The declarative record of what is graded: tasks, cases, criteria and misconceptions."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = ("values", "backward", "sampling", "text", "module", "student_test", "training")


@dataclass(frozen=True)
class Case:
    """One input on which the answer is compared with the reference.

    Attributes
    ----------
    args, kwargs
        Arguments of the student's function. Arrays are float64 unless the label says
        otherwise.
    label : str
        What is special, as the student reads it: ``"T=5 queries, S=7 keys, causal mask"``.
    tag : str
        Which criterion the case belongs to; ``"base"`` for the base value.
    hidden
        What the evaluation of a training task has to know about the case. The student's
        function is not given it.
    """

    args: tuple
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    tag: str = "base"
    hidden: Any = None


def module_case(
    *build, state, inputs, cotangent=None, mode="eval", label="", tag="base", **options
):
    """Return the case of a task of kind ``"module"``.

    Parameters
    ----------
    *build, **options
        Arguments of the student's class.
    state : dict of str to ndarray, or None
        Value of every parameter, by the name that the text of the task gives.
    inputs : sequence
        Arguments of ``forward``.
    cotangent : ndarray or list, optional
        dy for the output; gradients are compared only if it is given.
    mode : {"eval", "train"}
        State of dropout and the like.
    label, tag : str
        As in :class:`Case`.
    """
    request = {
        "kwargs": options,
        "state": state,
        "inputs": list(inputs),
        "cotangent": cotangent,
        "mode": mode,
    }
    return Case(tuple(build), request, label, tag)


@dataclass(frozen=True)
class Criterion:
    """One line of the mark scheme.

    Either ``holds`` is given, or the answers on the cases with ``tag`` are compared with the
    reference, in one part of the result or in all of it.

    Attributes
    ----------
    name : str
        Stable id within the task, ``"values"``, ``"empty_rows"``, ``"dq"``.
    points : float
        What it pays.
    says : str
        The line that the student reads beside its points: ``"rows without an allowed key"``.
    tag : str
        Cases that belong to it.
    part : int or str or None
        Index (of a tuple) or key (of a dict) of the part that is compared; None for all.
    holds : callable or None
        ``holds(call, rng)``, where ``call(*args, **kwargs)`` runs the student's function and
        returns its plain value, and ``call.last`` is the whole reply: None if the property
        holds, else one phrase that says where it fails. It must not hold for a constant
        answer only because it is constant: it pays only if all ``needs`` hold. Makers of such
        functions are in ``seqlib.exercises.properties``.
    needs : tuple of str
        Criteria without which this one pays nothing. The base value needs nothing.
    dtype : bool
        Whether the dtype of the result must be the reference's (only where the text asks).
    """

    name: str
    points: float
    says: str
    tag: str = "base"
    part: int | str | None = None
    holds: Callable | None = None
    needs: tuple[str, ...] = ("values",)
    dtype: bool = False


@dataclass(frozen=True)
class Misconception:
    """One named mistake.

    Attributes
    ----------
    name : str
        The switch of ``Task.variant``, or the id of ``function``.
    says : str
        One sentence for the student: what was done, not what the answer is.
    page : str
        Label of the section that treats it, ``"attention#scaling"``.
    source : str
        Where the mistake was seen: a repository and thread, or the notes' erratum.
    function : callable or None
        A wrong solution of its own, where the mistake cannot be a switch; it takes no part
        in pairs.
    also : tuple of str
        Other mistakes that have the same output on every legal input; they share this entry.
    """

    name: str
    says: str
    page: str
    source: str
    function: Callable | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tolerance:
    """Relative and absolute tolerance for float64 and float32 answers."""

    rtol64: float = 1e-7
    atol64: float = 1e-9
    rtol32: float = 2e-4
    atol32: float = 2e-5


@dataclass(frozen=True)
class Task:
    """One graded function.

    Attributes
    ----------
    id : str
        ``"<assignment>.<function>"``; the student defines ``<function>``.
    title : str
        Short noun phrase.
    signature : str
        ``"(q, k, v, *, mask=None)"``.
    equations : tuple of str
        Labels of the notes' equations, ``("eq-9",)``.
    page : str
        Section of the book that teaches it.
    reference : callable
        The right answer: same arguments, plain values out.
    cases : callable
        ``cases(rng) -> list of Case``; fresh inputs for every seed.
    criteria : tuple of Criterion
        The base value comes first and is called ``"values"``.
    misconceptions : tuple of Misconception
        Known mistakes.
    variant : callable or None
        ``variant(*args, wrong=frozenset(), **kwargs)``: the teaching variant with a switch
        for each misconception without a ``function``; with no switch it is the reference.
    kind : str
        One of ``KINDS``: how a case becomes an answer.
    options : Mapping
        What the kind needs besides (see ``seqlib.judge.kinds``). For every kind, ``"parts"``
        names the parts of the answer, ``("Y", "A")``, and ``"axes"`` its last axes, so that
        a message can say ``"batch row 0, time step 2"``; a dict has the axes of each part by
        its name. ``"time step"`` is the name of the axis of time.
    tolerance : Tolerance
        From the measured spread of several right styles.
    shortcuts : tuple of str
        Library functions that are the answer, refused while the task runs:
        ``"torch.nn.functional.scaled_dot_product_attention"``.
    seconds : float
        Limit for one call; ten times what the slowest honest style needs, or more.
    version : int
        Raised when cases, criteria or reference change, so that old records are not reused.
    """

    id: str
    title: str
    signature: str
    equations: tuple[str, ...]
    page: str
    reference: Callable
    cases: Callable[..., Sequence[Case]]
    criteria: tuple[Criterion, ...]
    misconceptions: tuple[Misconception, ...] = ()
    variant: Callable | None = None
    kind: str = "values"
    options: Mapping[str, Any] = field(default_factory=dict)
    tolerance: Tolerance = field(default_factory=Tolerance)
    shortcuts: tuple[str, ...] = ()
    seconds: float = 5.0
    version: int = 1

    @property
    def function(self):
        """Name that the student defines."""
        return self.id.rpartition(".")[2]

    @property
    def points(self):
        """Sum of the points of all criteria."""
        return math.fsum(c.points for c in self.criteria)


@dataclass(frozen=True)
class Written:
    """A question that a person grades.

    Attributes
    ----------
    id : str
        ``grade_id`` of its cell.
    points : float
        What it pays at most.
    rubric : tuple of str
        Lines with their points, for the grader.
    """

    id: str
    points: float
    rubric: tuple[str, ...]


@dataclass(frozen=True)
class Assignment:
    """One notebook.

    Attributes
    ----------
    name, title : str
        ``"attention"``; its heading.
    tasks : tuple of Task
        In the notebook's order.
    written : tuple of Written
        Questions graded by hand.
    grants : tuple of str
        Library functions that a student may use here, ``"seqlib.np.softmax"``; nothing else
        of ``seqlib`` can be imported while grading.
    torch : bool
        Whether the notebook needs PyTorch.
    hours : float
        Expected working time.
    graded : bool
        False for a notebook for practice: its points count nowhere.
    """

    name: str
    title: str
    tasks: tuple[Task, ...]
    written: tuple[Written, ...] = ()
    grants: tuple[str, ...] = ()
    torch: bool = False
    hours: float = 4.0
    graded: bool = True

    @property
    def points(self):
        """Points of the whole notebook."""
        return math.fsum(part.points for part in (*self.tasks, *self.written))
