"""The decoder-only language model: both backends, its gradient, its training form."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from twins import tensors

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.np import _fast_gelu
from seqlib.testing import check_backward

SIZES = {
    "vocab_size": 11,
    "context": 7,
    "dim": 12,
    "n_layer": 2,
    "n_head": 3,
    "dim_feedforward": 10,
}
LLAMA = {"norm_type": "rms", "feed_forward": "swiglu", "positions": "rotary", "bias": False}
MODELS = {
    "gpt2": {"feed_forward": "gelu_tanh"},
    "untied": {"tie_weights": False, "bias": False, "eps": 0.05},
    "llama": LLAMA | {"rotary_base": 20.0, "eps": 0.1},
    "original": {"norm": "post", "positions": "sinusoidal", "feed_forward": "relu"},
    "no positions": {"positions": "none", "norm": "post", "norm_type": "rms", "eps": 0.1},
    "untied llama": LLAMA | {"tie_weights": False, "norm": "post"},
}


@pytest.fixture(params=MODELS)
def config(request):
    return spt.DecoderConfig(**SIZES, **MODELS[request.param])


def random_model(config, *, seed=0):
    """Return a model in float64 whose parameters are neither 0 nor 1, nor small."""
    torch.manual_seed(seed)
    model = spt.DecoderLM(config).double()
    for p in model.parameters():
        p.data += 0.4 * torch.randn(p.shape, dtype=p.dtype)
    return model


def np_params(model):
    return {name: p.numpy() for name, p in model.state_dict().items()}


def random_params(config, *, seed=0, dtype=np.float64):
    return {k: p.astype(dtype) for k, p in np_params(random_model(config, seed=seed)).items()}


def left_padding(counts, T):
    return np.arange(T) < np.array(counts)[:, None]


NO_PADDING = None
LEFT = left_padding([2, 0, 4], 5)
RIGHT = LEFT[:, ::-1].copy()


# Values and gradients


@pytest.mark.parametrize("is_padding", [NO_PADDING, LEFT, RIGHT], ids=["full", "left", "right"])
def test_both_backends_agree(config, is_padding, rng):
    model, ids = random_model(config), rng.integers(0, 11, (3, 5))
    params = np_params(model)
    given_padding = None if is_padding is None else torch.tensor(is_padding)
    y = snp.decoder_lm(ids, params, config, is_padding=is_padding)
    twin = model(torch.tensor(ids), is_padding=given_padding)
    assert y.shape == (3, 5, 11)
    assert_allclose(y, twin.detach(), rtol=1e-10, atol=1e-10)

    dy = rng.standard_normal(y.shape)
    expected = torch.autograd.grad(twin, list(model.parameters()), torch.tensor(dy))
    grads = snp.decoder_lm_backward(dy, ids, params, config, is_padding=is_padding)
    assert list(grads) == list(params)
    for name, grad in zip(dict(model.named_parameters()), expected, strict=True):
        assert_allclose(grads[name], grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("is_padding", [NO_PADDING, LEFT], ids=["full", "left"])
def test_backward_equals_differences(config, is_padding, rng):
    check_backward(
        snp.decoder_lm,
        snp.decoder_lm_backward,
        (rng.integers(0, 11, (3, 5)), random_params(config), config),
        rng,
        kwargs={"is_padding": is_padding},
        step=1e-6,  # the model is strongly curved
        atol=1e-7,
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_equals_torchs_transformer_encoder(norm, rng):
    """An independent decoder from torch.nn: embedding, TransformerEncoder, linear head."""
    config = spt.DecoderConfig(**SIZES, norm=norm, feed_forward="relu", tie_weights=False)
    model, ids = random_model(config), torch.tensor(rng.integers(0, 11, (3, 7)))
    layer = torch.nn.TransformerEncoderLayer(
        12, 3, 10, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    )
    final = torch.nn.LayerNorm(12) if norm == "pre" else None
    encoder = torch.nn.TransformerEncoder(layer, 2, norm=final, enable_nested_tensor=False)
    state = model.state_dict()
    outside = ("embedding.weight", "positions.weight", "head.weight")
    encoder.double().load_state_dict({k: v for k, v in state.items() if k not in outside})
    embedding, positions, head = (state[name] for name in outside)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    x = torch.nn.functional.embedding(ids, embedding) + positions
    expected = encoder(x, mask=mask, is_causal=True) @ head.T
    assert_allclose(model(ids).detach(), expected.detach(), rtol=1e-10, atol=1e-10)
    y = snp.decoder_lm(ids.numpy(), np_params(model), config)
    assert_allclose(y, expected.detach(), rtol=1e-10, atol=1e-10)


def test_one_layer_by_the_equations(rng):
    """Embedding (16), pre-norm layer (18), final norm and tied head, step by step."""
    config = snp.DecoderConfig(**SIZES | {"n_layer": 1})
    p, ids = random_params(config), rng.integers(0, 11, (2, 5))
    x = p["embedding.weight"][ids] + p["positions.weight"][:5]
    h = snp.layer_norm(x, p["layers.0.norm1.weight"], p["layers.0.norm1.bias"])
    attention = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    z = x + snp.multi_head_attention(
        h,
        *[p[f"layers.0.self_attn.{name}"] for name in attention],
        n_head=3,
        mask=snp.causal_mask(5),
    )
    h = snp.layer_norm(z, p["layers.0.norm2.weight"], p["layers.0.norm2.bias"])
    mlp = ("linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias")
    z = z + snp.feed_forward(h, *[p[f"layers.0.{name}"] for name in mlp])
    z = snp.layer_norm(z, p["norm.weight"], p["norm.bias"])
    expected = z @ p["embedding.weight"].T
    assert_allclose(snp.decoder_lm(ids, p, config), expected, rtol=1e-12, atol=1e-12)


# The form that trains fast


@pytest.mark.parametrize("is_padding", [NO_PADDING, LEFT, RIGHT], ids=["full", "left", "right"])
def test_with_vjp_equals_the_plain_pair(config, is_padding, rng):
    params, ids = random_params(config), rng.integers(0, 11, (3, 5))
    y, vjp = snp.decoder_lm_with_vjp(ids, params, config, is_padding=is_padding)
    assert_allclose(
        y, snp.decoder_lm(ids, params, config, is_padding=is_padding), rtol=1e-10, atol=1e-12
    )
    dy = rng.standard_normal(y.shape)
    before = dy.copy()
    expected = snp.decoder_lm_backward(dy, ids, params, config, is_padding=is_padding)
    for _ in range(2):  # the closure can be called again
        grads = vjp(dy)
        assert list(grads) == list(params)
        for name in params:
            assert_allclose(grads[name], expected[name], rtol=1e-9, atol=1e-10)
    assert_array_equal(dy, before)


def test_with_vjp_in_float32(config, rng):
    ids, exact = rng.integers(0, 11, (3, 5)), random_params(config)
    params = {name: p.astype(np.float32) for name, p in exact.items()}
    before = {name: p.copy() for name, p in params.items()}
    y, vjp = snp.decoder_lm_with_vjp(ids, params, config)
    plain = snp.decoder_lm(ids, params, config)
    dy = rng.standard_normal(y.shape).astype(np.float32)
    grads, plain_grads = vjp(dy), snp.decoder_lm_backward(dy, ids, params, config)
    exact_grads = snp.decoder_lm_backward(dy.astype(float), ids, exact, config)
    for values in ([y, plain], grads.values(), plain_grads.values()):
        assert {v.dtype for v in values} == {np.dtype(np.float32)}
    assert_allclose(y, snp.decoder_lm(ids, exact, config), rtol=1e-4, atol=1e-4)
    for name in params:
        scale = np.abs(exact_grads[name]).max()
        assert_allclose(grads[name] / scale, exact_grads[name] / scale, atol=2e-5)
        assert_allclose(plain_grads[name] / scale, exact_grads[name] / scale, atol=2e-5)
        assert_array_equal(params[name], before[name])


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (1, 7), (5, 1)])
def test_sizes_0_and_1(config, shape, rng):
    model, ids = random_model(config), rng.integers(0, 11, shape)
    params = np_params(model)
    y, vjp = snp.decoder_lm_with_vjp(ids, params, config)
    assert y.shape == (*shape, 11)
    assert_allclose(y, model(torch.tensor(ids)).detach(), atol=1e-10)
    assert_allclose(y, snp.decoder_lm(ids, params, config), atol=1e-12)
    expected = snp.decoder_lm_backward(y, ids, params, config)
    for name, grad in vjp(y).items():
        assert_allclose(grad, expected[name], atol=1e-10)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_fast_gelu_is_exact_to_float32(approximate):
    x = np.linspace(-30, 30, 60001).astype(np.float32)
    y, slope = _fast_gelu.gelu_and_slope(x, approximate)
    exact = x.astype(float)
    expected = snp.gelu(exact, approximate=approximate)
    assert (np.abs(y - expected) <= 2e-7 * np.maximum(1, np.abs(exact))).all()
    expected = snp.gelu_backward(np.ones_like(exact), exact, approximate=approximate)
    assert_allclose(slope, expected, atol=2e-6)
    assert (y.dtype, slope.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("values", [[-3e38, 3e38, 1e15, -0.0, 0.0, 1e-40], [1.0, np.nan]])
def test_fast_gelu_of_extreme_numbers(approximate, values):
    x = np.array(values, np.float32)
    y, slope = _fast_gelu.gelu_and_slope(x, approximate)
    assert_allclose(y, snp.gelu(x, approximate=approximate), rtol=1e-6, atol=1e-7)
    expected = snp.gelu_backward(np.ones_like(x), x, approximate=approximate)
    assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)


# Properties


@given(position=st.integers(0, 6), token=st.integers(0, 10), model=st.sampled_from([*MODELS]))
def test_logits_do_not_see_the_future(position, token, model):
    config = spt.DecoderConfig(**SIZES, **MODELS[model])
    module = random_model(config)
    ids = np.random.default_rng(0).integers(0, 11, (2, 7))
    changed = ids.copy()
    changed[:, position] = token
    params = np_params(module)
    for f in (
        lambda i: snp.decoder_lm(i, params, config),
        lambda i: snp.decoder_lm_with_vjp(i, params, config)[0],
        lambda i: module(torch.tensor(i)).detach().numpy(),
    ):
        assert_allclose(f(changed)[:, :position], f(ids)[:, :position], rtol=0, atol=1e-12)
    if (changed != ids).any(axis=1).all():
        y, y2 = snp.decoder_lm(ids, params, config), snp.decoder_lm(changed, params, config)
        assert (np.abs(y2 - y)[:, position:].max(axis=-1) > 1e-9).all()


@given(counts=st.lists(st.integers(0, 4), min_size=1, max_size=3), seed=st.integers(0, 99))
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_equals_its_rows_alone(side, counts, seed):
    """Also positions: a short prompt starts at 0 (huggingface/transformers#19581)."""
    rng = np.random.default_rng(seed)
    config = spt.DecoderConfig(**SIZES, **MODELS[["gpt2", "llama", "original"][seed % 3]])
    model = random_model(config)
    params, T = np_params(model), 5
    ids = rng.integers(0, 11, (len(counts), T))
    is_padding = left_padding(counts, T)
    if side == "right":
        is_padding = is_padding[:, ::-1]
    y = snp.decoder_lm(ids, params, config, is_padding=is_padding)
    twin = model(torch.tensor(ids), is_padding=torch.tensor(is_padding.copy())).detach()
    for row, alone in enumerate(ids):
        real = ~is_padding[row]
        expected = snp.decoder_lm(alone[real][None], params, config)[0]
        assert_allclose(y[row, real], expected, atol=1e-11)
        assert_allclose(twin[row][torch.tensor(real)], expected, atol=1e-11)


def test_positions_count_real_tokens():
    """The attention mask 0 0 1 1 1 has the positions 0 0 0 1 2 (unslothai/unsloth#3699)."""
    is_padding = left_padding([2, 0], 5)
    ids = np.zeros((2, 5), int)
    expected = [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    from seqlib.np.decoder import position_ids
    from seqlib.pt.decoder import position_ids as twin

    assert_array_equal(position_ids(ids, is_padding), expected)
    assert_array_equal(twin(*tensors([ids, is_padding])), expected)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "none"])
