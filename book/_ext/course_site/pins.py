"""Every file from elsewhere with its hash, read from ``pins.toml``; and the check of a hash."""

import base64
import hashlib
import tomllib
from pathlib import Path


class SiteError(Exception):
    """A file is not what its pin says, or the files do not fit together."""


class Missing(Exception):
    """Something that the browser's Python needs cannot be had on this machine."""


def read():
    """Return the content of ``pins.toml``."""
    return tomllib.loads(Path(__file__).with_name("pins.toml").read_text(encoding="utf-8"))


def sha256(content):
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def check_sha256(name, content, expected):
    """Raise unless the content has the expected SHA-256."""
    found = sha256(content)
    if found != expected:
        raise SiteError(f"{name} must have the SHA-256 {expected}, got {found}")


def check_integrity(name, content, expected):
    """Raise unless the content fits an integrity of npm: the method, a dash, base64."""
    method, _, encoded = expected.partition("-")
    found = base64.b64encode(hashlib.new(method, content).digest()).decode()
    if found != encoded:
        raise SiteError(f"{name} must have the integrity {expected}, got {method}-{found}")
