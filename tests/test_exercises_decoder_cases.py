"""The assignment ``decoder`` on inputs on which real code went wrong, with their values."""

import math

import numpy as np
import pytest
import torch

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.exercises import decoder
from seqlib.judge.diagnose import function_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

TASKS = {task.function: task for task in decoder.ASSIGNMENT.tasks}


def wrong(name, *mistakes):
    return function_of(TASKS[name], *mistakes)


def distribution(logits, temperature=1.0, top_k=None, top_p=None, *, function=None):
    function = function or TASKS["next_token_distribution"].reference
    allowed = np.ones(len(logits), bool)
    return function(np.array([logits], float), temperature, top_k, top_p, allowed)[0]


# Sampling


def test_case_a32_temperature_0_and_nearly_0():
    assert distribution([1, 3, 2], 0).tolist() == [0, 1, 0]
    assert distribution([1, 3, 2], 1e-9).tolist() == [0, 1, 0]
    assert distribution([3, 3, 1], 0).tolist() == [1, 0, 0]
    expected = [0.1863237232258476, 0.506480391055654, 0.3071958857184984]
    np.testing.assert_allclose(distribution([1, 3, 2], 2), expected, atol=1e-9)
    function = wrong("next_token_distribution", "zero_divides")
    with np.errstate(all="ignore"):
        assert np.isnan(distribution([1, 3, 2], 0, function=function)).any()


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, [0, 1, 0]),
        (2, [0.0, 0.7310585786300049, 0.2689414213699951]),
        (3, [0.09003057317038046, 0.6652409557748218, 0.24472847105479764]),
        (5, [0.09003057317038046, 0.6652409557748218, 0.24472847105479764]),
    ],
)
def test_case_a33_top_k_up_to_and_beyond_the_vocabulary(k, expected):
    np.testing.assert_allclose(distribution([1, 3, 2], top_k=k), expected, atol=1e-9)


def test_case_a34_the_token_that_crosses_p_is_kept():
    p, mixed = np.log([0.6, 0.25, 0.1, 0.05]), np.log([0.05, 0.6, 0.1, 0.25])
    two = [0.7058823529411765, 0.29411764705882354]
    np.testing.assert_allclose(distribution(p, top_p=0.5), [1, 0, 0, 0])
    np.testing.assert_allclose(distribution(p, top_p=0.7), [*two, 0, 0])
    np.testing.assert_allclose(distribution(mixed, top_p=0.7), [0, two[0], 0, two[1]])
    function = wrong("next_token_distribution", "top_p_crossing_dropped")
    np.testing.assert_allclose(distribution(p, top_p=0.7, function=function), [1, 0, 0, 0])


