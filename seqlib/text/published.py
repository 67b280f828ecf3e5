"""Reading the vocabularies that others publish: GPT-2's two files, tiktoken's rank files."""

import base64
import binascii
import json
import os

from seqlib.text.alphabet import byte_alphabet, from_printable

__all__ = ["read_gpt2", "read_ranks"]


def read_gpt2(vocab_bpe, encoder_json):
    """Read GPT-2's files of merges and of ids.

    Parameters
    ----------
    vocab_bpe : str or path
        File with two tokens a line, the merges in order, after a line ``#version: 0.2``.
    encoder_json : str or path
        File with an object of tokens and ids.

    Returns
    -------
    merges : list of (bytes, bytes)
        The merges.
    ids : list of int
        The ids of the 256 bytes, then of the results of the merges.
    special_tokens : dict of str to int
        What else has an id.
    """
    lines = _text(vocab_bpe).split("\n")
    if lines[0].startswith("#version"):
        del lines[0]
    merges = [line.split(" ") for line in lines if line]
    for merge in merges:
        if len(merge) != 2 or not all(merge):
            raise ValueError(
                f"vocab_bpe must have two tokens a line, got {' '.join(merge)!r} in "
                f"{os.fspath(vocab_bpe)!r}"
            )
    try:
        encoder = json.loads(_text(encoder_json))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"encoder_json must be a JSON file, got {os.fspath(encoder_json)!r}: {error}"
        ) from error
    if not isinstance(encoder, dict):
        raise ValueError(
            f"encoder_json must hold an object of tokens and ids, got a "
            f"{type(encoder).__name__} in {os.fspath(encoder_json)!r}"
        )
    words = [*byte_alphabet().values(), *(left + right for left, right in merges)]
    missing = [word for word in words if word not in encoder]
    if missing:
        raise ValueError(
            f"encoder_json must have an id for every byte and merge, got none for "
            f"{missing[0]!r}; are the two files from the same model?"
        )
    ids = [encoder.pop(word) for word in dict.fromkeys(words)]
    return [tuple(map(from_printable, merge)) for merge in merges], ids, encoder


def read_ranks(ranks):
    """Read a rank file of tiktoken, or take its content.

    Parameters
    ----------
    ranks : str or path, or dict of bytes to int
        A file with a token in base 64 and its rank a line, or the tokens and ranks.

    Returns
    -------
    tokens : list of bytes
        The tokens of two bytes or more, by rank.
    ids : list of int
        The ranks of the 256 bytes, then of these tokens.
    """
    if not isinstance(ranks, dict):
        ranks = _parse_ranks(_text(ranks), os.fspath(ranks))
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(
            f"ranks must have all 256 bytes, got none for byte {missing[0]}; "
            "without them some texts could not be encoded"
        )
    tokens = sorted((token for token in ranks if len(token) > 1), key=ranks.get)
    return tokens, [ranks[bytes([byte])] for byte in range(256)] + [ranks[t] for t in tokens]


def _parse_ranks(text, path):
    ranks = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise ValueError(
                f"ranks must have a token in base 64 and its rank a line, got {line!r} in "
                f"line {number} of {path!r}"
            ) from error
    return ranks


def _text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"path must be a text file in UTF-8, got {os.fspath(path)!r}"
        ) from error
