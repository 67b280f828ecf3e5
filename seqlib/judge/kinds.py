"""How a case becomes a request: the only thing in which kinds of tasks differ.

What a task of each kind puts into its cases and ``options``:

values
    ``args`` and ``kwargs`` are those of the student's function. If the first argument is an
    ``AsTensor`` that requires a gradient, the answer is a dict of the ``"output"`` and its
    ``"gradient"`` with respect to that argument.
text
    The same; strings are compared character by character.
backward
    The same. ``options["forward"]``, which a task of any kind may have, maps names that the
    student's code may call to the reference's functions; they stand in for the student's own
    meanwhile, so that a mistake in the forward pass, or in another task, costs once.
sampling
    An argument is a ``Seed``. The text of the task fixes how the generator is used, and the
    draws are compared one by one.
module
    Cases are made by :func:`seqlib.exercises.record.module_case`; the reference and the
    variants build modules.
student_test
    Arguments are ``Handle``: models that live here. The right answer is the reference's.
    ``options["max_calls"]`` limits the calls of one model.
training
    ``options["evaluate"](predict, rng, case)`` returns a loss on a fresh sample, where
    ``predict(*args)`` calls the object that the student's function returned, and
    ``case.hidden`` holds what the sample is drawn from, if the case has drawn that too.
    ``options["bounds"]`` maps a criterion to ``(low, high)``: a loss above ``high`` is too
    large, one below ``low`` is impossible without the answers. ``options["below"]`` is the
    misconception that is named in that case. ``options["symptoms"]`` maps misconceptions to
    ``shows(predict, rng, case)``: whether the trained object has the sign of that mistake.
    They are tried in their order, and the first that shows is named.
"""

import contextlib
import warnings

import numpy as np

from seqlib.exercises.record import KINDS
from seqlib.subject.driver import Session
from seqlib.subject.guard import describe
from seqlib.subject.subject import Reply
from seqlib.subject.values import AsTensor, Handle, map_leaves, number_handles


def observe(task, subject, case, rng=None, request=None):
    """Return the reply of a subject to one case.

    Parameters
    ----------
    task : seqlib.exercises.record.Task
        Gives the kind, the limits and what is refused.
    subject : seqlib.subject.subject.Subject
        Code under judgement, or a :class:`Trusted` function.
    case : seqlib.exercises.record.Case
        The input.
    rng : numpy.random.Generator, optional
        Source of the fresh sample of a training task.
    request : dict, optional
        What :func:`request_of` returned for the case, if that was announced.

    Returns
    -------
    seqlib.subject.subject.Reply
        Its value is the answer; for a training task the loss.
    """
    request = request_of(task, case) if request is None else request
    if task.kind == "training":
        return _train(task, subject, case, request, rng)
    return subject.perform(request)


def request_of(task, case):
    """Return the request that puts a case; of a training task, the first of several."""
    if task.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {task.kind!r}")
    request = {
        "do": "call",
        "args": list(case.args),
        "kwargs": dict(case.kwargs),
        "refuse": list(task.shortcuts),
        "seconds": float(task.seconds),
    }
    if task.kind == "module":
        request |= {"do": "module", "kwargs": {}} | request["kwargs"]
    elif case.args and isinstance(case.args[0], AsTensor) and case.args[0].requires_grad:
        request["do"] = "differentiate"
    if forward := task.options.get("forward"):
        request["globals"] = {name: Handle(function) for name, function in forward.items()}
    if task.kind == "student_test":
        limit = task.options.get("max_calls")
        for part in ("args", "kwargs"):
            request[part] = map_leaves(lambda leaf: _limited(leaf, limit), request[part])
    return request


class Trusted:
    """A subject for the judge's own functions: references and teaching variants.

    Nothing is captured and nothing is refused, so a call costs little more than the function.
    """

    def __init__(self, function):
        self._functions = []
        self._session = Session(function, self._ask)

    def perform(self, request):
        """Carry out one request; an exception becomes the ``error`` of the reply."""
        request, self._functions = number_handles({**request, "refuse": ()})
        with quiet():
            try:
                value, modified = self._session.carry_out(request)
            except Exception as error:
                return Reply(error=describe(error))
        return Reply(value=value, modified=tuple(modified))

    def answer(self, numbered):
        """Return the reply without ``modified``, with less work.

        Parameters
        ----------
        numbered : tuple
            What :func:`numbered_request` returned. The caller has made it ``quiet``.
        """
        request, self._functions = numbered
        try:
            return Reply(value=self._session.value(request))
        except Exception as error:
            return Reply(error=describe(error))

    def fresh(self):
        """Return the same function with nothing kept."""
        return Trusted(self._session.function)

    def close(self):
        """Do nothing."""

    def _ask(self, number, args, kwargs):
        return self._functions[number](*args, **kwargs)


@contextlib.contextmanager
def quiet():
    """Ignore what the judge's own functions would warn of."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def numbered_request(task, case):
    """Return a request that can be put to many trusted functions; None if none can be.

    A training task takes several requests, and the models of a student's test count their
    calls.
    """
    if task.kind in ("training", "student_test"):
        return None
    return number_handles({**request_of(task, case), "refuse": ()})


def reference_reply(task, case):
    """Return the right answer to a case; a reference that fails is the course's own fault."""
    if task.kind == "training":
        return Reply()
    reply = observe(task, Trusted(task.reference), case)
    if not reply.ok:
        raise RuntimeError(f"the reference of {task.id} fails on {case.label}: {reply.error}")
    return reply


def _train(task, subject, case, request, rng):
    trained = subject.perform(request | {"do": "keep", "name": "model"})
    if not trained.ok:
        return trained
    predict = predictor(subject, request["seconds"])
    try:
        loss = float(task.options["evaluate"](predict, rng, case))
    except PredictionFailed as failure:
        return failure.reply
    except (TypeError, ValueError, LookupError, ArithmeticError, MemoryError) as error:
        # What the trained object returned cannot be evaluated: of another shape, say. It is the
        # judge that raised, so the student's code is not said to have done so.
        why = str(error) if isinstance(error, ValueError) else describe(error)
        return Reply(error=f"what was trained has no loss: {why}", fault="unsupported")
    return Reply(value=loss, modified=trained.modified)


def predictor(subject, seconds):
    """Return a function that calls what a subject has trained.

    It raises :class:`PredictionFailed` where there is no answer.
    """

    def predict(*args, **kwargs):
        request = {
            "do": "use",
            "name": "model",
            "args": list(args),
            "kwargs": kwargs,
            "seconds": seconds,
        }
        reply = subject.perform(request)
        if reply.ok and _has_complex(reply.value):
            # The square of i is -1: with complex predictions any squared loss can be reached.
            reply = Reply(error="the trained object's answer has complex numbers")
        if not reply.ok:
            raise PredictionFailed(reply)
        return reply.value

    return predict


class PredictionFailed(Exception):
    """What was trained gave no answer."""

    def __init__(self, reply):
        super().__init__(reply.error)
        self.reply = reply


def _has_complex(value):
    kinds = set()
    map_leaves(lambda leaf: kinds.add(np.asarray(leaf).dtype.kind), value)
    return "c" in kinds


def _limited(arg, limit):
    """Return a handle that refuses more than ``limit`` calls."""
    if not isinstance(arg, Handle) or limit is None:
        return arg
    calls = iter(range(limit))

    def function(*args, **kwargs):
        if next(calls, None) is None:
            raise ValueError(f"the model may be called at most {limit} times")
        return arg.function(*args, **kwargs)

    return Handle(function)
