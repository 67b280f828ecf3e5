"""The character model: its command line, its splits, and the committed result."""

import dataclasses
import math
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import seqlib.np as snp
from seqlib.data import NGramLM, stories, story_grammar
from seqlib.experiments import charlm, load
from seqlib.experiments.charlm import PRESETS, prepare, train_charlm
from seqlib.experiments.training import Recipe, next_token_loss

SMALL = charlm.Preset(
    {"context": 8, "dim": 8, "n_layer": 1, "n_head": 2},
    batch_size=4,
    recipe=Recipe(steps=6, lr=1e-2, validate_every=4),
)


@pytest.fixture(scope="module")
def text():
    return stories(40, np.random.default_rng(0))


def test_the_text_is_cut_after_nine_tenths():
    text = "abc" * 371798  # as long as tinyshakespeare: 1 115 394 characters
    tokenizer, training, validation = prepare(text, 64)
    assert (len(training), len(validation)) == (1_003_854, 111_540)
    assert tokenizer.decode(np.concatenate([training[:5], validation[-4:]])) == "abcab" + "cabc"
    assert training.dtype == np.int64


def test_every_character_of_the_text_has_an_id():
    tokenizer, training, validation = prepare("a" * 90 + "zb" * 5, 8)
    assert tokenizer.characters == "abz"
    assert set(training) == {0}
    assert set(validation) == {1, 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"text must have a character, got an empty text"),
        (
            "ab" * 5,
            r"text must have at least 9 characters .* and 2 in the last, got 9 and 1; use",
        ),
        ("ab" * 4, r"text must have at least 9 characters .* got 7 and 1; use a longer text"),
    ],
)
def test_a_text_that_is_too_short_is_refused(text, message):
    with pytest.raises(ValueError, match=rf"^{message}"):
        train_charlm(text, SMALL)


def test_the_shortest_text_trains():
    _, _, history = train_charlm("ab" * 6, SMALL)  # 10 for training, 2 for validation
    assert all(map(math.isfinite, history.losses))


def test_loss_is_that_of_the_numpy_model_over_the_whole_validation(text):
    model, tokenizer, history = train_charlm(text, SMALL)
    params = {name: p.numpy() for name, p in model.state_dict().items()}
    _, _, validation = prepare(text, 8)
    losses = []
    for start in range(0, len(validation) - 1, 8):
        window = validation[None, start : start + 9]
        logits = snp.decoder_lm(window[:, :-1], params, model.config)
        losses += list(snp.cross_entropy(logits, window[:, 1:], reduction="none")[0])
    assert len(losses) == len(validation) - 1
    assert [step for step, _ in history.validation] == [4, 6]
    assert history.validation[-1][1] == pytest.approx(np.mean(losses), rel=1e-5)
    assert model.config.vocab_size == len(tokenizer.characters) == len(set(text))


def test_seeds_decide_parameters_and_batches(text):
    (model, _, a), (again, _, b), (_, _, c) = (
        train_charlm(text, SMALL, seed=s) for s in (3, 3, 4)
    )
    assert a == b
    assert a.losses[0] != c.losses[0]
    for p, q in zip(model.parameters(), again.parameters(), strict=True):
        assert_array_equal(p.detach(), q.detach())


@pytest.mark.parametrize("V", [65, 256])
@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_the_first_loss_is_that_of_a_guess(preset, V, rng):
    """The logarithm of the vocabulary (huggingface/transformers#26441)."""
    torch.manual_seed(0)
    model = charlm.build(preset, V)
    ids = torch.tensor(rng.integers(V, size=(8, preset.model["context"])))
    loss = next_token_loss(model, ids[:, :-1], ids[:, 1:])
    assert loss.item() == pytest.approx(math.log(V), abs=0.3)


# ---------------------------------------------------------------- resuming


