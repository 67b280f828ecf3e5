"""Interactive figures: their numbers are those of seqlib, their static forms are committed.

The modules of ``book/_static/interactive`` are run by Node.js as a browser would run them.
``tests/browser/test_interactive.py`` moves them by mouse and keyboard.
"""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from course_book import data, interactive
from numpy.testing import assert_allclose

import seqlib.np as snp
from seqlib.experiments import style
from seqlib.text import BPETokenizer, bpe_encode, pretokenize

CLOSE = {"rtol": 1e-9, "atol": 1e-12}
LIMIT = 60 * 1024  # bytes of all modules together, as they are
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")

CALL = """
const [folder] = process.argv.slice(1);
let text = "";
for await (const part of process.stdin) text += part;
const results = [];
for (const [file, name, args] of JSON.parse(text)) {
  const module = await import(`${folder}/${file}.js`);
  const own = (module.default ?? module)[name];
  try {
    results.push(typeof own === "function" ? own(...args) : own);
  } catch (error) {
    results.push(String(error));
  }
}
const plain = (_, value) =>
  typeof value === "number" && !Number.isFinite(value) ? { number: String(value) } : value;
console.log(JSON.stringify(results, plain));
"""


def call(*calls):
    """Call functions of the modules: (file, name, arguments...) each; return the results."""
    given = json.dumps([[file, name, args] for file, name, *args in calls])
    command = ["node", "--input-type=module", "--eval", CALL, str(interactive.FOLDER)]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]

    def number(found):
        return float(found["number"]) if found.keys() == {"number"} else found

    return json.loads(done.stdout, object_hook=number)


def examples(name):
    return list(call((name, "examples"))[0].values())


def computed(name, states, file=None):
    return call(*[(file or f"numbers/{name}", "compute", state) for state in states])


# ---------------------------------------------------------------- (a) gradients


def library_norms(W, arguments, T):
    """Norms by lag of a network whose input holds the arguments of tanh."""
    h = np.tanh(arguments)
    x = np.tile(arguments - W @ h, (1, T, 1))
    return snp.jacobian_norm_by_lag(x, h[None], np.eye(2), W, None, None)[:, 0]


@needs_node
def test_norms_of_the_jacobian_are_the_librarys(rng):
    states = examples("gradient")
    for _ in range(30):
        rho, degrees, steps = rng.uniform(0, 3), int(rng.integers(-6, 7)) * 15, 12
        a1, a2 = rng.uniform(-3, 3, 2)
        state = {"rho": rho, "sigma": rng.uniform(0, 10), "degrees": degrees, "steps": steps}
        states.append({**state, "a1": a1, "a2": a2})
    for state, found in zip(states, computed("gradient", states), strict=True):
        W, arguments = np.array(found["W"]), np.array([state["a1"], state["a2"]])
        norms = library_norms(W, arguments, state["steps"])
        assert_allclose(found["norms"], norms, rtol=1e-9, atol=1e-12)
        assert_allclose(found["sigma"], np.linalg.norm(W, ord=2), **CLOSE)
        assert_allclose(found["sigma"], max(state["rho"], state["sigma"]), **CLOSE)
        # Both eigenvalues are rho; numpy finds a double one to half of the digits only.
        assert_allclose(
            [np.trace(W), np.linalg.det(W)], [2 * state["rho"], state["rho"] ** 2], **CLOSE
        )
        step = (1 - np.tanh(arguments) ** 2)[:, None] * W
        assert_allclose(found["slopes"], 1 - np.tanh(arguments) ** 2, **CLOSE)
        assert_allclose(
            found["stepRadius"], abs(np.linalg.eigvals(step)).max(), rtol=1e-6, atol=1e-6
        )


@needs_node
def test_the_two_counterexamples():
    grows, quiet, vanishes = computed("gradient", examples("gradient")[:3])
    assert_allclose(grows["W"], 3 * np.array([[1, 1], [-1, -1]]), rtol=1e-9)
    assert_allclose(
        np.array(grows["norms"])[[1, 5, 10, 20]], [4.25, 257, 4.33e4, 1.23e9], rtol=2e-3
    )
    assert max(quiet["norms"][2:]) == 0
    assert vanishes["W"] == [[0, 10], [0, 0]]
    assert vanishes["norms"][1:4] == [10, 0, 0]