def test_case_a36_top_k_comes_before_top_p():
    p = np.log([0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(distribution(p, top_k=2, top_p=0.5), [1, 0, 0, 0])
    function = wrong("next_token_distribution", "top_p_of_original")
    other = distribution(p, top_k=2, top_p=0.5, function=function)
    np.testing.assert_allclose(other, [0.5714285714285714, 0.42857142857142855, 0, 0])


def test_the_largest_logit_of_all_rows_is_too_large_for_some():
    """Every row needs its own: else all its exponentials may be 0, and 0 / 0 is NaN."""
    reference = TASKS["next_token_distribution"].reference

    def shaped(logits, temperature, top_k, top_p, allowed):
        if temperature == 0 or top_k is not None or top_p is not None:
            return reference(logits, temperature, top_k, top_p, allowed)
        z = np.where(allowed, logits, -np.inf)
        p = np.exp((z - z.max()) / temperature)
        return p / p.sum(axis=1, keepdims=True)

    for seed in range(5):
        result = judge(TASKS["next_token_distribution"], InProcess(shaped), seed)
        assert [c.name for c in result.criteria if not c.passed] == ["large"]


@pytest.mark.parametrize("which", ["higher_id", "both"])
@pytest.mark.parametrize("seed", range(3))
def test_equal_tokens_at_the_border_of_top_p_count_in_the_order_of_their_ids(which, seed):
    """Right for top_k; at the border of top_p the higher id stays, or both do."""

    def shaped(logits, temperature, top_k, top_p, allowed):
        reference = TASKS["next_token_distribution"].reference
        p = reference(logits, temperature, top_k, None, allowed)
        if temperature == 0 or top_p is None:
            return p
        for row in p:
            order = np.argsort(row, kind="stable")[::-1]
            last = order[np.flatnonzero(np.cumsum(row[order]) >= top_p)[0]]
            if which == "both":
                row[row < row[last]] = 0
            else:
                row[order[np.cumsum(row[order]) - row[order] >= top_p]] = 0
        return p / p.sum(axis=-1, keepdims=True)

    result = judge(TASKS["next_token_distribution"], InProcess(shaped), seed)
    assert [c.name for c in result.criteria if not c.passed] == ["ties"]


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_of_the_distribution_is_the_librarys(seed):
    rng = np.random.default_rng(seed)
    for case in TASKS["next_token_distribution"].cases(rng):
        logits, temperature, top_k, top_p, allowed = case.args
        library = snp.next_token_distribution(
            np.where(allowed, logits, -np.inf),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )
        task = TASKS["next_token_distribution"].reference(*case.args)
        np.testing.assert_allclose(task, library, atol=1e-12)


# The loss


def loss(function, ids, logits, padded=()):
    ids = torch.tensor([ids])
    is_padding = torch.zeros_like(ids, dtype=torch.bool)
    is_padding[0, list(padded)] = True
    return float(function(torch.from_numpy(np.array([logits])), ids, is_padding))


def test_case_a51_labels_are_shifted_exactly_once():
    example = [0, 2, 1], [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [9.0, 9.0, 9.0]]
    reference = TASKS["next_token_loss"].reference
    assert loss(reference, *example) == pytest.approx(0.5514447139320511, abs=1e-9)
    same = loss(wrong("next_token_loss", "not_shifted"), *example)
    twice = loss(wrong("next_token_loss", "shifted_twice"), *example)
    assert same == pytest.approx(1.400500572177404, abs=1e-9)
    # Token 0 is compared with token 2 alone: row 0 has logit 0 for token 1.
    assert twice == pytest.approx(1.551444713932051, abs=1e-9)


def test_case_a30_a_real_token_may_have_the_id_of_padding():
    """Losses 1, 2 and 6 of three real tokens, one of them with id 0, and 9 of padding."""

    def row(target, nats):
        logits = np.full(8, -np.inf)
        logits[target], logits[-1 if target != 7 else 1] = -nats, math.log1p(-math.exp(-nats))
        return logits

    ids = [3, 5, 0, 7, 0]
    targets = [5, 0, 7, 0]
    logits = [row(t, n) for t, n in zip(targets, (1, 2, 6, 9), strict=True)] + [np.zeros(8)]
    reference = TASKS["next_token_loss"].reference
    with_mask = loss(reference, ids, np.array(logits), padded=[4])
    by_id = loss(wrong("next_token_loss", "id_0_ignored"), ids, np.array(logits), padded=[4])
    assert with_mask == pytest.approx(3.0)
    assert by_id == pytest.approx(3.5)


def test_the_loss_is_the_librarys_with_ignored_targets(rng):
    logits, ids = rng.standard_normal((3, 5, 7)), rng.integers(7, size=(3, 5))
    is_padding = np.arange(5) >= np.array([5, 3, 1])[:, None]
    targets = np.where(is_padding, -100, ids)[:, 1:]
    found = TASKS["next_token_loss"].reference(
        *map(torch.from_numpy, (logits, ids, is_padding))
    )
    assert float(found) == pytest.approx(snp.cross_entropy(logits[:, :-1], targets))


def test_a_loss_without_a_gradient_loses_its_points_alone():
    """Its values are right, and nothing can be trained with it."""
    reference = TASKS["next_token_loss"].reference

    def as_a_number(*args):
        return reference(*args).item()

    def made_anew(*args):
        return torch.tensor(reference(*args).item())

    def of_a_copy(logits, *args):
        return reference(logits.detach(), *args)

    for function in (as_a_number, made_anew, of_a_copy, torch.no_grad()(reference)):
        result = judge(TASKS["next_token_loss"], InProcess(function), seed=1)
        assert [c.name for c in result.criteria if not c.passed] == ["gradient"]
        assert "the output has no gradient" in result.criteria[-1].message
        assert result.diagnosis.names == ("no_gradient",)


# The model


@pytest.mark.parametrize(("V", "ln_V"), [(65, 4.174387269895637), (256, 5.545177444479562)])
def test_case_a54_the_first_loss_is_near_ln_V(V, ln_V):
    torch.manual_seed(0)
    ids, targets = torch.randint(V, (2, 8, 16))

    def first_loss(build):
        logits = build(V, 16, 64, 2, 4)(ids)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()

    assert first_loss(TASKS["LanguageModel"].reference) == pytest.approx(ln_V, abs=0.1)
    assert first_loss(wrong("LanguageModel", "large_start")) > 3 * ln_V


def test_the_reference_of_the_model_is_the_librarys(rng):
    """Apart from its names and the bias of the output layer."""
    torch.manual_seed(0)
    ours = TASKS["LanguageModel"].reference(11, 7, 6, 2, 3)
    library = spt.DecoderLM(spt.DecoderConfig(11, 7, dim=6, n_layer=2, n_head=3))
    names = {"E": "embedding.weight", "P": "positions.weight"}
    state = {names.get(k, k): v for k, v in ours.state_dict().items() if k != "b"}
    library.load_state_dict(state)
    ids = torch.from_numpy(rng.integers(11, size=(2, 5)))
    torch.testing.assert_close(ours(ids), library(ids))


def changed(change):
    """Return a maker of the right model in which ``change(model)`` has altered something."""

    def build(*sizes):
        model = TASKS["LanguageModel"].reference(*sizes)
        change(model)
        return model

    return build


def lost_by(build):
    """Return the messages of the criteria that a model loses."""
    result = judge(TASKS["LanguageModel"], InProcess(build), seed=1)
    return {c.name: c.message for c in result.criteria if not c.passed}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("E", lambda p: p.normal_(std=0.04)),
        ("P", lambda p: p.zero_()),
        ("P", lambda p: p.normal_()),
        ("P", lambda p: p.fill_(0.02)),
        ("b", lambda p: p.normal_(std=0.02)),
        ("norm.weight", lambda p: p.mul_(0.9)),
        ("norm.bias", lambda p: p.add_(0.1)),
    ],
)
def test_other_starting_values_than_those_of_the_text_lose_their_points(name, start):
    def change(model):
        with torch.no_grad():
            start(model.get_parameter(name))

    lost = lost_by(changed(change))
    assert list(lost) == ["parameters"]
    assert lost["parameters"].startswith(f"{name} ")


