"""Load the parameters of published decoders, as the transformers library names them."""

import torch

from seqlib._check import check_divisible, check_positive, check_shape
from seqlib._config import DecoderConfig, check_params
from seqlib.pt.decoder import DecoderLM

__all__ = ["decoder_from_gpt2", "decoder_from_llama"]


def decoder_from_gpt2(state, *, n_head):
    """Build a model from the state dict of a GPT-2 of the transformers library.

    Sizes are read from the shapes; the rest is GPT-2's: learned positions, LayerNorm before
    each part, the tanh form of GELU, and the embedding as output matrix.

    Parameters
    ----------
    state : dict of str to Tensor
        ``GPT2LMHeadModel.state_dict()`` or ``GPT2Model.state_dict()``; it is copied.
    n_head : int
        Number of heads, which no shape shows: 12, 16, 20 and 25 in the four published sizes.

    Returns
    -------
    DecoderLM
        A model with the same logits, in the dtype of the state.

    Raises
    ------
    ValueError
        If a parameter is missing, unknown or of another shape, or ``n_head`` does not divide
        the width.
    """
    state = {name.removeprefix("transformer."): p for name, p in state.items()}
    _drop(state, (".attn.bias", ".attn.masked_bias"))  # old files hold the causal mask
    n_layer = _count_layers(state, "h")
    ours = {
        "embedding.weight": _take(state, "wte.weight"),
        "positions.weight": _take(state, "wpe.weight"),
        "norm.weight": _take(state, "ln_f.weight"),
        "norm.bias": _take(state, "ln_f.bias"),
    }
    for i in range(n_layer):
        for theirs, name in _GPT2_LAYER.items():
            for kind in ("weight", "bias"):
                p = _take(state, f"h.{i}.{theirs}.{kind}")
                # GPT-2 stores its matrices as (inputs, outputs).
                ours[f"layers.{i}.{name}{kind}"] = p.T if p.ndim == 2 else p
    tied = _take_head(state, ours)
    _refuse_rest(state)
    (V, D), context = ours["embedding.weight"].shape, ours["positions.weight"].shape[0]
    config = DecoderConfig(
        V,
        context,
        dim=D,
        n_layer=n_layer,
        n_head=n_head,
        dim_feedforward=ours["layers.0.linear1.weight"].shape[0],
        feed_forward="gelu_tanh",
        tie_weights=tied,
    )
    return _build(config, ours)


