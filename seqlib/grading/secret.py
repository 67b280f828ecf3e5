"""The course's secret, and the seeds that are made from it.

A seed cannot be predicted by a student, who therefore cannot prepare answers, and can be
computed again by the instructor, who therefore can repeat every score.
"""

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path

LENGTH = 32


def course_secret(folder):
    """Return the secret of a course; make it at first use.

    Parameters
    ----------
    folder : path
        ``grading/`` of the course. The file ``secret`` in it is readable by its owner alone.

    Returns
    -------
    bytes
        32 bytes.

    Raises
    ------
    ValueError
        If the file is damaged: with another secret no score could be repeated, so none is
        made in its place.
    """
    path = Path(folder) / "secret"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _create(path, secrets.token_hex(LENGTH) + "\n")
    text = path.read_text(encoding="ascii", errors="replace").strip()
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != LENGTH:
        raise ValueError(
            f"secret must have {2 * LENGTH} hexadecimal digits, got a damaged file {path}; "
            "restore it from a backup, or delete it and grade everything again"
        )
    return secret


def _create(path, text):
    """Write a file that only its owner can read; leave it alone if it came to be meanwhile."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def seed(secret, student, task, version):
    """Return the seed of one student's task, an int below 2**63.

    Parameters
    ----------
    secret : bytes
        From :func:`course_secret`.
    student, task : str
        Who, and the id of the task.
    version : int
        The version of the exercise.
    """
    message = json.dumps([student, task, version])
    digest = hmac.new(secret, message.encode("ascii"), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1
