"""Cells with answers: right in several styles, wrong in every known way, degenerate."""

import ast
import importlib.util
import sys
import textwrap

from seqlib.grading.samples.standalone import standalone


def call_text(task):
    """Return the parameters of a task's function, and the arguments that pass them on.

    >>> call_text(task)  # of signature "(x, *, n_head)"
    ("(x, *, n_head)", "x, n_head=n_head")
    """
    signature = task.signature.partition("->")[0].strip()
    arguments = ast.parse(f"def f{signature}: pass").body[0].args
    passed = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    passed += [f"{a.arg}={a.arg}" for a in arguments.kwonlyargs]
    return signature, ", ".join(passed)


def mistake(task, misconception):
    """Return a cell in which a task's function makes one known mistake."""
    signature, passed = call_text(task)
    name = f"_{task.function}_with_a_mistake"
    if misconception.function is not None:
        source = standalone(misconception.function, name)
        call = f"{name}({passed})"
    else:
        source = standalone(task.variant, name)
        call = f"{name}({passed}, wrong=frozenset({{{misconception.name!r}}}))"
    return f"{source}\n\n\ndef {task.function}{signature}:\n    return {call}"


def styles(course, name):
    """Return ``{function: right answers}`` of an assignment from ``tests/styles``, if any."""
    path = course.root / "tests" / "styles" / f"{name}.py"
    if not path.is_file():
        return {}
    spec = importlib.util.spec_from_file_location(f"styles.{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # inspect finds the source of its functions through it
    spec.loader.exec_module(module)
    return module.STYLES


def style(task, function):
    """Return a cell with a right answer in one style."""
    return (
        f"{standalone(function, f'_{task.function}')}\n\n\n{task.function} = _{task.function}"
    )


def float32(task, solution):
    """Return a cell in which the solution works in float32, from arguments to result."""
    return (
        solution
        + textwrap.dedent(
            f"""


        def _in_float32(function):
            def narrow(value):
                if isinstance(value, tuple | list):
                    return type(value)(map(narrow, value))
                is_double = getattr(value, "dtype", None) == np.float64
                return value.astype(np.float32) if is_double else value

            def narrowed(*args, **kwargs):
                kwargs = {{name: narrow(value) for name, value in kwargs.items()}}
                return narrow(function(*map(narrow, args), **kwargs))

            return narrowed


        {task.function} = _in_float32({task.function})
        """
        ).rstrip()
    )


def zeros(task):
    """Return a cell whose answer is always zeros."""
    return f"def {task.function}(*args, **kwargs):\n    return np.zeros_like(args[0])"


def first_argument(task):
    """Return a cell that gives back what it is given."""
    return f"def {task.function}(*args, **kwargs):\n    return args[0]"


def constant(task):
    """Return a cell that always gives the same number."""
    return f"def {task.function}(*args, **kwargs):\n    return 1.0"


# Code that attacks the grader. In each, the rest of the notebook is solved.


def endless(task):
    """Return a cell whose function never ends."""
    return f"def {task.function}(*args, **kwargs):\n    while True:\n        pass"


def exits(task):
    """Return a cell whose function ends the process."""
    return f"def {task.function}(*args, **kwargs):\n    import os\n\n    os._exit(0)"


FLOOD = "for _ in range(100_000):\n    print('x' * 1000)"  # 100 MB
EXIT = "import os\n\nos._exit(0)"
PATCH = """\
import builtins

np.allclose = np.isclose = np.array_equal = np.array_equiv = lambda *a, **k: True
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
builtins.abs = builtins.max = lambda *a, **k: 0.0"""


def search(task):
    """Return a cell that looks for a reference solution and gives back what it finds."""
    return f"""\
def _search():
    import gc
    import glob
    import sys

    name = {task.function!r}
    for module in list(sys.modules.values()):
        if name in vars(module) and module.__name__ != "__main__":
            return vars(module)[name]
    for thing in gc.get_objects():
        if type(thing).__name__ == "function" and thing.__name__ == "reference":
            return thing
    for place in ("seqlib.np", "seqlib.exercises.{task.id.partition(".")[0]}"):
        try:
            return getattr(__import__(place, fromlist=["x"]), name)
        except Exception:
            pass
    for pattern in ("**/solutions/*/*.ipynb", "/proc/*/environ", "../**/secret"):
        try:
            for path in glob.glob(pattern, recursive=True):
                print(path, open(path, "rb").read()[:100])
        except Exception:
            pass
    return None


_found = _search()


def {task.function}(*args, **kwargs):
    return np.zeros(1) if _found is None else _found(*args, **kwargs)"""
