r"""Reading Morse code from noisy audio: a recurrent network with CTC beside a threshold.

An LSTM reads the spectrogram of a recording in both directions, five frames a step, and gives
at each step probabilities over 36 letters and digits and a blank; the loss is that of
:mod:`seqlib.experiments.ctc`, computed by PyTorch. Texts are random, so nothing can be guessed
from the letters before. Training goes from single letters to longer texts and weaker signals:
letters alone have one place each, and a network that reads them has less to search for. The
recordings of a stage are made once, without noise; each time one is read, noise of another
strength is added. Sums of pieces are linear in the audio, so it is added to them.

The result is the character error, edit distance over length, of fresh recordings at each
signal-to-noise ratio, for the network and for both forms of
:mod:`seqlib.experiments.speech_threshold`, whose settings are searched anew for each ratio on
recordings of their own. All get the same audio and take the tone from the same column of the
spectrogram.

The committed weights are those of seed 0, in hundredths, as they are measured.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from seqlib.data import morse_audio, morse_texts
from seqlib.experiments import ctc, speech_threshold
from seqlib.experiments.speech_audio import (
    ALPHABET,
    STACK,
    band,
    edit_distance,
    features,
    noise_level,
    recordings,
    spectrogram,
    stack,
    transform,
)
from seqlib.experiments.training import make_update, seeded
from seqlib.experiments.weights import load_into

INPUTS = {
    "units": 64,
    "rate": 0.01,
    "batch": 32,
    "stages": [
        {"recordings": 3000, "length": 1, "snr_db": [4, 20], "updates": 900},
        {"recordings": 6000, "length": 4, "snr_db": [2, 16], "updates": 2900},
        {"recordings": 1500, "length": 8, "snr_db": [1, 13], "updates": 300},
    ],
    "small": [{"recordings": 100, "length": 1, "snr_db": [10, 10], "updates": 150}],
    "snr_db": [-10, -5, 0, 2.5, 5, 6, 7, 8, 10],
    "length": 8,
    "fresh": 150,
    "searched": 30,
    "parts": ["small", "threshold", "network"],
}
REDUCED = {**INPUTS, "snr_db": [7], "parts": ["small", "threshold"]}
SEEDS = (0, 1, 2, 3, 4)
# Another processor's rounding may move a few of 1200 characters.
TOLERANCE = {"rtol": 2e-3, "atol": 4e-3}
PACKAGES = ("numpy", "torch")

NOISE = 1_600_000  # samples of noise, of which pieces are taken
WIDTH = 3 * STACK  # the tone and its two neighbours
STEP = 0.01  # the weights are multiples of this
NAMES = {
    "fixed": "threshold, one speed",
    "threshold": "threshold, speed guessed",
    "network": "network",
}
RULES = {"fixed": speech_threshold.FIXED, "threshold": speech_threshold.SETTINGS}


class Reader(nn.Module):
    """An LSTM in each direction, and a linear map from both states to 37 scores.

    Parameters
    ----------
    units : int
        Size of the state of each direction.
    """

    def __init__(self, units):
        super().__init__()
        self.ahead = nn.LSTM(WIDTH, units, batch_first=True)
        self.back = nn.LSTM(WIDTH, units, batch_first=True)
        self.head = nn.Linear(2 * units, 1 + len(ALPHABET))
        forget = slice(units, 2 * units)
        with torch.no_grad():
            for layer in (self.ahead, self.back):
                layer.bias_ih_l0[forget], layer.bias_hh_l0[forget] = 1.0, 0.0

    def forward(self, x, lengths):
        """Return log-probabilities ``(B, T, 37)`` for ``x (B, T, 15)``, padded on the right."""
        steps = torch.arange(x.shape[1])
        last = lengths[:, None] - 1
        # Real steps in reverse order, padding where it was: it is read last in both directions.
        order = torch.where(steps <= last, last - steps, steps)[..., None]
        back, _ = self.back(x.gather(1, order.expand_as(x)))
        states = [self.ahead(x)[0], back.gather(1, order.expand_as(back))]
        return self.head(torch.cat(states, dim=-1)).log_softmax(dim=-1)


def run(inputs, seed):
    """Return the character errors of all decoders by signal-to-noise ratio.

    Parameters
    ----------
    inputs : dict
        As ``INPUTS``; ``parts`` says what is computed.
    seed : int
        Seed of the weights and of all recordings.

    Returns
    -------
    dict
        ``error[decoder][snr_db]``, ``settings[decoder][snr_db]`` of the threshold decoders,
        ``network["loss"]`` and ``network["parameters"]``, and ``small["loss"]``, the loss of a
        training of a second.
    """
    found = {"error": {}}
    if "small" in inputs["parts"]:
        _, losses = train({**inputs, "stages": inputs["small"], "units": 16}, seed)
        found["small"] = {"loss": float(np.mean(losses[-10:]))}
    if "threshold" in inputs["parts"]:
        found["settings"] = {}
        for decoder, settings in RULES.items():
            found["settings"][decoder], found["error"][decoder] = {}, {}
            for snr_db in inputs["snr_db"]:
                chosen, error = _threshold(settings, inputs, seed, snr_db)
                found["settings"][decoder][str(snr_db)] = chosen
                found["error"][decoder][str(snr_db)] = error
    if "network" in inputs["parts"]:
        model, losses = train(inputs, seed)
        count = sum(p.numel() for p in model.parameters())
        found["network"] = {"parameters": count, "loss": float(np.mean(losses[-100:]))}
        found["error"]["network"] = {
            str(snr_db): error_of(model, fresh(inputs, seed, snr_db))
            for snr_db in inputs["snr_db"]
        }
    return found


def fresh(inputs, seed, snr_db, *, searching=False):
    """Return the recordings that are measured, or others to search settings with."""
    rng = np.random.default_rng([seed, int(10 * snr_db) + 1000, int(searching)])
    n = inputs["searched" if searching else "fresh"]
    return list(recordings(n, rng, length=inputs["length"], snr_db=(snr_db, snr_db)))


def _threshold(settings, inputs, seed, snr_db):
    searched = fresh(inputs, seed, snr_db, searching=True)
    texts, audio = zip(*searched, strict=True)
    chosen = speech_threshold.search([spectrogram(a) for a in audio], texts, settings)
    measured = fresh(inputs, seed, snr_db)
    mistakes = sum(
        edit_distance(speech_threshold.read(spectrogram(a), **chosen), text)
        for text, a in measured
    )
    return chosen, mistakes / sum(len(text) for text, _ in measured)


# ---------------------------------------------------------------- training


def train(inputs, seed):
    """Train on all stages in turn; return the model, rounded to hundredths, and the losses.

    The rate rises over 50 updates, and falls in a line to 0 over the second half of all.
    """
    rng = np.random.default_rng(seed)
    with seeded(seed):
        model = Reader(inputs["units"])
    optimizer = torch.optim.Adam(model.parameters(), lr=inputs["rate"])
    total, losses = sum(stage["updates"] for stage in inputs["stages"]), []
    for stage in inputs["stages"]:
        clean = Recordings(stage, rng)
        for _ in range(stage["updates"]):
            x, lengths, targets = batch(clean.draw(inputs["batch"], rng))
            rate = min((len(losses) + 1) / 50, 1, 2 * (1 - len(losses) / total))
            loss = _loss(model(x, lengths), lengths, targets)
            losses.append(make_update(model, optimizer, loss, rate=rate * inputs["rate"]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.round(100 * parameter) / 100)
    return model, losses


def shown_model(inputs, seed):
    """Return the trained model that the chapter shows."""
    return train(inputs, seed)[0]


def load_model():
    """Return the committed model of the chapter, ready to read."""
    return load_into("speech", Reader(INPUTS["units"]))


class Recordings:
    """The recordings of a stage: made once without noise, which is added when they are drawn.

    Parameters
    ----------
    stage : dict
        With ``recordings``, how many, the ``length`` of a text, and ``snr_db``, the range of
        the signal-to-noise ratio.
    rng : numpy.random.Generator
        Source of the recordings and of the noise.
    """

    def __init__(self, stage, rng):
        self.snr_db, self.clean = stage["snr_db"], []
        for text in morse_texts(stage["recordings"], rng, length=stage["length"]):
            audio = morse_audio(text, rng, snr_db=np.inf)
            amplitudes = transform(audio).astype(np.complex64)
            column, _ = band(np.abs(amplitudes) ** 2)
            self.clean.append((amplitudes[:, column - 1 : column + 2], text))
        # In order of length, so that the recordings of a batch need little padding.
        self.clean.sort(key=lambda pair: len(pair[0]))
        noise = transform(rng.standard_normal(NOISE)).astype(np.complex64)
        self.noise = noise / np.sqrt(np.mean(np.abs(noise) ** 2))

    def draw(self, n, rng):
        """Return features and texts of n recordings of similar length, each with new noise."""
        start = rng.integers(len(self.clean) - n + 1)
        return [
            (self._with_noise(amplitudes, rng), text)
            for amplitudes, text in self.clean[start : start + n]
        ]

    def _with_noise(self, amplitudes, rng):
        level = noise_level(rng.uniform(*self.snr_db))
        frame = rng.integers(len(self.noise) - len(amplitudes) + 1)
        column = rng.integers(self.noise.shape[1] - 2)
        noise = self.noise[frame : frame + len(amplitudes), column : column + 3]
        return stack(np.abs(amplitudes + np.sqrt(level) * noise) ** 2, level)


def batch(read):
    """Return features ``(B, T, 15)``, padded with 0, lengths and targets ``(B, L)``."""
    lengths = [len(x) for x, _ in read]
    x = np.zeros((len(read), max(lengths), read[0][0].shape[1]), dtype=np.float32)
    for row, (levels, _) in zip(x, read, strict=True):
        row[: len(levels)] = levels
    targets = [[1 + ALPHABET.index(letter) for letter in text] for _, text in read]
    return torch.from_numpy(x), torch.tensor(lengths), torch.tensor(targets)


def _loss(log_p, lengths, targets):
    """Return nats per character."""
    labels = torch.full((len(targets),), targets.shape[1])
    total = F.ctc_loss(log_p.transpose(0, 1), targets, lengths, labels, reduction="sum")
    return total / targets.numel()


# ---------------------------------------------------------------- reading


@torch.no_grad()
def read(model, audio):
    """Return the texts of some recordings by their best paths."""
    found = []
    for start in range(0, len(audio), 50):
        some = [(features(a), "") for a in audio[start : start + 50]]
        x, lengths, _ = batch(some)
        for scores, length in zip(model(x, lengths).numpy(), lengths, strict=True):
            labels = ctc.best_path(scores[:length])
            found.append("".join(ALPHABET[label - 1] for label in labels))
    return found


def error_of(model, measured):
    """Return the edit distances over the lengths of all texts together."""
    texts, audio = zip(*measured, strict=True)
    mistakes = sum(map(edit_distance, read(model, audio), texts))
    return mistakes / sum(map(len, texts))


def plot(record):
    """Draw the character error against the signal-to-noise ratio; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    ratios = record["inputs"]["snr_db"]
    figure, axis = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for decoder, mark, color in (
        ("fixed", "^:", style.PURPLE),
        ("threshold", "s--", style.ORANGE),
        ("network", "o-", style.BLUE),
    ):
        errors = [list(seed["error"][decoder].values()) for seed in record["by_seed"]]
        axis.plot(ratios, np.mean(errors, axis=0), mark, color=color, label=NAMES[decoder])
        axis.vlines(ratios, np.min(errors, axis=0), np.max(errors, axis=0), color=color)
    axis.axhline(0.03, color=style.TEXT, linestyle=":", label="3 %")
    axis.set(xlabel="signal-to-noise ratio in dB, noise of 500 Hz", ylabel="character error")
    axis.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    axis.set(ylim=(0, None))
    axis.legend()
    return figure
