"""Byte pair encoding: by hand, the fast form against the naive one, and faults people met."""

import math
import pydoc_data.topics

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqlib.np import bits
from seqlib.text import (
    BPETokenizer,
    bpe_encode,
    bpe_train,
    byte_alphabet,
    merge_pair,
    pair_counts,
    pretokenize,
)
from seqlib.text.alphabet import from_printable, to_printable
from seqlib.text.learning import PairCounts, learn_merges
from seqlib.text.merging import merge_bytes, merge_long, merge_short
from seqlib.text.vocabulary import from_merges

TEXT = "".join(text for _, text in sorted(pydoc_data.topics.topics.items()))
# Few letters and few words: many ties, and runs such as aaa.
chunks = st.dictionaries(
    st.text("aab", min_size=1, max_size=9).map(str.encode), st.integers(1, 4), max_size=6
)


def split(text):
    """Return a text as tokens of one byte."""
    return [bytes([byte]) for byte in text.encode()]


def named(pairs):
    return [tuple(token.decode() for token in pair) for pair in pairs]


def without_zeros(counts):
    return {pair: count for pair, count in counts.items() if count}


def test_pair_counts_by_hand():
    assert pair_counts([(split("abab"), 3)]) == {(b"a", b"b"): 6, (b"b", b"a"): 3}
    assert pair_counts([(split("aaa"), 1), (split("aa"), 5), (split("a"), 9)]) == {
        (b"a", b"a"): 7
    }


def test_merge_pair_by_hand():
    assert merge_pair(split("aaa"), (b"a", b"a")) == [b"aa", b"a"]
    assert merge_pair(split("aaaa"), (b"a", b"a")) == [b"aa", b"aa"]
    assert merge_pair(split("xabyab"), (b"a", b"b")) == [b"x", b"ab", b"y", b"ab"]
    word = split("ba")
    assert merge_pair(word, (b"a", b"b")) == word
    assert merge_pair([b"ab", b"ab"], (b"ab", b"ab")) == [b"abab"]
    assert merge_pair(word, (b"b", b"a")) == [b"ba"]
    assert word == [b"b", b"a"]  # not modified


@pytest.mark.parametrize("train", [bpe_train, learn_merges])
def test_ties_go_to_the_smallest_pair(train):
    """Case A41: the result depends on the rule, so the rule is stated.

    The rule of another course, the greatest pair, gives c + d, b + cd, a + bcd.
    """
    merges = train({b"abcdabcd": 1}, 3)
    assert named(merges) == [("a", "b"), ("ab", "c"), ("abc", "d")]
    assert bpe_encode(b"abcdabcd", merges) == [b"abcd", b"abcd"]
    # Not the pair met first in the text, and the first token decides before the second one.
    assert train({b"dcba": 1}, 1) == [(b"b", b"a")]
    assert train({b"bab": 1, b"aca": 1}, 2)[:2] == [(b"a", b"b"), (b"a", b"c")]
    # Bytes are compared, not the numbers of tokens, by which 256 comes after c = 99.
    assert named(train({b"cdab": 2, b"abc": 2, b"cd": 2}, 2)) == [("a", "b"), ("c", "d")]
    assert named(train({b"abc": 2, b"cd": 2}, 2)) == [("a", "b"), ("ab", "c")]


def test_the_tokenizer_breaks_ties_alike():
    tokenizer = BPETokenizer.train("abcdabcd", 259)
    assert named(tokenizer.merges) == [("a", "b"), ("ab", "c"), ("abc", "d")]
    assert tokenizer.encode("abcdabcd") == [258, 258]
    assert tokenizer.tokens[258] == b"abcd"


def test_counts_do_not_go_stale():
    """Case A43: after t + ot, the pair ot, a is rarer than before.

    The given third merge, tot + a, wins its tie by the rule of the greatest pair; by ours,
    ot + a does. All counts are the given ones.
    """
    words = {b"tot": 3, b"tota": 2, b"ota": 2, b"ot": 1}
    pairs, found = PairCounts(words), []
    for pair in [(b"o", b"t"), (b"t", b"ot"), (b"tot", b"a")]:
        found.append({"|".join(p): n for p, n in _named(without_zeros(pairs.counts))})
        if len(found) < 3:
            assert pairs.most_frequent() == pair
        pairs.merge(pair)
    assert found == [
        {"t|o": 5, "o|t": 8, "t|a": 4},
        {"t|ot": 5, "ot|a": 4},
        {"tot|a": 2, "ot|a": 2},
    ]
    assert pairs.words == [[b"tot"], [b"tota"], [b"ot", b"a"], [b"ot"]]
    assert pairs.most_frequent() == (b"ot", b"a")
    expected = [("o", "t"), ("t", "ot"), ("ot", "a")]
    assert named(learn_merges(words, 3)) == named(bpe_train(words, 3)) == expected
    documents = ["tot"] * 3 + ["tota", "ota"] * 2 + ["ot"]
    assert named(BPETokenizer.train(documents, 259).merges) == expected


def _named(counts):
    return [(tuple(t.decode() for t in pair), count) for pair, count in counts.items()]


@given(chunks=chunks)
@example({b"aaaaaaa": 1, b"aaa": 2})
def test_counts_equal_a_recount_after_every_merge(chunks):
    pairs = PairCounts(chunks)
    words = [([bytes([byte]) for byte in chunk], times) for chunk, times in chunks.items()]
    while best := pairs.most_frequent():
        counts = pair_counts(words)
        assert without_zeros(pairs.counts) == counts
        assert best == min(counts, key=lambda pair: (-counts[pair], pair))
        pairs.merge(best)
        words = [(merge_pair(word, best), times) for word, times in words]
        assert pairs.words == [word for word, _ in words]
    assert not pair_counts(words)
    assert not without_zeros(pairs.counts)


