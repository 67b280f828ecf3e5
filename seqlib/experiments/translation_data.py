"""Numbers in words for :mod:`seqlib.experiments.translation`: splits, ids and alignments."""

import numpy as np
import torch

from seqlib.data import number_words

__all__ = [
    "BEGIN",
    "CHARACTERS",
    "END",
    "LANGUAGES",
    "WORDS",
    "batch",
    "pieces",
    "source_words",
    "split",
    "text_of",
]

LANGUAGES = ("de", "fr")
IGNORED = -100
# These numbers have all the words, and all the letters, of those below 10,000.
_ALL = (*range(101), 1001)


def source_words(number):
    """Return the English words: ``source_words(47)`` is ``["forty", "seven"]``."""
    return number_words(number, "en").replace("-", " ").split()


WORDS = sorted({word for i in _ALL for word in source_words(i)})
CHARACTERS = sorted({c for i in _ALL for lang in LANGUAGES for c in number_words(i, lang)})
END = len(CHARACTERS)
BEGIN = {language: END + 1 + i for i, language in enumerate(LANGUAGES)}
VOCABULARY = END + 1 + len(LANGUAGES)

_WORD_ID = {word: i for i, word in enumerate(WORDS)}
_CHARACTER_ID = {c: i for i, c in enumerate(CHARACTERS)}


def split(inputs, seed):
    """Return the numbers of each part: training, validation, unseen, pairs and above_69.

    The last two hold all numbers that end in a held-out pair of tens and units; no other part
    has one of these. The others are drawn with the seed and have no number in common.
    """
    parts = {
        name: np.array([i for i in range(10_000) if [i // 10 % 10, i % 10] in inputs[name]])
        for name in ("pairs", "above_69")
    }
    held_out = np.concatenate(list(parts.values()))
    rest = np.random.default_rng([seed, 7]).permutation(
        np.setdiff1d(np.arange(10_000), held_out)
    )
    for name in ("training", "validation", "unseen"):
        parts[name], rest = np.split(rest, [inputs[name]])
    return parts


def batch(numbers, languages):
    """Return source ids, their lengths, what the decoder reads, and the targets.

    The source is padded with any word and the targets with -100. What the decoder reads first
    names the language.
    """
    sources = [[_WORD_ID[word] for word in source_words(i)] for i in numbers]
    targets = [
        [_CHARACTER_ID[c] for c in number_words(i, language)] + [END]
        for i, language in zip(numbers, languages, strict=True)
    ]
    lengths = torch.tensor([len(row) for row in sources])
    source, target = _pad(sources, 0), _pad(targets, IGNORED)
    begin = torch.tensor([[BEGIN[language]] for language in languages])
    written = torch.cat([begin, target[:, :-1].clamp(min=0)], dim=1)
    return source, lengths, written, target


def _pad(rows, fill):
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def text_of(ids):
    """Return the text of written ids up to the end; None if there is no end."""
    ids = [int(i) for i in ids]
    if END not in ids:
        return None
    known = [*CHARACTERS, "", *("?" for _ in LANGUAGES)]
    return "".join(known[i] for i in ids[: ids.index(END)])


def pieces(number):
    """Cut the German number into pieces, each with the place of its English word.

    ``pieces(24)`` is ``[("vier", 1), ("und", None), ("zwanzig", 0)]``: "twenty" stands at
    place 0 and "four" at place 1, and no English word says "und".
    """
    words, found, place = source_words(number), [], 0
    rest = number
    for size, name in ((1000, "tausend"), (100, "hundert")):
        count, rest = divmod(rest, size)
        if count:
            found += [(_digit(count), place), (name, place + 1)]
            place += 2
    if place and rest:
        place += words[place] == "and"
    if rest or not found:
        tens, units = divmod(rest, 10)
        if tens < 2 or units == 0:
            found.append((number_words(rest, "de"), place))
        else:
            tens = (number_words(10 * tens, "de"), place)
            found += [(_digit(units), place + 1), ("und", None), tens]
    return found


def _digit(i):
    return "ein" if i == 1 else number_words(i, "de")
