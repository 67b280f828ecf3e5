"""Morse code as audio: speech recognition small enough to train on one processor core."""

import numpy as np

from seqlib._check import check_positive

__all__ = ["MORSE_CODE", "morse_audio", "morse_keying", "morse_texts"]

_TABLE = """
A=.-    B=-...  C=-.-.  D=-..   E=.     F=..-.  G=--.   H=....  I=..    J=.---  K=-.-   L=.-..
M=--    N=-.    O=---   P=.--.  Q=--.-  R=.-.   S=...   T=-     U=..-   V=...-  W=.--   X=-..-
Y=-.--  Z=--..  0=----- 1=.---- 2=..--- 3=...-- 4=....- 5=..... 6=-.... 7=--... 8=---.. 9=----.
"""
MORSE_CODE = dict(entry.split("=") for entry in _TABLE.split())

# Lengths in units of a dot (ITU-R M.1677-1, part I).
DOT, DASH, INSIDE, BETWEEN_LETTERS, BETWEEN_WORDS = 1, 3, 1, 3, 7


def morse_texts(n, rng, *, length):
    """Draw random texts for :func:`morse_audio`.

    Letters and digits are independent and equally likely, so that no language model helps.

    Parameters
    ----------
    n : int
        Number of texts.
    rng : numpy.random.Generator
        Source of the characters.
    length : int
        Characters of a text.

    Returns
    -------
    list of str
        The texts.
    """
    check_positive("n", n)
    check_positive("length", length)
    return ["".join(row) for row in rng.choice(list(MORSE_CODE), size=(n, length))]


def morse_keying(text, rng, *, rate=4000, wpm=20.0, jitter=0.2):
    """Return when the key is down while a text is sent.

    A dot lasts 1.2 / wpm seconds, 60 milliseconds at 20 words a minute: the word PARIS with
    the gap behind it has 50 dots. A dash lasts 3 dots; the gaps inside a letter 1, between
    letters 3, between words 7.

    Parameters
    ----------
    text : str
        Letters A to Z in either case, digits, and single spaces between words.
    rng : numpy.random.Generator
        Source of the jitter.
    rate : int, default=4000
        Samples per second.
    wpm : float, default=20.0
        Speed in words a minute.
    jitter : float, default=0.2
        Each length is multiplied by its own uniform number from 1 - jitter to 1 + jitter, as
        by a human hand.

    Returns
    -------
    ndarray of bool of shape (T,)
        True where the key is down. It starts and ends with the gap between letters.

    Raises
    ------
    ValueError
        If the text has another character, or a number is out of range.
    """
    _check_text(text)
    check_positive("rate", rate)
    _check_range("wpm", wpm, 0, np.inf)
    if not 0 <= jitter < 1:
        raise ValueError(f"jitter must lie in [0, 1), got {jitter}")
    units, down = [BETWEEN_LETTERS], [False]
    for word in text.upper().split(" "):
        for letter in word:
            for sign in MORSE_CODE[letter]:
                units += [DOT if sign == "." else DASH, INSIDE]
                down += [True, False]
            units[-1] = BETWEEN_LETTERS
        units[-1] = BETWEEN_WORDS
    units[-1] = BETWEEN_LETTERS
    seconds = 1.2 / wpm * np.array(units) * rng.uniform(1 - jitter, 1 + jitter, len(units))
    ends = np.round(np.cumsum(seconds) * rate).astype(int)  # no rounding errors add up
    return np.repeat(down, np.diff(ends, prepend=0))


def morse_audio(
    text,
    rng,
    *,
    rate=4000,
    snr_db=10.0,
    bandwidth=500.0,
    wpm=(12.0, 28.0),
    pitch=(400.0, 900.0),
    jitter=0.2,
    fading=0.7,
):
    r"""Send a text as a keyed tone through a fading, noisy channel.

    .. math:: a(t) = k(t) \, \bigl(1 - \tfrac{f}{2} (1 + \sin(2 \pi u t + \varphi))\bigr)
        \sin(2 \pi p t + \psi) + \sigma \, n(t)

    where k is the keying with edges rounded over 5 ms, f the depth of the fading, u its rate,
    drawn between 0.1 and 0.5 Hz, p the pitch, and n white noise of variance 1.

    The signal-to-noise ratio compares the tone at full strength, of power 1/2, with the part
    of the noise that falls into ``bandwidth``. White noise spreads evenly up to rate / 2, so
    sigma^2 = 1/2 / 10^(snr_db / 10) * (rate / 2) / bandwidth: at 0 dB, 500 Hz and a rate of
    4000 a second, sigma^2 = 2.

    Parameters
    ----------
    text : str
        As in :func:`morse_keying`.
    rng : numpy.random.Generator
        Source of speed, pitch, phases, jitter, fading and noise.
    rate : int, default=4000
        Samples per second.
    snr_db : float, default=10.0
        Signal-to-noise ratio in decibels; ``inf`` for no noise.
    bandwidth : float, default=500.0
        Band in hertz in which the noise is counted.
    wpm, pitch : tuple of two floats
        Least and largest speed in words a minute, and pitch in hertz. One of each is drawn
        for the whole text.
    jitter : float, default=0.2
        As in :func:`morse_keying`.
    fading : float, default=0.7
        Depth of the fading: the tone falls to 1 - fading of its strength. 0 for none.

    Returns
    -------
    ndarray of shape (T,)
        Audio, in float32.

    Raises
    ------
    ValueError
        If the text has another character, or a number is out of range.
    """
    check_positive("rate", rate)
    for name, (low, high) in (("wpm", wpm), ("pitch", pitch)):
        if not 0 < low <= high:
            raise ValueError(f"{name} must be two positive numbers in order, got {low, high}")
    if pitch[1] >= rate / 2:
        raise ValueError(
            f"pitch must stay below half the rate of {rate}, got {pitch[1]}; a higher tone "
            "would be heard as a lower one"
        )
    _check_range("bandwidth", bandwidth, 0, rate / 2)
    if not snr_db > -np.inf:
        raise ValueError(f"snr_db must be a number or inf, got {snr_db}")
    if not 0 <= fading <= 1:
        raise ValueError(f"fading must lie in [0, 1], got {fading}")
    speed, tone = rng.uniform(*wpm), rng.uniform(*pitch)
    key = morse_keying(text, rng, rate=rate, wpm=speed, jitter=jitter).astype(float)
    edge = np.hanning(int(0.005 * rate) + 2)[1:-1]  # a sudden edge would click at every pitch
    key = np.convolve(key, edge / edge.sum(), mode="same")
    t = np.arange(len(key)) / rate
    phases, slow = rng.uniform(0, 2 * np.pi, 2), rng.uniform(0.1, 0.5)
    strength = 1 - fading / 2 * (1 + np.sin(2 * np.pi * slow * t + phases[0]))
    noise_power = 0.5 / 10 ** (snr_db / 10) * (rate / 2) / bandwidth
    audio = key * strength * np.sin(2 * np.pi * tone * t + phases[1])
    audio += np.sqrt(noise_power) * rng.standard_normal(len(t))
    return audio.astype(np.float32)


def _check_text(text):
    if not text or "" in text.split(" "):
        raise ValueError(f"text must be words with single spaces between, got {text!r}")
    unknown = sorted(set(text.upper()) - set(MORSE_CODE) - {" "})
    if unknown:
        raise ValueError(
            f"text must hold only letters A to Z, digits and spaces, got {unknown[0]!r}"
        )


def _check_range(name, value, low, high):
    if not low < value <= high:
        raise ValueError(f"{name} must lie in ({low}, {high}], got {value}")
