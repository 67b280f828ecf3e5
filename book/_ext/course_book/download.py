"""Every page with cells downloads as a notebook, through the button of the theme.

The theme offers it only where a launch button is configured; here there is none, since a
launch button needs a server of somebody else.
"""

import json
from pathlib import Path

from course_book.plain import plain


def has_cells(app, pagename):
    """Return whether the source of a page holds code that is executed."""
    if pagename not in app.env.found_docs:
        return False  # the index of terms, for example, has no source
    source = Path(app.env.doc2path(pagename)).read_text(encoding="utf-8")
    return "```{code-cell}" in source


def as_notebook(text):
    """Return an executed page so that a notebook program can show it: plain Markdown."""
    notebook = json.loads(text)
    kept = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = plain("".join(cell["source"]))
        if cell["source"]:
            kept.append(cell)
    notebook["cells"] = kept
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _offer(app, pagename, _template, context, _doctree):
    made = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"
    if has_cells(app, pagename) and made.is_file():
        target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(as_notebook(made.read_text(encoding="utf-8")), encoding="utf-8")
        context["ipynb_source"] = f"{pagename}.ipynb"


def setup(app):
    """Run before the theme makes its buttons."""
    app.connect("html-page-context", _offer, priority=100)
