"""Generators: layouts, distributions, and answers recomputed from what was drawn."""

import itertools
import math

import num2words
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.data as data
from seqlib.data.numbers import LANGUAGES
from seqlib.data.shapes import COLOURS, RELATIONS, SHAPES


def fresh(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: data.copy(3, rng, length=2, lag=4, V=5),
        lambda rng: data.reversal(3, rng, length=2, V=5),
        lambda rng: data.recall(3, rng, lag=4, V=5),
        lambda rng: data.adding(3, rng, T=5),
        lambda rng: [data.dyck(3, rng, T=8)],
        lambda rng: data.number_pairs(3, rng),
        lambda rng: [data.morse_audio(*data.morse_texts(1, rng, length=3), rng)],
        lambda rng: data.scenes(3, rng),
        lambda rng: [data.stories(3, rng)],
    ],
    ids=[
        "copy",
        "reversal",
        "recall",
        "adding",
        "dyck",
        "numbers",
        "morse",
        "scenes",
        "stories",
    ],
)
def test_the_generator_alone_decides(draw):
    first, again, other = draw(fresh()), draw(fresh()), draw(fresh(1))
    for a, b in zip(first, again, strict=True):
        assert_array_equal(a, b)
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


# ---------------------------------------------------------------- probes


@given(length=st.integers(1, 5), more=st.integers(0, 5), V=st.integers(1, 6))
def test_copy_asks_for_each_symbol_after_the_lag(length, more, V):
    lag = length + more
    inputs, targets = data.copy(7, fresh(), length=length, lag=lag, V=V)
    assert inputs.shape == targets.shape == (7, lag + length)
    assert_array_equal(targets[:, lag:], inputs[:, :length])
    assert (targets[:, :lag] == -100).all()
    assert (inputs[:, :length] < V).all()
    assert (inputs[:, lag] == V + 1).all()
    blanks = np.delete(inputs[:, length:], more, axis=1)
    assert (blanks == V).all()


def test_reversal_gives_the_last_symbol_first():
    inputs, targets = data.reversal(50, fresh(), length=4, V=9)
    assert inputs.shape == targets.shape == (50, 8)
    assert_array_equal(targets[:, 4:], inputs[:, 3::-1])
    assert (targets[:, :4] == -100).all()
    assert_array_equal(inputs[:, 4:], np.tile([10, 9, 9, 9], (50, 1)))


@pytest.mark.parametrize("lag", [1, 2, 7])
def test_recall_asks_for_the_first_symbol(lag):
    inputs, targets = data.recall(600, fresh(), lag=lag, V=3)
    assert inputs.shape == targets.shape == (600, lag + 1)
    assert_array_equal(targets[:, -1], inputs[:, 0])
    assert (targets[:, :-1] == -100).all()
    assert (inputs[:, -1] == 3).all()
    assert inputs[:, :-1].max() == 2
    # Nobody knows the first symbol from those after it.
    if lag > 1:
        assert 0.2 < (inputs[:, lag - 1] == inputs[:, 0]).mean() < 0.47
    assert (np.bincount(targets[:, -1], minlength=3) > 150).all()


