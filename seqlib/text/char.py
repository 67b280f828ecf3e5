"""A vocabulary of single characters: the shortest way from text to ids."""

from seqlib.text.special import names, split_at
from seqlib.text.tokenizer import Tokenizer, check_text, documents

__all__ = ["CharTokenizer"]


class CharTokenizer(Tokenizer):
    """One token per character: a small vocabulary and long sequences.

    ``CharTokenizer("abc").encode("cab")`` is ``[2, 0, 1]``.

    Parameters
    ----------
    characters : str
        The vocabulary; a character's id is its place.
    special_tokens : sequence of str, or dict of str to int, default=()
        Tokens besides, numbered after the characters unless a dict gives their ids.

    Attributes
    ----------
    characters : str
        The vocabulary without the special tokens.

    Raises
    ------
    ValueError
        If a character occurs twice or there is none, or special tokens have no ids of their
        own.
    """

    def __init__(self, characters, *, special_tokens=()):
        check_text("characters", characters)
        if not characters or len(set(characters)) < len(characters):
            raise ValueError(
                f"characters must be distinct and at least one, got {characters!r}; "
                "CharTokenizer.train(text) finds those of a text"
            )
        self.characters = characters
        self._ids = {character: i for i, character in enumerate(characters)}
        super().__init__({i: c.encode() for c, i in self._ids.items()}, special_tokens)

    @classmethod
    def train(cls, text, *, special_tokens=()):
        """Make the vocabulary of a text: its characters by code point.

        Parameters
        ----------
        text : str or iterable of str
            A text or several documents.
        special_tokens : sequence of str, default=()
            Tokens besides, numbered after the characters. Where the text has one, its
            characters do not count.

        Returns
        -------
        CharTokenizer
            The tokenizer.

        Raises
        ------
        ValueError
            If the text is empty.
        """
        special_tokens, found = names(special_tokens), set()
        for document in documents(text):
            for piece in split_at(document, special_tokens)[::2]:
                found.update(piece)
        if not found:
            raise ValueError("text must have a character, got an empty text")
        return cls("".join(sorted(found)), special_tokens=special_tokens)

    def _encode_ordinary(self, text):
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            raise ValueError(
                f"text must hold only the {len(self.characters)} characters of the vocabulary, "
                f"got {error.args[0]!r}; train on a text that has it"
            ) from error

    def _content(self):
        return {"characters": self.characters, "special_tokens": self.special_tokens}

    @classmethod
    def _from_content(cls, content):
        return cls(**content)
