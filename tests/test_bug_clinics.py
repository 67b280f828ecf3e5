"""The bug clinics of the chapters: each fault is built and does what the page says it does.

Every test builds the faulty version beside the right one, looks for the symptom of the story,
and runs the test that the diagnosis names on both.
"""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.data import contiguous_batches, random_windows, stories, sunspots
from seqlib.experiments import captioning, forecasting
from seqlib.pt.cache import CachedDecoder
from seqlib.text import BPETokenizer, CharTokenizer

CONFIG = {"vocab_size": 11, "context": 24, "dim": 16, "n_layer": 2, "n_head": 2}


@pytest.fixture(scope="module")
def text():
    """Return the ids of the characters of some stories, and their number."""
    letters = stories(300, np.random.default_rng(0))
    characters = CharTokenizer.train(letters)
    ids = np.array(characters.encode(letters))
    return ids, int(ids.max()) + 1


def decoder(seed=0, **changes):
    torch.manual_seed(seed)
    return spt.DecoderLM(spt.DecoderConfig(**{**CONFIG, **changes})).double().eval()


# ---------------------------------------------------------------- attention, multihead, masks


@pytest.mark.parametrize("fault", [None, "queries", "triangle"])
def test_attention_later_tokens_move_earlier_outputs(rng, fault):
    def attend(x):
        scores = x @ x.T
        allowed = np.tri(len(x), dtype=bool)
        allowed = allowed.T if fault == "triangle" else allowed
        scores = np.where(allowed, scores, -np.inf)
        return snp.softmax(scores, axis=0 if fault == "queries" else 1) @ x

    x = rng.standard_normal((5, 3))
    changed = x.copy()
    changed[4] += 1
    assert (abs(attend(x) - attend(changed))[:4].max() > 1e-3) == bool(fault)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("tiled", [False, True])
def test_multihead_tiled_masks_belong_to_other_sentences(rng, heads, tiled):
    def attend(x, lengths):
        (B, T, _), N = x.shape, heads
        is_padding = snp.padding_from_lengths(np.array(lengths), T)
        mask = snp.padding_mask(is_padding)[:, 0]
        mask = np.tile(mask, (N, 1, 1)) if tiled else np.repeat(mask, N, axis=0)
        q = snp.split_heads(x, n_head=N).reshape(B * N, T, -1)
        y = snp.scaled_dot_product_attention(q, q, q, mask=mask)
        return snp.merge_heads(y.reshape(B, N, T, -1))

    x = rng.standard_normal((2, 5, 6))
    together = attend(x, [5, 3])
    far = [
        abs(together[b, :n] - attend(x[b : b + 1, :n], [n])[0]).max()
        for b, n in enumerate([5, 3])
    ]
    if tiled and heads > 1:
        assert min(far) > 0.01
    else:
        assert max(far) < 1e-12


class PlainLayer(nn.Module):
    """Self-attention with the softmax of the formula: a blocked row is 0/0."""

    def __init__(self, dim):
        super().__init__()
        self.inner, self.outer = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        q, k, v = self.inner(x).chunk(3, dim=-1)
        return x + self.outer(torch.softmax(q @ k.mT + mask, dim=-1) @ v)


@pytest.mark.parametrize(("n_layer", "first_nan"), [(1, 3), (2, 2)])
def test_masks_nan_comes_one_update_later_with_one_layer(n_layer, first_nan):
    torch.manual_seed(0)
    embedding, head = nn.Embedding(5, 8), nn.Linear(8, 5)
    layers = nn.ModuleList(PlainLayer(8) for _ in range(n_layer))
    parameters = [*embedding.parameters(), *layers.parameters(), *head.parameters()]
    optimiser = torch.optim.SGD(parameters, lr=0.1)
    losses = []
    for step in range(4):
        ids = torch.randint(5, (2, 6))
        is_padding = torch.zeros(2, 6, dtype=torch.bool)
        is_padding[1, :2] = step == 2  # the first batch whose sentences differ in length
        x = embedding(ids)
        for layer in layers:
            x = layer(x, spt.causal_mask(6) + spt.padding_mask(is_padding)[:, 0])
        targets = ids.roll(-1, 1).masked_fill(is_padding, -100)
        losses.append(F.cross_entropy(head(x).mT, targets))
        optimiser.zero_grad()
        losses[-1].backward()
        optimiser.step()
    finite = [loss.isfinite().item() for loss in losses]
    assert finite == [step < first_nan for step in range(4)]
    assert all(p.isnan().any() for p in layers.parameters())


