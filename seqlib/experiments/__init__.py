"""The long computations of the book, and the committed files with their results.

Each script is a module with

``INPUTS``
    what is computed, as a dict that fits into JSON,
``REDUCED``
    the inputs of the quick form that a test reruns,
``SEEDS``
    the seeds of the repetitions,
``TOLERANCE``
    ``rtol`` and ``atol``: how far the quick form may be from the committed numbers,
``PACKAGES``
    the packages whose versions the record names; NumPy alone if not given,
``run(inputs, seed)``
    the computation: a nested dict of numbers.

``python -m seqlib.experiments`` reruns all scripts and writes ``results/<name>.json``;
``python -m seqlib.experiments sqrt_dk`` reruns one. The same call continues one that was
interrupted: seeds that were finished are not run again.
A page quotes a result by the role ``{result}`` and a cell reads it by :func:`load`.
"""

from seqlib.experiments.record import load

__all__ = ["SCRIPTS", "load"]

SCRIPTS = (
    "attention_time",
    "bottleneck",
    "captioning",
    "charlm",
    "comparison",
    "comparison_ablations",
    "comparison_probes",
    "comparison_time",
    "decoder_threshold",
    "depth",
    "forecasting",
    "ladder",
    "long_lag",
    "norm_time",
    "speech",
    "sqrt_dk",
    "translation",
    "two_heads",
    "without_parts",
)
