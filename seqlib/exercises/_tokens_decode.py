"""Task: tokens back to text, and the number of their bytes."""

from seqlib.exercises.record import Case, Criterion, Misconception, Task


def vocabulary_of(merges, wrong=frozenset()):
    """List the bytes of every token: first the 256 bytes, then the results of the merges."""
    tokens = [bytes([byte]) for byte in range(256)]
    for a, b in merges:
        tokens.append(
            tokens[b] + tokens[a] if "halves_exchanged" in wrong else tokens[a] + tokens[b]
        )
    return tokens


def reference(ids, merges):
    """Return the text, with U+FFFD for what is no UTF-8, and its number of bytes."""
    tokens = vocabulary_of(merges)
    data = b"".join(tokens[i] for i in ids)
    return data.decode(errors="replace"), len(data)


def variant(ids, merges, *, wrong=frozenset()):
    """Return text and number of bytes, with the mistakes named in ``wrong``."""
    tokens = vocabulary_of(merges, wrong)
    errors = "ignore" if "invalid_left_out" in wrong else "replace"
    errors = "strict" if "invalid_raises" in wrong else errors
    coding = "latin-1" if "byte_per_character" in wrong else "utf-8"
    pieces = [tokens[i] for i in ids]
    joined = b"".join(pieces)
    if wrong & {"each_token_alone", "joined_with_spaces"}:
        space = " " if "joined_with_spaces" in wrong else ""
        text = space.join(piece.decode(coding, errors) for piece in pieces)
    else:
        text = joined.decode(coding, errors)
    count = len(joined)
    if "bytes_of_decoded_tokens" in wrong:
        count = sum(len(piece.decode(coding, "replace").encode()) for piece in pieces)
    if "bytes_of_decoded_text" in wrong:
        count = len(text.encode())
    if "characters_counted" in wrong:
        count = len(text)
    if "tokens_counted" in wrong:
        count = len(ids)
    return text, count


def cases(rng):
    """Draw inputs for one run."""
    a, b, c, d = (int(i) for i in 97 + rng.permutation(26)[:4])
    merges = [(a, b), (256, c), (b, a), (257, 258)]
    # The last merges join the first byte of a character with what stands before it.
    split = [(d, 0xC3), (0xA9, d), (0xE6, 0x97), (0xF0, 0x9F), (259, 0x98)]
    return [
        Case(([259, d, 256, 258, 257], merges), label="5 tokens, 4 merges, ASCII"),
        Case(([d, 257, 259, 259, a, 256, 257], merges), label="7 tokens, 4 merges, ASCII"),
        Case(([256, 257, a], split), label="a character in two tokens", tag="split"),
        Case(
            ([258, 0xA5, b, 260, 0xAD, 256, 0xB1], split),
            label="characters of three and four bytes, in two tokens each",
            tag="split",
        ),
        Case(([a, 0x80, b], merges), label="the byte 80 alone", tag="invalid"),
        Case(([256, a, 260], split), label="characters that break off", tag="invalid"),
        Case(([0xFF, 0xFE, 257, d], merges), label="the bytes FF and FE", tag="invalid"),
        Case(([], merges), label="no token", tag="edge"),
        Case(([d], []), label="one token, no merges", tag="edge"),
        Case(([32, d, 13, 10], []), label="white space at both ends, no merges", tag="edge"),
    ]


TASK = Task(
    id="tokens.decode",
    title="Decoding",
    signature="(ids, merges)",
    equations=(),
    page="tokens#decoding",
    reference=reference,
    variant=variant,
    cases=cases,
    kind="text",
    criteria=(
        Criterion("values", 3, "text of ASCII letters", part=0),
        Criterion("split", 2, "characters in more than one token", tag="split", part=0),
        Criterion("invalid", 2, "bytes that are no UTF-8", tag="invalid", part=0),
        Criterion("split_bytes", 1, "number of bytes", tag="split", part=1, needs=()),
        Criterion(
            "invalid_bytes", 1, "number of bytes, no UTF-8", tag="invalid", part=1, needs=()
        ),
        Criterion("edge", 1, "no token, no merges, white space", tag="edge"),
    ),
    misconceptions=(
        Misconception(
            "each_token_alone",
            "Every token is decoded by itself, so a character in two tokens becomes "
            "replacement characters.",
            "tokens#decoding",
            "Blaizzy/mlx-vlm#835",
        ),
        Misconception(
            "invalid_left_out",
            "Bytes that are no UTF-8 are left out without a trace.",
            "tokens#decoding",
            'our own: errors="ignore"',
        ),
        Misconception(
            "invalid_raises",
            "Bytes that are no UTF-8 raise an error.",
            "tokens#decoding",
            "karpathy/minbpe#96",
        ),
        Misconception(
            "byte_per_character",
            "Every byte becomes one character.",
            "tokens#bytes",
            "our own: chr of each byte",
        ),
        Misconception(
            "halves_exchanged",
            "A merged token has the bytes of its second half in front.",
            "tokens#decoding",
            "our own: the pair read in the wrong order",
        ),
        Misconception(
            "joined_with_spaces",
            "There are spaces between the tokens.",
            "tokens#decoding",
            "our own: the decoder of a tokenizer of words",
        ),
        Misconception(
            "bytes_of_decoded_tokens",
            "The bytes are counted in the tokens decoded one by one, where each replacement "
            "character has three.",
            "tokens#bits-per-byte",
            "karpathy/nanochat#693",
        ),
        Misconception(
            "bytes_of_decoded_text",
            "The bytes are counted in the decoded text, where each replacement character has "
            "three.",
            "tokens#bits-per-byte",
            "our own: the length of text.encode()",
        ),
        Misconception(
            "characters_counted",
            "The characters of the text are counted, not its bytes.",
            "tokens#bits-per-byte",
            "our own: len of a str",
        ),
        Misconception(
            "tokens_counted",
            "The tokens are counted, not their bytes.",
            "tokens#bits-per-byte",
            "our own: the length of the list of ids",
        ),
    ),
    options={"parts": ("text", "n_bytes")},
    shortcuts=("seqlib.text.bpe.BPETokenizer", "seqlib.text.tokenizer.Tokenizer.decode_bytes"),
    version=2,
)