def test_masks_a_blocked_row_is_finite_here(rng):
    x = torch.tensor(rng.standard_normal((4, 3)), requires_grad=True)
    mask = spt.causal_mask(4) + torch.tensor([-torch.inf, 0, 0, 0])
    y = spt.scaled_dot_product_attention(x, x, x, mask=mask)
    (grad,) = torch.autograd.grad(y.square().sum(), x)
    assert y.isfinite().all()
    assert grad.isfinite().all()


# ---------------------------------------------------------------- recurrent networks


def trained(way, ids, V, updates):
    """Train a network of 32 units; return its loss on the last tenth of the text.

    ``"full"`` is right; ``"alone"`` carries the states, but the gradient of every step is that
    of the step alone; ``"initial"`` gives the initial state to the cell at every step.
    """
    torch.manual_seed(0)
    rnn, head = nn.RNN(V, 32, batch_first=True), nn.Linear(32, V)
    parameters = [*rnn.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.01)

    def loss_of(inputs, targets, h):
        x = F.one_hot(torch.from_numpy(inputs.copy()), V).float()
        y, h_n = rnn(x, h)
        if way != "full":
            before = torch.cat([h[0, :, None], y[:, :-1]], dim=1).detach()
            before = torch.zeros_like(before) if way == "initial" else before
            y = F.linear(x, rnn.weight_ih_l0, rnn.bias_ih_l0)
            y = torch.tanh(y + F.linear(before, rnn.weight_hh_l0, rnn.bias_hh_l0))
        loss = F.cross_entropy(head(y).mT, torch.from_numpy(targets.copy()))
        return loss, h_n.detach()

    cut = len(ids) * 9 // 10
    batches = [*contiguous_batches(ids[:cut], 32, 32)]
    for update in range(updates):
        if update % len(batches) == 0:
            h = torch.zeros(1, 32, 32)
        loss, h = loss_of(*batches[update % len(batches)], h)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
    ((inputs, targets),) = contiguous_batches(ids[cut:], 8, len(ids))
    with torch.no_grad():
        return loss_of(inputs, targets, torch.zeros(1, 8, 32))[0].item()


def test_bptt_and_rnn_what_a_network_without_a_past_reaches(text):
    """Without the carried state it is a table of pairs; without its gradient it is not."""
    ids, V = text
    cut = len(ids) * 9 // 10
    counts = np.full((V, V), 0.01)
    np.add.at(counts, (ids[: cut - 1], ids[1:cut]), 1)
    table = np.log(counts / counts.sum(axis=1, keepdims=True))
    pairs = -table[ids[cut:-1], ids[cut + 1 :]].mean()
    full, alone, initial = (trained(way, ids, V, 150) for way in ("full", "alone", "initial"))
    assert_allclose(pairs, 1.88, atol=0.03)
    assert abs(initial - pairs) < 0.1
    assert full + 0.3 < alone < pairs - 0.5


@pytest.mark.slow
def test_bptt_numbers_of_the_page():
    letters = stories(1000, np.random.default_rng(0))
    ids = np.array(CharTokenizer.train(letters).encode(letters))
    V = int(ids.max()) + 1
    assert 0.42 < trained("alone", ids, V, 2400) < 0.49
    assert 0.21 < trained("full", ids, V, 2400) < 0.24