def test_order_matters_unless_there_are_no_positions(positions, rng):
    """One causal layer without positions ignores the order of the tokens before the last."""
    config = snp.DecoderConfig(**SIZES | {"n_layer": 1}, positions=positions)
    params = random_params(config)
    y = snp.decoder_lm(np.array([[1, 2, 3, 4]]), params, config)[0, -1]
    y2 = snp.decoder_lm(np.array([[3, 1, 2, 4]]), params, config)[0, -1]
    assert (np.abs(y - y2).max() < 1e-12) == (positions == "none")


def test_order_matters_from_the_second_causal_layer_on(rng):
    config = snp.DecoderConfig(**SIZES, positions="none")
    params = random_params(config)
    y = snp.decoder_lm(np.array([[1, 2, 3, 4]]), params, config)[0, -1]
    y2 = snp.decoder_lm(np.array([[3, 1, 2, 4]]), params, config)[0, -1]
    assert np.abs(y - y2).max() > 1e-3


# Parameters


def test_names_shapes_and_order_of_the_parameters(config):
    state = spt.DecoderLM(config).state_dict()
    assert [(k, tuple(p.shape)) for k, p in state.items()] == list(config.shapes().items())
    params = snp.decoder_params(config, rng=np.random.default_rng(0))
    assert {k: p.shape for k, p in params.items()} == config.shapes()
    assert ("head.weight" in state) != config.tie_weights
    assert ("norm.weight" in state) == (config.norm == "pre")
    assert ("positions.weight" in state) == (config.positions == "learned")


