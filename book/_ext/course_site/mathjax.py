"""MathJax without the parts that no page of the book asks for.

The extension ``sphinx-mathjax-offline`` copies all of MathJax, for every kind of input and
output and for speech in a dozen languages: 24 MB. The pages load ``tex-chtml.js``. It asks for
the fonts, and on demand for TeX extensions, for what reads formulas aloud, and, by the menu of
a formula, for drawing in SVG.
"""

from pathlib import Path

KEPT_FILES = (
    "tex-chtml.js",
    "input/mml.js",  # what reads formulas aloud goes through MathML
    "input/mml/entities.js",
    "output/svg.js",
    "output/svg/fonts/tex.js",
)
KEPT_FOLDERS = ("a11y", "input/tex/extensions", "output/chtml/fonts/woff-v2")
# A book in English: its speech, and Braille.
KEPT_SPEECH = ("base.json", "en.json", "nemeth.json")


def is_kept(name):
    """Return whether a file of MathJax, named from its folder, stays in the book."""
    if name.startswith("sre/mathmaps/"):
        return name.rpartition("/")[2] in KEPT_SPEECH
    return name in KEPT_FILES or any(name.startswith(f"{folder}/") for folder in KEPT_FOLDERS)


def trim(folder):
    """Remove the files that are not kept, and the folders that are then empty."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif not is_kept(path.relative_to(folder).as_posix()):
            path.unlink()


def _trim(app, exception):
    folder = Path(app.outdir) / "_static" / "mathjax"
    if exception is None and folder.is_dir():
        trim(folder)


def setup(app):
    """Run after ``sphinx-mathjax-offline`` has copied all."""
    app.connect("build-finished", _trim, priority=900)
