r"""Why the scores are divided by the root of d_k: the gradient with and without.

One query meets ``keys`` keys; all their entries are standard normal, and so is the gradient
that arrives at the attention weights.
The score of a key is the inner product, whose variance is d_k: for d_k = 64 a typical score
is 8, and a softmax of numbers that far apart puts nearly all weight on one key.
Measured are, over many draws, the norms of the gradient at two places: at the input of the
softmax (``score``) and at the query (``q``).
"""

import numpy as np

from seqlib.np.activation import softmax_backward

INPUTS = {"draws": 2000, "keys": 8, "widths": [4, 16, 64, 256, 1024]}
# A seed draws each width afresh, so fewer widths leave the numbers of the others unchanged.
REDUCED = {**INPUTS, "widths": [4, 64]}
SEEDS = (0, 1, 2, 3, 4)
TOLERANCE = {"rtol": 1e-6, "atol": 0.0}


def run(inputs, seed):
    """Return ``median``, ``mean``, ``p99`` and the share of draws below 0.001.

    Parameters
    ----------
    inputs : dict
        ``draws``, ``keys`` and ``widths`` as in ``INPUTS``.
    seed : int
        Seed of the repetition.

    Returns
    -------
    dict
        ``[scale][place][statistic][width]`` with ``scale`` in ``raw``, ``scaled`` and
        ``place`` in ``score``, ``q``; the widths are strings, as JSON has them.
    """
    found = {}
    for width in inputs["widths"]:
        rng = np.random.default_rng([seed, width])
        q = rng.standard_normal((inputs["draws"], 1, width))
        k = rng.standard_normal((inputs["draws"], inputs["keys"], width))
        dweights = rng.standard_normal((inputs["draws"], 1, inputs["keys"]))
        for name, scale in (("raw", 1.0), ("scaled", 1 / np.sqrt(width))):
            dscore, dq = gradients(q, k, dweights, scale)
            for place, gradient in (("score", dscore), ("q", dq)):
                for statistic, value in summary(gradient).items():
                    row = found.setdefault(name, {}).setdefault(place, {})
                    row.setdefault(statistic, {})[str(width)] = value
    return found


def gradients(q, k, dweights, scale):
    """Return the gradients at the softmax's input and at the query, of ``(B, 1, ...)``."""
    dscore = softmax_backward(dweights, scale * q @ np.swapaxes(k, -1, -2))
    return dscore, scale * dscore @ k


def summary(gradient):
    """Return the statistics of the norms over the last axis."""
    norm = np.linalg.norm(gradient, axis=-1)
    return {
        "median": float(np.median(norm)),
        "mean": float(norm.mean()),
        "p99": float(np.quantile(norm, 0.99)),
        "tiny": float((norm < 1e-3).mean()),
    }


def plot(record):
    """Draw the three statistics against d_k, at the score and at q; return the figure."""
    import matplotlib.pyplot as plt

    from seqlib.experiments import style

    widths = [int(width) for width in record["inputs"]["widths"]]
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True, layout="constrained")
    for axis, place in zip(axes, ("score", "q"), strict=True):
        for scale, color in (("raw", style.ORANGE), ("scaled", style.BLUE)):
            for statistic, dash in (("median", "o-"), ("mean", "s--"), ("p99", "^:")):
                values = record["results"][scale][place][statistic].values()
                axis.plot(
                    widths,
                    list(values),
                    dash,
                    color=color,
                    label=f"{'without' if scale == 'raw' else 'with'} the factor, {statistic}",
                )
        axis.set(xscale="log", yscale="log", xticks=widths, xticklabels=widths)
        axis.minorticks_off()
        axis.set(xlabel="width d_k of a key", title=f"gradient at the {NAMES[place]}")
    axes[0].set_ylabel("norm of the gradient")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


NAMES = {"score": "score", "q": "query"}
