"""Morse audio: spectrogram, threshold decoder, the network, its weights and the record."""

import base64
import io
import itertools
import json
import re
import wave

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from seqlib.data import morse_audio, morse_texts
from seqlib.experiments import ctc, load, speech, weights
from seqlib.experiments import speech_audio as audio
from seqlib.experiments import speech_threshold as threshold

SETTINGS = {"smoothing": 0.6, "over_noise": 2.5, "of_tone": 0.2, "shortest": 0.3}
QUIET = {"snr_db": np.inf, "fading": 0.0, "jitter": 0.1}


def sent(text, seed=0, **options):
    return morse_audio(text, np.random.default_rng(seed), **options)


# ---------------------------------------------------------------- audio


def test_spectrogram_is_the_sum_of_its_definition(rng):
    samples = rng.standard_normal(300)
    power = audio.spectrogram(samples)
    assert power.shape == (1 + (300 - 128) // 40, 19)
    n = np.arange(128)
    for t, f in itertools.product((0, 3), (0, 7, 18)):
        wave_ = np.exp(-2j * np.pi * n * audio.frequencies()[f] / 4000)
        piece = np.sin(np.pi * n / 128) ** 2 * samples[40 * t : 40 * t + 128]
        assert_allclose(power[t, f], abs((piece * wave_).sum()) ** 2, rtol=1e-9)


def test_columns_are_the_pitches_of_morse_tones():
    found = audio.frequencies()
    assert_allclose(np.diff(found), 31.25)
    assert found[0] < 400 < 900 < found[-1]


@pytest.mark.parametrize("pitch", [400, 613, 900])
def test_the_band_is_that_of_the_tone(pitch):
    power = audio.spectrogram(sent("QRZ", pitch=(pitch, pitch), snr_db=0.0))
    column, _ = audio.band(power)
    assert abs(audio.frequencies()[column] - pitch) <= 31.25


def test_the_level_of_noise_is_its_mean(rng):
    power = audio.spectrogram(rng.standard_normal(400_000))
    _, noise = audio.band(power)
    assert noise == pytest.approx(power.mean(), rel=0.02)


def test_the_level_of_noise_follows_the_ratio():
    """The same recording with and without noise differs by the noise alone."""
    noise = sent("NOISE" * 4, snr_db=-3.0) - sent("NOISE" * 4, snr_db=np.inf)
    assert audio.spectrogram(noise).mean() == pytest.approx(audio.noise_level(-3.0), rel=0.05)


def test_features_do_not_depend_on_the_loudness():
    samples = sent("LOUD", snr_db=5.0)
    quiet, loud = audio.features(0.1 * samples), audio.features(10 * samples)
    assert quiet.dtype == np.float32
    assert_allclose(quiet, loud, atol=1e-3)
    assert np.isfinite(audio.features(sent("LOUD", snr_db=np.inf))).all()


def test_a_step_is_five_frames():
    samples = sent("LOUD", snr_db=5.0)
    power = audio.spectrogram(samples)
    column, noise = audio.band(power)
    steps = audio.features(samples)
    assert steps.shape == (len(power) // audio.STACK, 3 * audio.STACK)
    levels = 0.5 * np.log(power[:, column - 1 : column + 2] / noise + 1e-2)
    assert_allclose(steps[2, :3], levels[2 * audio.STACK], atol=1e-4)
    assert_allclose(steps[2, -3:], levels[3 * audio.STACK - 1], atol=1e-4)


def test_too_short_audio_is_refused():
    with pytest.raises(ValueError, match=r"^audio must have at least 128 samples, got 127"):
        audio.spectrogram(np.zeros(127))


def test_a_player_holds_the_sound():
    samples = sent("E", snr_db=10.0)
    html = audio.player(samples, "one dot")
    assert 'aria-label="one dot"' in html
    data = base64.b64decode(re.search(r'base64,([^"]+)"', html)[1])
    with wave.open(io.BytesIO(data)) as sound:
        assert sound.getframerate() == 4000
        heard = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2")
    assert len(heard) == len(samples)
    assert abs(heard).max() == int(0.9 * 32767)
    assert np.corrcoef(heard, samples)[0, 1] > 0.9999


def test_recordings_have_texts_and_ratios_of_their_own():
    found = list(audio.recordings(20, np.random.default_rng(0), length=3, snr_db=(-5, 20)))
    assert len({text for text, _ in found}) == 20
    assert all(len(text) == 3 for text, _ in found)
    spread = [np.std(samples[:100]) for _, samples in found]  # no tone at the beginning
    assert max(spread) > 5 * min(spread)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [("", "", 0), ("", "SOS", 3), ("SOS", "", 3), ("KITTEN", "SITTING", 3), ("AB", "BA", 2)],
)
def test_known_edit_distances(a, b, distance):
    assert audio.edit_distance(a, b) == distance


def test_edit_distance_is_a_distance(rng):
    words = ["".join(rng.choice(list("AB"), rng.integers(5))) for _ in range(12)]
    for a, b, c in itertools.product(words, repeat=3):
        direct = audio.edit_distance(a, b)
        assert direct == audio.edit_distance(b, a)
        assert direct <= audio.edit_distance(a, c) + audio.edit_distance(c, b)
        assert (direct == 0) == (a == b)


# ---------------------------------------------------------------- threshold


@pytest.mark.parametrize("wpm", [12, 17, 23, 28])
@pytest.mark.parametrize("pitch", [400, 611, 900])
def test_threshold_reads_quiet_audio_at_every_speed(wpm, pitch):
    text = "PARIS0QZ"
    samples = sent(text, wpm=(wpm, wpm), pitch=(pitch, pitch), **QUIET)
    assert threshold.read(audio.spectrogram(samples), **SETTINGS) == text


def test_threshold_follows_the_fading():
    options = {"snr_db": 15.0, "jitter": 0.1}
    texts = morse_texts(10, np.random.default_rng(3), length=8)
    for fading in (0.0, 0.7):
        powers = [audio.spectrogram(sent(t, **options, fading=fading)) for t in texts]
        found = [threshold.read(power, **SETTINGS) for power in powers]
        assert sum(map(audio.edit_distance, found, texts)) <= 1


@pytest.mark.parametrize(
    ("down", "shortest", "lengths"),
    [
        ("00111000", 1, [3]),
        ("1101110", 0.5, [2, 1, 3]),
        ("1101110", 1.5, [6]),
        ("0110001101", 1.5, [2, 3, 4]),
        ("0000", 1, []),
    ],
)
def test_stretches_are_joined_and_cut(down, shortest, lengths):
    keying = np.array([sign == "1" for sign in down])
    found, is_down = threshold.stretches(keying, shortest)
    assert found.tolist() == lengths
    assert is_down.tolist() == [i % 2 == 0 for i in range(len(lengths))]


def test_search_takes_the_settings_with_the_fewest_mistakes():
    bad = {**SETTINGS, "over_noise": 1e9}
    text = "SEARCH12"
    power = audio.spectrogram(sent(text, **QUIET))
    assert threshold.read(power, **bad) == ""
    assert threshold.search([power], [text], [bad, SETTINGS]) == SETTINGS
    assert (len(threshold.SETTINGS), len(threshold.FIXED)) == (72, 216)


def test_one_speed_reads_its_own_speed_and_no_other():
    powers = [audio.spectrogram(sent("SPEED", wpm=(w, w), **QUIET)) for w in (12, 28)]
    found = [threshold.read(power, **SETTINGS, wpm=28) for power in powers]
    assert found[0] != "SPEED" == found[1]
    assert threshold.frames(20) == pytest.approx(6.0)  # a dot of 60 ms


# ---------------------------------------------------------------- network


def drawn(rng, steps):
    return rng.standard_normal((steps, speech.WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return speech.Reader(5)


def test_padding_and_neighbours_change_nothing(small, rng):
    read = [(drawn(rng, n), "AB") for n in (7, 4)]
    x, lengths, _ = speech.batch(read)
    together = small(x, lengths)
    for row, (levels, _) in enumerate(read):
        alone = small(torch.from_numpy(levels)[None], torch.tensor([len(levels)]))
        torch.testing.assert_close(together[row, : len(levels)], alone[0])
    x[1, 4:] = 7.0
    torch.testing.assert_close(small(x, lengths)[1, :4], together[1, :4])


def test_targets_are_the_labels_that_are_read_as_the_text(rng):
    _, _, targets = speech.batch([(drawn(rng, 9), "A0Z9"), (drawn(rng, 7), "SOSE")])
    texts = ["".join(audio.ALPHABET[label - 1] for label in row) for row in targets]
    assert texts == ["A0Z9", "SOSE"]
    assert targets.min() >= 1  # 0 is the blank


def test_both_directions_are_read(small, rng):
    x = torch.from_numpy(drawn(rng, 6))[None]
    before = small(x, torch.tensor([6]))
    for changed, seen in ((0, 5), (5, 0)):
        other = x.clone()
        other[0, changed] += 1
        assert (small(other, torch.tensor([6]))[0, seen] != before[0, seen]).any()


def test_loss_of_training_is_that_by_hand(small, rng):
    read = [(drawn(rng, n), t) for n, t in ((9, "EE"), (6, "T7"))]
    x, lengths, targets = speech.batch(read)
    log_p = small(x, lengths)
    by_hand = [
        ctc.ctc_loss(row[:n].detach().double().numpy(), target.numpy())
        for row, n, target in zip(log_p, lengths, targets, strict=True)
    ]
    assert speech._loss(log_p, lengths, targets).item() == pytest.approx(sum(by_hand) / 4)


def test_noise_of_training_is_that_of_the_audio(rng):
    """Noise added to the pieces and noise added to the audio give the same features."""
    stage = {"recordings": 60, "length": 2, "snr_db": [4, 4]}
    clean = speech.Recordings(stage, rng)
    drawn_ = [pair for _ in range(6) for pair in clean.draw(50, rng)]
    added = np.concatenate([levels for levels, _ in drawn_])
    heard = np.concatenate(
        [audio.features(morse_audio(text, rng, snr_db=4.0)) for _, text in drawn_]
    )
    shares = [0.02, 0.25, 0.5, 0.75, 0.98]
    assert_allclose(np.quantile(added, shares), np.quantile(heard, shares), atol=0.05)


def test_recordings_get_new_noise_each_time(rng):
    clean = speech.Recordings({"recordings": 3, "length": 1, "snr_db": [0, 0]}, rng)
    (first, text), (again, same) = clean.draw(3, rng)[0], clean.draw(3, rng)[0]
    assert text == same
    assert first.shape == again.shape
    assert np.corrcoef(first.ravel(), again.ravel())[0, 1] < 0.95
    lengths = [len(levels) for levels, _ in clean.draw(3, rng)]
    assert lengths == sorted(lengths)


def test_training_is_the_same_again_and_rounds():
    stage = {"recordings": 40, "length": 1, "snr_db": [10, 10], "updates": 3}
    inputs = {**speech.INPUTS, "units": 4, "stages": [stage]}
    (model, losses), (again, _) = speech.train(inputs, 0), speech.train(inputs, 0)
    other, _ = speech.train(inputs, 1)
    assert len(losses) == 3
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
        assert_allclose(100 * value, torch.round(100 * value), atol=1e-4)
    assert not torch.equal(model.head.weight, other.head.weight)


def test_saved_weights_come_back(tmp_path):
    """To the bit: the weights are hundredths, and hundredths are what is written."""
    model = speech.load_model()
    weights.write("speech", model, speech.INPUTS, 0, folder=tmp_path, step=speech.STEP)
    again = weights.load_into("speech", speech.Reader(speech.INPUTS["units"]), folder=tmp_path)
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
        assert torch.equal(value, torch.round(100 * value) / 100)


def test_committed_weights_are_plain_numbers_of_less_than_200_kib():
    path = weights.FOLDER / "speech.json"
    assert path.stat().st_size < 200 * 1024
    about = json.loads(path.read_text(encoding="utf-8"))
    assert about["inputs"] == speech.INPUTS
    assert about["seed"] == speech.SEEDS[0]
    for packed in about["parameters"].values():
        assert packed["step"] == speech.STEP
        assert all(isinstance(entry, int) for entry in packed["entries"])


# ---------------------------------------------------------------- record


@pytest.fixture(scope="module")
def record():
    return load("speech")


def test_committed_weights_have_the_errors_of_the_first_seed(record):
    for ratio in (5, 10):
        measured = speech.fresh(record["inputs"], record["seeds"][0], ratio)
        error = speech.error_of(speech.load_model(), measured)
        recorded = record["by_seed"][0]["error"]["network"][str(ratio)]
        assert error == pytest.approx(recorded, abs=4e-3)


@pytest.mark.parametrize("seed", range(5))
def test_network_reads_what_a_threshold_with_one_speed_does_not(record, seed):
    error = record["by_seed"][seed]["error"]
    assert error["network"]["10"] <= 0.03
    assert error["fixed"]["10"] > 0.10
    for ratio in ("0", "2.5", "5", "6", "7", "8", "10"):
        assert error["network"][ratio] < error["threshold"][ratio] < error["fixed"][ratio]


def test_measured_recordings_are_not_those_of_training_or_search():
    inputs = {**speech.INPUTS, "fresh": 5, "searched": 5}
    measured = [text for text, _ in speech.fresh(inputs, 0, 5)]
    searched = [text for text, _ in speech.fresh(inputs, 0, 5, searching=True)]
    trained = morse_texts(5, np.random.default_rng(0), length=8)
    assert len({*measured, *searched, *trained}) == 15
    assert measured == [text for text, _ in speech.fresh(inputs, 0, 5)]


def test_plot_has_all_decoders(record):
    (axis,) = speech.plot(record).axes
    labels = [line.get_label() for line in axis.lines]
    assert labels == [*speech.NAMES.values(), "3 %"]
    assert_array_equal(axis.lines[0].get_xdata(), record["inputs"]["snr_db"])
    expected = list(record["results"]["error"]["network"].values())
    assert_allclose(axis.lines[2].get_ydata(), expected)


def test_with_long_steps_some_texts_do_not_fit():
    """The bug clinic of the page: 48 frames at a step in place of five."""
    rng = np.random.default_rng(0)
    lengths = [
        (text, len(audio.spectrogram(sound)))
        for text, sound in audio.recordings(500, rng, length=4, snr_db=(10, 10))
    ]

    def spare(frames_per_step):
        return {
            text: frames // frames_per_step
            - len(text)
            - sum(a == b for a, b in itertools.pairwise(text))
            for text, frames in lengths
        }

    long = spare(48)
    assert sum(left < 0 for left in long.values()) == 15
    assert long["GEE0"] == 4 - 5
    assert min(spare(audio.STACK).values()) == 26