@needs_node
def test_eigenvalues_that_are_complex():
    matrix = [[1.0, 2.0], [-3.0, 0.5]]
    (found,) = call(("numbers/gradient", "radius", matrix))
    assert_allclose(found, abs(np.linalg.eigvals(matrix)).max(), **CLOSE)


# ---------------------------------------------------------------- (b) gates


def gate_states(kind, rng):
    states = examples(kind)
    names = states[0].keys() - {"content", "marks", "follow"}
    for _ in range(10):
        drawn = {name: rng.uniform(-3, 3) for name in names}
        content = " ".join(f"{u:.3f}" for u in rng.standard_normal(9))
        states.append({**drawn, "content": content, "marks": "3, 4 9", "follow": 2})
    return states


def arrays_of(found):
    weights = {name: np.array(w, float) for name, w in found["weights"].items()}
    return np.array(found["inputs"], float), [
        weights["weight_ih"],
        weights["weight_hh"],
        weights["bias"],
        None,
    ]


def check_gates(found, names, inputs, weights, before):
    """The gates of each step from the sums in front of them, in the library's packing."""
    for step, x, h in zip(found["steps"], inputs, before, strict=True):
        sums = weights[0] @ x + weights[1] @ h + weights[2]
        gates = dict(zip(names, snp.sigmoid(sums), strict=True))
        for name, value in step["gates"].items():
            assert_allclose(value, gates[name], **CLOSE)


@needs_node
def test_lstm_is_the_librarys(rng):
    found_all = call(*[("lstm", "compute", state) for state in gate_states("lstm", rng)])
    for found in found_all:
        inputs, weights = arrays_of(found)
        h, c, before = np.zeros((1, 1)), np.zeros((1, 1)), []
        for x, step in zip(inputs, found["steps"], strict=True):
            before.append(h[0])
            h, c = snp.lstm_cell(x[None], h, c, *weights)
            assert_allclose([step["h"], step["memory"]], [h[0, 0], c[0, 0]], **CLOSE)
        check_gates(found, "ifgo", inputs, weights, before)


@needs_node
def test_gru_is_the_librarys(rng):
    found_all = call(*[("gru", "compute", state) for state in gate_states("gru", rng)])
    for found in found_all:
        inputs, weights = arrays_of(found)
        y, _ = snp.gru(inputs[None], np.zeros((1, 1)), *weights)
        assert_allclose([step["h"] for step in found["steps"]], y[0, :, 0], **CLOSE)
        check_gates(found, "rzn", inputs, weights, [np.zeros(1), *y[0, :-1]])


@needs_node
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_what_is_left_of_all_writing_adds_up_to_the_memory(kind, rng):
    for found in call(*[(kind, "compute", state) for state in gate_states(kind, rng)]):
        memory = [step["memory"] for step in found["steps"]]
        assert_allclose([sum(left) for left in found["shares"]], memory, **CLOSE)


@needs_node
def test_what_is_kept_is_the_derivative_along_the_cell_state(rng):
    states = [{**state, "v": 0} for state in gate_states("lstm", rng)]  # the direct path alone
    for state, found in zip(states, computed("lstm", states, file="lstm"), strict=True):
        inputs, weights = arrays_of(found)
        after = inputs[None, state["follow"] :]
        step = found["steps"][state["follow"] - 1]
        h0, c0 = np.full((1, 1), step["h"]), np.full((1, 1), step["memory"])
        dy = (np.zeros((1, after.shape[1], 1)), np.zeros((1, 1)), np.ones((1, 1)))
        dc0 = snp.lstm_backward(dy, after, h0, c0, *weights)[2]
        assert_allclose(found["kept"], dc0[0, 0], **CLOSE)


@needs_node
def test_what_cannot_be_read_is_refused_with_what_it_must_be():
    given = {**examples("lstm")[0]}
    wrong = [
        ({"content": "1 a"}, "Contents must be numbers, got “a”"),
        ({"content": " "}, "Contents must be at least one number, got none"),
        ({"content": "1 " * 17}, "Contents must be at most 16 numbers, got 17"),
        ({"content": "1 2", "marks": "3"}, "Marked steps must be from 1 to 2, got 3"),
        ({"content": "1 2", "marks": "1.5"}, "Marked steps must be from 1 to 2, got 1.5"),
    ]
    found = call(*[("lstm", "compute", {**given, **change}) for change, _ in wrong])
    assert found == [f"Error: {message}" for _, message in wrong]
    texts = ["", "1 -2", "0 0", "1 Infinity"]
    found = call(*[("numbers/sampling", "readLogits", text) for text in texts])
    assert found == [
        "Error: Probabilities must have one above 0, got none",
        "Error: Probabilities must be at least 0, got -2",
        "Error: Probabilities must have one above 0, got none",
        "Error: Probabilities must be numbers, got “Infinity”",
    ]


