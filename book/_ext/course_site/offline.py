"""A chapter's cells for a machine without PyTorch: what needs it is commented out, in sight.

A statement is commented out if it imports a module that is absent, or reads a name that such a
statement would have set. The rest stays as it is on the page.
"""

import ast
import functools
import symtable

from course_book.data import ROOT

# What the browser's Python lacks, among what pages and ``seqlib`` import.
ABSENT = frozenset(
    ("multiprocessing", "pooch", "regex", "subprocess", "tiktoken", "tokenizers", "torch")
)
FILLING = ("append", "extend", "add", "update", "setdefault", "insert")
NOTE = "# PyTorch does not run in a browser: the lines that need it are commented out.\n"


def imported(statement):
    """Return the modules that an import may load, by the name that each is bound to."""
    if isinstance(statement, ast.Import):
        return {a.asname or a.name.partition(".")[0]: [a.name] for a in statement.names}
    module = statement.module or ""
    return {a.asname or a.name: [module, f"{module}.{a.name}"] for a in statement.names}


def _needed(module, root):
    """Return what a module of ``seqlib`` imports at its top, and the package that it is in."""
    path = root.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    needed = {module.rpartition(".")[0]} - {""}
    if source.is_file():
        for statement in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                needed.update(*imported(statement).values())
    return needed


@functools.cache
def is_absent(module, root=ROOT):
    """Return whether importing the module fails in the browser.

    A module of ``seqlib`` fails if one of those fails that it imports at its top, they again
    at theirs, and so on; what a function imports when it is called does not count.
    """
    seen, waiting = set(), {module}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        top = name.partition(".")[0]
        if top in ABSENT:
            return True
        if top == "seqlib":
            waiting |= _needed(name, root) - seen
    return False


def read_and_set(statement):
    """Return the names of the page that a statement reads, and those that it sets.

    A parameter, and what a function or a comprehension sets, is not a name of the page. What
    a loop or a ``with`` sets is not read from before it. To fill a list, a set or an array is
    to set it.
    """
    top = symtable.symtable(ast.unparse(statement), "page", "exec")
    read = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    written = {s.get_name() for s in top.get_symbols() if s.is_assigned()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        read |= {s.get_name() for s in table.get_symbols() if s.is_global()}
    for node in ast.walk(statement):
        if isinstance(node, ast.For):
            read -= _names(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars:
            read -= _names(node.optional_vars)
        elif _fills(node):
            written |= _names(node.value)
    return read, written


def _fills(node):
    if isinstance(node, ast.Attribute):
        return node.attr in FILLING
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _names(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _without_absent(statement):
    """Return the import without the absent modules as source, and the names that it lacks."""
    gone = {
        name for name, modules in imported(statement).items() if any(map(is_absent, modules))
    }
    kept = [a for a in statement.names if (a.asname or a.name.partition(".")[0]) not in gone]
    if not gone or not kept:
        return None, gone
    statement.names = kept
    return ast.unparse(statement), gone


def commented(source, lost):
    """Return the source of a cell without what needs an absent module, and if any was found.

    Parameters
    ----------
    source : str
    lost : set
        Names that earlier cells did not set for this reason. It is brought up to date.
    """
    lines = source.splitlines()
    changed = False
    for statement in ast.parse(source).body:
        kept = None
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            kept, gone = _without_absent(statement)
            lost |= gone
            bad = bool(gone)
        else:
            read, written = read_and_set(statement)
            bad = bool(read & lost)
            lost.update(written) if bad else lost.difference_update(written)
        if bad:
            changed = True
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(d.lineno for d in decorators)]) - 1
            for i in range(first, statement.end_lineno):
                lines[i] = f"# {lines[i]}".rstrip()
            if kept is not None:
                lines[statement.end_lineno - 1] += f"\n{kept}"
    text = "\n".join(lines)
    return (NOTE + text if changed else text), changed


def kept_share(cells):
    """Return which part of a page's lines of code runs without the absent modules."""
    lost, kept, total = set(), 0, 0
    for source in cells:
        text, _ = commented(source, lost)
        before = [line for line in source.splitlines() if _is_code(line)]
        after = [line for line in text.splitlines() if _is_code(line)]
        total += len(before)
        kept += len(after)
    return kept / total


def _is_code(line):
    return line.strip() and not line.lstrip().startswith("#")
