"""Speed beside what a user would pick instead: ratios of process CPU time, one thread."""

import os

# Read when NumPy and PyTorch are imported, so before any benchmark is.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
