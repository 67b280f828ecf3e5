"""Special tokens: marks such as ``<|end|>`` that have one id of their own."""

import re

__all__ = ["choose", "names", "number", "split_at"]


def number(special_tokens, ordinary):
    """Return special tokens with their ids, after checking them.

    Parameters
    ----------
    special_tokens : sequence of str, or dict of str to int
        The texts that stand for them. A sequence gets the ids after the ordinary tokens.
    ordinary : container of int
        The ids that are taken, a dict or a set.

    Returns
    -------
    dict of str to int
        Text and id of each.
    """
    if isinstance(special_tokens, dict):
        numbered = dict(special_tokens)
    else:
        first = max(ordinary, default=-1) + 1
        numbered = {text: first + n for n, text in enumerate(names(special_tokens))}
    names(list(numbered))
    for text, i in numbered.items():
        if isinstance(i, bool) or not isinstance(i, int) or i < 0:
            raise ValueError(f"special_tokens must have ids from 0 on, got {text!r}: {i!r}")
        if i in ordinary:
            raise ValueError(
                f"special_tokens must have ids of their own, got {text!r}: {i}, which is taken"
            )
    if len(set(numbered.values())) < len(numbered):
        raise ValueError(f"special_tokens must have distinct ids, got {numbered}")
    return numbered


def names(special_tokens):
    """Return the texts of special tokens as a list, after checking them."""
    if isinstance(special_tokens, (str, dict)):
        raise ValueError(
            f"special_tokens must be a list of texts, got {special_tokens!r}; "
            f'use ["<|end|>"], say: the ids follow those of the other tokens'
        )
    special_tokens = list(special_tokens)
    for text in special_tokens:
        if not isinstance(text, str) or not text:
            raise ValueError(
                f"special_tokens must be texts of a character or more, got {text!r}"
            )
    if len(set(special_tokens)) < len(special_tokens):
        raise ValueError(f"special_tokens must be distinct, got {special_tokens}")
    return special_tokens


def choose(name, chosen, known):
    """Return the set of special tokens that an argument chooses; "all" is all of them."""
    if isinstance(chosen, str):
        if chosen != "all":
            raise ValueError(
                f'{name} must be "all" or a set, got {chosen!r}; use {{{chosen!r}}}'
            )
        return set(known)
    chosen = set(chosen)
    if not chosen <= set(known):
        raise ValueError(
            f"{name} must hold special tokens of this tokenizer, {sorted(known)}, "
            f"got {sorted(chosen - set(known))}"
        )
    return chosen


def split_at(text, special_tokens):
    """Cut a text at special tokens: ``"a<|end|>b"`` gives ``["a", "<|end|>", "b"]``.

    Parameters
    ----------
    text : str
        Any text.
    special_tokens : collection of str
        Where to cut. Of two that start at the same place the longer one counts.

    Returns
    -------
    list of str
        The pieces: ordinary text at even places, possibly empty, special tokens at odd ones.
    """
    if not special_tokens:
        return [text]
    longest_first = sorted(special_tokens, key=len, reverse=True)
    return re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
