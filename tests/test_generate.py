"""Generation: with and without cache, padding, windows, seeds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_decoder import MODELS, SIZES, left_padding, np_params, random_model
from twins import tensors

import seqlib.np as snp
import seqlib.pt as spt

CONTEXT = SIZES["context"]


@pytest.fixture(params=MODELS)
def model(request):
    return random_model(spt.DecoderConfig(**SIZES, **MODELS[request.param]))


def as_pair(model):
    """Return the model as NumPy takes it."""
    return np_params(model), model.config


def generate_both(model, ids, *, seed=5, is_padding=None, **options):
    """Generate with both backends, with and without cache; all four must agree."""
    results = []
    for backend, cache in [(b, c) for b in (snp, spt) for c in (True, False)]:
        given_model, prompt, padding = as_pair(model), ids, is_padding
        if backend is spt:
            given_model, (prompt, padding) = model, tensors([ids, is_padding])
        tokens = backend.generate(
            given_model,
            prompt,
            is_padding=padding,
            rng=np.random.default_rng(seed),
            cache=cache,
            **options,
        )
        results.append(np.asarray(tokens))
    for other in results[1:]:
        assert_array_equal(other, results[0])
    return results[0]


# What is generated


@pytest.mark.parametrize("T", [1, 5, CONTEXT, CONTEXT + 3])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_cache_and_backends_do_not_change_the_tokens(model, T, temperature, rng):
    ids = rng.integers(0, 11, (2, T))
    tokens = generate_both(model, ids, max_new_tokens=12, temperature=temperature)
    assert tokens.shape == (2, T + 12)
    assert_array_equal(tokens[:, :T], ids)


def test_greedy_takes_the_best_token_of_the_window(model, rng):
    """Step by step from the definition: the last tokens, at positions 0, 1, ..."""
    tokens = rng.integers(0, 11, (1, 3))
    generated = generate_both(model, tokens, max_new_tokens=10, temperature=0)
    for _ in range(10):
        logits = snp.decoder_lm(tokens[:, -CONTEXT:], *as_pair(model))
        tokens = np.append(tokens, [[logits[0, -1].argmax()]], axis=1)
    assert_array_equal(generated, tokens)


def test_sampling_is_one_choice_per_token(model, rng):
    """Row by row and step by step, so that a seed gives the same text in both backends."""
    tokens = rng.integers(0, 11, (3, 4))
    options = {"temperature": 0.8, "top_k": 6, "top_p": 0.9}
    generated = generate_both(model, tokens, seed=1, max_new_tokens=6, **options)
    draws = np.random.default_rng(1)
    for _ in range(6):
        logits = snp.decoder_lm(tokens[:, -CONTEXT:], *as_pair(model))[:, -1]
        p = snp.next_token_distribution(logits, **options)
        new = [[draws.choice(11, p=row)] for row in p]
        tokens = np.append(tokens, new, axis=1)
    assert_array_equal(generated, tokens)
    assert (
        generate_both(model, tokens, seed=2, max_new_tokens=6)
        != generate_both(model, tokens, seed=3, max_new_tokens=6)
    ).any()


def test_without_a_generator_every_call_differs(rng):
    model = random_model(spt.DecoderConfig(**SIZES))
    ids = rng.integers(0, 11, (1, 3))
    options = {"max_new_tokens": 40, "temperature": 5.0}
    for backend, given_model, prompt in (
        (snp, as_pair(model), ids),
        (spt, model, torch.tensor(ids)),
    ):
        first = backend.generate(given_model, prompt, **options)
        assert (first != backend.generate(given_model, prompt, **options)).any()


def test_a_prompt_longer_than_the_context():
    """The model reads the last 4 tokens at positions 0 to 3; all are returned (gpt-2#121)."""
    config = spt.DecoderConfig(16, 4, dim=12, n_layer=2, n_head=3)
    model = random_model(config)
    prompt = np.array([[10, 11, 12, 13, 14, 15]])
    assert_array_equal(generate_both(model, prompt, max_new_tokens=0), prompt)
    tokens = generate_both(model, prompt, max_new_tokens=2, temperature=0)
    assert tokens.shape == (1, 8)
    assert_array_equal(tokens[:, :6], prompt)
    first = snp.decoder_lm(np.array([[12, 13, 14, 15]]), *as_pair(model))[0, -1].argmax()
    assert tokens[0, 6] == first
    second = snp.decoder_lm(np.array([[13, 14, 15, first]]), *as_pair(model))[0, -1].argmax()
    assert tokens[0, 7] == second


@pytest.mark.parametrize("T", [5, CONTEXT + 2])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_left_padding_changes_nothing(model, T, temperature, rng):
    """Prompts of length T - 2, T and 1 in a batch, past the end of the window."""
    counts = [2, 0, T - 1]
    ids = rng.integers(0, 11, (3, T))
    tokens = generate_both(
        model,
        ids,
        is_padding=left_padding(counts, T),
        max_new_tokens=9,
        temperature=temperature,
    )
    assert_array_equal(tokens[:, :T], ids)
    if temperature == 0:
        for row, count in enumerate(counts):
            alone = generate_both(model, ids[[row], count:], max_new_tokens=9, temperature=0)
            assert_array_equal(tokens[row, count:], alone[0])


def test_equal_logits_give_the_lowest_id(rng):
    """A model with a tied matrix of zeros gives every token the logit 0."""
    model = random_model(spt.DecoderConfig(**SIZES))
    model.embedding.weight.data[:] = 0
    tokens = generate_both(model, rng.integers(0, 11, (2, 3)), max_new_tokens=6, temperature=0)
    assert_array_equal(tokens[:, 3:], np.zeros((2, 6)))


def test_float32_models_agree_with_their_cache(rng):
    config = spt.DecoderConfig(65, 32, dim=32, n_layer=2, n_head=4)
    model = random_model(config).float()
    tokens = generate_both(model, rng.integers(0, 65, (2, 3)), max_new_tokens=40, temperature=0)
    assert len(np.unique(tokens)) > 5


def test_arguments_and_mode_are_kept(rng):
    model = random_model(spt.DecoderConfig(**SIZES, dropout=0.5))
    model.layers[1].eval()
    ids = rng.integers(0, 11, (2, 5))
    is_padding, before = left_padding([2, 0], 5), ids.copy()
    plain = generate_both(model, ids, is_padding=is_padding, max_new_tokens=6)
    assert_array_equal(ids, before)
    assert_array_equal(is_padding, left_padding([2, 0], 5))
    assert model.training
    assert model.layers[0].dropout.training
    assert not model.layers[1].dropout.training
    model.eval()
    assert_array_equal(
        generate_both(model, ids, is_padding=is_padding, max_new_tokens=6), plain
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_dtype_of_ids_is_kept(dtype, rng):
    model = random_model(spt.DecoderConfig(**SIZES))
    ids = rng.integers(0, 11, (1, 3)).astype(dtype)
    assert generate_both(model, ids, max_new_tokens=2).dtype == dtype


def test_an_empty_batch(model):
    ids = np.zeros((0, 3), int)
    assert generate_both(model, ids, max_new_tokens=2).shape == (0, 5)


# The cache


@given(
    cuts=st.sets(st.integers(1, CONTEXT - 1)),
    name=st.sampled_from([*MODELS]),
    counts=st.none() | st.lists(st.integers(0, 2), min_size=2, max_size=2),
)
def test_every_way_to_cut_a_sequence_gives_the_same_logits(cuts, name, counts):
    """A chunk of several tokens needs a shifted mask (rasbt/LLMs-from-scratch#697)."""
    model = random_model(spt.DecoderConfig(**SIZES, **MODELS[name]))
    ids = np.random.default_rng(0).integers(0, 11, (2, CONTEXT))
    left = None if counts is None else np.array(counts)
    is_padding = None if counts is None else left_padding(counts, CONTEXT)
    expected = snp.decoder_lm(ids, *as_pair(model), is_padding=is_padding)
    readers = [snp.CachedDecoder(*as_pair(model), 2), spt.CachedDecoder(model, 2)]
    for _ in range(2):  # a reader that is restarted has forgotten the first time
        for reader, given_left in zip(readers, (left, *tensors([left])), strict=True):
            reader.restart(given_left)
        start = 0
        for end in [*sorted(cuts), CONTEXT]:
            chunk = ids[:, start:end]
            for reader, piece in zip(readers, (chunk, torch.tensor(chunk)), strict=True):
                logits = np.asarray(reader.read(piece))
                # A row that has only padding so far predicts nothing.
                real = np.ones(2, bool) if left is None else left < end
                assert_allclose(logits[real], expected[real, end - 1], rtol=0, atol=1e-11)
                assert reader.length == end
            start = end


# Errors


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ([[11]], {}, "ids must be less than 11 everywhere, got 11; the vocabulary has 11"),
        ([1, 2], {}, "ids must have shape (B, T), got (2,); one prompt is ids[None, :]"),
        ([[]], {}, "ids must "),
        ([[1.0]], {}, "ids must have an integer dtype, got float"),
        ([[1]], {"max_new_tokens": -1}, "max_new_tokens must be a positive integer, got -1; 0"),
        ([[1]], {"max_new_tokens": 1.5}, "max_new_tokens must be a positive integer, got 1.5"),
        ([[1]], {"temperature": -0.1}, "temperature must be a finite number of at least 0"),
        ([[1]], {"temperature": 0, "top_p": 0.0}, "top_p must lie in (0, 1], got 0.0"),
        ([[1]], {"top_p": 1.5}, "top_p must lie in (0, 1], got 1.5"),
        ([[1]], {"max_new_tokens": 0, "top_k": 0}, "top_k must be a positive integer, got 0"),
        ([[1, 2]], {"is_padding": [[1, 0]]}, "is_padding must be boolean (True = padding)"),
        ([[1, 2]], {"is_padding": [[True]]}, "is_padding must have shape (1, 2), got (1, 1)"),
        ([[1, 2]], {"is_padding": [[False, True]]}, "is_padding must be True only at the left"),
        ([[1, 2]], {"is_padding": [[True, True]]}, "is_padding must be True only at the left"),
        (
            [[1, 2, 3, 4]],
            {"is_padding": [[False, True, False, False]]},
            "is_padding must be True only at the left",
        ),
    ],
)
def test_rejects_bad_input_alike(ids, options, message):
    model = random_model(spt.DecoderConfig(**SIZES))
    options = {"max_new_tokens": 2} | options
    ids = np.array(ids)
    if "is_padding" in options:
        options["is_padding"] = np.array(options["is_padding"])
    texts = []
    for backend, given_model in ((snp, as_pair(model)), (spt, model)):
        (prompt,), given_options = (
            ([ids], options) if backend is snp else (tensors([ids]), tensors(options))
        )
        with pytest.raises(ValueError, match=" must ") as error:
            backend.generate(given_model, prompt, **given_options)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
    assert texts[0].startswith(message)


def test_rejects_an_empty_prompt():
    model = random_model(spt.DecoderConfig(**SIZES))
    with pytest.raises(ValueError, match=r"^ids must hold at least 1 token per prompt, got 0"):
        snp.generate(as_pair(model), np.zeros((2, 0), int), max_new_tokens=2)
    with pytest.raises(ValueError, match=r"^ids must hold at least 1 token per prompt, got 0"):
        spt.generate(model, torch.zeros(2, 0, dtype=torch.long), max_new_tokens=2)
