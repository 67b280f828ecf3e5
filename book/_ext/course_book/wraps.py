"""Signs that touch a formula stay on its line, and so do the parts of a number.

A formula in the text is a box, and a line may break beside a box, so that a line can begin with
the full stop of the sentence or end with an opening bracket.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

CLASS = "course-keep"
_AFTER = re.compile(r"(?: (?=%))?[^\s\u2013\u2014]+")  # a line may break at a dash
_BEFORE = re.compile(r"[(\[\u2018\u201c]+$")
_IN_NUMBER = re.compile(r"(?<=\d) (?=%|\d{3}\b|\+ \d)|(?<=\d \+) (?=\d)")


def keep_together(document):
    """Wrap each inline formula of a document with the signs that touch it.

    Parameters
    ----------
    document : docutils.nodes.document
        Changed in place: in ``($a$), then`` the formula moves into an inline node of the class
        ``course-keep``, with ``(`` before it and ``),`` behind it.
    """
    for formula in list(document.findall(nodes.math)):
        parent, at = formula.parent, formula.parent.index(formula)
        before = _touching(parent, at - 1, _BEFORE.search)
        after = _touching(parent, at + 1, _AFTER.match)
        if not (before or after):
            continue
        kept = nodes.inline(classes=[CLASS])
        parent[at] = kept
        if before:
            text = parent[at - 1].astext()
            parent[at - 1] = nodes.Text(text[: -len(before)])
            kept += nodes.Text(before)
        kept += formula
        if after:
            text = parent[at + 1].astext()
            parent[at + 1] = nodes.Text(text[len(after) :])
            kept += nodes.Text(after)


def _touching(parent, at, find):
    """Return what ``find`` sees in the text that is the child ``at``, or nothing."""
    if not 0 <= at < len(parent) or not isinstance(parent[at], nodes.Text):
        return ""
    found = find(parent[at].astext())
    return found[0] if found else ""


def join_numbers(document):
    """Let no line break in ``50 %``, ``50 257`` and ``90 + 10``, in the text of a document."""
    for text in list(document.findall(nodes.Text)):
        joined = _IN_NUMBER.sub("\u00a0", text)
        if joined != text and not isinstance(
            text.parent, nodes.FixedTextElement | nodes.literal
        ):
            text.parent.replace(text, nodes.Text(joined))


class _KeepTogether(SphinxPostTransform):
    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs):
        keep_together(self.document)
        join_numbers(self.document)


def setup(app):
    """Register the transform."""
    app.add_post_transform(_KeepTogether)
