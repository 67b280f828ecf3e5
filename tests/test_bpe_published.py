"""Vocabularies of others, loaded: the ids are those of tokenizers and of tiktoken.

Nothing is downloaded: the files are written from vocabularies that are trained here.
"""

import base64
import json
import pydoc_data.topics
import random
from collections import Counter

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from seqlib.text import GPT2_PATTERN, GPT4_PATTERN, BPETokenizer, byte_alphabet, pretokenize
from seqlib.text.alphabet import from_printable, to_printable
from seqlib.text.learning import PairCounts

TOPICS = "".join(text for _, text in sorted(pydoc_data.topics.topics.items()))
TRAINING = [
    TOPICS[:30000],
    "Größe Übergröße größer",
    "добрый день добрый",
    "😭 😭😭 12345 2024",
]
ENDOFTEXT = "<|endoftext|>"

# Text that resembles the training text, so that many merges apply, and any other text.
words = st.sampled_from(TOPICS[:3000].split() + TRAINING[1].split() + TRAINING[2].split())
pieces = words | st.sampled_from([" ", "  ", "\n", "\r\n\n", "'s", "123", "😭", "𝒳"])
texts = st.lists(pieces, max_size=15).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs", "Cn"]), max_size=30
)


@pytest.fixture(autouse=True, scope="module")
def no_cache_of_tiktoken():
    """Keep tiktoken from storing our files in the folder of its downloads."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
        yield


@pytest.fixture(scope="module")
def trained():
    return BPETokenizer.train(TRAINING, 700)


@pytest.fixture(scope="module")
def gpt2_files(tmp_path_factory):
    """Write merges in the form of GPT-2, where the visible bytes have the first ids."""
    trained = BPETokenizer.train(TRAINING, 700, pattern=GPT2_PATTERN)
    folder = tmp_path_factory.mktemp("gpt2")
    alphabet = byte_alphabet()
    visible_first = sorted(range(256), key=lambda byte: (ord(alphabet[byte]) >= 256, byte))
    written = [alphabet[byte] for byte in visible_first]
    lines = ["#version: 0.2"]
    for left, right in trained.merges:
        lines.append(f"{to_printable(left)} {to_printable(right)}")
        written.append(to_printable(left + right))
    encoder = {word: i for i, word in enumerate([*written, ENDOFTEXT])}
    (folder / "vocab.bpe").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "encoder.json").write_text(json.dumps(encoder), encoding="utf-8")
    return str(folder / "vocab.bpe"), str(folder / "encoder.json")


@pytest.fixture(scope="module")
def gpt2(gpt2_files):
    return BPETokenizer.from_gpt2(*gpt2_files)


@pytest.fixture(scope="module")
def gpt2_tokenizers(gpt2_files):
    vocab_bpe, encoder_json = gpt2_files
    theirs = Tokenizer(models.BPE.from_file(encoder_json, vocab_bpe))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return theirs


@pytest.fixture(scope="module")
def gpt2_tiktoken(gpt2_files):
    ranks = data_gym_to_mergeable_bpe_ranks(*gpt2_files)
    special = {ENDOFTEXT: len(ranks)}
    return tiktoken.Encoding(
        "gpt2", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special
    )


@given(text=texts)
@example("it's 100 100% 😭")
def test_gpt2_files_give_the_ids_of_tokenizers_and_tiktoken(
    gpt2, gpt2_tokenizers, gpt2_tiktoken, text
):
    ids = gpt2.encode(text)
    assert ids == gpt2_tokenizers.encode(text).ids
    assert ids == gpt2_tiktoken.encode(text)
    assert gpt2.decode(ids) == gpt2_tiktoken.decode(ids) == text


def test_gpt2_files_name_the_special_token(gpt2, gpt2_tiktoken):
    text = f"one{ENDOFTEXT}two"
    ids = gpt2.encode(text, allowed_special="all")
    assert gpt2.special_tokens == {ENDOFTEXT: 700}
    assert gpt2.V == gpt2_tiktoken.n_vocab == 701
    assert ids == gpt2_tiktoken.encode(text, allowed_special="all")
    assert 700 in ids
    assert gpt2.encode("!") == [0]  # not 33: the visible bytes come first


@pytest.fixture(scope="module", params=["trained", "by hand"])
def ranks(request, trained):
    """Return ranks that training made, or ones under which tokens can be cut in many ways."""
    if request.param == "trained":
        return {token: i for i, token in trained.tokens.items()}
    rng = random.Random(0)
    # Bytes in any order, tokens drawn from the text at any rank, some of them before bytes.
    starts = [rng.randrange(20000) for _ in range(600)]
    tokens = {TOPICS[i : i + rng.randint(2, 6)].encode() for i in starts}
    tokens = sorted(tokens | {bytes([byte]) for byte in range(256)})
    rng.shuffle(tokens)
    return {token: 3 * i + 1 for i, token in enumerate(tokens)}


@pytest.fixture(scope="module")
def special_tokens(ranks):
    last = max(ranks.values())
    return {ENDOFTEXT: last + 5, "<|mid|>": last + 2}


@pytest.fixture(scope="module")
def ours(ranks, special_tokens):
    return BPETokenizer.from_tiktoken(ranks, special_tokens=special_tokens)


@pytest.fixture(scope="module")
def theirs(ranks, special_tokens):
    return tiktoken.Encoding(
        "ours", pat_str=GPT4_PATTERN, mergeable_ranks=ranks, special_tokens=special_tokens
    )


@given(text=texts)
@example("it's 100 100% 😭")
def test_ranks_give_the_ids_of_tiktoken(ours, theirs, text):
    ids = ours.encode(text)
    assert ids == theirs.encode(text)
    assert ours.decode(ids) == text


def test_ranks_give_the_ids_of_tiktoken_on_a_whole_page(ours, theirs):
    text = TOPICS[100000:130000]
    assert ours.encode(text) == theirs.encode(text)
    assert theirs.n_vocab == ours.V


@pytest.mark.parametrize("allowed", [(), {ENDOFTEXT}, {"<|mid|>"}, "all"])
@pytest.mark.parametrize("disallowed", [(), {ENDOFTEXT}, "all"])
@pytest.mark.parametrize(
    "text", ["a b", f"a {ENDOFTEXT} b", f"<|mid|>x{ENDOFTEXT}{ENDOFTEXT}", "<|mid|> <|mid"]
)
def test_special_tokens_are_treated_as_in_tiktoken(ours, theirs, text, allowed, disallowed):
    allowed = allowed if allowed == "all" else set(allowed)  # tiktoken wants a set
    options = {"allowed_special": allowed, "disallowed_special": disallowed}
    try:
        expected = theirs.encode(text, **options)
    except ValueError:
        with pytest.raises(ValueError, match=r"^text must not contain the special token '<"):
            ours.encode(text, **options)
    else:
        assert ours.encode(text, **options) == expected
        assert ours.decode(expected) == text


def test_rank_files(ranks, ours, theirs, tmp_path):
    path = tmp_path / "ours.tiktoken"
    path.write_text("".join(_line(token, rank) for token, rank in ranks.items()), "utf-8")
    assert load_tiktoken_bpe(str(path)) == ranks
    loaded = BPETokenizer.from_tiktoken(path, special_tokens=ours.special_tokens)
    assert loaded.encode(TOPICS[:2000]) == theirs.encode(TOPICS[:2000])
    assert loaded.tokens == ours.tokens


def _line(token, rank):
    return f"{base64.b64encode(token).decode()} {rank}\n"


def test_merges_and_ranks_give_the_same_ids_after_training(trained):
    """The two rules differ on tokens that no training made, and only there."""
    by_rank = BPETokenizer.from_tiktoken({token: i for i, token in trained.tokens.items()})
    text = "".join(TRAINING) + TOPICS[60000:90000]
    assert by_rank.encode(text) == trained.encode(text)
    assert by_rank.merges is None
    by_hand = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"bc": 256, b"ab": 257, b"abc": 258}
    assert BPETokenizer.from_tiktoken(ranks).encode("abc") == [258]
    assert BPETokenizer(by_hand).encode("abc") == [97, 256]


def train_with_tokenizers(documents, n_merges):
    """Return the merges that tokenizers learns, each as a pair of bytes."""
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(GPT4_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=256 + n_merges,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(documents, trainer)
    merges = json.loads(theirs.to_str())["model"]["merges"]
    return [tuple(map(from_printable, merge)) for merge in merges]


def until_the_first_tie(chunks, n_merges):
    """Return the merges that any rule for ties learns."""
    pairs, merges = PairCounts(chunks), []
    while len(merges) < n_merges and (best := pairs.most_frequent()):
        if list(pairs.counts.values()).count(pairs.counts[best]) > 1:
            break
        merges.append(best)
        pairs.merge(best)
    return merges


@given(
    times=st.dictionaries(
        st.text("abcé", min_size=2, max_size=8), st.integers(1, 60), min_size=2, max_size=8
    )
)
@example({"acab": 41, "bcc": 23, "aé": 8})
def test_training_learns_what_tokenizers_learns_up_to_the_first_tie(times):
    documents = [word for word, count in times.items() for _ in range(count)]
    agreed = until_the_first_tie({word.encode(): n for word, n in times.items()}, 20)
    assert BPETokenizer.train(documents, 276).merges[: len(agreed)] == agreed
    assert train_with_tokenizers(documents, 20)[: len(agreed)] == agreed


def test_training_on_english_learns_what_tokenizers_learns_up_to_the_first_tie():
    chunks = Counter(piece.encode() for piece in pretokenize(TOPICS))
    agreed = until_the_first_tie(chunks, 200)
    assert len(agreed) >= 60
    assert BPETokenizer.train(TOPICS, 456).merges[: len(agreed)] == agreed
    assert train_with_tokenizers([TOPICS], 200)[: len(agreed)] == agreed


@pytest.mark.parametrize(
    ("vocab_bpe", "encoder", "message"),
    [
        ("#version: 0.2\na b c\n", {}, "vocab_bpe must have two tokens a line, got 'a b c' in"),
        ("#version: 0.2\na\n", {}, "vocab_bpe must have two tokens a line, got 'a' in"),
        ("a b\n", "{", "encoder_json must be a JSON file, got '.*encoder.json': Expecting"),
        ("a b\n", [1], "encoder_json must hold an object .*, got a list in"),
        ("a b\n", {}, "encoder_json must have an id for every .* none for 'Ā'; are the two"),
        ("a b\n", None, "encoder_json must have an id for every .* none for 'ab'; are the two"),
        ("a \u0000\n", "all", "token must be written in the 256 characters"),
    ],
)
def test_damaged_files_of_gpt2_are_refused(vocab_bpe, encoder, message, tmp_path):
    (tmp_path / "vocab.bpe").write_text(vocab_bpe, encoding="utf-8")
    if encoder in (None, "all"):
        words = [*byte_alphabet().values()] + (["a\u0000"] if encoder else [])
        encoder = {word: i for i, word in enumerate(words)}
    text = encoder if isinstance(encoder, str) else json.dumps(encoder)
    (tmp_path / "encoder.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer.from_gpt2(tmp_path / "vocab.bpe", tmp_path / "encoder.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"YQ== 0\nYg==\n", "ranks must have a token in base 64 .*, got 'Yg==' in line 2 of"),
        (b"Y 0\n", "ranks must have a token in base 64 .*, got 'Y 0' in line 1 of"),
        (b"Y!Q== 0\n", "ranks must have a token in base 64 .*, got 'Y!Q== 0' in line 1 of"),
        (b"YQ== x\n", "ranks must have a token in base 64 .*, got 'YQ== x' in line 1 of"),
        (b"YQ== 0\n", "ranks must have all 256 bytes, got none for byte 0; without them"),
        (b"\xff\xfe\n", "path must be a text file in UTF-8, got '.*bad.tiktoken'"),
    ],
)
def test_damaged_rank_files_are_refused(content, message, tmp_path):
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{message}"):
        BPETokenizer.from_tiktoken(path)


def test_ranks_must_differ():
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 255}
    with pytest.raises(ValueError, match=r"^ids must be 257 distinct integers"):
        BPETokenizer.from_tiktoken(ranks)
