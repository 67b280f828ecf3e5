"""A subject in the sandbox: the same requests as in the judge's process, over a socket."""

import itertools
import warnings
from collections import deque
from dataclasses import replace

import numpy as np

from seqlib.subject.guard import one_line
from seqlib.subject.subject import Reply, reply_from
from seqlib.subject.values import number_handles, reduce

from .allowance import memory_allowance
from .errors import Fault
from .inside import codec
from .spawned import describe_status

_FAULTS = (None, "unsupported", "memory", "interrupted")  # what the far side may report
_MAX_LINES = 20
_ASKED = 1 << 28  # bytes that a function of the judge may take when student code calls it
_AHEAD = 1 << 16  # bytes of requests under way, which the buffer of a socket holds


class RemoteSubject:
    """A function or class of a submission, in the state after the cells run so far.

    Requests are served by a process forked for this subject. A request that ends the process,
    or has no answer within its limits, costs that request alone: the next one is served by
    another fork of the same state.

    Parameters
    ----------
    submission : Submission
        Where it runs.
    expression : str
        Evaluated over the notebook's names.
    """

    def __init__(self, submission, expression):
        self._submission, self._expression = submission, expression
        self._cells = submission.cells_run
        self._task = None
        self._number = 0
        self._coming = deque()  # announced requests
        self._under_way = deque()  # requests that were sent and not answered, with their sizes

    def announce(self, requests):
        """Say which requests come next, in which order.

        They are sent while earlier ones are carried out, so that neither side waits for the
        other each time. Requests with functions are not, since the far side asks back.
        """
        self._coming = deque(requests)

    def perform(self, request):
        """Carry out one request and return its ``Reply``.

        Raises
        ------
        RuntimeError
            If cells were run since the subject was made.
        CodecError
            If the request is not plain or too large.
        SandboxError
            If the sandbox itself failed.
        """
        if self._under_way and self._under_way[0][0] is not request:
            self.close()  # not what was announced
        seconds = request.get("seconds") or self._submission.limits.call
        try:
            if self._task is None:
                self._task = self._open()
            watch = self._submission.watch(seconds)
            functions = self._send(request, watch)
            reply = self._checked(self._exchange(functions, watch))
            return replace(reply, modified=_arguments_of(request, reply.modified))
        except Fault as fault:
            return self._faulty(fault)

    def fresh(self):
        """Return the same subject without what any request has changed.

        Raises
        ------
        RuntimeError
            If cells were run since the subject was made.
        """
        self._check_state()
        return RemoteSubject(self._submission, self._expression)

    def close(self):
        """End its process."""
        if self._task is not None:
            self._submission.leave_task(self._task)
            self._forget()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _check_state(self):
        if self._submission.cells_run != self._cells:
            raise RuntimeError("cells were run since this subject was made; make a new one")

    def _open(self):
        self._check_state()
        return self._submission.open_task()

    def _send(self, request, watch):
        """Send a request, if that has not been done, and those that come next.

        Returns
        -------
        list of callable
            What the far side may ask for meanwhile.
        """
        if self._coming and self._coming[0] is request:
            self._coming.popleft()
        elif not self._under_way:
            self._coming.clear()
        functions = []
        if not self._under_way:
            data, functions = self._frame(request)
            self._post(request, data, watch)
        while self._coming and not functions:
            data, more = self._frame(self._coming[0])
            if more or sum(size for _, size in self._under_way) + len(data) > _AHEAD:
                break
            self._post(self._coming.popleft(), data, watch)
        return functions

    def _frame(self, request):
        plain, functions = number_handles(request)
        number = self._number + len(self._under_way)
        message = {"do": "request", "number": number, "expression": self._expression}
        return codec.frame(message | {"request": plain}), functions

    def _post(self, request, data, watch):
        self._under_way.append((request, len(data)))
        self._task.connection.send_frame(data, watch)

    def _exchange(self, functions, watch):
        """Answer what is asked, and return the fields of the reply to the oldest request."""
        connection = self._task.connection
        for asked in itertools.count(1):
            answer = connection.read(watch, self._submission.limits.answer)
            if type(answer) is not dict:
                raise Fault("protocol", "the answer could not be read: it is no dict")
            if "reply" in answer:
                self._under_way.popleft()
                if not self._under_way and not connection.nothing_more():
                    raise Fault("protocol", "more came than one answer")
                return answer["reply"]
            if asked > self._submission.limits.asks:
                raise Fault("protocol", f"more than {asked - 1} calls of the given function")
            connection.send(self._answer(answer, functions), watch)

    def _checked(self, fields):
        """Return the ``Reply`` of what the far side sent, with the number of its request."""
        number = fields.pop("number", None) if type(fields) is dict else None
        reply = _checked(fields)
        if type(number) is not int or number != self._number:
            raise Fault("protocol", "the answer could not be read: it is to another request")
        self._number += 1
        return reply

    def _forget(self):
        self._task = None
        self._number = 0
        self._coming.clear()
        self._under_way.clear()

    def _answer(self, asked, functions):
        """Call a function of the judge with what the far side sent."""
        number, args, kwargs = asked.get("ask"), asked.get("args"), asked.get("kwargs")
        if (
            type(number) is not int
            or not 0 <= number < len(functions)
            or type(args) not in (list, tuple)
            or type(kwargs) is not dict
            or not all(type(name) is str for name in kwargs)
        ):
            raise Fault("protocol", "the answer could not be read: it is no call")
        limit = self._submission.limits.ask_numbers
        if _numbers([*args, *kwargs.values()]) > limit:
            message = f"the arguments may hold {limit} numbers altogether, these hold more"
            return {"error": ("ValueError", message)}
        try:
            with (
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
                memory_allowance(_ASKED),
            ):
                warnings.simplefilter("ignore")
                return {"value": reduce(functions[number](*args, **kwargs), "the reply")}
        except MemoryError:
            limit = f"{_ASKED >> 20} MiB"
            return {"error": ("MemoryError", f"the function would take more than {limit}")}
        except Exception as error:
            said = error.args[0] if len(error.args) == 1 else error
            return {"error": (type(error).__name__, str(said))}

    def _faulty(self, fault):
        """End the process and say why there is no answer."""
        task = self._task
        self._forget()
        status = self._submission.end_task(task) if task is not None else None
        message = str(fault)
        if fault.kind == "crash":
            message = f"the call ended the Python process ({describe_status(status)})"
        elif fault.kind == "memory":
            message = f"the call used {fault}"
        return Reply(error=message, fault=fault.kind)


