"""The page of equations: equation -> page -> functions -> test -> task."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from course_book import data, gaps
from course_book.data import Nothing
from course_book.markdown import Generated
from course_book.numbering import EquationCopy

PAGE = "book/equations"
PLACES = (
    ("numpy", "NumPy", "seqlib.np."),
    ("pytorch", "PyTorch", "seqlib.pt."),
    ("test", "Test", "tests/"),
    ("task", "Task", ""),
)


def as_markdown(equations, topics):
    """Return the page's body: a section for each chapter, an entry for each equation."""
    titles = {topic.slug: topic.title for topic in topics}
    lines = []
    page = None
    for row in equations:
        if row.page != page:
            page = row.page
            lines += [f"## {titles[page]}", ""]
        lines += [f"### ({row.number}) {row.about}", ""]
        lines += [f"```{{equation-copy}} {row.label}", "```", ""]
        lines += [f":Notes: {row.notes}"]
        lines += [f":Page: {{doc}}`/book/{page}`, equation {{eq}}`{row.label}`"]
        for place, title, prefix in PLACES:
            lines.append(f":{title}: {_describe(getattr(row, place), prefix)}")
        lines.append("")
    return "\n".join(lines)


def _describe(value, prefix):
    if isinstance(value, Nothing):
        return f"none: {value.reason}"
    return ", ".join(f"`{prefix}{name}`" for name in value)


class Equations(Generated):
    """The body of the page of equations."""

    depends_on = "equations.toml"
    headings = True

    def text(self):
        """Return the entries of all equations."""
        return as_markdown(data.equations(), data.topics())


class CopyOfEquation(SphinxDirective):
    """The formula of a chapter, shown again."""

    required_arguments = 1

    def run(self):
        """Leave a mark that :func:`_fill_copies` replaces when all pages are read."""
        return [EquationCopy(label=self.arguments[0])]


def _fill_copies(app, doctree, _docname):
    equations = app.env.get_domain("math").equations
    for mark in list(doctree.findall(EquationCopy)):
        page, number = equations[mark["label"]]
        formula = next(
            node
            for node in app.env.get_doctree(page).findall(nodes.math_block)
            if node.get("label") == mark["label"]
        )
        text = formula.astext()
        copy = nodes.math_block(text, text, nowrap=False, number=number, label=None)
        copy["ids"] = [f"copy-of-{mark['label']}"]
        mark.replace_self(copy)


def _check_tables(_app):
    equations, topics = data.equations(), data.topics()
    assignments = {topic.assignment for topic in topics if topic.assignment}
    gaps.raise_gaps(
        gaps.topic_gaps(topics)
        + gaps.equation_gaps(equations)
        + gaps.task_gaps(equations, assignments)
    )


def _check_pages(_app, env):
    shown = {label: page for label, (page, _) in env.get_domain("math").equations.items()}
    gaps.raise_gaps(gaps.page_gaps(data.equations(), shown))


def setup(app):
    """Register the directives and the checks."""
    app.add_directive("equations", Equations)
    app.add_directive("equation-copy", CopyOfEquation)
    app.add_node(EquationCopy)
    app.connect("builder-inited", _check_tables)
    # The page copies formulas of other pages, so it is written anew with each build.
    app.connect("env-updated", lambda _app, _env: [PAGE])
    app.connect("env-check-consistency", _check_pages)
    app.connect("doctree-resolved", _fill_copies)
