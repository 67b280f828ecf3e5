"""Carry out requests on a student's function; the same code runs in both subjects.

This module and its neighbours import NumPy and nothing else of ``seqlib``: the sandbox loads
them under another package name, in a process that must not hold a reference solution.
"""

import contextlib
import functools

from .guard import Capture, describe, frames
from .shortcuts import Shortcuts, patched
from .values import UnsupportedValue, materialise, reduce, unchanged


class Session:
    """A student's function together with what it keeps from one request to the next.

    Parameters
    ----------
    function : callable
        The function or class under judgement.
    ask : callable
        ``ask(number, args, kwargs)`` calls the judge's function behind a ``Handle`` and
        returns its plain value, or raises what the student's code shall see.
    """

    def __init__(self, function, ask):
        self.function = function
        self.ask = ask
        self._kept = {}
        self._shortcuts = Shortcuts(())

    def perform(self, request):
        """Carry out one request.

        Parameters
        ----------
        request : dict
            As :class:`seqlib.subject.subject.Subject` describes it.

        Returns
        -------
        dict
            The fields of a :class:`seqlib.subject.subject.Reply`, all of them plain values.
        """
        names = tuple(request.get("refuse", ()))
        if names != self._shortcuts.names:
            self._shortcuts = Shortcuts(names)
        reply = self._guarded(request)
        if self._shortcuts.stale:  # the code imported the library only now: once more
            reply = self._guarded(request)
        return reply

    def _guarded(self, request):
        reply = {"value": None, "error": None, "where": [], "modified": [], "fault": None}
        with Capture() as capture:
            try:
                reply["value"], reply["modified"] = self.carry_out(request)
            except UnsupportedValue as error:
                reply |= {"fault": "unsupported", "error": str(error)}
            except BaseException as error:  # SystemExit and KeyboardInterrupt too
                reply |= {"error": describe(error), "where": frames(error)}
                for kind, fault in _FAULTS.items():
                    if isinstance(error, kind):
                        reply["fault"] = fault
        return reply | {"stdout": capture.stdout, "warnings": capture.warnings}

    def carry_out(self, request):
        """Do what :meth:`perform` does, with nothing caught.

        Returns
        -------
        value : object
            The plain value.
        modified : list of str
            Arguments that were changed in place, ``["0", "mask"]``.
        """
        given = (list(request.get("args", ())), dict(request.get("kwargs", {})))
        args, kwargs, ask = self._arguments(given)
        value = self._value(request, args, kwargs, ask)
        modified = [str(i) for i, arg in enumerate(args) if not unchanged(arg, given[0][i])]
        modified += [key for key, arg in kwargs.items() if not unchanged(arg, given[1][key])]
        return value, modified

    def value(self, request):
        """Return what :meth:`carry_out` does, without looking at the arguments afterwards."""
        given = (list(request.get("args", ())), dict(request.get("kwargs", {})))
        return self._value(request, *self._arguments(given))

    def _arguments(self, given):
        def ask(number, args, kwargs):
            with self._shortcuts.lifted():
                return reduce(self.ask(number, args, kwargs), "the reply")

        return *materialise(given, ask), ask

    def _value(self, request, args, kwargs, ask):
        space = globals_of(self.function)
        with contextlib.ExitStack() as stack:
            for name, stand_in in materialise(dict(request.get("globals", {})), ask).items():
                stack.enter_context(patched(space, name, stand_in))
            if self._shortcuts.names:
                stack.enter_context(self._shortcuts.refused(space))
            return reduce(_DO[request["do"]](self, request, args, kwargs))

    def _call(self, request, args, kwargs):
        return self.function(*args, **kwargs)

    def _differentiate(self, request, args, kwargs):
        from .modules import differentiate  # only here is torch needed

        return differentiate(self.function, args, kwargs)

    def _keep(self, request, args, kwargs):
        self._kept[request["name"]] = self.function(*args, **kwargs)

    def _use(self, request, args, kwargs):
        target = self._kept[request["name"]]
        if request.get("method"):
            target = getattr(target, request["method"])
        return target(*args, **kwargs)

    def _module(self, request, args, kwargs):
        from .modules import run_module

        return run_module(
            self.function(*args, **kwargs),
            state=request.get("state"),
            inputs=materialise(list(request.get("inputs", ())), self.ask),
            cotangent=request.get("cotangent"),
            mode=request.get("mode", "eval"),
        )


_DO = {
    "call": Session._call,
    "differentiate": Session._differentiate,
    "keep": Session._keep,
    "use": Session._use,
    "module": Session._module,
}
_FAULTS = {MemoryError: "memory", KeyboardInterrupt: "interrupted"}


def globals_of(function):
    """Return the namespace in which a function or class looks up names, else an empty dict."""
    while not hasattr(function, "__globals__"):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, type):
            methods = [m for m in vars(function).values() if hasattr(m, "__globals__")]
            if not methods:
                return {}
            function = methods[0]
        elif hasattr(type(function).__call__, "__globals__"):
            function = type(function).__call__
        else:
            return {}
    return function.__globals__
