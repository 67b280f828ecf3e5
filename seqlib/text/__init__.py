"""From text to token ids and back: characters, and byte pair encoding.

``naive`` holds byte pair encoding in its shortest form, to be read; ``BPETokenizer`` gives
the same ids at the speed of the tokenizers that are written in Rust, or close to it.
Nothing here needs NumPy.
"""

from seqlib.text.alphabet import byte_alphabet
from seqlib.text.bpe import BPETokenizer
from seqlib.text.char import CharTokenizer
from seqlib.text.naive import bpe_encode, bpe_train, merge_pair, pair_counts
from seqlib.text.pretokenize import GPT2_PATTERN, GPT4_PATTERN, pretokenize

__all__ = [
    "GPT2_PATTERN",
    "GPT4_PATTERN",
    "BPETokenizer",
    "CharTokenizer",
    "bpe_encode",
    "bpe_train",
    "byte_alphabet",
    "merge_pair",
    "pair_counts",
    "pretokenize",
]
