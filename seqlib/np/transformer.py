"""One Transformer layer: attention and feed-forward, each with a residual and a norm."""

from seqlib._check import check_choice, check_shape
from seqlib._config import check_params, layer_shapes
from seqlib.np._rotary_attention import rotary_self_attention, rotary_self_attention_backward
from seqlib.np.feedforward import (
    feed_forward,
    feed_forward_backward,
    swiglu,
    swiglu_backward,
)
from seqlib.np.multihead import multi_head_attention, multi_head_attention_backward
from seqlib.np.norm import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward

__all__ = ["transformer_layer", "transformer_layer_backward"]


def transformer_layer(
    x,
    params,
    context=None,
    *,
    n_head,
    norm="pre",
    mask=None,
    context_mask=None,
    activation="gelu",
    eps=1e-5,
    rotary_base=None,
):
    r"""Apply one Transformer layer: every part f adds its output to its input.

    .. math:: \text{post-norm: } x' = \mathrm{Norm}(f(x) + x) \qquad
        \text{pre-norm: } x' = f(\mathrm{Norm}(x)) + x

    The parts are self-attention, attention to ``context`` if there is one, and the feed-forward
    network, each with a norm of its own.
    In a pre-norm layer x itself is never normalised: a stack of them ends with one more norm.

    Parameters
    ----------
    x : ndarray of shape (..., T, D)
        Tokens.
    params : dict of str to ndarray
        Parameters, with the names and shapes of ``seqlib.pt.TransformerLayer.state_dict()``:
        ``self_attn.in_proj_weight``, ``self_attn.in_proj_bias``, ``self_attn.out_proj.weight``,
        ``self_attn.out_proj.bias``; the same of ``multihead_attn`` with a context;
        ``linear1.*`` and ``linear2.*``, or ``gate_proj.weight``, ``up_proj.weight`` and
        ``down_proj.weight`` for SwiGLU; ``norm1.*``, ``norm2.*`` (and ``norm3.*`` with a
        context), which are LayerNorm if they have a bias and RMSNorm if not.
        Biases of the projections may be missing.
    context : ndarray of shape (..., S, D), optional
        Tokens to attend to besides: the output of an encoder.
    n_head : int
        Number of heads N; divides D.
    norm : {"pre", "post"}, default="pre"
        Where the norms stand.
    mask : ndarray that broadcasts to (..., N, T, T), optional
        Mask of the self-attention.
    context_mask : ndarray that broadcasts to (..., N, T, S), optional
        Mask of the attention to ``context``.
    activation : {"gelu", "gelu_tanh", "relu"}, default="gelu"
        Nonlinearity of the feed-forward network, if it is not SwiGLU.
    eps : float, default=1e-5
        The norms' epsilon.
    rotary_base : float, optional
        If given, queries and keys of the self-attention are rotated with this base, from
        position 0 on. Where they really start does not matter: scores depend on distances.

    Returns
    -------
    ndarray of shape (..., T, D)
        Tokens.

    Raises
    ------
    ValueError
        If ``norm`` is neither of the two, or arguments do not fit.

    References
    ----------
    Lecture notes, equations (17) and (18). Xiong et al. (2020), "On Layer Normalization in the
    Transformer Architecture", Figure 1, arXiv:2002.04745.
    """
    check_choice("norm", norm, ("pre", "post"))
    check_shape("x", x, ("...", "T", "D"))
    _check_params(params, x.shape[-1], context)
    for i, (f, _, options) in _parts(
        n_head, mask, context, context_mask, activation, rotary_base
    ):
        if norm == "pre":
            x = f(_norm(x, params, i, eps), params, **options) + x
        else:
            x = _norm(f(x, params, **options) + x, params, i, eps)
    return x


def transformer_layer_backward(
    dy,
    x,
    params,
    context=None,
    *,
    n_head,
    norm="pre",
    mask=None,
    context_mask=None,
    activation="gelu",
    eps=1e-5,
    rotary_base=None,
):
    """Vector-Jacobian product of :func:`transformer_layer`.

    Parameters
    ----------
    dy : ndarray of shape (..., T, D)
        Gradient of the loss with respect to the output.
    x, params, context
        The arguments of the forward call.
    n_head, norm, mask, context_mask, activation, eps, rotary_base
        The options of the forward call.

    Returns
    -------
    dx : ndarray of shape (..., T, D)
        Gradient with respect to ``x``.
    dparams : dict of str to ndarray
        Gradients with respect to ``params``, under the same names.
    dcontext : ndarray of shape (..., S, D)
        Gradient with respect to ``context``; None if there is none.
    """
    parts = _parts(n_head, mask, context, context_mask, activation, rotary_base)
    inputs = []  # of each part, as the forward pass meets them
    for i, (f, _, options) in parts:
        inputs.append(x)
        if norm == "pre":
            x = f(_norm(x, params, i, eps), params, **options) + x
        else:
            x = _norm(f(x, params, **options) + x, params, i, eps)

    grads = {}
    for i, (f, f_backward, options) in reversed(parts):
        x = inputs.pop()
        if norm == "pre":
            dnormed, df = f_backward(dy, _norm(x, params, i, eps), params, **options)
            dx, dnorm = _norm_backward(dnormed, x, params, i, eps)
            dy = dx + dy  # through the part, and past it
        else:
            total = f(x, params, **options) + x
            dtotal, dnorm = _norm_backward(dy, total, params, i, eps)
            dx, df = f_backward(dtotal, x, params, **options)
            dy = dx + dtotal
        grads |= dnorm | df
    dcontext = grads.pop("context", None)
    return dy, {name: grads[name] for name in params}, dcontext


