"""Checks of the arguments of sampling and generation; shared by both backends."""

import math

from seqlib._check import check_boolean, check_ids, check_positive, check_shape


def check_sampling(temperature, top_k, top_p):
    """Raise ``ValueError`` unless the options of ``next_token_distribution`` are in range."""
    if not (temperature >= 0 and math.isfinite(temperature)):
        raise ValueError(
            f"temperature must be a finite number of at least 0, got {temperature}; "
            "0 picks the best token"
        )
    if top_k is not None:
        check_positive("top_k", top_k, fix="None keeps every token")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must lie in (0, 1], got {top_p}; None keeps every token")


def check_prompt(ids, config, is_padding, max_new_tokens):
    """Raise ``ValueError`` unless ``generate`` can continue these prompts."""
    check_shape("ids", ids, ("B", "T"), fix="one prompt is ids[None, :]")
    check_ids("ids", ids, config.vocab_size)
    if ids.shape[1] == 0:
        raise ValueError("ids must hold at least 1 token per prompt, got 0; start with one")
    if max_new_tokens != 0:
        check_positive("max_new_tokens", max_new_tokens, fix="0 returns the prompt")
    if is_padding is not None:
        check_boolean("is_padding", is_padding, "True = padding")
        check_shape("is_padding", is_padding, tuple(ids.shape))
        # After a real token there is no padding, and the last token is real.
        wrong = is_padding[:, 1:] & ~is_padding[:, :-1]
        if bool(wrong.any()) or bool(is_padding[:, -1].any()):
            raise ValueError(
                "is_padding must be True only at the left end of a row and False at its last "
                "token, got padding after a real token or a row of padding; pad at the left, "
                "so that the new tokens follow the prompt"
            )
