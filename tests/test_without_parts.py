"""The experiment on missing parts: what it shows, and that it measures what it says."""

import pytest
import torch
from torch.testing import assert_close

from seqlib.experiments import load, without_parts
from seqlib.pt import DecoderLM


# Two layers need attention alone; eight need the residuals besides.
@pytest.mark.parametrize("seed", range(5))
def test_deep_stacks_learn_nothing_without_residuals(seed):
    found = load("without_parts")["by_seed"][seed]
    shallow, deep = (
        {variant: min(rates.values()) for variant, rates in found[depth].items()}
        for depth in ("2", "8")
    )
    with_attention = shallow.keys() - {"no_attention"}
    assert max(shallow[variant] for variant in with_attention) < 0.4
    assert min(shallow["no_attention"], deep["no_attention"]) > 0.5
    assert max(deep["whole"], deep["no_mlp"]) < 0.4
    assert min(deep["no_residual"], deep["attention_alone"]) > 2


def test_the_whole_variant_is_the_decoder():
    ids = torch.arange(6).reshape(2, 3)
    torch.manual_seed(0)
    model = without_parts.build("whole", 2)
    plain = DecoderLM(model.config)
    plain.load_state_dict(model.state_dict())
    assert_close(model(ids), plain(ids))


@pytest.mark.parametrize(
    ("variant", "silent", "changes"),
    [
        ("no_mlp", "linear2", False),
        ("no_mlp", "self_attn.out_proj", True),
        ("no_attention", "self_attn.out_proj", False),
        ("no_attention", "linear2", True),
        ("attention_alone", "linear2", False),
        ("no_residual", "linear2", True),
    ],
)
def test_a_missing_part_has_no_say(variant, silent, changes):
    torch.manual_seed(0)
    model, ids = without_parts.build(variant, 1), torch.arange(6).reshape(2, 3)
    before = model(ids)
    with torch.no_grad():
        model.layers[0].get_submodule(silent).weight *= 2
    assert torch.equal(model(ids), before) != changes


@pytest.mark.parametrize("variant", without_parts.VARIANTS)
def test_residuals_are_kept_or_not(variant):
    torch.manual_seed(0)
    layer, x = without_parts.build(variant, 1).layers[0], torch.randn(1, 3, without_parts.D)
    with torch.no_grad():
        for name, p in layer.named_parameters():
            if not name.startswith("norm"):
                p.zero_()
    expected = x if without_parts.VARIANTS[variant][1] else torch.zeros_like(x)
    assert_close(layer(x, causal=True), expected)


def test_variants_of_a_seed_read_the_same_text_and_leave_the_generator_alone():
    before = torch.get_rng_state()
    inputs = {
        **without_parts.INPUTS,
        "depths": [1],
        "variants": ["no_mlp"],
        "rates": [0.001],
        "steps": 2,
    }
    both = {**inputs, "variants": ["whole", "no_mlp"]}
    alone = without_parts.run(inputs, 3)["1"]["no_mlp"]
    assert without_parts.run(both, 3)["1"]["no_mlp"] == alone
    assert without_parts.run(inputs, 4)["1"]["no_mlp"] != alone
    assert torch.equal(torch.get_rng_state(), before)
