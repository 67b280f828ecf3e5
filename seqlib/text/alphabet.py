"""A visible character for every byte, as the vocabulary files of GPT-2 write tokens."""

__all__ = ["byte_alphabet", "from_printable", "to_printable"]


def byte_alphabet():
    """Return the character that stands for each byte.

    The 188 bytes whose character in Latin-1 is visible stand for themselves: 65 is A, 240 is
    ð. The others, in order, take the characters from U+0100 on: byte 0 is Ā, the newline 10
    is Ċ, the space 32 is Ġ. So a token of any bytes can be written in one word. The four
    bytes of 😭, 240, 159, 152 and 173, are written ðŁĺŃ: that is no damage, but the table.

    Returns
    -------
    dict of int to str
        256 different characters, one per byte.

    References
    ----------
    Radford et al. (2019), "Language Models are Unsupervised Multitask Learners"; the files
    ``vocab.bpe`` and ``encoder.json`` published with it.
    """
    visible = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)}
    visible |= set(range(ord("®"), ord("ÿ") + 1))
    hidden = [byte for byte in range(256) if byte not in visible]
    stand_in = {byte: chr(256 + n) for n, byte in enumerate(hidden)}
    return {byte: stand_in.get(byte, chr(byte)) for byte in range(256)}


_CHARACTERS = byte_alphabet()
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


def to_printable(token):
    """Write bytes as visible characters: ``b" the"`` is ``"Ġthe"``."""
    return "".join(_CHARACTERS[byte] for byte in token)


def from_printable(word):
    """Read what :func:`to_printable` wrote; a character that it does not use is an error."""
    try:
        return bytes(_BYTES[character] for character in word)
    except KeyError as error:
        raise ValueError(
            f"token must be written in the 256 characters that stand for bytes, got {word!r}; "
            "a space, for example, is written as Ġ"
        ) from error
