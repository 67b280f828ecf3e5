"""The picture of README: attention with a mask, in three steps, computed by the library.

``python -m seqlib.experiments.picture`` draws it anew into ``book/_static/attention.svg``, and
for narrow screens, with one table below the other, into ``attention-narrow.svg`` beside it.
"""

from pathlib import Path

import numpy as np

from seqlib.experiments import style
from seqlib.np.attention import attention_weights
from seqlib.np.masks import causal_mask, padding_mask

PATH = Path(__file__).parents[2] / "book" / "_static" / "attention.svg"
NARROW = PATH.with_name("attention-narrow.svg")
TOKENS = ("the", "cat", "sat", "down", "pad")
WIDTH = 4


def steps(seed=3):
    """Return scores, mask and weights of the picture, each of shape (5, 5)."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 1, 1, len(TOKENS), WIDTH))
    mask = causal_mask(len(TOKENS)) + padding_mask(np.array([[t == "pad" for t in TOKENS]]))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH)
    return tuple(a[0, 0] for a in (scores, mask, attention_weights(q, k, mask=mask)))


def draw(path, *, narrow=False):
    """Write the picture as SVG; the same library gives the same bytes.

    Parameters
    ----------
    path : str or Path
        Where to write it.
    narrow : bool, default=False
        Whether the tables stand below each other, as wide as a phone.
    """
    from matplotlib.figure import Figure

    style.use()
    scores, mask, weights = steps()
    size, shape = ((3.7, 6.0), (3, 1)) if narrow else ((8.4, 3.1), (1, 3))
    figure = Figure(figsize=size, layout="constrained")
    axes = left, middle, right = figure.subplots(*shape)
    names = (TOKENS, TOKENS)
    style.heat_map(left, scores, *names, shade=False, show=lambda v: f"{round(v, 1) + 0:.1f}")
    style.heat_map(middle, mask, *names, shade=False, show=lambda v: "0" if v == 0 else "-∞")
    style.heat_map(right, weights, *names, show=lambda v: f"{v:.2f}" if v else "0")
    left.set_title("scores  QKᵀ / √d_k")
    middle.set_title("+  mask  (causal + padding)")
    right.set_title("softmax  =  weights")
    if narrow:  # low tables, so that all three fit on a screen
        figure.get_layout_engine().set(hspace=0.1)
        for axis in axes:
            axis.set_aspect("auto")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(PATH)
    draw(NARROW, narrow=True)