@pytest.mark.parametrize("seed", range(5))
def test_starting_values_of_the_text_pass_with_every_seed(seed):
    torch.manual_seed(seed)

    def trimmed(model):
        for table in (model.E, model.P):
            torch.nn.init.trunc_normal_(table, std=0.02, a=-0.05, b=0.05)

    for change in (trimmed, lambda model: None):
        assert lost_by(changed(change)) == {}


def test_dropout_that_is_left_on_loses_its_points():
    """The layers of PyTorch with their default, and dropout behind the embeddings."""

    def in_the_layers(model):
        for layer in model.layers:
            layer.register_forward_hook(
                lambda layer, args, X: torch.nn.functional.dropout(X, 0.1, layer.training)
            )

    for build in (changed(in_the_layers), wrong("LanguageModel", "dropout")):
        lost = lost_by(build)
        assert list(lost) == ["dropout"]
        assert "is dropout left on?" in lost["dropout"]


def test_a_model_without_a_gradient_loses_the_points_of_the_gradients_alone():
    def frozen(model):
        model.forward = torch.no_grad()(model.forward)

    lost = lost_by(changed(frozen))
    assert list(lost) == ["gradients"]
    assert lost["gradients"].startswith("the output has no gradient: it is computed under")
    result = judge(TASKS["LanguageModel"], InProcess(changed(frozen)), seed=1)
    assert result.diagnosis.names == ("no_gradient",)


