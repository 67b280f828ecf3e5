"""A figure without a text that says what is seen fails the build."""

from docutils import nodes

from course_book.data import GapError


def images_without_text(doctree):
    """Return where an image has no alternative text."""
    return [
        f"{node.source or '?'}:{node.line or '?'}: {node.get('uri')}"
        for node in doctree.findall(nodes.image)
        if not node.get("alt", "").strip()
    ]


def _check(app, doctree):
    if found := images_without_text(doctree):
        raise GapError(
            f"{app.env.docname}: {len(found)} figure(s) without alternative text; set `:alt:`, "
            "or in a cell `mystnb: {image: {alt: ...}}`:\n  " + "\n  ".join(found)
        )


def setup(app):
    """Check each page after it is read."""
    app.connect("doctree-read", _check)
