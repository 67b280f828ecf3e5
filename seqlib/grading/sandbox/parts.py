"""Parts of the library's source, cut out by name with all that they need.

The source is read, never run: which names a definition takes from its module says the symbol
table of the compiler, and imports are followed from module to module.
"""

import ast
import symtable
from dataclasses import dataclass, field
from pathlib import Path

import seqlib


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


class Library:
    """The library's source, of which parts are marked as needed.

    Attributes
    ----------
    packages : set of str
        The modules that are packages, once :meth:`sources` was called.
    """

    def __init__(self):
        self._folder = Path(seqlib.__file__).parent
        self._modules = {}
        self._exports = {}  # package or module that was granted from -> {name: home}
        self.packages = {"seqlib"}

    def grant(self, name):
        """Mark what a grant needs, and offer it where its name says.

        Raises
        ------
        ValueError
            If the library has no such name.
        """
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
        """Return the source of every module that has a needed part.

        Returns
        -------
        dict of str to str
            By full name, ``"seqlib.np.activation"``; packages on the way are there, empty.
        """
        found = {name: self._render(m) for name, m in self._modules.items() if m.needed}
        for place, names in self._exports.items():
            lines = [f"from {home} import {last}" for last, home in sorted(names.items())]
            found[place] = "\n".join(lines) + "\n" + found.get(place, "")
        for name in list(found):
            parts = name.split(".")
            for end in range(2, len(parts)):
                found.setdefault(".".join(parts[:end]), "")
        self.packages |= {n for n in found if self._file(n).name == "__init__.py"}
        return found

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
            imported = self._imported_module(module.bindings.get(used))
            if imported is not None:
                for part in _attributes(binding, used):
                    self._bring(imported, part)
        for node in ast.walk(binding):  # imports within the function
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    self._follow(node, alias)

    def _follow(self, node, alias):
        """Mark what an import brings, if it is from the library."""
        if self._imported_module((node, alias)) is not None:
            return  # the parts that are used are marked where they are used
        source = alias.name if isinstance(node, ast.Import) else node.module or ""
        relative = isinstance(node, ast.ImportFrom) and node.level
        if source.partition(".")[0] == "seqlib" or relative:
            if relative or isinstance(node, ast.Import):
                raise ValueError(
                    "the library must import as `from seqlib.x import y`, got "
                    f"{ast.unparse(node)!r}"
                )
            self._bring(source, alias.name)

    def _bring(self, place, name):
        """Mark a name that some module offers, wherever it is defined."""
        home = self._home(place, name)
        if home is None:
            raise ValueError(f"{place} must define {name}, which a granted function uses")
        self._need(home, name)
        if home != place:
            self._exports.setdefault(place, {})[name] = home

    def _imported_module(self, binding):
        """Return the module of the library that an import binds a name to, else None."""
        if not isinstance(binding, tuple):
            return None
        node, alias = binding
        name = alias.name
        if isinstance(node, ast.ImportFrom):
            name = f"{node.module}.{alias.name}"
        elif alias.asname is None:
            return None
        inside = name.startswith("seqlib.") and self._file(name) is not None
        return name if inside else None

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


def _attributes(node, name):
    """Return the attributes of ``name`` that a definition uses."""
    return {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == name
    }
