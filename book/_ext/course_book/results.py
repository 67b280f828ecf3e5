"""The role ``{result}`` quotes a committed result file, so that no number is typed.

``{result}`sqrt_dk:scores.raw.median.1024:.2g``` reads ``results/sqrt_dk.json``, walks the keys
``scores``, ``raw``, ``median``, ``1024`` and formats the number with ``.2g``.
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
    for key in keys.split("."):
        if not isinstance(value, dict) or key not in value:
            has = ", ".join(value) if isinstance(value, dict) else f"the value {value!r}"
            raise GapError(f"{{result}}`{text}`: no key {key!r} in {path.name}; here is {has}")
        value = value[key]
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise GapError(f"{{result}}`{text}`: must name one number or text, got {value!r}")
    return format(value, spec), path


def _role(_name, _rawtext, text, _lineno, inliner, _options=None, _content=None):
    shown, path = quote(text)
    inliner.document.settings.env.note_dependency(str(path))
    return [nodes.inline(text, shown, classes=["result"])], []


def setup(app):
    """Register the role."""
    app.add_role("result", _role)
