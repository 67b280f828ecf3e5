"""Translation of numbers: the data, the models, the scores, and what the record shows."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.data import number_words
from seqlib.experiments import load, translation, weights
from seqlib.experiments import translation_data as data
from seqlib.experiments.translation_models import build, write
from seqlib.experiments.trial import Training, choose, compare
from seqlib.pt import multi_head_attention

SMALL = {
    **translation.INPUTS,
    "embedding": 5,
    "hidden": 6,
    "inner": 3,
    "dim": 8,
    "heads": 2,
    "batch": 8,
    "steps": 20,
}
KINDS = tuple(translation.NAMES)
RECORD = load("translation")


def small(kind, seed=0):
    torch.manual_seed(seed)
    return build(kind, len(data.WORDS), data.VOCABULARY, SMALL).eval()


@pytest.fixture(scope="module")
def committed():
    return translation.load_model()


# ---------------------------------------------------------------- data


def test_pieces_make_the_german_word_and_name_the_english_one():
    for number in range(10_000):
        found, words = data.pieces(number), data.source_words(number)
        assert "".join(text for text, _ in found) == number_words(number, "de")
        for text, place in found:
            assert place is not None or text == "und"
            if place is not None and words[place] not in ("hundred", "thousand"):
                # "ein" is short for "eins", and a ten or a teen is one word in both.
                english = {number_words(i, "en"): number_words(i, "de") for i in range(100)}
                assert english[words[place]] in (text, f"{text}s")
    assert data.pieces(24) == [("vier", 1), ("und", None), ("zwanzig", 0)]


def test_tables_have_all_words_and_letters():
    assert set(data.WORDS) == {w for i in range(10_000) for w in data.source_words(i)}
    letters = {c for i in range(10_000) for lang in ("de", "fr") for c in number_words(i, lang)}
    assert set(data.CHARACTERS) == letters


def test_parts_have_no_number_in_common():
    parts = data.split(translation.INPUTS, 0)
    together = np.concatenate(list(parts.values()))
    assert len(set(together)) == len(together)
    assert len(parts["pairs"]) == len(parts["unseen"]) == 1000
    endings = {int(i) % 100 for i in (*parts["pairs"], *parts["above_69"])}
    assert len(endings) == 13
    for name in ("training", "validation", "unseen"):
        assert not endings & {int(i) % 100 for i in parts[name]}
    other = data.split(translation.INPUTS, 1)
    assert set(other["training"]) != set(parts["training"])
    assert_array_equal(other["pairs"], parts["pairs"])


def test_every_held_out_digit_is_seen_with_others():
    seen = {int(i) % 100 for i in data.split(translation.INPUTS, 0)["training"]}
    for tens, units in (*translation.INPUTS["pairs"], *translation.INPUTS["above_69"]):
        assert sum(ending // 10 == tens for ending in seen) >= 7
        assert sum(ending % 10 == units and ending > 19 for ending in seen) >= 5


def test_decoder_reads_the_language_and_then_the_targets():
    source, lengths, written, target = data.batch([24, 1000], ["de", "fr"])
    assert [data.WORDS[i] for i in source[0]] == ["twenty", "four"]
    assert lengths.tolist() == [2, 2]
    assert written[:, 0].tolist() == [data.BEGIN["de"], data.BEGIN["fr"]]
    assert data.text_of(target[0]) == "vierundzwanzig"
    assert data.text_of(target[1][:6]) == "mille"
    assert (target[1, 6:] == data.IGNORED).all()
    assert_array_equal(written[0, 1:], target[0, :-1])


def test_text_without_an_end_is_none():
    assert data.text_of([0, 1]) is None
    assert data.text_of([data.END, 3]) == ""


def test_batches_draw_training_numbers_of_similar_lengths():
    numbers = np.array([*range(0, 100, 3), *range(100, 10_000, 7)])
    stream = translation.batches(numbers, translation.INPUTS, np.random.default_rng(0))
    texts, spread = [], []
    for _ in range(40):
        _, _, written, target = next(stream)
        rows = [data.text_of(row) for row in target]
        texts += [(row, int(begin)) for row, begin in zip(rows, written[:, 0], strict=True)]
        spread.append(max(map(len, rows)) - min(map(len, rows)))
    known = {
        (number_words(i, lang), data.BEGIN[lang]): i for i in numbers for lang in data.LANGUAGES
    }
    found = np.array([known[text] for text in texts])
    shares = [(found < 100).mean(), ((found >= 100) & (found < 1000)).mean()]
    assert_allclose(shares, translation.INPUTS["short"], atol=0.025)
    assert_allclose(np.mean([begin == data.BEGIN["de"] for _, begin in texts]), 0.5, atol=0.03)
    assert np.median(spread) < 6


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("kind", KINDS)
def test_no_model_sees_later_characters_or_padding(kind):
    model = small(kind)
    source, lengths, written, _ = data.batch([24, 324], ["de", "de"])
    before = model.decode(written, model.encode(source, lengths))[0]
    later, padded = written.clone(), source.clone()
    later[:, 9:] = (later[:, 9:] + 1) % data.END
    padded[0, 2:] = 7
    after = model.decode(later, model.encode(padded, lengths))[0]
    torch.testing.assert_close(after[:, :9], before[:, :9])
    assert (after[:, 9:] != before[:, 9:]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_reaches_every_character(kind):
    model = small(kind)
    source, lengths, written, _ = data.batch([7324], ["de"])
    before = model.decode(written, model.encode(source, lengths))[0]
    for place in range(source.shape[1]):
        other = source.clone()
        other[0, place] = (other[0, place] + 1) % len(data.WORDS)
        after = model.decode(written, model.encode(other, lengths))[0]
        assert (after != before).any(dim=-1).all()


@pytest.mark.parametrize(("kind", "moves"), [("vector", False), ("attention", True)])
def test_vector_looks_at_the_last_states_alone(kind, moves):
    model = small(kind)
    source, lengths, written, _ = data.batch([324], ["de"])
    keys, padding, vector = model.encode(source, lengths)
    before = model.decode(written, (keys, padding, vector))[0]
    after = model.decode(written, (keys + 1, padding, vector))[0]
    assert bool((before != after).any()) == moves
    other = model.decode(written, (keys, padding, vector + 1))[0]
    assert (before != other).any()


def test_context_is_the_average_of_the_states():
    model = small("attention")
    source, lengths, written, _ = data.batch([24, 324], ["de", "fr"])
    keys, padding, vector = model.encode(source, lengths)
    logits, rows, _ = model.decode(written, (keys, padding, vector))
    queries, _ = model.decoder(model.written(written), vector[None])
    average = torch.einsum("bts,bsh->bth", rows, keys)
    torch.testing.assert_close(logits, model.head(torch.cat([queries, average], dim=-1)))
    assert_allclose(rows.sum(dim=-1).detach(), 1, rtol=1e-5)
    assert (rows[0, :, 2:] == 0).all()  # padding


def test_recurrent_models_differ_in_three_arrays():
    vector, attention = (small(kind).state_dict() for kind in ("vector", "attention"))
    assert set(attention) - set(vector) == {"score.0", "score.1", "score.2"}
    assert {k: v.shape for k, v in vector.items()}.items() <= {
        k: v.shape for k, v in attention.items()
    }.items()


def test_weights_of_the_transformer_are_those_that_it_uses():
    torch.manual_seed(1)
    # With one head, the average over heads is the one map that the layer uses.
    model = build("transformer", len(data.WORDS), data.VOCABULARY, {**SMALL, "heads": 1}).eval()
    source, lengths, written, _ = data.batch([24, 324], ["fr", "de"])
    kept, layer = {}, model.decoder[-1]
    for name in ("norm2", "norm3"):
        keep = partial(lambda name, norm, args, out: kept.update({name: (args[0], out)}), name)
        getattr(layer, name).register_forward_hook(keep)
    memory = model.encode(source, lengths)
    _, found, _ = model.decode(written, memory)
    attention, context, D = layer.multihead_attn, memory[0], model.dim
    v = context @ attention.in_proj_weight[2 * D :].T + attention.in_proj_bias[2 * D :]
    added = attention.out_proj(found @ v)
    before, after = kept["norm2"][0], kept["norm3"][0]
    torch.testing.assert_close(after - before, added, atol=1e-5, rtol=1e-5)
    assert (found[0, :, 2:] == 0).all()  # padding
    # And the layer is the library's attention.
    theirs = multi_head_attention(
        kept["norm2"][1][1:],
        attention.in_proj_weight,
        attention.in_proj_bias,
        attention.out_proj.weight,
        attention.out_proj.bias,
        context[1:],
        n_head=1,
    )
    torch.testing.assert_close(theirs, added[1:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_writing_is_greedy(kind):
    model = small(kind, seed=3)
    with torch.no_grad():
        model.head.bias[data.END] -= 9  # an untrained model may stop at once
    source, lengths, written, _ = data.batch([24, 324], ["de", "fr"])
    ids, rows = write(model, source, lengths, written[:, 0], end=data.END, longest=9)
    read = torch.cat([written[:, :1], ids[:, :-1]], dim=1)
    logits, theirs, _ = model.decode(read, model.encode(source, lengths))
    assert_array_equal(ids, logits.argmax(dim=-1))
    assert ids.shape == (2, 9)
    if kind == "vector":
        assert rows is None
    else:
        torch.testing.assert_close(rows, theirs)


# ---------------------------------------------------------------- scores


def test_exact_match_is_what_a_model_writes_alone(committed):
    parts = data.split(translation.INPUTS, 0)
    numbers = np.concatenate([parts["above_69"][:30], parts["pairs"][:30]])
    texts, _ = translation.translate(committed, numbers, "fr")
    alone = [text == number_words(i, "fr") for text, i in zip(texts, numbers, strict=True)]
    assert_array_equal(translation.is_exact(committed, numbers, "fr"), alone)
    assert 0 < sum(alone) < len(alone)


@pytest.mark.parametrize(("with_end", "right"), [(True, True), (False, False)])
def test_a_missing_end_is_a_mistake(with_end, right):
    _, _, _, target = data.batch([24], ["de"])
    logits = torch.nn.functional.one_hot(target, data.VOCABULARY).float()
    if not with_end:
        logits[0, len("vierundzwanzig")] = 0  # the likeliest is then id 0, not the end
    assert knows(logits=logits, number=24) == [right]


def knows(logits, number):
    """Return whether a model with these logits knows the number."""
    model = SimpleNamespace(
        decode=lambda written, memory: (logits, None, None),
        encode=lambda source, lengths: None,
    )
    return translation.is_exact(model, np.array([number]), "de").tolist()


def test_alignment_is_scored_as_by_hand():
    toy = {"vier": (0.1, 0.9), "und": (0.5, 0.5), "zwanzig": (0.8, 0.2), "": (0.0, 1.0)}
    rows = [toy[text] for text in ("vier", "und", "zwanzig") for _ in text] + [toy[""]]

    def decode(written, memory):
        return None, torch.tensor([rows]), None

    model = SimpleNamespace(decode=decode, encode=lambda source, lengths: None)
    found = translation.aligned(model, np.array([24]))
    mass, in_order = (4 * 0.9 + 7 * 0.8) / 11, (4 * 0.1 + 7 * 0.2) / 11
    expected = {
        "mass": mass,
        "top": 1,
        "first": (0.9 + 0.8) / 2,
        "first_top": 1,
        "reversed": mass,
        "in_order": in_order,
        "uniform": 0.5,
    }
    assert found.keys() == expected.keys()
    assert_allclose(list(found.values()), list(expected.values()), rtol=1e-6)


def test_only_tens_and_units_count_as_reversed():
    words = len(data.source_words(324))  # three hundred and twenty four

    def decode(written, memory):
        rows = np.zeros((1, 25, words), np.float32)
        rows[0, :, 4] = 1  # everything looks at "four"
        return None, torch.from_numpy(rows), None

    model = SimpleNamespace(decode=decode, encode=lambda source, lengths: None)
    found = translation.aligned(model, np.array([324]))
    assert found["reversed"] == pytest.approx(4 / 11)
    assert found["in_order"] == pytest.approx(7 / 11)
    assert found["mass"] == pytest.approx(4 / 22)
    assert found["top"] == pytest.approx(4 / 22)
    assert found["first"] == found["first_top"] == 1 / 4
    assert found["uniform"] == pytest.approx(1 / 5)


@pytest.mark.parametrize(("share", "n"), [(0.995, 1000), (0.5, 7), (0.0, 30), (1.0, 1000)])
def test_ends_of_the_interval_are_z_deviations_away(share, n):
    low, high = translation.wilson(share, n)
    for p in (low, high):
        assert abs(share - p) == pytest.approx(1.96 * np.sqrt(p * (1 - p) / n), abs=1e-9)
    assert 0 <= low <= share <= high <= 1
    assert low < high


def test_a_number_of_successes_is_no_share():
    with pytest.raises(ValueError, match=r"^share must lie between 0 and 1, got 995"):
        translation.wilson(995, 1000)


# ---------------------------------------------------------------- training


def run_of(parts, seed=0, rate=0.01):
    return translation.start("attention", rate, SMALL, seed, parts)


@pytest.fixture(scope="module")
def parts():
    return {"training": np.arange(0, 3000, 3), "validation": np.arange(1, 100, 9)}


def test_training_in_two_parts_is_one_training(parts):
    whole = run_of(parts).go_on_to(6)
    halves = run_of(parts).go_on_to(2)
    translation.validation_loss(halves.model, parts["validation"])
    halves.go_on_to(6)
    for a, b in zip(whole.model.parameters(), halves.model.parameters(), strict=True):
        assert torch.equal(a, b)
    other = run_of(parts, seed=1).go_on_to(6)
    pairs = zip(whole.model.parameters(), other.model.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)


def test_training_leaves_the_generator_of_others_alone(parts):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run_of(parts).go_on_to(2)
    assert torch.equal(torch.rand(3), expected)


def test_training_lowers_the_loss(parts):
    training = run_of(parts)
    before = translation.validation_loss(training.model.eval(), parts["validation"])
    after = translation.validation_loss(training.go_on_to(20).model, parts["validation"])
    assert after < before - 0.2


def test_rate_rises_and_falls_in_straight_lines():
    used = []

    def loss(model, x):
        return model(x).sum()

    def make():
        return torch.nn.Linear(1, 1)

    training = Training(make, iter([(torch.ones(1),)] * 20), loss, rate=8.0, steps=20, seed=0)
    training.optimizer.register_step_pre_hook(
        lambda optimizer, *_: used.append(optimizer.param_groups[0]["lr"])
    )
    training.go_on_to(20)
    expected = [4.0, 8.0, *(8 * (20 - s) / 18 for s in range(2, 20))]
    assert_allclose(used, expected)


def test_weights_without_a_gradient_decay():
    def make():
        return torch.nn.Linear(1, 1)

    def loss(model, x):
        return 0 * model(x).sum()

    def run(**options):
        ones = iter([(torch.ones(1),)] * 20)
        training = Training(make, ones, loss, rate=0.1, steps=20, seed=0, **options)
        start = training.model.weight.item()
        return training.go_on_to(2).model.weight.item() / start

    # The first two of 20 updates have the rates 0.05 and 0.1.
    assert run(weight_decay=0.5) == pytest.approx((1 - 0.05 * 0.5) * (1 - 0.1 * 0.5))
    assert run() == pytest.approx((1 - 0.05 * 0.01) * (1 - 0.1 * 0.01))


BEST = {"a": 0.2, "b": 0.4}


class Stub:
    """A training that counts its updates; each kind has a rate that is best."""

    def __init__(self, kind, rate):
        self.rate, self.steps, self.done = rate, 30, 0
        self.model = torch.nn.Linear(2, 3)
        self.model.loss = lambda: abs(self.rate - BEST[kind]) + self.done

    def go_on_to(self, step):
        self.done = step
        return self


TRIALS = {"rates": {"a": [0.1, 0.2, 0.4], "b": [0.1, 0.4]}, "trial": 10, "early": 3}


def test_the_lower_loss_goes_on():
    best, losses = choose("a", TRIALS, Stub, lambda kind, model: model.loss())
    assert (best.rate, best.done) == (0.2, 30)
    assert_allclose([losses["0.1"], losses["0.2"], losses["0.4"]], [10.1, 10, 10.2])


@pytest.mark.parametrize("parts", [["early"], ["full"], ["early", "full"]])
def test_every_kind_is_compared_with_its_better_rate(parts):
    found = compare(
        {**TRIALS, "parts": parts},
        Stub,
        lambda kind, model: model.loss(),
        lambda kind, model: {"name": kind, "end": model.loss()},
    )
    assert ("early" in found) == ("early" in parts)
    if "early" in parts:
        assert found.pop("early") == pytest.approx({"a": 3.1, "b": 3.3})
    assert set(found) == ({"a", "b"} if "full" in parts else set())
    for kind, row in found.items():
        assert list(row) == ["parameters", "rate", "trial", "name", "end"]
        assert (row["parameters"], row["rate"], row["name"]) == (9, BEST[kind], kind)
        assert list(row["trial"]) == [str(rate) for rate in TRIALS["rates"][kind]]
        assert row["end"] == 30


# ---------------------------------------------------------------- committed parameters


def test_packing_rounds_to_half_a_scale():
    torch.manual_seed(0)
    tensor = torch.randn(5, 7, 2)
    tensor[2] = 0
    packed = weights.pack(tensor)
    assert all(isinstance(i, int) and -127 <= i <= 127 for i in packed["entries"])
    gap = (weights.unpack(packed) - tensor).abs().amax(dim=(1, 2))
    assert (gap <= torch.tensor(packed["scales"]) * 0.5001).all()
    vector = torch.tensor([0.5, -1.0, 0.0])
    assert_allclose(weights.unpack(weights.pack(vector)), vector, rtol=1e-4)


def test_packing_multiples_of_a_step_loses_nothing():
    hundredths = torch.arange(-700, 701).reshape(3, 467) / 100
    packed = weights.pack(hundredths, step=0.01)
    assert packed["entries"] == list(range(-700, 701))
    assert torch.equal(weights.unpack(json.loads(json.dumps(packed))), hundredths)


def test_what_is_written_can_be_loaded(tmp_path):
    model = small("attention")
    weights.write("demo", model, SMALL, 0, folder=tmp_path)
    record = json.loads((tmp_path / "demo.json").read_text())
    assert (record["script"], record["seed"]) == ("seqlib.experiments.demo", 0)
    other = weights.load_into("demo", small("attention", seed=1).train(), folder=tmp_path)
    assert not other.training
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert (a - b).abs().max() <= a.abs().max() / 250


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^name must be .* \(none\), got 'x'$"):
        weights.load_into("x", small("vector"), folder=tmp_path)


def test_committed_model_is_small_and_translates_like_the_record(committed):
    path = weights.FOLDER / "translation.json"
    assert path.stat().st_size < 200 * 1024
    record = json.loads(path.read_text())
    assert record["inputs"] == translation.INPUTS
    assert record["seed"] == translation.SEEDS[0]
    parts = data.split(translation.INPUTS, record["seed"])
    expected = RECORD["by_seed"][0]["attention"]["exact"]
    for group in ("unseen", "pairs"):
        for language in data.LANGUAGES:
            share = translation.is_exact(committed, parts[group][::2], language).mean()
            assert share == pytest.approx(expected[group][language], abs=0.012)
            assert share >= 0.975


def test_committed_model_reverses_what_german_reverses(committed):
    (text,), rows = translation.translate(committed, [24], "de")
    assert text == "vierundzwanzig"
    assert rows[0, 0, 1] > 0.8  # v looks at "four", the second word,
    assert rows[0, len("vierund"), 0] > 0.8  # and z at "twenty"


# ---------------------------------------------------------------- what the record shows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["attention", "transformer"])
def test_numbers_and_pairs_never_seen_are_translated(kind, seed):
    exact = RECORD["by_seed"][seed][kind]["exact"]
    for group in ("unseen", "pairs"):
        assert min(exact[group].values()) >= 0.98, group


@pytest.mark.parametrize("seed", range(5))
def test_one_vector_falls_behind(seed):
    exact = RECORD["by_seed"][seed]["vector"]["exact"]
    assert max(exact["unseen"].values()) < 0.7
    assert max(exact["pairs"].values()) < 0.2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["attention", "transformer"])
def test_weights_reverse_what_german_reverses(kind, seed):
    found = RECORD["by_seed"][seed][kind]["aligned"]
    assert found["reversed"] > 2.5 * found["in_order"]
    assert found["first"] > 3.9 * found["uniform"]


def test_every_kind_had_the_same_tuning():
    for found in RECORD["by_seed"]:
        for kind in KINDS:
            trial = found[kind]["trial"]
            assert len(trial) == 2
            assert str(found[kind]["rate"]) == min(trial, key=trial.get)


def test_map_of_the_record_is_one_of_weights():
    words = len(data.source_words(translation.MAPPED))
    for found in RECORD["by_seed"]:
        for kind in ("attention", "transformer"):
            rows = np.array([list(row.values()) for row in found[kind]["map"].values()])
            assert rows.shape == (len(number_words(translation.MAPPED, "de")) + 1, words)
            assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)


def test_plot_shows_every_seed():
    figure = translation.plot(RECORD)
    assert len(figure.axes) == 3
    for axis, group in zip(figure.axes, translation.GROUPS, strict=True):
        drawn = {tuple(line.get_ydata()) for line in axis.lines}
        expected = {
            tuple(seed[kind]["exact"][group][lang] for seed in RECORD["by_seed"])
            for kind in KINDS
            for lang in ("de", "fr")
        }
        assert drawn == expected
