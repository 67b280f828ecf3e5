"""One function as source text that stands alone."""

import ast
import inspect
import textwrap
import types


def standalone(function, name):
    """Return source that defines ``name`` as a function, with all that it needs.

    The functions of this course that it calls are copied into the text, so that it runs where
    ``seqlib`` does not exist.

    Parameters
    ----------
    function : callable
        Written in a module of the course or its tests.
    name : str
        What the function is called in the text; nothing else is defined outside of it.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the source needs something that cannot be written down, or two functions of the
        same name.

    Examples
    --------
    ``standalone(math_function, "_wrong")`` gives::

        def _wrong():
            import numpy as np
            def helper(x): ...
            def math_function(x): ...
            return math_function
        _wrong = _wrong()
    """
    parts = {}
    _collect(function, parts)
    body = "\n\n".join([*(text for _, text in parts.values()), f"return {function.__name__}"])
    return f"def {name}():\n{textwrap.indent(body, '    ')}\n\n\n{name} = {name}()"


def _collect(function, parts):
    """Put a function behind everything that it uses."""
    source = textwrap.dedent(inspect.getsource(function))
    known = parts.setdefault(function.__name__, (function, source))
    if known[0] is not function:
        raise ValueError(f"{function.__name__} must mean one function, got two of this name")
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    for name in sorted(used & set(function.__globals__)):
        value = function.__globals__[name]
        if name not in parts:
            _define(name, value, parts)
        elif parts[name][0] is not value:
            raise ValueError(f"{name} must mean one thing, got two of this name")
    parts[function.__name__] = parts.pop(function.__name__)


def _define(name, value, parts):
    if isinstance(value, types.ModuleType):
        parts[name] = (value, f"import {value.__name__} as {name}")
    elif isinstance(value, types.FunctionType) and _is_ours(value):
        _collect(value, parts)
        if value.__name__ != name:
            parts[name] = (value, f"{name} = {value.__name__}")
    elif isinstance(value, types.FunctionType | type):
        line = f"from {value.__module__} import {value.__qualname__} as {name}"
        parts[name] = (value, line)
    else:
        try:
            same = ast.literal_eval(repr(value)) == value
        except (ValueError, SyntaxError):
            same = False
        if not same:
            raise ValueError(f"{name} must be a plain value, got {value!r}")
        parts[name] = (value, f"{name} = {value!r}")


def _is_ours(function):
    module = function.__module__.partition(".")[0]
    return module in ("seqlib", "styles", "written_afresh", "__main__") or module.startswith(
        ("test", "tiny")
    )