def decoder_from_llama(state, *, n_head, context, eps=1e-6, rotary_base=10000.0):
    """Build a model from the state dict of a LLaMA of the transformers library.

    Sizes are read from the shapes; the rest is LLaMA's: rotary positions, RMSNorm before each
    part, SwiGLU, no biases. Where several heads share their keys and values (grouped-query
    attention), the shared rows are written out for each head: same logits, a larger model.
    Rotary frequencies that are rescaled for a longer context are not supported, and cannot be
    noticed here, since the state dict does not hold them.

    Parameters
    ----------
    state : dict of str to Tensor
        ``LlamaForCausalLM.state_dict()``; it is copied.
    n_head : int
        Number of heads: ``num_attention_heads`` of its configuration.
    context : int
        Longest sequence to read: ``max_position_embeddings``.
    eps : float, default=1e-6
        The norms' epsilon: ``rms_norm_eps``.
    rotary_base : float, default=10000.0
        Base of the rotary positions: ``rope_theta``.

    Returns
    -------
    DecoderLM
        A model with the same logits, in the dtype of the state.

    Raises
    ------
    ValueError
        If a parameter is missing, unknown (biases, for example) or of another shape, or
        ``n_head`` does not divide the width.
    """
    state = {name.removeprefix("model."): p for name, p in state.items()}
    _drop(state, (".rotary_emb.inv_freq",))
    n_layer = _count_layers(state, "layers")
    ours = {
        "embedding.weight": _take(state, "embed_tokens.weight"),
        "norm.weight": _take(state, "norm.weight"),
    }
    V, D = ours["embedding.weight"].shape
    check_positive("n_head", n_head)
    check_divisible("the width of the model", D, "n_head", n_head)
    for i in range(n_layer):
        for theirs, name in _LLAMA_LAYER.items():
            ours[f"layers.{i}.{name}"] = _take(state, f"layers.{i}.{theirs}")
        q, k, v = (_take(state, f"layers.{i}.self_attn.{part}_proj.weight") for part in "qkv")
        fix = f"each of the {n_head} heads must have a share of the width {D}"
        check_shape(f"state['layers.{i}.self_attn.q_proj.weight']", q, (D, D), fix=fix)
        k, v = (_one_per_head(p, n_head, D // n_head) for p in (k, v))
        ours[f"layers.{i}.self_attn.in_proj_weight"] = torch.cat([q, k, v])
    tied = _take_head(state, ours)
    _refuse_rest(state)
    config = DecoderConfig(
        V,
        context,
        dim=D,
        n_layer=n_layer,
        n_head=n_head,
        dim_feedforward=ours["layers.0.gate_proj.weight"].shape[0],
        norm_type="rms",
        feed_forward="swiglu",
        positions="rotary",
        tie_weights=tied,
        bias=False,
        eps=eps,
        rotary_base=rotary_base,
    )
    return _build(config, ours)


def _build(config, params):
    shapes = config.shapes()
    check_params(params, shapes, what="state")
    with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
        model = DecoderLM(config)
    copies = {name: params[name].detach().clone().contiguous() for name in shapes}
    model.load_state_dict(copies, assign=True)
    return model.requires_grad_()


def _one_per_head(p, n_head, K):
    """Repeat the rows of heads that several queries share, so that each query has its own."""
    shared = p.shape[0] // K
    check_divisible("n_head", n_head, "the number of key and value heads", shared)
    return p.reshape(shared, K, -1).repeat_interleave(n_head // shared, dim=0).flatten(0, 1)


def _take(state, name):
    if name not in state:
        raise ValueError(f"state must hold {name!r}, got {len(state)} other names")
    return state.pop(name)


def _take_head(state, ours):
    """Move the output matrix unless it is the embedding; say whether it is."""
    head = state.pop("lm_head.weight", None)
    if head is None or torch.equal(head, ours["embedding.weight"]):
        return True
    ours["head.weight"] = head
    return False


def _count_layers(state, prefix):
    numbers = {int(name.split(".")[1]) for name in state if name.startswith(f"{prefix}.")}
    if numbers != set(range(len(numbers))) or not numbers:
        raise ValueError(
            f"state must hold layers {prefix}.0, {prefix}.1, ... of one model, "
            f"got {sorted(numbers)}"
        )
    return len(numbers)


def _drop(state, endings):
    for name in [name for name in state if name.endswith(endings)]:
        del state[name]


def _refuse_rest(state):
    if state:
        raise ValueError(
            "state must hold nothing that the model has no place for, got "
            f"{sorted(state)[:4]}{' ...' if len(state) > 4 else ''}"
        )


_GPT2_LAYER = {
    "ln_1": "norm1.",
    "attn.c_attn": "self_attn.in_proj_",
    "attn.c_proj": "self_attn.out_proj.",
    "ln_2": "norm2.",
    "mlp.c_fc": "linear1.",
    "mlp.c_proj": "linear2.",
}
_LLAMA_LAYER = {
    "input_layernorm.weight": "norm1.weight",
    "self_attn.o_proj.weight": "self_attn.out_proj.weight",
    "post_attention_layernorm.weight": "norm2.weight",
    "mlp.gate_proj.weight": "gate_proj.weight",
    "mlp.up_proj.weight": "up_proj.weight",
    "mlp.down_proj.weight": "down_proj.weight",
}
