"""Corpora, generators and batching.

The generators draw with the generator that they are given and need NumPy alone; what they
make has a known right answer or a known least loss.
"""

from seqlib.data.batches import contiguous_batches, random_windows
from seqlib.data.brackets import dyck, dyck_nats
from seqlib.data.corpora import load_text
from seqlib.data.grammar import Grammar
from seqlib.data.morse import morse_audio, morse_keying, morse_texts
from seqlib.data.ngram import NGramLM
from seqlib.data.numbers import number_pairs, number_words
from seqlib.data.probes import adding, copy, recall, reversal
from seqlib.data.shapes import Scene, render, scenes
from seqlib.data.stories import stories, story_grammar
from seqlib.data.sunspots import sunspots

__all__ = [
    "Grammar",
    "NGramLM",
    "Scene",
    "adding",
    "contiguous_batches",
    "copy",
    "dyck",
    "dyck_nats",
    "load_text",
    "morse_audio",
    "morse_keying",
    "morse_texts",
    "number_pairs",
    "number_words",
    "random_windows",
    "recall",
    "render",
    "reversal",
    "scenes",
    "stories",
    "story_grammar",
    "sunspots",
]
