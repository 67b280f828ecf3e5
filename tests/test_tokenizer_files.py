"""Saved tokenizers: the same after loading, whole at any moment, refused when damaged."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlib.text import GPT2_PATTERN, BPETokenizer, CharTokenizer, storage

TEXT = "the theme of the thesis, Größe 😭 <|end|> 12\n" * 3
RANKS = {bytes([byte]): 255 - byte for byte in range(256)} | {b"he": 256, b"the": 300}

MAKERS = {
    "characters": lambda: CharTokenizer.train(TEXT, special_tokens=["<|end|>", "<|pad|>"]),
    "merges": lambda: BPETokenizer.train(TEXT, 280, special_tokens=["<|end|>"]),
    "pattern": lambda: BPETokenizer.train(TEXT, 280, pattern=GPT2_PATTERN),
    "ids": lambda: BPETokenizer(
        [(b"h", b"e")], ids=range(999, 742, -1), special_tokens={"<|end|>": 5}
    ),
    "ranks": lambda: BPETokenizer.from_tiktoken(RANKS, special_tokens={"<|end|>": 400}),
}


@pytest.fixture(params=MAKERS)
def tokenizer(request):
    return MAKERS[request.param]()


def test_loaded_equals_saved(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = type(tokenizer).load(str(path))
    assert type(loaded) is type(tokenizer)
    assert loaded.tokens == tokenizer.tokens
    assert loaded.special_tokens == tokenizer.special_tokens
    assert tokenizer.V == loaded.V
    assert getattr(loaded, "merges", None) == getattr(tokenizer, "merges", None)
    assert getattr(loaded, "pattern", None) == getattr(tokenizer, "pattern", None)
    ids = loaded.encode(TEXT, allowed_special="all")
    assert ids == tokenizer.encode(TEXT, allowed_special="all")
    assert loaded.decode(ids) == TEXT
    before = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["tokenizer.json"]


@given(
    documents=st.lists(st.text("ab é😭", min_size=1, max_size=20), min_size=1, max_size=4),
    V=st.integers(256, 280),
)
def test_any_trained_tokenizer_makes_the_round_trip(documents, V, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "t.json"
    for tokenizer in (BPETokenizer.train(documents, V), CharTokenizer.train(documents)):
        tokenizer.save(path)
        loaded = type(tokenizer).load(path)
        assert loaded.tokens == tokenizer.tokens
        assert [loaded.encode(d) for d in documents] == [tokenizer.encode(d) for d in documents]


def test_a_merge_is_readable_in_the_file(tmp_path):
    BPETokenizer([(b" ", b"t"), (b" t", b"h")]).save(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert content["merges"] == ["Ġ t", "Ġt h"]
    assert content["kind"] == "BPETokenizer"


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "t.json"
    CharTokenizer("ab\U0001f62d").save(path)
    whole = path.read_bytes()
    for end in range(len(whole) - 1):  # without the last line break it is still whole
        path.write_bytes(whole[:end])
        with pytest.raises(
            ValueError, match=r"^path must .* save wrote, got '.*, which is no J"
        ):
            CharTokenizer.load(path)


def test_any_change_is_refused_or_without_effect(tokenizer, tmp_path):
    """One bit of one byte at a time; between strings, some changes leave the content alone."""
    path = tmp_path / "t.json"
    tokenizer.save(path)
    whole, refused = path.read_bytes(), []
    for place in range(0, len(whole), 1 + len(whole) // 100):
        for bit in (0x01, 0x20, 0x80):
            damaged = bytearray(whole)
            damaged[place] ^= bit
            path.write_bytes(damaged)
            try:
                loaded = type(tokenizer).load(path)
            except ValueError as error:
                refused.append(str(error))
            else:
                assert loaded.tokens == tokenizer.tokens
                assert loaded.special_tokens == tokenizer.special_tokens
    assert len(refused) > 200
    assert all(message.startswith("path must ") for message in refused)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "path must be a file that save wrote, got '.*', which is no JSON: .*; it may be"),
        ("[" * 100000, "path must be a file that save wrote, got '.*', which is no JSON"),
        ("[1]", 'path must be a file that save wrote, with "format": .*from_gpt2, rank files'),
        ('{"the": 5}', 'path must be a file that save wrote, with "format"'),
        ('{"format": "seqlib tokenizer 2"}', 'path must be .* "format": "seqlib tokenizer 1"'),
        ('{"format": "seqlib tokenizer 1"}', "path must be a file that is as save wrote it,"),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer.load(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    CharTokenizer("ab").save(tmp_path / "t.json")
    message = (
        r"^path must hold a BPETokenizer, got a CharTokenizer in .*; use CharTokenizer\.load"
    )
    with pytest.raises(ValueError, match=message):
        BPETokenizer.load(tmp_path / "t.json")


def test_the_kind_cannot_be_rewritten(tmp_path):
    path = tmp_path / "t.json"
    CharTokenizer("ab").save(path)
    path.write_text(path.read_text("utf-8").replace("CharTokenizer", "BPETokenizer"), "utf-8")
    with pytest.raises(ValueError, match=r"^path must be a file that is as save wrote it"):
        BPETokenizer.load(path)


def test_a_missing_file_stays_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        BPETokenizer.load(tmp_path / "none.json")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_saving_leaves_the_old_file(step, tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    CharTokenizer("ab").save(path)

    def fail(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(storage.os, step, fail)
    with pytest.raises(OSError, match="the disk is full"):
        CharTokenizer("abc").save(path)
    monkeypatch.undo()
    assert CharTokenizer.load(path).characters == "ab"
    assert os.listdir(tmp_path) == ["t.json"]