def test_lstm_rows_in_another_order():
    rows = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.01, 0.02, 0.03, 0.04]])
    read = [0, 2, 3, 1]  # what stands where i, f, g, o are looked for in a file i, o, f, g

    def cell_state(rows):
        one = np.ones((1, 1))
        weights = (rows[0][:, None], rows[1][:, None], rows[2], None)
        return snp.lstm_cell(one, 0.5 * one, 0.25 * one, *weights)[1].item()

    assert_allclose([cell_state(rows), cell_state(rows[:, read])], [0.505, 0.570], atol=5e-4)
    equal = rows[:, :1].repeat(4, axis=1)
    assert cell_state(equal) == cell_state(equal[:, read])


@pytest.mark.parametrize("H", [1, 2, 100])
def test_gru_places_of_the_reset_gate(rng, H):
    torch.manual_seed(0)
    layer = nn.GRU(5, H, bias=False, batch_first=True).double()
    x, h0 = torch.randn(2, 6, 5).double(), torch.randn(1, 2, H).double()
    state = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    weights = (*snp.gru_from_torch(state)[:2], None, None)
    for start in (0 * h0, h0):
        theirs = layer(x, start)[0].detach().numpy()
        paper = snp.gru(x.numpy(), start[0].numpy(), *weights)[0]
        behind = snp.gru(x.numpy(), start[0].numpy(), *weights, reset_after=True)[0]
        assert_allclose(behind, theirs, atol=1e-12)
        far = abs(paper - theirs).max(axis=(0, 2)) / abs(theirs).max()
        if H == 1:
            assert far.max() < 1e-12
        elif start.any():
            assert far[0] > 5e-3
        else:
            assert far[0] < 1e-12
            assert far[1] > 5e-3


def test_comparison_a_state_with_its_history():
    def batches(retain, carried, update):
        """Return the losses of five batches, and how many nodes each backward pass visits."""
        torch.manual_seed(0)
        net, state = nn.LSTM(3, 4, batch_first=True), None
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
        losses, sizes = [], []
        for _ in range(5):
            y, state = net(torch.randn(2, 5, 3), carried(state) if state else None)
            losses.append(y.square().mean())
            optimiser.zero_grad()
            losses[-1].backward(retain_graph=retain)
            update(optimiser)
            sizes.append(len(nodes(losses[-1])))
        return losses, sizes

    def nodes(loss):
        seen, left = set(), [loss.grad_fn]
        while left:
            node = left.pop()
            if node is not None and node not in seen:
                seen.add(node)
                left += [following for following, _ in node.next_functions]
        return seen

    def unseen(optimiser):
        """Update as PyTorch did before version 1.5, without being noticed."""
        for group in optimiser.param_groups:
            for p in group["params"]:
                p.data -= group["lr"] * p.grad

    def kept(state):
        return state

    def cut(state):
        return tuple(part.detach() for part in state)

    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        batches(False, kept, torch.optim.SGD.step)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        batches(True, kept, torch.optim.SGD.step)
    _, sizes = batches(True, kept, unseen)
    assert (np.diff(sizes) > 0).all()
    _, sizes = batches(False, cut, torch.optim.SGD.step)
    assert len(set(sizes)) == 1


def test_comparison_two_batches_are_one_of_twice_the_length():
    torch.manual_seed(0)
    net, x = nn.LSTM(3, 4, batch_first=True), torch.randn(2, 10, 3)
    whole = net(x)[0].square().mean()
    first, state = net(x[:, :5])
    for carried, same in ((tuple(part.detach() for part in state), True), (None, False)):
        second = net(x[:, 5:], carried)[0]
        halves = (first.square().mean() + second.square().mean()) / 2
        assert torch.allclose(halves, whole, rtol=1e-5) == same


# ---------------------------------------------------------------- gradients


