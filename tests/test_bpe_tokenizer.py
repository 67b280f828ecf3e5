"""The tokenizer as a whole: round trips, documents, and what it refuses."""

import pydoc_data.topics

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqlib.text import BPETokenizer

TEXT = "".join(text for _, text in sorted(pydoc_data.topics.topics.items()))


def test_without_merges_ids_are_bytes():
    tokenizer = BPETokenizer([])
    assert tokenizer.V == 256
    assert tokenizer.encode("é!") == list("é!".encode())
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""


@pytest.fixture(scope="module")
def tokenizer():
    return BPETokenizer.train([TEXT[:20000], "Übergröße, добрый день, 😭😭 12345"], 600)


@given(text=st.text())
@example("it's\r\n\n 😭\x1c\x85 \U0001e900\u0378")
def test_any_text_makes_the_round_trip(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids, errors="strict") == text
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert "".join(tokenizer.decode_stream(ids)) == text
    assert len(ids) <= len(text.encode())


def test_training_makes_text_shorter(tokenizer):
    ids = tokenizer.encode(TEXT[:20000])
    assert len(ids) < 0.5 * len(TEXT[:20000].encode())
    assert max(ids) > 256
    assert tokenizer.V == len(tokenizer.tokens) == 600


def test_no_token_crosses_documents_or_pieces():
    together = BPETokenizer.train("abab", 257)
    apart = BPETokenizer.train(["a", "b", "a", "b"], 257)
    assert together.merges == [(b"a", b"b")]
    assert apart.merges == []
    assert apart.V == 256  # no pair is left, so the vocabulary is smaller than asked for
    pieces = BPETokenizer.train("a b a b", 260, pattern=" |[ab]")
    assert pieces.merges == []


def test_training_reads_documents_once():
    documents = ["abab", "ab"]
    assert BPETokenizer.train(iter(documents), 300).merges == [(b"a", b"b"), (b"ab", b"ab")]


@pytest.mark.parametrize(
    ("text", "V", "options", "message"),
    [
        ("", 300, {}, "text must have a character, got an empty text"),
        ([], 300, {}, "text must have a character"),
        (["", ""], 300, {}, "text must have a character"),
        ("<e><e>", 300, {"special_tokens": ["<e>"]}, "text must have a character"),
        ("a", 255, {}, "V must be an integer of at least 256, .* 0 special tokens, got 255"),
        ("a", 256, {"special_tokens": ["<e>"]}, "V must be .* 257, .* 1 special .*, got 256"),
        ("a", 300.0, {}, "V must be an integer of at least 256, .*, got 300.0"),
        ("a", None, {}, "V must be an integer of at least 256, .*, got None"),
        (b"a", 300, {}, "text must be a str, got a bytes; bytes become one with decode"),
        (None, 300, {}, "text must be a str, got a NoneType"),
        (["a", b"a"], 300, {}, "text must be a str, got a bytes"),
        ("a\ud800", 300, {}, r"text must be whole characters, got .*'\\ud800', at position 1"),
    ],
)
def test_bad_training_is_refused(text, V, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer.train(text, V, **options)


@pytest.mark.parametrize(
    ("merges", "options", "message"),
    [
        (["ab c"], {}, r"merges must join tokens that are there, got b'ab' \+ b'c' at place 0"),
        (
            ["b c", "a b", "ab c", "a bc"],
            {},
            "merges must make new tokens, .* at place 3, whose",
        ),
        (
            ["a b"],
            {"ids": [0] * 257},
            "ids must be 257 distinct integers .* got 257, 1 of them",
        ),
        (["a b"], {"ids": range(256)}, "ids must be 257 distinct integers .*, got 256"),
        (["a b"], {"ids": range(-1, 256)}, r"ids must be 257 .*: \[-1, 0, 1\]"),
        (["a b"], {"ids": ["x"] * 257}, r"ids must be 257 .*: \['x', 'x', 'x'\]"),
    ],
)
def test_bad_vocabularies_are_refused(merges, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer([tuple(m.encode().split()) for m in merges], **options)
