"""Pages without Thebe, which the book does not use.

Jupyter Book always adds it, and declares its constants twice on each page, which is an error in
the reader's browser. Thebe would load its program from another host and run cells on a server
of somebody else.
"""


def is_of_thebe(file):
    """Return whether a script or style sheet of Sphinx belongs to Thebe."""
    body = file.attributes.get("body") or ""
    return "THEBE_JS_URL" in body or "sphinx-thebe" in str(file.filename or "")


def _leave_out(_app, _pagename, _template, context, _doctree):
    for kind in ("script_files", "css_files"):
        if kind in context:
            context[kind] = [file for file in context[kind] if not is_of_thebe(file)]


def setup(app):
    """Run after all extensions have added their scripts."""
    app.connect("html-page-context", _leave_out, priority=900)