def test_case_a04_a_mask_of_the_other_polarity_lets_the_future_in(rng):
    """A boolean mask of forbidden places, where True means may attend."""

    def model(*sizes):
        built = TASKS["LanguageModel"].reference(*sizes)

        def forward(ids):
            X = built.E[ids] + built.P[: ids.shape[1]]
            n = ids.shape[1]
            for layer in built.layers:
                X = layer(X, mask=torch.ones(n, n, dtype=torch.bool).triu(1))
            return built.norm(X) @ built.E.T + built.b

        built.forward = forward
        return built

    result = judge(TASKS["LanguageModel"], InProcess(model), 1)
    lost = {c.name: c.message for c in result.criteria if not c.passed}
    assert "causal" in lost
    assert "change when the tokens from" in lost["causal"] or "do not depend" in lost["causal"]


# Generation


def record_of(model_inputs):
    """Return a model that notes what it is given and always prefers token 1."""

    def model(ids):
        model_inputs.append(np.array(ids))
        return np.tile(np.array([0.0, 99.0] + [0.0] * 14), (*ids.shape, 1))

    return model


@pytest.mark.parametrize("count", [0, 2])
def test_case_a37_a_prompt_longer_than_the_context(count):
    prompt, seen = np.array([[10, 11, 12, 13, 14, 15]]), []
    args = prompt, count, 4, 0, np.random.default_rng(0)
    made = TASKS["generate"].reference(record_of(seen), *args)
    assert made.tolist() == [[10, 11, 12, 13, 14, 15] + [1] * count]
    assert [s.tolist() for s in seen] == [[[12, 13, 14, 15]], [[13, 14, 15, 1]]][:count]


def test_generation_draws_as_the_library_does(rng):
    """One draw per token, row by row."""
    config = spt.DecoderConfig(11, 7, dim=8, n_layer=1, n_head=2)
    torch.manual_seed(0)
    library = spt.DecoderLM(config)
    library.embedding.weight.data.normal_()
    prompts = rng.integers(1, 11, size=(3, 4))

    def model(ids):
        with torch.no_grad():
            return library(torch.from_numpy(ids)).double().numpy()

    made = TASKS["generate"].reference(model, prompts, 6, 7, -1, np.random.default_rng(5))
    expected = spt.generate(
        library, torch.from_numpy(prompts), max_new_tokens=6, rng=np.random.default_rng(5)
    )
    assert made.tolist() == expected.tolist()


# The cache

Q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]]
K = [[0.5, 1.0], [1.0, -1.0], [0.0, 2.0], [1.0, 1.0]]
V = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]


def read_chunk(function, s):
    """Read the tokens behind s cached ones, and return what the attention alone gives.

    The embeddings are one-hot in 8 features, so that the rows of Q, K and V can stand in the
    matrices; E lets the output through, from which the residual connection is subtracted.
    """
    E = torch.eye(4, 8, dtype=torch.float64)
    W_q, W_k, W_v = torch.zeros(3, 8, 8, dtype=torch.float64)
    # The factor 2 undoes 1/sqrt(8) where the record divides by sqrt(2).
    for W, rows, factor in ((W_q, Q, 2.0), (W_k, K, 1.0), (W_v, V, 1.0)):
        W[:4, :2] = factor * torch.tensor(rows, dtype=torch.float64)
    cache = [((E @ W_k)[None, :s], (E @ W_v)[None, :s])]
    logits, _ = function(
        torch.arange(s, 4)[None], cache, E, torch.zeros(4, 8), [(W_q, W_k, W_v)]
    )
    return (logits[0] - E[s:, :4])[:, :2].numpy()


