"""The role ``{result}`` quotes a committed result file, so that no number is typed.

``{result}`sqrt_dk:scores.raw.median.1024:.2g``` reads ``results/sqrt_dk.json``, walks the keys
``scores``, ``raw``, ``median``, ``1024`` and formats the number with ``.2g``.
A key may hold a point of its own, as ``0.01`` does.
"""

import json

from docutils import nodes

from course_book.data import ROOT, GapError

FOLDER = ROOT / "seqlib" / "experiments" / "results"


def quote(text, folder=FOLDER):
    """Return the quoted value as text, and the file that it comes from.

    Raises
    ------
    GapError
        If the file or one of the keys is not there, or the value is not a number or a text.
    """
    name, _, rest = text.partition(":")
    keys, _, spec = rest.partition(":")
    path = folder / f"{name}.json"
    if not path.is_file():
        raise GapError(f"{{result}}`{text}`: there is no result file {path.name}")
    value = json.loads(path.read_text(encoding="utf-8"))
    parts = keys.split(".")
    while parts:
        found = value if isinstance(value, dict) else {}
        key = next((start for start in _starts(parts) if start in found), None)
        if key is None:
            has = ", ".join(value) if isinstance(value, dict) else f"the value {value!r}"
            raise GapError(
                f"{{result}}`{text}`: no key {parts[0]!r} in {path.name}; here is {has}"
            )
        value, parts = value[key], parts[key.count(".") + 1 :]
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise GapError(f"{{result}}`{text}`: must name one number or text, got {value!r}")
    return format(value, spec), path


def _starts(parts):
    """Return what the next key may be, longest first: a.b.c, a.b, a."""
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _role(_name, _rawtext, text, _lineno, inliner, _options=None, _content=None):
    shown, path = quote(text)
    inliner.document.settings.env.note_dependency(str(path))
    return [nodes.inline(text, shown, classes=["result"])], []


def setup(app):
    """Register the role."""
    app.add_role("result", _role)
