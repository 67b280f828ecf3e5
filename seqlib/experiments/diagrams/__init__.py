"""The drawn diagrams of the book.

``python -m seqlib.experiments.diagrams`` draws them anew into ``book/_static``.
"""

from pathlib import Path

from seqlib.experiments.diagrams import attention, recurrent, transformer

__all__ = ["DIAGRAMS", "FOLDER"]

FOLDER = Path(__file__).parents[3] / "book" / "_static"
DIAGRAMS = {
    "rnn-unrolled": recurrent.rnn,
    "bptt-truncated": recurrent.bptt,
    "lstm-cell": recurrent.lstm,
    "gru-cell": recurrent.gru,
    "seq2seq-attention": recurrent.seq2seq,
    "attention-steps": attention.attention,
    "attention-masked": attention.masked_attention,
    "multihead-split": attention.multihead,
    "transformer-layers": transformer.layers,
    "decoder-model": transformer.decoder,
}
