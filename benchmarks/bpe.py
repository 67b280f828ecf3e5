"""Training and encoding of the tokenizer: ``python -m benchmarks.bpe``.

The text is English and Python from the standard library. Both sides run on one thread, once
per round in turn, and the median over rounds of the ratio of process CPU times counts. Before
anything is timed, both sides are held to compute the same.
"""

import os
import pydoc_data.topics
from pathlib import Path

# Read when tokenizers starts its threads.
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tiktoken
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from benchmarks.timing import interleave, ratio
from seqlib.text import GPT4_PATTERN, BPETokenizer
from seqlib.text.alphabet import to_printable

MERGES = 1000


def rows():
    """Return ``(name, ratio, target, sense)`` for each figure that has a target."""
    return [training_row(), encoding_row()]


def training_row(rounds=9):
    """Compare the training of 1,000 merges on 1 MiB in 64 documents."""
    text = library_text(2**20)
    size = len(text) // 64 + 1
    documents = [text[i : i + size] for i in range(0, len(text), size)]

    def ours():
        return BPETokenizer.train(documents, 256 + MERGES)

    def theirs():
        return train_with_tokenizers(documents)

    # Ties are broken otherwise, so a few of the rarest tokens differ. Encoding with tokenizers
    # before its training is timed would make that slower, by half, so tokens are compared.
    found = {to_printable(token) for token in ours().tokens.values()}
    common = len(found & set(theirs().get_vocab()))
    if common < 0.99 * len(found):
        raise ValueError(f"both trainings must learn the same tokens, got {common} in common")
    return (
        "BPETokenizer.train, 1,000 merges on 1 MiB / tokenizers",
        ratio(interleave({"ours": ours, "theirs": theirs}, rounds), "ours", "theirs"),
        1.3,
        "at most",
    )


def encoding_row(rounds=9):
    """Compare the encoding of 256 KiB with the same merges."""
    tokenizer = BPETokenizer.train(library_text(2**20), 256 + MERGES)
    text = library_text(2**18)
    peer = tiktoken.Encoding(
        "ours",
        pat_str=GPT4_PATTERN,
        mergeable_ranks={token: i for i, token in tokenizer.tokens.items()},
        special_tokens={},
    )

    def ours():
        return tokenizer.encode(text)

    def theirs():
        return peer.encode_ordinary(text)

    if ours() != theirs():
        raise ValueError("both encodings must give the same ids, got different ones")
    return (
        "BPETokenizer.encode, 256 KiB / tiktoken",
        ratio(interleave({"ours": ours, "theirs": theirs}, rounds), "ours", "theirs"),
        3.5,
        "at most",
    )


def library_text(size):
    """Return the first ``size`` bytes of Python's help topics and of its library's source."""
    parts = [text for _, text in sorted(pydoc_data.topics.topics.items())]
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        parts.append(path.read_text(encoding="utf-8"))
    text = "".join(parts).encode()[:size]
    if len(text) < size:
        raise ValueError(f"the library must have {size} bytes of text, got {len(text)}")
    return text.decode(errors="ignore")


def train_with_tokenizers(documents):
    """Train the tokenizer that tokenizers offers for the same pieces of text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(GPT4_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=256 + MERGES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    return tokenizer


if __name__ == "__main__":
    for name, value, target, sense in rows():
        print(f"{value:8.3f}  {sense} {target:<5}  {name}", flush=True)