# ---------------------------------------------------------------- (c) masks


def attention_states():
    states = examples("attention")
    for n, causal, side, pads, width in [
        (5, False, "left", 2, 4),
        (5, True, "left", 5, 4),
        (3, False, "right", 3, 1),
        (8, True, "right", 3, 64),
        (1, True, "none", 1, 16),
    ]:
        for scaled in (True, False):
            state = {"n": n, "causal": causal, "side": side, "pads": pads, "width": width}
            states.append({**state, "scaled": scaled, "empty": "zero", "seed": n})
    return states


def library_mask(state):
    n = state["n"]
    mask = snp.causal_mask(n) if state["causal"] else np.zeros((n, n))
    if state["side"] != "none":
        lengths = np.array([n - state["pads"]])
        padding = snp.padding_from_lengths(lengths, n, side=state["side"])
        mask = mask + snp.padding_mask(padding)[0, 0]
    return mask


@needs_node
def test_weights_are_the_librarys():
    states = attention_states()
    for state, found in zip(states, computed("attention", states), strict=True):
        q, k = np.array(found["q"]), np.array(found["k"])
        mask = library_mask(state)
        if not state["scaled"]:
            q = q * np.sqrt(state["width"])
        weights = snp.attention_weights(q, k, mask=mask)
        assert_allclose(found["weights"], weights, **CLOSE)
        assert found["may"] == (mask == 0).tolist()
        empty = np.flatnonzero((mask == -np.inf).all(axis=1)) + 1
        assert found["emptyRows"] == empty.tolist()
        live = weights[weights.sum(axis=1) > 0]
        if len(live):
            assert_allclose(found["largest"], live.max(axis=1).mean(), **CLOSE)


@needs_node
def test_other_ways_to_treat_an_empty_row():
    state = {**examples("attention")[0], "causal": True, "side": "left", "pads": 2}
    finite, literal = computed(
        "attention", [{**state, "empty": "finite"}, {**state, "empty": "literal"}]
    )
    large = np.where(library_mask(state) == 0, 0, -1e9).astype(np.float32)
    sums = (np.array(finite["scores"]).astype(np.float32) + large).astype(float)
    assert_allclose(finite["weights"], snp.softmax(sums), **CLOSE)
    assert_allclose(finite["weights"][0], np.full(6, 1 / 6))  # what it must not see
    assert np.isnan(literal["weights"][:2]).all()
    kept = snp.softmax(np.array(literal["scores"]) + library_mask(state))[2:]
    assert_allclose(literal["weights"][2:], kept, **CLOSE)


@needs_node
def test_random_numbers_look_normal():
    found = call(
        *[
            ("numbers/attention", "compute", {**s, "seed": seed})
            for seed in range(1, 9)
            for s in [{**examples("attention")[0], "n": 8, "width": 256}]
        ]
    )
    drawn = np.array([[f["q"], f["k"]] for f in found])
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    assert abs((drawn < 1).mean() - 0.8413) < 0.01
    seeds = drawn.reshape(len(found), -1)
    assert abs(np.corrcoef(seeds) - np.eye(len(found))).max() < 0.08


# ---------------------------------------------------------------- (d) byte pairs

TEXTS = [
    "hat\nhat\nhat\nthat\nthat\nthe\nthe\nthe\nthe",
    "abcdabcd",
    "dcba aaaa aaa  aaaa",
    "It's the dog's 12345 toys, we'LL see; DON'T! x’s ’ſ 'ſ",
    "Größe, größer, am größten 😭😭 – naïve\tcafé\u00a0\u3000end \x85 ",
    "  two\n\n   lines \r\n\tand 3.14159, 10⁵ ² Ⅻ  ",
    "def f(x):\n    return x**2  # x squared\n\n\n",
    "\ufeffmark \u200d\u0301 ',.,",
]