@given(chunks=chunks, n_merges=st.integers(0, 12))
def test_fast_training_equals_the_naive_one(chunks, n_merges):
    merges = learn_merges(chunks, n_merges)
    assert merges == bpe_train(chunks, n_merges)
    assert len(merges) <= n_merges


def test_fast_training_equals_the_naive_one_on_english():
    tokenizer = BPETokenizer.train(TEXT[:8000], 256 + 200)
    chunks = {}
    for piece in pretokenize(TEXT[:8000]):
        chunks[piece.encode()] = chunks.get(piece.encode(), 0) + 1
    assert tokenizer.merges == bpe_train(chunks, 200)
    assert b" the" in tokenizer.tokens.values()


@pytest.mark.parametrize("merge", [merge_bytes, merge_short, merge_long])
@given(chunks=chunks, text=st.text("aabc", max_size=40))
@example({b"aaaa": 1}, "aaaaaaa")
def test_fast_encoding_equals_the_naive_one(merge, chunks, text):
    merges = learn_merges(chunks, 12)
    vocabulary = from_merges(merges)
    fast = merge(text.encode(), vocabulary.pairs)
    expected = bpe_encode(text.encode(), merges)
    assert [vocabulary.tokens[token] for token in fast] == expected


def test_fast_encoding_equals_the_naive_one_on_a_long_piece(rng):
    """One piece of 3,000 letters: thousands of merges that depend on each other."""
    text = "".join(rng.choice(list("acgt"), 3000))
    tokenizer = BPETokenizer.train(text, 500)
    assert len(pretokenize(text)) == 1
    ids = tokenizer.encode(text)
    assert len(ids) < 1000
    expected = bpe_encode(text.encode(), tokenizer.merges)
    assert [tokenizer.tokens[i] for i in ids] == expected


@pytest.mark.parametrize(
    ("merges", "text", "tokens"),
    [
        (["b c", "a b"], "abc", ["a", "bc"]),
        (["a b", "a a"], "aab", ["a", "ab"]),
        (["o w", "l o", "l ow", "e r"], "lower", ["low", "er"]),
    ],
)
def test_the_merge_learned_first_comes_first(merges, text, tokens):
    """Case A44: merging from left to right would give ab, c, then aa, b, then lo, w, er."""
    merges = [tuple(merge.encode().split()) for merge in merges]
    tokenizer = BPETokenizer(merges)
    found = [tokenizer.tokens[i].decode() for i in tokenizer.encode(text)]
    assert found == tokens
    assert [token.decode() for token in bpe_encode(text.encode(), merges)] == tokens


def test_bytes_that_are_no_text():
    """Case A46: the byte 0x80 alone, and an emoji in two tokens of two bytes."""
    tokenizer = BPETokenizer([(b"\xf0", b"\x9f"), (b"\x98", b"\xad")])
    assert tokenizer.decode([128]) == "\ufffd"
    assert tokenizer.decode([65, 128, 66], errors="ignore") == "AB"
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode([128], errors="strict")
    assert tokenizer.decode_bytes([128]) == b"\x80"
    ids = tokenizer.encode("😭")
    assert ids == [256, 257]
    assert [tokenizer.decode([i]) for i in ids] == ["\ufffd", "\ufffd\ufffd"]
    assert list(tokenizer.decode_stream(ids)) == ["", "😭"]
    assert list(tokenizer.decode_stream([256])) == ["", "\ufffd"]
    assert list(tokenizer.decode_stream([65, 256, 66])) == ["A", "", "\ufffdB"]
    assert list(tokenizer.decode_stream([256, 66], errors="ignore")) == ["", "B"]


def test_bits_per_byte_count_raw_bytes():
    """Case A47: two halves of é and abc, 1 + 2 + 3 nats; decoded, they would seem 9 bytes."""
    tokenizer = BPETokenizer([(b"a", b"b"), (b"ab", b"c")])
    ids, nats = [195, 169, 257], np.array([1.0, 2.0, 3.0])
    assert len(tokenizer.decode_bytes(ids)) == 5
    per_byte = bits(nats.sum()) / len(tokenizer.decode_bytes(ids))
    assert math.isclose(per_byte, 1.7312340490667562, rel_tol=1e-12)
    seeming = sum(len(tokenizer.decode([i]).encode()) for i in ids)
    assert math.isclose(bits(nats.sum()) / seeming, 0.9617966939259757, rel_tol=1e-12)


def test_the_alphabet_of_bytes():
    """Case A48: what looks like damage is the table of characters."""
    alphabet = byte_alphabet()
    given_bytes = [240, 159, 152, 173, 32, 10, 65]
    assert [alphabet[byte] for byte in given_bytes] == list("ðŁĺŃĠĊA")
    assert to_printable("😭 \nA".encode()) == "ðŁĺŃĠĊA"
    assert sorted(alphabet) == list(range(256))
    assert len(set("".join(alphabet.values()))) == 256
    assert all(character.isprintable() and character != " " for character in alphabet.values())
    everything = bytes(range(256))
    assert from_printable(to_printable(everything)) == everything
    with pytest.raises(
        ValueError, match=r"^token must be written in the 256 .* got 'a b'; a sp"
    ):
        from_printable("a b")