def _parts(n_head, mask, context, context_mask, activation, rotary_base):
    """List the parts of a layer: number, (function, its backward pass, its options)."""
    attention = {
        "name": "self_attn",
        "n_head": n_head,
        "mask": mask,
        "rotary_base": rotary_base,
    }
    parts = [(_attention, _attention_backward, attention)]
    if context is not None:
        cross = {"name": "multihead_attn", "n_head": n_head, "mask": context_mask}
        parts.append((_attention, _attention_backward, cross | {"context": context}))
    parts.append((_mlp, _mlp_backward, {"activation": activation}))
    return list(enumerate(parts, start=1))


def _attention(x, params, *, name, n_head, mask, context=None, rotary_base=None):
    weights = [params.get(f"{name}.{key}") for key in _ATTENTION_KEYS]
    if rotary_base is not None:
        return rotary_self_attention(x, *weights, n_head=n_head, mask=mask, base=rotary_base)
    return multi_head_attention(x, *weights, context, n_head=n_head, mask=mask)


def _attention_backward(dy, x, params, *, name, n_head, mask, context=None, rotary_base=None):
    weights = [params.get(f"{name}.{key}") for key in _ATTENTION_KEYS]
    options = {"n_head": n_head, "mask": mask}
    dcontext = None
    if rotary_base is not None:
        dx, *grads = rotary_self_attention_backward(
            dy, x, *weights, **options, base=rotary_base
        )
    else:
        dx, *grads, dcontext = multi_head_attention_backward(
            dy, x, *weights, context, **options
        )
    named = {f"{name}.{key}": g for key, g in zip(_ATTENTION_KEYS, grads, strict=True)}
    return dx, named if dcontext is None else named | {"context": dcontext}


def _mlp(x, params, *, activation):
    if "gate_proj.weight" in params:
        return swiglu(x, *[params[key] for key in _SWIGLU_KEYS])
    weights = [params.get(key) for key in _FEED_FORWARD_KEYS]
    return feed_forward(x, *weights, activation=activation)


def _mlp_backward(dy, x, params, *, activation):
    if "gate_proj.weight" in params:
        dx, *grads = swiglu_backward(dy, x, *[params[key] for key in _SWIGLU_KEYS])
        return dx, dict(zip(_SWIGLU_KEYS, grads, strict=True))
    weights = [params.get(key) for key in _FEED_FORWARD_KEYS]
    dx, *grads = feed_forward_backward(dy, x, *weights, activation=activation)
    return dx, dict(zip(_FEED_FORWARD_KEYS, grads, strict=True))


def _norm(x, params, i, eps):
    weight, bias = params[f"norm{i}.weight"], params.get(f"norm{i}.bias")
    if bias is None:
        return rms_norm(x, weight, eps=eps)
    return layer_norm(x, weight, bias, eps=eps)


def _norm_backward(dy, x, params, i, eps):
    weight, bias = params[f"norm{i}.weight"], params.get(f"norm{i}.bias")
    if bias is None:
        dx, dweight = rms_norm_backward(dy, x, weight, eps=eps)
        return dx, {f"norm{i}.weight": dweight}
    dx, dweight, dbias = layer_norm_backward(dy, x, weight, bias, eps=eps)
    return dx, {f"norm{i}.weight": dweight, f"norm{i}.bias": dbias}


def _check_params(params, D, context):
    inner = params.get("gate_proj.weight", params.get("linear1.weight"))
    shapes = layer_shapes(
        D,
        "F" if inner is None else inner.shape[0],
        norm_type="layer" if "norm1.bias" in params else "rms",
        swiglu="gate_proj.weight" in params,
        bias="self_attn.in_proj_bias" in params,
        cross=context is not None,
    )
    check_params(params, shapes)


_ATTENTION_KEYS = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
_FEED_FORWARD_KEYS = ("linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias")
_SWIGLU_KEYS = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")
