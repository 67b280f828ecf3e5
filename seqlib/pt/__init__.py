"""PyTorch twins: the functions of ``seqlib.np`` and the modules that own their parameters."""

from seqlib.pt.norm import *
from seqlib.pt.positions import *
from seqlib.pt.tokens import *
