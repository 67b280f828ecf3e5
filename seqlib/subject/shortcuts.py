"""Library functions that are the answer to a task are refused while the task runs."""

import contextlib
import sys
import types


class LibraryShortcut(RuntimeError):
    """Raised in place of a call to a library function that a task asks to write."""


class Shortcuts:
    """Refuse functions and classes by name.

    Parameters
    ----------
    names : sequence of str
        ``"torch.nn.functional.scaled_dot_product_attention"``, ``"torch.nn.LSTM"``. A class is
        refused when it is built or run. A function written in Python refuses by itself, from
        wherever it is called: a closure, a default argument, a list. Of any other function the
        names are found by identity, in all loaded modules and in the student's own: one
        written in C and kept in a list is not found, nor, after :func:`prepare`, one that got
        another name in a library since. Neither is a copy of a function's text. A library that
        is not imported has nothing to refuse.
    """

    def __init__(self, names):
        self.names = tuple(names)
        self._loaded = ()
        self._patches, self._codes = [], []
        self._refusals = {}  # id of a refused function: the function and its refusal
        self._lifted = False

    @property
    def stale(self):
        """Whether a library that matters was imported since the last call."""
        return self._loaded != self._found()

    @contextlib.contextmanager
    def refused(self, namespace):
        """Refuse them within this context, in ``namespace`` (the student's globals) too."""
        if not self.names:
            yield
            return
        if self.stale:
            self._loaded = self._found()
            self._patches, self._codes, self._refusals = _find(self.names, self._refusal)
        patches = self._patches + _places(namespace, self._refusals)
        with contextlib.ExitStack() as stack:
            for owner, key, refusal in patches:
                stack.enter_context(patched(owner, key, refusal))
            for function, code in self._codes:
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = code
            yield

    @contextlib.contextmanager
    def lifted(self):
        """Allow them for a while: the judge's own functions may use them."""
        before, self._lifted = self._lifted, True
        try:
            yield
        finally:
            self._lifted = before

    def _refusal(self, name, original):
        def refuse(*args, **kwargs):
            if self._lifted:
                return original(*args, **kwargs)
            raise LibraryShortcut(
                f"{name} is what this task asks you to write; use simpler operations"
            )

        return refuse

    def _found(self):
        return tuple(name for name in self.names if _resolve(name)[0] is not None)


def _find(names, refusal):
    """Return patches ``(owner, key, refusal)``, codes, and refusals of functions by id."""
    patches, codes, refusals = [], [], {}
    for name in names:
        owner, key = _resolve(name)
        if owner is None:
            continue
        target = getattr(owner, key)
        parts = [(owner, key)]
        if isinstance(target, type):
            parts = [(target, m) for m in ("__init__", "forward") if hasattr(target, m)]
        for place, part in parts:
            function = getattr(place, part)
            inner = getattr(function, "__wrapped__", None)
            if not isinstance(place, type) and type(inner) is types.FunctionType:
                function = inner  # NumPy's functions are written in Python, and called by C
            if type(function) is types.FunctionType and part in vars(place):
                codes.append((function, _calling(refusal(name, _copy(function)), function)))
            elif isinstance(place, type):
                patches.append((place, part, refusal(name, function)))
            else:
                refusals[id(function)] = (function, refusal(name, function))
    places = _prepared.places if refusals.keys() <= _prepared.places.keys() else {}
    patches += [
        (space, key, refusals[number][1])
        for number, found in places.items()
        for space, key in found
        if number in refusals and space.get(key) is refusals[number][0]
    ]
    for module in _modules(_prepared.last if places else None) if refusals else ():
        patches += _places(vars(module), refusals)
    return patches, codes, refusals


class _Prepared:
    """Where functions are in the modules that were loaded before a process was forked."""

    def __init__(self):
        self.places = {}  # id of a function: pairs of a namespace and a key
        self.last = None  # the module that was loaded last


_prepared = _Prepared()


def prepare(names):
    """Look for functions in all modules that are loaded, for this process and its forks.

    What is looked at is counted as used, which copies its page after a fork. With PyTorch
    loaded it takes 50 ms to look at everything in each fork.

    Parameters
    ----------
    names : sequence of str
        As for :class:`Shortcuts`.
    """
    functions = _find(names, lambda name, original: original)[2]
    _prepared.places = {number: [] for number in functions}
    for module in _modules():
        for key, value in vars(module).items():
            if id(value) in functions:
                _prepared.places[id(value)].append((vars(module), key))
    _prepared.last = next(reversed(sys.modules))


def _modules(last=None):
    """List the modules that were loaded after one, or all."""
    found = []
    for name in reversed(sys.modules):
        if name == last:
            break
        if isinstance(sys.modules[name], types.ModuleType):
            found.append(sys.modules[name])
    return found


def _copy(function):
    """Return a function that does the same and keeps its code."""
    kept = (function.__code__, function.__globals__, function.__name__)
    copy = types.FunctionType(*kept, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _calling(refusal, function):
    """Return code for ``function`` that calls ``refusal`` and uses no name to find it."""

    def stub(*args, **kwargs):
        call = "refusal"
        return call(*args, **kwargs)

    code = stub.__code__
    constants = tuple(refusal if c == "refusal" else c for c in code.co_consts)
    return code.replace(co_consts=constants, co_freevars=function.__code__.co_freevars)


def _places(namespace, refusals):
    """List the patches for all names of refused functions in one namespace."""
    return [
        (namespace, key, refusals[id(value)][1])
        for key, value in (list(namespace.items()) if refusals else ())
        if id(value) in refusals
    ]


def _resolve(name):
    """Return the owner (module or class) and the last part of a dotted name."""
    path, _, key = name.rpartition(".")
    # As an attribute, a module can be hidden by a function that is called like it.
    owner = sys.modules.get(path)
    if owner is None:
        first, *rest = path.split(".")
        owner = sys.modules.get(first)
        for part in rest:
            owner = getattr(owner, part, None)
    return (owner, key) if hasattr(owner, key) else (None, key)


@contextlib.contextmanager
def patched(owner, key, value):
    """Set an entry of a namespace or an attribute of a class, and put it back."""
    space = owner if type(owner) is dict else vars(owner)
    had, old = key in space, space.get(key)
    write = owner.__setitem__ if type(owner) is dict else lambda k, v: setattr(owner, k, v)
    remove = owner.__delitem__ if type(owner) is dict else lambda k: delattr(owner, k)
    write(key, value)
    try:
        yield
    finally:
        if had:
            write(key, old)
        else:
            remove(key)