@pytest.mark.parametrize("T", [2, 3, 10])
def test_adding_sums_the_two_marked_numbers(T):
    inputs, targets = data.adding(4000, fresh(), T=T)
    values, marks = inputs[..., 0], inputs[..., 1]
    assert inputs.shape == (4000, T, 2)
    assert targets.shape == (4000,)
    assert_allclose((values * marks).sum(1), targets, rtol=1e-12)
    assert (marks[:, : T // 2].sum(1) == 1).all()
    assert (marks[:, T // 2 :].sum(1) == 1).all()
    assert marks.any(0).all(), "some step is never marked"
    assert 0 <= values.min() < 0.01 < 0.99 < values.max() < 1
    assert np.mean((targets - 1) ** 2) == pytest.approx(1 / 6, rel=0.08)


# ---------------------------------------------------------------- brackets


def is_balanced(row, pairs):
    """Return the greatest depth, or None if the row is not well formed."""
    stack, deepest = [], 0
    for token in row:
        if token < pairs:
            stack.append(token)
            deepest = max(deepest, len(stack))
        elif not stack or stack.pop() != token - pairs:
            return None
    return None if stack else deepest


@given(half=st.integers(1, 12), pairs=st.integers(1, 3), depth=st.none() | st.integers(1, 4))
def test_every_row_of_brackets_is_well_formed(half, pairs, depth):
    ids = data.dyck(20, fresh(), T=2 * half, pairs=pairs, max_depth=depth)
    assert ids.shape == (20, 2 * half)
    for row in ids:
        deepest = is_balanced(row, pairs)
        assert deepest is not None
        assert depth is None or deepest <= depth


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_all_rows_of_brackets_are_equally_likely(depth):
    T, pairs, n = 6, 2, 20_000
    possible = [
        row
        for row in itertools.product(range(2 * pairs), repeat=T)
        if (deepest := is_balanced(row, pairs)) is not None and (not depth or deepest <= depth)
    ]
    assert data.dyck_nats(T, pairs=pairs, max_depth=depth) == pytest.approx(
        math.log(len(possible))
    )
    rows, counts = np.unique(
        data.dyck(n, fresh(), T=T, pairs=pairs, max_depth=depth), axis=0, return_counts=True
    )
    assert_array_equal(rows, possible)
    expected = n / len(possible)
    # The statistic of Pearson has mean df and variance 2 df.
    df = len(possible) - 1
    assert ((counts - expected) ** 2 / expected).sum() < df + 4 * math.sqrt(2 * df)


def test_example_of_the_brackets():
    assert data.dyck_nats(4, pairs=2) == pytest.approx(math.log(8))
    assert data.dyck_nats(2000, pairs=1) < 2000 * math.log(2)  # exact integers, no overflow


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("language", LANGUAGES)
def test_number_words_are_those_of_num2words(language):
    for i in range(10_000):
        expected = num2words.num2words(i, lang=language).replace(",", "")
        assert data.number_words(i, language) == expected


def test_number_pairs_hold_out_what_they_should():
    held_out = [(4, 7), (0, 5)]
    numbers, english, french = data.number_pairs(3000, fresh(), target="fr", held_out=held_out)
    assert numbers.shape == (3000,)
    assert not {47, 5} & set(numbers % 100)
    assert set(numbers % 100) == set(range(100)) - {47, 5}
    assert english == [data.number_words(i, "en") for i in numbers]
    assert french == [data.number_words(i, "fr") for i in numbers]
    numbers, *_ = data.number_pairs(300, fresh(), held_out=held_out, test=True, stop=1000)
    assert set(numbers % 100) == {47, 5}
    assert numbers.max() < 1000


# ---------------------------------------------------------------- Morse


def read_keying(key, rate, wpm):
    """Decode by thresholds half way between the lengths, as a clock would."""
    table = {code: letter for letter, code in data.morse.MORSE_CODE.items()}
    edges = np.flatnonzero(np.diff(key.astype(int), prepend=0, append=0))
    down, up = edges[::2], edges[1::2]
    dot = 1.2 / wpm * rate
    gaps = [*(down[1:] - up[:-1]), 3 * dot]
    text, letter = "", ""
    for length, gap in zip(up - down, gaps, strict=True):
        letter += "." if length < 2 * dot else "-"
        if gap > 2 * dot:
            text, letter = text + table[letter], ""
        if gap > 4.6 * dot:  # with a jitter of 20 %: at most 3.6, at least 5.6
            text += " "
    return text


@pytest.mark.parametrize("jitter", [0.0, 0.2])
@pytest.mark.parametrize("wpm", [12, 28])
def test_keying_can_be_read_back(wpm, jitter):
    text = "PARIS Q8 " + data.morse_texts(1, fresh(), length=60)[0]
    key = data.morse_keying(text, fresh(), wpm=wpm, jitter=jitter)
    assert key.dtype == bool
    assert read_keying(key, 4000, wpm) == text
    assert read_keying(data.morse_keying(text.lower(), fresh(), wpm=wpm), 4000, wpm) == text


def test_letters_are_those_of_the_standard():
    code = data.morse.MORSE_CODE
    assert (code["S"], code["O"], code["E"], code["T"], code["7"]) == (
        *("...", "---", "."),
        *("-", "--..."),
    )
    assert len(code) == len(set(code.values())) == 36
    # More frequent letters of English are shorter.
    assert [len(code[c]) for c in "ETANQ"] == [1, 1, 2, 2, 4]


def test_paris_has_fifty_dots():
    # Here the gap behind the word is the one between letters: 50 - 7 + 3, and 3 before.
    key = data.morse_keying("PARIS", fresh(), rate=1000, wpm=20, jitter=0)
    assert len(key) == 60 * (50 - 7 + 3 + 3)
    assert key.sum() == 60 * 22  # P 8, A 4, R 5, I 2, S 3
    words = data.morse_keying("E T", fresh(), rate=1000, wpm=20, jitter=0)
    assert_array_equal(words, np.repeat([0, 1, 0, 1, 0], 60 * np.array([3, 1, 7, 3, 3])) == 1)


def test_jitter_changes_each_length_by_up_to_a_fifth():
    key = data.morse_keying("5" * 200, fresh(), wpm=20)  # dots only
    edges = np.flatnonzero(np.diff(key.astype(int)))
    dots = (edges[1::2] - edges[::2]) / (0.06 * 4000)
    assert 0.79 < dots.min() < 0.82
    assert 1.18 < dots.max() < 1.21
    assert dots.std() == pytest.approx(0.4 / math.sqrt(12), rel=0.1)


def audio(text="EEE", seed=0, **options):
    quiet = {"snr_db": np.inf, "fading": 0.0, "jitter": 0.0, "wpm": (12, 12)}
    return data.morse_audio(text, fresh(seed), **quiet | options)


@pytest.mark.parametrize("pitch", [400, 900])
def test_tone_has_the_pitch_and_full_strength(pitch):
    x = audio("T", pitch=(pitch, pitch))
    assert x.dtype == np.float32
    dash = x[1300:2300]  # inside the dash, which lasts from 1200 to 2400
    spectrum = np.abs(np.fft.rfft(dash))
    assert np.fft.rfftfreq(len(dash), 1 / 4000)[spectrum.argmax()] == pytest.approx(
        pitch, abs=4
    )
    assert np.sqrt(np.mean(dash**2)) == pytest.approx(np.sqrt(0.5), rel=0.01)
    assert not x[:1100].any()


def test_pitch_and_speed_are_drawn_from_their_ranges():
    spectra = [
        np.abs(np.fft.rfft(data.morse_audio("0", fresh(i), snr_db=np.inf))) for i in range(40)
    ]
    peaks = [s.argmax() * 2000 / (len(s) - 1) for s in spectra]
    assert 390 < min(peaks) < 500 < 800 < max(peaks) < 910
    lengths = [len(data.morse_audio("0", fresh(i), jitter=0)) / 4000 for i in range(40)]
    units = 3 + 19 + 3
    assert 1.2 / 28 * units < min(lengths) < 1.4 / 28 * units
    assert 1.0 / 12 * units < max(lengths) < 1.2 / 12 * units


@pytest.mark.parametrize(("snr_db", "bandwidth", "variance"), [(0, 500, 2.0), (10, 250, 0.4)])
def test_noise_has_the_stated_power_in_the_band(snr_db, bandwidth, variance):
    x = audio("0" * 20, snr_db=snr_db, bandwidth=bandwidth) - audio("0" * 20)
    assert x.var() == pytest.approx(variance, rel=0.03)
    # In the band itself: the power of the tone over that of the noise.
    power = np.abs(np.fft.rfft(x)) ** 2 / len(x) ** 2 * 2
    frequency = np.fft.rfftfreq(len(x), 1 / 4000)
    inside = power[(frequency > 600) & (frequency < 600 + bandwidth)].sum()
    assert 10 * np.log10(0.5 / inside) == pytest.approx(snr_db, abs=0.3)


def test_fading_is_slow_and_as_deep_as_asked():
    x, still = audio("0" * 60, fading=0.7), audio("0" * 60)  # about two minutes
    tone = np.abs(still) > 0.1
    strength = x[tone] / still[tone]
    assert 0.299 < strength.min() < 0.31
    assert 0.99 < strength.max() < 1.001
    assert np.abs(still).max() > 0.999
    # From strong to weak and back in 2 to 10 seconds: two crossings of the middle a period.
    crossings = np.count_nonzero(np.diff(strength > 0.65))
    seconds = len(x) / 4000
    assert 0.1 * seconds - 1 <= crossings / 2 <= 0.5 * seconds + 1


def test_edges_are_rounded():
    x = audio("E", pitch=(500, 500))
    power = np.abs(np.fft.rfft(x)) ** 2
    far = np.abs(np.fft.rfftfreq(len(x), 1 / 4000) - 500) > 400
    assert power[far].sum() / power.sum() < 1e-4


# ---------------------------------------------------------------- shapes


def describe(image):
    """Say what a picture shows, from its pixels alone."""
    colours = {tuple(np.float32(rgb)): name for name, rgb in COLOURS.items()}
    lit = image.any(-1)
    # Each shape keeps to one of two halves; other halves hold both, or parts.
    half = len(image) // 2
    whole = (slice(None), slice(None))
    for relation, parts in (
        ("left of", [(whole[0], slice(None, half)), (whole[0], slice(half, None))]),
        ("above", [(slice(None, half), whole[1]), (slice(half, None), whole[1])]),
    ):
        found = [shape_of(image[part], lit[part], colours) for part in parts]
        if all(found):
            return f"a {found[0]} {relation} a {found[1]}"
    raise AssertionError("no relation fits")


def shape_of(image, lit, colours):
    """Return colour and shape of the one whole shape in a picture, or None."""
    if not lit.any():
        return None
    rows, columns = np.flatnonzero(lit.any(1)), np.flatnonzero(lit.any(0))
    box = lit[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    found = {tuple(pixel) for pixel in image[lit]}
    if len(found) > 1 or box.shape[0] != box.shape[1] or not 7 <= len(box) <= 11:
        return None
    if box.all():
        shape = "square"
    elif box[-1].all() and box[0].sum() == 1:
        shape = "triangle"
    elif (box == box[::-1]).all() and (box == box.T).all() and not box[0, 0]:
        shape = "circle"
    else:
        return None
    return f"{colours[found.pop()]} {shape}"


@pytest.mark.parametrize("size", [24, 32, 41])
def test_caption_can_be_read_from_the_picture(size):
    images, scenes = data.scenes(300, fresh(), size=size)
    assert images.shape == (300, size, size, 3)
    assert images.dtype == np.float32
    assert [describe(image) for image in images] == [scene.caption for scene in scenes]
    assert len({scene.triple for scene in scenes}) == 24


def test_boxes_are_those_of_the_shapes():
    images, scenes = data.scenes(100, fresh())
    for image, scene in zip(images, scenes, strict=True):
        covered = np.zeros((32, 32), bool)
        for (top, left, bottom, right), (colour, _) in zip(
            scene.boxes, scene.objects, strict=True
        ):
            inside = image[top:bottom, left:right]
            own = (inside == np.float32(COLOURS[colour])).all(-1)
            assert own.any(0).all(), "a column of the box is empty"
            assert own.any(1).all(), "a row of the box is empty"
            assert not covered[top:bottom, left:right].any(), "the boxes overlap"
            covered[top:bottom, left:right] = True
        assert not image[~covered].any()


def test_held_out_triples_occur_in_the_test_alone():
    held_out = [("red", "circle", "above"), ("blue", "square", "left of")]
    _, training = data.scenes(1500, fresh(), held_out=held_out)
    _, test = data.scenes(200, fresh(), held_out=held_out, test=True)
    assert {scene.triple for scene in test} == set(held_out)
    seen = {scene.triple for scene in training}
    assert len(seen) == 22
    assert not seen & set(held_out)
    # All parts of what is held out occur, in each pair.
    for colour, shape, relation in held_out:
        assert any(t[:2] == (colour, shape) for t in seen)
        assert any((t[0], t[2]) == (colour, relation) for t in seen)
        assert any((t[1], t[2]) == (shape, relation) for t in seen)


def test_there_is_one_order_in_a_caption():
    assert set(RELATIONS) == {"left of", "above"}
    assert len(SHAPES) == 3


# ---------------------------------------------------------------- sunspots


def test_sunspots_are_the_figures_of_the_record():
    years, numbers = data.sunspots()
    assert_array_equal(years, np.arange(1700, 2009))
    assert numbers.shape == (309,)
    known = {1700: 5.0, 1712: 0.0, 1778: 154.4, 1957: 190.2, 1996: 8.6, 2008: 2.9}
    assert {year: numbers[year - 1700] for year in known} == known
    assert years[numbers.argmax()] == 1957
    power = np.abs(np.fft.rfft(numbers - numbers.mean()))
    assert len(numbers) / power.argmax() == pytest.approx(11, abs=0.3)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: data.copy(0, r, length=2, lag=2, V=3),
            "n must be a positive integer, got 0",
        ),
        (
            lambda r: data.copy(1, r, length=3, lag=2, V=3),
            "lag must be at least length = 3, got 2",
        ),
        (lambda r: data.reversal(1, r, length=0, V=3), "length must be a positive"),
        (lambda r: data.recall(1, r, lag=0, V=3), "lag must be a positive integer, got 0"),
        (lambda r: data.recall(1, r, lag=1, V=2.0), "V must be a positive integer, got 2.0"),
        (lambda r: data.adding(1, r, T=1), "T must be at least 2, .* got 1"),
        (lambda r: data.dyck(1, r, T=5), "T must be even, .* got 5"),
        (lambda r: data.dyck(1, r, T=4, max_depth=0), "max_depth must be a positive"),
        (lambda r: data.dyck_nats(4, pairs=0), "pairs must be a positive"),
        (lambda r: data.number_words(10_000, "en"), "number must be an integer .* got 10000"),
        (lambda r: data.number_words(-1, "de"), "number must be an integer .* got -1"),
        (lambda r: data.number_words(1.5, "fr"), "number must be an integer .* got 1.5"),
        (
            lambda r: data.number_words(1, "it"),
            "language must be 'en' or 'de' or 'fr', got 'it'",
        ),
        (
            lambda r: data.number_pairs(1, r, stop=10_001),
            "stop must be at most 10000, got 10001",
        ),
        (
            lambda r: data.number_pairs(1, r, stop=1, held_out=[(0, 0)]),
            r"held_out must leave a number .* got \[\(0, 0\)\]",
        ),
        (lambda r: data.number_pairs(1, r, test=True), "held_out must leave a number"),
        (lambda r: data.morse_keying("", r), "text must be words with single spaces .* got ''"),
        (lambda r: data.morse_keying("A  B", r), "text must be words with single spaces"),
        (lambda r: data.morse_keying("A?", r), r"text must hold only letters .* got '\?'"),
        (lambda r: data.morse_keying("A", r, wpm=0), r"wpm must lie in \(0, inf\], got 0"),
        (
            lambda r: data.morse_keying("A", r, jitter=1.0),
            r"jitter must lie in \[0, 1\), got 1.0",
        ),
        (lambda r: data.morse_audio("A", r, pitch=(9, 5)), "pitch must be two .* got .9, 5."),
        (lambda r: data.morse_audio("A", r, rate=1600), "pitch must stay below half .* 900.0"),
        (
            lambda r: data.morse_audio("A", r, bandwidth=2001),
            "bandwidth must lie in .* got 2001",
        ),
        (
            lambda r: data.morse_audio("A", r, fading=1.1),
            r"fading must lie in \[0, 1\], got 1.1",
        ),
        (lambda r: data.morse_audio("A", r, snr_db=math.nan), "snr_db must be .* got nan"),
        (lambda r: data.scenes(1, r, size=23), "size must be at least 24 .* got 23"),
        (
            lambda r: data.scenes(1, r, held_out=[("red", "cube", "above")]),
            r"held_out must hold triples .* got \('red', 'cube', 'above'\)",
        ),
        (
            lambda r: data.scenes(
                1, r, held_out=list(itertools.product(COLOURS, SHAPES, RELATIONS))
            ),
            "held_out must leave a triple to draw with test=False, got 24 of 24",
        ),
        (lambda r: data.scenes(1, r, test=True), "held_out must leave a triple"),
        (lambda r: data.stories(0, r), "n must be a positive integer, got 0"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call(fresh())
