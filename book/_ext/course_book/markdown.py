"""Directives that write MyST: the generated text is parsed where the directive stands."""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from course_book.data import ROOT


class Generated(SphinxDirective):
    """A directive whose content is MyST generated from a table in ``book/data``."""

    depends_on = ""
    headings = False

    def text(self):
        """Return the MyST source that takes the directive's place."""
        raise NotImplementedError

    def run(self):
        """Parse the generated text in place; a change of the table reads the page again."""
        self.env.note_dependency(str(ROOT / "book" / "data" / self.depends_on))
        holder = nodes.Element()
        lines = StringList(self.text().splitlines(), source=self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, holder, match_titles=self.headings)
        return holder.children