def test_gradcheck_a_bias_on_the_kink():
    def numerical(x, bias, dx, dbias):
        ends = [snp.relu(x + sign * dx + bias + sign * dbias).sum() for sign in (1, -1)]
        return (ends[0] - ends[1]) / 2

    x, bias, step = np.zeros((4, 10)), np.arange(10.0), 1e-5
    for i in range(10):
        unit = step * (np.arange(10) == i)
        half = 0.5 if i == 0 else 1
        slope = numerical(x, bias, 0 * x, unit) / step
        assert_allclose(slope, 4 * half, rtol=1e-6)  # a batch of four
        first = unit * (np.arange(4) == 2)[:, None]
        assert_allclose(numerical(x, bias, first, 0 * bias) / step, half, rtol=1e-6)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_clipping_spreads_a_nan(to_none):
    torch.manual_seed(0)
    embedding, used, unused = nn.Embedding(5, 3), nn.Linear(3, 1), nn.Linear(3, 1)
    parameters = [*embedding.parameters(), *used.parameters(), *unused.parameters()]
    optimiser = torch.optim.Adam(parameters)
    (used(embedding.weight) + unused(embedding.weight)).sum().backward()
    optimiser.step()
    optimiser.zero_grad(set_to_none=to_none)
    used(embedding(torch.tensor([1]))).sum().backward()
    used.weight.grad[0, 0] = torch.nan
    assert nn.utils.clip_grad_norm_(parameters, 1.0).isnan()
    optimiser.step()
    assert embedding.weight.isnan().all()  # the batch held word 1 alone
    assert used.weight.isnan().all()
    assert unused.weight.isnan().all() == (not to_none)


# ---------------------------------------------------------------- layers


@pytest.mark.parametrize("centred", [False, True])
def test_norm_squares_in_half_precision(centred):
    def norm(x):
        x = x - x.mean(-1, keepdim=True) if centred else x
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-5)

    row = torch.tensor([300.0, -300] * 4, dtype=torch.float16)
    ones = torch.ones(8, dtype=torch.float16)
    right = spt.layer_norm(row, ones, 0 * ones) if centred else spt.rms_norm(row, ones)
    assert right.dtype == torch.float16
    assert_array_equal(right, row.sign())
    assert not norm(row).any()
    assert_array_equal(norm(row / 100), row.sign())  # small inputs accept the faulty code
    for largest, is_zero in ((255.5, False), (256.5, True)):
        row = torch.tensor([largest, -largest, 1, -1], dtype=torch.float16)
        assert (not norm(row).any()) == is_zero


class NaiveNorm(nn.Module):
    """RMSNorm with the mean of the squares in the precision of the input."""

    def __init__(self, norm):
        super().__init__()
        self.weight = norm.weight

    def forward(self, x):
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def test_norm_writes_one_token_without_end():
    """From position 10 on a feature is too large for a square in half precision."""
    model = decoder(norm_type="rms", tie_weights=False).half()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.normal_(std=0.5)
        model.positions.weight[10:, 3] = 300
    faulty = copy.deepcopy(model)
    for layer in faulty.layers:
        layer.norm1, layer.norm2 = NaiveNorm(layer.norm1), NaiveNorm(layer.norm2)
    faulty.norm = NaiveNorm(faulty.norm)

    def write(model, n, count):
        options = {"max_new_tokens": count, "temperature": 0, "cache": False}
        prompt = torch.from_numpy(np.arange(n)[None] % 7 + 1)
        return spt.generate(model, prompt, **options)[0, n:]

    assert_array_equal(write(faulty, 3, 7), write(model, 3, 7))
    assert (write(model, 12, 10) != 0).all()
    assert not write(faulty, 12, 10).any()
    assert faulty(torch.ones(1, 12, dtype=torch.int64)).isfinite().all()