@pytest.mark.parametrize("backend", [snp, spt])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_initial_parameters_are_those_of_gpt2(backend, name):
    config = spt.DecoderConfig(300, 50, dim=64, n_layer=8, **MODELS[name])
    torch.manual_seed(0)
    if backend is spt:
        params = np_params(spt.DecoderLM(config))
    else:
        params = snp.decoder_params(config, rng=np.random.default_rng(0))
    for key, p in params.items():
        assert p.dtype == np.float32
        if p.ndim == 1:
            assert (p == (0 if key.endswith("bias") else 1)).all()
        else:
            last = ("self_attn.out_proj.weight", "linear2.weight", "down_proj.weight")
            std = 0.02 / 4 if key.endswith(last) else 0.02  # sqrt(2 * 8) = 4
            assert abs(p.std() / std - 1) < 0.05
            assert abs(p.mean()) < 0.1 * std


@pytest.mark.parametrize("V", [65, 256, 50257])
def test_the_first_loss_is_ln_V(V, rng):
    """A head with variance 1 would start near 110 instead of 11 (transformers#26441)."""
    config = spt.DecoderConfig(V, 16, dim=32, n_layer=1, n_head=2)
    ids, targets = rng.integers(0, V, (2, 4, 16))
    torch.manual_seed(0)
    model = spt.DecoderLM(config)
    loss = torch.nn.functional.cross_entropy(
        model(torch.tensor(ids)).flatten(0, 1), torch.tensor(targets).flatten()
    )
    assert abs(loss.item() - math.log(V)) < 0.3
    params = snp.decoder_params(config, rng=rng)
    logits = snp.decoder_lm_with_vjp(ids, params, config)[0]
    assert abs(snp.cross_entropy(logits, targets) - math.log(V)) < 0.3


