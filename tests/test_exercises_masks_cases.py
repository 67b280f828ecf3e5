"""The assignment ``masks`` on inputs on which real code went wrong, and beside the library."""

import numpy as np
import pytest

import seqlib.np as snp
from seqlib.complexity import layer_cost
from seqlib.exercises import masks
from seqlib.exercises._masks_leak_cases import PADDING
from seqlib.judge.diagnose import function_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess

TASKS = {task.function: task for task in masks.ASSIGNMENT.tasks}
INF = np.inf


def wrong(name, *mistakes):
    return function_of(TASKS[name], *mistakes)


def cases(name, seed=3):
    return TASKS[name].cases(np.random.default_rng(seed))


def softmax(S, M):
    return TASKS["masked_softmax"].reference(np.array(S, float), np.array(M, float))


# The references are those of the library, in another layout


@pytest.mark.parametrize("case", cases("padding_mask"), ids=lambda c: c.label)
def test_padding_agrees_with_the_library(case):
    lengths, n, *side = case.args
    is_padding = snp.padding_from_lengths(lengths, n, side=side[0] if side else "right")
    right = TASKS["padding_mask"].reference(*case.args)
    np.testing.assert_array_equal(right[:, None], snp.padding_mask(is_padding))


@pytest.mark.parametrize("case", cases("causal_mask"), ids=lambda c: c.label)
def test_causality_agrees_with_the_library_where_there_are_no_free_places(case):
    n_q, n_k, past = case.args
    right = TASKS["causal_mask"].reference(n_q, n_k, past)
    used = past + n_q
    np.testing.assert_array_equal(right[:, :used], snp.causal_mask(n_q, used))
    assert np.isneginf(right[:, used:]).all()


