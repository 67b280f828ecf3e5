"""What all tokenizers share: special tokens, decoding, and files."""

import codecs
import operator

from seqlib._check import check_choice
from seqlib.text import special, storage

__all__ = ["Tokenizer"]


class Tokenizer:
    """A vocabulary that turns text into ids and back; the base of the tokenizers.

    Attributes
    ----------
    tokens : dict of int to bytes
        The bytes of every token, special ones included.
    special_tokens : dict of str to int
        The id of each special token.
    V : int
        Size of the vocabulary: the largest id plus one.
    """

    def __init__(self, tokens, special_tokens):
        self.special_tokens = special.number(special_tokens, tokens)
        self.tokens = tokens | {i: text.encode() for text, i in self.special_tokens.items()}
        self.V = max(self.tokens) + 1

    def encode(self, text, *, allowed_special=(), disallowed_special="all"):
        """Turn a text into ids.

        A text from outside may contain the characters ``<|end|>`` without meaning the special
        token, so by default that is an error. What becomes of a special token in the text:

        - it is among ``allowed_special``: its id;
        - it is among ``disallowed_special``: ValueError;
        - neither: its characters are ordinary text.

        With the 256 bytes and ``<|end|>`` = 256, the text ``a<|end|>b`` is
        ``[97, 256, 98]`` with ``allowed_special="all"`` and
        ``[97, 60, 124, 101, 110, 100, 124, 62, 98]`` with ``disallowed_special=()``. Both
        decode to the text. The options are those of tiktoken.

        Parameters
        ----------
        text : str
            Any text, possibly empty.
        allowed_special : collection of str or "all", default=()
            Special tokens to look for. Of two that start at the same place the longer counts.
        disallowed_special : collection of str or "all", default="all"
            Special tokens that must not occur; "all" means all that are not allowed.

        Returns
        -------
        list of int
            Token ids.

        Raises
        ------
        ValueError
            If the text has a special token that is not allowed, or half of a surrogate pair,
            which no UTF-8 text has; or if an option names an unknown token.
        """
        check_text("text", text)
        allowed = special.choose("allowed_special", allowed_special, self.special_tokens)
        disallowed = special.choose(
            "disallowed_special", disallowed_special, self.special_tokens
        )
        if disallowed_special == "all":
            disallowed -= allowed
        _refuse_special_tokens(text, disallowed)
        ids = []
        for i, piece in enumerate(special.split_at(text, allowed)):
            if i % 2:
                ids.append(self.special_tokens[piece])
            else:
                ids += self._encode_ordinary(piece)
        return ids

    def decode(self, ids, *, errors="replace"):
        """Turn ids into the text, special tokens into theirs.

        A model may put any token after any other, so the bytes need not be valid UTF-8.

        Parameters
        ----------
        ids : sequence of int, or ndarray or Tensor of int of shape (T,)
            Token ids.
        errors : {"replace", "strict", "ignore"}, default="replace"
            What to do with bytes that are no UTF-8: put U+FFFD (�) in their place, raise
            UnicodeDecodeError, or leave them out.

        Returns
        -------
        str
            The text.

        Raises
        ------
        ValueError
            If an id is not in the vocabulary, or the bytes are no UTF-8 and ``errors`` is
            strict.
        """
        check_choice("errors", errors, ("replace", "strict", "ignore"))
        return self.decode_bytes(ids).decode("utf-8", errors)

    def decode_bytes(self, ids):
        """Turn ids into bytes, exactly, also where a character is incomplete.

        Count bytes with this: the number of bytes of a text in tokens is
        ``len(tokenizer.decode_bytes(ids))``. Each U+FFFD of a decoded token has three bytes,
        whatever it stands for.

        Parameters
        ----------
        ids : sequence of int, or ndarray or Tensor of int of shape (T,)
            Token ids.

        Returns
        -------
        bytes
            The bytes of all tokens.

        Raises
        ------
        ValueError
            If an id is not in the vocabulary.
        """
        return b"".join(self._bytes_of(ids))

    def decode_stream(self, ids, *, errors="replace"):
        """Turn ids into text one by one, as a model generates them.

        Bytes of a character wait until it is complete: the four bytes of 😭, one token each,
        give "", "", "", "😭".

        Parameters
        ----------
        ids : iterable of int
            Token ids.
        errors : {"replace", "strict", "ignore"}, default="replace"
            As in :meth:`decode`.

        Yields
        ------
        str
            The new text after each token, then, if the last character is incomplete, what
            ``errors`` puts in its place.

        Raises
        ------
        ValueError
            As in :meth:`decode`.
        """
        check_choice("errors", errors, ("replace", "strict", "ignore"))
        decoder = codecs.getincrementaldecoder("utf-8")(errors)

        def pieces():
            for i in ids:
                yield decoder.decode(*self._bytes_of([i]))
            if rest := decoder.decode(b"", final=True):
                yield rest

        return pieces()

    def save(self, path):
        """Write the tokenizer to a JSON file, which :meth:`load` reads.

        The file has its old content or the whole new one at any moment.

        Parameters
        ----------
        path : str or path
            Name of the file; its folder must exist.
        """
        storage.write(path, type(self).__name__, self._content())

    @classmethod
    def load(cls, path):
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : str or path
            Name of the file.

        Returns
        -------
        CharTokenizer or BPETokenizer
            A tokenizer with the same ids.

        Raises
        ------
        ValueError
            If the file was damaged or changed, or holds another kind of tokenizer.
        """
        return cls._from_content(storage.read(path, cls.__name__))

    def __repr__(self):
        return f"{type(self).__name__}(V={self.V}, special_tokens={self.special_tokens})"

    def _bytes_of(self, ids):
        """Return the bytes of each token."""
        found, i = [], ids
        try:
            for i in ids.tolist() if hasattr(ids, "tolist") else ids:
                found.append(self.tokens[operator.index(i)])
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"ids must be token ids of this vocabulary, integers from 0 to {self.V - 1}, "
                f"got {i!r}"
            ) from error
        return found


def check_text(name, text):
    """Raise ``ValueError`` unless ``text`` is a str that UTF-8 can write."""
    if not isinstance(text, str):
        raise ValueError(
            f"{name} must be a str, got a {type(text).__name__}; bytes become one with decode()"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must be whole characters, got half of a surrogate pair, "
            f"{text[error.start]!r}, at position {error.start}; "
            'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") mends it'
        ) from error


def documents(text):
    """Return the documents of a text, or of several, each of them checked."""
    several = hasattr(text, "__iter__") and not isinstance(text, (str, bytes))
    for document in text if several else [text]:
        check_text("text", document)
        yield document


def _refuse_special_tokens(text, disallowed):
    before, *found = special.split_at(text, disallowed)
    if found:
        raise ValueError(
            f"text must not contain the special token {found[0]!r}, got it at position "
            f"{len(before)}; allowed_special={{{found[0]!r}}} encodes it as one id, "
            "disallowed_special=() as ordinary text"
        )
