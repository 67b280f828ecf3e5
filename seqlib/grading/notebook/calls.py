"""The one form that a test cell may have: ``check("attention.split_heads", split_heads)``."""

import ast
from typing import NamedTuple


class CheckCall(NamedTuple):
    """What a test cell checks: the id of a task, and the name of the student's function."""

    task: str
    function: str


def check_call(source):
    """Return what a test cell checks, or None if it is not exactly one line of this form."""
    line = source.strip()
    if "\n" in line or len(line) > 300 or not line.startswith("check("):
        return None
    try:
        call = ast.parse(line, mode="eval").body
    except SyntaxError:
        return None
    match call:
        case ast.Call(
            func=ast.Name(id="check"),
            args=[ast.Constant(value=str() as task), ast.Name(id=function)],
            keywords=[],
        ):
            return CheckCall(task, function)
    return None
