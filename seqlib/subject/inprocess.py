"""A subject in the judge's own process: what ``check`` uses."""

from dataclasses import replace

from .driver import Session
from .subject import Reply, reply_from
from .timelimit import TimeLimit
from .values import number_handles


class InProcess:
    """A function of this process, reached through the same requests as one in a sandbox.

    Nothing here protects the judge from hostile code; that is what the sandbox is for.

    Parameters
    ----------
    function : callable
        The function or class under judgement.
    """

    def __init__(self, function):
        self._functions = []
        self._session = Session(function, self._ask)

    def perform(self, request):
        """Carry out one request and return its ``Reply``."""
        request, self._functions = number_handles(request)
        limit = TimeLimit(request.get("seconds"))
        try:
            with limit:
                reply = reply_from(self._session.perform(request))
        except KeyboardInterrupt:
            if not limit.reached:
                raise
            return Reply(fault="timeout")
        if reply.fault == "interrupted" and limit.reached:
            return replace(reply, value=None, error=None, fault="timeout")
        return reply

    def fresh(self):
        """Return a subject without what was kept; the function's own globals are shared."""
        return InProcess(self._session.function)

    def close(self):
        """Do nothing: there is no process to end."""

    def _ask(self, number, args, kwargs):
        return self._functions[number](*args, **kwargs)
