"""The listing of functions, equations and oracles has no gap."""

import pytest
from listing import equations, rows

import seqlib.np as snp

ROWS = {name: (notes, backends, oracles) for name, notes, backends, oracles in rows()}


@pytest.mark.parametrize("name", ROWS)
def test_every_function_is_held_against_something(name):
    assert ROWS[name][2]


@pytest.mark.parametrize("name", [n for n in ROWS if n.endswith("_backward")])
def test_every_backward_pass_is_held_against_calculus(name):
    assert {"central differences", "autograd"} & set(ROWS[name][2])


def test_rows_say_what_the_code_says():
    notes, backends, oracles = ROWS["scaled_dot_product_attention"]
    assert notes == "(9) and (12)"
    assert backends == ["np", "pt"]
    assert "torch.nn.functional.scaled_dot_product_attention" in oracles
    assert "transformers" in ROWS["decoder_from_gpt2"][2]
    assert "torch.nn.GRU" in ROWS["gru_backward"][2]
    assert "transformers" not in ROWS["softmax_backward"][2]


def test_equations_are_those_of_the_forward_pass():
    assert equations(snp.causal_mask) == "(15)"
    assert equations(snp.rms_norm_backward) == "(21)"
    assert equations(snp.swiglu) != "(6)"  # a paper's equation, not the notes'
