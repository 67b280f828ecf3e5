"""The student build: the ``seqlib`` that a submission can import while it is graded.

It holds ``check``, which only says that the grader judges later, and copies of the functions
that the assignment grants, each with the helpers, constants and imports that it needs and
nothing more. The copies are cut out of the library's source by name, so a granted function is
the library's, line for line, while the rest of the library is not there to be read.
"""

import ast
import symtable
from dataclasses import dataclass, field
from pathlib import Path

import seqlib

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
    library = _Library()
    for grant in grants:
        library.grant(grant)
    sources = library.sources()
    root = _ROOT.format(
        version=seqlib.__version__, granted=grants, modules=sorted({*sources, "seqlib"})
    )
    for name, source in {**sources, "seqlib": root}.items():
        path = target.joinpath(*name.split("."))
        path = path / "__init__.py" if name in library.packages else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


@dataclass
class _Module:
    """One module of the library: what its names mean, and which of them are needed."""

    name: str
    path: Path
    text: str = field(init=False)
    bindings: dict = field(default_factory=dict, init=False)
    stars: list = field(default_factory=list, init=False)
    needed: set = field(default_factory=set, init=False)

    def __post_init__(self):
        self.text = self.path.read_text(encoding="utf-8")
        for node in ast.parse(self.text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.bindings[node.name] = node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(node.module)
                    else:
                        name = alias.asname or alias.name.partition(".")[0]
                        self.bindings[name] = (node, alias)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name):
                            self.bindings[part.id] = node

    def cut(self, node):
        """Return the lines of a statement, decorators included."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        return "\n".join(self.text.splitlines()[first - 1 : node.end_lineno])


class _Library:
    """The library's source, of which parts are marked as needed."""

    def __init__(self):
        self._folder = Path(seqlib.__file__).parent
        self._modules = {}
        self._exports = {}  # package or module that was granted from -> {name: home}
        self.packages = {"seqlib"}

    def grant(self, name):
        """Mark what a grant needs, and export it where its name says."""
        place, _, last = name.rpartition(".")
        if place.partition(".")[0] != "seqlib" or self._file(place) is None:
            raise ValueError(f"a grant must name a part of seqlib, got {name!r}")
        home = self._home(place, last)
        if home is None:
            raise ValueError(f"a grant must name a function that exists, got {name!r}")
        self._need(home, last)
        if home != place:
            self._exports.setdefault(place, {})[last] = home

    def sources(self):
        """Return the source of every module of the build."""
        found = {name: self._render(m) for name, m in self._modules.items() if m.needed}
        for place, names in self._exports.items():
            lines = [f"from {home} import {last}" for last, home in sorted(names.items())]
            found[place] = "\n".join(lines) + "\n" + found.get(place, "")
        for name in list(found):
            parts = name.split(".")
            for end in range(2, len(parts)):
                found.setdefault(".".join(parts[:end]), "")
        self.packages |= {n for n in found if self._file(n).name == "__init__.py"}
        return {
            name: text + (_PACKAGE_END if name in self.packages else _MODULE_END)
            for name, text in found.items()
        }

    def _render(self, module):
        """Return the needed statements of a module in their order."""
        statements = {}
        for name in module.needed:
            binding = module.bindings[name]
            node = binding[0] if isinstance(binding, tuple) else binding
            statements.setdefault(node.lineno, (node, []))[1].append(binding)
        parts = []
        for _, (node, bindings) in sorted(statements.items()):
            if isinstance(bindings[0], tuple):
                aliases = sorted((alias for _, alias in bindings), key=lambda a: a.name)
                node = (
                    ast.Import(aliases)
                    if isinstance(node, ast.Import)
                    else ast.ImportFrom(node.module, aliases, node.level)
                )
                parts.append(ast.unparse(node))
            else:
                parts.append("\n" + module.cut(node))
        return "\n".join(parts) + "\n"

    def _need(self, place, name):
        """Mark a name of a module and, again and again, what its definition uses."""
        module = self._load(place)
        if name in module.needed or name not in module.bindings:
            return
        module.needed.add(name)
        binding = module.bindings[name]
        if isinstance(binding, tuple):
            self._follow(*binding)
            return
        for used in _globals(module.cut(binding)):
            self._need(place, used)
        for node in ast.walk(binding):  # imports within the function
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    self._follow(node, alias)

    def _follow(self, node, alias):
        """Mark what an import brings, if it is from the library."""
        source = alias.name if isinstance(node, ast.Import) else node.module or ""
        if isinstance(node, ast.ImportFrom) and node.level:
            raise ValueError(
                f"the library must import by full names, got {ast.unparse(node)!r}"
            )
        if source.partition(".")[0] != "seqlib":
            return
        home = None if isinstance(node, ast.Import) else self._home(source, alias.name)
        if home is None:
            raise ValueError(f"the library must import names, got {ast.unparse(node)!r}")
        self._need(home, alias.name)
        if home != source:
            self._exports.setdefault(source, {})[alias.name] = home

    def _home(self, place, name):
        """Return the module that defines a name which ``place`` offers, None if none does."""
        module = self._load(place)
        if name in module.bindings:
            return place
        for star in module.stars:
            if (home := self._home(star, name)) is not None:
                return home
        return None

    def _load(self, name):
        if name not in self._modules:
            self._modules[name] = _Module(name, self._file(name))
        return self._modules[name]

    def _file(self, name):
        base = self._folder.joinpath(*name.split(".")[1:])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
        return None


def _globals(source):
    """Return the names that a definition takes from its module (and builtins)."""
    found = set()
    tables = [symtable.symtable(source, "<definition>", "exec")]
    for table in tables:  # grows while it is walked
        tables += table.get_children()
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            if symbol.is_global() or (top and symbol.is_referenced()):
                found.add(symbol.get_name())
    return found
