"""Parameters of GPT-2 and LLaMA models of the transformers library, with random weights."""

import os

import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp
import seqlib.pt as spt

os.environ["HF_HUB_OFFLINE"] = "1"
pytestmark = pytest.mark.slow  # the import of transformers alone takes seconds
transformers = pytest.importorskip("transformers", reason="the oracle is transformers")


@pytest.fixture(autouse=True)
def _quiet():
    transformers.logging.set_verbosity_error()


def randomise(model):
    """Make every parameter of an oracle count: no gain of 1, no bias of 0."""
    torch.manual_seed(0)
    for p in model.parameters():
        p.data += 0.3 * torch.randn(p.shape, dtype=p.dtype)
    return model.double().eval()


def gpt2(**options):
    sizes = {"vocab_size": 19, "n_positions": 13, "n_embd": 12, "n_layer": 3, "n_head": 3}
    tokens = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(**sizes | tokens | options)
    return randomise(transformers.GPT2LMHeadModel(config))


def llama(**options):
    sizes = {
        "vocab_size": 19,
        "max_position_embeddings": 13,
        "hidden_size": 24,
        "intermediate_size": 20,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
    }
    return randomise(transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes | options)))


def ids_of(rng):
    return torch.tensor(rng.integers(0, 19, (2, 13)))


def assert_same_logits(model, oracle, ids, **tolerance):
    expected = oracle(ids).logits.detach()
    assert_allclose(model(ids).detach(), expected, **tolerance)
    params = {name: p.numpy() for name, p in model.state_dict().items()}
    assert_allclose(snp.decoder_lm(ids.numpy(), params, model.config), expected, **tolerance)


@pytest.mark.parametrize("options", [{}, {"n_inner": 20}, {"tie_word_embeddings": False}])
def test_gpt2_has_the_same_logits(options, rng):
    oracle = gpt2(**options)
    model = spt.decoder_from_gpt2(oracle.state_dict(), n_head=3)
    assert model.config.tie_weights == options.get("tie_word_embeddings", True)
    assert_same_logits(model, oracle, ids_of(rng), rtol=1e-9, atol=1e-10)


