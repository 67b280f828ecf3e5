"""What of a submission may reach the browser of the person who grades it.

nbgrader's pages show markdown without removing its HTML, and outputs of any type.
Here a student's text is changed so that no renderer finds a tag or a script address in it.
Outputs are reduced to text and PNG pictures where they come from
(``seqlib.grading.sandbox.outputs``).
"""

import re

# Where a renderer could see a tag, a comment or an address in angle brackets.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# Where it could see a character that is written as an entity.
_ENTITY = re.compile(r"&(?=#|[A-Za-z][A-Za-z0-9]*;)")
_PICTURE = r"image/(?:png|jpe?g|gif);base64,"
_SCRIPT = re.compile(
    rf"(javascript|vbscript|data)([\s\\]*):(?=\S)(?!{_PICTURE})", re.IGNORECASE
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Commands of TeX with which MathJax makes links, loads extensions or sets attributes.
_TEX = re.compile(r"\\(?=(?:href|require|csname|style|class|cssId|bbox|mmlToken|data)\b)")


def markdown(source):
    """Return a student's markdown without HTML.

    A space is put behind each ``<`` that could begin a tag and each ``&`` that could begin an
    entity, which changes no formula: ``$i<j$`` becomes ``$i< j$``.
    """
    source = _CONTROL.sub("", source)
    source = _ENTITY.sub("& ", source)
    source = _TAG.sub("< ", source)
    source = _TEX.sub(r"\\ ", source)
    return _SCRIPT.sub(r"\1\2 :", source)


def cells(notebook, release):
    """Return the cells of a notebook, with those that a student wrote made harmless.

    Parameters
    ----------
    notebook : dict
        In the released form; not modified.
    release : dict
        The released notebook, whose own text stays as it is.
    """
    released = {cell["id"]: cell["source"] for cell in release["cells"]}
    return [
        cell if released.get(cell["id"]) == cell["source"] else _harmless(cell)
        for cell in notebook["cells"]
    ]


def _harmless(cell):
    if cell["cell_type"] == "markdown":
        return cell | {"source": markdown(cell["source"])}
    if cell["cell_type"] == "raw":
        # A raw cell would be put into the page as it is.
        longest = max((len(run) for run in re.findall("`+", cell["source"])), default=0)
        fence = "`" * max(3, longest + 1)
        body = f"{fence}\n{_CONTROL.sub('', cell['source'])}\n{fence}"
        return {"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": body}
    return cell


def note(lines, key="grading-note"):
    """Return a markdown cell that tells what was done to a submission."""
    source = "\n".join(["**How this submission was read**", "", *(f"- {x}" for x in lines)])
    return {"cell_type": "markdown", "id": key, "metadata": {}, "source": markdown(source)}
