"""Tokenizers in files: JSON with a checksum, replaced as a whole."""

import contextlib
import hashlib
import json
import os
from pathlib import Path

__all__ = ["read", "write"]

_FORMAT = "seqlib tokenizer 1"


def write(path, kind, content):
    """Write ``content``, the tokenizer of the class named ``kind``, to a file.

    Parameters
    ----------
    path : str or path
        Name of the file.
    kind : str
        Name of the tokenizer's class.
    content : dict
        What JSON can write.
    """
    path = Path(path)
    whole = {"format": _FORMAT, "kind": kind, "sha256": _checksum(kind, content), **content}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            json.dump(whole, file, ensure_ascii=False, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def read(path, kind):
    """Return the content that :func:`write` wrote, if the file is sound and of this kind."""
    try:
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"path must be a file that save wrote, got {os.fspath(path)!r}, which is no JSON: "
            f"{error}; it may be cut off"
        ) from error
    if not isinstance(whole, dict) or whole.pop("format", None) != _FORMAT:
        raise ValueError(
            f'path must be a file that save wrote, with "format": "{_FORMAT}", '
            f"got {os.fspath(path)!r}; files of GPT-2 are read with from_gpt2, "
            "rank files with from_tiktoken"
        )
    found, checksum = whole.pop("kind", None), whole.pop("sha256", None)
    if checksum != _checksum(found, whole):
        raise ValueError(
            f"path must be a file that is as save wrote it, got {os.fspath(path)!r}, whose "
            "content does not fit its checksum; save the tokenizer again"
        )
    if found != kind:
        raise ValueError(
            f"path must hold a {kind}, got a {found} in {os.fspath(path)!r}; use {found}.load"
        )
    return whole


def _checksum(kind, content):
    canonical = json.dumps([kind, content], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