def test_gpt2_without_a_head_and_with_the_masks_of_old_files(rng):
    oracle = gpt2()
    state = oracle.transformer.state_dict()
    state["h.0.attn.bias"] = torch.ones(1, 1, 13, 13, dtype=torch.bool).tril()
    state["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    model = spt.decoder_from_gpt2(state, n_head=3)
    assert_same_logits(model, oracle, ids_of(rng), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_key_value_heads": 2},
        {"num_key_value_heads": 1, "tie_word_embeddings": True},
        {"rms_norm_eps": 0.1, "rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}},
    ],
    ids=["llama", "grouped", "tied", "other constants"],
)
def test_llama_has_the_same_logits(options, rng):
    oracle = llama(**options)
    model = spt.decoder_from_llama(
        oracle.state_dict(),
        n_head=6,
        context=13,
        eps=options.get("rms_norm_eps", 1e-6),
        rotary_base=options.get("rope_parameters", {"rope_theta": 10000.0})["rope_theta"],
    )
    assert model.config.tie_weights == options.get("tie_word_embeddings", False)
    # transformers takes the cosines in float32, whatever the dtype of the model.
    assert_same_logits(model, oracle, ids_of(rng), rtol=1e-5, atol=1e-5)


def test_gpt2_with_a_left_padded_batch(rng):
    """The oracle needs the positions of real tokens by hand; ours counts them."""
    oracle, ids = gpt2(), ids_of(rng)
    model = spt.decoder_from_gpt2(oracle.state_dict(), n_head=3)
    attends = torch.ones(2, 13, dtype=torch.long)
    attends[0, :5] = 0
    positions = torch.clamp(attends.cumsum(dim=1) - 1, min=0)
    expected = oracle(ids, attention_mask=attends, position_ids=positions).logits
    y = model(ids, is_padding=attends == 0)
    assert_allclose(y[0, 5:].detach(), expected[0, 5:].detach(), rtol=1e-9, atol=1e-10)
    assert_allclose(y[1].detach(), expected[1].detach(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_greedy_continuations_are_the_same(name, rng):
    oracle = gpt2() if name == "gpt2" else llama(num_key_value_heads=2)
    if name == "gpt2":
        model = spt.decoder_from_gpt2(oracle.state_dict(), n_head=3)
    else:
        model = spt.decoder_from_llama(oracle.state_dict(), n_head=6, context=13)
    ids = ids_of(rng)[:, :3]
    expected = ids
    for _ in range(10):
        best = oracle(expected).logits[:, -1].argmax(dim=-1, keepdim=True)
        expected = torch.cat([expected, best], dim=1)
    assert_array_equal(spt.generate(model, ids, max_new_tokens=10, temperature=0), expected)


def test_a_loaded_model_trains_and_leaves_the_state_alone(rng):
    state = gpt2().state_dict()
    before = {name: p.clone() for name, p in state.items()}
    torch.manual_seed(3)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    model = spt.decoder_from_gpt2(state, n_head=3)
    assert torch.equal(torch.rand(1), drawn)  # loading draws no random number
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    optimizer, ids = torch.optim.SGD(model.parameters(), lr=0.1), ids_of(rng)
    losses = []
    for _ in range(5):
        loss = spt.cross_entropy(model(ids)[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(torch.equal(p, before[name]) for name, p in state.items())


# Errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: s.pop("transformer.ln_f.bias"),
            r"state must hold 'ln_f.bias', got \d+ other",
        ),
        (
            lambda s: s.pop("transformer.h.1.mlp.c_fc.bias"),
            "state must hold 'h.1.mlp.c_fc.bias', got",
        ),
        (
            lambda s: s.update({"score.weight": torch.ones(2)}),
            r"state must hold nothing that the model has no place for, got \['score.weight'\]",
        ),
        (
            lambda s: s.update({"transformer.wpe.weight": torch.ones(13, 5)}),
            r"state\['positions.weight'\] must have shape \(13, 12\), got \(13, 5\)",
        ),
        (lambda s: s.clear(), r"state must hold layers h.0, h.1, ... of one model, got \[\]"),
        (
            lambda s: [s.pop(k) for k in list(s) if ".h.0." in k],
            r"state must hold layers h.0, h.1, ... of one model, got \[1, 2\]",
        ),
    ],
)
def test_gpt2_rejects_another_state(change, message):
    state = gpt2().state_dict()
    change(state)
    with pytest.raises(ValueError, match=f"^{message}"):
        spt.decoder_from_gpt2(state, n_head=3)


def test_loaders_reject_a_number_of_heads_that_does_not_divide():
    with pytest.raises(ValueError, match=r"^n_head must divide dim = 12, got 5"):
        spt.decoder_from_gpt2(gpt2().state_dict(), n_head=5)
    state = llama(num_key_value_heads=2).state_dict()
    with pytest.raises(
        ValueError, match=r"^n_head must divide the width of the model = 24, got 5"
    ):
        spt.decoder_from_llama(state, n_head=5, context=13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention_bias": True}, r"state must hold nothing .*self_attn.k_proj.bias"),
        ({"mlp_bias": True}, r"state must hold nothing .*mlp.down_proj.bias"),
        (
            {"head_dim": 8},
            r"state\['layers.0.self_attn.q_proj.weight'\] must have shape \(24, 24\), "
            r"got \(48, 24\); each of the 6 heads must have a share of the width 24",
        ),
    ],
)
def test_llama_rejects_what_it_cannot_hold(options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        spt.decoder_from_llama(llama(**options).state_dict(), n_head=6, context=13)


def test_both_loaders_reject_each_others_state():
    with pytest.raises(ValueError, match=r"^state must hold layers h.0"):
        spt.decoder_from_gpt2(llama().state_dict(), n_head=6)
    with pytest.raises(ValueError, match=r"^state must hold layers layers.0"):
        spt.decoder_from_llama(gpt2().state_dict(), n_head=3, context=13)


def test_dtype_of_the_state_is_kept():
    state = {name: p.to(torch.bfloat16) for name, p in gpt2().state_dict().items()}
    model = spt.decoder_from_gpt2(state, n_head=3)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert torch.isfinite(model(torch.zeros(1, 3, dtype=torch.long))).all()