class EndState(RemoteSubject):
    """A function of a notebook that has run to its end, called where its cells were run.

    No process is forked, so it costs little; but a request may change what all later ones
    find, and one that ends the process leaves no state to go on in.
    """

    def fresh(self):
        """Refuse: there is one such state."""
        raise RuntimeError("a function at the end of a notebook has no fresh copy")

    def close(self):
        """Leave the process as it is; it ends with the submission."""
        self._forget()

    def _open(self):
        self._check_state()
        return self._submission.itself()


def _checked(fields):
    """Return the ``Reply`` of what the far side sent, with texts that are safe to show."""
    try:
        reply = reply_from(fields)
    except TypeError as error:
        raise Fault("protocol", f"the answer could not be read: {error}") from None
    if reply.fault not in _FAULTS:
        raise Fault("protocol", "the answer could not be read: it reports an unknown fault")
    return Reply(
        value=reply.value,
        error=None if reply.error is None else one_line(reply.error),
        where=_lines(reply.where),
        modified=_lines(reply.modified),
        stdout=reply.stdout[:5000],
        fault=reply.fault,
        warnings=_lines(reply.warnings),
    )


def _arguments_of(request, names):
    """Return those of some names that a request has arguments for, each once."""
    args, kwargs = request.get("args", ()), request.get("kwargs", {})
    given = {*map(str, range(len(args))), *kwargs}
    return tuple(name for name in dict.fromkeys(names) if name in given)


def _lines(texts):
    return tuple(one_line(text) for text in texts[:_MAX_LINES])


def _numbers(value):
    """Count the numbers in a plain value."""
    if type(value) is np.ndarray:
        return value.size
    if type(value) in (list, tuple):
        return sum(_numbers(part) for part in value)
    if type(value) is dict:
        return sum(_numbers(part) for part in value.values())
    return len(value) if type(value) in (str, bytes) else 1
