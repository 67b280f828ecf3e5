"""From Morse audio to what a network reads, and to what a browser plays."""

import base64
import io
import wave

import numpy as np

from seqlib._check import check_shape
from seqlib.data import morse_audio, morse_texts
from seqlib.data.morse import MORSE_CODE

__all__ = [
    "ALPHABET",
    "band",
    "edit_distance",
    "features",
    "player",
    "recordings",
    "spectrogram",
]

RATE = 4000  # samples a second
WINDOW, HOP = 128, 40  # samples: 32 and 10 ms
STACK = 5  # frames that the network reads at once
LOW, HIGH = 370.0, 940.0  # Hz: the pitches of the generator and a little around
ALPHABET = "".join(sorted(MORSE_CODE))  # label 1 is the first of it, 0 is the blank of CTC


def transform(audio):
    r"""Return the complex amplitudes of short pieces of audio by frequency.

    .. math:: X_{tf} = \sum_n w_n \, a_{tH + n} \, e^{-2 \pi i f n / N}

    with pieces of N = 128 samples (32 ms) that start every H = 40 (10 ms) and the window
    :math:`w_n = \sin^2(\pi n / N)`. Frequencies lie 4000 / 128 = 31.25 Hz apart.

    Parameters
    ----------
    audio : ndarray of shape (n,)
        Samples, 4000 a second.

    Returns
    -------
    ndarray of complex of shape (T, F)
        The amplitudes of those frequencies that Morse tones may have.

    Raises
    ------
    ValueError
        If the audio is shorter than a piece.
    """
    check_shape("audio", audio, ("n",))
    if len(audio) < WINDOW:
        raise ValueError(f"audio must have at least {WINDOW} samples, got {len(audio)}")
    pieces = np.lib.stride_tricks.sliding_window_view(audio, WINDOW)[::HOP]
    return np.fft.rfft(pieces * _window(), axis=1)[:, _kept()]


def spectrogram(audio):
    r"""Return the power of short pieces of audio by frequency, :math:`P = |X|^2`.

    Parameters
    ----------
    audio : ndarray of shape (n,)
        As in :func:`transform`.

    Returns
    -------
    ndarray of shape (T, F)
        The power.
    """
    return np.abs(transform(audio)) ** 2


def noise_level(snr_db):
    """Return the mean power in a column of the noise that a signal-to-noise ratio stands for.

    The tone at full strength has the power 1/2, and the ratio counts noise of 500 Hz out of
    the 2000 Hz that there are (:func:`seqlib.data.morse_audio`). A piece adds up noise with
    the squares of its window.
    """
    return 0.5 / 10 ** (snr_db / 10) * (RATE / 2) / 500.0 * (_window() ** 2).sum()


def frequencies():
    """Return the frequencies of the columns of a spectrogram, in Hz."""
    return np.fft.rfftfreq(WINDOW, 1 / RATE)[_kept()]


def _window():
    return np.sin(np.pi * np.arange(WINDOW) / WINDOW) ** 2


def _kept():
    every = np.fft.rfftfreq(WINDOW, 1 / RATE)
    return (every >= LOW) & (every <= HIGH)


def band(power):
    """Find the tone in a spectrogram: the column with the most power, and the level of noise.

    Parameters
    ----------
    power : ndarray of shape (T, F)
        A spectrogram.

    Returns
    -------
    column : int
        Where the tone is, never the first or the last.
    noise : float
        Mean power of noise in a column, from the median of all columns but those next to the
        tone: the power of noise has an exponential distribution, whose median is ln 2 times
        its mean.
    """
    column = int(np.clip(power.mean(axis=0).argmax(), 1, power.shape[1] - 2))
    others = np.abs(np.arange(power.shape[1]) - column) > 2
    return column, float(np.median(power[:, others]) / np.log(2))


def features(audio):
    """Return what the network reads: the tone and its two neighbours, five frames a step.

    Parameters
    ----------
    audio : ndarray of shape (n,)
        Samples, 4000 a second.

    Returns
    -------
    ndarray of shape (T, 15)
        Half the logarithm of power over noise, one row for each 50 ms, in float32.
    """
    power = spectrogram(audio)
    column, noise = band(power)
    return stack(power[:, column - 1 : column + 2], noise)


def stack(power, noise):
    """Return the features of the power of three columns, as :func:`features` does."""
    # Without noise its level is 0 or next to it: the small numbers keep the logarithm finite.
    levels = 0.5 * np.log(power / (noise + 1e-9) + 1e-2)
    steps = len(levels) // STACK
    return levels[: steps * STACK].reshape(steps, -1).astype(np.float32)


def recordings(n, rng, *, length, snr_db):
    """Draw texts and record them, one after the other.

    Parameters
    ----------
    n : int
        Number of recordings.
    rng : numpy.random.Generator
        Source of texts, speeds, pitches, jitter, fading and noise.
    length : int
        Characters of a text.
    snr_db : tuple of two floats
        Range of the signal-to-noise ratio, in 500 Hz; one is drawn for each recording.

    Yields
    ------
    (str, ndarray)
        A text and its audio.
    """
    for text in morse_texts(n, rng, length=length):
        yield text, morse_audio(text, rng, snr_db=rng.uniform(*snr_db))


def edit_distance(a, b):
    """Return the least number of insertions, deletions and replacements from a to b.

    >>> edit_distance("SOS", "SMS"), edit_distance("EE", "I")
    (1, 2)
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
            diagonal, row[j] = row[j], best
    return row[-1]


def player(audio, label):
    """Return an audio element that holds the sound itself, as a page shows it.

    Parameters
    ----------
    audio : ndarray of shape (n,)
        Samples, 4000 a second; the loudest one becomes full scale.
    label : str
        What a reader who cannot see the element is told.

    Returns
    -------
    str
        HTML, with 16-bit samples inside.
    """
    loudest = max(float(np.abs(audio).max()), 1e-9)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes((0.9 * 32767 * audio / loudest).astype("<i2").tobytes())
    data = base64.b64encode(file.getvalue()).decode()
    return f'<audio controls aria-label="{label}" src="data:audio/wav;base64,{data}"></audio>'