def test_the_caller_shifts_the_targets():
    """Logits of position t are scored against token t + 1 (huggingface/transformers#27517)."""
    tokens = np.array([0, 2, 1])
    logits = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [9.0, 9.0, 9.0]])
    loss = snp.cross_entropy(logits[:-1], tokens[1:])
    assert_allclose(loss, 0.5514447139320511, atol=1e-12)
    assert_allclose(spt.cross_entropy(*tensors([logits[:-1], tokens[1:]])), loss)


def test_a_model_that_copies_its_input_has_a_high_loss(rng):
    """With tied weights and no layers to speak of, the model predicts the token it reads."""
    config = snp.DecoderConfig(**SIZES, positions="none")
    params = {k: 0 * p for k, p in random_params(config).items()}
    params["embedding.weight"] = 3 * np.eye(11, 12)
    params["norm.weight"] = np.ones(12)
    ids = np.array([[1, 2, 3, 4, 5, 6]])
    logits = snp.decoder_lm(ids, params, config)
    assert_array_equal(logits.argmax(axis=-1), ids)
    assert snp.cross_entropy(logits[:, :-1], ids[:, 1:]) > 5


def test_dropout_acts_in_training_only(rng):
    config = spt.DecoderConfig(**SIZES, dropout=0.3)
    model, ids = random_model(config), torch.tensor(rng.integers(0, 11, (2, 5)))
    plain = random_model(dataclasses.replace(config, dropout=0.0))(ids)
    model.train()
    assert (model(ids) - plain).abs().max() > 0.01
    model.eval()
    assert_array_equal(model(ids).detach(), plain.detach())


