"""PyTorch twins: the functions of ``seqlib.np`` and the modules that own their parameters."""
