"""Text to train on: from Python itself, from a file, from a pinned download."""

from pathlib import Path

__all__ = ["DOWNLOADS", "load_text"]

# Name of a text -> where it is and what its bytes must be.
DOWNLOADS = {
    "tinyshakespeare": {
        "url": "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
        "tinyshakespeare/input.txt",
        "sha256": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    },
}


def load_text(source="topics", *, folder=None):
    r"""Return a text.

    ``"topics"`` is the English of Python's own help pages and needs no file and no network:
    465 048 characters in Python 3.11.7. It changes with the version of Python, so a number
    that depends on it names the version.
    ``"tinyshakespeare"`` (1 115 394 characters, public domain) is downloaded once and
    then read from ``folder``; a file with other bytes is refused.

    Parameters
    ----------
    source : str or path, default="topics"
        One of these names, or a text file in UTF-8.
    folder : path, optional
        Where downloads are kept; the cache folder of the user if not given.

    Returns
    -------
    str
        The text, with ``\n`` at the ends of lines.

    Raises
    ------
    ValueError
        If there is no such file, it is empty or not UTF-8, or the download fails.
    """
    if source == "topics":
        from pydoc_data.topics import topics

        return "\n".join(topics[name] for name in sorted(topics))
    path = _download(source, folder) if source in DOWNLOADS else Path(source)
    if not path.is_file():
        names = ", ".join(["topics", *DOWNLOADS])
        raise ValueError(f"source must be a text file or one of {names}, got {str(source)!r}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"source must be text in UTF-8, got {str(source)!r} with byte "
            f"{error.object[error.start]:#04x} at position {error.start}; save it as UTF-8"
        ) from error
    if not text:
        raise ValueError(f"source must hold text, got the empty file {str(source)!r}")
    return text


def _download(name, folder):
    try:
        import pooch
    except ImportError as error:
        raise ValueError(
            f"source must be a file where the package pooch is missing, got {name!r}; "
            "install pooch, or give the path of a text"
        ) from error
    folder = pooch.os_cache("seqlib") if folder is None else folder
    url, sha256 = DOWNLOADS[name]["url"], DOWNLOADS[name]["sha256"]
    try:
        found = pooch.retrieve(
            url, f"sha256:{sha256}", fname=f"{name}.txt", path=folder, progressbar=False
        )
    except ValueError as error:  # pooch's answer to a hash that differs
        raise ValueError(
            f"source must have the SHA-256 {sha256[:12]}..., got other bytes from {url} for "
            f"{name!r}; give the path of a copy that you trust"
        ) from error
    except Exception as error:  # offline, behind a proxy, timed out: requests has many kinds
        raise ValueError(
            f"source must be reachable, got {type(error).__name__} for {name!r}; go online "
            f"once, save {url} yourself and give its path, or use 'topics'"
        ) from error
    return Path(found)