# Training


def test_numpy_decoder_learns_a_language(rng):
    """Two sentences in random order: the words are known, and the choice costs ln 2 each."""
    sentences = [np.array([1, 2, 3, 0]), np.array([4, 5, 0])]
    stream = np.concatenate([sentences[i] for i in rng.integers(0, 2, 600)])
    counts = np.bincount(stream) / len(stream)
    unigram = -(counts * np.log(counts)).sum()
    floor = math.log(2) * 600 / len(stream)

    config = snp.DecoderConfig(6, 8, dim=16, n_layer=1, n_head=2)
    params, state, losses = snp.decoder_params(config, rng=rng), {}, []
    for _ in range(120):
        starts = rng.integers(0, len(stream) - 8, 16)
        window = stream[starts[:, None] + np.arange(9)]
        logits, vjp = snp.decoder_lm_with_vjp(window[:, :-1], params, config)
        losses.append(float(snp.cross_entropy(logits, window[:, 1:])))
        dlogits = snp.cross_entropy_backward(np.float32(1), logits, window[:, 1:])
        grads, _ = snp.clip_grad_norm(vjp(dlogits), max_norm=1.0)
        params, state = snp.adamw_step(params, grads, state, lr=0.01)
    assert {p.dtype for p in params.values()} == {np.dtype(np.float32)}
    assert abs(losses[0] - math.log(6)) < 0.2
    final = np.mean(losses[-20:])
    # A loss below the floor would mean that the model sees the future.
    assert floor - 0.03 < final < floor + 0.1 < unigram - 0.8


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 0}, "vocab_size must be a positive integer, got 0"),
        ({"context": -1}, "context must be a positive integer, got -1"),
        ({"dim": 12.0}, "dim must be a positive integer, got 12.0"),
        ({"n_layer": 0}, "n_layer must be a positive integer, got 0"),
        ({"n_head": 5}, "n_head must divide dim = 12, got 5; use one of"),
        ({"dim_feedforward": 0}, "dim_feedforward must be a positive integer, got 0"),
        ({"norm": "layer"}, "norm must be 'pre' or 'post', got 'layer'"),
        ({"norm_type": "batch"}, "norm_type must be 'layer' or 'rms', got 'batch'"),
        ({"feed_forward": "tanh"}, "feed_forward must be 'gelu' or 'gelu_tanh' or 'relu' or"),
        ({"positions": "alibi"}, "positions must be 'learned' or 'sinusoidal' or 'rotary' or"),
        (
            {"positions": "rotary", "n_head": 4},
            "dim / n_head must be even with rotary positions, got 12 / 4 = 3",
        ),
        ({"dropout": 1.0}, r"dropout must lie in [0, 1), got 1.0"),
        ({"eps": 0.0}, "eps must be positive, got 0.0"),
        ({"rotary_base": -1.0}, "rotary_base must be positive, got -1.0"),
    ],
)
def test_config_rejects_values_out_of_range(options, message):
    with pytest.raises(ValueError, match=" must ") as error:
        snp.DecoderConfig(**SIZES | options)
    assert str(error.value).startswith(message)


