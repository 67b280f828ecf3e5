"""Name the mistake behind a wrong answer, or say nothing: never a false name.

A mistake *fits* if its output equals the student's wherever it differs from the right output.
It fits *completely* if it equals the student's everywhere. In this order:

1. one mistake that fits completely;
2. two mistakes made together that fit completely;
3. one mistake that fits, with another fault beside it;
4. one mistake whose values are right but that loses the same criteria (a dtype, a property);
5. the property that fails.

Where several fit equally well, those that the inputs cannot tell apart are named as a group,
and unrelated ones not at all. Outputs are compared part by part (the entries of a tuple or
dict), so that a mistake in one gradient is found beside an unknown one in another.
"""

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from seqlib.exercises.record import Tolerance
from seqlib.judge.compare import as_array, equal
from seqlib.judge.criteria import messages_of
from seqlib.judge.kinds import (
    PredictionFailed,
    Trusted,
    numbered_request,
    observe,
    predictor,
    quiet,
)
from seqlib.judge.part import MISSING, part_of, parts_of
from seqlib.judge.result import Diagnosis
from seqlib.judge.run import Run, agree
from seqlib.judge.seeds import generator

MAX_EITHER = 3
# A mistake counts as different from the right output only beyond this multiple of the
# tolerance, so that a right answer is never within the tolerance of both.
_CLEAR = 10
# Which input ruled out a mistake, or two together, the last time: the cases of a task come in
# the same order for every seed, and the same one does it most times.
_ruled_out = {}


@dataclass(frozen=True)
class Fit:
    """How well a mistake explains the answers.

    Attributes
    ----------
    hits : frozenset
        Where it differs from the right output, as the student does: (case, part).
    complete : bool
        Whether it equals the student's output everywhere.
    values : tuple
        What the student gave at the hits.
    """

    hits: frozenset
    complete: bool
    values: tuple

    @property
    def telling(self):
        """Whether the hits prove the mistake although answers elsewhere have another cause.

        They must hold two different finite numbers or a text. A match of zeros, or of NaN,
        proves little, and one of single truth values nothing: there, any wrong answer equals
        any other.
        """
        arrays = [as_array(value) for value in self.values]
        if all(array is not None and _is_truth(array) for array in arrays):
            return False
        if any(isinstance(v, str | bytes | dict) and v for v in self.values):
            return True
        numbers = set()
        for array in arrays:
            if array is not None and array.dtype.kind in "biuf":
                finite = array[np.isfinite(array)].ravel()
                numbers |= set(finite[:50].tolist())
        return len(numbers) > 1


def diagnose(run, messages):
    """Return the diagnosis of a task that has lost points, or None.

    Parameters
    ----------
    run : seqlib.judge.run.Run
        With its answers.
    messages : dict
        What speaks against each criterion, or None.
    """
    task = run.task
    if task.kind == "training":
        return _sees_answers(run) or _symptom(run)
    steady = all(agree(task, a.replies[0], b) for a in run.answers for b in a.replies[1:])
    if not steady or not any(a.replies[0].ok for a in run.answers):
        return None
    with quiet():
        return _explained(run, messages)


def _explained(run, messages):
    """Return the diagnosis of answers that are always the same."""
    mistakes = {m.name: m for m in run.task.misconceptions}
    evidence = _Evidence(run)
    fits = {name: evidence.fit(name) for name in mistakes}
    fits = {name: fit for name, fit in fits.items() if fit is not None}
    names = [name for name, fit in fits.items() if fit.complete and fit.hits]
    if len(names) == 1:
        return _named("mistake", names, mistakes)
    if 1 < len(names) <= MAX_EITHER:
        return _named("either", names, mistakes)
    if not names:
        found = _pair(evidence, mistakes) or _partial(fits, mistakes)
        if found is not None:
            return found
    return _property(run, evidence, messages, mistakes)


def function_of(task, *names):
    """Return the wrong solution with these mistakes, called as the student's function is."""
    for mistake in task.misconceptions:
        if mistake.name in names and mistake.function is not None:
            if len(names) > 1:
                raise ValueError(f"{mistake.name} is a function of its own, not a switch")
            return mistake.function
    if task.variant is None:
        raise ValueError(f"{task.id}: {names} need a variant or a function")
    return functools.partial(task.variant, wrong=frozenset(names))


