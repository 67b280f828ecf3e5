"""Figures that the reader moves: the directive ``interactive``, and their static forms.

``{interactive} gradient`` is a figure of ``_static/interactive/gradient.svg`` with a caption
and ``:alt:``, which a browser with JavaScript replaces by ``_static/interactive/gradient.js``:
the same drawing with controls. The numbers are computed by ``_static/interactive/numbers``,
which knows nothing of the page, and a test compares them with seqlib.

``python -m course_book.interactive`` draws the static forms anew, from the state that each
figure starts with. It needs Node.js; building the book does not.
"""

import json
import subprocess
import sys

from docutils import nodes
from sphinx.directives.patches import Figure

from course_book.data import ROOT

FOLDER = ROOT / "book" / "_static" / "interactive"
WIDTH = 560  # pixels of the static forms
_DRAW = """
const [folder, width, ...names] = process.argv.slice(1);
const drawings = {};
for (const name of names) {
  const { default: figure } = await import(`${folder}/${name}.js`);
  const start = Object.values(figure.examples)[0];
  drawings[name] = figure.draw(figure.compute(start), Number(width));
}
console.log(JSON.stringify(drawings));
"""


def names():
    """Return the names of the figures: modules that have a static form beside them."""
    return sorted(path.stem for path in FOLDER.glob("*.svg"))


def drawings(figures=None, width=WIDTH):
    """Return the static form of each figure as SVG text."""
    command = ["node", "--input-type=module", "--eval", _DRAW, str(FOLDER), str(width)]
    done = subprocess.run(
        [*command, *(names() if figures is None else figures)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def write(figures):
    """Draw the static forms anew."""
    for name, svg in drawings(figures or None).items():
        (FOLDER / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")


class InteractiveFigure(nodes.General, nodes.Element):
    """Holds the static figure; the browser finds it by its name."""


class Interactive(Figure):
    """A figure whose argument is the name of a module in place of a file."""

    def run(self):
        """Make the static figure, in a holder that tells the module."""
        name = self.arguments[0]
        if name not in names():
            raise self.error(f"interactive must name one of {', '.join(names())}, got {name}")
        self.arguments[0] = f"/book/_static/interactive/{name}.svg"
        holder = InteractiveFigure(interactive=name)
        holder += super().run()
        return [holder]


def _visit(translator, node):
    name = node["interactive"]
    translator.body.append(f'<div class="interactive" data-interactive="{name}">\n')


def _depart(translator, _node):
    translator.body.append("</div>\n")


def _nothing(_translator, _node):
    pass


def _load(app, _pagename, _template, _context, doctree):
    """Load the scripts on the pages that need them."""
    if doctree is not None and next(iter(doctree.findall(InteractiveFigure)), None):
        app.add_css_file("interactive/interactive.css")
        app.add_js_file("interactive/main.js", type="module")


def setup(app):
    """Register the directive."""
    other = dict.fromkeys(("latex", "text", "man", "texinfo"), (_nothing, _nothing))
    app.add_node(InteractiveFigure, html=(_visit, _depart), **other)
    app.add_directive("interactive", Interactive)
    app.connect("html-page-context", _load)


if __name__ == "__main__":
    write(sys.argv[1:])
