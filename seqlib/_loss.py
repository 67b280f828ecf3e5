"""Checks of the loss that both backends share."""

from seqlib._check import check_choice, check_integers, check_shape


def check_targets(logits, targets, reduction):
    """Raise ``ValueError`` unless ``targets`` holds one integer per row of ``logits``."""
    check_choice("reduction", reduction, ("mean", "sum", "none"))
    check_shape("logits", logits, ("...", "V"))
    check_shape("targets", targets, tuple(logits.shape[:-1]), fix="one class per row of logits")
    check_integers("targets", targets, fix="a target is the number of a class")
