"""Font Awesome without the icons that no page shows.

The theme has all of them, 2,000 drawings in a script of 1.5 MB that every page loads. A page of
the book shows about twenty.
"""

import re
from pathlib import Path

from sphinx.errors import ExtensionError

SCRIPT = Path("_static") / "scripts" / "fontawesome.js"
# In an object of the script: name, width and height, other names, code, one path or two.
_ICON = re.compile(
    r'(?:"([a-z0-9-]+)"|([a-z][a-z0-9]*)):'
    r'\[\d+,\d+,\[([^\]]*)\],"[a-f0-9]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)
_SHOWN = re.compile(r"\bfa-([a-z0-9]+(?:-[a-z0-9]+)*)")
_OTHER_SITES = ("lite",)  # notebooks, which have icons of their own


def shown(folder):
    """Return the names of the icons that the pages and scripts of a site may show."""
    names = set()
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        ours = inside.parts[0] not in _OTHER_SITES and inside != SCRIPT
        if ours and path.suffix in (".html", ".js"):
            names.update(_SHOWN.findall(path.read_text(encoding="utf-8", errors="ignore")))
    return names


def cut(script, names):
    """Return Font Awesome's script with the icons of some names alone.

    Raises
    ------
    ValueError
        If it has not all of the icons: it is written in another way, or an icon has no drawing.
    """
    found = set()

    def kept(icon):
        called = {icon[1] or icon[2], *re.findall(r'"([a-z0-9-]+)"', icon[3])} & names
        found.update(called)
        return icon[0] if called else ""

    result = _ICON.sub(kept, script)
    if not found:
        raise ValueError(f"script must have drawings of {', '.join(sorted(names))}, got none")
    return result


def _cut(app, exception):
    path = Path(app.outdir) / SCRIPT
    if exception is None and path.is_file():
        try:
            script = cut(path.read_text(encoding="utf-8"), shown(Path(app.outdir)))
        except ValueError as error:
            raise ExtensionError(f"{SCRIPT}: {error}") from error
        path.write_text(script, encoding="utf-8")


def setup(app):
    """Run when all pages and files are written."""
    app.connect("build-finished", _cut, priority=900)
