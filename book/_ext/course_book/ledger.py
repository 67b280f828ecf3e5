"""The page of equations: equation -> page -> functions -> test -> task, and its gaps."""

import ast
import importlib

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from course_book import data
from course_book.data import GapError, Nothing

PLACES = {"numpy": "NumPy", "pytorch": "PyTorch", "test": "Test", "task": "Task"}


class EquationCopy(nodes.General, nodes.Element):
    """Stands for the formula of a chapter until every page is read."""


def names_defined(path):
    """Return the names of the top-level functions and classes of a Python file."""
    if not path.is_file():
        return set()
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, kinds)}


def task_ids(assignment):
    """Return the ids of an assignment's tasks; none where there is no such assignment."""
    name = f"seqlib.exercises.{assignment}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return {}
    return {task.id: task for task in module.ASSIGNMENT.tasks}


def gaps(equations, root=data.ROOT):
    """Return what the ledger promises and the repository lacks, one sentence each."""
    found = []
    for row in equations:
        if not (root / "book" / f"{row.page}.md").is_file():
            found.append(f"{row.label}: there is no page book/{row.page}.md")
        for package, value in (("np", row.numpy), ("pt", row.pytorch)):
            for name in () if isinstance(value, Nothing) else value:
                module, _, function = name.rpartition(".")
                path = root / "seqlib" / package / f"{module}.py"
                if function not in names_defined(path):
                    found.append(f"{row.label}: seqlib.{package}.{name} is not defined")
        for name in () if isinstance(row.test, Nothing) else row.test:
            file, _, function = name.partition("::")
            if function not in names_defined(root / "tests" / file):
                found.append(f"{row.label}: there is no test tests/{name}")
        for name in () if isinstance(row.task, Nothing) else row.task:
            if name not in task_ids(name.partition(".")[0]):
                found.append(f"{row.label}: there is no task {name}")
        for place in PLACES:
            value = getattr(row, place)
            if not value or (isinstance(value, Nothing) and not value.reason):
                found.append(f"{row.label}: {place} is empty and gives no reason")
    return found


def page_gaps(equations, shown):
    """Return the equations that no page shows or that a page shows and the ledger lacks.

    ``shown`` maps each equation label to the page (``book/attention``) that defines it.
    """
    found = []
    rows = {row.label: row for row in equations}
    for row in equations:
        want, got = f"book/{row.page}", shown.get(row.label)
        if got is None:
            found.append(f"{row.label}: no page shows this equation, {want} should")
        elif got != want:
            found.append(f"{row.label}: shown on {got}, the ledger says {want}")
    for label in shown:
        if label.startswith("eq-") and label not in rows:
            found.append(f"{label}: on {shown[label]}, but not in book/data/equations.toml")
    return found


def raise_gaps(found):
    """Fail the build with all gaps at once."""
    if found:
        raise GapError(f"{len(found)} gap(s) in the ledgers of the book:\n  " + "\n  ".join(found))


def describe(value):
    """Return the names in one place of a row as MyST, or why there is none."""
    if isinstance(value, Nothing):
        return f"none: {value.reason}"
    return ", ".join(f"`{name}`" for name in value)


def as_markdown(equations, topics):
    """Return the page's body: a section for each chapter, an entry for each equation."""
    titles = {topic.slug: topic.title for topic in topics}
    lines = []
    page = None
    for row in equations:
        if row.page != page:
            page = row.page
            lines += [f"## {titles[page]}", ""]
        prefixes = {"numpy": "seqlib.np.", "pytorch": "seqlib.pt.", "test": "tests/", "task": ""}
        lines += [f"### ({row.number}) {row.about}", "", f"```{{equation-copy}} {row.label}"]
        lines += ["```", "", f":Notes: {row.notes}"]
        lines += [f":Page: {{doc}}`/book/{page}`, equation {{eq}}`{row.label}`"]
        for place, title in PLACES.items():
            value = getattr(row, place)
            if not isinstance(value, Nothing):
                value = tuple(prefixes[place] + name for name in value)
            lines.append(f":{title}: {describe(value)}")
        lines.append("")
    return "\n".join(lines)


class EquationsDirective(SphinxDirective):
    """The generated body of the page of equations."""

    def run(self):
        """Parse the generated Markdown in place."""
        self.env.note_dependency(str(data.ROOT / "book" / "data" / "equations.toml"))
        text = as_markdown(data.equations(), data.topics())
        holder = nodes.Element()
        lines = nodes_input(text, self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, holder, match_titles=True)
        return holder.children


def nodes_input(text, source):
    """Return text as the list of lines that docutils parses."""
    from docutils.statemachine import StringList

    return StringList(text.splitlines(), source=source)


class EquationCopyDirective(SphinxDirective):
    """The formula of a chapter, shown again."""

    required_arguments = 1

    def run(self):
        """Leave a mark that :func:`_fill_copies` replaces."""
        return [EquationCopy(label=self.arguments[0])]


def _fill_copies(app, doctree, _docname):
    for mark in list(doctree.findall(EquationCopy)):
        page = app.env.get_domain("math").equations[mark["label"]][0]
        chapter = app.env.get_doctree(page)
        formula = next(
            node
            for node in chapter.findall(nodes.math_block)
            if node.get("label") == mark["label"]
        )
        text = formula.astext()
        mark.replace_self(nodes.math_block(text, text, nowrap=False, number=None, label=None))


def _check_data(_app):
    # TODO: raise, as soon as the functions, tests and tasks of every row are there.
    print("\n".join(gaps(data.equations())))


def _check_pages(_app, env):
    shown = {label: page for label, (page, _) in env.get_domain("math").equations.items()}
    raise_gaps(page_gaps(data.equations(), shown))


def _refresh(_app, _env):
    return ["book/equations"]  # copies formulas of pages that may have changed


def setup(app):
    """Register the directives and the checks."""
    app.add_directive("equations", EquationsDirective)
    app.add_directive("equation-copy", EquationCopyDirective)
    app.add_node(EquationCopy)
    app.connect("builder-inited", _check_data)
    app.connect("env-updated", _refresh)
    app.connect("env-check-consistency", _check_pages)
    app.connect("doctree-resolved", _fill_copies)