def test_transformer_a_norm_that_overwrites_the_token():
    torch.manual_seed(0)
    layers = [spt.TransformerLayer(32, 4, 128).double() for _ in range(6)]

    def faulty(layer, x):
        x = layer.norm1(x)
        x = x + layer._self_attention(x, None, True)
        x = layer.norm2(x)
        return x + layer._mlp(x)

    def size(x):
        return x.square().mean().sqrt().item()

    x = torch.randn(2, 5, 32, dtype=torch.double)
    ours, theirs, sizes = x, x, []
    with torch.no_grad():
        for layer in layers:
            ours, theirs = layer(ours, causal=True), faulty(layer, theirs)
            sizes.append((size(ours), size(theirs), size(ours - theirs)))
    assert (np.diff([right for right, _, _ in sizes]) > 0).all()
    assert max(wrong for _, wrong, _ in sizes) < 1.2
    assert sizes[0][2] > 0.2 * sizes[0][0]  # nonsense from the first layer on

    layer = layers[0]
    changed = x.clone()
    changed[:, 4] += 1
    assert torch.equal(faulty(layer, x)[:, :4], faulty(layer, changed)[:, :4])
    small = x[:1, :2].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: faulty(layer, x), (small,), fast_mode=True)

    with torch.no_grad():
        for name, p in layer.named_parameters():
            p.copy_(torch.rand_like(p) + 0.5 if "norm" in name else torch.zeros_like(p))
    assert torch.equal(layer(x, causal=True), x)
    torch.testing.assert_close(faulty(layer, x), layer.norm2(layer.norm1(x)))
    assert not torch.allclose(faulty(layer, x), x, atol=0.1)


@pytest.mark.parametrize("scale", [1, 12])
def test_complexity_a_kernel_that_reads_from_the_right(rng, scale):
    """With large queries and keys the only score of the first token is about -1000."""

    def kernel(q, k, v, keep, block=4):
        out = np.zeros_like(v)
        for i in range(len(q)):
            m, s, o = -np.inf, 0.0, 0.0
            for j in reversed(range(0, len(k), block)):
                scores = k[j : j + block] @ q[i]
                scores = np.where(np.arange(j, j + block) <= i, scores, -np.inf)
                new = max(m, scores.max())
                shift = 0.0 if np.isneginf(new) else new
                e, factor = np.exp(scores - shift), np.exp(m - shift)
                s, o = factor * s + e.sum(), factor * o + e @ v[j : j + block]
                m = shift if keep else new
            out[i] = o / (s if s > 0 else 1)
        return out

    q, k, v = rng.standard_normal((3, 16, 64))
    q[0] = -k[0]
    q, k = scale * q / 8, scale * k
    right = snp.scaled_dot_product_attention(8 * q, k, v, mask=snp.causal_mask(16))
    assert_allclose(kernel(q, k, v, keep=False), right, rtol=1e-9, atol=1e-12)
    zero = (kernel(q, k, v, keep=True) == 0).all(axis=1)
    assert not zero[1:].any()
    assert zero[0] == (scale > 1)


# ---------------------------------------------------------------- language models


def test_sequences_targets_without_the_shift(text):
    ids, V = text
    rng = np.random.default_rng(0)
    model = decoder(vocab_size=V, dim=32, n_layer=1, context=32).float()
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(120):
        inputs = torch.from_numpy(random_windows(ids, 16, 32, rng=rng)[0])
        loss = F.cross_entropy(model(inputs).mT, inputs)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.0998  # the floor
    prompt = torch.from_numpy(ids[None, :14])
    written = spt.generate(model, prompt, max_new_tokens=8, temperature=0)[0, 14:]
    assert_array_equal(written, [ids[13]] * 8)
    (inputs, targets), *_ = contiguous_batches(np.arange(9), 2, 4)
    assert_array_equal(targets, inputs + 1)