def pairs_of(task):
    """List the pairs of mistakes that can be made together: those that are switches."""
    switches = [m.name for m in task.misconceptions if m.function is None]
    return list(itertools.combinations(switches, 2))


class _Evidence:
    """The answers of a run, as they are compared with wrong solutions.

    Parameters
    ----------
    run : seqlib.judge.run.Run
        With its answers.
    """

    def __init__(self, run):
        self.task, self.answers = run.task, run.answers
        right = [_right(run.task, answer) for answer in run.answers]
        self.all_right = all(right)
        # A mistake that was not made hardly ever gives the same wrong answer, but shows
        # nothing on many of the inputs that were answered right.
        self._order = sorted(range(len(right)), key=right.__getitem__)
        self._requests = [numbered_request(run.task, answer.case) for answer in run.answers]

    def fit(self, *names, only_complete=False):
        """Compare the solution with these mistakes with the answers; None if it does not fit.

        Which answers are looked at first changes the time that this takes, and nothing else.
        """
        subject, key = Trusted(function_of(self.task, *names)), (self.task.id, names)
        hits, complete, matched = set(), True, []
        for at in self._in_order(_ruled_out.get(key)):
            answer = self.answers[at]
            reply, guess = answer.replies[0], self._guess(subject, at)
            for part in parts_of(answer.expected.value):
                equal = _explains(self.task, guess, reply, part)
                complete = complete and equal
                # Most are ruled out here, before they are compared with the right answer.
                shows = (equal or not only_complete) and _differs(
                    self.task, answer.expected, guess, reply, part
                )
                if not equal and (only_complete or shows):
                    _ruled_out[key] = at
                    return None
                if shows:
                    hits.add((at, part))
                    matched.append(part_of(reply.value, part))
            complete = complete and (
                not reply.ok or _equal(self.task.tolerance, guess.value, reply.value)
            )
            if only_complete and not complete:
                return None
        if not hits and not complete:
            return None
        return Fit(frozenset(hits), complete, tuple(matched))

    def parts(self):
        """Return the parts that any right output has."""
        values = [answer.expected.value for answer in self.answers]
        return dict.fromkeys(part for value in values for part in parts_of(value))

    def is_constant(self, part):
        """Whether one part of all answers holds one number and nothing else."""
        replies = [answer.replies[0] for answer in self.answers]
        arrays = [as_array(part_of(reply.value, part)) for reply in replies if reply.ok]
        if any(array is None for array in arrays):
            return False
        return len(np.unique(np.concatenate([array.ravel() for array in arrays]))) < 2

    def _guess(self, subject, at):
        """Return what a wrong solution answers to a case."""
        if self._requests[at] is None:
            return observe(self.task, subject, self.answers[at].case)
        return subject.answer(self._requests[at])

    def _in_order(self, first):
        if first is None or first >= len(self._order):
            return self._order
        return [first, *(at for at in self._order if at != first)]


def _explains(task, guess, reply, part):
    """Whether a guess equals the reply."""
    if not guess.ok:  # the same error in the same words is the same behaviour
        return guess.error == reply.error
    if not reply.ok:
        return False
    wrong, got = part_of(guess.value, part), part_of(reply.value, part)
    if wrong is MISSING or got is MISSING:
        return wrong is got
    return _equal(task.tolerance, wrong, got)


def _differs(task, expected, guess, reply, part):
    """Whether a guess differs from the right answer, and that clearly."""
    if not guess.ok:
        return True
    if not reply.ok:
        return False
    right, wrong, got = (part_of(r.value, part) for r in (expected, guess, reply))
    if wrong is MISSING or got is MISSING:
        return wrong is MISSING or not _equal(task.tolerance, right, wrong)
    array = as_array(got)
    single = array is not None and array.dtype in (np.float32, np.float16)
    return not _equal(_clear(task.tolerance, single), right, wrong)


