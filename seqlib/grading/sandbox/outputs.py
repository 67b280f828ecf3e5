"""Outputs of cells as they come from the sandbox: checked, cut, and free of control codes.

The far side may send anything. What is kept is nbformat's four kinds of output with text and
PNG pictures; a picture must be one, text must be printable.
"""

import base64
import binascii
import re

MAX_TEXT = 150_000
MAX_OUTPUTS = 500
_PNG = b"\x89PNG\r\n\x1a\n"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]")


def clean_text(text, limit=MAX_TEXT):
    """Return ``text`` without colour codes and control characters, cut to ``limit``."""
    if not isinstance(text, str):
        return ""
    text = _CONTROL.sub("", text[: 2 * limit])
    return text if len(text) <= limit else text[:limit] + "\n[cut]"


def clean_outputs(outputs, limit):
    """Return a cell's outputs in nbformat's form, with about ``limit`` characters at most."""
    kept = []
    for output in outputs[:MAX_OUTPUTS] if isinstance(outputs, list) else []:
        if limit <= 0:
            break
        cleaned = _clean(output, limit) if isinstance(output, dict) else None
        if cleaned is not None:
            limit -= size(cleaned)
            kept.append(cleaned)
    return kept


def size(output):
    """Return how many characters an output takes, about."""
    return len(str(output))


def error_output(name, message):
    """Return an error output that stands for a cell that was stopped."""
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": [message]}


def _clean(output, limit):
    kind, name = output.get("output_type"), output.get("name")
    if type(kind) is not str:  # an array would be compared entry by entry
        return None
    if kind == "stream" and type(name) is str and name in ("stdout", "stderr"):
        text = clean_text(output.get("text"), limit)
        return {"output_type": kind, "name": name, "text": text}
    if kind == "error":
        lines = output.get("traceback")
        lines = lines[:200] if isinstance(lines, list) else []
        text = "\n".join(clean_text(line, 2000) for line in lines)
        return {
            "output_type": kind,
            "ename": clean_text(output.get("ename"), 100),
            "evalue": clean_text(output.get("evalue"), 2000),
            "traceback": clean_text(text, limit).split("\n") if lines else [],
        }
    if kind in ("display_data", "execute_result"):
        cleaned = {"output_type": kind, "data": _data(output.get("data"), limit)}
        cleaned["metadata"] = {}
        if kind == "execute_result":
            count = output.get("execution_count")
            cleaned["execution_count"] = count if type(count) is int else None
        return cleaned
    return None


def _data(data, limit):
    kept = {}
    if isinstance(data, dict):
        if isinstance(data.get("text/plain"), str):
            kept["text/plain"] = clean_text(data["text/plain"], limit)
        if _is_png(data.get("image/png")):
            kept["image/png"] = data["image/png"]
    return kept


def _is_png(text):
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        return False
    try:
        return base64.b64decode(text.replace("\n", ""), validate=True).startswith(_PNG)
    except (binascii.Error, ValueError):
        return False
