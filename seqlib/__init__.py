"""Reference implementations, exercises and judge of the course on sequence models.

Shapes in all docstrings use one alphabet of axis letters:

====  =============================================
...   leading axes, none or more
B     sequences in a batch
T     time steps, or queries
S     keys
D     features of an input or a model
H     features of a recurrent state
N     attention heads
K     features of one head
F     features of the inner layer of a feed-forward
V     entries of a vocabulary
====  =============================================

Batch comes first and rows are tokens.
``seqlib.np`` holds the functions in NumPy, each with its backward pass, and ``seqlib.pt`` the
same functions in PyTorch together with the modules that own parameters.
Importing ``seqlib`` imports neither PyTorch nor nbgrader.
"""

__all__ = ["check"]
__version__ = "0.1.0"


def __getattr__(name):
    if name == "check":
        from seqlib.judge.check import check

        return check
    raise AttributeError(f"module 'seqlib' has no attribute {name!r}")
