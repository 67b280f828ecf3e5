"""Reading Morse code with a threshold: the decoder that the network must beat.

It does by rule what the network has to learn: smooth the power of the tone, call the key down
where the power is above a level, measure how long it is down and up, guess the speed, tell dots
from dashes and gaps inside letters from gaps between them, and look the letters up.

The level follows the fading, and the smoothing follows the speed. There are two forms: with one
speed for all recordings, as such decoders are usually set, and with the speed that fits the
lengths of each recording best. The settings of both are searched anew for each signal-to-noise
ratio.
"""

import itertools

import numpy as np

from seqlib.data.morse import MORSE_CODE
from seqlib.experiments.speech_audio import HOP, RATE, band, edit_distance

__all__ = ["FIXED", "SETTINGS", "read", "search"]

LETTERS = {code: letter for letter, code in MORSE_CODE.items()}


def frames(wpm):
    """Return how many frames a dot lasts at a speed in words a minute."""
    return 1.2 / wpm * RATE / HOP


UNITS = [frames(wpm) for wpm in np.geomspace(12, 28, 9)]
AROUND = 40  # frames before and behind, over which the strength of the tone is looked up

# smoothing and shortest length in dots; level over the noise, and as a share of the tone
SETTINGS = tuple(
    {"smoothing": a, "over_noise": b, "of_tone": c, "shortest": d}
    for a, b, c, d in itertools.product(
        (0.4, 0.6, 0.8), (1.5, 2.0, 2.5, 3.0), (0.1, 0.2, 0.35), (0.3, 0.5)
    )
)

# The same with one speed for all recordings, in words a minute
FIXED = tuple({**chosen, "wpm": wpm} for chosen in SETTINGS for wpm in (16, 20, 24))


def read(power, *, smoothing, over_noise, of_tone, shortest, wpm=None):
    """Read the text of a spectrogram.

    Parameters
    ----------
    power : ndarray of shape (T, F)
        As from :func:`seqlib.experiments.speech_audio.spectrogram`.
    smoothing : float
        Length in dots over which the power is averaged.
    over_noise, of_tone : float
        The key is down where the power is above both ``over_noise`` times the noise and
        ``of_tone`` times the strength of the tone nearby.
    shortest : float
        Stretches shorter than this, in dots, are taken for noise.
    wpm : float, optional
        Speed in words a minute; guessed for each recording if omitted.

    Returns
    -------
    str
        The text; a sign that no letter has is "?".
    """
    return _read(_Tone(power), smoothing, over_noise, of_tone, shortest, wpm)


def search(powers, texts, settings=SETTINGS):
    """Return the settings with the fewest mistakes on some recordings."""
    tones = [_Tone(power) for power in powers]

    def mistakes(chosen):
        return sum(
            edit_distance(_read(tone, **chosen), text)
            for tone, text in zip(tones, texts, strict=True)
        )

    return min(settings, key=mistakes)


class _Tone:
    """The power of the tone of a recording, smoothed as often as it is asked for, but once."""

    def __init__(self, power):
        column, self.noise = band(power)
        self.power, self.smoothed = power[:, column], {}

    def smooth(self, width):
        """Return the power averaged over ``width`` frames, and the strength of the tone."""
        if width not in self.smoothed:
            smooth = np.convolve(self.power, np.ones(width) / width, mode="same")
            self.smoothed[width] = smooth, _strength(smooth)
        return self.smoothed[width]


def _read(tone, smoothing, over_noise, of_tone, shortest, wpm=None):
    best = None
    for unit in UNITS if wpm is None else [frames(wpm)]:
        smooth, strength = tone.smooth(max(1, round(smoothing * unit)))
        down = smooth > np.maximum(over_noise * tone.noise, of_tone * strength)
        lengths, down = stretches(down, shortest * unit)
        if not len(lengths):
            continue
        # In dots all lengths are 1 or 3: how far are they from that, as a ratio?
        distance = np.abs(np.log(lengths / unit)[:, None] - np.log([1, 3]))
        misfit = distance.min(axis=1).mean()
        if best is None or misfit < best[0]:
            best = misfit, unit, lengths, down
    return "" if best is None else _look_up(*best[1:])


def stretches(down, shortest):
    """Return the lengths of the stretches of a keying, and whether the key is down in each.

    Silence at both ends is left out, and short stretches inside are joined with those around.

    >>> stretches(np.array([0, 1, 1, 0, 1, 1, 1, 0]) == 1, 1.5)
    (array([6]), array([ True]))
    """
    changes = np.flatnonzero(np.diff(down)) + 1
    edges = np.concatenate([[0], changes, [len(down)]])
    lengths, down = np.diff(edges), down[edges[:-1]]
    while len(lengths) > 2 and lengths[1:-1].min() < shortest:
        i = 1 + int(lengths[1:-1].argmin())
        joined = lengths[i - 1 : i + 2].sum()
        lengths = np.concatenate([lengths[: i - 1], [joined], lengths[i + 2 :]])
        down = np.concatenate([down[:i], down[i + 2 :]])
    kept = slice(int(not down[0]), len(down) - int(not down[-1]))
    return lengths[kept], down[kept]


def _strength(power):
    """Return the power that a fifth of the frames around each frame exceed, or nearly so."""
    padded = np.pad(power, AROUND, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND + 1)[::10]
    high = np.partition(windows, -AROUND // 5, axis=1)[:, -AROUND // 5]
    return np.interp(np.arange(len(power)), 10 * np.arange(len(windows)), high)


def _look_up(unit, lengths, down):
    text, sign = "", ""
    for length, is_down in zip(lengths, down, strict=True):
        long = length > 2 * unit
        if is_down:
            sign += "-" if long else "."
        elif long:
            text, sign = text + LETTERS.get(sign, "?"), ""
    return text + LETTERS.get(sign, "?")
