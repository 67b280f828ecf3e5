"""Every page with cells downloads as a notebook, through the button of the theme.

The theme offers it only where a launch button is configured; here there is none, since a
launch button needs a server of somebody else.
"""

import shutil
from pathlib import Path


def _offer(app, pagename, _template, context, _doctree):
    made = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"
    if pagename in app.env.found_docs and made.is_file():
        target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, target)
        context["ipynb_source"] = f"{pagename}.ipynb"


def setup(app):
    """Run before the theme makes its buttons."""
    app.connect("html-page-context", _offer, priority=100)