CHUNK = [
    [1.3911406349860862, 2.3911406349860864],
    [3.306184852843386, 4.306184852843386],
    [4.193412827760242, 5.193412827760242],
]


def test_case_a38_a_chunk_of_several_tokens_behind_one_cached_token():
    task = TASKS["read_with_cache"]
    np.testing.assert_allclose(read_chunk(task.reference, 1), CHUNK, atol=1e-9)
    np.testing.assert_allclose(
        read_chunk(wrong(task.function, "mask_not_shifted"), 1),
        [
            [1.0, 2.0],
            [1.514366630453614, 2.514366630453614],
            [3.6093721008868145, 4.609372100886815],
        ],
        atol=1e-9,
    )


def test_case_a63_one_sequence_of_one_token_keeps_its_axes():
    E = torch.tensor([[5.0, 6.0]])
    eye = torch.eye(2)
    logits, cache = TASKS["read_with_cache"].reference(
        torch.zeros(1, 1, dtype=torch.long), None, E, torch.zeros(1, 2), [(eye, eye, eye)]
    )
    assert logits.tolist() == [[[122.0]]]  # (5, 6) twice, times (5, 6)
    assert cache[0][1].tolist() == [[[5.0, 6.0]]]


@pytest.mark.parametrize("cuts", [[1] * 7, [7], [3, 4], [1, 5, 1], [2, 2, 3]])
def test_the_cache_gives_what_reading_at_once_gives(cuts, rng):
    E, P = (
        torch.from_numpy(rng.standard_normal((5, 4))),
        torch.from_numpy(rng.standard_normal((9, 4))),
    )
    layers = [tuple(torch.from_numpy(rng.standard_normal((3, 4, 4)))) for _ in range(2)]
    ids = torch.from_numpy(rng.integers(5, size=(2, 7)))
    function = TASKS["read_with_cache"].reference
    whole, _ = function(ids, None, E, P, layers)
    parts, cache = [], None
    for piece in ids.split(cuts, dim=1):
        logits, cache = function(piece, cache, E, P, layers)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-12)


def test_an_end_in_the_prompt_ends_nothing():
    """The text says so; the end of one story may stand before the next."""

    def generate(model, ids, max_new_tokens, context, end, rng):
        made = TASKS["generate"].reference(model, ids, max_new_tokens, context, end, rng)
        made[(ids == end).any(axis=1), ids.shape[1] :] = end
        return made

    def generate_by_column(model, ids, max_new_tokens, context, end, rng):
        """Take a sequence for ended if its last token is ``end``, drawn or not."""
        ids = np.array(ids)
        for _ in range(max_new_tokens):
            p = snp.softmax(model(ids[:, -context:])[:, -1])
            new = [
                end if r[-1] == end else rng.choice(len(q), p=q)
                for r, q in zip(ids, p, strict=True)
            ]
            ids = np.column_stack([ids, new])
        return ids

    for function in (generate, generate_by_column):
        result = judge(TASKS["generate"], InProcess(function), seed=1)
        assert [c.name for c in result.criteria if not c.passed] == ["end"]


# Shapes


@pytest.mark.parametrize(
    "name", ["LanguageModel", "next_token_distribution", "read_with_cache"]
)
def test_case_b09_sizes_of_the_first_inputs_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    case = TASKS[name].cases(np.random.default_rng(1))[0]
    if name == "LanguageModel":
        V, context, d = case.args[:3]
        assert len({V, context, d, case.kwargs["inputs"][0].shape[0]}) == 4
    elif name == "next_token_distribution":
        assert len(set(case.args[0].shape)) == 2
    else:
        ids, _, E, P, _ = case.args
        assert len({*ids.array.shape, *E.array.shape}) == 4
        assert P.array.shape[0] > ids.array.shape[1]
