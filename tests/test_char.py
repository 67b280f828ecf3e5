"""Character tokens, and what all tokenizers share: special tokens, decoding."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlib.text import BPETokenizer, CharTokenizer


def test_by_hand():
    tokenizer = CharTokenizer("abc")
    assert tokenizer.V == 3
    assert tokenizer.encode("cab") == [2, 0, 1]
    assert tokenizer.decode([2, 0, 1]) == "cab"
    assert tokenizer.encode("") == []
    assert repr(tokenizer) == "CharTokenizer(V=3, special_tokens={})"


def test_training_orders_characters_by_code_point():
    tokenizer = CharTokenizer.train("hello é\n")
    assert tokenizer.characters == "\n ehloé"
    assert tokenizer.encode("hé") == [3, 6]
    documents = CharTokenizer.train(iter(["ba", "", "c"]), special_tokens=["<pad>", "<end>"])
    assert documents.characters == "abc"
    assert documents.special_tokens == {"<pad>": 3, "<end>": 4}
    assert documents.V == 5


def test_special_tokens_do_not_add_their_characters():
    tokenizer = CharTokenizer.train("ab<end>ba<end>", special_tokens=["<end>"])
    assert tokenizer.characters == "ab"
    assert tokenizer.encode("ab<end>", allowed_special="all") == [0, 1, 2]
    assert tokenizer.decode([0, 1, 2]) == "ab<end>"


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_makes_the_round_trip(text):
    tokenizer = CharTokenizer.train(text)
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert set(ids) == set(range(tokenizer.V))
    assert tokenizer.decode(ids, errors="strict") == text
    assert tokenizer.decode_bytes(ids) == text.encode()
    assert list(tokenizer.decode_stream(ids)) == list(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CharTokenizer(""), "characters must be distinct and at least one, got ''"),
        (lambda: CharTokenizer("aa"), "characters must be distinct and at least one, got 'aa'"),
        (lambda: CharTokenizer(b"ab"), "characters must be a str, got a bytes"),
        (lambda: CharTokenizer.train(""), "text must have a character, got an empty text"),
        (lambda: CharTokenizer.train([]), "text must have a character"),
        (lambda: CharTokenizer.train(3), "text must be a str, got a int"),
        (
            lambda: CharTokenizer.train("a\udfff"),
            r"text must be whole .*'\\udfff', at pos",
        ),
        (lambda: CharTokenizer("ab").encode("abx"), "text must hold only the 2 char.* got 'x'"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


# Both kinds of tokenizer from here on.
END = "<|end|>"


@pytest.fixture(params=["characters", "bytes"])
def tokenizer(request):
    """Return a tokenizer with one special token, id 256."""
    if request.param == "bytes":
        return BPETokenizer([], special_tokens=[END])
    return CharTokenizer("".join(map(chr, range(256))), special_tokens=[END])


def test_special_tokens_in_a_text(tokenizer):
    """Case A49: the token if it is allowed, else an error or ordinary characters."""
    text = "a<|end|>b"
    ordinary = [97, 60, 124, 101, 110, 100, 124, 62, 98]
    assert tokenizer.encode(text, allowed_special="all") == [97, 256, 98]
    assert tokenizer.encode(text, allowed_special={END}) == [97, 256, 98]
    assert tokenizer.encode(text, allowed_special=[END]) == [97, 256, 98]
    assert tokenizer.encode(text, disallowed_special=()) == ordinary
    assert tokenizer.decode([97, 256, 98]) == tokenizer.decode(ordinary) == text
    message = (
        r"^text must not contain the special token '<\|end\|>', got it at position 1; "
        r"allowed_special=\{'<\|end\|>'\} encodes it as one id, disallowed_special=\(\)"
    )
    for options in ({}, {"disallowed_special": {END}, "allowed_special": "all"}):
        with pytest.raises(ValueError, match=message):
            tokenizer.encode(text, **options)
    assert tokenizer.encode("a<|end|b") == [97, *ordinary[1:7], 98]


def test_special_tokens_at_the_ends_and_side_by_side(tokenizer):
    assert tokenizer.encode(END, allowed_special="all") == [256]
    assert tokenizer.encode(f"{END}{END}a{END}", allowed_special="all") == [256, 256, 97, 256]


def test_the_longer_of_two_special_tokens_counts():
    tokenizer = BPETokenizer([], special_tokens=["<a>", "<a>b", ".*"])
    assert tokenizer.encode("<a><a>b<a>", allowed_special="all") == [256, 257, 256]
    allowed = tokenizer.encode("<a>b", allowed_special={"<a>"}, disallowed_special=())
    assert allowed == [256, 98]
    assert tokenizer.encode("x.*y", allowed_special="all") == [120, 258, 121]  # no pattern


@pytest.mark.parametrize(
    ("special_tokens", "message"),
    [
        (END, r"special_tokens must be a list of texts, got '<\|end\|>'; use \["),
        ([""], "special_tokens must be texts of a character or more, got ''"),
        ([3], "special_tokens must be texts of a character or more, got 3"),
        (["a", "a"], r"special_tokens must be distinct, got \['a', 'a'\]"),
        ({"a": 255}, "special_tokens must have ids of their own, got 'a': 255, which is taken"),
        ({"a": -1}, "special_tokens must have ids from 0 on, got 'a': -1"),
        ({"a": True}, "special_tokens must have ids from 0 on, got 'a': True"),
        ({"a": 300.0}, "special_tokens must have ids from 0 on, got 'a': 300.0"),
        ({"a": 300, "b": 300}, "special_tokens must have distinct ids, got"),
        ({"": 300}, "special_tokens must be texts of a character or more, got ''"),
    ],
)
def test_bad_special_tokens_are_refused(special_tokens, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer([], special_tokens=special_tokens)
    if not isinstance(special_tokens, dict):
        for make in (BPETokenizer.train, lambda *args, **o: CharTokenizer.train(args[0], **o)):
            with pytest.raises(ValueError, match=f"^{message}"):
                make("a", 300, special_tokens=special_tokens)


def test_training_numbers_special_tokens_itself():
    with pytest.raises(ValueError, match=r"^special_tokens must be a list of texts, got {'a'"):
        BPETokenizer.train("b", 300, special_tokens={"a": 300})
    tokenizer = BPETokenizer.train(f"abab{END}ab", 259, special_tokens=[END, "<|pad|>"])
    assert tokenizer.merges == [(b"a", b"b")]
    assert tokenizer.special_tokens == {END: 257, "<|pad|>": 258}
    # Pairs do not cross a special token, nor are those of its characters counted.
    apart = BPETokenizer.train(f"a{END}b", 300, special_tokens=[END])
    assert apart.merges == []


def test_ids_may_have_gaps():
    tokenizer = BPETokenizer([], special_tokens={END: 300})
    assert tokenizer.V == 301
    assert tokenizer.decode([97, 300]) == "a<|end|>"
    with pytest.raises(ValueError, match=r"^ids must be token ids .* 0 to 300, got 256"):
        tokenizer.decode([256])
    spread = BPETokenizer([], ids=range(0, 512, 2), special_tokens=[END])
    assert spread.encode(f"b{END}", allowed_special="all") == [196, 511]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allowed_special": END}, r'allowed_special must be "all" or a set, got .*use \{'),
        ({"allowed_special": {"x"}}, r"allowed_special must hold special .*, got \['x'\]"),
        ({"disallowed_special": {"x"}}, r"disallowed_special must hold .*, got \['x'\]"),
        ({"disallowed_special": "none"}, 'disallowed_special must be "all" or a set'),
    ],
)
def test_bad_choices_of_special_tokens_are_refused(tokenizer, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        tokenizer.encode("a", **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a", r"text must be a str, got a bytes; bytes become one with decode\(\)"),
        (None, "text must be a str, got a NoneType"),
        ("ab\ud83d", r"text must be whole characters, got half .*'\\ud83d', at position 2; "),
    ],
)
def test_bad_texts_are_refused(tokenizer, text, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        tokenizer.encode(text)


def test_the_remedy_in_the_message_works(tokenizer):
    with pytest.raises(ValueError, match="surrogate") as error:
        tokenizer.encode("a\ud83d")
    assert 'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")' in str(
        error.value
    )
    mended = [
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for text in ("a\ud83d", "\ud83d\ude2d")
    ]
    assert mended == ["a\ufffd", "😭"]


@pytest.mark.parametrize("container", [list, tuple, np.array, torch.tensor, iter])
def test_ids_may_come_in_any_row(tokenizer, container):
    assert tokenizer.decode(container([104, 105, 256])) == "hi<|end|>"
    assert list(tokenizer.decode_stream(container([104, 105]))) == ["h", "i"]


@pytest.mark.parametrize(
    ("ids", "got"),
    [
        ([97, 257], "257"),
        ([-1], "-1"),
        ([97.0], "97.0"),
        (np.array([97.0]), "97.0"),
        ("a", "'a'"),
        (97, "97"),
        (np.array(97), r"array\(97\)"),
        ([[97]], r"\[97\]"),
        (None, "None"),
    ],
)
def test_bad_ids_are_refused(tokenizer, ids, got):
    message = f"^ids must be token ids of this vocabulary, integers from 0 to 256, got {got}$"
    with pytest.raises(ValueError, match=message):
        tokenizer.decode(ids)
    with pytest.raises(ValueError, match=message):
        tokenizer.decode_bytes(ids)


def test_bad_errors_are_refused(tokenizer):
    for decode in (tokenizer.decode, tokenizer.decode_stream):
        with pytest.raises(ValueError, match=r"^errors must be 'replace' or .*, got 'lenient'"):
            decode([97], errors="lenient")
    with pytest.raises(ValueError, match=r"^ids must be token ids"):
        list(tokenizer.decode_stream([97, 300]))