def test_tokens_a_mark_that_is_text_has_no_gradient():
    bpe = BPETokenizer([], special_tokens=["<|end|>"])
    (mark,) = bpe.encode("<|end|>", allowed_special="all")
    joined = "hat<|end|>that<|end|>the<|end|>"
    for options, count in (({"allowed_special": "all"}, 3), ({"disallowed_special": ()}, 0)):
        ids = bpe.encode(joined, **options)
        assert ids.count(mark) == count
        assert bpe.decode(ids) == joined
        model = decoder(vocab_size=mark + 1, context=40, tie_weights=False)
        before = model.embedding.weight.detach().clone()
        optimiser = torch.optim.Adam(model.parameters())
        for _ in range(3):
            x = torch.tensor([ids])
            loss = F.cross_entropy(model(x[:, :-1]).mT, x[:, 1:])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        changed = (before != model.embedding.weight).any(dim=1)
        assert changed[mark] == (count > 0)
        assert_array_equal(changed[:mark].nonzero().ravel(), sorted({*ids[:-1]} - {mark}))


def test_seq2seq_a_model_is_never_asked_to_stop(rng):
    """With EOS ignored every gradient at its logit pushes it down."""
    eos = 4
    targets = np.array([[1, 2, eos, eos, eos], [3, eos, eos, eos, eos]])
    logits = rng.standard_normal((2, 5, 5))
    by_id = np.where(targets == eos, -100, targets)
    by_length = np.where(snp.padding_from_lengths(np.array([3, 2]), 5), -100, targets)
    down, both = (
        snp.cross_entropy_backward(1.0, logits, t)[..., eos] for t in (by_id, by_length)
    )
    assert (down >= 0).all()
    assert ((both < 0).sum(axis=1) == 1).all()


class PiecesMisread(CachedDecoder):
    """A mask that is cut from the top left, or left out, behind a cache."""

    fault = "top left"

    def _mask(self, T):
        if T == 1:
            return None
        if self.fault == "top left":
            return spt.causal_mask(self.length)[:T].to(self.embedding)
        return None if self.length > T else spt.causal_mask(T).to(self.embedding)


@pytest.mark.parametrize("fault", [None, "top left", "left out"])
def test_decoder_prompts_read_in_pieces(rng, fault):
    model = decoder()
    ids = torch.from_numpy(rng.integers(11, size=(2, 16)))

    def read(cut):
        reader = CachedDecoder(model, 2) if fault is None else PiecesMisread(model, 2)
        reader.fault = fault
        return [reader.read(piece) for piece in ids.split(cut, dim=1)][-1]

    with torch.no_grad():
        whole = model(ids)[:, -1]
    for cut, same in (
        ([16], True),
        ([8, *[1] * 8], True),
        ([1] * 16, True),
        ([8, 8], not fault),
    ):
        assert torch.allclose(read(cut), whole, atol=1e-9) == same


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_positions_that_are_the_numbers_of_columns(rng, monkeypatch, positions):
    model = decoder(positions=positions)
    prompts = torch.from_numpy(rng.integers(11, size=(3, 8)))
    lengths = (8, 7, 4)
    is_padding = torch.arange(8) < 8 - torch.tensor(lengths)[:, None]
    with torch.no_grad():
        alone = [model(p[None, 8 - n :])[0, -1] for p, n in zip(prompts, lengths, strict=True)]
        right = model(prompts, is_padding=is_padding)[:, -1]
        columns = torch.arange(8).expand(3, 8)
        monkeypatch.setattr("seqlib.pt.decoder.position_ids", lambda ids, is_padding: columns)
        faulty = model(prompts, is_padding=is_padding)[:, -1]
    torch.testing.assert_close(right, torch.stack(alone))
    far = (faulty - right).abs().amax(dim=1)
    assert far[0] == 0
    assert (far[1:] > 1e-4).all() if positions == "learned" else far.max() < 1e-12


def windows(ids, starts, T):
    return torch.from_numpy(np.stack([ids[start : start + T + 1] for start in starts]))


