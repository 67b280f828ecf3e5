"""Corpora, generators and batching."""

from seqlib.data.batches import contiguous_batches, random_windows
from seqlib.data.ngram import NGramLM

__all__ = ["NGramLM", "contiguous_batches", "random_windows"]