@pytest.mark.parametrize("case", cases("masked_softmax"), ids=lambda c: c.label)
def test_softmax_agrees_with_the_library(case):
    S, M = case.args
    clean = np.where(np.isneginf(M), 0, S)
    np.testing.assert_allclose(
        TASKS["masked_softmax"].reference(S, M), snp.softmax(clean + M), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("case", cases("masked_softmax_backward"), ids=lambda c: c.label)
def test_gradients_agree_with_the_library_and_with_differences(case):
    dA, S, M = case.args
    dS, dM = TASKS["masked_softmax_backward"].reference(dA, S, M)
    np.testing.assert_allclose(dS, snp.softmax_backward(dA, S + M), atol=1e-12)
    assert np.isfinite(dS).all()
    assert np.isfinite(dM).all()
    assert (dM[np.isneginf(M)] == 0).all()
    v = np.random.default_rng(0).standard_normal(M.shape)
    dA = np.minimum(dA, 1e3)  # 1e10 times a weight that is 1 anyway hides the other queries
    plus, minus = ((dA * softmax(S, M + h * v)).sum() for h in (1e-5, -1e-5))
    np.testing.assert_allclose((dM * v).sum(), (plus - minus) / 2e-5, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", cases("layer_cost"), ids=lambda c: c.label)
def test_costs_agree_with_the_library_where_there_is_no_past(case):
    """The library counts the scale of the scores and the activation too."""
    B, n, n_k, d, H, F, itemsize = case.args
    right = TASKS["layer_cost"].reference(*case.args)
    if n_k > n:
        return
    theirs = layer_cost(n, d, n_head=H, F=F, batch=B, itemsize=itemsize)
    assert right["projections"] == theirs["projections"].flops
    scaled = B * H * n * n
    products = theirs["scores"].flops - scaled + theirs["output"].flops
    assert right["attention"] == products
    assert right["feed_forward"] == theirs["feed_forward"].flops - B * n * F
    assert right["score_bytes"] == theirs["scores"].bytes
    assert right["cache_bytes"] == theirs["projections"].bytes // 2  # two of four


def test_the_crossovers_that_the_text_asks_for():
    def cost(n_q, n_k, d=64):
        return TASKS["layer_cost"].reference(1, n_q, n_k, d, 4, 4 * d, 4)

    for past in (cost(128, 128), cost(1, 128)):
        assert past["attention"] == past["projections"]
    whole = cost(384, 384)
    assert whole["attention"] == whole["projections"] + whole["feed_forward"]


# Cases


def test_case_a03_lengths_to_a_mask_of_either_meaning():
    lengths = np.array([3, 0, 1])
    is_padding = np.array([[0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1]], bool)
    right = TASKS["padding_mask"].reference(lengths, 4)
    np.testing.assert_array_equal(right[:, 0], np.where(is_padding, -INF, 0))
    np.testing.assert_array_equal(
        wrong("padding_mask", "polarity")(lengths, 4)[:, 0], np.where(is_padding, 0, -INF)
    )


def test_case_a04_a_causal_mask_of_the_other_polarity():
    blocked = np.triu(np.ones((3, 3), bool), 1)
    right, _ = TASKS["combine_masks"].reference([~blocked])
    expected = [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(softmax(np.zeros((3, 3)), right), expected)
    M, empty = wrong("combine_masks", "booleans_reversed")([~blocked])
    np.testing.assert_allclose(softmax(np.zeros((3, 3)), M)[0], [0, 1 / 2, 1 / 2])
    assert empty.tolist() == [False, False, True]


def test_case_a01_an_empty_row_is_zero_and_its_gradient_finite():
    S, M = np.array([[1.0, 2, 3], [1, 2, 3]]), np.array([[-INF] * 3, [0, 0, -INF]])
    A = softmax(S, M)
    np.testing.assert_allclose(A, [[0, 0, 0], [0.26894142, 0.73105858, 0]])
    for part in TASKS["masked_softmax_backward"].reference(np.ones((2, 3)), S, M):
        assert np.isfinite(part).all()
    dS, _ = wrong("masked_softmax_backward", "empty_row_nan")(np.ones((2, 3)), S, M)
    assert np.isnan(dS[0]).all()


def test_case_a06_half_precision_one_mask_and_two():
    S = np.array([[1, 2, 3]], np.float16)
    padding, causal = np.array([[0, 0, -INF]]), np.array([[0, -INF, -INF]])
    one = TASKS["masked_softmax"].reference(S, padding)
    M, empty = TASKS["combine_masks"].reference([padding, causal])
    both = TASKS["masked_softmax"].reference(S, M)
    np.testing.assert_allclose(one, [[0.26894142, 0.73105858, 0]], atol=1e-3)
    np.testing.assert_array_equal(both, [[1, 0, 0]])
    assert one.dtype == both.dtype == np.float16
    assert not empty.any()
    with np.errstate(over="ignore"):
        assert np.float16(-1e9) == -INF
        lowest = np.finfo(np.float16).min
        assert lowest + lowest == -INF


def test_case_a07_each_sequence_has_its_own_lengths():
    M = TASKS["padding_mask"].reference(np.array([2, 1]), 2)
    A = softmax(np.zeros((2, 2, 2)), M)
    np.testing.assert_allclose(A, [[[0.5, 0.5]] * 2, [[1, 0]] * 2])


def test_case_a10_the_softmax_over_the_queries_lets_the_future_in():
    S, V = np.array([[0.0, 5.0], [1.0, 0.0]]), np.array([[1.0], [3.0]])
    M = TASKS["causal_mask"].reference(2, 2, 0)
    changed = np.array([[1.0], [-7.0]])
    np.testing.assert_allclose(softmax(S, M) @ V, [[1], [1.5378828427399902]])
    np.testing.assert_allclose(softmax(S, M) @ changed, [[1], [-1.1515313709599608]])
    other = S + np.array([[0, 0], [2, 0]])  # a later query
    right = [softmax(scores, M)[0] for scores in (S, other)]
    mistaken = [
        wrong("masked_softmax", "softmax_over_queries")(scores, M)[0] for scores in (S, other)
    ]
    np.testing.assert_array_equal(*right)
    assert np.abs(mistaken[0] - mistaken[1]).max() > 0.1


def test_case_a38_a_chunk_of_three_queries_behind_one_token():
    Q = np.array([[1.0, 0], [0, 1], [1, 1], [-1, 0.5]])
    K = np.array([[0.5, 1], [1, -1], [0, 2], [1, 1]])
    V = np.arange(1.0, 9).reshape(4, 2)

    def attend(Q, M):
        return softmax(Q @ K.T / np.sqrt(2), M) @ V

    M = TASKS["causal_mask"].reference(3, 4, 1)
    np.testing.assert_array_equal(M == 0, [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    whole = attend(Q, TASKS["causal_mask"].reference(4, 4, 0))
    np.testing.assert_allclose(attend(Q[1:], M), whole[1:])
    np.testing.assert_allclose(
        whole[1:, 0], [1.3911406349860862, 3.306184852843386, 4.193412827760242]
    )
    mistaken = attend(Q[1:], wrong("causal_mask", "past_ignored")(3, 4, 1))
    np.testing.assert_allclose(mistaken[:, 0], [1, 1.514366630453614, 3.6093721008868145])


def test_case_a40_padding_on_the_left_leaves_the_first_queries_without_a_key():
    padding = TASKS["padding_mask"].reference(np.array([3, 5]), 5, "left")
    causal = TASKS["causal_mask"].reference(5, 5, 0)
    M, empty = TASKS["combine_masks"].reference([causal, padding])
    keep = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    np.testing.assert_array_equal(M[0] == 0, keep)
    assert empty.tolist() == [[True, True, False, False, False], [False] * 5]
    np.testing.assert_array_equal(softmax(np.zeros((2, 5, 5)), M)[0, :2], 0)


def test_case_b10_ones_that_mean_keep():
    S, keep = np.array([[2.0, 1, 4, 1]]), np.array([[1, 1, 0, 1]])
    expected = [[0.5761168847658291, 0.21194155761708544, 0, 0.21194155761708544]]
    np.testing.assert_allclose(softmax(S, np.where(keep, 0, -INF)), expected)
    np.testing.assert_allclose(softmax(S, keep * -1e9), [[0, 0, 1, 0]])


def test_case_b22_large_scores_of_both_signs_and_larger_blocked_ones():
    case, _ = (c for c in cases("masked_softmax") if c.tag == "large")
    S, M = case.args
    allowed, blocked = np.where(np.isneginf(M), np.nan, S), np.where(np.isneginf(M), S, np.nan)
    assert np.nanmax(allowed) > 900
    assert np.nanmin(allowed) < -900
    assert (np.nanmax(blocked, axis=-1) > np.nanmax(allowed, axis=-1) + 900).any()


@pytest.mark.parametrize("name", ["masked_softmax", "masked_softmax_backward"])
def test_case_b09_sizes_of_the_first_input_are_all_different(name):
    """A transposed matrix or an exchanged axis must not fit by chance."""
    shape = cases(name)[0].args[0].shape
    assert len(set(shape)) == len(shape)


# The models of the leak test


def leak_cases(seed):
    return cases("leak_test", seed)


def moved(model, ids, other):
    """Return how far each logit of each step moves when the ids are exchanged."""
    return np.abs(model(other).astype(float) - model(ids)).max(axis=-1)


@pytest.mark.parametrize("seed", range(6))
def test_the_models_keep_what_the_text_promises(seed):
    """Right ones move by less than 1e-6, the others by more than 1e-4, cut or exchanged."""
    rng = np.random.default_rng(seed)
    for case in leak_cases(seed):
        model, ids = case.args[0].function, case.args[1]
        (B, T), cut, exchanged = ids.shape, 0.0, 0.0
        assert B <= 3
        assert T <= 7
        np.testing.assert_array_equal(model(ids), model(ids))
        assert np.isfinite(model(ids)).all()
        for b, n in np.ndindex(B, T):
            rest = np.ones((B, T), bool)
            rest[b, : n + 1] = False
            other = np.where(rest, (ids + rng.integers(1, 7, size=ids.shape)) % 7, ids)
            exchanged = max(exchanged, moved(model, ids, other)[b, : n + 1].max())
            alone = model(ids[b : b + 1, : n + 1])[0] - model(ids)[b, : n + 1].astype(float)
            cut = max(cut, np.abs(alone).max())
        if case.label.startswith("a right model"):
            assert max(cut, exchanged) < 1e-6, case.label
        else:
            assert cut > 1e-4, case.label
            assert exchanged > 1e-4 or case.tag == "length", case.label


def test_weights_that_are_masked_and_divided_again_are_named_as_what_they_do():
    """Not as the maximum of the whole matrix: blocked scores of the own row are subtracted."""

    def masked_softmax(S, M):
        E = np.exp(S - S.max(axis=-1, keepdims=True))
        A = E / E.sum(axis=-1, keepdims=True) * np.exp(M)
        return A / A.sum(axis=-1, keepdims=True)

    result = judge(TASKS["masked_softmax"], InProcess(masked_softmax), seed=1)
    assert set(result.diagnosis.names) == {"empty_row_nan", "shift_of_blocked"}
    assert result.diagnosis.kind == "mistake"


def test_right_models_do_round():
    """Without this, a test that asks for equal bits would be right."""
    for case in leak_cases(1):
        model, ids = case.args[0].function, case.args[1]
        if "float32" in case.label:
            assert model(ids).dtype == np.float32
            last = np.where(np.arange(ids.shape[1]) == ids.shape[1] - 1, (ids + 1) % 7, ids)
            assert 0 < moved(model, ids, last)[:, :-1].max() < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_relative_tolerances_accuse_every_right_model_in_float32(seed):
    """np.allclose must not be right by chance: one logit of every model is near 0."""
    for case in leak_cases(seed):
        model, ids = case.args[0].function, case.args[1]
        if case.label.startswith("a right model") and model(ids).dtype == np.float32:
            B, T = ids.shape
            pairs = [
                (model(ids)[b, t], model(ids[b : b + 1, : t + 1])[0, t])
                for b, t in np.ndindex(B, T)
            ]
            assert not all(np.allclose(*pair) for pair in pairs), case.label


@pytest.mark.parametrize("seed", range(6))
def test_the_form_of_the_input_does_not_say_whether_a_model_leaks(seed):
    """A leak test that knows the shapes of the cases by heart must not earn anything."""
    forms = {True: set(), False: set()}
    for case in leak_cases(seed):
        model, ids = case.args[0].function, case.args[1]
        padded = (ids == PADDING).any(), (ids[:, 0] == PADDING).any()
        form = (ids.shape, model(ids).dtype, padded)
        forms[case.label.startswith("a right model")].add(form)
    assert forms[False] <= forms[True]


def test_padded_models_give_logits_of_zero_at_padding():
    padded = [c for c in leak_cases(2) if "padding on" in c.label]
    assert len(padded) == 2
    for case in padded:
        model, ids = case.args[0].function, case.args[1]
        assert (ids == PADDING).any()
        assert ((model(ids) == 0).all(axis=-1) == (ids == PADDING)).all()
        assert (model(ids)[ids != PADDING] != 0).all()


def test_every_leak_of_the_contract_is_among_the_models():
    tags = {case.tag for case in leak_cases(1)}
    assert {"one_position", "last_step", "rows"} <= tags
    base = [case.label for case in leak_cases(1) if case.tag == "base"]
    assert sum(label.startswith("a right model") for label in base) == 8
    assert any("T=1" in label for label in base)
    assert any("float32" in label for label in base)
    assert any("padding" in label for label in base)