@pytest.mark.slow
@pytest.mark.parametrize("from_anywhere", [False, True])
def test_positions_numbers_of_the_page(monkeypatch, from_anywhere):
    """Loss on the first 40 characters of stories behind m paddings, positions by column."""
    letters = stories(2500, np.random.default_rng(0))
    characters = CharTokenizer.train(letters)
    ids = np.array(characters.encode(letters))
    begins = np.flatnonzero(ids == characters.encode("\n")[0])[:-4] + 1
    begins, put_aside = begins[:-200], begins[-200:]
    size = {"context": 96, "dim": 48, "n_head": 4}
    model = decoder(vocab_size=int(ids.max()) + 1, **size).float()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = np.random.default_rng(1)
    for _ in range(250 if from_anywhere else 400):
        anywhere = rng.integers(begins[-1] - 96, size=24)
        starts = anywhere if from_anywhere else rng.choice(begins, 24)
        rows = windows(ids, starts, 96 if from_anywhere else 48)
        loss = F.cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    rows, losses = windows(ids, put_aside, 40), []
    columns = torch.arange(96).expand(200, 96)
    monkeypatch.setattr("seqlib.pt.decoder.position_ids", lambda x, _: columns[:, : x.shape[1]])
    for m in (0, 1, 2, 4, 8, 16, 24, 32, 48):
        padded = torch.cat([rows.new_zeros(200, m), rows[:, :-1]], dim=1)
        with torch.no_grad():
            logits = model(padded, is_padding=columns[:, : 40 + m] < m)
        losses.append(F.cross_entropy(logits[:, m:].mT, rows[:, 1:]).item())
    alone, *behind = losses
    if from_anywhere:
        assert alone + 0.02 < min(behind) < max(behind) < alone + 0.5
    else:
        assert_allclose(losses[:4], [0.15, 0.65, 1.2, 2.7], rtol=0.15)
        assert 2.4 < min(behind[3:]) < max(behind[3:]) < 4.7
        assert (np.diff(behind[3:]) < 0).any()  # without an order


# ---------------------------------------------------------------- applications


def test_captioning_pictures_that_are_scaled_twice():
    small = {**captioning.INPUTS, "training": 1, "validation": 1, "fresh": 20, "held_out": 1}
    images, shown = captioning.draw(small, 0)["fresh"]
    assert images.max() <= 1
    model = captioning.load_model()
    black, *_ = captioning.captions("attention", model, 0 * images[:1])[0]
    for scale, expected in ((1, [s.caption for s in shown]), (1 / 255, [black] * 20)):
        assert captioning.captions("attention", model, scale * images)[0] == expected
    too_large, _ = captioning.captions("attention", model, 255 * images)
    assert len(set(too_large)) > 10
    assert np.mean([a == s.caption for a, s in zip(too_large, shown, strict=True)]) < 0.5


def test_forecasting_last_years_number_follows_this_years():
    years, numbers = sunspots()
    one = forecasting.places(years, 1)
    late = forecasting.persistence()["one"]
    assert_array_equal(late, numbers[one - 1])
    assert_allclose(np.corrcoef(late, numbers[one])[0, 1], 0.80, atol=5e-3)
    assert not (late - numbers[one - 1]).any()  # no change: its correlation is undefined


def test_forecasting_a_network_that_has_learnt_to_repeat():
    """The story's correlation of 0.80 is that of a network stopped after 30 updates."""
    years, numbers = sunspots()
    one = forecasting.places(years, 1)
    truth, before = numbers[one], numbers[one - 1]
    choice = {"units": 8, "rate": 0.01, "updates": 30}
    inputs = {**forecasting.INPUTS, "every": 30}
    (model,) = forecasting.train("rnn", choice, forecasting.TEST, inputs, 0)
    written = model.forecast(one, 1, inputs["window"])
    assert 0.7 < np.corrcoef(written, truth)[0, 1] < 0.85
    assert np.corrcoef(written, before)[0, 1] > 0.97
    assert np.corrcoef(written - before, truth - before)[0, 1] < 0.5