@needs_node
def test_pieces_are_the_librarys():
    found = call(*[("numbers/bpe", "pretokenize", text) for text in [*TEXTS, ""]])
    assert found == [pretokenize(text) for text in [*TEXTS, ""]]


def random_texts(rng, count):
    alphabet = np.array(list("aaabb '\nT1é😭"))
    return ["".join(rng.choice(alphabet, rng.integers(1, 60))) for _ in range(count)]


@needs_node
def test_merges_and_tokens_are_the_librarys(rng):
    texts = TEXTS + random_texts(rng, 60)
    for n in (1, 7, 60):
        found_all = computed("bpe", [{"text": text, "merges": n} for text in texts])
        for text, found in zip(texts, found_all, strict=True):
            merges = BPETokenizer.train(text, 256 + n).merges
            learned = [
                tuple(token.encode("latin-1") for token in step["pair"])
                for step in found["history"]
            ]
            assert learned == merges
            tokens = [[token.encode("latin-1") for token in piece] for piece in found["tokens"]]
            assert tokens == [bpe_encode(p.encode(), merges) for p in pretokenize(text)]
            assert found["bytes"] == len(text.encode())
            assert found["count"] == sum(map(len, tokens))
            following = BPETokenizer.train(text, 256 + n + 1).merges[n:]
            if len(merges) == n and following:
                pair = tuple(token.encode("latin-1") for token in found["next"][0]["pair"])
                assert pair == following[0]


@needs_node
def test_bytes_that_are_no_text_are_shown_as_bytes():
    tokens = ["the", " a\n", "\xc3", "\xc3\xb6", "\xf0\x9f\x98\xad", "\x80a", "<"]
    found = call(*[("numbers/bpe", "show", token) for token in tokens])
    assert found == ["the", "␣a⏎", "<C3>", "ö", "😭", "<80><61>", "<"]


# ---------------------------------------------------------------- (e) positions


