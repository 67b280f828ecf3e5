"""Put the cases of a task to a subject: in random order, some of them twice."""

import sys
from dataclasses import dataclass, field, replace

import numpy as np

from seqlib.exercises.record import Case
from seqlib.judge.compare import equal
from seqlib.judge.kinds import observe, reference_reply, request_of
from seqlib.judge.seeds import generator
from seqlib.subject.subject import Reply

REPEATED = 2  # cases that are put again to the same subject, and as many to a fresh one
MAX_DECOYS = 3
MAX_FAULTS = 3  # each may cost a whole time limit
SKIPPED = "skipped"


class CallFailed(Exception):
    """The student's code gave no answer while a property was tested."""

    def __init__(self, reply):
        super().__init__(reply.error)
        self.reply = reply


@dataclass
class Answers:
    """What a subject said to one case.

    Attributes
    ----------
    expected : Reply
        The reference's.
    replies : list of Reply
        The first answer, then the repeated ones.
    """

    case: Case
    expected: Reply
    replies: list[Reply] = field(default_factory=list)


class Run:
    """One judgement of one subject.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        What is judged.
    subject : seqlib.subject.subject.Subject
        Whose code.
    seed : int
        All inputs, their order and the repeated ones follow from it.
    later : list, optional
        Takes up what a fresh copy would be asked, instead of asking one.

    Attributes
    ----------
    answers : list of Answers
        One for each case, in the order of the record.
    broken : list of seqlib.exercises.record.Criterion
        Properties that the answers were found to break.
    warnings, modified : list of str
        What the replies reported.
    """

    def __init__(self, task, subject, seed, later=None):
        self.task, self.subject, self.seed = task, subject, seed
        self._later = later
        self.warnings, self.modified, self.broken = [], [], []
        self._faults, self._slow_tags, self._stopped = 0, set(), None
        self._seconds = f"{task.seconds:g} s"
        cases = task.cases(generator(seed, "cases"))
        # All references first: nothing that the student's code does can change them.
        self.answers = [Answers(case, reference_reply(task, case)) for case in cases]

    def ask_all(self):
        """Put every case, then some again: to the same subject, and to a fresh one."""
        rng = generator(self.seed, "order")
        answers, again = self.answers, []
        order = [answers[i] for i in rng.permutation(len(answers))]
        if self.task.kind != "training":
            again = [answers[i] for i in rng.permutation(len(answers))]
            decoys = self.task.cases(generator(self.seed, "decoys"))
            for _ in range(rng.integers(1, MAX_DECOYS + 1)):
                decoy = Answers(decoys[rng.integers(len(decoys))], Reply())
                order.insert(rng.integers(len(order) + 1), decoy)
        self._ask_in_turn(order + again[:REPEATED])
        if again and self._stopped is None and self._later is not None:
            self._later.append(Recheck(self.task, again[-REPEATED:]))
        elif again and self._stopped is None:
            used, self.subject = self.subject, self.subject.fresh()
            self._ask_in_turn(again[-REPEATED:])
            if self.subject is not used:
                self.subject.close()
            self.subject = used

    def _ask_in_turn(self, answers):
        requests = announced(self.task, self.subject, answers)
        for answer, request in zip(answers, requests, strict=True):
            reply = self.ask(answer.case, request)
            answer.replies.append(_of_fair_size(reply, answer.expected))

    def ask(self, case, request=None):
        """Put one case, unless the code has used up its chances."""
        reason = self._stopped
        if case.tag in self._slow_tags:
            reason = f"not run, since another input had no answer within {self._seconds}"
        if reason is not None:
            return Reply(fault=SKIPPED, error=reason)
        training = self.task.kind == "training"
        rng = generator(self.seed, "evaluate") if training else None
        reply = observe(self.task, self.subject, case, rng, request)
        self._count(reply, case)
        return reply

    def _count(self, reply, case):
        self.warnings += [w for w in reply.warnings if w not in self.warnings]
        self.modified += [m for m in reply.modified if m not in self.modified]
        if reply.fault == "interrupted":
            self._stopped = "not run, since the check was interrupted"
        elif reply.fault in ("timeout", "crash", "memory", "protocol"):
            self._faults += 1
            if reply.fault == "timeout":
                self._slow_tags.add(case.tag)
            if self._faults >= MAX_FAULTS:
                why = reply.error or f"no answer within {self._seconds}"
                self._stopped = f"not run, after {MAX_FAULTS} inputs without an answer: {why}"


class Recheck:
    """Some of a run's cases, put again to another copy of the subject.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        What was judged.
    answers : list of Answers
        With the replies of the first copy.
    """

    def __init__(self, task, answers):
        self.task, self.answers = task, answers

    def confirmed(self, subject):
        """Whether another copy says the same as the first one did."""
        answers = [a for a in self.answers if a.replies[0].fault is None]
        requests = announced(self.task, subject, answers)
        for answer, request in zip(answers, requests, strict=True):
            reply = observe(self.task, subject, answer.case, request=request)
            if reply.fault is not None or not agree(self.task, answer.replies[0], reply):
                return False
        return True


class Caller:
    """The student's function as a property sees it.

    Attributes
    ----------
    last : Reply or None
        The whole reply to the last call.
    """

    def __init__(self, ask):
        self._ask = ask
        self.last = None

    def __call__(self, *args, **kwargs):
        """Return the plain value that the function returns."""
        self.last = self._ask(Case(args, kwargs, tag="property"))
        if not self.last.ok:
            raise CallFailed(self.last)
        return self.last.value


def announced(task, subject, answers):
    """Return the requests that put some cases, announced to a subject that wants to know.

    A subject in this process has nothing to do before it is asked, and None stands for each.
    """
    announce = getattr(subject, "announce", None)
    if announce is None or task.kind == "training":
        return [None] * len(answers)
    requests = [request_of(task, answer.case) for answer in answers]
    announce(requests)
    return requests


def _of_fair_size(reply, expected):
    """Return a reply, or one that says so if its value is far larger than the right one.

    All answers are kept and compared again and again, which would cost the judge gigabytes
    and minutes.
    """
    (parts, size), fair = _size(reply.value), _size(expected.value, lists=True)
    if parts <= 10 * fair[0] + 1000 and size <= 10 * fair[1] + 2**20:
        return reply
    error = f"the answer is far larger than a right one: {parts} parts of {size} bytes together"
    return replace(reply, value=None, fault="unsupported", error=error)


def _size(value, *, lists=False):
    """Return the number of parts of a plain value, and their bytes.

    With ``lists``, arrays are counted as the nested lists that may stand for them.
    """
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        sizes = [_size(part, lists=lists) for part in value]
        return 1 + sum(parts for parts, _ in sizes), sum(size for _, size in sizes)
    if isinstance(value, np.ndarray):
        return 2 * value.size + 1 if lists else 1, value.nbytes
    return 1, sys.getsizeof(value)


def agree(task, one, other):
    """Whether two replies to the same input say the same; a fault says nothing."""
    if one.fault is not None or other.fault is not None:
        return True
    if not (one.ok and other.ok):
        return one.ok == other.ok
    return equal(one.value, other.value, task.tolerance)
