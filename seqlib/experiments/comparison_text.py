"""One real text that is the same for everyone: the documentation of the pinned NumPy.

The docstrings of NumPy's folders ``_core``, ``fft``, ``lib`` and ``linalg``, read from its
source files. Examples are left out, since they are code, and a paragraph that occurs twice is
kept once, so that no text holds a paragraph of another.
"""

import ast
import hashlib
import inspect
import re
from pathlib import Path

import numpy as np

__all__ = ["ALPHABET", "SHA256", "documents", "ids", "parts"]

FOLDERS = ("_core", "fft", "lib", "linalg")
SHA256 = "d325ee20b35378abbc13cf5ea5809221379fef3ea4451110d5d49b7b7ee914eb"
VERSION = "2.4.6"
EVERY = 25  # of so many docstrings one is for the choice of a rate and one for the test
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))  # all others become "~"


def documents():
    """Return the docstrings, in the order of the files, without examples and repetitions."""
    root = Path(np.__file__).parent
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    seen, found = set(), []
    for path in files:
        if "tests" not in path.relative_to(root).parts:
            for text in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
                kept = [p for p in _paragraphs(text) if ">>>" not in p and p not in seen]
                seen.update(kept)
                if kept:
                    found.append("\n".join(dict.fromkeys(kept)))
    return found


def parts():
    """Return three texts: to train on, to choose a learning rate with, and to test on.

    Raises
    ------
    ValueError
        If the text is not the one of the committed results.
    """
    found = documents()
    digest = hashlib.sha256("\0".join(found).encode()).hexdigest()
    if digest != SHA256:
        raise ValueError(
            f"numpy must have the documentation of version {VERSION}, got {np.__version__} "
            f"with the SHA-256 {digest}; install the pinned version"
        )
    choice, test = found[::EVERY], found[EVERY // 2 :: EVERY]
    training = [text for i, text in enumerate(found) if i % EVERY not in (0, EVERY // 2)]
    return tuple("\n\n".join(part) for part in (training, choice, test))


def ids(text):
    """Return the places of the characters in the alphabet, an array of shape (n,)."""
    place = {character: i for i, character in enumerate(ALPHABET)}
    return np.array([place.get(character, place["~"]) for character in text])


def _docstrings(tree):
    """Yield docstrings, and the long texts that ``add_newdoc`` attaches to compiled code."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            text = ast.get_docstring(node)
            if text:
                yield text
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "add_newdoc":
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and "\n" in str(part.value):
                    yield inspect.cleandoc(part.value)


def _paragraphs(text):
    """Return the paragraphs of a docstring, each in one line and without rules of dashes."""
    lines = (" ".join(p.split()) for p in re.split(r"\n\s*\n", text))
    lines = (re.sub(r" -{3,}", ":", line) for line in lines)
    return [line for line in lines if line]
