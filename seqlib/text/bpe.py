"""Byte pair encoding on bytes: any text has tokens, frequent pieces have one of their own."""

from collections import Counter

from seqlib.text import published, special
from seqlib.text.alphabet import from_printable, to_printable
from seqlib.text.learning import learn_merges
from seqlib.text.pretokenize import GPT2_PATTERN, GPT4_PATTERN, compile_pattern, pretokenize
from seqlib.text.tokenizer import Tokenizer, documents
from seqlib.text.vocabulary import from_merges, from_ranks

__all__ = ["BPETokenizer"]


class BPETokenizer(Tokenizer):
    """Tokens that grow from the 256 bytes by merging the most frequent pairs of a text.

    A text is cut into pieces by a pattern (:func:`seqlib.text.pretokenize`), each piece is
    written in UTF-8, and in its bytes the pairs are merged in the order in which they were
    learned. With the merges bc, then ab, the text abc becomes a, bc.

    Parameters
    ----------
    merges : sequence of (bytes, bytes)
        Pairs of tokens in the order in which they were learned. Token n < 256 is byte n, and
        merge k makes token 256 + k.
    pattern : str, default=GPT4_PATTERN
        Regular expression of the pieces.
    special_tokens : sequence of str, or dict of str to int, default=()
        Tokens besides, numbered after the others unless a dict gives their ids.
    ids : sequence of int, optional
        Ids of the tokens where they are not their numbers: first of the 256 bytes, then of
        the results of the merges.

    Attributes
    ----------
    merges : list of (bytes, bytes)
        The merges; None for a vocabulary of :meth:`from_tiktoken`, which has only ranks.
    pattern : str
        Regular expression of the pieces.

    Raises
    ------
    ValueError
        If a merge needs a token that is not there yet, or makes one that is; or if ids or
        special tokens are not distinct.
    """

    def __init__(self, merges, *, pattern=GPT4_PATTERN, special_tokens=(), ids=None):
        self.merges = [(bytes(left), bytes(right)) for left, right in merges]
        self._set_up(from_merges(self.merges), pattern, special_tokens, ids)

    @classmethod
    def train(cls, text, V, *, special_tokens=(), pattern=GPT4_PATTERN):
        """Learn the vocabulary of a text.

        The pair that occurs most often becomes a token, again and again until there are V.
        Of pairs that are equally frequent the smallest is taken: the one with the smaller
        first token, then with the smaller second one, compared byte by byte. In abcdabcd the
        pairs ab, bc and cd occur twice; the merges are a + b, ab + c, abc + d.

        Parameters
        ----------
        text : str or iterable of str
            A text or several documents. No token crosses from one to the next.
        V : int
            Size of the vocabulary: the 256 bytes, the merges and the special tokens. It gets
            smaller, as the attribute ``V`` tells, when the text has no pair left.
        special_tokens : sequence of str, default=()
            Tokens besides, with the last ids. Where the text has one, the document ends.
        pattern : str, default=GPT4_PATTERN
            Regular expression of the pieces that pairs do not cross.

        Returns
        -------
        BPETokenizer
            The tokenizer.

        Raises
        ------
        ValueError
            If the text is empty, or V is below 256 plus the number of special tokens.
        """
        special_tokens = special.names(special_tokens)
        smallest = 256 + len(special_tokens)
        if not hasattr(V, "__index__") or int(V) < smallest:
            raise ValueError(
                f"V must be an integer of at least {smallest}, one for each of the 256 bytes "
                f"and {len(special_tokens)} special tokens, got {V!r}"
            )
        pieces = Counter()
        for document in documents(text):
            for part in special.split_at(document, special_tokens)[::2]:
                pieces.update(pretokenize(part, pattern))
        if not pieces:
            raise ValueError("text must have a character, got an empty text")
        chunks = {piece.encode(): times for piece, times in pieces.items()}
        merges = learn_merges(chunks, V - smallest)
        return cls(merges, pattern=pattern, special_tokens=special_tokens)

    @classmethod
    def from_gpt2(cls, vocab_bpe, encoder_json, *, pattern=GPT2_PATTERN):
        """Load the two files of GPT-2's tokenizer: merges, and the id of each token.

        The same files are called ``merges.txt`` and ``vocab.json`` elsewhere. Entries of
        ``encoder.json`` that are neither a byte nor the result of a merge are special tokens,
        as ``<|endoftext|>`` is.

        Parameters
        ----------
        vocab_bpe : str or path
            The file of merges.
        encoder_json : str or path
            The file of ids.
        pattern : str, default=GPT2_PATTERN
            Regular expression of the pieces.

        Returns
        -------
        BPETokenizer
            A tokenizer with the same ids as GPT-2's.

        Raises
        ------
        ValueError
            If a file is not of this form, or the two do not fit together.
        """
        merges, ids, special_tokens = published.read_gpt2(vocab_bpe, encoder_json)
        return cls(merges, pattern=pattern, special_tokens=special_tokens, ids=ids)

    @classmethod
    def from_tiktoken(cls, ranks, *, pattern=GPT4_PATTERN, special_tokens=()):
        """Load a rank file of tiktoken, which lists tokens by rank and no merges.

        The ids are the ranks. Encoding follows tiktoken's rule: two neighbours are merged if
        their bytes together are a token, the lowest rank first, and a piece that is a token
        stays whole.

        Parameters
        ----------
        ranks : str or path, or dict of bytes to int
            Name of the file (each line: a token in base 64, a space, its rank), or its
            content.
        pattern : str, default=GPT4_PATTERN
            Regular expression of the pieces; the file does not tell which one it is for.
        special_tokens : sequence of str, or dict of str to int, default=()
            Tokens besides, numbered after the others unless a dict gives their ids, as for
            cl100k_base ``{"<|endoftext|>": 100257}``.

        Returns
        -------
        BPETokenizer
            A tokenizer with the same ids as tiktoken's.

        Raises
        ------
        ValueError
            If the file is not of this form, or one of the 256 bytes has no rank.
        """
        tokens, ids = published.read_ranks(ranks)
        return cls._from_ranks(tokens, pattern=pattern, special_tokens=special_tokens, ids=ids)

    @classmethod
    def _from_ranks(cls, tokens, *, pattern, special_tokens, ids):
        tokenizer = cls.__new__(cls)
        tokenizer.merges = None
        tokenizer._set_up(from_ranks(tokens), pattern, special_tokens, ids)
        return tokenizer

    def _set_up(self, vocabulary, pattern, special_tokens, ids):
        compile_pattern(pattern)  # refuses a bad one here rather than at the first text
        self.pattern, self._vocabulary = pattern, vocabulary
        count = len(vocabulary.tokens)
        self._ids = list(range(count) if ids is None else ids)
        whole = all(hasattr(i, "__index__") and i >= 0 for i in self._ids)
        if not whole or len(self._ids) != count or len(set(self._ids)) < count:
            raise ValueError(
                f"ids must be {count} distinct integers from 0 on, one per token, got "
                f"{len(self._ids)}, {len(set(self._ids))} of them distinct: {self._ids[:3]}..."
            )
        self._renumbered = self._ids != list(range(count))
        tokens = dict(zip(self._ids, vocabulary.tokens, strict=True))
        super().__init__(tokens, special_tokens)

    def _encode_ordinary(self, text):
        known, ids = {}, []  # most pieces occur many times; each is merged once
        for piece in pretokenize(text, self.pattern):
            if piece not in known:
                tokens = self._vocabulary.encode(piece.encode())
                known[piece] = [self._ids[n] for n in tokens] if self._renumbered else tokens
            ids += known[piece]
        return ids

    def _content(self):
        content = {"pattern": self.pattern, "special_tokens": self.special_tokens}
        if self.merges is None:
            content["ranks"] = [to_printable(token) for token in self._vocabulary.tokens[256:]]
        else:
            content["merges"] = [" ".join(map(to_printable, merge)) for merge in self.merges]
        if self._renumbered:
            content["ids"] = self._ids
        return content

    @classmethod
    def _from_content(cls, content):
        options = {"ids": None, **content}
        if "ranks" in options:
            return cls._from_ranks(map(from_printable, options.pop("ranks")), **options)
        merges = [map(from_printable, merge.split(" ")) for merge in options.pop("merges")]
        return cls(merges, **options)
