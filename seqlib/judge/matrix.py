"""The kill matrix: every known mistake must lose points and be named as itself."""

from dataclasses import dataclass

import numpy as np

from seqlib.judge.diagnose import function_of, pairs_of
from seqlib.judge.judge import judge
from seqlib.judge.kinds import Trusted


@dataclass(frozen=True)
class Row:
    """What became of one mistake, or of two made together.

    Attributes
    ----------
    task : str
        Id of the task.
    made : tuple of str
        Names of the mistakes.
    lost : tuple of str
        Criteria that did not pay.
    score, points : float
        What was earned, of how much.
    kind : str or None
        Kind of the diagnosis.
    named : tuple of str
        Names in the diagnosis.
    """

    task: str
    made: tuple[str, ...]
    lost: tuple[str, ...]
    score: float
    points: float
    kind: str | None
    named: tuple[str, ...]

    @property
    def survives(self):
        """Whether the mistake costs nothing."""
        return self.score == self.points

    @property
    def named_as_itself(self):
        """Whether the diagnosis names what was made, and that alone."""
        return self.kind == "mistake" and set(self.named) == set(self.made)

    @property
    def named_as_another(self):
        """Whether the diagnosis names a mistake that was not made.

        Two mistakes together may give the output of a third one on every input (no scale in
        dq, none in dk, none at all); to name that one is right.
        """
        if len(self.made) > 1 and self.kind == "mistake":
            return False
        return self.kind in ("mistake", "partial") and not set(self.named) <= set(self.made)


def kill_matrix(assignment, *, seed=0, pairs=0):
    """Judge every known mistake of an assignment.

    Parameters
    ----------
    assignment : seqlib.exercises.record.Assignment
        Its tasks; those of kind ``"training"`` take the time of their training.
    seed : int, default=0
        Seed of the inputs and of the choice of pairs.
    pairs : int, default=0
        Pairs of mistakes to judge besides, per task.

    Returns
    -------
    list of Row
        In the order of tasks and records.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for task in assignment.tasks:
        made = [(mistake.name,) for mistake in task.misconceptions]
        both = pairs_of(task)
        made += [both[i] for i in rng.permutation(len(both))[:pairs]]
        rows += [row(task, names, seed) for names in made]
    return rows


def row(task, names, seed):
    """Judge the solution of one task that has these mistakes."""
    result = judge(task, Trusted(function_of(task, *names)), seed)
    diagnosis = result.diagnosis
    return Row(
        task=task.id,
        made=tuple(names),
        lost=tuple(c.name for c in result.criteria if not c.passed),
        score=result.score,
        points=result.points,
        kind=diagnosis and diagnosis.kind,
        named=diagnosis.names if diagnosis else (),
    )