@needs_node
def test_positions_are_the_librarys():
    states = examples("positions")
    states.append({"T": 7, "D": 5, "base": 100, "row": 3})
    states.append({"T": 2, "D": 1, "base": 1, "row": 1})
    states.append({"T": 60, "D": 64, "base": 10, "row": 59})
    for state, found in zip(states, computed("positions", states), strict=True):
        table = snp.sinusoidal_positions(state["T"], state["D"], base=float(state["base"]))
        assert_allclose(found["table"], table, **CLOSE)
        assert_allclose(found["dots"], table @ table[state["row"]], **CLOSE)
        slowest = state["base"] ** (-2 * ((state["D"] - 1) // 2) / state["D"])
        assert_allclose(found["longest"], 2 * np.pi / slowest, **CLOSE)


def test_positions_that_are_44_apart():
    for D, share in ((2, 0.9998), (16, 0.62)):
        table = snp.sinusoidal_positions(45, D)
        assert_allclose(table[0] @ table[44] / (D / 2), share, atol=5e-3)


# ---------------------------------------------------------------- (f) sampling


@needs_node
def test_distributions_are_the_librarys(rng):
    rows = [np.log([0.4, 0.3, 0.2, 0.1]), np.array([1.0, 2, 2, 2, 1]), rng.standard_normal(16)]
    rows += [np.array([3.0, -1.0, 3.0, 0.0, 3.0]), np.array([5.0])]
    options = [
        {"temperature": temperature, "k": k, "p": p}
        for temperature in (0, 0.05, 0.5, 1, 3)
        for k in (1, 2, 3, 16)
        for p in (0.05, 0.52, 0.93, 1)
    ]
    cases = [(z, option) for z in rows for option in options]
    found_all = call(*[("numbers/sampling", "distribution", list(z), o) for z, o in cases])
    for (z, option), found in zip(cases, found_all, strict=True):
        expected = snp.next_token_distribution(
            z, temperature=option["temperature"], top_k=option["k"], top_p=option["p"]
        )
        assert_allclose(found["probabilities"], expected, **CLOSE)
        if option["temperature"] > 0.1:  # else probabilities are 0 without a cut
            assert [bool(by) for by in found["removed"]] == [p == 0 for p in expected]


@needs_node
def test_examples_of_sampling_are_the_librarys():
    states = examples("sampling")
    for state, found in zip(states, computed("sampling", states), strict=True):
        q = np.array([float(value) for value in state["q"].split()])
        z = np.log(q)
        expected = snp.next_token_distribution(
            z, temperature=state["temperature"], top_k=state["k"], top_p=state["p"]
        )
        assert_allclose(found["probabilities"], expected, **CLOSE)
        assert_allclose(found["before"], q / q.sum(), **CLOSE)
        kept = expected[expected > 0]
        assert found["left"] == len(kept)
        assert_allclose(found["entropy"], -(kept * np.log(kept)).sum(), **CLOSE)


@needs_node
def test_the_reason_why_a_token_is_gone():
    z = list(np.log([0.4, 0.3, 0.2, 0.1]))
    both, greedy = call(
        ("numbers/sampling", "distribution", z, {"temperature": 1, "k": 3, "p": 0.5}),
        ("numbers/sampling", "distribution", z, {"temperature": 0, "k": 3, "p": 0.5}),
    )
    assert both["removed"] == ["", "", "top-p", "top-k"]
    assert greedy["removed"] == ["", "top-p", "top-p", "top-k"]


# ---------------------------------------------------------------- (g) depth

B, T, D, V, LAG = 4, 8, 16, 16, 2


def library_start(params, norm, final):
    """Loss, gradient norm of each second matrix, and size of the tokens, by the library."""
    options = {"n_head": 2, "norm": norm, "mask": snp.causal_mask(T), "activation": "relu"}
    ones, zeros = np.ones(D), np.zeros(D)
    gains = {
        f"norm{i}.{key}": v for i in (1, 2) for key, v in (("weight", ones), ("bias", zeros))
    }
    names = {
        "inProj": "self_attn.in_proj_weight",
        "outProj": "self_attn.out_proj.weight",
        "linear1": "linear1.weight",
        "linear2": "linear2.weight",
    }
    layers = [
        gains | {name: np.array(layer[key]) for key, name in names.items()}
        for layer in params["layers"]
    ]
    ids = np.array(params["ids"]).reshape(B, T)
    x = snp.embedding(ids, np.array(params["embedding"])) + np.array(params["positions"])
    inputs, sizes = [], []
    for layer in layers:
        inputs.append(x)
        x = snp.transformer_layer(x, layer, **options)
        sizes.append(x.std())
    top = snp.layer_norm(x, ones, zeros) if final and norm == "pre" else x
    head = np.array(params["head"])
    logits = snp.linear(top, head)
    targets = np.full((B, T), -100)
    targets[:, LAG:] = ids[:, :-LAG]
    loss = snp.cross_entropy(logits, targets)
    dlogits = snp.cross_entropy_backward(1.0, logits, targets)
    dx = snp.linear_backward(dlogits, top, head)[0]
    if top is not x:
        dx = snp.layer_norm_backward(dx, x, ones, zeros)[0]
    gradients = []
    for layer, below in zip(reversed(layers), reversed(inputs), strict=True):
        dx, dlayer, _ = snp.transformer_layer_backward(dx, below, layer, **options)
        gradients.insert(0, np.linalg.norm(dlayer["linear2.weight"]))
    return {"loss": loss, "gradients": gradients, "sizes": sizes}


@needs_node
@pytest.mark.parametrize(
    ("depth", "seed", "shrink", "final"),
    [(1, 0, False, True), (5, 1, False, True), (4, 2, True, True), (3, 3, False, False)],
)
def test_gradients_by_layer_are_the_librarys(depth, seed, shrink, final):
    state = {"depth": depth, "seed": seed, "shrink": shrink, "final": final}
    params, found = call(
        ("numbers/depth", "draw", depth, seed, shrink), ("numbers/depth", "compute", state)
    )
    for norm in ("pre", "post"):
        expected = library_start(params, norm, final)
        for name, value in expected.items():
            assert_allclose(found[norm][name], value, rtol=1e-9, err_msg=f"{norm} {name}")


@needs_node
def test_fresh_weights_are_glorots():
    plain, shrunk = call(
        ("numbers/depth", "draw", 8, 0, False), ("numbers/depth", "draw", 8, 0, True)
    )
    for name, (outer, inner) in {"inProj": (48, 16), "linear1": (64, 16)}.items():
        drawn = np.array([layer[name] for layer in plain["layers"]])
        assert drawn.shape == (8, outer, inner)
        bound = np.sqrt(6 / (outer + inner))
        assert 0.98 * bound < abs(drawn).max() <= bound
        assert_allclose(drawn.std(), bound / np.sqrt(3), rtol=0.03)
    for a, b in zip(plain["layers"], shrunk["layers"], strict=True):
        assert_allclose(np.array(a["linear2"]) / 4, b["linear2"], rtol=1e-12)
        assert a["linear1"] == b["linear1"]
    assert abs(np.mean(plain["embedding"])) < 0.2


@needs_node
@pytest.mark.slow
def test_what_the_caption_says_of_twenty_seeds():
    state = {"depth": 32, "shrink": False, "final": True}
    found = computed("depth", [{**state, "seed": seed} for seed in range(20)])
    first, last = (
        np.array([[f[norm]["gradients"][at] for norm in ("pre", "post")] for f in found]).T
        for at in (0, -1)
    )
    assert (last[0] < last[1]).all()
    assert (first[1] > first[0]).sum() == 6
    assert [round(first[1].min(), 2), round(first[1].max(), 2)] == [0.03, 1.35]


# ---------------------------------------------------------------- the modules and the pages


def placed():
    """Return the figures that the chapters place, with their pages."""
    found = {}
    for path in sorted((data.ROOT / "book").glob("*.md")):
        for name in re.findall(r"^```\{interactive\} (\S+)", path.read_text("utf-8"), re.M):
            found.setdefault(name, []).append(path.stem)
    return found


def test_every_figure_stands_in_one_chapter():
    pages = placed()
    assert sorted(pages) == interactive.names()
    assert all(len(where) == 1 for where in pages.values())
    assert len(pages) == 8


def test_all_modules_together_are_small():
    modules = sorted(interactive.FOLDER.rglob("*.js"))
    assert len(modules) > 15
    assert sum(path.stat().st_size for path in modules) < LIMIT


def test_numbers_know_nothing_of_the_page_and_modules_need_no_other_host():
    for path in interactive.FOLDER.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text)
        for imported in re.findall(r'from "([^"]+)"', text):
            assert (path.parent / imported).is_file(), imported
        if path.parent.name == "numbers":
            assert not re.search(r"\b(?:document|window|svg)\b", text), path.name


@needs_node
def test_static_forms_are_what_the_modules_draw():
    drawn = interactive.drawings()
    assert sorted(drawn) == interactive.names()
    for name, svg in drawn.items():
        committed = (interactive.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
        assert committed == svg + "\n", f"{name}: run `python -m course_book.interactive`"


def test_colours_of_the_drawings_are_those_of_the_book():
    palette = {style.TEXT, style.BLUE, style.ORANGE, style.GREEN, "#000000", "#ffffff"}
    for name in interactive.names():
        svg = (interactive.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
        assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) <= palette


@needs_node
@pytest.mark.parametrize("width", [300, 720])
def test_every_example_is_drawn_without_a_missing_number(width):
    names = interactive.names()
    found = call(*[(name, "examples") for name in names])
    states = [(name, s) for name, own in zip(names, found, strict=True) for s in own.values()]
    results = call(*[(name, "compute", state) for name, state in states])
    shown = call(
        *[
            (name, function, result, *given)
            for (name, _), result in zip(states, results, strict=True)
            for function, given in (("draw", [width]), ("say", []))
        ]
    )
    assert len(shown) > 60
    for (name, state), svg, says in zip(states, shown[::2], shown[1::2], strict=True):
        assert svg.startswith("<svg")
        assert not re.search(r"NaN|undefined|Infinity", svg + says), (name, state)
        edge = float(re.search(r'viewBox="0 0 (\S+)', svg)[1])
        places = [float(x) for x in re.findall(r' (?:x|cx)="(-?[\d.]+)"', svg)]
        assert min(places) >= 0
        assert max(places) <= edge <= width


def test_an_unknown_figure_is_refused():
    from docutils.core import publish_string
    from docutils.parsers.rst import directives
    from docutils.utils import SystemMessage

    directives.register_directive("interactive", interactive.Interactive)
    with pytest.raises(
        SystemMessage, match=r"interactive must name one of attention, .* got nothing"
    ):
        publish_string(
            ".. interactive:: nothing",
            settings_overrides={"halt_level": 3, "report_level": 5},
        )
