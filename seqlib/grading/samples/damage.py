"""Damage that happens to notebook files on their way to the grader."""

import copy
import json


def to_bytes(notebook):
    """Return the file of a notebook."""
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def cell_of(notebook, key):
    """Return the cell with an id."""
    return next(cell for cell in notebook["cells"] if cell["id"] == key)


def without(notebook, *keys):
    """Return a notebook without some cells."""
    cells = [cell for cell in notebook["cells"] if cell["id"] not in keys]
    return {**notebook, "cells": cells}


def with_copies(notebook, *keys):
    """Return a notebook with some cells twice, the copy with an id of its own."""
    cells = []
    for cell in notebook["cells"]:
        cells.append(cell)
        if cell["id"] in keys:
            cells.append(copy.deepcopy(cell) | {"id": f"{cell['id']}-copy"})
    return {**notebook, "cells": cells}


def reversed_order(notebook):
    """Return a notebook with its cells in reversed order."""
    return {**notebook, "cells": notebook["cells"][::-1]}


def retyped(notebook, *keys):
    """Return a notebook in which some code cells are text."""
    notebook = copy.deepcopy(notebook)
    for key in keys:
        cell = cell_of(notebook, key)
        cell["cell_type"] = "markdown"
        del cell["outputs"], cell["execution_count"]
    return notebook


def without_metadata(notebook):
    """Return a notebook as an older editor leaves it: no ids, no metadata."""
    cells = [
        {k: v for k, v in c.items() if k != "id"} | {"metadata": {}} for c in notebook["cells"]
    ]
    return {**notebook, "cells": cells, "nbformat_minor": 4}


def in_format_3(notebook):
    """Return a notebook in the format of 2011."""
    cells = []
    for cell in notebook["cells"]:
        old = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        if cell["cell_type"] == "code":
            old |= {"input": cell["source"], "language": "python", "outputs": []}
        else:
            old["source"] = cell["source"]
        cells.append(old)
    return {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": cells}],
    }


def with_metadata(notebook, keys, change, tags=()):
    """Return a notebook in which grading data of some cells are changed, and tags added."""
    notebook = copy.deepcopy(notebook)
    for key in keys:
        metadata = cell_of(notebook, key)["metadata"]
        metadata["nbgrader"] |= change
        metadata["tags"] = list(tags)
    return notebook


def truncated(notebook, key):
    """Return the file of a notebook that breaks off within a cell."""
    data = to_bytes(notebook)
    return data[: data.index(f'"id": "{key}"'.encode())]


def conflicted(notebook):
    """Return the file of a notebook with the marks of an unfinished merge."""
    lines = to_bytes(notebook).splitlines(keepends=True)
    i = next(i for i, line in enumerate(lines) if line.strip().startswith(b'"nbformat_minor"'))
    theirs = b' "nbformat_minor": 2\n'
    lines[i : i + 1] = [b"<<<<<<< HEAD\n", lines[i], b"=======\n", theirs, b">>>>>>> main\n"]
    return b"".join(lines)
