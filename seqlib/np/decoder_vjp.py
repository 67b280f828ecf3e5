"""The decoder in the form that trains fast: one forward pass, kept for the gradient."""

import math

from seqlib._config import check_decoder_input, check_params, check_precision
from seqlib.np import _vjp_parts as parts
from seqlib.np.decoder import position_ids
from seqlib.np.masks import causal_mask, padding_mask
from seqlib.np.positions import sinusoidal_positions
from seqlib.np.tokens import embedding_backward

__all__ = ["decoder_lm_with_vjp"]


def decoder_lm_with_vjp(ids, params, config, *, is_padding=None):
    """Return the logits of :func:`decoder_lm` and the function that maps ``dy`` to gradients.

    ``decoder_lm_backward`` computes the forward pass again. Here the closure keeps what the
    forward pass found, and work is done in place: the same numbers in a fraction of the time.

    Parameters
    ----------
    ids : ndarray of int of shape (B, T)
        Token ids, T at most ``config.context``.
    params : dict of str to ndarray
        Parameters in float32 or float64, with the names and shapes of ``config.shapes()``.
    config : DecoderConfig
        The model.
    is_padding : ndarray of bool of shape (B, T), optional
        True at padded positions.

    Returns
    -------
    logits : ndarray of shape (B, T, V)
        As from :func:`decoder_lm`.
    vjp : callable
        ``vjp(dy)`` returns what ``decoder_lm_backward(dy, ...)`` returns.

    Raises
    ------
    ValueError
        As :func:`decoder_lm`, and if ``params`` are of another precision or of several.
    """
    check_decoder_input(ids, config, is_padding)
    check_params(params, config.shapes())
    check_precision(params)
    B, T = ids.shape
    x, embed_vjp = _embed(ids, params, config, is_padding)
    attention = _attention_options(ids, config, is_padding, x.dtype)
    vjps = []
    for i in range(config.n_layer):
        prefix = f"layers.{i}."

        def attend(x, prefix=prefix):
            return _attention(x, params, prefix + "self_attn.", attention)

        def mlp(x, prefix=prefix):
            return _mlp(x, params, prefix, config)

        for f, norm_name in ((attend, "norm1"), (mlp, "norm2")):
            x, vjp = _residual(x, f, params, prefix + norm_name, config)
            vjps.append(vjp)
    if config.norm == "pre":
        x, vjp = parts.norm(x, params, "norm", config.eps)
        vjps.append(vjp)
    head = "embedding.weight" if config.tie_weights else "head.weight"
    logits, head_vjp = parts.linear(x, params, head, None)

    def decoder_vjp(dy):
        grads = {}
        dx = head_vjp(dy.reshape(B * T, config.vocab_size), grads)
        for vjp in reversed(vjps):
            dx = vjp(dx, grads)
        embed_vjp(dx, grads)
        return {name: grads[name] for name in params}

    return logits.reshape(B, T, config.vocab_size), decoder_vjp


def _residual(x, f, params, norm_name, config):
    """Add the output of one part to its input, as in (17) and (18)."""
    if config.norm == "pre":
        normed, norm_vjp = parts.norm(x, params, norm_name, config.eps)
        y, f_vjp = f(normed)
        y += x

        def vjp(dy, grads):
            dx = norm_vjp(f_vjp(dy, grads), grads)
            dx += dy
            return dx

        return y, vjp

    total, f_vjp = f(x)
    total += x
    y, norm_vjp = parts.norm(total, params, norm_name, config.eps)

    def vjp(dy, grads):
        dtotal = norm_vjp(dy, grads)
        dx = f_vjp(dtotal, grads)
        dx += dtotal
        return dx

    return y, vjp


def _attention(x, params, prefix, options):
    packed, project_vjp = parts.linear(
        x, params, prefix + "in_proj_weight", prefix + "in_proj_bias"
    )
    heads, attend_vjp = parts.attend(packed, **options)
    y, merge_vjp = parts.linear(
        heads, params, prefix + "out_proj.weight", prefix + "out_proj.bias"
    )

    def vjp(dy, grads):
        return project_vjp(attend_vjp(merge_vjp(dy, grads), grads), grads)

    return y, vjp


def _mlp(x, params, prefix, config):
    if config.feed_forward == "swiglu":
        inner, gate_vjp = parts.linear(x, params, prefix + "gate_proj.weight", None)
        up, up_vjp = parts.linear(x, params, prefix + "up_proj.weight", None)
        hidden, hidden_vjp = parts.gate(inner, up)
        y, down_vjp = parts.linear(hidden, params, prefix + "down_proj.weight", None)

        def vjp(dy, grads):
            dinner, dup = hidden_vjp(down_vjp(dy, grads), grads)
            dx = gate_vjp(dinner, grads)
            dx += up_vjp(dup, grads)
            return dx

        return y, vjp

    inner, inner_vjp = parts.linear(
        x, params, prefix + "linear1.weight", prefix + "linear1.bias"
    )
    hidden, hidden_vjp = parts.activate(inner, config.feed_forward)
    y, outer_vjp = parts.linear(
        hidden, params, prefix + "linear2.weight", prefix + "linear2.bias"
    )

    def vjp(dy, grads):
        return inner_vjp(hidden_vjp(outer_vjp(dy, grads), grads), grads)

    return y, vjp


def _embed(ids, params, config, is_padding):
    scale = 1.0
    x = params["embedding.weight"][ids]  # (B, T, D)
    if config.positions == "learned":
        x += params["positions.weight"][position_ids(ids, is_padding)]
    elif config.positions == "sinusoidal":
        scale = math.sqrt(config.dim)
        table = sinusoidal_positions(config.context, config.dim).astype(x.dtype)
        x *= scale
        x += table[position_ids(ids, is_padding)]

    def vjp(dx, grads):
        if config.positions == "learned":
            grads["positions.weight"] = embedding_backward(
                dx, position_ids(ids, is_padding), params["positions.weight"]
            )
        dweight = embedding_backward(dx * scale, ids, params["embedding.weight"])
        # A tied matrix is used at both ends of the model: its gradients add up.
        grads["embedding.weight"] = dweight + grads.get("embedding.weight", 0)

    return x.reshape(-1, config.dim), vjp


def _attention_options(ids, config, is_padding, dtype):
    (B, T), N = ids.shape, config.n_head
    mask = causal_mask(T)
    if is_padding is not None:
        mask = mask + padding_mask(is_padding)  # (B, 1, T, T)
    return {
        "sizes": (B, T, N, config.dim // N),
        "mask": mask.astype(dtype),
        "rotary_base": config.rotary_base if config.positions == "rotary" else None,
    }
