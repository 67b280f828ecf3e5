"""The picture of README: attention with a mask, in three steps, computed by the library.

``python -m seqlib.experiments.picture`` draws it anew into ``book/_static/attention.svg``.
"""

from pathlib import Path

import numpy as np

from seqlib.experiments import style
from seqlib.np.attention import attention_weights
from seqlib.np.masks import causal_mask, padding_mask

PATH = Path(__file__).parents[2] / "book" / "_static" / "attention.svg"
TOKENS = ("the", "cat", "sat", "down", "pad")
WIDTH = 4


def steps(seed=3):
    """Return scores, mask and weights of the picture, each of shape (5, 5)."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 1, 1, len(TOKENS), WIDTH))
    mask = causal_mask(len(TOKENS)) + padding_mask(np.array([[t == "pad" for t in TOKENS]]))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH)
    return tuple(a[0, 0] for a in (scores, mask, attention_weights(q, k, mask=mask)))


def draw(path):
    """Write the picture as SVG; the same library gives the same bytes."""
    from matplotlib.figure import Figure

    style.use()
    scores, mask, weights = steps()
    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    names = (TOKENS, TOKENS)
    style.heat_map(left, scores, *names, shade=False, show=lambda v: f"{round(v, 1) + 0:.1f}")
    style.heat_map(middle, mask, *names, shade=False, show=lambda v: "0" if v == 0 else "-∞")
    style.heat_map(right, weights, *names, show=lambda v: f"{v:.2f}" if v else "0")
    left.set_title("scores  QKᵀ / √d_k")
    middle.set_title("+  mask  (causal + padding)")
    right.set_title("softmax  =  weights")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(PATH)
