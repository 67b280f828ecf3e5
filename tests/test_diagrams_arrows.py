"""Drawn diagrams: their arrows, read as a computation, give what the library gives."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import seqlib.np as snp
from seqlib.experiments.diagrams import DIAGRAMS


def evaluate(sheet, given, meaning):
    """Return the value of every node, from those given and what the texts of nodes mean.

    A node's inputs are the values of those with an arrow to it, in the order of drawing.
    """
    known = {}

    def value(node):
        if node not in known:
            inputs = [value(source) for source, target in sheet.links if target is node]
            if node.text in given:
                assert not inputs, node.text
                known[node] = given[node.text]
            elif node.text in meaning:
                known[node] = meaning[node.text](*inputs)
            else:
                assert node.kind == "value", node.text
                (known[node],) = inputs
        return known[node]

    for node in sheet.nodes:
        value(node)
    return {node.text: known[node] for node in sheet.nodes}


def multiply(a, b):
    return a * b


def add(a, b):
    return a + b


def join(*parts):
    return np.concatenate(parts, axis=-1)


OPS = {r"$\odot$": multiply, "$+$": add, r"$\tanh$": np.tanh, "$1 -$": lambda z: 1 - z}


def gate(function, weight, bias=0.0):
    return lambda joined: function(joined @ weight.T + bias)


def test_arrows_of_the_unrolled_network(rng):
    w_ih, w_hh, b = rng.standard_normal((3, 2)), rng.standard_normal((3, 3)), np.zeros(3)
    x, h0 = rng.standard_normal((1, 3, 2)), rng.standard_normal((1, 3))

    def step(h, x_t):
        return snp.rnn_cell(x_t, h, w_ih, w_hh, b, None)

    sheet = DIAGRAMS["rnn-unrolled"]()
    sheet.links = [
        link for link in sheet.links if not {"$h_t$", "$x_t$"} & {n.text for n in link}
    ]
    sheet.nodes = [n for n in sheet.nodes if n.x > 130]
    given = {f"$x_{t}$": x[:, t - 1] for t in (1, 2, 3)} | {"$h_0$": h0}
    found = evaluate(sheet, given, {"$f_W$": step, "$g_{W'}$": lambda h: 2 * h})
    states, _ = snp.rnn(x, h0, w_ih, w_hh, b, None)
    for t in (1, 2, 3):
        assert_allclose(found[f"$h_{t}$"], states[:, t - 1], rtol=1e-12)
        assert_allclose(found[rf"$\hat{{y}}_{t}$"], 2 * states[:, t - 1], rtol=1e-12)


def test_folded_network_is_one_step_of_the_unrolled():
    sheet = DIAGRAMS["rnn-unrolled"]()
    folded = {(a.text, b.text) for a, b in sheet.links if a.x < 130}
    step = {("$x_t$", "$f_W$"), ("$f_W$", "$h_t$"), ("$h_t$", "$g_{W'}$")}
    assert folded == step | {("$h_t$", "$f_W$"), ("$g_{W'}$", r"$\hat{y}_t$")}


def test_arrows_of_truncated_backpropagation(rng):
    weights = rng.standard_normal((1, 1)), rng.standard_normal((1, 1))
    args = (rng.standard_normal((1, 5, 1)), rng.standard_normal((1, 1)), *weights, None, None)
    dy = rng.standard_normal((1, 5, 1))
    states, _ = snp.rnn(*args)
    before = np.concatenate([args[1][:, None], states], axis=1).ravel()
    slope = 1 - states.ravel() ** 2
    sheet = DIAGRAMS["bptt-truncated"]()
    known, dw = {}, 0.0
    for node in [n for n in sheet.nodes if n.text.startswith("$da")]:
        t = int(node.text[4])
        dh = 0.0
        for source, target in sheet.links:
            if target is node:
                direct = source.text.startswith("$dy")
                dh += (
                    dy[0, int(source.text[4]) - 1, 0] if direct else known[source] * weights[1]
                )
        known[node] = dh * slope[t - 1]
        dw += known[node] * before[t - 1]
    (start,) = [known[a] * weights[1] for a, b in sheet.links if b.text == "$dh_0$"]
    grads = snp.rnn_truncated_backward((dy, np.zeros((1, 1))), *args, k1=2, k2=3)
    assert_allclose(dw, grads[3], rtol=1e-12)
    assert_allclose(start, grads[1], rtol=1e-12)


def test_arrows_of_the_lstm_cell(rng):
    W, b = rng.standard_normal((4, 3, 5)), rng.standard_normal((4, 3))
    x, h, c = rng.standard_normal((2, 2)), *rng.standard_normal((2, 2, 3))
    functions = snp.sigmoid, snp.sigmoid, np.tanh, snp.sigmoid
    names = ("\\sigma", "f"), ("\\sigma", "i"), ("\\tanh", "C"), ("\\sigma", "o")
    meaning = {
        f"${name}$\n$W_{letter}, b_{letter}$": gate(function, w, bias)
        for (name, letter), function, w, bias in zip(names, functions, W, b, strict=True)
    }
    given = {"$x_t$": x, "$h_{t-1}$": h, "$C_{t-1}$": c}
    meaning |= OPS | {"$[h_{t-1}, x_t]$": join}
    found = evaluate(DIAGRAMS["lstm-cell"](), given, meaning)
    pairs = [part for pair in zip(W, b, strict=True) for part in pair]
    h_new, c_new = snp.lstm_cell(x, h, c, *snp.lstm_from_notes(*pairs))
    assert_allclose(found["$h_t$"], h_new, rtol=1e-12)
    assert_allclose(found["$C_t$"], c_new, rtol=1e-12)


def test_arrows_of_the_gru_cell(rng):
    W = rng.standard_normal((3, 3, 5))
    x, h = rng.standard_normal((2, 2)), rng.standard_normal((2, 3))
    meaning = OPS | {
        "$\\sigma$\n$W_r$": gate(snp.sigmoid, W[0]),
        "$\\sigma$\n$W_z$": gate(snp.sigmoid, W[1]),
        "$\\tanh$\n$W$": gate(np.tanh, W[2]),
        "$[h_{t-1}, x_t]$": join,
        r"$[r_t \odot h_{t-1}, x_t]$": join,
    }
    found = evaluate(DIAGRAMS["gru-cell"](), {"$x_t$": x, "$h_{t-1}$": h}, meaning)
    assert_allclose(found["$h_t$"], snp.gru_cell(x, h, *snp.gru_from_notes(*W)), rtol=1e-12)


def test_arrows_of_additive_attention(rng):
    H, s, y = (
        rng.standard_normal((3, 4)),
        rng.standard_normal((1, 5)),
        rng.standard_normal((1, 2)),
    )
    w_q, w_k, w_v = (
        rng.standard_normal((6, 5)),
        rng.standard_normal((6, 4)),
        rng.standard_normal(6),
    )
    w_g, w_out = rng.standard_normal((5, 11)), rng.standard_normal((7, 5))
    sheet = DIAGRAMS["seq2seq-attention"]()
    encoder = {"$h_0$": "0", "$x_1$": "a", "$x_2$": "b", "$x_3$": "c"}
    # The encoder's arrows first, as texts: which inputs a state has read, and in which order.
    reads = {"$f$": lambda h, x: h + x}

    def states(*found):
        assert found == ("0a", "0ab", "0abc")
        return H

    meaning = reads | {
        "frame": states,
        "$W_q, W_k, w_v$": lambda q, k: np.tanh(q @ w_q.T + k @ w_k.T) @ w_v,
        "softmax": snp.softmax,
        r"$\Sigma_j\, a_{ij} h_j$": lambda a, h: a @ h,
        "$g$": lambda s, y, c: np.tanh(join(s, y, c[None]) @ w_g.T),
        "$W, b$": lambda s: s @ w_out.T,
    }
    found = evaluate(sheet, encoder | {"$s_{i-1}$": s, "$y_{i-1}$": y}, meaning)
    context = snp.additive_attention(s, H, H, w_q, w_k, w_v)
    after = np.tanh(join(s, y, context) @ w_g.T)
    assert_allclose(found["$c_i$"], context[0], rtol=1e-12)
    assert_allclose(found["$s_i$"], after, rtol=1e-12)
    assert_allclose(found["$p(y_i)$"], snp.softmax(after @ w_out.T), rtol=1e-12)


def matrices(rng, *names, rows=6, columns=4):
    W = {f"$W^{{({name})}}$": rng.standard_normal((rows, columns)) for name in names}
    return W, {name: lambda x, w=w: x @ w for name, w in W.items()}


@pytest.mark.parametrize("masked", [False, True])
def test_arrows_of_attention(masked, rng):
    X, (W, maps) = rng.standard_normal((5, 6)), matrices(rng, "q", "k", "v")
    given = {"$X$": X} | ({"$M$": snp.causal_mask(5)} if masked else {})
    meaning = maps | {
        r"$Q K^\top$": lambda q, k: q @ k.T,
        r"$\div\,\sqrt{d_k}$": lambda s: s / 2.0,
        "$+$": add,
        "softmax of each row": snp.softmax,
        "$A V$": lambda a, v: a @ v,
    }
    found = evaluate(
        DIAGRAMS["attention-masked" if masked else "attention-steps"](), given, meaning
    )
    mask = snp.causal_mask(5) if masked else None
    expected = snp.scaled_dot_product_attention(*(X @ w for w in W.values()), mask=mask)
    assert_allclose(found["$Y$"], expected, rtol=1e-12)


def test_arrows_of_two_heads(rng):
    X, (W, maps) = rng.standard_normal((5, 4)), matrices(rng, *"qkvo", rows=4)

    def half(name, h):
        return lambda x: snp.split_heads(x, n_head=2)[h]

    meaning = maps | {"attention": snp.scaled_dot_product_attention, "$[H_1, H_2]$": join}
    meaning |= {f"${name}_{h + 1}$": half(name, h) for name in "QKV" for h in (0, 1)}
    found = evaluate(DIAGRAMS["multihead-split"](), {"$X$": X}, meaning)
    q, k, v, o = W.values()
    in_proj = np.concatenate([q, k, v], axis=1).T
    args = (X, in_proj, None, o.T, None)
    assert_allclose(found["$Y$"], snp.multi_head_attention(*args, n_head=2), rtol=1e-12)


@pytest.mark.parametrize("form", ["pre", "post"])
def test_arrows_of_the_layer(form, rng):
    X = rng.standard_normal((5, 4))
    shapes = snp.DecoderConfig(
        vocab_size=3, context=5, dim=4, n_layer=1, n_head=2, dim_feedforward=6
    ).shapes()
    params = {
        name.removeprefix("layers.0."): rng.standard_normal(shape)
        for name, shape in shapes.items()
        if name.startswith("layers.0.")
    }
    attention = [params[f"self_attn.{n}"] for n in ("in_proj_weight", "in_proj_bias")]
    attention += [params[f"self_attn.out_proj.{n}"] for n in ("weight", "bias")]
    mlp = [params[f"linear{i}.{n}"] for i in (1, 2) for n in ("weight", "bias")]
    meaning = {
        "MHA": lambda x: snp.multi_head_attention(x, *attention, n_head=2),
        "MLP": lambda x: snp.feed_forward(x, *mlp),
        "$+$": add,
    }
    for i in (1, 2):
        norm = params[f"norm{i}.weight"], params[f"norm{i}.bias"]
        meaning[rf"$\mathrm{{Norm}}_{i}$"] = lambda x, norm=norm: snp.layer_norm(x, *norm)
    sheet = DIAGRAMS["transformer-layers"]()
    sheet.nodes = [n for n in sheet.nodes if (n.x > sheet.width / 2) == (form == "pre")]
    found = evaluate(sheet, {"$X$": X}, meaning)
    expected = snp.transformer_layer(X, params, n_head=2, norm=form)
    assert_allclose(found["$X'$"], expected, rtol=1e-12)


def test_arrows_of_the_decoder():
    sheet = DIAGRAMS["decoder-model"]()
    links = [(a.text, b.text) for a, b in sheet.links]
    inside = {(a, b) for a, b in links if a.startswith("$x_") and b.startswith("$x'_")}
    assert inside == {(f"$x_{j}$", f"$x'_{i}$") for i in range(1, 5) for j in range(1, i + 1)}
    assert ("$P$", "$+$") in links
    for node in [n for n in sheet.nodes if n.text == "loss"]:
        from_model, target = [a for a, b in sheet.links if b is node]
        (below,) = [n for n in sheet.nodes if n.x == node.x and n.y < 60]
        assert from_model.text == "softmax"
        assert int(target.text[3]) == int(below.text[3]) + 1
    i = 2
    path = ["$t_2$", "$E$", "$+$", "$x_2$", "$x'_2$", "Norm", r"$E^\top$", "softmax", "loss"]
    for link in pairwise(path):
        assert links.count(link) == (1 if f"_{i}" in "".join(link) else 4)
