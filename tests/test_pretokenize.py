"""Pieces of text: against the regex package, tokenizers and tiktoken, over all characters."""

import itertools
import random
import re
import subprocess
import sys
import unicodedata

import pytest
import regex
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken_ext import openai_public
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from seqlib.text import GPT2_PATTERN, GPT4_PATTERN, BPETokenizer, pretokenize
from seqlib.text.categories import character_class

CHARACTERS = "".join(map(chr, range(0x110000)))
ALL, BASIC_PLANE = 0x110000, 0x10000
LETTERS_AND_MARKS = r"\p{Lu}+[\p{Ll}\p{M}]*|[\P{Lu}\S]|\s+"
PATTERNS = [GPT2_PATTERN, GPT4_PATTERN, LETTERS_AND_MARKS]


def published_pattern(name, monkeypatch):
    """Return the pattern that tiktoken carries, without the ranks that it would download."""
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *a, **k: {})
    monkeypatch.setattr(openai_public, "data_gym_to_mergeable_bpe_ranks", lambda *a, **k: {})
    return getattr(openai_public, name)()["pat_str"]


def known(character):
    """Say whether Python's version of Unicode has the character; others may be newer."""
    return unicodedata.category(character) != "Cn"


# Characters that matter to the patterns, and now and then any other.
characters = st.sampled_from(
    "aSstTdlreEvm'ſéЖ中١2½ⅷ \n\r\t\x1c\x85\u200a\u2028\u3000.!_😭𝒳𝟛"
) | (st.characters(exclude_categories=["Cn", "Cs"]))
texts = st.text(characters, max_size=30)


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (GPT4_PATTERN, "It's 1234", ["It", "'s", " ", "123", "4"]),
        (GPT2_PATTERN, "It's 1234", ["It", "'s", " 1234"]),
        (
            GPT4_PATTERN,
            "IT'S  (two) \n\n x",
            ["IT", "'S", " ", " (", "two", ")", " \n\n", " x"],
        ),
        (GPT4_PATTERN, "x\n ", ["x", "\n "]),
        (GPT4_PATTERN, "x\n  y", ["x", "\n", " ", " y"]),
        (GPT2_PATTERN, "IT'S  (two)", ["IT", "'", "S", " ", " (", "two", ")"]),
        (GPT4_PATTERN, "", []),
    ],
)
def test_by_hand(pattern, text, pieces):
    assert pretokenize(text, pattern) == pieces


@pytest.mark.parametrize("limit", [ALL, BASIC_PLANE])
@pytest.mark.parametrize("name", ["L", "N", "M", "Lu", "Nd", "Cs", "Co"])
def test_classes_hold_the_characters_of_the_regex_package(name, limit):
    """All characters: what both versions of Unicode know is in the same classes."""
    found = set(re.findall(f"[{character_class(name, limit)}]", CHARACTERS))
    expected = set(regex.findall(rf"\p{{{name}}}", CHARACTERS[:limit]))
    assert len(found) > 100
    assert not any(map(known, found ^ expected))


@pytest.mark.parametrize("limit", [ALL, BASIC_PLANE])
def test_white_space_holds_the_characters_of_the_regex_package(limit):
    """Python's own class has U+001C to U+001F too, which no published tokenizer splits at."""
    found = re.findall(f"[{character_class('space', limit)}]", CHARACTERS)
    assert found == regex.findall(r"\s", CHARACTERS)


@pytest.mark.parametrize("name", ["Cc", "Cn", "L", "space"])
def test_a_negated_class_holds_all_other_characters(name):
    """Cc has the first character of all, Cn the last one."""
    characters = CHARACTERS[:BASIC_PLANE]
    inside, outside = (
        character_class(name, BASIC_PLANE, negate=negate) for negate in (False, True)
    )
    rest = re.sub(f"[{inside}]", "", characters)
    assert 0 < len(rest) < BASIC_PLANE
    assert re.fullmatch(f"[{outside}]+", rest)
    assert not re.search(f"[{outside}]", "".join(re.findall(f"[{inside}]", characters)))


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=texts)
@example("'ſ 'S '\u017f")
@example("a\x1cb \x1c ")
def test_pieces_are_those_of_the_regex_package(pattern, text):
    assert pretokenize(text, pattern) == regex.findall(pattern, text)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(GPT2_PATTERN, "gpt2"), (GPT4_PATTERN, "cl100k_base")]
)
@given(text=texts)
def test_pieces_are_those_of_the_published_patterns(ours, theirs, text):
    with pytest.MonkeyPatch.context() as monkeypatch:
        pattern = published_pattern(theirs, monkeypatch)
    assert pattern != ours
    assert pretokenize(text, ours) == regex.findall(pattern, text)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(GPT2_PATTERN, "gpt2"), (GPT4_PATTERN, "cl100k_base")]
)
def test_pieces_are_those_of_the_published_patterns_on_all_short_texts(
    ours, theirs, monkeypatch
):
    """Every text of up to 5 characters with a letter, a digit, a sign, and kinds of space."""
    pattern = regex.compile(published_pattern(theirs, monkeypatch))
    for length in range(6):
        for text in map("".join, itertools.product("aS1!' \n\r", repeat=length)):
            assert pretokenize(text, ours) == pattern.findall(text)


