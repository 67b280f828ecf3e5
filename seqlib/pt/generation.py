"""Continue prompts with a decoder-only language model, token by token."""

import numpy as np
import torch

from seqlib._sampling import check_prompt, check_sampling
from seqlib.pt.cache import CachedDecoder
from seqlib.pt.sampling import next_token_distribution

__all__ = ["generate"]


def generate(
    model,
    ids,
    *,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    rng=None,
    cache=True,
    is_padding=None,
):
    """Continue prompts, one token at a time; twin of ``seqlib.np.generate``.

    The model reads the last ``config.context`` tokens of prompt and continuation, at positions
    0, 1, ...; earlier ones are returned but no longer seen. While everything fits, the cache
    makes the cost of a token grow with the number of keys only. After that every new token
    drops the oldest one, on which all kept states depend: the cache is filled anew for each
    token, so that the result is the same with and without it.

    Parameters
    ----------
    model : DecoderLM
        The model; dropout is off, whatever its mode.
    ids : Tensor of int of shape (B, T)
        Prompts.
    max_new_tokens : int
        Number of tokens to add; 0 returns the prompts.
    temperature, top_k, top_p
        As in :func:`next_token_distribution`; temperature 0 always takes the best token.
    rng : numpy.random.Generator, optional
        Source of the draws: one ``rng.choice(V, p=p)`` per token, row by row; none at
        temperature 0. A generator with a seed of its own if not given.
    cache : bool, default=True
        Whether to keep keys and values, or to read the whole window again for each token.
    is_padding : Tensor of bool of shape (B, T), optional
        True at padded positions, for prompts of different lengths: padding stands on the left
        and changes nothing in the continuation.

    Returns
    -------
    Tensor of int of shape (B, S)
        Prompts and continuations, with S = T + ``max_new_tokens``.

    Raises
    ------
    ValueError
        If an id is outside the vocabulary, a prompt is empty, the padding is not on the left,
        or an option is out of range.
    """
    config = model.config
    check_prompt(ids, config, is_padding, max_new_tokens)
    check_sampling(temperature, top_k, top_p)
    rng = np.random.default_rng() if rng is None else rng
    B, T = ids.shape
    tokens = torch.cat([ids, ids.new_zeros(B, max_new_tokens)], dim=1)
    left = None if is_padding is None else is_padding.sum(dim=1)
    reader = CachedDecoder(model, B) if cache else None
    for t in range(T, T + max_new_tokens):
        start = max(0, t - config.context)
        window = tokens[:, start:t]
        padding = None if left is None else torch.clamp(left - start, min=0)
        if not cache:
            logits = _read_again(model, window, padding)
        elif t == T or start > 0:
            reader.restart(padding)
            logits = reader.read(window)
        else:
            logits = reader.read(window[:, -1:])
        if temperature == 0:
            tokens[:, t] = logits.argmax(dim=-1)  # the lowest id of equally good ones
        else:
            p = next_token_distribution(
                logits.double(), temperature=temperature, top_k=top_k, top_p=top_p
            )
            draws = [rng.choice(config.vocab_size, p=row) for row in p.cpu().numpy()]
            tokens[:, t] = torch.tensor(draws)
    return tokens


@torch.inference_mode()
def _read_again(model, window, padding):
    """Return the logits after the window, by the whole model."""
    is_padding = None
    if padding is not None:
        is_padding = torch.arange(window.shape[1], device=window.device) < padding[:, None]
    in_training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        return model(window, is_padding=is_padding)[:, -1]
    finally:
        for module in in_training:
            module.training = True