@functools.cache
def _clear(tolerance, single):
    """Widen a tolerance to a clear distance at the precision of the student's answer."""
    rtol32, atol32 = _CLEAR * tolerance.rtol32, _CLEAR * tolerance.atol32
    rtol64, atol64 = _CLEAR * tolerance.rtol64, _CLEAR * tolerance.atol64
    return Tolerance(*((rtol32, atol32) if single else (rtol64, atol64)), rtol32, atol32)


def _equal(tolerance, one, other):
    return equal(one, other, tolerance)


def _right(task, answer):
    """Whether the first reply is right as a whole."""
    reply = answer.replies[0]
    return reply.ok and _equal(task.tolerance, answer.expected.value, reply.value)


def _is_truth(array):
    return array.dtype.kind == "b" and array.size == 1


def _pair(evidence, mistakes):
    """Name two mistakes made together, or the one that all fitting pairs share.

    Among so many pairs, one may give nothing but zeros: so does an answer that is not there.
    """
    if all(map(evidence.is_constant, evidence.parts())):
        return None
    pairs = [
        set(pair)
        for pair in pairs_of(evidence.task)
        if (fit := evidence.fit(*pair, only_complete=True))
        and not all(evidence.is_constant(part) for _, part in fit.hits)
    ]
    if len(pairs) == 1:
        return _named("mistake", [n for n in mistakes if n in pairs[0]], mistakes)
    shared = set.intersection(*pairs) if pairs else set()
    return _named("partial", shared, mistakes) if shared else None


def _partial(fits, mistakes):
    """Name the mistake that was made beside an unknown one; several if they are apart."""
    partial = {name: fit for name, fit in fits.items() if not fit.complete and fit.telling}
    # What explains less than another one does not count beside it.
    best = [
        name
        for name, fit in partial.items()
        if not any(fit.hits < other.hits for other in partial.values())
    ]
    apart = all(
        not (partial[a].hits & partial[b].hits) for a, b in itertools.combinations(best, 2)
    )
    return _named("partial", best, mistakes) if best and apart else None


def _property(run, evidence, messages, mistakes):
    """Name the mistake that has right values and loses the same criteria, or a property."""
    if evidence.all_right:
        names = [n for n in mistakes if _loses(run, evidence, n, messages)]
        if len(names) == 1:
            return _named("mistake", names, mistakes)
    if not run.broken:
        return None
    first = run.broken[0]
    return Diagnosis("property", (first.name,), (f"{first.says}.",), (run.task.page,))


def _loses(run, evidence, name, messages):
    """Whether a mistake with right values loses exactly the same criteria."""
    fit = evidence.fit(name, only_complete=True)
    if fit is None or fit.hits:
        return False
    other = Run(run.task, Trusted(function_of(run.task, name)), run.seed)
    other.ask_all()
    lost = {name for name, message in messages.items() if message is not None}
    return lost == {name for name, m in messages_of(other).items() if m is not None}


def _sees_answers(run):
    """Name the mistake of a training task whose loss is lower than any honest one."""
    name = run.task.options.get("below")
    low = max(low for low, _ in run.task.options["bounds"].values())
    losses = [a.replies[0].value for a in run.answers if a.replies[0].ok]
    if name is None or not any(loss < low for loss in losses):
        return None
    return _named("mistake", [name], {m.name: m for m in run.task.misconceptions})


def _symptom(run):
    """Name the mistake of a training task that shows in what was trained."""
    predict, case = predictor(run.subject, float(run.task.seconds)), run.answers[0].case
    try:
        for name, shows in run.task.options.get("symptoms", {}).items():
            if shows(predict, generator(run.seed, name), case):
                return _named("mistake", [name], {m.name: m for m in run.task.misconceptions})
    except (PredictionFailed, TypeError, ValueError, LookupError, ArithmeticError):
        pass  # it cannot be asked, or its answers are no predictions
    return None


def _named(kind, names, mistakes):
    chosen = [mistakes[name] for name in names]
    return Diagnosis(
        kind,
        tuple(m.name for m in chosen),
        tuple(m.says for m in chosen),
        tuple(m.page for m in chosen),
    )