def test_config_is_frozen_and_has_defaults():
    config = snp.DecoderConfig(65, 64)
    assert config.dim_feedforward == 4 * config.dim == 512
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.dim = 6
    assert dataclasses.replace(config, dim_feedforward=None, dim=8).dim_feedforward == 32


@pytest.mark.parametrize(
    ("ids", "is_padding", "message"),
    [
        ([[0, 11]], None, "ids must be less than 11 everywhere, got 11; the vocabulary has"),
        ([[0, -1]], None, "ids must be at least 0 everywhere, got -1; the vocabulary has"),
        ([[0.0, 1.0]], None, "ids must have an integer dtype, got float"),
        ([1, 2], None, "ids must have shape (B, T), got (2,)"),
        (
            [[1] * 8],
            None,
            "ids must hold 1 to 7 tokens per sequence (the context), got 8; cut them, for "
            "example to the last ones with ids[:, -7:]",
        ),
        ([[], []], None, "ids must "),
        ([[1, 2]], [[0, 1]], "is_padding must be boolean (True = padding), got dtype int64"),
        ([[1, 2]], [[True]], "is_padding must have shape (1, 2), got (1, 1)"),
        (
            [[1, 2, 3]] * 2,
            [[False] * 3, [False, True, False]],
            "is_padding must leave the real tokens of a row in one piece, got padding between",
        ),
        (
            [[1, 2, 3, 4]],
            [[True, False, True, False]],
            "is_padding must leave the real tokens of a row in one piece, got padding between",
        ),
    ],
)
def test_models_reject_bad_input_alike(ids, is_padding, message):
    config = snp.DecoderConfig(**SIZES)
    params, model = random_params(config), random_model(config)
    ids = np.array(ids)
    is_padding = None if is_padding is None else np.array(is_padding)
    texts = []
    for call in (
        lambda: snp.decoder_lm(ids, params, config, is_padding=is_padding),
        lambda: snp.decoder_lm_with_vjp(ids, params, config, is_padding=is_padding),
        lambda: model(*tensors([ids]), is_padding=tensors([is_padding])[0]),
    ):
        with pytest.raises(ValueError, match=" must ") as error:
            call()
        texts.append(str(error.value))
    assert texts[0] == texts[1] == texts[2]
    assert texts[0].startswith(message)


@pytest.mark.parametrize("f", [snp.decoder_lm, snp.decoder_lm_with_vjp])
def test_functions_reject_parameters_that_do_not_fit(f):
    config, ids = snp.DecoderConfig(**SIZES), np.array([[1, 2]])
    params = random_params(config)
    without = {k: p for k, p in params.items() if k != "norm.bias"} | {"head.weight": None}
    with pytest.raises(
        ValueError, match=r"missing: \['norm.bias'\]; unknown: \['head.weight'\]"
    ):
        f(ids, without, config)
    wrong = params | {"positions.weight": params["positions.weight"][:5]}
    message = r"^params\['positions.weight'\] must have shape \(7, 12\), got \(5, 12\)$"
    with pytest.raises(ValueError, match=message):
        f(ids, wrong, config)


@pytest.mark.parametrize("dtypes", [[np.float16], [np.float32, np.float64]])
def test_fast_forms_reject_other_precisions(dtypes):
    """Half precision would overflow in their norms, and a mixture would slow them down."""
    config, ids = snp.DecoderConfig(**SIZES), np.array([[1, 2]])
    params = {
        name: p.astype(dtypes[i % len(dtypes)])
        for i, (name, p) in enumerate(random_params(config).items())
    }
    assert np.isfinite(snp.decoder_lm(ids, params, config)).all()
    for call in (
        lambda: snp.decoder_lm_with_vjp(ids, params, config),
        lambda: snp.generate((params, config), ids, max_new_tokens=1),
    ):
        with pytest.raises(ValueError, match=r"^params must be float32 throughout, or float64"):
            call()
