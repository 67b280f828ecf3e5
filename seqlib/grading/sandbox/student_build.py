"""The student build: the ``seqlib`` that a submission can import while it is graded.

It holds ``check``, which only says that the grader judges later, and copies of the functions
that the assignment grants, each with the helpers, constants and imports that it needs and
nothing more. The copies are cut out of the library's source by name, so a granted function is
the library's, line for line, while the rest of the library is not there to be read.
"""

import compileall
import py_compile
from pathlib import Path

import seqlib

from .parts import Library

_UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
_ROOT = '''"""The part of the course's library that this assignment grants."""

import importlib
import sys

__version__ = {version!r}
_GRANTED = {granted!r}


def check(task, function=None):
    """Say that the grader judges ``task`` later; return 0.0."""
    print(f"{{task}}: judged by the grader after this notebook has run")
    return 0.0


def _refusal(name):
    granted = ", ".join(_GRANTED) or "only check"
    return f"{{name}} is not available in this assignment; available are {{granted}}"


class _NotGranted:
    """Finder that gives an import of another part of the library a clear error."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("seqlib.") and name not in _MODULES:
            raise ImportError(_refusal(name), name=name)


_MODULES = {modules!r}
sys.meta_path.insert(0, _NotGranted)


def __getattr__(name):
    if f"seqlib.{{name}}" in _MODULES:
        return importlib.import_module(f"seqlib.{{name}}")
    raise AttributeError(_refusal(f"seqlib.{{name}}"))
'''
# With a path of its own a module counts as a package, and `from module import name` then asks
# the finder above, whose error says what is available.
_MODULE_END = """

__path__ = []


def __getattr__(name):
    import seqlib

    raise AttributeError(seqlib._refusal(f"{__name__}.{name}"))
"""
_PACKAGE_END = _MODULE_END.replace("\n\n__path__ = []\n", "", 1)


def write_student_build(grants, folder):
    """Write the student build for some grants.

    Parameters
    ----------
    grants : iterable of str
        Names of library functions, ``"seqlib.np.softmax"`` (``Assignment.grants``).
    folder : str or Path
        Where to write it; made if it does not exist, else it must be empty.

    Returns
    -------
    Path
        The folder inside that goes on the module search path. It is called
        ``site-packages``, so that frames of library code in it count as a library's.

    Raises
    ------
    ValueError
        If a grant is not a function, class or constant of the library.
    """
    grants = sorted(set(grants))
    target = Path(folder) / "site-packages"
    target.mkdir(parents=True)
    library = Library()
    for grant in grants:
        library.grant(grant)
    sources = {
        name: text + (_PACKAGE_END if name in library.packages else _MODULE_END)
        for name, text in library.sources().items()
    }
    root = _ROOT.format(
        version=seqlib.__version__, granted=grants, modules=sorted({*sources, "seqlib"})
    )
    for name, source in {**sources, "seqlib": root}.items():
        path = target.joinpath(*name.split("."))
        path = path / "__init__.py" if name in library.packages else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    # Once here, instead of in each submission, which cannot write there.
    compileall.compile_dir(target, quiet=2, invalidation_mode=_UNCHECKED, stripdir=target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target
