"""Counts of operations and memory: against PyTorch's counter, real arrays, and by hand."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.complexity import Cost, attention_cost, layer_cost, rnn_cost


def matmul_flops(run):
    """Operations of the matrix products that PyTorch carries out."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    return counter.get_total_flops()


def test_two_queries_three_keys_by_hand():
    # 6 scores of width 5: 5 products and 4 sums and the first sum with 0, 10 each; 6 scalings.
    cost = attention_cost(2, 3, 5, width=7)
    assert cost["scores"] == Cost(6 * 10 + 6, 6 * 4)
    assert cost["softmax"] == Cost(5 * 6, 6 * 4)
    assert cost["output"] == Cost(2 * 2 * 3 * 7, 2 * 7 * 4)
    assert cost["scores"] + cost["softmax"] == Cost(96, 48)


def test_attention_products_are_those_that_pytorch_carries_out():
    B, N, T, S, K, W = 2, 3, 5, 7, 11, 13
    q, k, v = torch.ones(B, N, T, K), torch.ones(B, N, S, K), torch.ones(B, N, S, W)
    counted = matmul_flops(lambda: spt.scaled_dot_product_attention(q, k, v))
    cost = attention_cost(T, S, K, width=W, n_head=N, batch=B)
    scaling = B * N * T * S
    assert cost["scores"].flops - scaling + cost["output"].flops == counted


@pytest.mark.parametrize("kind", ["gelu", "swiglu"])
def test_layer_products_are_those_that_pytorch_carries_out(kind):
    T, D, N, F = 5, 6, 3, 11
    layer = torch.nn.TransformerEncoderLayer(D, N, F, dropout=0.0, batch_first=True)
    x = torch.ones(1, T, D)

    def run():
        weight = (layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias)
        out = (layer.self_attn.out_proj.weight, layer.self_attn.out_proj.bias)
        spt.multi_head_attention(x, *weight, *out, n_head=N)
        if kind == "gelu":
            spt.linear(spt.gelu(spt.linear(x, torch.ones(F, D))), torch.ones(D, F))
        else:
            gate = spt.silu(spt.linear(x, torch.ones(F, D))) * spt.linear(x, torch.ones(F, D))
            spt.linear(gate, torch.ones(D, F))

    cost = layer_cost(T, D, n_head=N, F=F, activation=kind)
    elementwise = N * T * T + cost["softmax"].flops + T * F * (2 if kind == "swiglu" else 1)
    assert sum(part.flops for part in cost.values()) - elementwise == matmul_flops(run)


@pytest.mark.parametrize(("kind", "rows"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_recurrent_products_are_those_that_pytorch_carries_out(kind, rows):
    B, T, D, H = 2, 5, 3, 7
    x, h = torch.ones(B, T, D), torch.ones(B, H)
    weights = (torch.ones(rows * H, D), torch.ones(rows * H, H), *torch.ones(2, rows * H))
    state = (h, h) if kind == "lstm" else (h,)
    cost = rnn_cost(T, D, H, kind=kind, batch=B)
    counted = matmul_flops(lambda: getattr(spt, kind)(x, *state, *weights))
    assert cost["input"].flops + cost["state"].flops == counted


def test_bytes_are_the_size_of_the_arrays():
    q = np.ones((2, 3, 5, 11), np.float32)
    k = np.ones((2, 3, 7, 11), np.float32)
    cost = attention_cost(5, 7, 11, n_head=3, batch=2)
    assert cost["softmax"].bytes == snp.attention_weights(q, k).nbytes
    assert cost["output"].bytes == snp.scaled_dot_product_attention(q, k, k).nbytes


def test_crossovers_at_two_and_six_widths():
    D = 48
    products = {}
    for T in (2 * D, 6 * D):
        cost = layer_cost(T, D)
        scores = cost["scores"].flops - T * T  # without the scale
        products[T] = (
            scores + cost["output"].flops,
            cost["projections"].flops,
            cost["feed_forward"].flops - 4 * T * D,  # without the activation
        )
    attention, projections, _ = products[2 * D]
    assert attention == projections
    attention, projections, feed_forward = products[6 * D]
    assert attention == projections + feed_forward


def test_exponents_of_the_notes_table():
    def exponent(step, **grow):
        small = attention_cost(64, 64, 32)[step]
        sizes = {"T": 64, "S": 64, "K": 32} | grow
        large = attention_cost(sizes["T"], sizes["S"], sizes["K"])[step]
        return np.log2(large.flops / small.flops), np.log2(large.bytes / small.bytes)

    assert exponent("softmax", T=128, S=128) == (2, 2)
    assert exponent("output", T=128, S=128)[0] == 2
    assert exponent("output", K=64)[0] == 1
    assert exponent("scores", T=128, S=128) == (2, 2)
    assert exponent("scores", K=64)[0] == pytest.approx(np.log2(129 / 65))  # 2 K + 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention_cost(0, 3, 5), r"^T must be a positive integer, got 0"),
        (lambda: attention_cost(3, 3, 5, width=1.5), r"^width must be a positive integer"),
        (lambda: layer_cost(3, 8, n_head=3), r"^n_head must divide D = 8, got 3"),
        (lambda: layer_cost(3, 8, activation="tanh"), r"^activation must be 'relu' or"),
        (lambda: rnn_cost(3, 8, 4, kind="mlp"), r"^kind must be 'rnn' or 'gru' or 'lstm'"),
    ],
)
def test_bad_sizes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