@given(text=texts)
def test_a_newer_published_pattern_works_too(text):
    """The pattern of o200k_base names single categories, such as modifier letters."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        pattern = published_pattern("o200k_base", monkeypatch)
    assert r"\p{Lm}" in pattern
    assert pretokenize(text, pattern) == regex.findall(pattern, text)


@pytest.mark.parametrize("pattern", [GPT2_PATTERN, GPT4_PATTERN])
@given(text=texts)
def test_pieces_are_those_of_tokenizers(pattern, text):
    splitter = Split(Regex(pattern), "isolated")
    assert pretokenize(text, pattern) == [piece for piece, _ in splitter.pre_tokenize_str(text)]


@pytest.fixture(scope="module")
def all_pairs():
    """Return ranks under which any two bytes make a token, so that cuts show in the ids."""
    pairs = [bytes([a, b]) for a in range(256) for b in range(256)]
    random.Random(0).shuffle(pairs)
    return {token: n for n, token in enumerate([*(bytes([b]) for b in range(256)), *pairs])}


@pytest.mark.parametrize(
    ("ours", "theirs"), [(GPT2_PATTERN, "gpt2"), (GPT4_PATTERN, "cl100k_base")]
)
def test_pieces_are_those_of_tiktoken_at_the_edges_of_all_classes(
    ours, theirs, all_pairs, monkeypatch
):
    pattern = published_pattern(theirs, monkeypatch)
    tokenizer = BPETokenizer.from_tiktoken(all_pairs, pattern=ours)
    peer = tiktoken.Encoding(
        theirs, pat_str=pattern, mergeable_ranks=all_pairs, special_tokens={}
    )
    classes = [character_class(name, ALL) for name in ("L", "N", "space")]
    edges = set()
    for text in classes:
        for first, last in re.findall(r"\\U(\w{8})-\\U(\w{8})", text):
            edges |= {int(first, 16) - 1, int(first, 16), int(last, 16), int(last, 16) + 1}
    edges = [chr(i) for i in sorted(edges) if i < ALL and not 0xD800 <= i < 0xE000]
    edges = [character for character in edges if known(character)]
    assert len(edges) > 1000
    for c in edges:
        text = f"x{c}x1{c}1!{c}! {c} '{c}x{c}{c}"
        assert tokenizer.encode(text) == peer.encode_ordinary(text), f"U+{ord(c):04X}"


@given(text=texts | st.text())
@example("a\ud800b")
def test_joined_pieces_are_the_text(text):
    for pattern in [*PATTERNS, "a", r"x*"]:
        assert "".join(pretokenize(text, pattern)) == text


def test_characters_that_no_piece_takes_are_pieces():
    assert pretokenize("ab, cd", r"\p{L}+") == ["ab", ",", " ", "cd"]


def test_end_means_the_end_of_the_text_as_in_other_engines():
    assert pretokenize("a\n", r"a$|\s") == ["a", "\n"]
    assert pretokenize("aa\n", r"a+?$|\s") == ["a", "a", "\n"]
    assert pretokenize("a$", r"[$]|a$") == ["a", "$"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"\w+", r"pattern must use no \\w, which differs between engines, got '\\\\w\+'"),
        (r"[\d]", r"pattern must use no \\d,"),
        (r"\pL", r"pattern must use no \\p,"),
        ("(a", r"pattern must be a regular expression, got '\(a': missing \)"),
        ("a--b|[a--b]", "pattern must be a regular expression, got .* set difference"),
        ("(a)|b", r"pattern must have no group that captures, got '\(a\)\|b'; write \(\?:"),
        (r"\p{Han}", r"pattern must name general categories of Unicode, got \\p\{Han\}; L is"),
        (r"[a[b]]", r"pattern must have no \[ inside a class, got '\[a\[b\]\]'; write \\\["),
        (b"a", "pattern must be a str, got b'a'"),
    ],
)
def test_bad_patterns_are_refused(pattern, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        pretokenize("a", pattern)
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer([], pattern=pattern)


def test_brackets_in_classes():
    assert pretokenize("a]b[c", r"[]a]+|[^\]b]") == ["a]", "b", "[", "c"]
    assert pretokenize("^a]", r"[^]]+") == ["^a", "]"]
    assert pretokenize("] a", r"[]\s]+|a") == ["] ", "a"]
    assert pretokenize("b] a", r"[^]\s]+") == ["b", "]", " ", "a"]


def test_import_needs_only_the_standard_library():
    code = "import sys, seqlib.text; print(*{'numpy', 'torch', 'regex'} & set(sys.modules))"
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == []
