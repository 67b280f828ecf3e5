r"""What attention costs in processor time, beside what is counted.

One head of float32 attention is timed for several lengths n and widths d, and the times are
fitted by :math:`t = a n^2 + b n^2 d`: the softmax and the moving of the weights do not depend
on the width, the two products do. The fit minimises the sum of squared relative errors.

Processor time is that of all threads together, so other work on the machine does not enter it.
A time belongs to the machine that it was measured on, and so do a and b. Without repetitions
``run`` only counts, which is what a test computes again.
"""

import time

import numpy as np

from seqlib.complexity import attention_cost
from seqlib.np.attention import scaled_dot_product_attention

INPUTS = {"lengths": [256, 512, 1024], "widths": [16, 32, 64, 128, 256], "repeats": 60}
REDUCED = {**INPUTS, "repeats": 0}
SEEDS = (0, 1, 2, 3, 4)
TOLERANCE = {"rtol": 1e-9, "atol": 0.0}


def run(inputs, seed):
    """Return the operations counted and, with repetitions, the times and their fit.

    Parameters
    ----------
    inputs : dict
        ``lengths``, ``widths`` and ``repeats``, of which the fastest counts.
    seed : int
        Seed of the repetition.

    Returns
    -------
    dict
        ``flops[n][d]``; ``milliseconds[n][d]``; ``fit`` with ``a`` and ``b`` in nanoseconds,
        the width ``even`` at which both terms are equal, and the largest relative ``error``;
        ``exponent`` of n at each width and of d at the longest length, in a power law.
    """
    lengths, widths = inputs["lengths"], inputs["widths"]
    found = {"flops": {str(n): {str(d): count(n, d) for d in widths} for n in lengths}}
    if not inputs["repeats"]:
        return found
    times = measure(lengths, widths, inputs["repeats"], np.random.default_rng(seed))
    found["milliseconds"] = {
        str(n): {str(d): 1e3 * float(times[i, j]) for j, d in enumerate(widths)}
        for i, n in enumerate(lengths)
    }
    a, b, error = fit(lengths, widths, times)
    found["fit"] = {"a": 1e9 * a, "b": 1e9 * b, "even": a / b, "error": error}
    found["exponent"] = {
        "n": {str(d): exponent(lengths, times[:, j]) for j, d in enumerate(widths)},
        "d": exponent(widths, times[-1]),
    }
    return found


def count(n, d):
    """Return the operations of all steps of attention."""
    return sum(cost.flops for cost in attention_cost(n, n, d).values())


def measure(lengths, widths, repeats, rng):
    """Return the seconds of the fastest of ``repeats`` calls, of shape (lengths, widths)."""
    best = np.full((len(lengths), len(widths)), np.inf)
    # Once an array of this size is freed, the C library keeps freed memory instead of
    # returning it; else every call would fetch its memory anew, which takes longer than exp.
    np.empty(24 << 20, np.uint8)
    for _ in range(repeats):  # outermost, so that a disturbance meets one repeat of each size
        for i, n in enumerate(lengths):
            for j, d in enumerate(widths):
                q, k, v = rng.standard_normal((3, n, d), dtype=np.float32)
                scaled_dot_product_attention(q, k, v)  # brings code and data near
                start = time.process_time()
                scaled_dot_product_attention(q, k, v)
                best[i, j] = min(best[i, j], time.process_time() - start)
    return best


def fit(lengths, widths, times):
    """Return a and b of t = a n^2 + b n^2 d, and the largest relative error."""
    n, d = np.meshgrid(lengths, widths, indexing="ij")
    terms = np.stack([n**2, n**2 * d], axis=-1) / times[..., None]
    terms = terms.reshape(-1, 2)
    (a, b), *_ = np.linalg.lstsq(terms, np.ones(len(terms)), rcond=None)
    return float(a), float(b), float(np.abs(terms @ [a, b] - 1).max())


def exponent(sizes, values):
    """Return the slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def plot(record):
    """Draw times against the width for each length, with the fit; return the figure."""
    import matplotlib.pyplot as plt

    results, widths = record["results"], record["inputs"]["widths"]
    a, b = 1e-6 * results["fit"]["a"], 1e-6 * results["fit"]["b"]  # milliseconds
    line = np.geomspace(widths[0], widths[-1], 50)
    figure, axis = plt.subplots()
    for n, marker in zip(record["inputs"]["lengths"], "os^", strict=True):
        times = results["milliseconds"][str(n)].values()
        dots = axis.plot(widths, list(times), marker, label=f"n = {n}")[0]
        axis.plot(line, n**2 * (a + b * line), "-", lw=1, color=dots.get_color())
    axis.axvline(results["fit"]["even"], ls=":", color="#7b7b7b")
    axis.set(xscale="log", yscale="log", xticks=widths, xticklabels=widths)
    axis.minorticks_off()
    axis.set(xlabel="width d of a head", ylabel="processor time in milliseconds")
    axis.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    return figure
