"""Names of people and files as the platforms write them, and what may become a folder."""

import re
import unicodedata

# Enough for every platform's ids, and short enough for every file system.
MAX_ID = 100
MAX_FILE_NAME = 120
_DEVICES = {"con", "prn", "aux", "nul"} | {f"{d}{n}" for d in ("com", "lpt") for n in range(10)}
_UNSAFE = re.compile(r'[<>:"/\\|?*]')


def composed(text):
    """Return text in normal form C, so that both ways to write an accent are one name.

    Names from a Mac come decomposed (form D), names from a form composed.
    """
    return unicodedata.normalize("NFC", text)


def folded(text):
    """Return text for comparison: without case, width and superfluous spaces.

    >>> folded("  Ada   LOVELACE ")
    'ada lovelace'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def squeezed(text):
    """Return the letters and digits of text alone, for comparison.

    Canvas writes a name in this manner, so two names are the same there if these are.

    >>> squeezed("O'Brien-Lee, Zoë")
    'obrienleezoë'
    """
    return re.sub(r"[\W_]+", "", folded(text))


def slug(text):
    """Return a name as one word that may be a folder's.

    >>> slug("Zoë  O'Brien-Lee")
    'zoë-obrien-lee'
    """
    words = re.sub(r"[^\w\s.-]", "", composed(text).lower())
    return re.sub(r"[\s-]+", "-", words).strip("-._")


def related(full_name, platform_name):
    """Return whether a platform's form of a name shares a part with a name.

    Platforms show nicknames and leave middle names out, so one common part is enough. A name
    that is not known contradicts nothing.
    """
    parts = [squeezed(part) for part in re.split(r"[\s,]+", full_name)]
    parts = [part for part in parts if len(part) > 1 or not part.isascii()]
    whole = squeezed(platform_name)
    return not parts or not whole or any(part in whole for part in parts)


def checked_id(text, argument="student"):
    """Return a student's id in normal form C, which becomes the name of a folder.

    Parameters
    ----------
    text : str
        The id.
    argument : str, default="student"
        What it is called in the message.

    Raises
    ------
    ValueError
        If it cannot be the name of a folder, or nbgrader could not find that folder again.
    """
    name = composed(text).strip()
    # nbgrader looks for folders with patterns, in which brackets and stars have a meaning.
    bad = (
        not name
        or len(name) > MAX_ID
        or name.startswith((".", "-"))
        or name.endswith(".")
        or not re.fullmatch(r"[\w.@+\-]+", name)
        or name.split(".")[0].lower() in _DEVICES
    )
    if bad:
        raise ValueError(
            f"{argument} must consist of at most {MAX_ID} letters, digits and . _ @ + -, begin "
            "with a letter, a digit or _, end with no point, and be no name of a device, got "
            f"{shown(text)!r}"
        )
    return name


def safe_file_name(text):
    """Return a file's name that every system takes: what some of them refuse becomes ``_``.

    >>> safe_file_name("a/b: c?.ipynb")
    'a_b_ c_.ipynb'
    """
    name = "".join(
        "_" if ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 else c for c in composed(text)
    )
    name = _UNSAFE.sub("_", name).strip(" .") or "_"
    stem, dot, ending = name.rpartition(".")
    if dot and len(ending) <= 10:
        name = f"{stem[: MAX_FILE_NAME - len(ending) - 1]}.{ending}"
    else:
        name = name[:MAX_FILE_NAME]
    if name.split(".")[0].lower() in _DEVICES:
        name = f"_{name}"
    return name


def shown(text, most=200):
    """Return text for a terminal: what could move the cursor is replaced, the middle is cut."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    if len(text) > most:
        text = f"{text[: most // 2]}...{text[-(most // 2) :]}"
    return text