def test_another_text_or_vocabulary_is_refused_on_resume(text, tmp_path):
    path = tmp_path / "run.pt"
    _, _, history = train_charlm(text, SMALL, checkpoint=path)
    assert train_charlm(text, SMALL, checkpoint=path)[2] == history
    V = len(set(text))
    for changed, message in (
        (text + "ä", f"vocab_size = {V + 1}, got {V} in"),
        (text.replace("M", "W"), "characters = "),
        (text.replace("Mia", "Ami"), "text = "),
    ):
        with pytest.raises(ValueError, match=f"^checkpoint must be of a run with {message}"):
            train_charlm(changed, SMALL, checkpoint=path)
    for preset, message in (
        (dataclasses.replace(SMALL, batch_size=5), "batch_size = 5, got 4"),
        (dataclasses.replace(SMALL, model={**SMALL.model, "n_head": 4}), "n_head = 4, got 2"),
    ):
        with pytest.raises(ValueError, match=f"^checkpoint must be of a run with {message}"):
            train_charlm(text, preset, checkpoint=path)


# ---------------------------------------------------------------- command line


def test_the_command_prints_the_loss_as_its_last_number(text, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(PRESETS, "tiny", SMALL)
    path, checkpoint = tmp_path / "my text.txt", tmp_path / "run.pt"
    path.write_text(text, encoding="utf-8")
    command = ["--text", str(path), "--preset", "tiny", "--seed", "2"]
    threads = torch.get_num_threads()
    try:
        charlm.main([*command, "--checkpoint", str(checkpoint)])
    finally:
        torch.set_num_threads(threads)
    out = capsys.readouterr().out
    history = train_charlm(text, SMALL, seed=2, checkpoint=checkpoint)[2]
    found = re.findall(r"\d+\.?\d*", out)
    assert found[-1] == f"{history.validation[-1][1]:.4f}"
    assert f"my text.txt: {len(text)} characters" in out


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "seqlib.experiments.charlm", *arguments],
        capture_output=True,
        text=True,
    )


def test_the_command_ends_with_the_error_alone(tmp_path):
    missing = str(tmp_path / "missing.txt")
    done = command("--text", missing)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: source must be a text file or one of topics,")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "source must hold text"),
        ("short", [], "text must have at least 65 characters"),
        ("long" * 50, ["--threads", "0"], "threads must be a positive integer, got 0"),
    ],
)
def test_errors_of_the_command(content, options, message, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit, match=rf"^error: {message}"):
        charlm.main(["--text", str(path), *options])


# ---------------------------------------------------------------- the committed result


def test_the_preset_is_the_model_that_the_result_speaks_of():
    model, recipe = PRESETS["cpu"].model, PRESETS["cpu"].recipe
    fixed = {"context": 64, "dim": 128, "n_layer": 4, "n_head": 4}
    assert model | fixed == model
    assert (PRESETS["cpu"].batch_size, recipe.steps) == (12, 2000)
    config = snp.DecoderConfig(vocab_size=65, **model)
    gpt2 = snp.DecoderConfig(65, 64, 128, 4, 4)
    sizes = [sum(map(math.prod, c.shapes().values())) for c in (config, gpt2)]
    assert sizes[0] < sizes[1]  # no larger than a GPT-2 of this depth and width


def test_the_worst_seed_on_shakespeare():
    losses = [seed["shakespeare"]["validation"] for seed in load("charlm")["by_seed"]]
    assert len(losses) >= 3
    assert max(losses) <= 1.69
    assert max(losses) - min(losses) < 0.03


def test_the_model_of_the_reduced_run_is_between_the_floor_and_the_bigrams():
    text = stories(charlm.INPUTS["stories"]["stories"], np.random.default_rng(0))
    tokenizer, training, validation = prepare(text, 32)
    bigrams = NGramLM(2, len(tokenizer.characters)).fit(training)
    floor = story_grammar().nats(text)[len(training) :].mean()
    for seed in load("charlm")["by_seed"]:
        assert floor < seed["stories"]["validation"] < bigrams.nats(validation).mean()
