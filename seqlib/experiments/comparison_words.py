"""The windows of :mod:`seqlib.experiments.story_words`, as the comparison draws them."""

from functools import partial

from seqlib.experiments import story_words
from seqlib.experiments.story_words import T, vocabulary

__all__ = ["T", "vocabulary", "windows"]

windows = partial(story_words.windows, at_once=64)
