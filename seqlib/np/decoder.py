"""A decoder-only language model: embedding, causal layers, next-token scores."""

import math

import numpy as np

from seqlib._config import DecoderConfig, check_decoder_input, check_params
from seqlib.np.activation import linear, linear_backward
from seqlib.np.masks import causal_mask, padding_mask
from seqlib.np.norm import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from seqlib.np.positions import sinusoidal_positions
from seqlib.np.tokens import embedding, embedding_backward
from seqlib.np.transformer import transformer_layer, transformer_layer_backward

__all__ = ["DecoderConfig", "decoder_lm", "decoder_lm_backward", "decoder_params"]


def decoder_params(config, *, rng):
    """Draw the initial parameters of a model, after GPT-2.

    Matrices are normal with standard deviation 0.02, the last matrix of each part of a layer
    with 0.02 / sqrt(2 n_layer), because 2 n_layer of them add up in the residual stream.
    Gains are 1, biases 0. The first loss is then close to ln V.

    Parameters
    ----------
    config : DecoderConfig
        The model.
    rng : numpy.random.Generator
        Source of the numbers.

    Returns
    -------
    dict of str to ndarray
        Parameters in float32, with the names of ``seqlib.pt.DecoderLM.state_dict()``.

    References
    ----------
    Radford et al. (2019), "Language Models are Unsupervised Multitask Learners", Section 2.3.
    """
    params = {}
    for name, shape in config.shapes().items():
        if len(shape) == 1:
            constant = 0 if name.endswith("bias") else 1
            params[name] = np.full(shape, constant, np.float32)
        else:
            std = 0.02
            if name.endswith(("out_proj.weight", "linear2.weight", "down_proj.weight")):
                std /= math.sqrt(2 * config.n_layer)
            params[name] = (std * rng.standard_normal(shape)).astype(np.float32)
    return params


def decoder_lm(ids, params, config, *, is_padding=None):
    r"""Score every next token of every sequence.

    .. math:: X = E[t] + P, \qquad X \leftarrow \mathrm{Layer}_\ell(X; M^{causal})
        \text{ for } \ell = 1 \dots L, \qquad \mathrm{logits} = \mathrm{Norm}(X) \, W^\top

    Row t of the logits depends on tokens 0 to t only and belongs to token t + 1, so that
    the loss is ``cross_entropy(decoder_lm(tokens[:, :-1], ...), tokens[:, 1:])``.

    Parameters
    ----------
    ids : ndarray of int of shape (B, T)
        Token ids, T at most ``config.context``.
    params : dict of str to ndarray
        Parameters, with the names and shapes of ``config.shapes()``.
    config : DecoderConfig
        The model.
    is_padding : ndarray of bool of shape (B, T), optional
        True at padded positions. No token attends to them, and positions count real tokens
        only, so that padding on the left changes nothing for the real ones.

    Returns
    -------
    ndarray of shape (B, T, V)
        Logits. Those at padded positions mean nothing.

    Raises
    ------
    ValueError
        If an id is outside the vocabulary, T exceeds the context, or ``params`` does not fit
        ``config``.

    References
    ----------
    Lecture notes, section 10. Radford et al. (2019), "Language Models are Unsupervised
    Multitask Learners", Section 2.3.
    """
    check_decoder_input(ids, config, is_padding)
    check_params(params, config.shapes())
    x = _embed(ids, params, config, is_padding)
    options = _layer_options(ids, config, is_padding)
    for i in range(config.n_layer):
        x = transformer_layer(x, _layer(params, i), **options)
    return linear(_final_norm(x, params, config), params[_head(config)])


def decoder_lm_backward(dy, ids, params, config, *, is_padding=None):
    """Vector-Jacobian product of :func:`decoder_lm`.

    Parameters
    ----------
    dy : ndarray of shape (B, T, V)
        Gradient of the loss with respect to the logits.
    ids, params, config, is_padding
        The arguments of the forward call.

    Returns
    -------
    dict of str to ndarray
        Gradients with respect to ``params``, under the same names.
    """
    options = _layer_options(ids, config, is_padding)
    x = _embed(ids, params, config, is_padding)
    inputs = []  # of each layer
    for i in range(config.n_layer):
        inputs.append(x)
        x = transformer_layer(x, _layer(params, i), **options)

    dx, dhead, _ = linear_backward(dy, _final_norm(x, params, config), params[_head(config)])
    dx, grads = _final_norm_backward(dx, x, params, config)
    for i in reversed(range(config.n_layer)):
        dx, dlayer, _ = transformer_layer_backward(dx, inputs[i], _layer(params, i), **options)
        grads |= {f"layers.{i}.{name}": grad for name, grad in dlayer.items()}
    grads |= _embed_backward(dx, ids, params, config, is_padding)
    # A tied matrix is used twice, at both ends of the model: its gradients add up.
    grads[_head(config)] = dhead + grads.get(_head(config), 0)
    return {name: grads[name] for name in params}


def position_ids(ids, is_padding):
    """Return the positions of the tokens, counted from the first real token of each row."""
    t = np.arange(ids.shape[1])
    if is_padding is None:
        return np.broadcast_to(t, ids.shape)
    first = is_padding.argmin(axis=1)  # the first real token of each row
    return np.maximum(t - first[:, None], 0)


def _embed(ids, params, config, is_padding):
    x = embedding(ids, params["embedding.weight"])  # (B, T, D)
    if config.positions == "learned":
        x = x + params["positions.weight"][position_ids(ids, is_padding)]
    elif config.positions == "sinusoidal":
        table = sinusoidal_positions(config.context, config.dim).astype(x.dtype)
        x = math.sqrt(config.dim) * x + table[position_ids(ids, is_padding)]
    return x


def _embed_backward(dx, ids, params, config, is_padding):
    grads = {}
    if config.positions == "learned":
        grads["positions.weight"] = embedding_backward(
            dx, position_ids(ids, is_padding), params["positions.weight"]
        )
    elif config.positions == "sinusoidal":
        dx = math.sqrt(config.dim) * dx
    return grads | {"embedding.weight": embedding_backward(dx, ids, params["embedding.weight"])}


def _layer_options(ids, config, is_padding):
    mask = causal_mask(ids.shape[1])
    if is_padding is not None:
        mask = mask + padding_mask(is_padding)  # (B, 1, T, T)
    return {
        "n_head": config.n_head,
        "norm": config.norm,
        "mask": mask,
        "activation": config.feed_forward,
        "eps": config.eps,
        "rotary_base": config.rotary_base if config.positions == "rotary" else None,
    }


def _layer(params, i):
    """Return the parameters of layer i under their names inside the layer."""
    prefix = f"layers.{i}."
    return {
        name.removeprefix(prefix): array
        for name, array in params.items()
        if name.startswith(prefix)
    }


def _final_norm(x, params, config):
    if config.norm == "post":
        return x
    if config.norm_type == "rms":
        return rms_norm(x, params["norm.weight"], eps=config.eps)
    return layer_norm(x, params["norm.weight"], params["norm.bias"], eps=config.eps)


def _final_norm_backward(dy, x, params, config):
    if config.norm == "post":
        return dy, {}
    if config.norm_type == "rms":
        dx, dweight = rms_norm_backward(dy, x, params["norm.weight"], eps=config.eps)
        return dx, {"norm.weight": dweight}
    dx, dweight, dbias = layer_norm_backward(
        dy, x, params["norm.weight"], params["norm.bias"], eps=config.eps
    )
    return dx, {"norm.weight": dweight, "norm.bias": dbias}


def _head(config):
    return "embedding.weight" if config.tie_weights else "head.weight"
