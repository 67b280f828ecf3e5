"""Equations of the notes keep the notes' numbers; others are lettered page by page."""

from docutils import nodes
from sphinx.domains.math import MathDomain

from course_book import data


class EquationCopy(nodes.General, nodes.Element):
    """Stands for the formula of another page until every page is read."""


def letters(count):
    """Return the ``count``-th mark of an equation of our own: a, b, ..., z, aa."""
    text = ""
    while count > 0:
        count, rest = divmod(count - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


class NotesMathDomain(MathDomain):
    """A math domain whose number depends on the label, not on the order of the pages."""

    def note_equation(self, docname, labelid, location=None):
        """Record the equation under its number; a second one of this label is a warning."""
        super().note_equation(docname, labelid, location)
        number = {e.label: e.number for e in data.equations()}.get(labelid)
        if number is None:
            own = self.data.setdefault("own", {}).setdefault(docname, [])
            own.append(labelid)
            number = letters(len(own))
        self.equations[labelid] = (docname, number)

    def process_doc(self, env, docname, document):
        """Note which pages need MathJax: also those that show a formula of another page."""
        super().process_doc(env, docname, document)
        if any(document.findall(EquationCopy)):
            self.data["has_equations"][docname] = True

    def clear_doc(self, docname):
        """Forget the equations of a page that is read again."""
        super().clear_doc(docname)
        self.data.setdefault("own", {}).pop(docname, None)


def setup(app):
    """Replace Sphinx's math domain."""
    app.add_domain(NotesMathDomain, override=True)
